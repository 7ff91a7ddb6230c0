// Package site writes a run's results as a folder of web pages: one for each claim, network
// design and incident, at addresses that stay, so that they can be linked and found by a
// search engine. The report with the traces is one of its files. The pages need no script
// but for the search on the first one. The package reads results; it must not know how they
// came about.
package site

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/html"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/support"
)

var (
	//go:embed site.tmpl
	pagesTmpl string
	//go:embed site.css
	styleCSS []byte
	//go:embed search.js
	searchJS []byte
)

// ReportFile is the file with the whole report.
const ReportFile = "report.html"

// marker is in the folder of a site, so that no other folder is taken for one.
const marker = "winlab-site.txt"

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("site").Funcs(template.FuncMap{"word": support.Heading, "mark": mark}).Parse(pagesTmpl))
})

// marks are a sign for each state, beside its words: colour alone says nothing to some.
var marks = map[support.State]string{support.Works: "✓", support.Conditions: "◐", support.DoesNot: "✕", support.Unknown: "?"}

func mark(s support.State) string { return marks[s] }

// Write writes the site of a document into a folder and returns how many files it has. The
// folder is made; one that has other files than those of a site is an error, and files of
// the site before that are not written again are removed.
func Write(dir string, doc *result.Document) (int, error) {
	if err := claimFolder(dir); err != nil {
		return 0, err
	}
	s := newSite(doc)
	report, err := html.Report(doc)
	if err != nil {
		return 0, err
	}
	files := map[string][]byte{ReportFile: report, "style.css": styleCSS, "search.js": searchJS,
		marker: []byte("This folder was written by winlab site, and is written anew by it.\n")}
	add := func(name, kind string, data any) error {
		var b bytes.Buffer
		if err := pages().ExecuteTemplate(&b, kind, data); err != nil {
			return fmt.Errorf("site: %s: %w", name, err)
		}
		files[name] = b.Bytes()
		return nil
	}
	var errs []error
	for _, c := range s.Claims {
		errs = append(errs, add(c.File, "claim", page{s, c.Title, "../", c}))
	}
	for _, d := range s.Designs {
		errs = append(errs, add(d.File, "design", page{s, d.Title, "../", d}))
	}
	for _, i := range s.Incidents {
		errs = append(errs, add(i.File, "incident", page{s, i.Title, "../", i}))
	}
	errs = append(errs, add("index.html", "index", page{s, "Windows nodes in Kubernetes: what works", "", nil}))
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return len(files), replace(dir, files)
}

// page is what a template gets: Up is the way to the first page.
type page struct {
	Site  *site
	Title string
	Up    string
	Of    any
}

// claimFolder refuses a folder that has other files.
func claimFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil && len(entries) > 0 {
		return fmt.Errorf(
			"%s has other files, and winlab site replaces the whole folder; name an empty folder, or one that winlab site has written", dir)
	}
	return nil
}

// replace writes the files and removes pages that are no longer there.
func replace(dir string, files map[string][]byte) error {
	for _, sub := range []string{"claims", "designs", "incidents"} {
		old, err := filepath.Glob(filepath.Join(dir, sub, "*.html"))
		if err != nil {
			return err
		}
		for _, file := range old {
			if files[path.Join(sub, filepath.Base(file))] == nil {
				if err := os.Remove(file); err != nil {
					return err
				}
			}
		}
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := outfile.WriteFile(file, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// site is all that pages are about.
type site struct {
	Tool, Command, Date string
	Versions            []string
	Through             string
	Areas               []area
	Claims              []*claim
	Designs             []*design
	Incidents           []*incident
	// Counts are the claims by state in the newest version that documents were read for.
	Counts []count
}

type count struct {
	State support.State
	N     int
}

type area struct {
	Title  string
	Claims []*claim
}

// claim is the page of a claim.
type claim struct {
	ID, Title, Text, File string
	// State is that of the newest version that documents were read for, any design and
	// Windows, where all designs have the same; Mixed is set where they differ.
	State     support.State
	Mixed     bool
	Answers   []answer
	ByWindows []onWindows
	Sources   []result.Source
	History   []result.Status
	Trouble   *result.Trouble
	Unchecked string
	Related   []*claim
	Commands  []string
}

// onWindows are answers on one release of Windows Server.
type onWindows struct {
	Title   string
	Answers []answer
}

// answer is a reply with the page of its design.
type answer struct {
	support.Reply
	DesignTitle, DesignFile string
	Level                   []string // the kinds of evidence, in words
}

// design is the page of a network design.
type design struct {
	Name, Title, File string
	Network, Plugin   string
	Rows              []designRow
}

type designRow struct {
	Claim *claim
	Reply support.Reply
}

// incident is the page of an incident.
type incident struct {
	Title, Lab, Thread, File, Source string
	Variants                         []variant
}

type variant struct {
	Name, Title string
	Flows       []result.FlowResult
}

// namer makes names of files that no two things share.
type namer map[string]bool

func (n namer) file(folder, name string) string {
	stem := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	stem = strings.TrimLeft(stem, ".-")
	for i := 1; ; i++ {
		file := path.Join(folder, stem+".html")
		if stem == "" || i > 1 {
			file = path.Join(folder, fmt.Sprintf("%s_%d.html", stem, i))
		}
		if !n[file] {
			n[file] = true
			return file
		}
	}
}

func newSite(doc *result.Document) *site {
	m := support.New(doc)
	s := &site{Tool: clean.Line(doc.Tool), Command: clean.Line(doc.Command), Date: clean.Line(doc.Date), Versions: m.Versions,
		Through: m.Through()}
	names := namer{}
	designs := map[string]*design{}
	for _, d := range m.Designs {
		x := &design{Name: clean.Line(d.Name), Title: clean.Line(m.Titles[d.Name]), File: names.file("designs", d.Name)}
		for _, set := range doc.Settings {
			if set.Design == d.Name {
				x.Network, x.Plugin = clean.Line(set.Network), clean.Line(set.Plugin)
			}
		}
		designs[d.Name] = x
		s.Designs = append(s.Designs, x)
	}
	commands := map[string][]string{}
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			if k.Command != "" && len(commands[c.Claim]) < 3 && !slices.Contains(commands[c.Claim], k.Command) {
				commands[c.Claim] = append(commands[c.Claim], k.Command)
			}
		}
	}
	byID := map[string]*claim{}
	for i := range doc.Claims {
		c := &doc.Claims[i]
		x := &claim{ID: clean.Line(c.ID), Title: clean.Line(c.Title), Text: clean.Line(c.Text), File: names.file("claims", c.ID),
			Sources: c.Sources, History: c.History, Trouble: c.Trouble, Unchecked: clean.Line(c.Unchecked), Commands: commands[c.ID]}
		byID[c.ID] = x
		s.Claims = append(s.Claims, x)
	}
	for _, c := range doc.Claims {
		s.answers(m, c.ID, byID, designs)
	}
	for _, a := range doc.Areas {
		x := area{Title: clean.Line(a.Title)}
		for i := range doc.Claims {
			if doc.Claims[i].Area == a.ID {
				x.Claims = append(x.Claims, s.Claims[i])
			}
		}
		if len(x.Claims) > 0 {
			s.Areas = append(s.Areas, x)
		}
	}
	s.count()
	s.incidents(doc, names)
	return s
}

// answers fills in the answers of a claim, on its page and on those of the designs.
func (s *site) answers(m *support.Matrix, id string, byID map[string]*claim, designs map[string]*design) {
	c := byID[id]
	c.Answers = s.ask(m, id, "", designs)
	table := m.Table(id)
	for _, w := range table.Windows {
		if w.Release == support.AnyWindows {
			continue
		}
		name := w.Release
		if w.From > 0 {
			name = fmt.Sprintf("%s.%d", w.Build, w.From)
		} else if w.Before > 0 {
			name = fmt.Sprintf("%s.%d", w.Build, w.Before-1)
		}
		if all := others(c.Answers, s.ask(m, id, name, designs)); len(all) > 0 {
			c.ByWindows = append(c.ByWindows, onWindows{clean.Line(w.Title), all})
		}
	}
	for _, r := range table.Related {
		if o := byID[r]; o != nil {
			c.Related = append(c.Related, o)
		}
	}
	replies, err := m.Ask(id, support.Question{Kubernetes: s.Through})
	if err != nil {
		return
	}
	for _, r := range replies {
		if c.State == support.Nowhere {
			c.State = r.State
		} else if c.State != r.State {
			c.Mixed = true
		}
		if d := designs[r.Design]; d != nil {
			d.Rows = append(d.Rows, designRow{c, r})
		}
	}
}

func (s *site) ask(m *support.Matrix, id, windows string, designs map[string]*design) []answer {
	replies, err := m.Ask(id, support.Question{Windows: windows})
	if err != nil {
		return nil // no design has an answer there
	}
	var all []answer
	for _, r := range replies {
		a := answer{Reply: r, DesignTitle: clean.Line(r.Design)}
		if d := designs[r.Design]; d != nil {
			a.DesignTitle, a.DesignFile = d.Title, d.File
		}
		for _, e := range []struct {
			name string
			support.Evidence
		}{{"model", r.Model}, {"real components", r.Components}, {"simulated cluster", r.Simulated}, {"cluster", r.Cluster}} {
			if w := relations[e.Relation]; w != "" {
				a.Level = append(a.Level, e.name+": "+w)
			}
		}
		all = append(all, a)
	}
	return all
}

// others are the answers on one Windows for those designs where they are not as on any.
func others(anywhere, here []answer) []answer {
	same := func(design string) bool {
		of := func(all []answer) []answer {
			return slices.DeleteFunc(slices.Clone(all), func(a answer) bool { return a.Design != design })
		}
		return slices.EqualFunc(of(anywhere), of(here), func(a, b answer) bool {
			return a.Since == b.Since && a.Until == b.Until && a.State == b.State && a.Contested == b.Contested
		})
	}
	return slices.DeleteFunc(here, func(a answer) bool { return same(a.Design) })
}

// relations says how a kind of evidence stands to the documents; what was not tried is not
// said.
var relations = map[support.Relation]string{support.Agrees: "agrees", support.Contradicts: "contradicts",
	support.Unclear: "tried, and open", support.Own: "tried; the documents are silent",
	support.Near: "tried in another version where the documents say the same"}

func (s *site) count() {
	n := map[support.State]int{}
	for _, c := range s.Claims {
		state := c.State
		if c.Mixed {
			state = support.Conditions
		}
		n[state]++
	}
	for _, state := range []support.State{support.Works, support.Conditions, support.DoesNot, support.Unknown} {
		s.Counts = append(s.Counts, count{state, n[state]})
	}
}

// incidents joins the flows of a lab that tells an incident, by variant and in their order.
func (s *site) incidents(doc *result.Document, names namer) {
	at := map[string]*incident{}
	for _, f := range doc.Flows {
		if f.Incident == "" {
			continue
		}
		i := at[f.File]
		if i == nil {
			title := f.Title
			if title == "" {
				title = f.Lab
			}
			i = &incident{Title: clean.Line(title), Lab: clean.Line(f.File), Thread: clean.Line(f.Incident), File: names.file("incidents", f.Lab),
				Source: html.ThreadURL(f.Incident)}
			at[f.File] = i
			s.Incidents = append(s.Incidents, i)
		}
		v := slices.IndexFunc(i.Variants, func(v variant) bool { return v.Name == f.Variant })
		if v < 0 {
			i.Variants = append(i.Variants, variant{Name: f.Variant, Title: clean.Line(f.VariantTitle)})
			v = len(i.Variants) - 1
		}
		i.Variants[v].Flows = append(i.Variants[v].Flows, f)
	}
}
