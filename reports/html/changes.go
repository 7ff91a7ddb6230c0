package html

import (
	_ "embed"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

//go:embed changes.tmpl
var changesTmpl string

const (
	// shownChanges is how many changes since an earlier run the report has, shownClaims how
	// many claims of each.
	shownChanges = 8
	shownClaims  = 12
)

// changes is what the first screen says of an earlier run.
type changes struct {
	Since  *result.Since
	Groups []changeView
	// More is how many groups are not shown.
	More int
}

type changeView struct {
	Says   string
	Claims []claimName
	Flows  []string
	More   int
}

type claimName struct{ ID, Title string }

// changesOf is nil where the document knows no earlier run.
func changesOf(doc *result.Document) *changes {
	if doc.Since == nil {
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
	return out
}
