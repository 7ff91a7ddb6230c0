package fabric

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Packets go through the firewall one after the other. It lets 10.0.0.0/24 open
// connections to port 80 and denies all else.
func TestFirewall(t *testing.T) {
	rules := []Rule{
		{Name: "web", Allow: true, From: prefix("10.0.0.0/24"), Proto: packet.TCP, PortLo: 80, PortHi: 80},
		{Name: "udp", Allow: true, Proto: packet.UDP},
		{Name: "rest"},
	}
	firewall := NewFirewall("fabric", "router gw", rules)
	const syn, ack, rst = packet.SYN, packet.ACK, packet.RST
	for _, c := range []struct {
		name   string
		proto  packet.Proto
		from   string
		to     string
		flags  uint8
		reason trace.Reason // "" passes
		forget bool
	}{
		{name: "a reply whose request took another way", proto: packet.TCP, from: "10.0.1.9:80", to: "10.0.0.5:1000", flags: syn | ack,
			reason: trace.NoFlow},
		{name: "a segment in mid-connection", proto: packet.TCP, from: "10.0.0.5:1000", to: "10.0.1.9:80", flags: ack, reason: trace.NoFlow},
		{name: "a reset of nothing", proto: packet.TCP, from: "10.0.0.5:1000", to: "10.0.1.9:80", flags: rst, reason: trace.NoFlow},
		{name: "a connection that a rule allows", proto: packet.TCP, from: "10.0.0.5:1000", to: "10.0.1.9:80", flags: syn},
		{name: "its reply", proto: packet.TCP, from: "10.0.1.9:80", to: "10.0.0.5:1000", flags: syn | ack},
		{name: "its data", proto: packet.TCP, from: "10.0.0.5:1000", to: "10.0.1.9:80", flags: ack},
		{name: "another port", proto: packet.TCP, from: "10.0.0.5:1000", to: "10.0.1.9:81", flags: syn, reason: trace.FabricPolicy},
		{name: "from elsewhere", proto: packet.TCP, from: "10.0.2.5:1000", to: "10.0.1.9:80", flags: syn, reason: trace.FabricPolicy},
		{name: "a datagram", proto: packet.UDP, from: "10.0.0.5:1000", to: "10.0.1.9:53"},
		{name: "its answer", proto: packet.UDP, from: "10.0.1.9:53", to: "10.0.0.5:1000"},
		{name: "after it has forgotten", forget: true, proto: packet.TCP, from: "10.0.1.9:80", to: "10.0.0.5:1000", flags: ack,
			reason: trace.NoFlow},
	} {
		if c.forget {
			firewall.Forget()
		}
		src, dst := netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to)
		p := packet.Build(packet.Spec{Proto: c.proto, Src: src.Addr(), SrcPort: src.Port(), Dst: dst.Addr(), DstPort: dst.Port(),
			TCPFlags: c.flags})
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		pass := firewall.Pass(sim, p)
		steps := sim.Rec.Steps()
		if pass != (c.reason == "") || sim.Lost.Reason != c.reason || pass != (len(steps) == 0) {
			t.Errorf("%s: pass %v, lost %+v, want %q", c.name, pass, sim.Lost, c.reason)
		}
		if !pass && (steps[0].Reason != c.reason || steps[0].Action != trace.ActDrop || steps[0].Evidence == "" ||
			sim.Lost.Object != "router gw") {
			t.Errorf("%s: step %+v", c.name, steps[0])
		}
	}
}
