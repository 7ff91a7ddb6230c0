package html

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/support"
)

// wrong is a place of a document that the findings contradict: on one side the sentence, on
// the other who says otherwise and what was found.
type wrong struct {
	// Place is the sentence, Also are other places of the same claim that say the same.
	Place result.Source
	Also  []result.Source
	// Living is set when the document still covers new versions, so that it can be fixed.
	Living  bool
	Counter []result.Source
	Claims  []wrongClaim
	// Edit is what we would propose; "" when it is not written yet.
	Edit string
}

// wrongClaim is a claim that shows it.
type wrongClaim struct {
	ID, Title string
	Found     []wrongFinding
}

// wrongFinding is what one kind of evidence found, with the settings, or for a check without
// a lab where it holds.
type wrongFinding struct {
	Level, What, Got, Kind string
	Where                  []place
	Words                  string
}

// First and More part the settings of a finding.
func (f wrongFinding) First() []place { return f.Where[:min(len(f.Where), fewSides)] }

// More is what First leaves out.
func (f wrongFinding) More() []place { return f.Where[min(len(f.Where), fewSides):] }

// wrongs lists where findings contradict a document: each check with a dispute contradicts
// one of its two sources, and a difference without one contradicts all that the claim has.
// Rules are left out: they say what documents say, and nothing is found by them.
func (v *view) wrongs(doc *result.Document, m *support.Matrix) {
	claims := map[string]*result.Claim{}
	for i := range doc.Claims {
		claims[doc.Claims[i].ID] = &doc.Claims[i]
	}
	settings := map[string]*result.Setting{}
	for i := range doc.Settings {
		settings[doc.Settings[i].ID] = &doc.Settings[i]
	}
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			if s := settings[c.Setting]; contradicts(k) {
				v.wrong(m, claims[c.Claim], k, place{Link: link(c.Claim, c.Setting), Label: label(s)}, "")
			}
		}
	}
	for _, k := range doc.Statics {
		if k.Kind != "rule" && k.Kind != "doctor" && contradicts(k.Check) {
			v.wrong(m, claims[k.Claim], k.Check, place{}, clean.Line(k.Where))
		}
	}
	slices.SortStableFunc(v.Wrong, func(a, b wrong) int {
		return cmp.Or(boolCompare(b.Living, a.Living), boolCompare(b.Edit != "", a.Edit != ""))
	})
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// contradicts reports whether a result is against some document. What the model does not
// know is against none.
func contradicts(k result.Check) bool {
	if k.Got == "unknown" || k.Got == "error" || len(k.Open) > 0 {
		return false
	}
	return k.Dispute != nil || k.Expect != "" && !k.Pass
}

// wrong adds one finding to the place that it contradicts.
func (v *view) wrong(m *support.Matrix, cl *result.Claim, k result.Check, at place, words string) {
	loser, counter := 0, 0
	if d := k.Dispute; d != nil {
		loser, counter = d.Against, d.By
		if !k.Pass {
			loser, counter = d.By, d.Against
		}
	}
	x := wrong{}
	for i, s := range cl.Sources {
		s := result.Source{Doc: clean.Line(s.Doc), Section: clean.Line(s.Section), Version: clean.Line(s.Version), URL: s.URL,
			Says: clean.Line(s.Says), Edit: clean.Line(s.Edit)}
		says := loser > 0 && loser <= len(cl.Sources) && s.Says != "" && s.Says == clean.Line(cl.Sources[loser-1].Says)
		switch {
		case i+1 == counter:
			x.Counter = append(x.Counter, s)
		case i+1 == loser, loser == 0 && x.Place.Doc == "":
			x.Place = s
		case says, loser == 0:
			x.Also = append(x.Also, s)
		}
		if i+1 == loser || says {
			x.Edit = cmp.Or(x.Edit, s.Edit)
		}
	}
	_, until, _ := strings.Cut(x.Place.Version, "-")
	x.Living = cmp.Or(until, x.Place.Version) == m.Through() ||
		slices.ContainsFunc(x.Also, func(s result.Source) bool { return strings.HasSuffix(s.Version, "-"+m.Through()) })
	o := v.placeOf(x)
	i := slices.IndexFunc(o.Claims, func(c wrongClaim) bool { return c.ID == clean.Line(cl.ID) })
	if i < 0 {
		o.Claims = append(o.Claims, wrongClaim{ID: clean.Line(cl.ID), Title: clean.Line(cl.Title)})
		i = len(o.Claims) - 1
	}
	c := &o.Claims[i]
	_, kind := word(k)
	f := wrongFinding{Level: clean.Line(string(cmp.Or(k.Level, result.Model))), What: clean.Line(k.What), Got: clean.Line(k.Got), Kind: kind,
		Words: words}
	n := slices.IndexFunc(c.Found, func(y wrongFinding) bool {
		return y.Level == f.Level && y.What == f.What && y.Got == f.Got && y.Words == f.Words
	})
	if n < 0 {
		c.Found = append(c.Found, f)
		n = len(c.Found) - 1
	}
	if at.Link != "" {
		c.Found[n].Where = append(c.Found[n].Where, at)
	}
}

// placeOf is the list's entry of a place, with what another finding says of it.
func (v *view) placeOf(x wrong) *wrong {
	same := slices.IndexFunc(v.Wrong, func(o wrong) bool {
		return o.Place.Doc == x.Place.Doc && o.Place.Section == x.Place.Section && o.Place.Says == x.Place.Says
	})
	if same < 0 {
		v.Wrong = append(v.Wrong, x)
		same = len(v.Wrong) - 1
	}
	o := &v.Wrong[same]
	o.Edit = cmp.Or(o.Edit, x.Edit)
	for _, s := range x.Counter {
		if !slices.ContainsFunc(o.Counter, func(c result.Source) bool { return c.Doc == s.Doc && c.Says == s.Says }) {
			o.Counter = append(o.Counter, s)
		}
	}
	return o
}

// Components reports whether real components found any of it.
func (w wrong) Components() bool {
	return slices.ContainsFunc(w.Claims, func(c wrongClaim) bool {
		return slices.ContainsFunc(c.Found, func(f wrongFinding) bool { return f.Level != string(result.Model) })
	})
}
