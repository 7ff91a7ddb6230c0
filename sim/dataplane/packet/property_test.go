package packet

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A rewrite followed by its inverse gives the bytes back.
func TestRewriteInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 3000 {
		p, err := New(genFrame(t, r))
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(p.Bytes())
		rw := randomRewrite(r, p.h.IPVersion)
		h := p.h
		back := Rewrite{Set: rw.Set, EthSrc: h.EthSrc, EthDst: h.EthDst, Src: h.Src, Dst: h.Dst, SrcPort: h.SrcPort, DstPort: h.DstPort,
			ICMPID: h.ICMPID}
		p.Apply(&rw)
		if err := p.VerifyChecksums(); err != nil {
			t.Fatal(err)
		}
		p.Apply(&back)
		if !bytes.Equal(before, p.Bytes()) {
			t.Fatalf("\n got %x\nwant %x", p.Bytes(), before)
		}
	}
}

// Apply does what the setters do, and a composed rewrite what its parts do.
func TestRewriteComposition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		p, err := New(genFrame(t, r))
		if err != nil {
			t.Fatal(err)
		}
		a, b := randomRewrite(r, p.h.IPVersion), randomRewrite(r, p.h.IPVersion)
		both := a.Then(b)
		one, two, set := p.Clone(), p.Clone(), p.Clone()
		one.Apply(&both)
		two.Apply(&a)
		two.Apply(&b)
		applySetters(set, a)
		applySetters(set, b)
		if !bytes.Equal(one.Bytes(), two.Bytes()) || !bytes.Equal(one.Bytes(), set.Bytes()) || *one.Headers() != *set.Headers() {
			t.Fatalf("%+v then %+v\ncomposed %x\nin turn  %x\nsetters  %x", a, b, one.Bytes(), two.Bytes(), set.Bytes())
		}
	}
	if z, x := (Rewrite{}), (Rewrite{Set: RwSrc}); !z.IsZero() || x.IsZero() {
		t.Error("IsZero")
	}
}

func applySetters(p *Packet, r Rewrite) {
	for _, f := range []struct {
		bit RewriteMask
		do  func()
	}{
		{RwEthSrc, func() { p.SetEthSrc(r.EthSrc) }}, {RwEthDst, func() { p.SetEthDst(r.EthDst) }},
		{RwSrc, func() { p.setSrc(r.Src) }}, {RwDst, func() { p.setDst(r.Dst) }},
		{RwSrcPort, func() { p.SetSrcPort(r.SrcPort) }}, {RwDstPort, func() { p.SetDstPort(r.DstPort) }},
		{RwICMPID, func() { p.SetICMPID(r.ICMPID) }},
	} {
		if r.Set&f.bit != 0 {
			f.do()
		}
	}
}

// Encap then Decap is the identity, also nested, over both families, with
// options, and for frames that carry no IP.
func TestEncapDecap(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for i := range 1000 {
		f := genFrame(t, r)
		switch i % 10 {
		case 0:
			f = BuildARP(1, podMAC, Broadcast, ip("10.0.0.4"), ip("10.0.0.1")).Bytes()
		case 1:
			f[12], f[13] = 0x88, 0xcc
		}
		p, err := New(f)
		if err != nil {
			t.Fatal(err)
		}
		depth := 1 + r.IntN(3)
		var outers []Outer
		for range depth {
			o := testOuter(Tunnel(r.IntN(2)))
			o.VNI = r.Uint32() >> 8
			v := uint8(4 + 2*r.IntN(2))
			o.Src, o.Dst = randomAddr(r, v), randomAddr(r, v)
			o.SrcPort = 1 + uint16(r.IntN(65535))
			if o.Kind == Geneve && r.IntN(2) == 0 {
				o.Options = make([]byte, 4*(1+r.IntN(63)))
				o.Options[0] = byte(i)
			}
			inner := p.h
			if err := p.Encap(o); err != nil {
				t.Fatal(err)
			}
			h, vni, err := p.Inner(o.Kind)
			inner.shift(p.h.Payload + 8 + len(o.Options))
			if err != nil || vni != o.VNI || h != inner {
				t.Fatalf("Inner: vni %d, %v\n got %+v\nwant %+v", vni, err, h, inner)
			}
			if err := p.VerifyChecksums(); err != nil {
				t.Fatal(err)
			}
			outers = append(outers, o)
		}
		for _, want := range backwards(outers) {
			got, err := p.Decap(want.Kind)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Options, want.Options) {
				t.Fatalf("options %x, want %x", got.Options, want.Options)
			}
			if a, b := withoutOptions(got), withoutOptions(want); a != b {
				t.Fatalf("got %v, want %v", a, b)
			}
		}
		if !bytes.Equal(p.Bytes(), f) {
			t.Fatalf("\n got %x\nwant %x", p.Bytes(), f)
		}
		if later := p.Words()(f); later != p.String() {
			t.Fatalf("said later: %s\nwant        %s", later, p)
		}
		if q, _ := New(f); *q.Headers() != *p.Headers() {
			t.Fatalf("headers\n got %+v\nwant %+v", *p.Headers(), *q.Headers())
		}
	}
}

func backwards(o []Outer) []Outer {
	var out []Outer
	for i := len(o) - 1; i >= 0; i-- {
		out = append(out, o[i])
	}
	return out
}

func withoutOptions(o Outer) string { o.Options = nil; return fmtOuter(o) }

// What Decap returned can be given to Encap again, although its options alias
// the packet.
func TestDecapEncapAliasing(t *testing.T) {
	p, _ := New(frame64())
	o := testOuter(Geneve)
	o.Options = bytes.Repeat([]byte{1, 2, 3, 0}, 20)
	if err := p.Encap(o); err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(p.Bytes())
	got, err := p.Decap(Geneve)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Encap(got); err != nil || !bytes.Equal(before, p.Bytes()) {
		t.Errorf("%v\n got %x\nwant %x", err, p.Bytes(), before)
	}
}

func TestEncapDefaultsAndErrors(t *testing.T) {
	p, _ := New(frame64())
	o := testOuter(VXLAN)
	o.SrcPort, o.DstPort, o.TTL = 0, 0, 0
	inner := p.Tuple()
	if err := p.Encap(o); err != nil {
		t.Fatal(err)
	}
	if h := p.Headers(); h.SrcPort != VXLANSrcPort(inner) || h.DstPort != 4789 || h.TTL != 64 {
		t.Errorf("%v", p)
	}
	for name, edit := range map[string]func(*Outer){
		"families": func(o *Outer) { o.Dst = ip("fd00::1") }, "no address": func(o *Outer) { o.Src, o.Dst = ip("10.0.0.1"), (Outer{}).Dst },
		"VNI": func(o *Outer) { o.VNI = 1 << 24 }, "VXLAN options": func(o *Outer) { o.Options = make([]byte, 4) },
		"odd options":  func(o *Outer) { o.Kind, o.Options = Geneve, make([]byte, 5) },
		"many options": func(o *Outer) { o.Kind, o.Options = Geneve, make([]byte, 256) },
		"kind":         func(o *Outer) { o.Kind = 7 },
	} {
		before := bytes.Clone(p.Bytes())
		bad := testOuter(VXLAN)
		edit(&bad)
		if p.Encap(bad) == nil || !bytes.Equal(before, p.Bytes()) {
			t.Errorf("%s: no error, or the packet changed", name)
		}
	}
	big, _ := New(make([]byte, 65520))
	if big.Encap(o) == nil {
		t.Error("a frame of 65520 bytes does not fit")
	}
}

func TestDecapErrors(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Tunnel
		spoil func(p *Packet)
		want  string
	}{
		"flag":    {VXLAN, func(p *Packet) { p.Bytes()[42] = 0 }, "VXLAN at byte 42: the flag for a valid VNI is not set"},
		"version": {Geneve, func(p *Packet) { p.Bytes()[42] = 0x40 }, "Geneve at byte 42: version is 1"},
		"payload": {Geneve, func(p *Packet) { p.Bytes()[44] = 8 }, "Geneve at byte 42: it carries 0x0d58, not Ethernet"},
		"options": {Geneve, func(p *Packet) { p.Bytes()[42] = 63 }, "Geneve at byte 42: header length 260, but the packet holds 72 bytes"},
		"inner":   {VXLAN, func(p *Packet) { p.Bytes()[50+14] = 0x65 }, "inner IPv4 at byte 64: version is 6"},
		"not UDP": {VXLAN, func(p *Packet) { _ = p.Load(frame64()) }, "VXLAN at byte 54: the packet is not UDP"},
	} {
		p, _ := New(frame64())
		if err := p.Encap(testOuter(c.kind)); err != nil {
			t.Fatal(err)
		}
		c.spoil(p)
		if name == "payload" {
			p.Bytes()[44] = 0x0d
		}
		before := bytes.Clone(p.Bytes())
		if _, err := p.Decap(c.kind); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
		if _, _, err := p.Inner(c.kind); err == nil || err.Error() != c.want {
			t.Errorf("%s: Inner %v", name, err)
		}
		if !bytes.Equal(before, p.Bytes()) || p.String() == "" {
			t.Errorf("%s: the packet changed", name)
		}
	}
}

func TestVXLANSrcPort(t *testing.T) {
	seen := map[uint16]bool{}
	base := Tuple{Src: ip("10.244.1.4"), Dst: ip("10.244.2.5"), DstPort: 80, Proto: TCP}
	for i := range 1000 {
		base.SrcPort = uint16(40000 + i)
		port := VXLANSrcPort(base)
		if port < 49152 || port != VXLANSrcPort(base) {
			t.Fatalf("port %d", port)
		}
		seen[port] = true
	}
	if len(seen) < 900 { // 1000 draws from 16384 collide about 30 times
		t.Errorf("1000 flows share %d ports", len(seen))
	}
	if VXLANSrcPort(Tuple{}) < 49152 {
		t.Error("a frame without IP")
	}
}
