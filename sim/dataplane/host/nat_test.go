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
		{name: "ping to a Service", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80"}, proto: packet.ICMP,
			to: "10.96.0.50:0", seen: "10.0.1.2"},
		{name: "two Services for one address: the first counts", rules: []string{service,
			strings.Replace(service, "192.0.2.2:80", "192.0.2.2:81", 1)}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a mark after the Service's rule comes too late", rules: []string{service, "-A PREROUTING -j MARK",
			"-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "marked twice", rules: []string{"-A PREROUTING -j MARK", "-A PREROUTING -d 10.96.0.0/16 -j MARK", service,
			"-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "192.0.2.1"},
		{name: "out of another link", rules: []string{"-A POSTROUTING -o in -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "but not out of this link", rules: []string{"-A POSTROUTING ! -o out -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "but not out of another link", rules: []string{"-A POSTROUTING ! -o in -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "192.0.2.1"},
		{name: "its source", rules: []string{"-A POSTROUTING -s 10.0.1.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "192.0.2.1"},
		{name: "another source", rules: []string{"-A POSTROUTING -s 10.0.9.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "not its source", rules: []string{"-A POSTROUTING ! -s 10.0.1.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "another destination", rules: []string{"-A POSTROUTING -d 10.0.9.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "not its destination", rules: []string{"-A POSTROUTING ! -d 192.0.2.0/24 -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "another protocol", rules: []string{"-A POSTROUTING -p udp -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},
		{name: "one of two protocols", rules: []string{"-A POSTROUTING -p udp -p tcp -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "192.0.2.1"},
		{name: "the first rule that matches", rules: []string{"-A POSTROUTING -p udp -j MASQUERADE", "-A POSTROUTING -p tcp -j MASQUERADE"},
			proto: packet.TCP, to: "192.0.2.2:80", seen: "192.0.2.1"},
		{name: "a rule of another chain", rules: []string{"-A PREROUTING -j MASQUERADE"}, proto: packet.TCP, to: "192.0.2.2:80",
			seen: "10.0.1.2"},

		{name: "a Service", rules: []string{service}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a Service, marked", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j MARK", service, "-A POSTROUTING -m mark -j MASQUERADE"},
			proto: packet.TCP, to: "10.96.0.50:8080", seen: "192.0.2.1"},
		{name: "a Service, not marked", rules: []string{"-A PREROUTING -d 10.96.0.51/32 -j MARK", service,
			"-A POSTROUTING -m mark -j MASQUERADE"}, proto: packet.TCP, to: "10.96.0.50:8080", seen: "10.0.1.2"},
		{name: "a Service whose port is the backend's", rules: []string{"-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80"},
			proto: packet.TCP, to: "10.96.0.50:80", seen: "10.0.1.2"},
		{name: "a Service on the backend's address", rules: []string{"-A PREROUTING -d 192.0.2.2/32 --dport 8080 -j DNAT --to 192.0.2.2:80"},
			proto: packet.TCP, to: "192.0.2.2:8080", seen: "10.0.1.2"},
		{name: "another port of a Service", rules: []string{service}, proto: packet.TCP, to: "10.96.0.50:8081", reason: trace.NoRoute},
		{name: "a Service is not in OUTPUT", rules: []string{strings.Replace(service, "PREROUTING", "OUTPUT", 1)}, proto: packet.TCP,
			to: "10.96.0.50:8080", reason: trace.NoRoute},
		{name: "a Service without endpoints", rules: []string{"-A PREROUTING -d 10.96.0.51/32 -j DROP"}, proto: packet.TCP, to: "10.96.0.51:80",
			reason: trace.NoBackend},
		{name: "a NodePort", rules: []string{"-A PREROUTING -p tcp --dst-type LOCAL --dport 30080 -j DNAT --to 192.0.2.2:80"}, proto: packet.TCP,
			to: "10.0.1.1:30080", seen: "10.0.1.2"},
		{name: "the NodePort's port elsewhere", rules: []string{"-A PREROUTING -p tcp --dst-type LOCAL --dport 30080 -j DNAT --to 192.0.2.2:80"},
			proto: packet.TCP, to: "192.0.2.2:30080", reason: trace.PortClosed},
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
			if direct := strings.HasPrefix(c.to, "192.0.2.2:") && !strings.Contains(c.to, "8080"); (rewrites == 0) != (direct &&
				c.seen == "10.0.1.2") {
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

// A reply leaves with the translation undone and is not masqueraded again; a
// host's own packets go through OUTPUT.
func TestOutputChain(t *testing.T) {
	n, _, r, _ := inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A OUTPUT -p tcp -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80", "-A OUTPUT -d 10.96.0.51/32 -j DROP",
			"-A PREROUTING -d 192.0.2.1/32 -j DROP")
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

// The step of a dropped packet names the rule and who wrote it; nothing else happens.
func TestADropSaysWhoseRuleItIs(t *testing.T) {
	s, sent := translator(t, "-A PREROUTING -d 10.96.0.51/32 -j DROP")
	s.NAT.Rules[0].Origin = &trace.Origin{What: "Service web"}
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1.2:1000 > 10.96.0.51:80 S"))
	st := sim.Rec.Steps()
	if len(st) != 1 || st[0].Action != trace.ActDrop || st[0].Reason != trace.NoBackend || st[0].Rule != s.NAT.Rules[0].Name ||
		st[0].From != s.NAT.Rules[0].Origin || st[0].RuleType != "iptables" {
		t.Errorf("steps %+v", st)
	}
	if len(sent) != 0 || len(s.NAT.table) != 0 {
		t.Errorf("sent %v, %d entries", sent, len(s.NAT.table))
	}
}
