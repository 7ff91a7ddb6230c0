package packet

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// What String writes of an IP packet is read back.
func TestReadLine(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	read := 0
	for range 3000 {
		p, err := New(genFrame(t, r))
		if err != nil {
			t.Fatal(err)
		}
		l, ok := ReadLine(p.String())
		if _, known := protoOf(p.h.Proto.String()); !ok {
			if known && p.h.IPVersion != 0 {
				t.Fatalf("%s is not read", p)
			}
			continue
		}
		read++
		src, dst := netip.AddrPortFrom(p.h.Src, 0), netip.AddrPortFrom(p.h.Dst, 0)
		if p.h.hasPorts() {
			src, dst = netip.AddrPortFrom(p.h.Src, p.h.SrcPort), netip.AddrPortFrom(p.h.Dst, p.h.DstPort)
		}
		if want := (Line{SrcMAC: p.h.EthSrc, DstMAC: p.h.EthDst, Src: src, Dst: dst, Proto: p.h.Proto, VNI: l.VNI, Inner: l.Inner}); l != want {
			t.Fatalf("%s reads as %+v, want %+v", p, l, want)
		}
	}
	if read < 1000 {
		t.Errorf("%d packets were read", read)
	}
	p := Build(Spec{Src: netip.MustParseAddr("10.244.1.4"), Dst: netip.MustParseAddr("10.244.2.3"), Proto: TCP, SrcPort: 40000, DstPort: 80,
		TCPFlags: SYN})
	inner, _ := ReadLine(p.String())
	if err := p.Encap(Outer{Src: netip.MustParseAddr("192.168.1.11"), Dst: netip.MustParseAddr("192.168.1.12"), VNI: 4096,
		DstPort: VXLANPort}); err != nil {
		t.Fatal(err)
	}
	l, ok := ReadLine(p.String())
	if !ok || l.Inner == nil || *l.Inner != inner || l.VNI != 4096 || l.Dst.Port() != VXLANPort {
		t.Errorf("%s reads as %+v", p, l)
	}
	for _, s := range []string{"", "short frame of 3 bytes", "a > b  c > d TCP",
		"00-00-00-00-00-00 > 00-00-00-00-00-00  ARP who-has 10.0.0.1 tell 10.0.0.2"} {
		if _, ok := ReadLine(s); ok {
			t.Errorf("%q is read", s)
		}
	}
}
