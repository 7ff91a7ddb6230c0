package vfp

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// index finds the first matching rule of a group without trying them all. It
// is a tuple space search: rules that name exactly one destination prefix, and
// at most one protocol and one destination port, are kept in one hash table
// per shape; all others are tried in order. The reference evaluator in the
// tests tries every rule in order, and fuzzing compares the two.
type index struct {
	rules  []*Rule
	shapes []shape
	rest   []int // positions in rules, ascending
}

type shape struct {
	bits        int
	proto, port bool
	family6     bool
	positions   map[shapeKey][]int
}

type shapeKey struct {
	dst   netip.Prefix
	proto packet.Proto
	port  uint16
}

func newIndex(rules []*Rule) *index {
	ix := &index{rules: rules}
	for i, r := range rules {
		c := &r.Cond
		onePort := len(c.DstPorts) == 1 && c.DstPorts[0].Lo == c.DstPorts[0].Hi
		if len(c.Dst) != 1 || len(c.Protos) > 1 || len(c.DstPorts) > 0 && !onePort {
			ix.rest = append(ix.rest, i)
			continue
		}
		want := shape{bits: c.Dst[0].Bits(), proto: len(c.Protos) == 1, port: onePort, family6: c.Dst[0].Addr().Is6()}
		s := ix.shape(want)
		k := shapeKey{dst: c.Dst[0].Masked()}
		if want.proto {
			k.proto = c.Protos[0]
		}
		if want.port {
			k.port = c.DstPorts[0].Lo
		}
		s.positions[k] = append(s.positions[k], i)
	}
	return ix
}

func (ix *index) shape(want shape) *shape {
	for i := range ix.shapes {
		s := &ix.shapes[i]
		if s.bits == want.bits && s.proto == want.proto && s.port == want.port && s.family6 == want.family6 {
			return s
		}
	}
	want.positions = map[shapeKey][]int{}
	ix.shapes = append(ix.shapes, want)
	return &ix.shapes[len(ix.shapes)-1]
}

// find returns the first rule, in priority order, that matches, or nil.
func (ix *index) find(p *packet.Packet, h *packet.Headers) *Rule {
	best := len(ix.rules)
	if h.Dst.IsValid() {
		for i := range ix.shapes {
			s := &ix.shapes[i]
			if s.family6 != h.Dst.Is6() {
				continue
			}
			var k shapeKey
			k.dst, _ = h.Dst.Prefix(s.bits)
			if s.proto {
				k.proto = h.Proto
			}
			if s.port {
				k.port = h.DstPort
			}
			for _, pos := range s.positions[k] {
				if pos >= best {
					break
				}
				if ix.rules[pos].matches(p, h) {
					best = pos
					break
				}
			}
		}
	}
	for _, pos := range ix.rest {
		if pos >= best {
			break
		}
		if ix.rules[pos].matches(p, h) {
			best = pos
			break
		}
	}
	if best == len(ix.rules) {
		return nil
	}
	return ix.rules[best]
}
