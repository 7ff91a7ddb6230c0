package vfp

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Group holds the rules of one direction and address family of a layer.
type Group struct {
	Name     string
	Priority uint16 // lower is earlier
	Dir      Direction
	Family   uint8 // 4, 6 or 0 for both
	Rules    []*Rule
	// Tie, when set, says which of two rules with equal priority and different
	// actions wins when both match: an answer is the type of an action. Left nil,
	// the earlier rule of the list wins.
	Tie *evidence.Question

	index *index // nil until the group is sealed
	// ties are the priorities at which rules have different actions.
	ties map[uint16]bool
}

// Layer is one stage of a port's pipeline.
type Layer struct {
	// Name is VFP's name; a name in parentheses is winlab's own.
	Name     string
	Priority uint16 // lower is earlier on the way out
	Stateful bool
	// Block makes the layer's default a block; otherwise it is allow.
	Block  bool
	Groups []*Group
	// Behind, when set, leaves open where the layer stands: by its priority, or on the way
	// out directly behind another layer.
	Behind *Behind
}

// Behind is the answer to a question with which a layer stands behind another one on the
// way out, and before it on the way in.
type Behind struct {
	Layer    string
	Question *evidence.Question
	Answer   string
}

// Group returns the group with that name and direction, adding it when it is
// missing. A group that is asked for with two families serves both: its rules'
// own addresses tell the families apart, and the order of the rules is kept.
func (l *Layer) Group(name string, dir Direction, family uint8) *Group {
	for _, g := range l.Groups {
		if g.Name == name && g.Dir == dir {
			if g.Family != family {
				g.Family = 0
			}
			return g
		}
	}
	g := &Group{Name: name, Dir: dir, Family: family}
	l.Groups = append(l.Groups, g)
	return g
}

// has reports whether the layer has a rule for that direction and family.
func (l *Layer) has(dir Direction, version uint8) bool {
	for _, g := range l.Groups {
		if g.serves(dir, version) && len(g.Rules) != 0 {
			return true
		}
	}
	return false
}

func (g *Group) serves(dir Direction, version uint8) bool {
	return g.Dir == dir && (g.Family == 0 || g.Family == version)
}

// seal sorts the groups and rules and builds the classifiers.
func (l *Layer) seal() {
	slices.SortStableFunc(l.Groups, func(a, b *Group) int { return int(a.Priority) - int(b.Priority) })
	for _, g := range l.Groups {
		slices.SortStableFunc(g.Rules, func(a, b *Rule) int { return int(a.Priority) - int(b.Priority) })
		for i, r := range g.Rules {
			r.group, r.at, r.set = g, i, r.Cond.set()
		}
		g.index = newIndex(g.Rules)
		g.ties = nil
		if g.Tie != nil {
			g.findTies()
		}
	}
}

// findTies notes the priorities at which rules have different actions.
func (g *Group) findTies() {
	for i, r := range g.Rules[:max(len(g.Rules)-1, 0)] {
		if next := g.Rules[i+1]; r.Priority == next.Priority && r.Action.Type() != next.Action.Type() {
			if g.ties == nil {
				g.ties = map[uint16]bool{}
			}
			g.ties[r.Priority] = true
		}
	}
}

// match returns the rule of the group that decides about a packet, or nil. What
// no source decides is asked.
func (g *Group) match(p *packet.Packet, h *packet.Headers, env *Env) *Rule {
	r := g.index.find(p, h)
	if r == nil || r.Given == nil && g.ties == nil {
		return r
	}
	if r = g.holding(r.at, p, h, env); r != nil && g.ties[r.Priority] {
		return g.breakTie(r, p, h, env)
	}
	return r
}

// lifts reports whether a rule that blocks is left out.
func (e *Env) lifts(r *Rule) bool {
	_, blocks := r.Action.(Block)
	return blocks && e.Lifted != nil && e.Lifted(r.ID, r.Origin)
}

// behind returns the rule that decides when those that are left out are not there, nil
// for none.
func (g *Group) behind(r *Rule, p *packet.Packet, h *packet.Headers, env *Env) *Rule {
	for r != nil && env.lifts(r) {
		r = g.holding(r.at+1, p, h, env)
	}
	return r
}

// holding returns the first rule from a position on that matches and is there.
func (g *Group) holding(at int, p *packet.Packet, h *packet.Headers, env *Env) *Rule {
	for _, r := range g.Rules[at:] {
		if r.matches(p, h) && (r.Given == nil || env.answer(r.Given.Question, r.Given.About) == r.Given.Answer) {
			return r
		}
	}
	return nil
}

// breakTie returns the rule that wins among those of r's priority.
func (g *Group) breakTie(r *Rule, p *packet.Packet, h *packet.Headers, env *Env) *Rule {
	for i := r.at + 1; i < len(g.Rules) && g.Rules[i].Priority == r.Priority; i++ {
		other := g.holding(i, p, h, env)
		if other == nil || other.Priority != r.Priority {
			return r
		}
		if other.Action.Type() == r.Action.Type() {
			continue
		}
		if env.answer(g.Tie, "") == other.Action.Type() {
			return other
		}
		return r
	}
	return r
}
