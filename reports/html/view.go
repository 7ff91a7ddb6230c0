package html

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/products"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// view is what the template of the report shows.
type view struct {
	frame
	Tool, Command string
	// Date is when the run began.
	Date        string
	Changes     *changes
	Tiles       []tile
	Groups      []group
	Settings    []setting
	Columns     int
	Areas       []area
	Differences []difference
	Disputes    []dispute
	Wrong       []wrong
	Incidents   []incident
	Flows       []flowRow // of labs that are not incidents, the failed ones first
	FlowsFailed int
	FlowsTotal  int
	AsExpected  bool
	// Unknown and Contested count the cells that neither confirm nor contradict.
	Unknown, Contested int
	Claims, Cells      int
	Versions           []string
	// AllVersions, AllDesigns and Releases are what can be asked for, also without a column.
	AllVersions    []string
	AllDesigns     []designName
	Releases       []products.Release
	Builds         []string
	Networks       []string
	Unchecked      []needGroup
	UncheckedTotal int
	Systems        []systemGroup
	SystemsTotal   int
	StaticKinds    []staticKind
	StaticsTotal   int
	StaticDiffs    []staticDiff
	Coverage       []coverageRow
	CoverageTotal  coverageRow
	Ways, Needs    []count
	Notices        []notice
	Wide           int // columns of the matrix that are settings
	Real           *real
	Live           *live
	Clusters       []cluster
	// Known counts the checks that differ and are explained.
	Known int
}

// Differing counts the rows of the differences.
func (v *view) Differing() int { return len(v.Differences) + len(v.StaticDiffs) }

type tile struct {
	ID, Label, Do string
	Claims, Cells int
}

type group struct {
	Design, Title, Network string
	Span                   int
}

type setting struct {
	I                          int
	ID, Design, Variant, Title string
	Network, Plugin, Proxy     string
	Kubernetes, Builds, Hint   string
	Small                      string // what distinguishes columns of one version
	First                      bool   // of its group
}

type area struct {
	ID, Title string
	Rows      []rowView
	Differ    int
}

type rowView struct {
	I         int
	ID, Title string
	// What says what checks a claim that has no cell; Class its outcome.
	What, Class string
	Cells       []cellView
}

type cellView struct {
	S       int
	First   bool
	Class   string // outcome, "none" when there is no cell
	Doc     string // works, fails, ...
	Mark    string // the glyph of Doc
	Words   []levelWord
	Outcome string // the glyph of the outcome
}

type levelWord struct{ Level, Word, Kind string }

type difference struct {
	Claim, Title, Area     string
	Documented, Basis, Got string
	// Expect is the verdict that was asked for, Says what another source says where that
	// explains the difference.
	Expect, Says string
	Reason, Why  string
	Outcome      string
	// Level is the evidence that differs, Known its explanation, where there is one.
	Level, Known string
	Where        []place
}

// fewPlaces is how many settings a row of the differences lists unfolded.
const fewPlaces = 12

// First and More part the settings of a difference, so that one which is
// everywhere does not push the matrix off the page.
func (d difference) First() []place { return d.Where[:min(len(d.Where), fewPlaces)] }

// More is what First leaves out.
func (d difference) More() []place { return d.Where[min(len(d.Where), fewPlaces):] }

// place is a cell to go to; V and N are its version and design for filters.
type place struct{ Link, Label, V, N string }

type incident struct {
	Lab, Title, Incident, URL string
	File                      string
	Rows                      []flowRow
}

type flowRow struct {
	Link, Lab, Variant, Name, What string
	VariantTitle, Setting          string
	Expect, Got, Kind, Reason, Why string
	Pass, Open                     bool
}

// notice is something that a lab says and the simulation does not follow; Where lists
// the variant or the settings.
type notice struct{ What, At, Why, Lab, Where string }

type uncheckedClaim struct{ ID, Title, AreaTitle, Area, Why string }

// docMark is the glyph for what the documents say; the legend has the words.
var docMark = map[string]string{"works": "✓", "fails": "✕", "conditional": "◐", "disputed": "⇄", "silent": "·"}

// outcomeMark is the glyph for what needs attention.
var outcomeMark = map[string]string{result.Differs: "≠", result.Failed: "!", result.Disputed: "⇄", result.Unknown: "?",
	result.NotChecked: "∅"}

// verdictWord is the short form of a verdict in a cell, and its kind.
var verdictWord = map[string][2]string{
	"delivered": {"ok", "ok"}, "varies": {"varies", "mid"}, "no-reply": {"no reply", "no"}, "rejected": {"refused", "no"},
	"dropped": {"dropped", "no"},
	"looped":  {"loops", "no"}, "unresolved": {"no name", "no"}, "unknown": {"unknown", "hole"}, "error": {"error", "err"},
}

// word is the short form of one check.
func word(k result.Check) (string, string) {
	if w, ok := verdictWord[k.Got]; ok {
		return w[0], w[1]
	}
	switch {
	case k.Expect == "":
		return "seen", "mid"
	case k.Pass:
		return "holds", "ok"
	}
	return "not so", "no"
}

// words sums the checks of a cell up, one word for each level of evidence.
func words(checks []result.Check) []levelWord {
	var out []levelWord
	for _, l := range []result.Level{result.Model, result.Components, result.Cluster} {
		var w levelWord
		failed := false
		for _, k := range checks {
			if k.Level != l && (k.Level != "" || l != result.Model) {
				continue
			}
			s, kind := word(k)
			switch {
			case w.Word == "" || !k.Pass && !failed:
				w = levelWord{string(l), s, kind}
			case s != w.Word && !failed:
				w.Word, w.Kind = "mixed", "mid"
			}
			failed = failed || !k.Pass
		}
		if w.Word != "" {
			out = append(out, w)
		}
	}
	return out
}

// link is the fragment of a cell; the slashes of identifiers stay readable.
func link(claim, setting string) string { return "#cell=" + fragment(claim+"/"+setting) }

func fragment(s string) string { return strings.ReplaceAll(url.PathEscape(clean.Line(s)), "%2F", "/") }

// flowIDs names flows by lab, variant and name, so that a link stays good in
// the next run; a number follows where that is not unique.
func flowIDs(fs []result.FlowResult) []string {
	seen := map[string]int{}
	var out []string
	for _, f := range fs {
		id := f.Lab + "/" + f.Variant + "/" + f.Name
		if f.Setting != "" {
			id += "/" + f.Setting
		}
		if f.Step != "" {
			id += "/" + f.Step
		}
		seen[id]++
		if n := seen[id]; n > 1 {
			id = fmt.Sprintf("%s/%d", id, n)
		}
		out = append(out, id)
	}
	return out
}

func label(s *result.Setting) string {
	l := s.Title
	if l == "" {
		l = s.Design
	}
	if s.Variant != "" {
		l += " " + s.Variant
	}
	return clean.Line(strings.TrimSpace(l + " " + s.Kubernetes))
}

func addNew(list *[]string, s string) {
	if s != "" && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// small is the second line of a column's heading: the variant, or build and DSR.
func small(s *result.Setting) string {
	if s.Variant != "" {
		return clean.Line(s.Variant)
	}
	var parts []string
	if len(s.Builds) > 0 {
		parts = append(parts, strings.TrimPrefix(s.Builds[0], "10.0."))
	}
	if strings.Contains(s.Proxy, "DSR") {
		parts = append(parts, "DSR")
	}
	return clean.Line(strings.Join(parts, " "))
}

func newView(doc *result.Document) *view {
	v := &view{Tool: clean.Line(doc.Tool), Command: clean.Line(doc.Command), Date: clean.Line(doc.Date), Changes: changesOf(doc),
		Columns: len(doc.Settings) + 1, Claims: len(doc.Claims), Cells: len(doc.Cells)}
	index := map[string]int{}
	for i := range doc.Settings {
		s := &doc.Settings[i]
		index[s.ID] = i
		first := i == 0 || doc.Settings[i-1].Design != s.Design
		if first {
			title := s.Title
			if title == "" {
				title = s.Design
			}
			v.Groups = append(v.Groups, group{clean.Line(s.Design), clean.Line(title), clean.Line(s.Network), 0})
		}
		v.Groups[len(v.Groups)-1].Span++
		x := setting{I: i, ID: clean.Line(s.ID), Design: clean.Line(s.Design), Variant: clean.Line(s.Variant), Title: label(s),
			Network: clean.Line(s.Network), Plugin: clean.Line(s.Plugin), Proxy: clean.Line(s.Proxy),
			Kubernetes: clean.Line(s.Kubernetes), Builds: clean.Line(strings.Join(s.Builds, " ")), First: first}
		x.Hint = fmt.Sprintf("%s: %s on %s, kube-proxy %s, Kubernetes %s, Windows %s", x.Design, x.Plugin, x.Network, x.Proxy, x.Kubernetes,
			x.Builds)
		x.Small = small(s)
		v.Settings = append(v.Settings, x)
		addNew(&v.Versions, x.Kubernetes)
		addNew(&v.Networks, x.Network)
		for _, b := range s.Builds {
			addNew(&v.Builds, clean.Line(b))
		}
	}
	slices.Sort(v.Builds)
	cells := map[string]map[string]*result.Cell{}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if cells[c.Claim] == nil {
			cells[c.Claim] = map[string]*result.Cell{}
		}
		cells[c.Claim][c.Setting] = c
	}
	statics := map[string][]result.Static{}
	for _, k := range doc.Statics {
		statics[k.Claim] = append(statics[k.Claim], k)
	}
	for _, a := range doc.Areas {
		v.Areas = append(v.Areas, area{ID: a.ID, Title: clean.Line(a.Title)})
	}
	areaOf := func(id string) *area {
		i := slices.IndexFunc(v.Areas, func(a area) bool { return a.ID == id })
		return &v.Areas[i] // Validate made sure that it is there
	}
	for i := range doc.Claims {
		cl := &doc.Claims[i]
		a := areaOf(cl.Area)
		row := rowView{I: i, ID: clean.Line(cl.ID), Title: clean.Line(cl.Title)}
		if len(cells[cl.ID]) == 0 {
			row.What, row.Class = rowWords(cl, statics[cl.ID])
			if row.Class == result.Differs {
				a.Differ++
			}
		}
		for j := range doc.Settings {
			c := cells[cl.ID][doc.Settings[j].ID]
			if c != nil && c.Outcome == result.Differs {
				a.Differ++
			}
			if row.What == "" {
				row.Cells = append(row.Cells, cellOf(c, j, v.Settings[j].First))
			}
		}
		a.Rows = append(a.Rows, row)
		v.differences(doc, cl, a.Title, cells[cl.ID])
	}
	v.Wide = max(len(doc.Settings), 1)
	v.Areas = slices.DeleteFunc(v.Areas, func(a area) bool { return len(a.Rows) == 0 })
	v.disputes(doc, cells)
	v.unchecked(doc, cells)
	v.systems(doc)
	v.statics(doc)
	v.coverage(doc)
	v.tiles(doc)
	v.flows(doc)
	v.notices(doc)
	v.components(doc)
	v.live(doc)
	v.clusters(doc)
	v.Known = doc.Summary.Known
	v.axes(doc)
	return v
}

func cellOf(c *result.Cell, i int, first bool) cellView {
	if c == nil {
		return cellView{S: i, First: first, Class: "none"}
	}
	return cellView{S: i, First: first, Class: c.Outcome, Doc: c.Documented, Mark: docMark[c.Documented], Words: words(c.Checks),
		Outcome: outcomeMark[c.Outcome]}
}
