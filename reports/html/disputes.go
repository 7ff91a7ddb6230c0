package html

import (
	"slices"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// dispute is a claim on which sources contradict each other.
type dispute struct {
	ID, Title, Text string
	Area, AreaTitle string
	Sources         []result.Source
	Positions       []position
	Sides           []side
	Statics         []staticSide
	// Why says why nothing was asked; "" when something was.
	Why string
}

// position is the documented status in a range, where it is disputed.
type position struct {
	Status, Where, Says string
	scope
}

// side is a verdict of the model, with the settings in which it is.
type side struct {
	Word, Kind string
	Where      []place
}

// First and More part the settings of a side.
func (s side) First() []place { return s.Where[:min(len(s.Where), fewSides)] }

// More is what First leaves out.
func (s side) More() []place { return s.Where[min(len(s.Where), fewSides):] }

// fewSides is how many settings a side lists unfolded.
const fewSides = 4

// staticSide is what a check without a lab takes as true.
type staticSide struct {
	Kind, Where, Says string
	Mark, Class       string
	scope
}

// disputes lists the claims that are disputed as a whole or in a cell.
func (v *view) disputes(doc *result.Document, cells map[string]map[string]*result.Cell) {
	statics := map[string][]result.Static{}
	for _, k := range doc.Statics {
		statics[k.Claim] = append(statics[k.Claim], k)
	}
	areas := map[string]string{}
	for _, a := range doc.Areas {
		areas[a.ID] = clean.Line(a.Title)
	}
	words := newScoper(doc)
	for i := range doc.Claims {
		cl := &doc.Claims[i]
		disputed := cl.Disputed
		for _, c := range cells[cl.ID] {
			disputed = disputed || c.Outcome == result.Disputed
		}
		if !disputed {
			continue
		}
		d := dispute{ID: clean.Line(cl.ID), Title: clean.Line(cl.Title), Text: clean.Line(cl.Text), Area: cl.Area, AreaTitle: areas[cl.Area]}
		for _, s := range cl.Sources {
			d.Sources = append(d.Sources, result.Source{Doc: clean.Line(s.Doc), Section: clean.Line(s.Section), Version: clean.Line(s.Version),
				URL: s.URL, Says: clean.Line(s.Position())})
		}
		for _, h := range cl.History {
			if h.Status == result.Disputed || h.Says != "" {
				d.Positions = append(d.Positions, position{h.Status, clean.Line(h.Where), clean.Line(h.Says), words.parseScope(h.Where)})
			}
		}
		for _, k := range statics[cl.ID] {
			x := staticSide{Kind: clean.Line(k.Kind), Where: clean.Line(k.Where), Says: clean.Line(k.What), Mark: "≠", Class: "badmark",
				scope: words.parseScope(k.Where)}
			switch k.Outcome() {
			case result.Agrees:
				x.Mark, x.Class = "✓", "okmark"
			case result.Disputed: // a difference that the other source explains
				x.Mark, x.Class = "⇄", "dismark"
			}
			switch {
			case k.Rule != nil:
				x.Says = clean.Line(ruleText(k))
			case k.Got != "":
				x.Says += ": " + clean.Line(k.Got)
			}
			d.Statics = append(d.Statics, x)
		}
		d.sides(doc, cl, cells[cl.ID])
		if len(d.Sides) == 0 && len(d.Statics) == 0 {
			d.Why = clean.Line(cl.Unchecked)
			if d.Why == "" {
				d.Why = "it is not disputed in any setting of this run"
			}
		}
		v.Disputes = append(v.Disputes, d)
	}
}

func (d *dispute) sides(doc *result.Document, cl *result.Claim, cells map[string]*result.Cell) {
	for i := range doc.Settings {
		s := &doc.Settings[i]
		c := cells[s.ID]
		if c == nil || c.Outcome != result.Disputed && !cl.Disputed {
			continue
		}
		for _, w := range words(c.Checks) {
			if w.Level != string(result.Model) {
				continue
			}
			at := slices.IndexFunc(d.Sides, func(x side) bool { return x.Word == w.Word })
			if at < 0 {
				d.Sides = append(d.Sides, side{Word: w.Word, Kind: w.Kind})
				at = len(d.Sides) - 1
			}
			d.Sides[at].Where = append(d.Sides[at].Where, place{link(cl.ID, s.ID), label(s), clean.Line(s.Kubernetes), "d:" + clean.Line(s.Design)})
		}
	}
}
