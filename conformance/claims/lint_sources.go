package claims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// span are the versions of Kubernetes, 1.first to 1.last, that a source speaks of.
type span struct{ first, last int }

// spanOf is the span of an edition, "1.14" or "1.22-1.36"; false for what has versions of
// its own, such as a plugin, or a year.
func spanOf(edition string) (span, bool) {
	from, to, _ := strings.Cut(edition, "-")
	to = cmp.Or(to, from)
	s := span{minorOf(from), minorOf(to)}
	// Kubernetes has two numbers here, and no edition before 1.5 or between it and 1.14.
	ok := strings.HasPrefix(from, "1.") && strings.Count(from, ".") == 1 && (s.first == 5 || s.first >= 14) && s.last >= s.first
	return s, ok
}

// spans are those of a claim's sources, nil for one with versions of its own. What a place
// speaks of beyond its edition (covers) widens its span. The versions between two editions
// belong to both: where two agree, those between are taken to agree as well.
func (n *linter) spans(c *Claim, say func(pos, string, ...any)) []*span {
	all := make([]*span, len(c.sources))
	for i, src := range c.sources {
		s, ok := spanOf(src.Version)
		if covers := c.Sources[i].Covers; covers != "" {
			v := versionsIn(closed(covers, n.ledger.names.through), 0)
			switch {
			case !ok:
				say(c.Sources[i].pos, "covers is for sources with versions of Kubernetes; this one has %q", src.Version)
				continue
			case len(v) == 0:
				say(c.Sources[i].pos, "covers is %q; write a range of versions of Kubernetes that the place speaks of", covers)
				continue
			case v[0] >= s.first && v[len(v)-1] <= s.last:
				say(c.Sources[i].pos, "covers %q adds nothing to the edition's own range, %s", covers, src.Version)
			}
			s.first, s.last = min(s.first, v[0]), max(s.last, v[len(v)-1])
		}
		if ok {
			all[i] = &s
		}
	}
	return widenToNeighbours(all)
}

// widenToNeighbours widens each span up to the neighbouring one.
func widenToNeighbours(all []*span) []*span {
	wide := make([]*span, len(all))
	for i, s := range all {
		if s == nil {
			continue
		}
		w := *s
		before, after := -1, 1<<30
		for _, o := range all {
			if o != nil && o.last < s.first {
				before = max(before, o.last)
			}
			if o != nil && o.first > s.last {
				after = min(after, o.first)
			}
		}
		if before >= 0 {
			w.first = before + 1
		}
		if after < 1<<30 {
			w.last = after - 1
		}
		wide[i] = &w
	}
	return wide
}

// versionsIn are the documented versions of Kubernetes in a range, 20 for 1.20; of an open
// range those up to last, or all for 0.
func versionsIn(rng string, last int) []int {
	r, err := ParseRange(rng)
	if err != nil {
		return nil
	}
	var all []int
	for _, v := range Minors() {
		m := minorOf(v)
		// A bound with a patch, "<1.15.5", is within its minor version.
		for _, patch := range []int{0, 1 << 20} {
			if r.Holds(Version{1, m, patch}) && (last == 0 || m <= last) && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// ranges holds what a claim says against the editions of its sources: a status, a check
// that is stated, and a position of a dispute cannot be about versions of which no source
// of theirs speaks. A
// claim with a source that has versions of its own, such as a plugin's, is not held, and
// neither is a status that says that no source says anything.
func (n *linter) ranges(c *Claim, say func(pos, string, ...any)) {
	all := n.spans(c, say)
	whole := span{1 << 30, -1}
	stated := false
	for i, s := range all {
		if c.sources[i].Certainty != "" {
			continue // what may be, what is to come and what we conclude make no status
		}
		stated = true
		if s == nil {
			whole = span{0, 1 << 30}
			break
		}
		whole = span{min(whole.first, s.first), max(whole.last, s.last)}
	}
	for _, p := range c.Support {
		out := versionsNotCovered([]span{whole}, p.Where, n.ledger.names.through)
		switch {
		case p.Status == "undocumented", out == "":
		case !stated && len(all) > 0:
			say(p.pos, "no source states it, they are %s; write undocumented, or cite one that does", certaintiesOf(c))
		default:
			say(p.pos,
				"no source speaks of Kubernetes %s; narrow the range, cite the edition, or write at a source in covers of which versions it speaks",
				out)
		}
	}
	for i := range c.Checks {
		k := &c.Checks[i]
		if out := versionsNotCovered([]span{whole}, k.Where, n.ledger.names.through); out != "" && k.Basis == "stated" && k.Cluster == "" &&
			k.Kubernetes != "" {
			say(k.pos,
				"basis stated, and no source speaks of Kubernetes %s; narrow the range, cite the edition, write it in covers, or write implied", out)
		}
		if k.Disputed == nil {
			continue
		}
		for _, side := range []struct {
			name   string
			number int
		}{{"by", k.Disputed.By}, {"against", k.Disputed.Against}} {
			if side.number < 1 || side.number > len(all) || all[side.number-1] == nil {
				continue
			}
			if out := versionsNotCovered(c.position(side.number, all), k.Where, n.ledger.names.through); out != "" {
				say(k.pos, "disputed: %s is source %d (%s), and no source with its position speaks of Kubernetes %s", side.name, side.number,
					c.sources[side.number-1].Version, out)
			}
		}
	}
}

// certaintiesOf lists the certainties of a claim's sources.
func certaintiesOf(c *Claim) string {
	var all []string
	for _, s := range c.sources {
		if s.Certainty != "" && !slices.Contains(all, s.Certainty) {
			all = append(all, s.Certainty)
		}
	}
	return orList(all)
}

// position are the spans of the sources that say the same as the one with a number. A
// position can be held by several editions.
func (c *Claim) position(number int, all []*span) []span {
	var held []span
	for i, s := range all {
		if s != nil && (i == number-1 || c.sources[i].Says == c.sources[number-1].Says) {
			held = append(held, *s)
		}
	}
	return held
}

// versionsNotCovered are the versions of a range that are in none of the spans, in words; "" for none.
// A range that is open goes as far as the documents were read as a whole.
func versionsNotCovered(spans []span, w Where, through string) string {
	last := 0
	if w.open != "" {
		last = minorOf(through)
	}
	var out []int
	for _, m := range versionsIn(w.Kubernetes, last) {
		if !slices.ContainsFunc(spans, func(s span) bool { return m >= s.first && m <= s.last }) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return ""
	}
	if len(out) == 1 {
		return fmt.Sprintf("1.%d", out[0])
	}
	return fmt.Sprintf("1.%d to 1.%d", out[0], out[len(out)-1])
}
