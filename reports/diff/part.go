package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// part finds the first steps at which two traces go different ways, on the paths that
// carry their verdicts. A step that is nil has no counterpart: that trace has ended.
func part(a, b *trace.Trace) (x, y *trace.Step) {
	p, q := steps(a, b), steps(b, a)
	for i := 0; i < len(p) || i < len(q); i++ {
		switch {
		case i >= len(p):
			return nil, q[i]
		case i >= len(q):
			return p[i], nil
		case signature(p[i]) != signature(q[i]) || p[i].Leg != q[i].Leg:
			return p[i], q[i]
		}
	}
	return nil, nil
}

// Part finds the first steps at which two traces of one flow go different ways; nil where
// one has ended, and both nil where they are alike.
func Part(a, b *trace.Trace) (x, y *Step) {
	s, t := part(a, b)
	return step(s), step(t)
}

// steps are those of the path that carries the verdict, or, where paths end in different
// ways, of the first that ends in another way than the other trace. Steps that change
// nothing are left out: which layers a packet passes unchanged depends on the build.
func steps(t, other *trace.Trace) []*trace.Step {
	if t == nil || len(t.Paths) == 0 {
		return nil
	}
	path := &t.Paths[0]
	carries := func(p trace.Path) bool { return p.Verdict == t.Verdict && p.Reason == t.Reason }
	elsewhere := func(p trace.Path) bool { return other != nil && p.Verdict != other.Verdict }
	if i := slices.IndexFunc(t.Paths, carries); i >= 0 {
		path = &t.Paths[i]
	} else if i := slices.IndexFunc(t.Paths, elsewhere); i >= 0 {
		path = &t.Paths[i]
	}
	var all []*trace.Step
	for i := range path.Steps {
		s := &path.Steps[i]
		switch s.Action {
		case trace.ActAllow, trace.ActNoMatch, trace.ActNote:
			if s.Reason == "" {
				continue
			}
		}
		all = append(all, s)
	}
	return all
}

// signature is what kind of step it is, without names, addresses and the place: changes
// on two nodes with the same cause are one.
func signature(s *trace.Step) string {
	if s == nil {
		return ""
	}
	return strings.Join([]string{string(s.Action), s.Layer, s.RuleType, string(s.Reason), s.Evidence}, "\x00")
}

func step(s *trace.Step) *Step {
	if s == nil {
		return nil
	}
	return &Step{N: s.N, Place: strings.TrimSpace(s.Place + " " + cmp.Or(s.Port, s.Object)), Text: s.Text(),
		Rule: strings.TrimSpace(s.Layer + " " + s.Rule), From: s.From.String(), Fact: s.Evidence}
}

// Parting is where two traces of one flow diverge: the first step of each that the other
// does not have, nil where that trace has ended, and the kind of these steps, which is the
// same for flows that diverge for the same cause.
type Parting struct {
	A, B  *trace.Step
	Cause string
}

// PartingOf finds where two traces part. All is empty where they are alike.
func PartingOf(a, b *trace.Trace) Parting {
	x, y := part(a, b)
	if x == nil && y == nil {
		return Parting{}
	}
	return Parting{x, y, signature(x) + "\x00\x00" + signature(y)}
}
