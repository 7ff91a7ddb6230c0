package packet

import (
	"net/netip"
	"testing"
)

func sized(n int, proto Proto) *Packet {
	return Build(Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: proto, Payload: make([]byte, n)})
}

// The size of a packet is that of the largest one that it stands for, in a tunnel and
// after it.
func TestSize(t *testing.T) {
	outer := Outer{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), VNI: 1, MayFragment: true}
	p := sized(4000, TCP)
	if p.Size() != 4040 || !p.DontFragment() {
		t.Errorf("whole: %d", p.Size())
	}
	if p.Segment(1450); p.Size() != 1450 || p.Fragmented() {
		t.Errorf("segments: %d", p.Size())
	}
	if err := p.Encap(outer); err != nil || p.Size() != 1500 || p.DontFragment() {
		t.Errorf("segments in a tunnel: %d %v", p.Size(), err)
	}
	if p.Fragment(1400); p.Size() != 1400 || !p.Fragmented() || !p.Clone().Fragmented() {
		t.Errorf("fragments of tunnel packets: %d", p.Size())
	}
	if !p.Reassemble() || p.Fragmented() || p.Reassemble() {
		t.Error("not put together")
	}
	p = sized(4000, UDP)
	p.Fragment(1450)
	if err := p.Encap(outer); err != nil || p.Size() != 1500 || p.Fragmented() {
		t.Errorf("fragments in a tunnel: %d, %v", p.Size(), p.Fragmented())
	}
	if _, err := p.Decap(VXLAN); err != nil || p.Size() != 1450 || !p.Fragmented() {
		t.Errorf("and behind it: %d, %v", p.Size(), p.Fragmented())
	}
	if err := p.Load(sized(10, UDP).Bytes()); err != nil || p.Fragmented() || p.Size() != 38 {
		t.Errorf("the next packet: %d %v", p.Size(), err)
	}
}
