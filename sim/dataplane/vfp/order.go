package vfp

import "slices"

// openOrder are two layers of a port of which it is not known which one a packet visits
// first: by their priorities first comes before then, on the way out. The zero value means
// that the order is known.
type openOrder struct {
	first, then int
	behind      *Behind
}

// findOpenOrder finds the layer that may stand behind another one of the port.
func findOpenOrder(layers []*layerState) openOrder {
	for i, l := range layers {
		if l.Behind == nil || !l.decides() {
			continue
		}
		if j := slices.IndexFunc(layers, func(o *layerState) bool { return o.Name == l.Behind.Layer }); j > i {
			return openOrder{i, j, l.Behind}
		}
	}
	return openOrder{}
}

// decides reports whether the layer can do anything but let a packet pass as it is.
func (l *layerState) decides() bool {
	return l.Block || slices.ContainsFunc(l.Groups, func(g *Group) bool {
		return slices.ContainsFunc(g.Rules, func(r *Rule) bool { _, allows := r.Action.(Allow); return !allows })
	})
}

// layerAt is the layer that a packet visits at a position of its way out, 0 the first;
// swapped is the answer to the open question.
func (o *openOrder) layerAt(i int, swapped bool) int {
	switch {
	case !swapped || i < o.first || i > o.then:
		return i
	case i == o.then:
		return o.first
	}
	return i + 1
}

// swaps asks for the order of two layers, where the packet that comes to the first of them
// on its way depends on it: the layer that may stand in front has a flow or a rule for it.
func (ps *passage) swaps(o *openOrder) bool {
	other := ps.port.layers[o.then]
	h := ps.packet.Headers()
	k := keyOf(ps.packet, ps.dir)
	concerns := other.flows.n != 0 && other.flow(&k, k.hash()) != nil
	for _, g := range other.Groups {
		concerns = concerns || g.serves(ps.dir, h.IPVersion) && slices.ContainsFunc(g.Rules,
			func(r *Rule) bool { return r.matches(ps.packet, h) })
	}
	return concerns && ps.env.answer(o.behind.Question, "") == o.behind.Answer
}
