package packet_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// FuzzEdits does to one packet what program says and notes it, and does the notes to
// another packet of the flow: it must be what it would be if the same had been done to it.
func FuzzEdits(f *testing.F) {
	for i := range uint64(40) {
		rnd := rand.New(rand.NewPCG(i, 1))
		b := make([]byte, 12)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(byte(i), b, b[:i%8])
	}
	f.Fuzz(func(t *testing.T, kind byte, program, payload []byte) {
		s := packet.Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 1, DstPort: 2, TTL: 64, ICMPType: 8,
			ICMPID: 9}
		s.Proto = []packet.Proto{packet.TCP, packet.UDP, packet.ICMP}[kind%3]
		if kind&8 != 0 && s.Proto != packet.ICMP {
			s.Src, s.Dst = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
		}
		first := packet.Build(s)
		s.Payload, s.Seq, s.IPID, s.ICMPSeq = payload, 77, 5, 6
		other, redone := packet.Build(s), packet.Build(s)
		var e packet.Edits
		first.Note(&e)
		if do(first, program) != nil || !e.Exact() { // no way is kept of a packet that did not fit
			return
		}
		done := do(other, program)
		if err := e.Redo(redone, 0, e.Len()); (err == nil) != (done == nil) {
			t.Fatalf("done: %v, redone: %v", done, err)
		} else if err != nil { // the other packet is longer, and no tunnel takes it
			return
		}
		if !bytes.Equal(other.Bytes(), redone.Bytes()) || *other.Headers() != *redone.Headers() {
			t.Fatalf("done   %x\nredone %x\n%+v\n%+v", other.Bytes(), redone.Bytes(), other.Headers(), redone.Headers())
		}
	})
}

func do(p *packet.Packet, program []byte) (failed error) {
	a4, a6 := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::99")
	for i, b := range program {
		n := uint16(i)<<8 | uint16(b)
		switch b % 14 {
		case 0:
			p.SetEthDst(packet.MAC{2, b})
		case 1:
			p.SetEthSrc(packet.MAC{2, b, 1})
		case 2:
			p.SetSrcPort(n)
		case 3:
			p.SetDstPort(n)
		case 4:
			p.SetICMPID(n)
		case 5:
			p.DecTTL()
		case 6:
			p.Apply(&packet.Rewrite{Set: packet.RewriteMask(n & 0x7f), EthSrc: packet.MAC{b}, SrcPort: n, DstPort: n + 1, ICMPID: n, Src: a4,
				Dst: a4})
		case 7:
			p.Apply(&packet.Rewrite{Set: packet.RwSrc | packet.RwDst, Src: a6, Dst: a6})
		case 8:
			failed = cmp.Or(failed, p.Encap(packet.Outer{Src: a4, Dst: a4.Next(), VNI: uint32(b), Kind: packet.VXLAN, TTL: b}))
		case 9:
			failed = cmp.Or(failed, p.Encap(packet.Outer{Src: a6, Dst: a6.Next(), VNI: uint32(b), Kind: packet.Geneve, Options: []byte{1, 2, 3, 0}}))
		case 10:
			_, _ = p.Decap(packet.VXLAN) // one that carries nothing stays as it is, and notes nothing
		case 11:
			_, _ = p.Decap(packet.Geneve)
		case 12:
			p.Segment(int(b))
		case 13:
			_, _, _ = p.Inner(packet.VXLAN)
		}
	}
	return failed
}

// TestEditsInexact lists what cannot be done again: each must be noted as that.
func TestEditsInexact(t *testing.T) {
	inner := packet.Build(packet.Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP})
	_ = inner.Encap(packet.Outer{Src: netip.MustParseAddr("10.1.0.1"), Dst: netip.MustParseAddr("10.1.0.2")})
	for name, do := range map[string]func(p *packet.Packet){
		"Clone": func(p *packet.Packet) { p.Clone() }, "Fragment": func(p *packet.Packet) { p.Fragment(100) },
		"Segment":    func(p *packet.Packet) { p.Segment(50) },
		"Reassemble": func(p *packet.Packet) { p.Fragment(100); p.Reassemble() }, "SpoilChecksum": func(p *packet.Packet) { p.SpoilChecksum() },
		"TransportChecksumWrong": func(p *packet.Packet) { p.TransportChecksumWrong() },
		"Decap":                  func(p *packet.Packet) { _, _ = p.Decap(packet.VXLAN) },
		"Inner":                  func(p *packet.Packet) { _, _, _ = p.Inner(packet.VXLAN) },
		"FillChecksum":           func(p *packet.Packet) { p.FillChecksum() },
		"LeaveChecksum":          func(p *packet.Packet) { p.LeaveChecksum() }, "AnnounceMSS": func(p *packet.Packet) { p.AnnounceMSS(1) },
		"KeepWhole": func(p *packet.Packet) { p.KeepWhole() },
	} {
		var e packet.Edits
		p, err := packet.New(inner.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		p.Note(&e)
		if do(p); e.Exact() {
			t.Errorf("%s is noted as something that can be done to another packet", name)
		}
	}
}
