package vfp

import "github.com/winlab-dev/winlab/sim/dataplane/packet"

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

// shape is what rules of one space have in common: the fields by which they are looked
// up, and the width of the values of each.
type shape struct {
	by     fields
	widths [lookups]width
}

// values are those of a rule or a packet in the fields of a shape.
type values struct {
	of [lookups]word
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
	// placed are the rules with all their shapes and values, in order.
	type place struct {
		shape
		values
		pos int32
	}
	placed := make([]place, 0, len(rules))
	size := map[shape]int{}
	for i, r := range rules {
		r.Cond.eachShape(func(s shape, v values) {
			placed = append(placed, place{s, v, int32(i)})
			size[s]++
		})
	}
	spaces := map[shape]*space{}
	for len(placed) > 0 {
		pos, n, common := placed[0].pos, 0, false
		for n < len(placed) && placed[n].pos == pos {
			common = common || placed[n].by != 0 && size[placed[n].shape] >= minSpace
			n++
		}
		several := rules[pos].set.count() >= 2
		if several {
			ix.several = append(ix.several, pos)
		}
		if !common {
			ix.rest = append(ix.rest, pos)
			if several {
				ix.restNear = append(ix.restNear, pos)
			}
		} else {
			for i := range placed[:n] {
				pl := &placed[i]
				sp := spaces[pl.shape]
				if sp == nil {
					sp = &space{shape: pl.shape, first: pos, whole: map[values][]int32{}}
					spaces[pl.shape], ix.spaces = sp, append(ix.spaces, sp)
				}
				add(sp.whole, pl.values, pos)
			}
		}
		placed = placed[n:]
	}
	return ix
}

// add adds a position, which is not less than those that are there.
func add(t map[values][]int32, v values, pos int32) {
	if all := t[v]; len(all) == 0 || all[len(all)-1] != pos {
		t[v] = append(all, pos)
	}
}

// eachShape calls f with every shape and all values with which a condition is looked up.
func (c *Cond) eachShape(f func(shape, values)) {
	n := 1
	var by fields
	var counts [lookups]int
	for _, row := range lookupOrder {
		if count := condFields[row].lookup.count(c); count != 0 && n*count <= maxValues {
			counts[row], by = count, by|1<<row
			n *= count
		}
	}
	for i := range n {
		s, v := shape{by: by}, values{}
		for _, row := range lookupOrder {
			if count := counts[row]; count != 0 {
				v.of[row], s.widths[row] = condFields[row].lookup.value(c, i%count)
				i /= count
			}
		}
		f(s, v)
	}
}

// valuesOf returns what a packet has in the fields of the shape, and in which of them it
// can match no rule of it.
func (s *shape) valuesOf(h *packet.Headers) (v values, never fields) {
	for left := s.by; left != 0; left &= left - 1 {
		row := left.first()
		var ok bool
		if v.of[row], ok = condFields[row].lookup.of(h, s.widths[row]); !ok {
			v.of[row] = 0
			never |= left & -left
		}
	}
	return v, never
}

// find returns the first rule, in priority order, that matches, or nil.
func (ix *index) find(p *packet.Packet, h *packet.Headers) *Rule {
	best, tried := int32(len(ix.rules)), 0
	for _, sp := range ix.spaces {
		if sp.first >= best {
			break
		}
		v, never := sp.valuesOf(h)
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
