package labfile

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// TestPodRanges holds the ranges that overlap against comparing each with each.
func TestPodRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var have podRanges
		of := map[string]netip.Prefix{}
		for range 30 {
			a := netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(8) << 5), byte(r.IntN(2))})
			if r.IntN(5) == 0 {
				a = netip.AddrFrom16([16]byte{0xfd, byte(r.IntN(2))})
			}
			p := netip.PrefixFrom(a, min(6+r.IntN(20), a.BitLen()))
			var want []string
			for node, other := range of {
				if other.Overlaps(p) {
					want = append(want, node)
				}
			}
			slices.Sort(want)
			if got := have.overlapping(p); !slices.Equal(got, want) {
				t.Fatalf("%s among %v: %v, want %v", p, of, got, want)
			}
			if r.IntN(2) == 0 || want == nil {
				name := string(rune('a' + r.IntN(26)))
				have.add(name, p)
				of[name] = p
			}
		}
	}
}
