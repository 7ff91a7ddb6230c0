package vfp

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// index finds rules of a group without trying them all: the first that matches a packet,
// and those that only one condition keeps from it ([index.nearest]). It is a tuple space
// search: rules that name values of the same fields, and prefixes of the same length, are
// kept in one hash table. A rule that names several values is there with each; a field
// with a range of ports, or with too many values, is not looked up. Rules that have too
// little in common with others are tried in order. The reference evaluators in the tests
// try every rule in order, and fuzzing compares the two.
type index struct {
	rules []*Rule
	// spaces are ordered by their first rule; rest are the positions in rules of those
	// that are in none, ascending.
	spaces []*space
	rest   []int32
	// several are the positions of rules with two conditions or more, ascending: only these can
	// fail in one alone and meet another.
	several []int32
	// restNear are those of them that are in no space.
	restNear []int32
	// near says that nearest uses the index; scans are how often it did without.
	near  bool
	scans int
	// tried counts rules that were compared with packets.
	tried uint64
}

// fields are conditions that are looked up.
type fields uint8

const (
	byProto fields = 1 << iota
	bySrc
	byDst
	bySrcPort
	byDstPort
	byPorts = bySrcPort | byDstPort
)

// shape is what rules of one space have in common.
type shape struct {
	by               fields
	src6, dst6       bool
	srcBits, dstBits uint8
}

// values are those of a rule or a packet in the fields of a shape.
type values struct {
	src, dst         netip.Addr // masked
	srcPort, dstPort uint16
	proto            packet.Proto
	// passes is for rules that allow, which nearest looks for last.
	passes bool
}

// space holds the rules of a shape. tables are by the fields that are looked up, each
// made when it is first needed: positions of rules, ascending.
type space struct {
	shape
	first  int32
	tables map[fields]map[values][]int32
	whole  map[values][]int32 // the table of all fields, without passes
}

const (
	// minSpace is the number of rules for which a look-up is cheaper than trying them.
	minSpace = 4
	// maxValues bounds in how many places one rule is.
	maxValues = 16
)

func newIndex(rules []*Rule) *index {
	ix := &index{rules: rules}
	size := map[shape]int{}
	for _, r := range rules {
		r.Cond.each(func(s shape, _ values) { size[s]++ })
	}
	spaces := map[shape]*space{}
	for i, r := range rules {
		pos, common := int32(i), false
		if r.Cond.predicates() >= 2 {
			ix.several = append(ix.several, pos)
		}
		r.Cond.each(func(s shape, _ values) { common = common || s.by != 0 && size[s] >= minSpace })
		if !common {
			ix.rest = append(ix.rest, pos)
			if r.Cond.predicates() >= 2 {
				ix.restNear = append(ix.restNear, pos)
			}
			continue
		}
		r.Cond.each(func(s shape, v values) {
			sp := spaces[s]
			if sp == nil {
				sp = &space{shape: s, first: pos, whole: map[values][]int32{}}
				spaces[s], ix.spaces = sp, append(ix.spaces, sp)
			}
			add(sp.whole, v, pos)
		})
	}
	return ix
}

// add adds a position, which is not less than those that are there.
func add(t map[values][]int32, v values, pos int32) {
	if all := t[v]; len(all) == 0 || all[len(all)-1] != pos {
		t[v] = append(all, pos)
	}
}

// each calls f with every shape and all values with which a condition is looked up.
func (c *Cond) each(f func(shape, values)) {
	n := 1
	take := func(values int, by fields) fields {
		if values == 0 || n*values > maxValues {
			return 0
		}
		n *= values
		return by
	}
	by := take(len(c.Dst), byDst) | take(onePorts(c.DstPorts), byDstPort) | take(len(c.Protos), byProto) |
		take(len(c.Src), bySrc) | take(onePorts(c.SrcPorts), bySrcPort)
	for i := range n {
		s, v := shape{by: by}, values{}
		next := func(of int) (at int) {
			at, i = i%of, i/of
			return at
		}
		if by&byDst != 0 {
			p := c.Dst[next(len(c.Dst))].Masked()
			v.dst, s.dst6, s.dstBits = p.Addr(), p.Addr().Is6(), uint8(p.Bits())
		}
		if by&byDstPort != 0 {
			v.dstPort = c.DstPorts[next(len(c.DstPorts))].Lo
		}
		if by&byProto != 0 {
			v.proto = c.Protos[next(len(c.Protos))]
		}
		if by&bySrc != 0 {
			p := c.Src[next(len(c.Src))].Masked()
			v.src, s.src6, s.srcBits = p.Addr(), p.Addr().Is6(), uint8(p.Bits())
		}
		if by&bySrcPort != 0 {
			v.srcPort = c.SrcPorts[next(len(c.SrcPorts))].Lo
		}
		f(s, v)
	}
}

// onePorts is the number of ports of a condition, 0 when one of them is a range.
func onePorts(all []PortRange) int {
	if slices.ContainsFunc(all, func(r PortRange) bool { return r.Lo != r.Hi }) {
		return 0
	}
	return len(all)
}

// of returns what a packet has in the fields of the shape, and in which of them it can
// match no rule of it.
func (s *shape) of(h *packet.Headers) (v values, never fields) {
	if s.by&byDst != 0 {
		if v.dst = masked(h.Dst, s.dst6, s.dstBits); !v.dst.IsValid() {
			never |= byDst
		}
	}
	if s.by&bySrc != 0 {
		if v.src = masked(h.Src, s.src6, s.srcBits); !v.src.IsValid() {
			never |= bySrc
		}
	}
	if s.by&byProto != 0 {
		v.proto = h.Proto
	}
	if s.by&byPorts != 0 && !hasPorts(h) {
		return v, never | s.by&byPorts
	}
	if s.by&byDstPort != 0 {
		v.dstPort = h.DstPort
	}
	if s.by&bySrcPort != 0 {
		v.srcPort = h.SrcPort
	}
	return v, never
}

// masked is the first address of an address' network of a family; the zero Addr for an
// address of another.
func masked(a netip.Addr, v6 bool, bits uint8) netip.Addr {
	if !a.IsValid() || a.Is6() != v6 {
		return netip.Addr{}
	}
	if int(bits) == a.BitLen() {
		return a
	}
	p, _ := a.Prefix(int(bits))
	return p.Addr()
}

// find returns the first rule, in priority order, that matches, or nil.
func (ix *index) find(p *packet.Packet, h *packet.Headers) *Rule {
	best, tried := int32(len(ix.rules)), 0
	for _, sp := range ix.spaces {
		if sp.first >= best {
			break
		}
		v, never := sp.of(h)
		if never != 0 {
			continue
		}
		for _, pos := range sp.whole[v] {
			if pos >= best {
				break
			}
			if tried++; ix.rules[pos].matches(p, h) {
				best = pos
				break
			}
		}
	}
	for _, pos := range ix.rest {
		if pos >= best {
			break
		}
		if tried++; ix.rules[pos].matches(p, h) {
			best = pos
			break
		}
	}
	ix.tried += uint64(tried)
	if int(best) == len(ix.rules) {
		return nil
	}
	return ix.rules[best]
}
