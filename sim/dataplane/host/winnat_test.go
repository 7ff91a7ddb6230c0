package host

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// WinNAT translates TCP, UDP and ICMP of its prefix that leaves the inside link.
func TestWinNAT(t *testing.T) {
	for _, c := range []struct {
		name, internal string
		proto          packet.Proto
		to             string
		seen           string
	}{
		{"TCP", "10.0.1.0/24", packet.TCP, "192.0.2.2:80", "192.0.2.1"},
		{"UDP", "10.0.1.0/24", packet.UDP, "192.0.2.2:53", "192.0.2.1"},
		{"ping", "10.0.1.0/24", packet.ICMP, "192.0.2.2:0", "192.0.2.1"},
		{"of another prefix", "10.0.9.0/24", packet.TCP, "192.0.2.2:80", "10.0.1.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, client, _, server := inOut(t, func(r *machine) *NAT { return NewWinNAT(netip.MustParsePrefix(c.internal), r.Links[0], nil) })
			server.route(t, "10.0.1.0/24", "192.0.2.1")
			if out, rec := n.send(client, c.proto, c.to, 64); out.Verdict != trace.Delivered || rec.Seen().Src != c.seen {
				t.Errorf("%+v, seen %+v", out, rec.Seen())
			}
		})
	}
	// On the inside nothing is translated.
	n, client, _, _ := inOut(t, func(r *machine) *NAT { return NewWinNAT(netip.MustParsePrefix("10.0.1.0/24"), r.Links[0], nil) })
	n.add("near", "in 10.0.1.3/24").Listen(&Listener{Proto: packet.TCP, Port: 80})
	client.route(t, "10.0.1.3/32", "10.0.1.1")
	if out, rec := n.send(client, packet.TCP, "10.0.1.3:80", 64); out.Verdict != trace.Delivered || rec.Seen().Src != "10.0.1.2" ||
		len(n.frames) != 3 {
		t.Errorf("on the inside: %+v, seen %+v", out, rec.Seen())
	}
}

// With the loopback of WinNAT the host's own programs reach a published port at its
// addresses and at localhost; without it they do not, and packets to other ports stay.
func TestPublishedPortsFromTheHost(t *testing.T) {
	web := netip.MustParseAddrPort("10.0.1.2:80")
	for _, c := range []struct {
		name, addr, to string
		loopback       bool
		want           trace.Verdict
		seen           string
	}{
		{"localhost", "", "127.0.0.1:8080", true, trace.Delivered, "10.0.1.1"},
		{"an own address", "", "192.0.2.1:8080", true, trace.Delivered, "192.0.2.1"},
		{"published on an address only", "192.0.2.1", "127.0.0.1:8080", true, "", ""},
		{"another port", "", "127.0.0.1:8081", true, "", ""},
		{"no loopback", "", "127.0.0.1:8080", false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, client, router, _ := inOut(t, func(r *machine) *NAT { return NewWinNAT(netip.MustParsePrefix("10.0.1.0/24"), r.Links[0], nil) })
			router.Windows = true
			client.Listen(&Listener{Proto: packet.TCP, Port: 80})
			addr, _ := netip.ParseAddr(c.addr)
			mapping := WinNATMapping(addr, packet.TCP, 8080, web, nil)
			rules := []NATRule{mapping}
			if c.loopback {
				rules = append(rules, WinNATLoopback(mapping, factVTEP)...)
			}
			router.NAT.Publish(rules)
			router.NAT.Publish(rules)
			if len(router.NAT.Rules) != 1+len(rules) {
				t.Errorf("%d rules", len(router.NAT.Rules))
			}
			out, rec := n.send(router, packet.TCP, c.to, 64)
			if out.Verdict != c.want || c.seen != "" && (rec.Seen().Dst != web.String() || !strings.HasPrefix(rec.Seen().Src, c.seen)) {
				t.Errorf("%+v, seen %+v", out, rec.Seen())
			}
		})
	}
}

// A published port of WinNAT is one of the node's addresses seen from elsewhere.
// Publishing again replaces what was published, and nothing else.
func TestPublishedPorts(t *testing.T) {
	web := netip.MustParseAddrPort("10.0.1.2:80")
	for _, c := range []struct {
		name, addr, to string
		port           uint16
		want           trace.Verdict
	}{
		{"on any address", "", "192.0.2.1:8080", 8080, trace.Delivered},
		{"on this address", "192.0.2.1", "192.0.2.1:8080", 8080, trace.Delivered},
		{"on another address", "192.0.2.9", "192.0.2.1:8080", 8080, trace.Rejected},
		{"another port", "", "192.0.2.1:8080", 8081, trace.Rejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, client, router, server := inOut(t, func(r *machine) *NAT { return NewWinNAT(netip.MustParsePrefix("10.0.1.0/24"), r.Links[0], nil) })
			client.Listen(&Listener{Proto: packet.TCP, Port: 80})
			addr, _ := netip.ParseAddr(c.addr)
			router.NAT.Publish([]NATRule{WinNATMapping(addr, packet.UDP, c.port, web, nil)})
			router.NAT.Publish([]NATRule{WinNATMapping(addr, packet.TCP, c.port, web, nil)})
			if out, rec := n.send(server, packet.TCP, c.to, 64); out.Verdict != c.want || c.want == trace.Delivered &&
				rec.Seen().Dst != web.String() {
				t.Errorf("%+v, seen %+v", out, rec.Seen())
			}
			if len(router.NAT.Rules) != 2 || router.NAT.Rules[0].Chain != Postrouting {
				t.Errorf("rules %+v", router.NAT.Rules)
			}
		})
	}
}

// A published port is one of its protocol and of the machine's own addresses; a rule of
// it carries who published it and what it rests on.
func TestWhatAPublishedPortIsFor(t *testing.T) {
	origin := &trace.Origin{What: "hostPort of web"}
	mapping := WinNATMapping(netip.Addr{}, packet.TCP, 8080, netip.MustParseAddrPort("10.0.1.2:80"), origin)
	for _, c := range []struct {
		in   string
		rule string // that translates it, "" for none
		fact string
	}{
		{"< tcp 192.0.2.9:1000 > 192.0.2.1:8080 S", mapping.Name, "host.winnat"},
		{"< udp 192.0.2.9:1000 > 192.0.2.1:8080", "", ""},
		{"< tcp 192.0.2.9:1000 > 192.0.2.3:8080 S", "", ""},
		{"> tcp 127.0.0.1:1000 > 127.0.0.1:8080 S", mapping.Name, factTestGate.ID},
		{"> udp 127.0.0.1:1000 > 127.0.0.1:8080", "", ""},
		{"> tcp 192.0.2.1:1000 > 192.0.2.3:8080 S", "", ""},
	} {
		s := stackOf(t, []string{"in 10.0.1.1/24", "out 192.0.2.1/24"}, nil)
		s.Forwarding = true
		s.NAT = NewWinNAT(netip.MustParsePrefix("10.0.1.0/24"), s.Links[0], origin)
		s.NAT.Publish(append([]NATRule{mapping}, WinNATLoopback(mapping, factTestGate)...))
		for _, l := range s.Links {
			l.Send = func(*wire.Simulation, *packet.Packet) {}
		}
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		p := packetOf(t, s.Links[1], c.in[2:])
		if c.in[0] == '<' {
			s.Input(sim, s.Links[1], p)
		} else {
			s.Emit(sim, p)
		}
		rewrites := 0
		for _, st := range sim.Rec.Steps() {
			if st.Action != trace.ActRewrite {
				continue
			}
			rewrites++
			if st.Rule != c.rule || st.RuleType != "WinNAT" || st.From != origin || st.Evidence != c.fact {
				t.Errorf("%s: %+v", c.in, st)
			}
		}
		if (rewrites > 0) != (c.rule != "") {
			t.Errorf("%s: %d steps rewrite", c.in, rewrites)
		}
	}
	if rules := WinNATLoopback(mapping, factTestGate); rules[1].Name != mapping.Name || rules[1].Origin != origin ||
		!slices.Equal(rules[1].Protos, []packet.Proto{packet.TCP}) {
		t.Errorf("the second rule is %+v", rules[1])
	}
}
