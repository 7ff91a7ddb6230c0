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

// An address of IPv4 is taken into a hash as the same address in sixteen bytes.
func TestHashOfIPv4(t *testing.T) {
	for n := range uint32(1000) {
		n *= 0x9e3779b1
		a := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		six := netip.AddrFrom16(a.As16())
		if got, want := (packet.Tuple{Src: a, Dst: a}).Hash(), (packet.Tuple{Src: six, Dst: six}).Hash(); got != want {
			t.Fatalf("%v: %x, want %x", a, got, want)
		}
	}
}
