package html

import (
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
)

// scoper turns the words in which a document says where something holds into
// what the page can filter by. It knows the run's versions, networks and
// designs; everything else in the words narrows nothing here, so that a filter
// never hides what might hold.
type scoper struct {
	versions []string
	networks []string
	designs  map[string]bool
}

// scope is where something holds: versions out of those of the run, and
// networks ("n:overlay") or designs ("d:ovs-l3"). Empty means all.
type scope struct {
	V string `json:"v,omitempty"`
	N string `json:"n,omitempty"`
}

// nowhere is the version list of what holds in no version of this run.
const nowhere = "-"

func newScoper(doc *result.Document) *scoper {
	s := &scoper{designs: map[string]bool{}}
	for _, v := range doc.Versions {
		addNew(&s.versions, v)
	}
	for _, x := range doc.Settings {
		addNew(&s.versions, x.Kubernetes)
		addNew(&s.networks, x.Network)
		s.designs[x.Design] = true
	}
	return s
}

// parseScope reads words such as "Kubernetes 1.14 to 1.20, l2bridge or overlay".
func (s *scoper) parseScope(where string) scope {
	var out scope
	var names []string
	for part := range strings.SplitSeq(where, ", ") {
		if rng, ok := strings.CutPrefix(part, "Kubernetes "); ok {
			out.V = s.holding(rng)
			continue
		}
		for name := range strings.SplitSeq(part, " or ") {
			switch {
			case slices.Contains(s.networks, name):
				addNew(&names, "n:"+name)
			case s.designs[name]:
				addNew(&names, "d:"+name)
			}
		}
	}
	out.N = strings.Join(names, " ")
	return out
}

// holding lists the run's versions in a range, "" when all are or when the
// range cannot be read.
func (s *scoper) holding(rng string) string {
	var in []string
	for _, v := range s.versions {
		number, ok := minor(v)
		if !ok {
			return ""
		}
		holds := false
		for alternative := range strings.SplitSeq(rng, " or ") {
			h, ok := inRange(alternative, number)
			if !ok {
				return ""
			}
			holds = holds || h
		}
		if holds {
			in = append(in, v)
		}
	}
	switch len(in) {
	case len(s.versions):
		return ""
	case 0:
		return nowhere
	}
	return strings.Join(in, " ")
}

// inRange reports whether a version is in a range in words: "1.14 to 1.20",
// "from 1.14 and before 1.19", "1.21 and later", "after 1.20", "up to 1.20".
func inRange(words string, v int) (holds, ok bool) {
	if low, high, is := strings.Cut(words, " to "); is && !strings.Contains(low, " ") && low != "up" {
		a, okA := minor(low)
		b, okB := minor(high)
		return a <= v && v <= b, okA && okB
	}
	holds = true
	for bound := range strings.SplitSeq(words, " and ") {
		if bound == "later" {
			continue
		}
		var test func(b int) bool
		switch {
		case strings.HasPrefix(bound, "from "):
			bound, test = bound[len("from "):], func(b int) bool { return v >= b }
		case strings.HasPrefix(bound, "after "):
			bound, test = bound[len("after "):], func(b int) bool { return v > b }
		case strings.HasPrefix(bound, "up to "):
			bound, test = bound[len("up to "):], func(b int) bool { return v <= b }
		case strings.HasPrefix(bound, "before "):
			bound, test = bound[len("before "):], func(b int) bool { return v < b }
		case strings.Contains(words, bound+" and later"):
			test = func(b int) bool { return v >= b }
		default:
			test = func(b int) bool { return v == b }
		}
		b, ok := minor(bound)
		if !ok {
			return false, false
		}
		holds = holds && test(b)
	}
	return holds, true
}

// minor is the minor version of "1.20" or "1.20.4".
func minor(s string) (int, bool) {
	major, rest, ok := strings.Cut(s, ".")
	rest, _, _ = strings.Cut(rest, ".")
	n, err := strconv.Atoi(rest)
	return n, ok && err == nil && major == "1"
}
