package inject_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/inject"
)

// dialog is a TCP connection, packet by packet: who sends, which flags, how much payload.
var dialog = []struct {
	back    bool
	flags   uint8
	payload int
}{
	{false, packet.SYN, 0}, {true, packet.SYN | packet.ACK, 0}, {false, packet.ACK, 0},
	{false, packet.ACK | packet.PSH, 80}, {true, packet.ACK, 0}, {true, packet.ACK | packet.PSH, 200}, {false, packet.ACK, 0},
	{true, packet.FIN | packet.ACK, 0}, {false, packet.FIN | packet.ACK, 0}, {true, packet.ACK, 0},
}

// BenchmarkConnection opens connections between programs outside, says something, and
// closes them: what a live network does of each, without its sockets. Watched is as with
// winlab watch, which looks at the first packets.
func BenchmarkConnection(b *testing.B) {
	for _, c := range []struct{ name, design, from, to string }{
		{"within a node", "l2bridge-flannel-host-gw", "pod/default/client", "pod/default/neighbour"},
		{"between nodes", "l2bridge-flannel-host-gw", "pod/default/client", "pod/default/peer"},
		{"overlay within a node", "overlay-flannel-vxlan", "pod/default/client", "pod/default/neighbour"},
		{"overlay between nodes", "overlay-flannel-vxlan", "pod/default/client", "pod/default/peer"},
	} {
		for _, watched := range []bool{false, true} {
			name := c.name
			if watched {
				name += ", watched"
			}
			b.Run(name, func(b *testing.B) {
				p := openPorts(b, c.design)
				from, to := p.entries[c.from], p.entries[c.to]
				b.ReportAllocs()
				for i := range b.N {
					connect(b, p, from, to, uint16(10000+i%50000), watched)
				}
			})
		}
	}
}

// connect plays the dialog; each packet must arrive.
func connect(b *testing.B, p *fuzzed, from, to *inject.Entry, port uint16, watched bool) {
	client := netip.AddrPortFrom(from.Stack().Address(false), port)
	server := netip.AddrPortFrom(to.Stack().Address(false), 80)
	var seen packet.Tuple
	for k, d := range dialog {
		e, spec := from, packet.Spec{Src: client.Addr(), Dst: server.Addr(), SrcPort: client.Port(), DstPort: server.Port()}
		if d.back {
			e, spec = to, packet.Spec{Src: seen.Dst, Dst: seen.Src, SrcPort: seen.DstPort, DstPort: seen.SrcPort}
		}
		spec.Proto, spec.TTL, spec.TCPFlags, spec.Seq = packet.TCP, 64, d.flags, 1
		spec.EthSrc, spec.EthDst = e.Stack().Links[0].MAC, packet.MAC{2, 0, 0, 0, 0, 1}
		spec.Payload = make([]byte, d.payload)
		p.now += 10 * time.Microsecond
		_, arrived, err := p.ports.Put(e, packet.Build(spec).Bytes(), inject.Parts{}, p.now, watched && k < 2)
		if err != nil || len(arrived) != 1 {
			b.Fatalf("packet %d: %d arrived, %v", k, len(arrived), err)
		}
		if !d.back {
			seen = arrived[0].Packet.Tuple()
		}
	}
}
