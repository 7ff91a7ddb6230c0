package packet

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A quote with other ends is the quote of the packet with other ends, however much of it
// is quoted: of packets that gopacket has made, options and all.
func TestSetQuoted(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	n := 0
	for range 3000 {
		p, err := New(genFrame(t, r))
		if err != nil {
			t.Fatal(err)
		}
		h := p.Headers()
		if !h.hasPorts() && !h.hasICMPID() || p.Len() > 1400 {
			continue
		}
		n++
		report := Spec{Src: h.Dst, Dst: h.Src, Proto: ICMP, ICMPType: 3, ICMPCode: 1}
		if h.IPVersion == 6 {
			report.Proto, report.ICMPType = ICMPv6, 1
		}
		length := h.L4 - h.L3 + 8 + r.IntN(h.End-h.L4-7)
		report.Payload = bytes.Clone(p.Bytes()[h.L3:][:length])
		got := Build(report)
		other := randomRewrite(r, h.IPVersion)
		other.Set = RwSrc | RwDst | RwSrcPort | RwDstPort | RwICMPID
		p.Apply(&other)
		got.SetQuoted(p.Tuple())
		want := bytes.Clone(p.Bytes()[h.L3:][:length])
		if h.Proto == TCP && length < h.L4-h.L3+tcpHeaderLen {
			// Of a header that is not whole the checksum stays, and may be half there.
			for i := h.L4 - h.L3 + 16; i < length; i++ {
				want[i] = report.Payload[i]
			}
		}
		if !bytes.Equal(got.Payload(), want) {
			t.Fatalf("%s\n got %x\nwant %x", p, got.Payload(), want)
		}
		if err := got.VerifyChecksums(); err != nil {
			t.Fatal(err)
		}
	}
	if n < 1000 {
		t.Errorf("%d packets", n)
	}
}
