package host

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// iptables reads rules as iptables writes them. Targets are DNAT --to A[,B...],
// MARK, MASQUERADE and DROP; -m mark matches marked connections.
func iptables(t *testing.T, s *Stack, rules ...string) *NAT {
	t.Helper()
	n := NewNetfilter()
	link := func(name string) *Link {
		return s.Links[slices.IndexFunc(s.Links, func(l *Link) bool { return l.Name == name })]
	}
	for _, text := range rules {
		r := NATRule{Name: text}
		words := strings.Fields(text)
		for len(words) > 0 {
			not := words[0] == "!"
			if not {
				words = words[1:]
			}
			option, arg := words[0], words[1]
			words = words[2:]
			if option == "-j" && arg == "DNAT" { // --to
				for to := range strings.SplitSeq(words[1], ",") {
					r.Targets = append(r.Targets, netip.MustParseAddrPort(to))
				}
				words = words[2:]
				continue
			}
			if !r.match(option, arg, not, link) && !r.target(option, arg) {
				t.Fatalf("%q: %s %s", text, option, arg)
			}
		}
		n.Rules = append(n.Rules, r)
	}
	return n
}

// match reads an option that says which packets a rule is for.
func (r *NATRule) match(option, arg string, not bool, link func(string) *Link) bool {
	switch {
	case option == "-A":
		r.Chain = Chain(arg)
	case option == "-p":
		r.Protos = append(r.Protos, map[string]packet.Proto{"tcp": packet.TCP, "udp": packet.UDP, "icmp": packet.ICMP}[arg])
	case option == "-s" && not:
		r.NotSrc = append(r.NotSrc, netip.MustParsePrefix(arg))
	case option == "-s":
		r.Src = append(r.Src, netip.MustParsePrefix(arg))
	case option == "-d" && not:
		r.NotDst = append(r.NotDst, netip.MustParsePrefix(arg))
	case option == "-d":
		r.Dst = append(r.Dst, netip.MustParsePrefix(arg))
	case option == "--dst-type" && arg == "LOCAL":
		r.LocalDst = true
	case option == "--dport":
		port, _ := strconv.Atoi(arg)
		r.DstPort = uint16(port)
	case option == "-o" && not:
		r.notOutLinks = append(r.notOutLinks, link(arg))
	case option == "-o":
		r.OutLink = link(arg)
	case option == "-m" && arg == "mark":
		r.Marked = true
	default:
		return false
	}
	return true
}

// target reads what a rule does with a packet.
func (r *NATRule) target(option, arg string) bool {
	if option != "-j" {
		return false
	}
	switch arg {
	case "MARK":
		r.Mark = true
	case "MASQUERADE":
		r.Masquerade = true
	case "DROP":
		r.Drop = trace.NoBackend
	default:
		return false
	}
	return true
}

// inOut is a client network, a machine r that translates, and a server outside
// at 192.0.2.2 that has no route to 10.0.1.0/24 unless a test adds one.
func inOut(t *testing.T, nat func(r *machine) *NAT) (n *network, client, r, server *machine) {
	n = newNetwork(t)
	client, server = n.add("client", "in 10.0.1.2/24"), n.add("server", "out 192.0.2.2/24")
	r = n.add("r", "in 10.0.1.1/24", "out 192.0.2.1/24")
	r.Forwarding, r.NAT = true, nat(r)
	client.route(t, "0.0.0.0/0", "10.0.1.1")
	server.Listen(&Listener{Proto: packet.TCP, Port: 80})
	server.Listen(&Listener{Proto: packet.UDP, Port: 53})
	return n, client, r, server
}

// First packets through the chains of a Linux machine: what the server sees.
func TestNetfilter(t *testing.T) {
	service := "-A PREROUTING -p tcp -d 10.96.0.50/32 --dport 8080 -j DNAT --to 192.0.2.2:80"
	masquerade := "-A POSTROUTING -o out -j MASQUERADE"
	for _, c := range []struct {
		name   string
		rules  []string
		proto  packet.Proto
		to     string
		seen   string // source as the server sees it, "" when it gets nothing
		reason trace.Reason
	}{
		{name: "no rule", proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "masquerade", rules: []string{masquerade}, proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "masquerade UDP", rules: []string{masquerade}, proto: packet.UDP, to: "192.0.2.2:53", seen: "192.0.2.1"},
		{name: "masquerade ping", rules: []string{masquerade}, proto: packet.ICMP, to: "192.0.2.2:0", seen: "192.0.2.1"},
		{name: "ping", proto: packet.ICMP, to: "192.0.2.2:0", seen: "10.0.1.2"},
		{name: "ping to a Service", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80"}, proto: packet.ICMP, to: "10.96.0.50:0", seen: "10.0.1.2"},
		{name: "two Services for one address: the first counts", rules: []string{service, strings.Replace(service, "192.0.2.2:80", "192.0.2.2:81", 1)}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a mark after the Service's rule comes too late", rules: []string{service, "-A PREROUTING -j MARK", "-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "marked twice", rules: []string{"-A PREROUTING -j MARK", "-A PREROUTING -d 10.96.0.0/16 -j MARK", service, "-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "192.0.2.1"},
		{name: "out of another link", rules: []string{"-A POSTROUTING -o in -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "but not out of this link", rules: []string{"-A POSTROUTING ! -o out -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "but not out of another link", rules: []string{"-A POSTROUTING ! -o in -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "its source", rules: []string{"-A POSTROUTING -s 10.0.1.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "another source", rules: []string{"-A POSTROUTING -s 10.0.9.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "not its source", rules: []string{"-A POSTROUTING ! -s 10.0.1.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "another destination", rules: []string{"-A POSTROUTING -d 10.0.9.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "not its destination", rules: []string{"-A POSTROUTING ! -d 192.0.2.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "another protocol", rules: []string{"-A POSTROUTING -p udp -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},
		{name: "one of two protocols", rules: []string{"-A POSTROUTING -p udp -p tcp -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "the first rule that matches", rules: []string{"-A POSTROUTING -p udp -j MASQUERADE", "-A POSTROUTING -p tcp -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "a rule of another chain", rules: []string{"-A PREROUTING -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80", seen: "10.0.1.2"},

		{name: "a Service", rules: []string{service}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a Service, marked", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j MARK", service, "-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "192.0.2.1"},
		{name: "a Service, not marked", rules: []string{"-A PREROUTING -d 10.96.0.51/32 -j MARK", service, "-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a Service whose port is the backend's", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80"}, proto: packet.TCP, to: "10.96.0.50:80", seen: "10.0.1.2"},
		{name: "a Service on the backend's address", rules: []string{"-A PREROUTING -d 192.0.2.2/32 --dport 8080 -j DNAT --to 192.0.2.2:80"}, proto: packet.TCP, to: "192.0.2.2:8080", seen: "10.0.1.2"},
		{name: "another port of a Service", rules: []string{service}, proto: packet.TCP, to: "10.96.0.50:8081", reason: trace.NoRoute},
		{name: "a Service is not in OUTPUT", rules: []string{strings.Replace(service, "PREROUTING", "OUTPUT", 1)}, proto: packet.TCP, to: "10.96.0.50:8080", reason: trace.NoRoute},
		{name: "a Service without endpoints", rules: []string{"-A PREROUTING -d 10.96.0.51/32 -j DROP"}, proto: packet.TCP, to: "10.96.0.51:80", reason: trace.NoBackend},
		{name: "a NodePort", rules: []string{"-A PREROUTING -p tcp --dst-type LOCAL --dport 30080 -j DNAT --to 192.0.2.2:80"}, proto: packet.TCP, to: "10.0.1.1:30080", seen: "10.0.1.2"},
		{name: "the NodePort's port elsewhere", rules: []string{"-A PREROUTING -p tcp --dst-type LOCAL --dport 30080 -j DNAT --to 192.0.2.2:80"}, proto: packet.TCP, to: "192.0.2.2:30080", reason: trace.PortClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, client, _, server := inOut(t, func(r *machine) *NAT { return iptables(t, r.Stack, c.rules...) })
			server.route(t, "10.0.1.0/24", "192.0.2.1")
			out, rec := n.send(client, c.proto, c.to, 64)
			if c.seen == "" {
				if rec.Seen() != nil || reasonOf(rec) != c.reason {
					t.Errorf("%+v, %s; want %s", out, reasonOf(rec), c.reason)
				}
				return
			}
			if out.Verdict != trace.Delivered || rec.Seen().Src != c.seen {
				t.Errorf("%+v, %s, seen %+v", out, reasonOf(rec), rec.Seen())
			}
			if seen, _, _ := strings.Cut(rec.Seen().Dst, ":"); seen != "192.0.2.2" {
				t.Errorf("the server was written to as %s", rec.Seen().Dst)
			}
			// What is not translated leaves no step, on the way back neither.
			rewrites := 0
			for _, st := range rec.Steps() {
				if st.Action == trace.ActRewrite {
					rewrites++
				}
			}
			if direct := strings.HasPrefix(c.to, "192.0.2.2:") && !strings.Contains(c.to, "8080"); (rewrites == 0) != (direct && c.seen == "10.0.1.2") {
				t.Errorf("%d steps rewrite", rewrites)
			}
		})
	}
}

// An ICMP error goes back through the translation of the packet that it is about, and
// quotes that as the client has sent it; it is no connection of its own.
func TestErrorsFollowTheirConnection(t *testing.T) {
	masquerade := "-A POSTROUTING -o out -j MASQUERADE"
	service := "-A PREROUTING -p udp -d 10.96.0.50/32 --dport 5353 -j DNAT --to 192.0.2.2:54"
	for _, c := range []struct {
		name  string
		rules []string
		to    string
		back  bool // the server has a route to the client
	}{
		{"no rule", nil, "192.0.2.2:54", true},
		{"source translated", []string{masquerade}, "192.0.2.2:54", false},
		{"destination translated", []string{service}, "10.96.0.50:5353", true},
		{"both", []string{service, masquerade}, "10.96.0.50:5353", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, client, r, server := inOut(t, func(r *machine) *NAT { return iptables(t, r.Stack, c.rules...) })
			if c.back {
				server.route(t, "10.0.1.0/24", "192.0.2.1")
			}
			// Errors that others have sent in the other direction leave no trace behind.
			if out, _ := n.send(server, packet.UDP, "192.0.2.1:9", 64); out.Verdict != trace.Rejected {
				t.Fatalf("a closed port of r: %+v", out)
			}
			out, rec := n.send(client, packet.UDP, c.to, 64)
			if out.Verdict != trace.Rejected || out.Reason != trace.PortClosed {
				t.Errorf("%+v, %s", out, reasonOf(rec))
			}
			for tuple := range r.NAT.table {
				if tuple.Proto == packet.ICMP {
					t.Errorf("an error is a connection: %s", tuple)
				}
			}
		})
	}
}

// All packets of a connection go one way, by its entry and not by the rules;
// what is forgotten starts again.
func TestConnectionsAreKnown(t *testing.T) {
	n, client, r, _ := inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A PREROUTING -p tcp --dport 8080 -j DNAT --to 192.0.2.2:80,192.0.2.3:80", "-A POSTROUTING -o out -j MASQUERADE")
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
	if want := "backend 2 of 2; source translated; reply of a known connection: translation undone"; words(first) != want || len(first.Made) != 1 || first.Rec.Seen().Dst != "192.0.2.3:80" {
		t.Errorf("the first packet: %s; want %s; seen %+v", words(first), want, first.Rec.Seen())
	}
	second := send(k, 0)
	if want := "connection known: translated as before; reply of a known connection: translation undone"; words(second) != want || len(second.Made) != 0 || second.Rec.Seen().Dst != "192.0.2.3:80" {
		t.Errorf("the second packet: %s; want %s; seen %+v", words(second), want, second.Rec.Seen())
	}
	// Connections through the translation have ports of their own.
	ports := map[string]bool{}
	for range 3 {
		sim := send(client.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.96.0.50:8080")), 0)
		for _, s := range sim.Rec.Steps() {
			if s.Text() == "source translated" {
				ports[s.Changes[1].After] = true
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

// A reply leaves with the translation undone and is not masqueraded again; a
// host's own packets go through OUTPUT.
func TestOutputChain(t *testing.T) {
	n, _, r, _ := inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A OUTPUT -p tcp -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80", "-A OUTPUT -d 10.96.0.51/32 -j DROP", "-A PREROUTING -d 192.0.2.1/32 -j DROP")
	})
	r.route(t, "10.96.0.0/16", "192.0.2.2")
	out, rec := n.send(r, packet.TCP, "10.96.0.50:8080", 64)
	if out.Verdict != trace.Delivered || rec.Seen().Dst != "192.0.2.2:80" {
		t.Errorf("its own packet to a Service: %+v, %s", out, reasonOf(rec))
	}
	if out, rec := n.send(r, packet.TCP, "10.96.0.51:8080", 64); out.Done || reasonOf(rec) != trace.NoBackend || len(n.frames) != 0 {
		t.Errorf("dropped: %+v, %s, %v", out, reasonOf(rec), n.frames)
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

// A link without an address of the packet's family translates nothing.
func TestMasqueradeNeedsAnAddress(t *testing.T) {
	s := stackOf(t, []string{"out fd00::1/64"}, nil)
	s.NAT = iptables(t, s, "-A POSTROUTING -j MASQUERADE")
	p := packetOf(t, s.Links[0], "tcp 10.0.1.2:1000 > 10.0.1.3:80 S")
	s.NAT.destination(s, &wire.Simulation{}, p, Prerouting)
	s.NAT.source(s, &wire.Simulation{}, p, s.Links[0])
	if got := p.Tuple().String(); got != "TCP 10.0.1.2:1000 > 10.0.1.3:80" {
		t.Errorf("translated to %s", got)
	}
}

// All that a machine records of one masqueraded connection to a Service, with
// rules and facts.
func TestStepsNameRulesAndFacts(t *testing.T) {
	n, client, _, _ := inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A PREROUTING -p tcp -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80", "-A POSTROUTING -o out -j MASQUERADE")
	})
	_, rec := n.send(client, packet.TCP, "10.96.0.50:80", 64)
	var got []string
	for _, s := range rec.Steps() {
		if s.Place == "fabric" {
			continue
		}
		words := []string{string(s.Leg), s.Place, string(s.Action) + ":", s.Text()}
		if s.Rule != "" {
			words = append(words, "["+s.RuleType+" "+s.Rule+"]")
		}
		got = append(got, strings.Join(append(words, s.Evidence), " "))
	}
	want := []string{
		"request client send: TCP 10.0.1.2:40000 > 10.96.0.50:80 SYN ",
		"request client forward: sent by 0.0.0.0/0 via 10.0.1.1, out of in host.longest-prefix",
		"request r rewrite: backend 1 of 1 [iptables -A PREROUTING -p tcp -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80] host.netfilter-nat",
		"request r rewrite: source translated [iptables -A POSTROUTING -o out -j MASQUERADE] host.netfilter-nat",
		"request r forward: forwarded by 192.0.2.0/24 on link out, out of out host.longest-prefix",
		"request server deliver: a program on TCP port 80, from 192.0.2.1 host.program",
		"reply server answer: TCP 192.0.2.2:80 > 192.0.2.1:50000 SYN,ACK host.program",
		"reply server forward: sent by 192.0.2.0/24 on link out, out of out host.longest-prefix",
		"reply r rewrite: reply of a known connection: translation undone [iptables -A PREROUTING -p tcp -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80] host.netfilter-nat",
		"reply r forward: forwarded by 10.0.1.0/24 on link in, out of in host.longest-prefix",
		"reply client deliver: the reply is here: TCP 10.96.0.50:80 > 10.0.1.2:40000 SYN,ACK host.socket-match",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("steps\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

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
	if out, rec := n.send(client, packet.TCP, "10.0.1.3:80", 64); out.Verdict != trace.Delivered || rec.Seen().Src != "10.0.1.2" || len(n.frames) != 3 {
		t.Errorf("on the inside: %+v, seen %+v", out, rec.Seen())
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
					ids = append(ids, ch.Before+" to "+ch.After)
				}
			}
		}
		own := strconv.Itoa(want - 0x4000)
		if w := own + " to " + strconv.Itoa(want) + "," + strconv.Itoa(want) + " to " + own; out.Verdict != trace.Delivered || strings.Join(ids, ",") != w {
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
			if out, rec := n.send(server, packet.TCP, c.to, 64); out.Verdict != c.want || c.want == trace.Delivered && rec.Seen().Dst != web.String() {
				t.Errorf("%+v, seen %+v", out, rec.Seen())
			}
			if len(router.NAT.Rules) != 2 || router.NAT.Rules[0].Chain != Postrouting {
				t.Errorf("rules %+v", router.NAT.Rules)
			}
		})
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
// the same one.
func TestTargetsByChance(t *testing.T) {
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
// again; of two rules that match it, the first takes one.
func TestMasqueradePorts(t *testing.T) {
	s, sent := translator(t, "-A POSTROUTING -o out -j MASQUERADE", "-A POSTROUTING -j MASQUERADE")
	port := 0
	for _, next := range []struct {
		nextPort uint16
		want     []uint16
	}{{0, []uint16{50000, 50001}}, {65534 - 50000, []uint16{65534, 65535, 50000, 50001}}} {
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
	if rules := WinNATLoopback(mapping, factTestGate); rules[1].Name != mapping.Name || rules[1].Origin != origin || !slices.Equal(rules[1].Protos, []packet.Proto{packet.TCP}) {
		t.Errorf("the second rule is %+v", rules[1])
	}
}

// The step of a dropped packet names the rule and who wrote it; nothing else happens.
func TestADropSaysWhoseRuleItIs(t *testing.T) {
	s, sent := translator(t, "-A PREROUTING -d 10.96.0.51/32 -j DROP")
	s.NAT.Rules[0].Origin = &trace.Origin{What: "Service web"}
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1.2:1000 > 10.96.0.51:80 S"))
	st := sim.Rec.Steps()
	if len(st) != 1 || st[0].Action != trace.ActDrop || st[0].Reason != trace.NoBackend || st[0].Rule != s.NAT.Rules[0].Name || st[0].From != s.NAT.Rules[0].Origin || st[0].RuleType != "iptables" {
		t.Errorf("steps %+v", st)
	}
	if len(sent) != 0 || len(s.NAT.table) != 0 {
		t.Errorf("sent %v, %d entries", sent, len(s.NAT.table))
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
	for i, want := range []string{"UDP 10.0.1.2:1000 > 192.0.2.2:53", "UDP 10.0.1.2:1000 > 192.0.2.2:53", "UDP 192.0.2.1:50000 > 192.0.2.3:53", "UDP 192.0.2.1:50000 > 192.0.2.3:53"} {
		if got := sent["out"][i].Tuple().String(); got != want {
			t.Errorf("packet %d leaves as %s, want %s", i+1, got, want)
		}
	}
}
