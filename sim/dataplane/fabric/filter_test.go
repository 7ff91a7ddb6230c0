package fabric

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A filter looks at each packet by itself: it knows no replies.
func TestFilter(t *testing.T) {
	rules := []Rule{
		{Name: "vxlan-from-one", Allow: true, From: prefix("10.0.0.1/32"), Proto: packet.UDP, PortLo: 4789, PortHi: 4789},
		{Name: "no-vxlan", Proto: packet.UDP, PortLo: 4789, PortHi: 4789},
		{Name: "no-way-back", From: prefix("10.0.0.2/32"), Proto: packet.TCP},
	}
	a, b := &vm{addrs: []string{"10.0.0.1", "10.0.0.3"}}, &vm{addrs: []string{"10.0.0.2"}}
	s := &wire.Segment{Name: "lan"}
	na, nb := &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Owner: a}, &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 2}, Owner: b}
	s.Attach(na)
	s.Attach(nb)
	Filter{Rules: rules}.Attach(s)
	for _, c := range []struct {
		name     string
		src, dst string
		proto    packet.Proto
		port     uint16
		rule     string // the one that denies, "" when it passes
	}{
		{"no rule matches", "10.0.0.1", "10.0.0.2", packet.TCP, 80, ""},
		{"the reply of what passed", "10.0.0.2", "10.0.0.1", packet.TCP, 40000, "no-way-back"},
		{"allowed by the first rule", "10.0.0.1", "10.0.0.2", packet.UDP, 4789, ""},
		{"denied by the second", "10.0.0.3", "10.0.0.2", packet.UDP, 4789, "no-vxlan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to, got := na, nb, &b.got
			if c.src == "10.0.0.2" {
				from, to, got = nb, na, &a.got
			}
			*got = nil
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			s.Send(sim, from, packet.Build(packet.Spec{EthSrc: from.MAC, EthDst: to.MAC, Src: netip.MustParseAddr(c.src),
				Dst: netip.MustParseAddr(c.dst), Proto: c.proto, SrcPort: 80, DstPort: c.port}))
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			if passed := len(*got) == 1; passed != (c.rule == "") {
				t.Errorf("passed: %v", passed)
			}
			if c.rule == "" {
				return
			}
			last := sim.Rec.Steps()[len(sim.Rec.Steps())-1]
			if last.Rule != c.rule || last.Text() != "denied by rule "+c.rule || last.Reason != trace.FabricPolicy || last.Object != "segment lan" {
				t.Errorf("the last step is %+v", last)
			}
			if want := (wire.Loss{Place: "fabric", Object: "segment lan", Reason: trace.FabricPolicy}); sim.Lost != want {
				t.Errorf("the loss is %+v, want %+v", sim.Lost, want)
			}
		})
	}
	// What is not IP passes.
	b.got = nil
	sim := &wire.Simulation{}
	Filter{Rules: []Rule{{Name: "nothing"}}}.Attach(s)
	s.Send(sim, na, packet.BuildARP(1, na.MAC, packet.Broadcast, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")))
	if err := sim.Run(); err != nil || len(b.got) != 1 {
		t.Errorf("%d ARP requests passed (%v)", len(b.got), err)
	}
}

// The words of every event: they are in reports and in goldens of others.
func TestEventsInWords(t *testing.T) {
	pod, node := netip.MustParseAddr("10.244.2.4"), netip.MustParseAddr("10.0.0.2")
	for want, e := range map[string]trace.Detail{
		"denied by security rule deny-web": deniedByRule{"security rule", "deny-web"},
		"10.244.2.4 is not an address of the sending NIC (win1 eth0), and IP forwarding is off":                                             foreignSource{pod, "win1 eth0"},
		"user-defined route 10.244.2.0/24 via 10.0.0.2: but 10.244.2.4 is not an address of that NIC (win2 eth0), and IP forwarding is off": foreignDestination{way{dst: node, route: prefix("10.244.2.0/24")}, pod, "win2 eth0"},
		"no NIC of the virtual network has 10.244.2.4":                                                                                      unassigned{pod},
		"to the NIC that has 10.0.0.2":                  way{dst: node},
		"to the virtual network's gateway":              way{dst: pod, gateway: true},
		"user-defined route 10.244.2.0/24 via 10.0.0.2": way{dst: node, route: prefix("10.244.2.0/24")},
	} {
		if got := e.Text(); got != want {
			t.Errorf("%T: %q, want %q", e, got, want)
		}
	}
}
