package host

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// A stack that opened a socket, took a connection or let a program outside send has
// something to forget, also where nobody asked to be told of its use.
func TestResetForgetsUse(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.1")
	peer := netip.MustParseAddr("10.0.0.2")
	syn := packet.Spec{Src: peer, Dst: addr, Proto: packet.TCP, SrcPort: 1, DstPort: 80, TCPFlags: packet.SYN}
	for name, use := range map[string]func(s *Stack){
		"opens": func(s *Stack) { s.Open(packet.TCP, addr, 0, netip.MustParseAddrPort("10.0.0.2:80")) },
		"takes": func(s *Stack) { s.Input(&wire.Simulation{}, s.Links[0], packet.Build(syn)) },
		"lets out": func(s *Stack) {
			s.AddGate(Gate{Open: true})
			out := syn
			out.Src, out.Dst = addr, peer
			s.Emit(&wire.Simulation{}, packet.Build(out))
		},
	} {
		s := &Stack{Place: "m", Object: "stack"}
		s.AddLink(&Link{Name: "eth0", Addrs: []netip.Prefix{netip.PrefixFrom(addr, 24)},
			Send: func(*wire.Simulation, *packet.Packet) {}, Resolve: func(netip.Addr) (packet.MAC, bool) { return packet.MAC{}, true }})
		s.Listen(&Listener{Proto: packet.TCP, Port: 80})
		for range 2 {
			if use(s); len(s.sockets)+len(s.talked) == 0 {
				t.Fatalf("%s: the stack was not used", name)
			}
			if s.Reset(); len(s.sockets)+len(s.talked) != 0 || s.nextPort != 0 || s.opened != 0 {
				t.Errorf("%s: after Reset there are %d sockets, %d have talked, the next port is %d", name, len(s.sockets), len(s.talked), s.nextPort)
			}
		}
	}
}
