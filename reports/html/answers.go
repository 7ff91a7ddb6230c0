package html

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/products"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/support"
)

// answers packs whether features work. The index has one letter for the state and one for
// the evidence of every claim, design, version and release, which is all that lists need;
// the sentences are an item of a part for each claim.
type answers struct {
	m      *support.Matrix
	rows   unique[string]
	grids  unique[string]
	gridOf [][]int
}

// unique numbers different values.
type unique[T comparable] struct {
	list []T
	at   map[T]int
}

func (u *unique[T]) number(v T) int {
	if n, ok := u.at[v]; ok {
		return n
	}
	if u.at == nil {
		u.at = map[T]int{}
	}
	u.at[v] = len(u.list)
	u.list = append(u.list, v)
	return u.at[v]
}

// stateLetters are the states in the index; a capital is contested.
var stateLetters = map[support.State]byte{support.Works: 'w', support.Conditions: 'c', support.DoesNot: 'n', support.Unknown: 'u'}

// letters are the state of an answer and what it rests on: r is tried with real programs
// or on a cluster here, m in the model here, o tried elsewhere only, d nothing but documents.
func letters(a *support.Answer) string {
	s := stateLetters[a.State]
	if a.Contested {
		s -= 'a' - 'A'
	}
	tried := func(e support.Evidence) bool {
		return e.Relation == support.Agrees || e.Relation == support.Contradicts || e.Relation == support.Own
	}
	e := byte('d')
	switch {
	case tried(a.Components), tried(a.Cluster), tried(a.Simulated):
		e = 'r'
	case tried(a.Model):
		e = 'm'
	case a.Model.Relation == support.Near, a.Components.Relation == support.Near, a.Cluster.Relation == support.Near,
		a.Simulated.Relation == support.Near:
		e = 'o'
	}
	return string([]byte{s, e})
}

// gridNumbers are the numbers of the claim's grids in the index: one for each release as
// it is fully patched, and one for all releases.
func (x *answers) gridNumbers(t *support.Table) []int {
	var out []int
	for w := range t.Windows {
		if t.Windows[w].Before != 0 {
			continue
		}
		var rows []int
		var key strings.Builder
		for _, row := range t.Cells[w] {
			var b strings.Builder
			for _, n := range row {
				if n < 0 {
					b.WriteString("--")
				} else {
					b.WriteString(letters(&t.Answers[n]))
				}
			}
			n := x.rows.number(b.String())
			rows = append(rows, n)
			key.WriteString(b.String())
			key.WriteByte('/')
		}
		n := x.grids.number(key.String())
		if n == len(x.gridOf) {
			x.gridOf = append(x.gridOf, rows)
		}
		out = append(out, n)
	}
	return out
}

// answerItem is what the answer page of a claim needs.
type answerItem struct {
	Windows []support.Windows `json:"windows"`
	Answers []support.Answer  `json:"answers"`
	// Rows are numbers of answers by version, Grid numbers of rows by Windows and design.
	Rows    [][]int `json:"rows"`
	Grid    [][]int `json:"grid"`
	Related []int   `json:"related,omitempty"`
	// Feature is what is tried where the feature itself is.
	Feature []string `json:"feature,omitempty"`
}

func (x *answers) item(t *support.Table, number map[string]int) answerItem {
	out := answerItem{Windows: t.Windows, Answers: t.Answers, Feature: t.Feature}
	for _, cells := range t.Cells {
		var grid []int
		for _, row := range cells {
			at := slices.IndexFunc(out.Rows, func(r []int) bool { return slices.Equal(r, row) })
			if at < 0 {
				at = len(out.Rows)
				out.Rows = append(out.Rows, row)
			}
			grid = append(grid, at)
		}
		out.Grid = append(out.Grid, grid)
	}
	for _, id := range t.Related {
		out.Related = append(out.Related, number[id])
	}
	return out
}

type designName struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Network string `json:"network"`
	Plugin  string `json:"plugin"`
	Run     bool   `json:"run,omitempty"` // the run has it
}

type releaseName struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Channel string `json:"channel"`
	Build   string `json:"build"`
	// Nodes has for every version 1 where the documents name it as a node.
	Nodes string `json:"nodes"`
}

// axes are what the lists and the answer pages share.
func (x *answers) axes(doc *result.Document) map[string]any {
	var designs []designName
	for _, d := range x.m.Designs {
		run := slices.ContainsFunc(doc.Settings, func(s result.Setting) bool { return s.Design == d.Name })
		designs = append(designs, designName{clean.Line(d.Name), clean.Line(x.m.Titles[d.Name]), clean.Line(d.Network), clean.Line(d.Plugin),
			run})
	}
	var releases []releaseName
	for _, r := range products.Releases() {
		var nodes strings.Builder
		for _, v := range x.m.Versions {
			c := byte('0')
			if s := x.m.Node(r.Name, v); s == support.Works || s == support.Conditions {
				c = '1'
			}
			nodes.WriteByte(c)
		}
		releases = append(releases, releaseName{r.Name, r.Title, r.Channel, r.Build, nodes.String()})
	}
	return map[string]any{"versions": list(x.m.Versions), "through": x.m.Through(), "designs": list(designs), "releases": releases,
		"rows": list(x.rows.list), "grids": list(x.gridOf), "hosted": hosted()}
}

// hosted are the distributions of Kubernetes, as the page shows them.
func hosted() []map[string]any {
	var all []map[string]any
	for _, h := range products.HostedKubernetes() {
		var sources []result.Source
		for _, s := range h.Sources {
			sources = append(sources, result.Source{Doc: s.Doc, URL: s.URL})
		}
		all = append(all, map[string]any{"name": h.Name, "title": h.Title, "designs": h.Designs, "says": h.Says, "sources": sources})
	}
	return all
}

// findText is what a search looks at: the claim, its sources and what they say, its checks,
// and the names of the releases that it is about.
func findText(cl *result.Claim, statics []result.Static) string {
	parts := []string{cl.ID, cl.Title, cl.Text}
	for _, s := range cl.Sources {
		parts = append(parts, s.Doc, s.Section, s.Says)
	}
	scopes := []*result.Scope{}
	for _, h := range cl.History {
		parts = append(parts, h.Says)
		scopes = append(scopes, h.Scope)
	}
	for i := range cl.Asks {
		parts = append(parts, cl.Asks[i].What, cl.Asks[i].Condition)
		scopes = append(scopes, &cl.Asks[i].Scope)
	}
	if t := cl.Trouble; t != nil {
		parts = append(parts, t.Symptom, t.Cause, t.Cure)
	}
	for _, k := range statics {
		if k.Rule != nil {
			parts = append(parts, k.Rule.Field, k.Rule.Says)
		}
	}
	text := strings.Join(parts, " ")
	var names []string
	for _, r := range products.Releases() {
		about := strings.Contains(text, r.Title) || strings.Contains(text, strings.TrimPrefix(r.Build, "10.0."))
		for _, s := range scopes {
			about = about || s != nil && (slices.Contains(s.Releases, r.Name) || strings.Contains(s.Build, r.Build))
		}
		if about {
			names = append(names, r.Title, cmp.Or(strings.ToLower(r.Channel), "")+r.Name, r.Build)
		}
	}
	// The same word twice finds nothing more.
	var words []string
	seen := map[string]bool{}
	for _, w := range strings.Fields(strings.ToLower(clean.Line(text + " " + strings.Join(names, " ")))) {
		if !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// axes fills in what can be asked for.
func (v *view) axes(doc *result.Document) {
	m := support.New(doc)
	v.wrongs(doc, m)
	v.AllVersions, v.Releases = m.Versions, products.Releases()
	for _, d := range m.Designs {
		v.AllDesigns = append(v.AllDesigns, designName{Name: clean.Line(d.Name), Title: clean.Line(m.Titles[d.Name])})
	}
}

// list is a list that is [] when it is empty, and not null.
func list[T any](s []T) []T { return append([]T{}, s...) }
