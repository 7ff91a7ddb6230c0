package vfp

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

// groupOf is the group of the layer that has a rule, nil for none.
func groupOf(l *Layer, r *Rule) *Group {
	if slices.Contains(l.Groups, r.group) {
		return r.group
	}
	for _, g := range l.Groups { // the rule may be in another version of the layer, too
		if slices.Contains(g.Rules, r) {
			return g
		}
	}
	return nil
}

// shownNear is how many rules nearest returns.
const shownNear = 3

// nearest returns up to three rules of the layer that fail in one predicate and
// meet at least one other: rules that would have changed the packet come before
// those that would have let it pass. A rule with a single predicate that fails
// is not listed.
func nearest(l *Layer, p *packet.Packet, dir Direction) []trace.Miss {
	var changing, passing []trace.Miss
	h := p.Headers()
	for _, g := range l.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		c, a := g.index.nearest(p, h)
		for _, pos := range c.all() {
			changing = append(changing, g.Rules[pos].miss(p, h))
		}
		if len(changing) >= shownNear {
			return changing[:shownNear]
		}
		for _, pos := range a.all() {
			passing = append(passing, g.Rules[pos].miss(p, h))
		}
	}
	ms := append(changing, passing...)
	return ms[:min(len(ms), shownNear)]
}

// miss is the one predicate that a packet fails.
func (r *Rule) miss(p *packet.Packet, h *packet.Headers) trace.Miss {
	m := r.misses(p, h)[0]
	m.Rule, m.From = r.ID, r.Origin
	return m
}

// isNear reports whether a packet fails exactly one of several predicates.
func (r *Rule) isNear(p *packet.Packet, h *packet.Headers) bool {
	if r.set.count() < 2 {
		return false
	}
	missed := r.Cond.missed(r.set, p, h)
	n := missed.count()
	if r.wantsNoICMP(missed, h) {
		n++
	}
	return n == 1
}

// positions are the first ones of rules that were found, ascending.
type positions struct {
	at [shownNear]int32
	n  int
}

func (ps *positions) all() []int32 { return ps.at[:ps.n] }

// full reports whether a position could no longer be one of the first.
func (ps *positions) full(pos int32) bool { return ps.n == shownNear && pos >= ps.at[shownNear-1] }

// add adds a position, which may be there.
func (ps *positions) add(pos int32) {
	at, there := slices.BinarySearch(ps.all(), pos)
	if there || at == shownNear {
		return
	}
	ps.n = min(ps.n+1, shownNear)
	copy(ps.at[at+1:ps.n], ps.at[at:])
	ps.at[at] = pos
}

var (
	// minNear is the number of rules from which nearest uses an index, and scansFirst how
	// often it tries them all before: to make the index takes as long as some scans.
	minNear    = 64
	scansFirst = 4
)

// nearest returns the first rules that fail in exactly one predicate, those that would
// have changed the packet and those that would have let it pass.
func (ix *index) nearest(p *packet.Packet, h *packet.Headers) (changing, passing positions) {
	try := func(pos int32, found *positions) {
		if ix.tried++; ix.rules[pos].isNear(p, h) {
			found.add(pos)
		}
	}
	each := func(pos int32) {
		if !ix.rules[pos].passes() {
			try(pos, &changing)
		} else if !passing.full(pos) {
			try(pos, &passing)
		}
	}
	if !ix.near {
		for _, pos := range ix.several {
			if each(pos); changing.n == shownNear {
				return changing, passing
			}
		}
		ix.scans++
		ix.near = len(ix.several) >= minNear && ix.scans >= scansFirst
		return changing, passing
	}
	for _, pos := range ix.restNear {
		each(pos)
	}
	for _, sp := range ix.spaces {
		v, never := sp.valuesOf(h)
		sp.eachShapeLackingOne(never, h, func(by fields) {
			t := ix.table(sp, by)
			v := v.restrictedTo(by)
			for _, found := range [...]*positions{&changing, &passing} {
				for _, pos := range t[v] {
					if found.full(pos) {
						break
					}
					try(pos, found)
				}
				v.passes = true
			}
		})
	}
	return changing, passing
}

// eachShapeLackingOne calls f with the fields by which the rules of a space can be found that fail in
// one predicate: all but one. In never the packet can match none of them.
func (s *shape) eachShapeLackingOne(never fields, h *packet.Headers, f func(fields)) {
	if lacked := s.by & lackedBy(h); lacked != 0 {
		// It fails in its protocol alone, see Cond.missed.
		if never&^lacked == 0 {
			f(s.by &^ (lacked | byProtocol))
		}
		return
	}
	if never != 0 {
		if never.count() == 1 {
			f(s.by &^ never)
		}
		return
	}
	// Each of these tables has the rules that match in all fields, too.
	for left := s.by; left != 0; left &= left - 1 {
		f(s.by &^ (left & -left))
	}
}

// restrictedTo are the values of some fields.
func (v values) restrictedTo(by fields) values {
	for row := range v.of {
		if by&(1<<row) == 0 {
			v.of[row] = 0
		}
	}
	return v
}

// table finds the rules of a space by some of its fields.
func (ix *index) table(sp *space, by fields) map[values][]int32 {
	if t, ok := sp.tables[by]; ok {
		return t
	}
	t := map[values][]int32{}
	for _, i := range ix.several {
		r := ix.rules[i]
		passes := r.passes()
		r.Cond.eachShape(func(s shape, v values) {
			if s == sp.shape {
				v = v.restrictedTo(by)
				v.passes = passes
				add(t, v, i)
			}
		})
	}
	if sp.tables == nil {
		sp.tables = map[fields]map[values][]int32{}
	}
	sp.tables[by] = t
	return t
}

// passes reports whether the rule lets its packets pass unchanged.
func (r *Rule) passes() bool { return r.Action.Type() == (Allow{}).Type() }

// innerOf returns the inner headers of a packet that was just encapsulated.
func innerOf(p *packet.Packet, t *Tunnel) *packet.Headers {
	h, _, err := p.Inner(t.Kind)
	if err != nil {
		return p.Headers()
	}
	return &h
}

// encapStep describes a packet that was just encapsulated; before are the
// headers that it had.
func encapStep(rec *trace.Recorder, p *packet.Packet, t *Tunnel, before *packet.Headers) trace.Step {
	return trace.Step{
		Action: trace.ActEncap, Packet: rec.Describe(p),
		Event: trace.Of(encapsulated{t.Kind, t.Dst, t.VNI, p.Headers().DstPort}),
		Changes: diff.Headers(rec, before, innerOf(p, t), shownChanges,
			trace.Change{Field: diff.Outer, After: diff.Tunnel(t.Kind, t.Src, t.Dst, t.VNI)}),
	}
}

// decapStep describes a packet that was just taken out of a tunnel.
func decapStep(rec *trace.Recorder, p *packet.Packet, o *packet.Outer) trace.Step {
	return trace.Step{
		Action: trace.ActDecap, Packet: rec.Describe(p),
		Event:   trace.Of(decapsulated{o.Kind, o.Src, o.VNI}),
		Changes: []trace.Change{{Field: diff.Outer, Before: diff.Tunnel(o.Kind, o.Src, o.Dst, o.VNI)}},
	}
}
