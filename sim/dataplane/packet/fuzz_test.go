package packet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func fmtOuter(o Outer) string { return fmt.Sprintf("%+v", o) }

// FuzzLoad holds for every frame that nothing panics, that edits of a packet
// with right checksums leave them right, and that the parsed headers are those
// of the bytes.
func FuzzLoad(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		f.Add(genFrame(f, r), uint64(r.Uint32()))
	}
	for _, k := range []Tunnel{VXLAN, Geneve} {
		p, _ := New(frame64())
		_ = p.Encap(testOuter(k))
		f.Add(p.Bytes(), uint64(1))
	}
	f.Add(BuildARP(1, podMAC, Broadcast, ip("10.0.0.4"), ip("10.0.0.1")).Bytes(), uint64(2))
	f.Fuzz(func(t *testing.T, frame []byte, seed uint64) {
		p, err := New(frame)
		if !bytes.Equal(p.Bytes(), frame) {
			t.Fatal("Load changed the bytes")
		}
		_, _, _, _ = p.String(), p.Payload(), p.Tuple().String(), p.Tuple().Reverse()
		ok := err == nil && p.VerifyChecksums() == nil
		r := rand.New(rand.NewPCG(seed, 0))
		randomEdit(r, p)
		rw := randomRewrite(r, p.h.IPVersion)
		p.Apply(&rw)
		_ = p.String()
		// A new port can turn a payload into a tunnel, a new tag count can bring
		// another packet to light; then there is more to check than before.
		if _, tunnel := p.h.tunnelKind(); ok && !tunnel && p.h.IPVersion != 0 && !bytes.Contains(frame, []byte{0x81, 0}) {
			if p.h.Proto != UDP || be.Uint16(p.Bytes()[max(p.h.L4, 6)+6:]) != 0 {
				if err := p.VerifyChecksums(); err != nil {
					t.Fatalf("%v: %v", p, err)
				}
			}
		}
		if later := p.Words()(bytes.Clone(p.Bytes())); later != p.String() {
			t.Fatalf("said later: %s\nwant        %s", later, p)
		}
		q, err2 := New(p.Bytes())
		if *q.Headers() != *p.Headers() {
			t.Fatalf("%v\n got %+v\nwant %+v", err2, *p.Headers(), *q.Headers())
		}
		for _, k := range []Tunnel{VXLAN, Geneve} {
			_, _, _ = p.Inner(k)
			c := p.Clone()
			if _, err := c.Decap(k); err == nil {
				_ = c.String()
			}
			before := bytes.Clone(p.Bytes())
			if err := p.Encap(testOuter(k)); err != nil {
				continue
			}
			if _, err := p.Decap(k); err == nil && !bytes.Equal(before, p.Bytes()) {
				t.Fatal("Encap then Decap changed the frame")
			}
			p = c
		}
	})
}
