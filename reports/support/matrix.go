package support

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/internal/products"
	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// Matrix answers questions about one document of results.
type Matrix struct {
	// Versions are versions of Kubernetes, oldest first; Designs the network designs.
	Versions []string
	Designs  []result.Design
	// Titles are the designs' titles by name.
	Titles map[string]string

	doc      *result.Document
	versions []versions.Version
	// exists says by design and version whether the documents describe the design there.
	exists map[string][]bool
	claims map[string]*claim
	runs   []run
	nodes  map[string]string // claim on nodes by name of release
	// runsAt are the runs by design and version.
	runsAt [][][]*run
	// trying are the claims by what is the feature in one of their checks.
	trying map[string][]string
	// named caches what [Matrix.Node] says.
	named map[[2]string]State

	mu   sync.Mutex
	last *Table // that [Matrix.Ask] made last
}

// Windows is a release of Windows Server, or a part of its updates.
type Windows struct {
	// Release is its name, "2019"; Title says it in words, with the part: "Windows Server
	// 2019 before 10.0.17763.1432".
	Release string `json:"release"`
	Title   string `json:"title"`
	// Build is the release's build; revisions from From and before Before belong to it, 0
	// for no end.
	Build  string `json:"build"`
	From   int    `json:"from,omitempty"`
	Before int    `json:"before,omitempty"`

	version versions.Version // one that stands for all
}

// Has reports whether a build, with or without a revision, is one of it. One without
// counts as fully patched.
func (w Windows) Has(build string) bool {
	if build == w.Build {
		return w.Before == 0
	}
	rest, ok := strings.CutPrefix(build, w.Build+".")
	revision, err := strconv.Atoi(rest)
	return ok && err == nil && revision >= w.From && (w.Before == 0 || revision < w.Before)
}

// place is where a question is asked: indices of a design, a version and one of the
// claim's Windows.
type place struct{ d, v, w int }

// run is a setting in which something was tried.
type run struct {
	number  int // in the matrix
	setting *result.Setting
	version versions.Version
	builds  []versions.Version
	cells   map[string]*result.Cell
}

// claim is a claim whose ranges have been read.
type claim struct {
	*result.Claim
	support  []scope // of its history
	asks     []scope
	statics  []static
	polarity map[string]int // by what is tried: see polarities
	assumed  bool           // no status decides what the feature is: see polarities
	windows  []Windows
	// ran says of each of windows which runs were on it alone, by their number.
	ran [][]bool
}

type static struct {
	scope
	*result.Static
}

// New reads the ranges of a document. Claims whose status has words only, as a document of
// an older winlab has, are answered by what the run found.
func New(doc *result.Document) *Matrix {
	m := &Matrix{doc: doc, Titles: map[string]string{}, exists: map[string][]bool{}, claims: map[string]*claim{}, nodes: map[string]string{}}
	m.axes()
	m.readRuns()
	m.readClaims()
	for _, r := range products.Releases() {
		if m.claims[r.Claim] != nil {
			m.nodes[r.Name] = r.Claim
		}
	}
	m.indexes()
	return m
}

// readRuns reads what was found in each setting.
func (m *Matrix) readRuns() {
	doc := m.doc
	cells := map[string]map[string]*result.Cell{}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if cells[c.Setting] == nil {
			cells[c.Setting] = map[string]*result.Cell{}
		}
		cells[c.Setting][c.Claim] = c
	}
	for i := range doc.Settings {
		s := &doc.Settings[i]
		// A lab for some claims is not a design, and answers nothing about one.
		if v, err := versions.Parse(s.Kubernetes); err == nil && !s.ForClaims {
			r := run{number: len(m.runs), setting: s, version: minorOf(v), cells: cells[s.ID]}
			for _, text := range s.Builds {
				if b, err := versions.Parse(text); err == nil && len(b) >= 3 {
					r.builds = append(r.builds, b)
				}
			}
			m.runs = append(m.runs, r)
		}
	}
}

// readClaims reads the ranges of statuses and checks.
func (m *Matrix) readClaims() {
	doc := m.doc
	for i := range doc.Claims {
		c := &claim{Claim: &doc.Claims[i]}
		for _, h := range c.History {
			if h.Scope == nil {
				h.Scope = &result.Scope{Kubernetes: "none"} // words only
			}
			c.support = append(c.support, newScope(*h.Scope))
		}
		for _, a := range c.Asks {
			c.asks = append(c.asks, newScope(a.Scope))
		}
		m.claims[c.ID] = c
	}
	for i := range doc.Statics {
		k := &doc.Statics[i]
		if c := m.claims[k.Claim]; c != nil && k.Scope != nil {
			c.statics = append(c.statics, static{newScope(*k.Scope), k})
		}
	}
	// Few documents part a release: most claims have the same Windows.
	type part struct {
		build        string
		from, before int
	}
	ran := map[part][]bool{}
	for _, c := range m.claims {
		c.windows = windowsOf(c)
		for _, w := range c.windows {
			key := part{w.Build, w.From, w.Before}
			if ran[key] == nil {
				ran[key] = make([]bool, len(m.runs))
				for i := range m.runs {
					ran[key][i] = m.runs[i].allNodesAre(w)
				}
			}
			c.ran = append(c.ran, ran[key])
		}
		for i := range c.support {
			c.support[i].resolveAxes(m, c.windows)
		}
		for i := range c.asks {
			c.asks[i].resolveAxes(m, c.windows)
		}
		for i := range c.statics {
			c.statics[i].resolveAxes(m, c.windows)
		}
		c.polarities()
	}
}

// indexes makes what questions are answered from.
func (m *Matrix) indexes() {
	m.runsAt = make([][][]*run, len(m.Designs))
	for d := range m.Designs {
		m.runsAt[d] = make([][]*run, len(m.versions))
		for v := range m.versions {
			for i := range m.runs {
				if r := &m.runs[i]; r.setting.Design == m.Designs[d].Name && slices.Equal(r.version, m.versions[v]) {
					m.runsAt[d][v] = append(m.runsAt[d][v], r)
				}
			}
		}
	}
	m.trying = map[string][]string{}
	for i := range m.doc.Claims {
		c := m.claims[m.doc.Claims[i].ID]
		for what, p := range c.polarity {
			if p == 1 {
				m.trying[what] = append(m.trying[what], c.ID)
			}
		}
	}
	m.named = map[[2]string]State{}
	for _, r := range products.Releases() {
		for _, v := range m.Versions {
			m.named[[2]string{r.Name, v}] = m.node(r.Name, v)
		}
	}
}

// minorOf is a version without its patch: what ranges of documents look at.
func minorOf(v versions.Version) versions.Version { return v[:min(len(v), 2)] }

// axes finds versions and designs: those of the document, or of its settings.
func (m *Matrix) axes() {
	names := slices.Clone(m.doc.Versions)
	m.Designs = slices.Clone(m.doc.Designs)
	for _, s := range m.doc.Settings {
		if v, err := versions.Parse(s.Kubernetes); err == nil && !slices.Contains(names, minorOf(v).String()) {
			names = append(names, minorOf(v).String())
		}
		at := slices.IndexFunc(m.Designs, func(d result.Design) bool { return d.Name == s.Design })
		if at < 0 && !s.ForClaims {
			plugin, _, _ := strings.Cut(s.Plugin, " ")
			m.Designs = append(m.Designs, result.Design{Name: s.Design, Network: s.Network, Plugin: plugin})
		}
		if s.Title != "" && m.Titles[s.Design] == "" {
			m.Titles[s.Design] = s.Title
		}
	}
	for _, n := range names {
		if v, err := versions.Parse(n); err == nil {
			m.versions = append(m.versions, minorOf(v))
		}
	}
	slices.SortFunc(m.versions, slices.Compare[versions.Version])
	for _, v := range m.versions {
		m.Versions = append(m.Versions, v.String())
	}
	for _, d := range m.Designs {
		r, err := versions.ParseRange(d.Kubernetes)
		in := make([]bool, len(m.versions))
		for i, v := range m.versions {
			in[i] = err == nil && r.Holds(v)
		}
		m.exists[d.Name] = in
		if m.Titles[d.Name] == "" {
			m.Titles[d.Name] = d.Name
		}
	}
}

// windowsOf are the releases, parted where the claim's documents part their updates.
func windowsOf(c *claim) []Windows {
	cuts := map[string][]int{}
	for _, s := range slices.Concat(c.support, c.asks) {
		for _, bounds := range s.build {
			for _, b := range bounds {
				if len(b.Version) != 4 {
					continue
				}
				build, revision := b.Version[:3].String(), b.Version[3]
				switch b.Op {
				case ">=", "<":
					cuts[build] = append(cuts[build], revision)
				case ">", "<=":
					cuts[build] = append(cuts[build], revision+1)
				default:
					cuts[build] = append(cuts[build], revision, revision+1)
				}
			}
		}
	}
	var all []Windows
	for _, r := range products.Releases() {
		at := cuts[r.Build]
		slices.Sort(at)
		at = slices.DeleteFunc(slices.Compact(at), func(n int) bool { return n <= 0 })
		from := 0
		for _, n := range append(at, 0) {
			w := Windows{Release: r.Name, Title: r.Title, Build: r.Build, From: from, Before: n}
			stands := math.MaxInt32
			if n > 0 {
				stands = n - 1
			}
			build, _ := versions.Parse(r.Build)
			w.version = append(build, stands)
			switch {
			case from > 0 && n > 0:
				w.Title += fmt.Sprintf(" from revision %d and before %d", from, n)
			case from > 0:
				w.Title += fmt.Sprintf(" from revision %d", from)
			case n > 0:
				w.Title += fmt.Sprintf(" before revision %d", n)
			}
			all = append(all, w)
			from = n
		}
	}
	return all
}

// appendRunsIn appends the runs in a place.
func (m *Matrix) appendRunsIn(in []*run, c *claim, p place) []*run {
	for _, r := range m.runsAt[p.d][p.v] {
		if c.ran[p.w][r.number] {
			in = append(in, r)
		}
	}
	return in
}

// allNodesAre reports whether all of the run's Windows nodes are of one kind.
func (r *run) allNodesAre(w Windows) bool {
	return len(r.setting.Builds) > 0 && !slices.ContainsFunc(r.setting.Builds, func(b string) bool { return !w.Has(b) })
}

// class names what the documents have in a place: statuses and checks by number. Where
// two places have the same class, the documents do not tell them apart.
func (c *claim) class(p place) string {
	b := make([]byte, 0, len(c.support)+len(c.asks))
	for _, list := range [][]scope{c.support, c.asks} {
		for i := range list {
			b = append(b, '0'+byte(list[i].fitAt(p)))
		}
	}
	return string(b)
}
