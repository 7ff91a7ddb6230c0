package packet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// A patch does to every packet of a flow what the rewrite does, whatever its checksums are.
func TestPatchIsApply(t *testing.T) {
	for seed := range uint64(60_000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		data := make([]byte, 100)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		patchIsApply(t, data)
	}
}

// FuzzPatch is TestPatchIsApply with bytes from the fuzzer.
func FuzzPatch(f *testing.F) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		data := make([]byte, 100)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 60 {
			patchIsApply(t, data)
		}
	})
}

// patchIsApply makes a rewrite and two packets of a flow of at least 60 bytes.
func patchIsApply(t *testing.T, data []byte) {
	t.Helper()
	next := func(n int) []byte {
		part := data[:n]
		data = data[n:]
		return part
	}
	word := func() uint16 { return binary.BigEndian.Uint16(next(2)) }
	// Few values, so that fields are often set to what they are, and extreme ones.
	some := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("255.255.255.255"),
		netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::ffff:10.0.0.1"), {}}
	address := func(of int) netip.Addr {
		b := next(5)
		if i := int(b[0]) % 9; i < of {
			return some[i]
		}
		return netip.AddrFrom4([4]byte(b[1:]))
	}
	port := func() uint16 { return []uint16{word(), 0, 0xffff, 80}[next(1)[0]%4] }
	r := Rewrite{Set: RewriteMask(next(1)[0]), EthSrc: MAC(next(6)), EthDst: MAC(next(6)), SrcPort: port(), DstPort: port(), ICMPID: port(),
		Src: address(len(some)), Dst: address(len(some))}
	s := Spec{Src: address(3), Dst: address(3), SrcPort: port(), DstPort: port(), ICMPID: port(),
		Proto: []Proto{TCP, UDP, ICMP, GRE, GRE, TCP, UDP, ICMP}[next(1)[0]%8], ICMPType: []uint8{8, 0, 3, 13}[next(1)[0]%4]}
	p := Build(s)
	if s.Proto == GRE && next(1)[0]%2 == 0 { // a protocol of the other version of IP
		other := bytes.Clone(p.Bytes())
		other[p.Headers().L3+9] = byte(ICMPv6)
		p = load(t, other)
	}
	patch, ok := r.Patch(p.Tuple())
	if !ok {
		t.Fatalf("%v is not of IPv4", p)
	}
	for range 2 {
		frame := bytes.Clone(p.Bytes())
		h := p.Headers()
		// A sum may be wrong, and may be none.
		if how := next(1)[0] % 4; how != 0 && h.L4 != 0 {
			at := map[Proto]int{TCP: 16, UDP: 6, ICMP: 2}[h.Proto]
			binary.BigEndian.PutUint16(frame[h.L4+at:], []uint16{0, 0, 0xffff, 0x1234}[how])
			binary.BigEndian.PutUint16(frame[h.L3+10:], []uint16{0, 0xffff, 0, 0x1234}[how])
		}
		applied, patched := load(t, frame), load(t, frame)
		applied.Apply(&r)
		if !patched.Patch(&patch) {
			t.Fatal("nothing was done")
		}
		if !bytes.Equal(applied.Bytes(), patched.Bytes()) || applied.h != patched.h {
			t.Fatalf("%+v of %v\napplied %x\npatched %x\n%+v\n%+v", r, p, applied.Bytes(), patched.Bytes(), applied.h, patched.h)
		}
		if len(data) == 0 {
			break
		}
	}
}

func load(t *testing.T, frame []byte) *Packet {
	t.Helper()
	p, err := New(frame)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A packet whose changes are noted is not patched, nor has a flow of IPv6 a patch.
func TestNoPatch(t *testing.T) {
	p := Build(Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: UDP, SrcPort: 1, DstPort: 2})
	before := bytes.Clone(p.Bytes())
	patch, _ := natRewrite().Patch(p.Tuple())
	var e Edits
	p.Note(&e)
	if p.Patch(&patch) || !bytes.Equal(p.Bytes(), before) || e.Len() != 0 {
		t.Errorf("a packet whose changes are noted became %x of %x, %d changes noted", p.Bytes(), before, e.Len())
	}
	if p.Note(nil); !p.Patch(&patch) {
		t.Error("nothing is noted, and the packet is not patched")
	}
	six := Build(Spec{Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2"), Proto: UDP, SrcPort: 1, DstPort: 2})
	if _, ok := natRewrite().Patch(six.Tuple()); ok {
		t.Error("a flow of IPv6 has a patch")
	}
}
