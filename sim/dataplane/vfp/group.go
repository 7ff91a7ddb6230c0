package vfp

import "slices"

// Group holds the rules of one direction and address family of a layer.
type Group struct {
	Name     string
	Priority uint16 // lower is earlier
	Dir      Direction
	Family   uint8 // 4, 6 or 0 for both
	Rules    []*Rule

	index *index // nil until the group is sealed
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
		g.index = newIndex(g.Rules)
	}
}
