package fabric

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// TestWhatEndsAPath records a packet's way through a firewall and through a virtual network,
// which then forget what they have let through: the way must hold no more.
func TestWhatEndsAPath(t *testing.T) {
	spec := packet.Spec{EthSrc: packet.MAC{2, 0, 0, 0, 0, 1}, EthDst: hostMAC, Src: netip.MustParseAddr("10.0.0.1"),
		Dst:   netip.MustParseAddr("10.0.0.2"),
		Proto: packet.UDP, SrcPort: 40000, DstPort: 53}
	firewall := NewFirewall("fabric", "router gw", []Rule{{Name: "rest", Allow: true}})
	s := &wire.Segment{Name: "vnet"}
	from := &wire.NIC{Name: "nic", MAC: spec.EthSrc, Owner: &vm{addrs: []string{"10.0.0.1"}}}
	s.Attach(from)
	s.Attach(&wire.NIC{Name: "nic", MAC: packet.MAC{2, 0, 0, 0, 0, 2}, Owner: &vm{addrs: []string{"10.0.0.2"}}})
	Azure{Subnets: []netip.Prefix{prefix("10.0.0.0/24")}}.Attach(s)
	for name, c := range map[string]struct {
		send   func(sim *wire.Simulation, p *packet.Packet)
		forget func()
	}{
		"firewall":        {func(sim *wire.Simulation, p *packet.Packet) { firewall.Pass(sim, p) }, firewall.Forget},
		"virtual network": {func(sim *wire.Simulation, p *packet.Packet) { s.Send(sim, from, p) }, s.Forget},
	} {
		t.Run(name, func(t *testing.T) {
			r := &path.Record{Ways: path.NewWays()}
			sim := &wire.Simulation{Path: r}
			c.send(sim, packet.Build(spec))
			if err := sim.Run(); err != nil || sim.Lost != (wire.Loss{}) || !r.Keepable() {
				t.Fatal(err, sim.Lost, r.Keepable())
			}
			f, by := r.Flow(), &path.Passing{Proto: packet.UDP, Packets: 1, Bytes: 60}
			if !f.Holds(0) || !f.Take(by) || !f.Take(by) {
				t.Fatal("the path does not hold before anything is forgotten")
			}
			c.forget()
			if f.Holds(0) || f.Take(by) {
				t.Error("the path holds, though the connections are forgotten")
			}
		})
	}
}

// A packet that the rules deny keeps no path: the next one with its headers may be the answer
// of a connection that they let through meanwhile.
func TestDeniedKeepsNoPath(t *testing.T) {
	r := &path.Record{}
	firewall := NewFirewall("fabric", "router gw", []Rule{{Name: "rest"}})
	p := packet.Build(packet.Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP,
		SrcPort: 40000, DstPort: 53})
	if firewall.Pass(&wire.Simulation{Path: r}, p) || r.Keepable() {
		t.Error("the path of a packet that the firewall dropped is kept")
	}
	r = &path.Record{}
	n := &virtualNetwork{Azure: Azure{Rules: []Rule{{Name: "deny"}}}}
	if n.denied(&wire.Simulation{Path: r}, p.Headers()) == nil || r.Keepable() {
		t.Error("the path of a packet that a security rule denied is kept")
	}
}
