package vfp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// TestOpenOrder: a layer whose place is unknown stands by its priority or behind another
// one, by the answer, on both ways of a connection; a packet that the other layer has
// nothing for does not ask.
func TestOpenOrder(t *testing.T) {
	question := &evidence.Question{Param: "order", Answers: []evidence.Answer{{Value: "acl"}, {Value: "lb"}}}
	vip, backend, pod := netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.244.1.9"), netip.MustParseAddr("10.244.1.4")
	port := func(blocked netip.Addr) *Port {
		pt := &Port{ID: "a", MAC: podMAC}
		acl := &Layer{Name: "ACL", Priority: 100, Stateful: true, Behind: &Behind{Layer: "LB", Question: question, Answer: "lb"}}
		acl.Group("OUT", Out, 4).Rules = []*Rule{
			{ID: "block", Priority: 1, Cond: Cond{Dst: []netip.Prefix{Host(blocked)}}, Action: Block{}},
			{ID: "allow", Priority: 2, Action: Allow{}, Flags: Stateful},
		}
		acl.Group("IN", In, 4).Rules = []*Rule{{ID: "none", Priority: 1, Action: Block{}}}
		between := &Layer{Name: "BETWEEN", Priority: 150}
		lb := &Layer{Name: "LB", Priority: 200, Stateful: true}
		lb.Group("OUT", Out, 4).Rules = []*Rule{{ID: "lb", Cond: Cond{Dst: []netip.Prefix{Host(vip)}}, Flags: Stateful,
			Action: LBNAT{Targets: []Target{{Addr: backend, Port: 8080}}}}}
		pt.SetLayers([]*Layer{lb, between, acl})
		return pt
	}
	for _, c := range []struct {
		name, answer  string
		blocked, dst  netip.Addr
		pass, isAsked bool
	}{
		{"the Service's address is blocked, ACLs first", "acl", vip, vip, false, true},
		{"the Service's address is blocked, balancer first", "lb", vip, vip, true, true},
		{"the backend is blocked, ACLs first", "acl", backend, vip, true, true},
		{"the backend is blocked, balancer first", "lb", backend, vip, false, true},
		{"straight to the backend", "lb", backend, backend, false, false},
		{"elsewhere", "lb", backend, netip.MustParseAddr("10.244.1.77"), true, false},
	} {
		pt, a := port(c.blocked), &asker{answers: map[string]string{"order": c.answer}}
		send := func(src, dst netip.AddrPort, flags uint8, dir Direction) Result {
			p := packet.Build(packet.Spec{EthSrc: podMAC, EthDst: gwMAC, Src: src.Addr(), Dst: dst.Addr(), SrcPort: src.Port(), DstPort: dst.Port(),
				Proto: packet.TCP, TCPFlags: flags})
			return pt.Process(p, dir, a.env(&trace.Recorder{}))
		}
		from, to := netip.AddrPortFrom(pod, 1000), netip.AddrPortFrom(c.dst, 80)
		if res := send(from, to, packet.SYN, Out); res.Pass != c.pass {
			t.Errorf("%s: pass %v", c.name, res.Pass)
		}
		if got := slices.Contains(a.asked, "order"); got != c.isAsked {
			t.Errorf("%s: asked %v", c.name, got)
		}
		if !c.pass {
			continue
		}
		if c.dst == vip {
			to = netip.AddrPortFrom(backend, 8080)
		}
		if res := send(to, from, packet.SYN|packet.ACK, In); !res.Pass {
			t.Errorf("%s: the reply is dropped: %s", c.name, res.Reason)
		}
	}
}
