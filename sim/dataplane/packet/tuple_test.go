package packet_test

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// A client that takes every second port, as Linux does, reaches both of two backends.
func TestHashSpreads(t *testing.T) {
	base := packet.Tuple{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), DstPort: 80, Proto: packet.TCP}
	for _, backends := range []uint32{2, 3, 4, 7} {
		for _, step := range []int{1, 2, 4, 256} {
			reached := map[uint32]int{}
			for i := range 200 {
				base.SrcPort = uint16(32768 + i*step%28000)
				reached[base.Hash()%backends]++
			}
			for b := range backends {
				if reached[b] < 200/int(backends)/3 {
					t.Errorf("ports %d apart: backend %d of %d gets %d of 200", step, b, backends, reached[b])
				}
			}
		}
	}
}
