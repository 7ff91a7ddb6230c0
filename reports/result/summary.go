package result

import (
	"cmp"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// The outcomes of a cell.
const (
	// Differs: the documents state or imply one thing, the check found another.
	Differs = "differs"
	// Failed: the check itself could not be done. The cell says "error".
	Failed = "error"
	// Disputed: a check found another thing than the documents state or imply, and the
	// same as another source says, as the ledger tells beforehand. A difference all the
	// same.
	Disputed = "disputed"
	// Unknown: the model does not know.
	Unknown = "unknown"
	// NotChecked: nothing reached what the claim is about, so that the verdict says nothing
	// of it.
	NotChecked = "not-checked"
	// Own: the documents are silent; the verdict is the model's own.
	Own = "own"
	// Agrees: documents and check say the same.
	Agrees = "agrees"
	// Unchecked is the outcome of a claim, never of a cell: nothing checks it.
	Unchecked = "unchecked"
)

// Outcomes lists the outcomes of a cell, the one that needs attention most first.
var Outcomes = []string{Differs, Failed, Disputed, Unknown, NotChecked, Own, Agrees}

func known(outcome string) bool { return slices.Contains(Outcomes, outcome) }

// Summarise fills doc.Summary from the claims, cells and flows.
//
// A run is as expected when no cell differs or could not be checked, except by what is
// known and explained ([Check.Known]), two levels of
// evidence say the same wherever there are two, live flows are as in their traces, no check outside disputed and unknown cells failed,
// and no flow and no static check failed. A difference that a dispute explains is counted and
// listed, and so are what the model does not know and what was not checked; they do not fail a run.
func Summarise(doc *Document) {
	s := Summary{Claims: len(doc.Claims), Cells: len(doc.Cells), Flows: len(doc.Flows), Outcomes: map[string]int{}, AsExpected: true}
	for _, o := range Outcomes {
		s.Outcomes[o] = 0
	}
	for _, c := range doc.Cells {
		s.Outcomes[c.Outcome]++
		s.differs(c.Outcome)
		for _, k := range c.Checks {
			if k.Known != "" {
				s.Known++
			}
		}
		if pairs := c.Apart(); len(pairs) > 0 {
			s.Apart++
			if slices.ContainsFunc(pairs, func(p [2]Check) bool { return p[0].Known == "" && p[1].Known == "" }) {
				s.AsExpected = false
			}
		}
		switch c.Outcome {
		case Differs, Failed:
			if !c.allKnown() {
				s.AsExpected = false
			}
		case Disputed, Unknown:
		default:
			if slices.ContainsFunc(c.Checks, func(k Check) bool { return !k.Pass }) {
				s.AsExpected = false
			}
		}
	}
	for _, set := range doc.Settings {
		if s.ObjectsApart += len(set.ObjectsApart); len(set.ObjectsApart) > 0 {
			s.AsExpected = false
		}
	}
	s.Statics = len(doc.Statics)
	for _, k := range doc.Statics {
		s.differs(k.Outcome())
		if k.Outcome() == Differs {
			s.StaticsFailed++
			s.AsExpected = false
		}
	}
	for _, f := range doc.Flows {
		if f.Open() {
			s.FlowsOpen++
		}
		if !f.Pass {
			s.FlowsFailed++
			s.AsExpected = false
		}
	}
	if s.Live = liveSummary(doc); s.Live != nil && s.Live.Apart > 0 {
		s.AsExpected = false
	}
	doc.Summary = s
}

// differs counts an outcome that is a difference.
func (s *Summary) differs(outcome string) {
	switch outcome {
	case Disputed:
		s.Explained++
		s.Differing++
	case Differs:
		s.Differing++
	}
}

// LiveChecks lists the checks and flows that have live evidence, with the claim and
// setting, or the lab, that they are of; each flow once.
func LiveChecks(doc *Document, f func(what string, k *Check)) {
	seen := map[string]bool{}
	once := func(what string, k *Check) {
		if k.Live != nil && !seen[k.Trace] {
			seen[k.Trace] = true
			f(what, k)
		}
	}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		for n := range c.Checks {
			once(c.Claim+" in "+c.Setting, &c.Checks[n])
		}
	}
	for i := range doc.Flows {
		r := &doc.Flows[i]
		what := r.Lab
		for _, more := range []string{r.Variant, r.Setting} {
			if more != "" {
				what += " " + more
			}
		}
		if r.Step != "" {
			what += ", step " + r.Step
		}
		once(what, &r.Check)
	}
}

// allKnown reports whether every check that failed has an explanation. It is false when
// no check failed.
func (c *Cell) allKnown() bool {
	failed := false
	for _, k := range c.Checks {
		if !k.Pass {
			if k.Known == "" {
				return false
			}
			failed = true
		}
	}
	return failed
}

// ExplainsNothing lists the checks with an explanation that is not needed: they are as
// documented, and another level of evidence that has made the same check says the same.
// Where no other level has made it, the explanation may be for that one.
func ExplainsNothing(doc *Document) []string {
	var all []string
	for i := range doc.Cells {
		c := &doc.Cells[i]
		apart := c.Apart()
		for _, k := range c.Checks {
			beside := slices.ContainsFunc(c.Checks, func(o Check) bool { return o.What == k.What && o.Level != k.Level })
			differs := slices.ContainsFunc(apart, func(p [2]Check) bool { return p[0].What == k.What })
			if k.Known != "" && k.Pass && (beside || k.Expect != "") && !differs {
				all = append(all, c.Claim+" in "+c.Setting+": "+k.What)
			}
		}
	}
	return all
}

func liveSummary(doc *Document) *LiveSummary {
	var s *LiveSummary
	LiveChecks(doc, func(_ string, k *Check) {
		if s == nil {
			s = &LiveSummary{NotMade: map[string]int{}}
		}
		switch {
		case k.Live.NotMade != "":
			s.NotMade[k.Live.NotMade]++
			return
		case k.Live.Differs != "":
			s.Apart++
		}
		s.Made++
	})
	return s
}

// Apart lists the checks that two levels of evidence have made with another result,
// in pairs: that of the level which comes first in the cell, and the other one.
func (c *Cell) Apart() [][2]Check {
	type question struct{ what, expect string }
	first := map[question]Check{}
	var pairs [][2]Check
	for _, k := range c.Checks {
		k.Level = cmp.Or(k.Level, Model)
		if k.Level == Cluster {
			pairs = append(pairs, c.apartFromCluster(k)...)
			continue
		}
		q := question{k.What, k.Expect}
		f, ok := first[q]
		if !ok {
			first[q] = k
		} else if f.Level != k.Level && (f.Got != k.Got || f.Reason != k.Reason || f.Pass != k.Pass) {
			pairs = append(pairs, [2]Check{f, k})
		}
	}
	return pairs
}

// apartFromCluster is the first other check of the same thing that says what programs
// on the cluster would have seen differently. They cannot tell the reason, nor where a
// packet was lost; and an expectation that ends with the documents goes on there. Where
// the other check has several ways, they may see any of these.
func (c *Cell) apartFromCluster(k Check) [][2]Check {
	for _, f := range c.Checks {
		if f.What != k.What || f.Level == Cluster || bySight(f.Got) == bySight(k.Got) {
			continue
		}
		if !slices.ContainsFunc(f.Ways, func(way string) bool { return bySight(way) == bySight(k.Got) }) {
			return [][2]Check{{f, k}}
		}
	}
	return nil
}

// bySight is a verdict as far as the sender can tell.
func bySight(verdict string) string {
	switch trace.Verdict(verdict) {
	case trace.NoReply, trace.Looped:
		return string(trace.Dropped)
	}
	return verdict
}

// Add puts the checks of another level of evidence beside those of the cell. The
// outcome is that of the two which needs attention most.
func (c *Cell) Add(other *Cell) {
	c.Checks = append(c.Checks, other.Checks...)
	for _, o := range Outcomes {
		if c.Outcome == o || other.Outcome == o {
			c.Outcome = o
			return
		}
	}
}

// Words say what was asked for and what came: as verdicts where these tell, in words
// where they do not.
func (k *Check) Words() (wanted, came string) {
	return cmp.Or(k.Wanted, k.Expect), cmp.Or(k.Came, k.Got)
}

// Outcome is [Agrees] when the check passes, [Disputed] when it does not and came out
// as another source says, [Differs] when it just does not.
func (k Static) Outcome() string {
	switch {
	case k.Pass:
		return Agrees
	case k.Explained:
		return Disputed
	}
	return Differs
}

// OfClaims returns, for every claim, the outcome among its cells and static
// checks that needs attention most: a static check that passes agrees, one that
// fails differs. [Unchecked] when the claim has neither.
func OfClaims(doc *Document) map[string]string {
	worst := make(map[string]string, len(doc.Claims))
	for _, c := range doc.Claims {
		worst[c.ID] = Unchecked
	}
	rank := func(o string) int {
		if i := slices.Index(Outcomes, o); i >= 0 {
			return i
		}
		return len(Outcomes)
	}
	add := func(claim, outcome string) {
		if rank(outcome) < rank(worst[claim]) {
			worst[claim] = outcome
		}
	}
	for _, c := range doc.Cells {
		add(c.Claim, c.Outcome)
	}
	for _, k := range doc.Statics {
		add(k.Claim, k.Outcome())
	}
	return worst
}
