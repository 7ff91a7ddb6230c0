package compare

import (
	"net/netip"
	"slices"
	"strings"

	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// hop is a form that a packet has on a node in the model.
type hop struct {
	leg  trace.Leg
	node string
	form form
	// macs are the pairs of MAC addresses with which the node has it, "A > B".
	macs []string
	// step led to it; rule is the last one that changed the packet.
	step, rule *trace.Step
}

// hops are the forms of a packet along a path.
func hops(p *trace.Path) (all []*hop) {
	var rule *trace.Step
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Rule != "" && (s.Action == trace.ActRewrite || s.Action == trace.ActEncap || s.Action == trace.ActDecap) {
			rule = s
		}
		l, ok := packet.ReadLine(s.Packet.String())
		if !ok {
			continue
		}
		f := formOf(&l)
		h := (*hop)(nil)
		if n := len(all); n > 0 && all[n-1].leg == s.Leg && all[n-1].node == s.Place && all[n-1].form == f {
			h = all[n-1]
		} else {
			h = &hop{leg: s.Leg, node: s.Place, form: f, step: s, rule: rule}
			all = append(all, h)
			rule = nil
		}
		if l.SrcMAC != (packet.MAC{}) {
			h.macs = append(h.macs, macs(l.SrcMAC.String(), l.DstMAC.String()))
		}
	}
	return all
}

func macs(src, dst string) string { return strings.ToUpper(src + " > " + dst) }

func formOf(l *packet.Line) form {
	if l.Inner == nil {
		return form{src: l.Src, dst: l.Dst}
	}
	f := formOf(l.Inner)
	f.outerSrc, f.outerDst = l.Src.Addr(), l.Dst.Addr()
	return f
}

// way is one path of the model against what was seen.
type way struct {
	path  *trace.Path
	steps []doc.Step
	// found counts forms that were seen as the model has them, wrong what was not, beyond those
	// that were seen after the model's end where it does not know what happens.
	found, wrong, beyond int
	// end is the last form of a path that ends so, nil for others.
	end *hop
	why string // of the first that is wrong
	// counted counts rules of the way whose counters say that packets matched, uncounted are
	// those that say that none did.
	counted   int
	uncounted []doc.Uncounted
}

func (w *way) differs(why string) {
	w.wrong++
	if w.why == "" {
		w.why = why
	}
}

// compareWithPath compares what was seen with one path.
func (o *seen) compareWithPath(f *doc.Flow, p *trace.Path) *way {
	w := &way{path: p}
	all := hops(p)
	if len(all) > 0 && p.Verdict == trace.Unknown {
		w.end = all[len(all)-1]
	}
	for _, leg := range []trace.Leg{trace.Request, trace.Reply} {
		list := o.e.request
		if leg == trace.Reply {
			list = o.e.reply
		}
		o.leg(w, leg, all, list)
	}
	o.counters(w)
	failed := p.Verdict != trace.Delivered && p.Verdict != trace.Unknown && p.Verdict != trace.Varies
	switch {
	case f.Theirs == doc.Answered && failed:
		w.differs("the sender got an answer, and in the model it gets none")
	case f.Theirs == doc.Unanswered && p.Verdict == trace.Delivered:
		w.differs("the sender got no answer and sent again, and in the model it gets one")
	case f.Theirs == doc.Dropped && p.Verdict == trace.Delivered:
		w.differs("the node dropped it, and the model passes it on")
	case f.Theirs == doc.Dropped && failed:
		if s, leg := o.dropped(); s != nil && !o.sameEnd(s, leg, all) {
			w.differs("node and model drop it in different places")
		}
	}
	return w
}

// counters looks at the counters of the rules that the request meets on nodes that saw it. What they
// count beside it is unknown; but a rule that it matched has matched once.
func (o *seen) counters(w *way) {
	for i := range w.path.Steps {
		s := &w.path.Steps[i]
		if s.Leg != trace.Request || s.Rule == "" || s.Port == "" ||
			!slices.ContainsFunc(o.e.request, func(at *sighting) bool { return at.node == s.Place }) {
			continue
		}
		c := o.x.counted[ruleAt{s.Place, s.Port, s.Rule}]
		switch {
		case c.rule == nil:
		case c.rule.Counts.Matched > 0:
			w.counted++
		default:
			w.differs("a rule that the packet matches in the model has a counter of 0 on the node, or the counters were read before the packet came")
			w.uncounted = append(w.uncounted, doc.Uncounted{Node: doc.Name(s.Place), Port: c.port, Ours: doc.Foreign(s.Rule), Rule: *rule(c.rule)})
		}
	}
}

// sameEnd reports whether a path ends where a node dropped the packet: on this node, in this form.
func (o *seen) sameEnd(s *sighting, leg trace.Leg, all []*hop) bool {
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	return last.leg == leg && last.node == s.node && o.isSamePacket(leg, s, last)
}

// leg compares the forms of the request or of the reply, node by node.
func (o *seen) leg(w *way, leg trace.Leg, all []*hop, list []*sighting) {
	var nodes []string
	for _, h := range all {
		if h.leg == leg && !slices.Contains(nodes, h.node) {
			nodes = append(nodes, h.node)
		}
	}
	for _, s := range list {
		if !slices.Contains(nodes, s.node) {
			nodes = append(nodes, s.node)
		}
	}
	for _, node := range nodes {
		var model []*hop
		for _, h := range all {
			if h.leg == leg && h.node == node {
				model = append(model, h)
			}
		}
		var seen []*sighting
		for _, s := range list {
			if s.node == node && !slices.ContainsFunc(seen, func(t *sighting) bool {
				return t.form == s.form && t.srcMAC == s.srcMAC && t.dstMAC == s.dstMAC
			}) {
				seen = append(seen, s)
			}
		}
		if len(seen) > 0 {
			o.node(w, leg, model, seen)
		}
	}
}

// node compares the forms on one node, in their order: each that was seen must come at or after
// the one before it.
func (o *seen) node(w *way, leg trace.Leg, model []*hop, list []*sighting) {
	at, hit := 0, -1
	shown := 0 // of the model
	show := func(to int) {
		for ; shown < to; shown++ {
			w.steps = append(w.steps, stepOf(leg, nil, model[shown]))
		}
	}
	for _, s := range list {
		i := at
		for i < len(model) && !o.isSamePacket(leg, s, model[i]) {
			i++
		}
		if i == len(model) && w.ends(leg, model, hit) {
			w.beyond++
			w.steps = append(w.steps, stepOf(leg, s, nil))
			continue
		}
		if i == len(model) {
			why := "a form of the packet was seen that the model does not have there"
			if slices.ContainsFunc(model, func(h *hop) bool { return o.sameForm(leg, s, h.form) }) {
				why = "the packet was seen with other MAC addresses, or in another order, than in the model"
			}
			w.differs(why)
			st := stepOf(leg, s, nil)
			w.steps = append(w.steps, st)
			continue
		}
		show(i)
		if shown == i {
			st := stepOf(leg, s, model[i])
			st.Same = true
			w.steps = append(w.steps, st)
			shown++
		}
		w.found++
		at, hit = i, i
	}
	show(len(model))
}

// ends reports whether the model does not know what comes after the last of its forms on a node
// that was seen.
func (w *way) ends(leg trace.Leg, model []*hop, hit int) bool {
	switch {
	case w.end == nil:
		return false
	case w.end.leg == trace.Request && leg == trace.Reply:
		return true
	case len(model) == 0: // another node than those that the packet came to
		return w.end.leg == leg
	}
	return model[len(model)-1] == w.end && hit == len(model)-1
}

// isSamePacket reports whether a sighting is a packet of the model in a form.
func (o *seen) isSamePacket(leg trace.Leg, s *sighting, h *hop) bool {
	return o.sameForm(leg, s, h.form) && (s.srcMAC == "" || len(h.macs) == 0 || slices.Contains(h.macs, macs(s.srcMAC, s.dstMAC)))
}

// sameForm compares addresses and ports. Ports that a translation has picked differ: the model
// does not know which a node picks.
func (o *seen) sameForm(leg trace.Leg, s *sighting, m form) bool {
	if s.onlyOuter() {
		return m.outerSrc == s.outerSrc && m.outerDst == s.outerDst
	}
	if m.outerSrc != s.outerSrc || m.outerDst != s.outerDst || m.src.Addr() != s.src.Addr() || m.dst.Addr() != s.dst.Addr() {
		return false
	}
	if o.e.proto == "icmp" {
		return true
	}
	original := o.first.src.Port()
	port := func(a, b netip.AddrPort) bool {
		return a.Port() == b.Port() || a.Port() != original && b.Port() != original
	}
	if leg == trace.Request {
		return port(m.src, s.src) && m.dst.Port() == s.dst.Port()
	}
	return m.src.Port() == s.src.Port() && port(m.dst, s.dst)
}

func stepOf(leg trace.Leg, s *sighting, h *hop) doc.Step {
	out := doc.Step{Leg: string(leg)}
	if s != nil {
		out.Node, out.Theirs = doc.Name(s.node), shownForm(s.form)
		out.Theirs.SrcMAC, out.Theirs.DstMAC = doc.Addr(s.srcMAC), doc.Addr(s.dstMAC)
		out.Seen, out.Component = doc.Place{File: doc.Name(s.file), Line: s.line}, doc.Foreign(s.component)
	}
	if h != nil {
		out.Node, out.Ours = doc.Name(h.node), shownForm(h.form)
		out.Object, out.Action, out.Evidence = doc.Foreign(h.step.Object), string(h.step.Action), h.step.Evidence
		if r := h.rule; r != nil {
			out.Object, out.Layer, out.Rule, out.Action, out.Evidence = doc.Foreign(r.Object), doc.Foreign(r.Layer), doc.Foreign(r.Rule),
				string(r.Action), r.Evidence
		}
	}
	return out
}

func shownForm(f form) *doc.Form {
	out := &doc.Form{}
	if !f.onlyOuter() {
		out.Src, out.Dst = addr(f.src), addr(f.dst)
	}
	if f.outerSrc.IsValid() {
		out.OuterSrc, out.OuterDst = doc.Addr(f.outerSrc.String()), doc.Addr(f.outerDst.String())
	}
	return out
}

// rulesOn are the rules that a path meets on its request.
func rulesOn(p *trace.Path) (all []doc.Step) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Leg != trace.Request || s.Layer == "" {
			continue
		}
		out := doc.Step{Leg: string(s.Leg), Node: doc.Name(s.Place), Object: doc.Foreign(s.Object), Layer: doc.Foreign(s.Layer),
			Rule: doc.Foreign(s.Rule), Action: string(s.Action), Evidence: s.Evidence}
		if l, ok := packet.ReadLine(s.Packet.String()); ok {
			out.Ours = shownForm(formOf(&l))
		}
		all = append(all, out)
	}
	return all
}
