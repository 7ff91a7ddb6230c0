package host

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// All packets of a connection go one way, by its entry and not by the rules;
// what is forgotten starts again.
func TestConnectionsAreKnown(t *testing.T) {
	n, client, r, _ := inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A PREROUTING -p tcp --dport 8080 -j DNAT --to 192.0.2.2:80,192.0.2.3:80",
			"-A POSTROUTING -o out -j MASQUERADE")
	})
	n.add("server2", "out 192.0.2.3/24").Listen(&Listener{Proto: packet.TCP, Port: 80})
	send := func(k *Socket, forced ...int) *wire.Simulation {
		sim := &wire.Simulation{Rec: &trace.Recorder{}, Choices: wire.Choices{Forced: forced}}
		k.Send(sim, []byte("hello"), 64)
		if err := sim.Run(); err != nil || k.Outcome.Verdict != trace.Delivered {
			t.Fatalf("%+v (%v)", k.Outcome, err)
		}
		return sim
	}
	words := func(sim *wire.Simulation) string {
		var all []string
		for _, s := range sim.Rec.Steps() {
			if s.Action == trace.ActRewrite {
				all = append(all, s.Text())
			}
		}
		return strings.Join(all, "; ")
	}
	k := client.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.96.0.50:8080"))
	first := send(k, 1)
	if want := "backend 2 of 2; source translated; reply of a known connection: translation undone"; words(first) != want ||
		len(first.Made) != 1 || first.Rec.Seen().Dst != "192.0.2.3:80" {
		t.Errorf("the first packet: %s; want %s; seen %+v", words(first), want, first.Rec.Seen())
	}
	second := send(k, 0)
	if want := "connection known: translated as before; reply of a known connection: translation undone"; words(second) != want ||
		len(second.Made) != 0 || second.Rec.Seen().Dst != "192.0.2.3:80" {
		t.Errorf("the second packet: %s; want %s; seen %+v", words(second), want, second.Rec.Seen())
	}
	// Connections through the translation have ports of their own.
	ports := map[string]bool{}
	for range 3 {
		sim := send(client.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.96.0.50:8080")), 0)
		for _, s := range sim.Rec.Steps() {
			if s.Text() == "source translated" {
				ports[s.Changes[1].After.String()] = true
			}
		}
	}
	if len(ports) != 3 || !ports["50001"] || !ports["50003"] {
		t.Errorf("the ports are %v, want 50001 to 50003", ports)
	}
	r.Reset()
	client.Reset()
	k = client.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.96.0.50:8080"))
	if sim := send(k, 0); !strings.HasPrefix(words(sim), "backend 1 of 2; source translated") || len(r.NAT.table) != 2 {
		t.Errorf("after the reset: %s; %d entries", words(sim), len(r.NAT.table))
	}
}

// Replies to connections that came from outside keep the address that the
// client wrote to, though the rule would masquerade what leaves.
func TestRepliesAreNotMasqueraded(t *testing.T) {
	n, client, _, server := inOut(t, func(r *machine) *NAT { return iptables(t, r.Stack, "-A POSTROUTING -o out -j MASQUERADE") })
	server.route(t, "10.0.1.0/24", "192.0.2.1")
	client.Listen(&Listener{Proto: packet.TCP, Port: 8080})
	out, rec := n.send(server, packet.TCP, "10.0.1.2:8080", 64)
	if out.Verdict != trace.Delivered || rec.Seen().Src != "192.0.2.2" {
		t.Errorf("%+v, %s", out, reasonOf(rec))
	}
	if last := n.frames[len(n.frames)-1]; !strings.Contains(last, "10.0.1.2:8080 >") {
		t.Errorf("the reply is %s", last)
	}
}

// Two pings at once: the identifier tells them apart, also on the way back.
func TestEchoIdentifiers(t *testing.T) {
	n, client, _, _ := inOut(t, func(r *machine) *NAT { return iptables(t, r.Stack, "-A POSTROUTING -o out -j MASQUERADE") })
	for want := 0x4001; want <= 0x4002; want++ {
		out, rec := n.send(client, packet.ICMP, "192.0.2.2:0", 64)
		var ids []string
		for _, s := range rec.Steps() {
			for _, ch := range s.Changes {
				if ch.Field == "ICMP id" {
					ids = append(ids, ch.Before.String()+" to "+ch.After.String())
				}
			}
		}
		own := strconv.Itoa(want - 0x4000)
		if w := own + " to " + strconv.Itoa(want) + "," + strconv.Itoa(want) + " to " + own; out.Verdict != trace.Delivered ||
			strings.Join(ids, ",") != w {
			t.Errorf("%+v, identifiers %v, want %s", out, ids, w)
		}
	}
}

// What crosses a bridge is translated only as the reply of a known connection:
// the rules are not for bridged packets.
func TestBridged(t *testing.T) {
	s := stackOf(t, []string{"br0 10.0.1.1/24"}, nil)
	s.NAT = iptables(t, s, "-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 10.0.1.3:80")
	l := s.Links[0]
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	request := packetOf(t, l, "tcp 10.0.1.2:1000 > 10.96.0.50:8080 S")
	s.NAT.Bridged(s, sim, request)
	if got := request.Tuple().String(); got != "TCP 10.0.1.2:1000 > 10.96.0.50:8080" || len(sim.Rec.Steps()) != 0 {
		t.Errorf("a new connection was translated to %s", got)
	}
	s.NAT.destination(s, sim, request, Prerouting)
	for in, want := range map[string]string{
		"tcp 10.0.1.3:80 > 10.0.1.2:1000 SA":    "TCP 10.96.0.50:8080 > 10.0.1.2:1000",
		"tcp 10.0.1.3:81 > 10.0.1.2:1000 SA":    "TCP 10.0.1.3:81 > 10.0.1.2:1000",
		"tcp 10.0.1.2:1000 > 10.96.0.50:8080 A": "TCP 10.0.1.2:1000 > 10.96.0.50:8080",
	} {
		p := packetOf(t, l, in)
		s.NAT.Bridged(s, sim, p)
		if got := p.Tuple().String(); got != want {
			t.Errorf("%s crosses as %s, want %s", in, got, want)
		}
	}
}

// With client affinity all connections of one client address go to the backend of its
// first one; without it each is chosen anew, and so it is for another client, for another
// rule, and after a reset.
func TestStickyTargets(t *testing.T) {
	for _, c := range []struct {
		name   string
		sticky bool
		// connections: client, Service, the pick that chance would make
		packets []string
		want    string // backends
		choices int
	}{
		{"not sticky", false, []string{"2 50 1", "2 50 2", "2 50 0"}, "1 2 0", 3},
		{"sticky", true, []string{"2 50 1", "2 50 2", "2 50 0"}, "1 1 1", 1},
		{"another client", true, []string{"2 50 1", "3 50 2", "2 50 0", "3 50 0"}, "1 2 1 2", 2},
		{"another Service", true, []string{"2 50 1", "2 51 2", "2 50 0", "2 51 0"}, "1 2 1 2", 2},
		{"the first backend", true, []string{"2 50 0", "2 50 2"}, "0 0", 1},
		{"after a reset", true, []string{"2 50 1", "reset", "2 50 2", "2 50 0"}, "1 2 2", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			targets := " -j DNAT --to 192.0.2.2:80,192.0.2.3:80,192.0.2.4:80"
			s, sent := translator(t, "-A PREROUTING -d 10.96.0.50/32"+targets, "-A PREROUTING -d 10.96.0.51/32"+targets)
			for i := range s.NAT.Rules {
				s.NAT.Rules[i].Sticky = c.sticky
			}
			var got []string
			choices := 0
			for port, text := range c.packets {
				if text == "reset" {
					s.Reset()
					continue
				}
				words := strings.Fields(text)
				pick, _ := strconv.Atoi(words[2])
				sim := &wire.Simulation{Choices: wire.Choices{Forced: []int{pick}}}
				s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1."+words[0]+":"+strconv.Itoa(1000+port)+" > 10.96.0."+words[1]+":80 S"))
				dst := sent["out"][len(sent["out"])-1].Headers().Dst.As4()
				got = append(got, strconv.Itoa(int(dst[3])-2))
				choices += len(sim.Made)
			}
			if strings.Join(got, " ") != c.want || choices != c.choices {
				t.Errorf("backends %v after %d choices, want %s after %d", got, choices, c.want, c.choices)
			}
		})
	}
}

// Chance spreads connections over all backends, and the same connection always falls to
// the same one. A single backend is no choice.
func TestTargetsByChance(t *testing.T) {
	one, _ := translator(t, "-A PREROUTING -j DNAT --to 192.0.2.2:80")
	sim := &wire.Simulation{}
	one.Input(sim, one.Links[0], packetOf(t, one.Links[0], "tcp 10.0.1.2:1000 > 10.96.0.50:80 S"))
	if len(sim.Made) != 0 {
		t.Errorf("choices of one: %v", sim.Made)
	}
	picks := map[string]int{}
	for range 2 {
		s, sent := translator(t, "-A PREROUTING -j DNAT --to 192.0.2.2:80,192.0.2.3:80,192.0.2.4:80")
		for port := range 60 {
			s.Input(&wire.Simulation{}, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1.2:"+strconv.Itoa(1000+port)+" > 10.96.0.50:80 S"))
		}
		for _, p := range sent["out"] {
			picks[p.Tuple().String()]++
		}
	}
	backends := map[string]int{}
	for tuple, n := range picks {
		if n != 2 {
			t.Errorf("%s %d times", tuple, n)
		}
		backends[tuple[strings.Index(tuple, "> "):]]++
	}
	if len(backends) != 3 || len(picks) != 60 {
		t.Errorf("%d connections to %v", len(picks), backends)
	}
	for b, n := range backends {
		if n < 10 {
			t.Errorf("%s got %d of 60 connections", b, n)
		}
	}
}

// Every connection that is masqueraded has a port of its own, up to 65535 and around
// again past those that are in use; of two rules that match it, the first takes one.
func TestMasqueradePorts(t *testing.T) {
	s, sent := translator(t, "-A POSTROUTING -o out -j MASQUERADE", "-A POSTROUTING -j MASQUERADE")
	port := 0
	for _, next := range []struct {
		nextPort uint16
		want     []uint16
	}{{0, []uint16{50000, 50001}}, {65534 - 50000, []uint16{65534, 65535, 50002, 50003}}} {
		s.NAT.nextPort, sent["out"] = next.nextPort, nil
		for i, want := range next.want {
			port++
			s.Input(&wire.Simulation{}, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1.2:"+strconv.Itoa(port)+" > 192.0.2.2:80 S"))
			if got := sent["out"][i].Headers().SrcPort; got != want {
				t.Errorf("leaves by port %d, want %d", got, want)
			}
		}
	}
}

// Connections that are open at the same time are known one by one: each goes on as it
// began, both ways, and a new one does not end those before.
func TestConnectionsAtOnce(t *testing.T) {
	s, sent := translator(t, "-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80", "-A POSTROUTING -o out -j MASQUERADE")
	in, out := s.Links[0], s.Links[1]
	for range 2 { // the first packets, then the next ones
		sent["out"] = nil
		for _, port := range []string{"1000", "1001", "1002"} {
			s.Input(&wire.Simulation{}, in, packetOf(t, in, "udp 10.0.1.2:"+port+" > 10.96.0.50:8080"))
		}
		for i, p := range sent["out"] {
			if want := "UDP 192.0.2.1:" + strconv.Itoa(50000+i) + " > 192.0.2.2:80"; p.Tuple().String() != want {
				t.Errorf("connection %d leaves as %s, want %s", i, p.Tuple(), want)
			}
		}
	}
	for i, port := range []string{"50000", "50001", "50002"} {
		s.Input(&wire.Simulation{}, out, packetOf(t, out, "udp 192.0.2.2:80 > 192.0.2.1:"+port))
		if want := "UDP 10.96.0.50:8080 > 10.0.1.2:" + strconv.Itoa(1000+i); sent["in"][i].Tuple().String() != want {
			t.Errorf("the answer of connection %d is %s, want %s", i, sent["in"][i].Tuple(), want)
		}
	}
}

// A packet that the machine itself puts into a tunnel is a connection for the way out
// only: its packets get one address and port.
func TestMasqueradeOfTunnels(t *testing.T) {
	s, sent := translator(t, "-A POSTROUTING -o out -j MASQUERADE")
	s.AddVTEP(&VTEP{Kind: packet.VXLAN, VNI: 7, Port: 4789, Local: s.Links[0].address(false), Link: &Link{Name: "tun", MAC: packet.MAC{2, 1}},
		Peers: []Peer{{Prefix: netip.MustParsePrefix("10.244.2.0/24"), Addr: netip.MustParseAddr("192.0.2.2"), MAC: packet.MAC{2, 2}}}})
	k := s.Open(packet.UDP, netip.MustParseAddr("10.244.1.0"), 0, netip.MustParseAddrPort("10.244.2.1:53"))
	for range 2 {
		k.Send(&wire.Simulation{}, nil, 64)
	}
	for _, p := range sent["out"] {
		if got := p.Tuple().String(); got != "UDP 192.0.2.1:50000 > 192.0.2.2:4789" {
			t.Errorf("sent %s", got)
		}
	}
	if len(sent["out"]) != 2 {
		t.Errorf("sent %v", sent["out"])
	}
}

// What the rules said of the first packet holds for its connection, also when they said
// nothing and have changed since.
func TestRulesAreForFirstPackets(t *testing.T) {
	s, sent := translator(t)
	in := s.Links[0]
	before := "udp 10.0.1.2:1000 > 192.0.2.2:53"
	s.Input(&wire.Simulation{}, in, packetOf(t, in, before))
	s.NAT.Rules = iptables(t, s, "-A PREROUTING -p udp -j DNAT --to 192.0.2.3:53", "-A POSTROUTING -o out -j MASQUERADE").Rules
	s.Input(&wire.Simulation{}, in, packetOf(t, in, before))
	s.Input(&wire.Simulation{}, in, packetOf(t, in, "udp 10.0.1.2:1001 > 192.0.2.2:53"))
	s.NAT.Rules = nil
	s.Input(&wire.Simulation{}, in, packetOf(t, in, "udp 10.0.1.2:1001 > 192.0.2.2:53"))
	for i, want := range []string{"UDP 10.0.1.2:1000 > 192.0.2.2:53", "UDP 10.0.1.2:1000 > 192.0.2.2:53", "UDP 192.0.2.1:50000 > 192.0.2.3:53",
		"UDP 192.0.2.1:50000 > 192.0.2.3:53"} {
		if got := sent["out"][i].Tuple().String(); got != want {
			t.Errorf("packet %d leaves as %s, want %s", i+1, got, want)
		}
	}
}
