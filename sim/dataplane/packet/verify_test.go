package packet

import (
	"net/netip"
	"testing"
)

// What is spoilt is wrong, and what was right is not.
func TestSpoilChecksum(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for _, c := range []struct {
		proto Proto
		wrong bool
	}{{TCP, true}, {UDP, true}, {ICMP, false}} {
		p := Build(Spec{Proto: c.proto, Src: src, Dst: dst, SrcPort: 1, DstPort: 2, ICMPType: 8, Payload: []byte("x")})
		if p.TransportChecksumWrong() {
			t.Errorf("%s: wrong before it was spoilt", c.proto)
		}
		p.SpoilChecksum()
		if p.TransportChecksumWrong() != c.wrong || (p.VerifyChecksums() != nil) != c.wrong {
			t.Errorf("%s: wrong %v, want %v", c.proto, p.TransportChecksumWrong(), c.wrong)
		}
	}
}
