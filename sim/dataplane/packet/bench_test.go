package packet

import (
	"net/netip"
	"testing"
)

var sinkTuple Tuple

// frame64 is a TCP SYN padded to the 64 bytes of a minimum Ethernet frame.
func frame64() []byte {
	p := Build(Spec{
		EthSrc: MAC{0, 0x15, 0x5d, 0x4a, 1, 4}, EthDst: MAC{0, 0x15, 0x5d, 0, 1, 0xb},
		Src: netip.MustParseAddr("10.244.1.4"), Dst: netip.MustParseAddr("10.96.0.50"),
		Proto: TCP, SrcPort: 40000, DstPort: 80, TTL: 128, TCPFlags: SYN,
	})
	return append(p.Bytes(), make([]byte, 64-p.Len())...)
}

func natRewrite() *Rewrite {
	return &Rewrite{
		Set:    RwEthSrc | RwEthDst | RwSrc | RwDst | RwSrcPort | RwDstPort,
		EthSrc: MAC{0, 0x15, 0x5d, 0, 1, 1}, EthDst: MAC{0, 0x15, 0x5d, 0, 1, 2},
		Src: netip.MustParseAddr("10.0.0.4"), Dst: netip.MustParseAddr("10.244.2.7"),
		SrcPort: 50001, DstPort: 8080,
	}
}

func BenchmarkLoad(b *testing.B) {
	f := frame64()
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Load(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadTuple(b *testing.B) {
	f := frame64()
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(f)
		sinkTuple = p.Tuple()
	}
}

func BenchmarkLoadApply(b *testing.B) {
	f, r := frame64(), natRewrite()
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(f)
		p.Apply(r)
	}
}

func BenchmarkApply(b *testing.B) {
	r := natRewrite()
	var p Packet
	_ = p.Load(frame64())
	b.ReportAllocs()
	for b.Loop() {
		p.Apply(r)
	}
}

func BenchmarkEncap(b *testing.B) {
	f := frame64()
	o := testOuter(VXLAN)
	o.SrcPort = 50000
	var p Packet
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(f)
		if err := p.Encap(o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVXLANSrcPort(b *testing.B) {
	var p Packet
	_ = p.Load(frame64())
	t := p.Tuple()
	for b.Loop() {
		t.ICMPID = VXLANSrcPort(t)
	}
}

func testOuter(k Tunnel) Outer {
	return Outer{
		EthSrc: MAC{0, 0x15, 0x5d, 1, 1, 1}, EthDst: MAC{0, 0x15, 0x5d, 2, 2, 2},
		Src: netip.MustParseAddr("10.0.0.4"), Dst: netip.MustParseAddr("10.0.0.5"),
		SrcPort: 51234, DstPort: k.Port(), VNI: 4096, TTL: 128, Kind: k,
	}
}
