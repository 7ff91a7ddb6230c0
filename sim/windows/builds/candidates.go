package builds

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Unknown is what a lab writes for a build that is not known at all.
const Unknown = "unknown"

// Candidate stands for builds between which nothing that is known here differs.
type Candidate struct {
	// Build is the first of them.
	Build *Build
	// Last is the last one; its UBR is math.MaxInt where the last is any later revision.
	Last Version
}

// String returns "10.0.17763.1432", "10.0.17763.348 to 10.0.17763.1191",
// "10.0.17763.2367 and later revisions", or "10.0.17763" for all of them.
func (c Candidate) String() string { return stretch(c.Build.Version, c.Last) }

func stretch(first, last Version) string {
	from, to := first.String(), last.String()
	if first.UBR == firstRevision {
		from = fmt.Sprintf("%d.%d.%d", first.Major, first.Minor, first.Build)
	}
	if last.UBR == math.MaxInt {
		to = fmt.Sprintf("%d.%d.%d", last.Major, last.Minor, last.Build)
	}
	switch {
	case from == to || first == last:
		return to
	case first.Build == last.Build && last.UBR == math.MaxInt:
		return from + " and later revisions"
	}
	return from + " to " + to
}

// Stretches writes some of the candidates, by their indices in order: those that follow
// each other in one.
func Stretches(all []Candidate, of []int) string {
	var s []string
	for i := 0; i < len(of); {
		j := i
		for j+1 < len(of) && of[j+1] == of[j]+1 {
			j++
		}
		s = append(s, stretch(all[of[i]].Build.Version, all[of[j]].Last))
		i = j + 1
	}
	return strings.Join(s, " or ")
}

// join joins two candidates, the second of which begins where the first ends.
func (c Candidate) join(next Candidate) (Candidate, bool) {
	if c.Last.UBR == math.MaxInt || c.Last.Build != next.Build.Version.Build || c.Last.UBR+1 != next.Build.Version.UBR {
		return c, false
	}
	return Candidate{c.Build, next.Last}, true
}

// firstRevision is the least that a build can have.
const firstRevision = 1

// Candidates are the builds that a node can have of which somebody knows a part: each of
// known is a build with its revision, one without ("10.0.17763", or a name, "2019": every
// revision), comparisons that must all hold (">=10.0.17763.1432 <10.0.17763.2000"), or
// [Unknown] (every build of the table). A node has one of them. The result has one
// candidate for each stretch of revisions between the bounds of the table, in order.
func Candidates(known []string) ([]Candidate, error) {
	var ranges []versionRange
	for _, text := range known {
		r, err := knownRange(text)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	var all []Candidate
	for _, row := range table().rows {
		from := table().bounds(row.Build, ranges)
		for i, first := range from {
			v, last := Version{10, 0, row.Build, first}, Version{10, 0, row.Build, math.MaxInt}
			if i+1 < len(from) {
				last.UBR = from[i+1] - 1
			}
			if !slices.ContainsFunc(ranges, func(r versionRange) bool { return r.Contains(v) }) {
				continue
			}
			b, err := Lookup(v)
			if err != nil {
				return nil, err
			}
			if n := len(all) - 1; n >= 0 && all[n].Build.differsOnlyInRevision(b) {
				if joined, ok := all[n].join(Candidate{b, last}); ok {
					all[n] = joined
					continue
				}
			}
			all = append(all, Candidate{b, last})
		}
	}
	for i, r := range ranges {
		if !slices.ContainsFunc(all, func(c Candidate) bool { return r.Contains(c.Build.Version) }) {
			return nil, fmt.Errorf("no build that winlab knows is in %q; it knows %s", known[i], strings.Join(Names(), ", "))
		}
	}
	return all, nil
}

// OfProduct are the builds, without revision, of the product whose name a system image
// begins with: "Windows Server 2019 Datacenter" is 10.0.17763; nil for none.
func OfProduct(image string) []string {
	var all []string
	best := 0
	for _, r := range table().rows {
		rest, ok := strings.CutPrefix(strings.ToLower(image), strings.ToLower(r.Product))
		if !ok || rest != "" && rest[0] != ' ' || len(r.Product) < best {
			continue
		}
		if len(r.Product) > best {
			all, best = nil, len(r.Product)
		}
		all = append(all, fmt.Sprintf("10.0.%d", r.Build))
	}
	return all
}

// knownRange reads what is known of a build.
func knownRange(text string) (versionRange, error) {
	text = strings.TrimSpace(text)
	if text == Unknown {
		return versionRange{}, nil
	}
	if strings.ContainsAny(text, "<>=") {
		return parseRange(text)
	}
	v, err := Parse(text)
	if err != nil {
		return versionRange{}, err
	}
	if _, whole, err := parseNumbers(strings.ToLower(text)); err != nil || !whole {
		return parseRange(fmt.Sprintf("10.0.%d", v.Build))
	}
	return parseRange(v.String())
}

// bounds are the revisions of a build from which on something may differ, sorted: those of
// the table and of ranges.
func (d *data) bounds(build int, more []versionRange) []int {
	at := map[int]bool{firstRevision: true}
	for _, h := range d.row(build).HNS {
		at[h.From] = true
	}
	of := func(rs ...versionRange) {
		for _, r := range rs {
			for _, t := range r.terms {
				switch {
				case t.v.Build != build || t.v.UBR == math.MaxInt:
				case t.op == ">" || t.op == "<=":
					at[t.v.UBR+1] = true
				default:
					at[t.v.UBR] = true
				}
			}
		}
	}
	of(more...)
	for _, l := range d.limits {
		of(l.builds)
	}
	for _, f := range d.features {
		of(f.builds...)
	}
	for _, q := range d.quirks {
		of(q.builds, q.may)
	}
	delete(at, 0)
	return slices.Sorted(maps.Keys(at))
}

// differsOnlyInRevision reports whether nothing that is known of two builds differs but their revisions.
func (b *Build) differsOnlyInRevision(o *Build) bool {
	return b.Version.Build == o.Version.Build && b.HNSVersion == o.HNSVersion && b.Schema == o.Schema && b.Limits == o.Limits &&
		maps.Equal(b.features, o.features) && maps.Equal(b.quirks, o.quirks) && maps.Equal(b.open, o.open)
}
