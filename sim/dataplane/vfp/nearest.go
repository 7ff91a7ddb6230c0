package vfp

import (
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

func groupOf(l *Layer, r *Rule) *Group {
	for _, g := range l.Groups {
		if slices.Contains(g.Rules, r) {
			return g
		}
	}
	return nil
}

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
		for _, r := range g.Rules {
			// Most rules fail in two predicates: they are skipped before any text
			// is made.
			if r.Cond.failsTwice(h) || r.Cond.predicates() < 2 {
				continue
			}
			m := r.misses(p, h)
			if len(m) != 1 {
				continue
			}
			m[0].Rule, m[0].From = r.ID, r.Origin
			if r.Action.Type() == (Allow{}).Type() {
				passing = append(passing, m[0])
			} else {
				changing = append(changing, m[0])
			}
		}
	}
	ms := append(changing, passing...)
	return ms[:min(len(ms), 3)]
}

// failsTwice reports whether at least two of the plain predicates fail.
func (c *Cond) failsTwice(h *packet.Headers) bool {
	n := 0
	for _, met := range [...]bool{c.matchProto(h), matchAddr(c.Src, h.Src), matchAddr(c.Dst, h.Dst)} {
		if !met {
			n++
		}
	}
	return n > 1
}

// predicates counts the conditions that are set.
func (c *Cond) predicates() int {
	n := 0
	for _, set := range [...]bool{len(c.Protos) != 0, len(c.Src) != 0, len(c.Dst) != 0, len(c.SrcPorts) != 0, len(c.DstPorts) != 0,
		!c.DstMAC.IsZero(), len(c.ICMPTypes) != 0, c.TunnelPort != 0} {
		if set {
			n++
		}
	}
	return n
}

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
func encapStep(p *packet.Packet, t *Tunnel, before *packet.Headers) trace.Step {
	return trace.Step{
		Action: trace.ActEncap, Packet: p.String(),
		Event: trace.Of(encapsulated{t.Kind, t.Dst, t.VNI, p.Headers().DstPort}),
		Changes: append(diff.Headers(before, innerOf(p, t), shownChanges), trace.Change{
			Field: "outer", After: fmt.Sprintf("%s %s -> %s VNI %d", t.Kind, t.Src, t.Dst, t.VNI)}),
	}
}

// decapStep describes a packet that was just taken out of a tunnel.
func decapStep(p *packet.Packet, o *packet.Outer) trace.Step {
	return trace.Step{
		Action: trace.ActDecap, Packet: p.String(),
		Event:   trace.Of(decapsulated{o.Kind, o.Src, o.VNI}),
		Changes: []trace.Change{{Field: "outer", Before: fmt.Sprintf("%s %s -> %s VNI %d", o.Kind, o.Src, o.Dst, o.VNI)}},
	}
}
