package html

import (
	_ "embed"
	"slices"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

//go:embed changes.tmpl
var changesTmpl string

const (
	// shownRuns is how many runs of a history stand in the report, shownChanges how many
	// changes since an earlier run, shownClaims how many claims of each.
	shownRuns    = 12
	shownChanges = 8
	shownClaims  = 12
)

// changes is what the first screen says of earlier runs.
type changes struct {
	Since  *result.Since
	Groups []changeView
	// More is how many groups are not shown.
	More int
	Runs []runView
	// Older is how many runs of the history are not shown.
	Older int
}

type changeView struct {
	Says   string
	Claims []claimName
	Flows  []string
	More   int
}

type claimName struct{ ID, Title string }

// runView is a run of the history, with its share of cells as documented in percent.
type runView struct {
	result.Point
	Agree, Own, Differ, Explained, Unknown, NotChecked int
	Changed                                            int
	First, Now                                         bool
}

// changesOf is nil where the document knows no earlier run.
func changesOf(doc *result.Document) *changes {
	if doc.Since == nil && len(doc.History) == 0 {
		return nil
	}
	titles := map[string]string{}
	for _, c := range doc.Claims {
		titles[c.ID] = clean.Line(c.Title)
	}
	out := &changes{}
	if s := doc.Since; s != nil {
		c := *s
		c.Name, c.Tool, c.Date = clean.Line(c.Name), clean.Line(c.Tool), clean.Line(c.Date)
		out.Since = &c
		for i, g := range s.Groups {
			if i == shownChanges {
				out.More = len(s.Groups) - i
				break
			}
			v := changeView{Says: clean.Line(g.Says)}
			for _, id := range g.Claims {
				if len(v.Claims) < shownClaims {
					v.Claims = append(v.Claims, claimName{clean.Line(id), titles[id]})
				}
			}
			for _, f := range g.Flows {
				if len(v.Claims)+len(v.Flows) < shownClaims {
					v.Flows = append(v.Flows, clean.Line(f))
				}
			}
			v.More = len(g.Claims) + len(g.Flows) - len(v.Claims) - len(v.Flows)
			out.Groups = append(out.Groups, v)
		}
	}
	points := slices.Clone(doc.History)
	slices.Reverse(points)
	for i, p := range points {
		if i == shownRuns {
			out.Older = len(points) - i
			break
		}
		p.Date, p.Tool = clean.Line(p.Date), clean.Line(p.Tool)
		v := runView{Point: p, Agree: p.Outcomes[result.Agrees], Own: p.Outcomes[result.Own], Differ: p.Outcomes[result.Differs] +
			p.Outcomes[result.Failed] + p.StaticsFailed + p.FlowsFailed,
			Explained: p.Outcomes[result.Disputed], Unknown: p.Outcomes[result.Unknown], NotChecked: p.Outcomes[result.NotChecked],
			First: p.Changed == nil, Now: i == 0}
		if p.Changed != nil {
			v.Changed = *p.Changed
		}
		out.Runs = append(out.Runs, v)
	}
	return out
}
