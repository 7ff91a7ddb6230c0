// Package consult says which known issues a cluster can have, and which of them would change
// what a trace says.
//
// An entry is excluded by what is known to be otherwise, never by what is not known: a version
// or a setting that is unknown is a condition that stays open, and is named. It must not know
// how a packet is sent: it reads the ends of a flow and its verdict.
package consult

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/known"
)

// Cluster is what is known of a cluster.
type Cluster struct {
	// Has maps a component that the cluster has to its version, "" where that is not known.
	Has map[string]string
	// Lacks are components that the cluster is known not to have. What is in neither is not
	// known.
	Lacks map[string]bool
	// Builds are those of its Windows nodes, "10.0.20348.2762"; nil where they are not known.
	Builds []string
	// Network is the type of its HNS networks, "" where it is not known.
	Network string
	// Settings are options that are known to be set (true) or not to be (false), by the names
	// in the table of settings.
	Settings map[string]bool
}

// Match is an entry that a cluster can have.
type Match struct {
	Entry *known.Entry
	// Open are the conditions that nothing known of the cluster decides, as clauses: "flannel is
	// before 0.21.0", "with VXLAN". Without any the cluster meets all that the entry says.
	Open []string
	// Selected says that something particular to this cluster meets the entry: a version or a
	// build in a range that begins or ends, or the network plugin. Without that the entry is
	// about everybody.
	Selected bool
	// sure counts conditions that the cluster is known to meet, for the order of matches.
	sure int
}

// Matches are the entries that the cluster can have: those of which most is known to apply
// first.
func (c *Cluster) Matches(entries []*known.Entry) []Match {
	var all []Match
	for _, e := range entries {
		if m, ok := c.match(e); ok {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(len(a.Open), len(b.Open)), cmp.Compare(b.sure, a.sure), cmp.Compare(certain(a.Entry), certain(b.Entry)))
	})
	return all
}

// certain orders entries: what was fixed was there.
func certain(e *known.Entry) int { return slices.Index(known.Certainties, e.Certainty) }

// match compares an entry's conditions with the cluster, and reports whether none is excluded.
func (c *Cluster) match(e *known.Entry) (m Match, ok bool) {
	m.Entry = e
	for i := range e.Affected {
		if !c.affected(&m, &e.Affected[i]) {
			return m, false
		}
	}
	if !c.windows(&m) {
		return m, false
	}
	if len(e.Networks) > 0 {
		switch {
		case c.Network == "":
			m.Open = append(m.Open, "on "+strings.Join(e.Networks, " or "))
		case !slices.Contains(e.Networks, c.Network):
			return m, false
		default:
			m.sure++
		}
	}
	return m, c.somewhere(&m)
}

// somewhere compares the clouds and distributions of an entry with what the cluster has.
func (c *Cluster) somewhere(m *Match) bool {
	if len(m.Entry.Environments) == 0 {
		return true
	}
	lacks := 0
	for _, env := range m.Entry.Environments {
		if _, has := c.Has[env]; has {
			m.sure++
			return true
		}
		if c.Lacks[env] {
			lacks++
		}
	}
	if lacks == len(m.Entry.Environments) {
		return false
	}
	m.Open = append(m.Open, "on "+strings.Join(m.Entry.Environments, " or "))
	return true
}

// affected compares one component with the cluster.
func (c *Cluster) affected(m *Match, a *known.Affected) bool {
	version, has := c.Has[a.Component]
	switch {
	case c.Lacks[a.Component]:
		return false
	case !has:
		m.Open = append(m.Open, strings.TrimSpace(a.Component+" "+rangesText(a.Ranges)))
	case len(a.Ranges) > 0 && version == "":
		m.Open = append(m.Open, a.Component+" "+rangesText(a.Ranges))
	default:
		in, err := a.Holds(version)
		if err != nil {
			m.Open = append(m.Open, a.Component+" "+rangesText(a.Ranges))
		} else if !in {
			return false
		} else if len(a.Ranges) > 0 {
			m.sure++
			m.Selected = m.Selected || slices.ContainsFunc(a.Ranges, func(r known.Range) bool { return r != known.Range{Introduced: "0"} })
		}
		m.Selected = m.Selected || slices.Contains(plugins, a.Component)
	}
	for _, option := range a.Options {
		value, known := c.setting(option)
		switch {
		case !known:
			m.Open = append(m.Open, "with "+option)
		case !value:
			return false
		default:
			m.sure++
		}
	}
	return true
}

// windows compares the builds of an entry with those of the nodes: one that has the issue is
// enough.
func (c *Cluster) windows(m *Match) bool {
	if len(m.Entry.Windows) == 0 {
		return true
	}
	if len(c.Builds) == 0 {
		var all []string
		for _, b := range m.Entry.Windows {
			all = append(all, buildText(&b))
		}
		m.Open = append(m.Open, "Windows "+strings.Join(all, " or "))
		return true
	}
	for _, b := range m.Entry.Windows {
		for _, have := range c.Builds {
			if in, err := b.Holds(have); err != nil || !in {
				continue
			}
			if strings.Count(have, ".") < 3 && b.Fixed != "" { // which update it has was not said
				m.Open = append(m.Open, "Windows "+buildText(&b))
			}
			m.sure++
			m.Selected = m.Selected || b.Fixed != "" || b.LastAffected != ""
			if b.Switch != "" && b.Fixed != "" {
				m.Open = append(m.Open, "until "+b.Switch)
			}
			return true
		}
	}
	return false
}

func buildText(b *known.Build) string {
	s := fmt.Sprintf("10.0.%d", b.Build)
	if b.Fixed != "" {
		s += " before " + cmp.Or(b.Update, s+"."+b.Fixed)
	}
	return s
}

// rangesText says ranges in words: "before 1.20.5, or 1.21.0 to before 1.21.1".
func rangesText(ranges []known.Range) string {
	var all []string
	for _, r := range ranges {
		from := ""
		if r.Introduced != "" && r.Introduced != "0" {
			from = "from " + r.Introduced
		}
		to := ""
		switch {
		case r.Fixed != "":
			to = "before " + r.Fixed
		case r.LastAffected != "":
			to = "up to " + r.LastAffected
		}
		if s := strings.TrimSpace(from + " " + to); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", or ")
}

// Conditions are what an entry says of who has the issue: "kube-proxy before 1.27.0 with
// externalTrafficPolicy Local", "Windows 10.0.17763 before KB4571748", "on overlay".
func Conditions(e *known.Entry) []string {
	var all []string
	for _, a := range e.Affected {
		s := strings.TrimSpace(a.Component + " " + rangesText(a.Ranges))
		if len(a.Options) > 0 {
			s += " with " + strings.Join(a.Options, ", ")
		}
		all = append(all, s)
	}
	var builds []string
	for _, b := range e.Windows {
		builds = append(builds, buildText(&b))
	}
	if len(builds) > 0 {
		all = append(all, "Windows "+strings.Join(builds, " or "))
	}
	for _, where := range [][]string{e.Networks, e.Environments} {
		if len(where) > 0 {
			all = append(all, "on "+strings.Join(where, " or "))
		}
	}
	return all
}

// OnePlugin notes that a cluster with a network plugin does not have the others.
func (c *Cluster) OnePlugin() {
	has := slices.ContainsFunc(plugins, func(p string) bool { _, ok := c.Has[p]; return ok })
	if !has {
		return
	}
	if c.Lacks == nil {
		c.Lacks = map[string]bool{}
	}
	for _, p := range plugins {
		if _, ok := c.Has[p]; !ok {
			c.Lacks[p] = true
		}
	}
}
