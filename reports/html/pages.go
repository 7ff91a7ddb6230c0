package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// systemGroup is a heading among the systems.
type systemGroup struct {
	Title   string
	Systems []systemView
}

// systemView is the head of a system's page; the script fills in its claims
// when it is opened.
type systemView struct {
	I         int
	Number    int
	ID, Title string
	Text      string
	Missing   string
	Claims    int
	Outcomes  []count // of its claims
	By        []count // claims by what checks them
	Labs      []lab
	Code      []string
}

// count is a number with its name; Means says it in words.
type count struct {
	ID, Title, Means string
	N                int
}

// lab is a design; Here is set when this run has it.
type lab struct {
	Design string
	Here   bool
}

// outcomeWords are the outcomes of a claim, the one that needs attention first.
var outcomeWords = []count{
	{ID: result.Differs, Title: "≠", Means: "differ"}, {ID: result.Failed, Title: "!", Means: "failed to run"},
	{ID: result.Disputed, Title: "⇄", Means: "differ, another source agrees"}, {ID: result.Unknown, Title: "?", Means: "unknown to the model"},
	{ID: result.NotChecked, Title: "∅", Means: "not reached by a packet"},
	{ID: result.Own, Title: "·", Means: "the model's own verdict"}, {ID: result.Agrees, Title: "=", Means: "as documented"},
	{ID: result.Unchecked, Title: "–", Means: "not checked here"},
}

func (v *view) systems(doc *result.Document) {
	claims := map[string]*result.Claim{}
	for i := range doc.Claims {
		claims[doc.Claims[i].ID] = &doc.Claims[i]
	}
	designs := map[string]bool{}
	for _, s := range doc.Settings {
		designs[s.Design] = true
	}
	of := result.OfClaims(doc)
	for i, s := range doc.Systems {
		x := systemView{I: i, Number: s.Number, ID: clean.Line(s.ID), Title: clean.Line(s.Title), Text: clean.Line(s.Text),
			Missing: clean.Line(s.Missing), Claims: len(s.Claims)}
		for _, c := range s.Code {
			x.Code = append(x.Code, clean.Line(c))
		}
		for _, d := range s.Designs {
			x.Labs = append(x.Labs, lab{clean.Line(d), designs[d]})
		}
		for _, o := range outcomeWords {
			for _, id := range s.Claims {
				if of[id] == o.ID {
					o.N++
				}
			}
			if o.N > 0 {
				x.Outcomes = append(x.Outcomes, o)
			}
		}
		for _, w := range result.Ways {
			c := count{ID: w.ID, Title: w.Title, Means: w.Means}
			for _, id := range s.Claims {
				if cl := claims[id]; cl != nil && w.Checks(cl) {
					c.N++
				}
			}
			if c.N > 0 {
				x.By = append(x.By, c)
			}
		}
		group := clean.Line(s.Group)
		at := slices.IndexFunc(v.Systems, func(g systemGroup) bool { return g.Title == group })
		if at < 0 {
			v.Systems = append(v.Systems, systemGroup{Title: group})
			at = len(v.Systems) - 1
		}
		v.Systems[at].Systems = append(v.Systems[at].Systems, x)
		v.SystemsTotal++
	}
}

// staticKinds are the kinds of static checks in the order of the page.
var staticKinds = []staticKind{
	{ID: "rule", Title: "rules", One: "rule",
		Means: "A rule looks at manifests, node configuration or the setting. It is tried on an example that it must find and on one that it must not."},
	{ID: "placement", Title: "placements", One: "placement",
		Means: "Which nodes the scheduler may choose for a pod, and on which of them its containers can start."},
	{ID: "resources", Title: "checks of resources", One: "check of resources",
		Means: "What the kubelet of a Windows node makes of reserves, limits and requests."},
	{ID: "doctor", Title: "folders of nodes", One: "folder of a node",
		Means: "What is found in a folder with the files and outputs of a node."},
}

type staticKind struct {
	ID, Title, One, Means string
	// Disputed did not come out as one source says, and another contradicts it.
	N, Failed, Disputed int
}

// Held is how many came out as the claim says.
func (k staticKind) Held() int { return k.N - k.Failed - k.Disputed }

// staticDiff is a static check that did not come out as the claim says.
type staticDiff struct {
	Claim, Title, Area, Kind string
	What, Where, Expect, Got string
	Why                      string
}

func (v *view) statics(doc *result.Document) {
	claims := map[string]*result.Claim{}
	for i := range doc.Claims {
		claims[doc.Claims[i].ID] = &doc.Claims[i]
	}
	areas := map[string]string{}
	for _, a := range doc.Areas {
		areas[a.ID] = clean.Line(a.Title)
	}
	kinds := slices.Clone(staticKinds)
	for _, k := range doc.Statics {
		at := slices.IndexFunc(kinds, func(x staticKind) bool { return x.ID == k.Kind })
		if at < 0 {
			kinds = append(kinds, staticKind{ID: clean.Line(k.Kind), Title: clean.Line(k.Kind), One: clean.Line(k.Kind)})
			at = len(kinds) - 1
		}
		kinds[at].N++
		v.StaticsTotal++
		switch k.Outcome() {
		case result.Agrees:
			continue
		case result.Disputed:
			kinds[at].Disputed++
			continue
		}
		kinds[at].Failed++
		cl := claims[k.Claim] // Validate made sure that it is there
		v.StaticDiffs = append(v.StaticDiffs, staticDiff{Claim: clean.Line(k.Claim), Title: clean.Line(cl.Title), Area: areas[cl.Area],
			Kind: clean.Line(k.Kind), What: clean.Line(k.What), Where: clean.Line(k.Where),
			Expect: clean.Line(k.Expect), Got: clean.Line(k.Got), Why: clean.Line(k.Summary)})
	}
	v.StaticKinds = slices.DeleteFunc(kinds, func(k staticKind) bool { return k.N == 0 })
}

// coverageRow is an area in the table of coverage.
type coverageRow struct {
	ID, Title                            string
	Claims, Checked, Unchecked, Disputed int
	Percent                              int // of the claims that something could check: all but those that need nothing
	By, Needs                            []count
}

func (v *view) coverage(doc *result.Document) {
	c := result.CoverageOf(doc.Areas, doc.Claims)
	for _, w := range result.Ways {
		v.Ways = append(v.Ways, count{ID: w.ID, Title: w.Title, Means: w.Means, N: c.Total.By[w.ID]})
	}
	for _, n := range result.Needs {
		if n.ID == "unsaid" && c.Total.Needs[n.ID] == 0 {
			continue
		}
		title := "needs a " + n.ID
		switch n.ID {
		case "nothing":
			title = "nothing to run"
		case "unsaid":
			title = "unsaid"
		}
		v.Needs = append(v.Needs, count{ID: n.ID, Title: title, Means: n.Means, N: c.Total.Needs[n.ID]})
	}
	row := func(a result.AreaCoverage) coverageRow {
		r := coverageRow{ID: a.Area, Title: clean.Line(a.Title), Claims: a.Claims, Checked: a.Checked, Unchecked: a.Unchecked,
			Disputed: a.Disputed}
		if a.Claims > 0 {
			r.Percent = 100 * a.Checked / a.Claims
		}
		for _, w := range v.Ways {
			w.N = a.By[w.ID]
			r.By = append(r.By, w)
		}
		for _, n := range v.Needs {
			n.N = a.Needs[n.ID]
			r.Needs = append(r.Needs, n)
		}
		return r
	}
	for _, a := range c.Areas {
		v.Coverage = append(v.Coverage, row(a))
	}
	v.CoverageTotal = row(c.Total)
}

// needGroup are the claims without a check that wait for one thing.
type needGroup struct {
	ID, Title string
	Claims    []uncheckedClaim
}

// unchecked groups claims that nothing checks by what they need. Claims that
// have checks, none of which applies in a setting of this run, are a group of
// their own.
func (v *view) unchecked(doc *result.Document, cells map[string]map[string]*result.Cell) {
	static := map[string]bool{}
	for _, k := range doc.Statics {
		static[k.Claim] = true
	}
	areas := map[string]string{}
	for _, a := range doc.Areas {
		areas[a.ID] = clean.Line(a.Title)
	}
	groups := map[string]*needGroup{}
	var order []*needGroup
	group := func(id, title string) {
		groups[id] = &needGroup{ID: id, Title: title}
		order = append(order, groups[id])
	}
	for _, n := range result.Needs {
		group(n.ID, n.Means)
	}
	group("elsewhere", "have checks, none of which applies in a setting of this run")
	group("spec", "are checked on a cluster, and this run has no result of one")
	for i := range doc.Claims {
		cl := &doc.Claims[i]
		if len(cells[cl.ID]) > 0 || static[cl.ID] {
			continue
		}
		id := result.NeedsOf(cl)
		why := clean.Line(cl.Unchecked)
		if len(cl.CheckedBy) > 0 {
			id, why = "elsewhere", "checks: "+clean.Line(strings.Join(cl.CheckedBy, ", "))
			if onlyOnClusters(cl) {
				id, why = "spec", "winlab-e2e tries it"
			}
		}
		groups[id].Claims = append(groups[id].Claims, uncheckedClaim{clean.Line(cl.ID), clean.Line(cl.Title), areas[cl.Area], cl.Area, why})
		v.UncheckedTotal++
	}
	for _, g := range order {
		if len(g.Claims) > 0 {
			v.Unchecked = append(v.Unchecked, *g)
		}
	}
}

// onlyOnClusters reports whether specs are all that checks a claim.
func onlyOnClusters(cl *result.Claim) bool {
	return len(cl.CheckedBy) == 1 && cl.CheckedBy[0] == "cluster"
}

// rowWords says in the matrix what checks a claim that has no cell.
func rowWords(cl *result.Claim, ks []result.Static) (text, class string) {
	if len(ks) == 0 {
		switch {
		case onlyOnClusters(cl):
			return "not checked here: a spec tries it on a cluster", "un"
		case len(cl.CheckedBy) > 0:
			return "no setting of this run is in the range of its checks", "un"
		case cl.Needs == "cluster", cl.Needs == "lab":
			return "nothing checks it; it needs a " + cl.Needs, "un"
		case cl.Needs == "node":
			return "nothing checks it; it needs a real Windows node", "un"
		}
		return "nothing checks it", "un"
	}
	class = result.Agrees
	var parts []string
	failed := 0
	for _, kind := range staticKinds {
		n := 0
		for _, k := range ks {
			if k.Kind == kind.ID {
				n++
				switch k.Outcome() {
				case result.Agrees:
				case result.Disputed:
					class = result.Disputed
				default:
					failed++
				}
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, kind.One, kind.Title)))
		}
	}
	text = strings.Join(parts, ", ")
	switch {
	case failed > 0:
		return fmt.Sprintf("%s, %d not as documented", text, failed), result.Differs
	case cl.Disputed:
		class = result.Disputed
	}
	return text, class
}
