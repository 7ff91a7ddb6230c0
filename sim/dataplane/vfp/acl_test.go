package vfp

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Each case is a policy and packets that meet it one after the other.
func TestACL(t *testing.T) {
	const blocked, noFlow = trace.ACLBlock, trace.NoFlow
	for _, tc := range []struct {
		name, policy string
		steps        []step
	}{
		{"no rules in the direction", "block in 65500 any", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:80 syn", ""},
			{0, In, "tcp 10.244.2.4:1000 > 10.244.1.4:80 syn", blocked},
		}},
		{"default deny with one host let in", "block in 65500 any; allow in 900 from 192.168.1.11", []step{
			{0, In, "tcp 192.168.1.11:1000 > 10.244.1.4:80 syn", ""},
			{0, In, "tcp 192.168.1.12:1000 > 10.244.1.4:80 syn", blocked},
			{0, In, "udp 192.168.1.12:1000 > 10.244.1.4:80", blocked},
			{0, In, "ping 192.168.1.12 > 10.244.1.4", blocked},
			{0, In, "ping 192.168.1.11 > 10.244.1.4", ""},
			{0, In, "tcp [fd00::2]:1000 > [fd00::1]:80 syn", blocked},
		}},
		{"lower number first, whatever the order", "allow in 1000 any; block in 200 from 10.244.2.0/24; allow in 100 from 10.244.2.4", []step{
			{0, In, "tcp 10.244.2.4:1000 > 10.244.1.4:80 syn", ""},
			{0, In, "tcp 10.244.2.5:1000 > 10.244.1.4:80 syn", blocked},
			{0, In, "tcp 10.244.3.5:1000 > 10.244.1.4:80 syn", ""},
		}},
		{"ports and protocols", "allow in 100 tcp port 80 port 8000-8080; allow in 100 udp port 53; block in 200 any", []step{
			{0, In, "tcp 10.0.0.1:1000 > 10.244.1.4:80 syn", ""},
			{0, In, "tcp 10.0.0.1:1000 > 10.244.1.4:8080 syn", ""},
			{0, In, "tcp 10.0.0.1:1000 > 10.244.1.4:8081 syn", blocked},
			{0, In, "tcp 10.0.0.1:1000 > 10.244.1.4:53 syn", blocked},
			{0, In, "udp 10.0.0.1:1000 > 10.244.1.4:53", ""},
			{0, In, "udp 10.0.0.1:1000 > 10.244.1.4:80", blocked},
		}},
		{"a port is met only by a packet with ports", "allow in 100 port 0-65535; block in 200 any", []step{
			{0, In, "udp 10.0.0.1:1000 > 10.244.1.4:0", ""},
			{0, In, "gre 10.0.0.1 > 10.244.1.4", blocked},
			{0, In, "ping 10.0.0.1 > 10.244.1.4", blocked},
		}},
		{"an ICMP type is met only by ICMP", "allow in 100 icmptype 0; block in 200 any", []step{
			{0, In, "pong 10.0.0.1 > 10.244.1.4", ""},
			{0, In, "ping 10.0.0.1 > 10.244.1.4", blocked},
			{0, In, "tcp 10.0.0.1:1000 > 10.244.1.4:80 syn", blocked},
		}},
		{"replies of what was allowed pass", "block in 65500 any; allow out 100 any", []step{
			{0, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000 syn-ack", blocked},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{0, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000 syn-ack", ""},
			{0, In, "tcp 10.0.0.1:81 > 10.244.1.4:1000 syn-ack", blocked},
			{0, Out, "ping 10.244.1.4 > 10.0.0.1", ""},
			{0, In, "pong 10.0.0.1 > 10.244.1.4", ""},
			{0, In, "ping 10.0.0.1 > 10.244.1.4", blocked},
		}},
		{"replies need a stateful rule", "block in 65500 any; allow out 100 any stateless", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{0, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000 syn-ack", blocked},
		}},
		{"a connection starts with SYN", "allow out 100 any", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 rst", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", ""},
			{0, Out, "tcp 10.244.1.4:1001 > 10.0.0.1:80", noFlow},
		}},
		{"a stateless rule takes segments of any kind", "allow out 100 any stateless", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
		}},
		{"a flow lives 240 seconds after its last packet", "allow out 100 any; block in 200 any", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{200, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000", ""},
			{439, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", ""},
			{679, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", noFlow},
			{679, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000", blocked},
		}},
		{"a reply that came too early does not stand in the way later", "allow out 100 any", []step{
			// No rule: it passes, and that is remembered for the tuple.
			{0, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{0, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
			{200, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{400, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func() *Port { return port(acl(t, tc.policy)) }, tc.steps)
		})
	}
}

// The explanation of a packet that nothing matched names rules that fail in one
// predicate, and that predicate.
func TestNearest(t *testing.T) {
	for _, tc := range []struct{ policy, packet, want string }{
		{"allow in 1 tcp port 80", "udp 10.0.0.1:1000 > 10.244.1.4:80", "allow in 1 tcp port 80: protocol wants TCP, has UDP"},
		{"allow in 1 tcp port 80", "tcp 10.0.0.1:1000 > 10.244.1.4:81 syn", "allow in 1 tcp port 80: destination port wants 80, has 81"},
		{"allow in 1 tcp port 80", "ping 10.0.0.1 > 10.244.1.4", "allow in 1 tcp port 80: protocol wants TCP, has ICMP"},
		{"allow in 1 from 10.0.0.1 port 80", "ping 10.0.0.1 > 10.244.1.4",
			"allow in 1 from 10.0.0.1 port 80: destination port wants 80, has none"},
		{"allow in 1 udp srcport 5-9", "udp 10.0.0.1:1000 > 10.244.1.4:80", "allow in 1 udp srcport 5-9: source port wants 5-9, has 1000"},
		{"allow in 1 from 10.0.0.2 to 10.244.1.4", "ping 10.0.0.1 > 10.244.1.4",
			"allow in 1 from 10.0.0.2 to 10.244.1.4: source wants 10.0.0.2, has 10.0.0.1"},
		{"allow in 1 icmp to 10.244.2.0/24", "ping 10.0.0.1 > 10.244.1.4",
			"allow in 1 icmp to 10.244.2.0/24: destination wants 10.244.2.0/24, has 10.244.1.4"},
		{"allow in 1 icmp icmptype 0", "ping 10.0.0.1 > 10.244.1.4", "allow in 1 icmp icmptype 0: ICMP type wants 0, has 8"},
		{"allow in 1 icmp icmptype 8", "udp 10.0.0.1:1000 > 10.244.1.4:80", "allow in 1 icmp icmptype 8: protocol wants ICMP, has UDP"},
		{"allow in 1 from 10.0.0.2 port 80", "tcp 10.0.0.1:1000 > 10.244.1.4:81 syn", ""},
		{"allow in 1 from 10.0.0.2 icmptype 0", "ping 10.0.0.1 > 10.244.1.4", ""},
		{"allow in 1 tcp dstmac server", "tcp 10.0.0.1:1000 > 10.244.1.4:81 syn",
			"allow in 1 tcp dstmac server: destination MAC wants 00-15-5d-4a-01-05, has 00-15-5d-00-01-01"},
		{"decap in 1 to 192.168.1.11 vni 4096", "vxlan 192.168.1.12 > 192.168.1.11 vni 7 [ping 10.0.0.1 > 10.0.0.2]",
			"decap in 1 to 192.168.1.11 vni 4096: VNI wants 4096, has 7"},
		{"decap in 1 to 192.168.1.11 vni 4096", "udp 192.168.1.12:1 > 192.168.1.11:53",
			"decap in 1 to 192.168.1.11 vni 4096: tunnel port wants UDP 4789, has UDP 53"},
		{"decap in 1 to 192.168.1.11 vni 4096", "ping 192.168.1.12 > 192.168.1.11",
			"decap in 1 to 192.168.1.11 vni 4096: tunnel port wants UDP 4789, has ICMP none"},
		{"allow in 1 udp port 1 port 2 port 3 port 4 port 5 port 6", "udp 10.0.0.1:1 > 10.244.1.4:80",
			"allow in 1 udp port 1 port 2 port 3 port 4 port 5 port 6: destination port wants 1 or 2 or 3 or 4 or 2 more, has 80"},
		{"allow in 1 icmp icmptype 3 icmptype 4", "ping 10.0.0.1 > 10.244.1.4",
			"allow in 1 icmp icmptype 3 icmptype 4: ICMP type wants 3 or 4, has 8"},
		// One condition that fails is a rule about something else.
		{"allow in 1 to 10.244.2.0/24", "ping 10.0.0.1 > 10.244.1.4", ""},
		{"allow out 1 tcp port 80", "udp 10.0.0.1:1000 > 10.244.1.4:80", ""},
	} {
		t.Run(tc.policy+" / "+tc.packet, func(t *testing.T) {
			rec := &trace.Recorder{}
			l := acl(t, tc.policy)
			l.Block = true
			port(l).Process(parse(t, tc.packet), In, &Env{Rec: rec})
			if got := missText(lastStep(t, rec).Nearest); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A rule that no packet of ICMP can match says so.
func TestNearestOfTranslation(t *testing.T) {
	nat := &Rule{ID: "snat", Flags: Stateful, Action: DynNAT{&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50000}}},
		Cond: Cond{Src: []netip.Prefix{prefix("10.244.1.4")}, Dst: []netip.Prefix{prefix("203.0.113.0/24")}}}
	rec := &trace.Recorder{}
	p := parse(t, "ping 10.244.1.4 > 203.0.113.10")
	port(layer("NAT", 1, []*Rule{nat}, nil)).Process(p, Out, &Env{Rec: rec})
	if s := lastStep(t, rec); s.Action != trace.ActNoMatch || missText(s.Nearest) != "snat: protocol wants TCP or UDP, has ICMP" {
		t.Errorf("%s, nearest %q", s.Action, missText(s.Nearest))
	}
	if short(p) != "ping 10.244.1.4 > 203.0.113.10" {
		t.Errorf("ICMP was translated: %s", short(p))
	}
}

// A group that HNS fills for IPv4 first and for both families later judges both.
func TestGroupServesEveryFamilyItWasAskedFor(t *testing.T) {
	l := &Layer{Name: "ACL", Stateful: true}
	first := l.Group("g", In, 4)
	first.Rules = append(first.Rules, &Rule{ID: "allow", Priority: 1, Action: Allow{}, Cond: Cond{Src: []netip.Prefix{prefix("10.0.0.1")}}})
	second := l.Group("g", In, 0)
	second.Rules = append(second.Rules, &Rule{ID: "block", Priority: 2, Action: Block{}})
	if first != second {
		t.Fatal("two groups: the order of their rules is lost")
	}
	play(t, func() *Port { return port(l) }, []step{
		{0, In, "udp 10.0.0.1:1 > 10.244.1.4:2", ""},
		{0, In, "udp 10.0.0.2:1 > 10.244.1.4:2", trace.ACLBlock},
		{0, In, "udp [fd00::2]:1 > [fd00::1]:2", trace.ACLBlock},
	})
}

// A frame that says it is IP and is not cannot be judged, so it does not pass;
// one that is something else does.
func TestMalformed(t *testing.T) {
	pt := port(acl(t, "block in 1 any"))
	bad, err := packet.New(append(make([]byte, 12), 8, 0, 0x45, 0))
	if err == nil {
		t.Fatal("the frame parses")
	}
	if res := pt.Process(bad, In, &Env{}); res.Reason != trace.BadPacket {
		t.Errorf("malformed: %+v", res)
	}
	arp := packet.BuildARP(1, podMAC, packet.Broadcast, addr("10.244.1.4"), addr("10.244.1.1"))
	if res := pt.Process(arp, In, &Env{}); !res.Pass {
		t.Errorf("ARP: %+v", res)
	}
}
