package support

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/products"
	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// Table has the answers of one claim everywhere.
type Table struct {
	Claim string
	// Windows are the rows of Cells: releases, parted where the documents part them. The
	// last one stands for all that the documents name as nodes of the version.
	Windows []Windows
	// Answers are all that occur; Cells has their numbers by Windows, design and version,
	// -1 where the documents do not describe the design.
	Answers []Answer
	Cells   [][][]int
	// Feature is what the checks try that is the feature itself.
	Feature []string
	// Related are claims that try one of the same things.
	Related []string
}

// AnyWindows is the release of the last of a table's Windows.
const AnyWindows = "any"

// Table answers a claim everywhere; nil when there is none of that name.
func (m *Matrix) Table(id string) *Table {
	c := m.claims[id]
	if c == nil {
		return nil
	}
	t := &Table{Claim: id, Windows: append(slices.Clone(c.windows), Windows{Release: AnyWindows, Title: anyTitle}), Related: m.related(c)}
	for _, a := range c.Asks {
		if c.polarity[a.What] == 1 {
			addNew(&t.Feature, a.What)
		}
	}
	b := builder{m: m, c: c, t: t, known: map[string]int{}, near: map[classAt][]*run{}}
	b.classes()
	for w := range c.windows {
		node := make([]bool, len(m.versions))
		for v := range m.versions {
			node[v] = m.Node(c.windows[w].Release, m.Versions[v]) == Works
		}
		b.node, b.ran = append(b.node, node), append(b.ran, make([][]bool, len(m.Designs)))
		var rows [][]int
		for d := range m.Designs {
			b.ran[w][d] = make([]bool, len(m.versions))
			row := make([]int, len(m.versions))
			for v := range m.versions {
				row[v] = b.cell(place{d, v, w})
			}
			rows = append(rows, row)
		}
		t.Cells = append(t.Cells, rows)
	}
	t.Cells = append(t.Cells, b.anyWindows())
	return t
}

// builder makes a table. Equal answers are made once.
type builder struct {
	m     *Matrix
	c     *claim
	t     *Table
	known map[string]int
	near  map[classAt][]*run
	// key, tried and room have room for those of one cell: a table has hundreds.
	key               []byte
	here, tried, room []*run
	// ran says by Windows, design and version whether there was a run; node by Windows and
	// version whether the documents have it as a node.
	ran  [][][]bool
	node [][]bool
}

// classAt is a class of places of one design.
type classAt struct {
	d     int
	class string
}

// classes notes of every run what the documents have in its place.
func (b *builder) classes() {
	for i := range b.m.runs {
		r := &b.m.runs[i]
		if r.cells[b.c.ID] == nil {
			continue
		}
		d := slices.IndexFunc(b.m.Designs, func(d result.Design) bool { return d.Name == r.setting.Design })
		v := slices.IndexFunc(b.m.versions, func(v versions.Version) bool { return slices.Equal(v, r.version) })
		for w := range b.c.windows {
			if b.c.ran[w][r.number] {
				key := classAt{d, b.c.class(place{d, v, w})}
				if !slices.Contains(b.near[key], r) {
					b.near[key] = append(b.near[key], r)
				}
			}
		}
	}
}

func (b *builder) cell(p place) int {
	if !b.m.exists[b.m.Designs[p.d].Name][p.v] {
		return -1
	}
	class := b.c.class(p)
	b.here = b.m.appendRunsIn(b.here[:0], b.c, p)
	here := b.here
	b.ran[p.w][p.d][p.v] = len(here) > 0
	b.tried, b.room = b.tried[:0], b.room[:0]
	for _, r := range here {
		if r.cells[b.c.ID] != nil {
			b.tried = append(b.tried, r)
		}
	}
	for _, r := range b.near[classAt{p.d, class}] {
		if !slices.Contains(here, r) {
			b.room = append(b.room, r)
		}
	}
	tried, n := b.tried, near{runs: b.room}
	n.around = b.around(p, n.runs)
	key := append(b.key[:0], class...)
	for _, list := range [][]*run{tried, n.runs} {
		for _, r := range list {
			key = append(append(key, r.setting.ID...), ' ')
		}
		key = append(key, '/')
	}
	for i := range b.c.statics {
		key = append(key, '0'+byte(b.c.statics[i].fitAt(p)))
	}
	if n.around {
		key = append(key, 'a')
	}
	b.key = key
	if at, ok := b.known[string(key)]; ok {
		return at
	}
	tried, n.runs = slices.Clone(tried), slices.Clone(n.runs) // an answer may keep them
	found := b.c.look(tried)
	if f := b.c.staticsAt(p, found[model]); f != nil {
		found[model] = f
	}
	return b.add(string(key), b.c.answer(b.c.documented(p), found, n))
}

func (b *builder) add(key string, a Answer) int {
	b.t.Answers = append(b.t.Answers, a)
	b.known[key] = len(b.t.Answers) - 1
	return b.known[key]
}

// around reports whether runs are on both sides of a place, or at it, in versions and builds.
func (b *builder) around(p place, runs []*run) bool {
	if len(runs) == 0 {
		return false
	}
	v, w := b.m.versions[p.v], b.c.windows[p.w].version[:3]
	var low, high, old, young bool
	for _, r := range runs {
		low = low || slices.Compare(r.version, v) <= 0
		high = high || slices.Compare(r.version, v) >= 0
		for _, build := range r.builds {
			old = old || slices.Compare(build[:3], w) <= 0
			young = young || slices.Compare(build[:3], w) >= 0
		}
	}
	return low && high && old && young
}

// anyWindows joins the answers of the Windows that are nodes of a version as the documents have it,
// or on which something was tried.
func (b *builder) anyWindows() [][]int {
	var rows [][]int
	for d := range b.m.Designs {
		row := make([]int, len(b.m.versions))
		for v := range b.m.versions {
			row[v] = b.join(d, v)
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *builder) join(d, v int) int {
	var in, all []int // numbers of Windows
	named := false
	for w := range b.c.windows {
		if b.t.Cells[w][d][v] < 0 {
			continue
		}
		all = append(all, w)
		node := b.node[w][v]
		named = named || node
		if node || b.ran[w][d][v] {
			in = append(in, w)
		}
	}
	if !named {
		in = all
	}
	if len(in) == 0 {
		return -1
	}
	best, same := -1, true
	for _, w := range in {
		n := b.t.Cells[w][d][v]
		if best < 0 || b.t.Answers[n].weight() > b.t.Answers[best].weight() {
			best = n
		}
		same = same && b.t.Answers[n].State == b.t.Answers[b.t.Cells[in[0]][d][v]].State
	}
	if same {
		return best
	}
	a := b.t.Answers[best]
	a.State, a.Why, a.Notes = Conditions, "it depends on the Windows", nil
	on := map[State][]string{}
	for _, w := range in {
		x := b.t.Answers[b.t.Cells[w][d][v]]
		a.Contested = a.Contested || x.Contested
		on[x.State] = append(on[x.State], b.c.windows[w].Title)
	}
	for _, s := range []State{Works, Conditions, DoesNot, Unknown} {
		if len(on[s]) > 0 {
			a.Notes = append(a.Notes, stateWords[s]+": "+strings.Join(on[s], "; "))
		}
	}
	if len(on) == 2 && len(on[DoesNot]) > 0 && len(on[Unknown]) > 0 {
		a.State, a.Why = DoesNot, "so it is on every Windows on which it is known"
	}
	key := "any " + fmt.Sprint(a)
	if at, ok := b.known[key]; ok {
		return at
	}
	return b.add(key, a)
}

// stateWords are the states as headings.
var stateWords = map[State]string{Works: "works", Conditions: "works under conditions", DoesNot: "does not work", Unknown: "unknown"}

// Heading is a state as a heading: "works under conditions".
func Heading(s State) string { return stateWords[s] }

// anyTitle is the title of [AnyWindows].
const anyTitle = "any that the documents name as nodes"

// AnyTitle is the title of a table's last Windows.
func (m *Matrix) AnyTitle() string { return anyTitle }

// weight is how much an answer rests on: what was tried here comes first.
func (a *Answer) weight() int {
	n := 0
	for _, k := range kinds {
		switch a.evidenceOf(k).Relation {
		case Agrees, Contradicts, Own:
			n += 32 >> (2 * k.rank())
		case Unclear, Near:
			n++
		}
	}
	if a.Documents != Nowhere {
		n += 2
	}
	return n
}

// Node is what the documents say of a release of Windows Server as the system of a node in
// a version of Kubernetes: [Works] when they name it, [Nowhere] when they do not, or when
// the ledger has no claim about it.
func (m *Matrix) Node(release, version string) State { return m.named[[2]string{release, version}] }

func (m *Matrix) node(release, version string) State {
	c := m.claims[m.nodes[release]]
	v := slices.Index(m.Versions, version)
	if c == nil || v < 0 || len(m.Designs) == 0 {
		return Nowhere
	}
	w := slices.IndexFunc(c.windows, func(w Windows) bool { return w.Release == release })
	return c.documented(place{0, v, w}).state
}

// related are claims that try one of the same flows or names.
func (m *Matrix) related(c *claim) []string {
	var all []string
	for what, p := range c.polarity {
		for _, id := range m.trying[what] {
			if p == 1 && id != c.ID {
				addNew(&all, id)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Question is one question of a person. Empty fields leave it open.
type Question struct {
	Design, Kubernetes, Windows string
}

// Reply is the answer to a question, for one design.
type Reply struct {
	Design     string `json:"design"`
	Kubernetes string `json:"kubernetes"`
	Windows    string `json:"windows"`
	// Node is what the documents say of that Windows as a node of that Kubernetes.
	Node State `json:"node,omitempty"`
	Answer
	// Since and Until are the first and the last version around this one with the same
	// state, design and Windows.
	Since string `json:"since"`
	Until string `json:"until"`
}

// Ask answers a question about a claim: one reply for each design and version that it
// leaves open, versions joined where the answer is the same. Windows is the name of a release
// in any form, or a build with a revision.
func (m *Matrix) Ask(id string, q Question) ([]Reply, error) {
	t := m.asked(id)
	if t == nil {
		return nil, fmt.Errorf("no claim is called %q", id)
	}
	w, err := t.windows(q.Windows)
	if err != nil {
		return nil, err
	}
	at := -1
	if q.Kubernetes != "" {
		v, err := versions.Parse(q.Kubernetes)
		if err != nil {
			return nil, err
		}
		if at = slices.Index(m.Versions, minorOf(v).String()); at < 0 {
			return nil, fmt.Errorf("no document of the ledger is about Kubernetes %s; it has %s", q.Kubernetes, strings.Join(m.Versions, ", "))
		}
	}
	var replies []Reply
	for d, design := range m.Designs {
		if q.Design != "" && !matches([]string{q.Design}, design.Name) {
			continue
		}
		row := t.Cells[w][d]
		for v := 0; v < len(row); v++ {
			from, to := t.segment(row, v)
			if at >= 0 && (at < from || at > to) || row[v] < 0 {
				v = to
				continue
			}
			shown := v
			if at >= 0 {
				shown = at
			}
			r := Reply{Design: design.Name, Kubernetes: m.Versions[shown], Windows: t.Windows[w].Title, Answer: t.Answers[row[shown]],
				Since: m.Versions[from], Until: m.Versions[to]}
			if at >= 0 && t.Windows[w].Release != AnyWindows {
				r.Node = m.Node(t.Windows[w].Release, m.Versions[at])
			}
			replies = append(replies, r)
			v = to
		}
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("no design fits: %s", cmp.Or(q.Design, "the documents describe no design in that version"))
	}
	return replies, nil
}

// asked is the table of the claim that was asked about last: many questions are about one.
func (m *Matrix) asked(id string) *Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || m.last.Claim != id {
		m.last = m.Table(id)
	}
	return m.last
}

// segment is the stretch of versions around one that has its state.
func (t *Table) segment(row []int, v int) (from, to int) {
	state := func(v int) (State, bool) {
		if row[v] < 0 {
			return Nowhere, false
		}
		return t.Answers[row[v]].State, t.Answers[row[v]].Contested
	}
	same := func(a, b int) bool {
		s1, c1 := state(a)
		s2, c2 := state(b)
		return s1 == s2 && c1 == c2
	}
	for from = v; from > 0 && same(from-1, v); from-- {
	}
	for to = v; to+1 < len(row) && same(to+1, v); to++ {
	}
	return from, to
}

// windows finds the row of a name or a build.
func (t *Table) windows(name string) (int, error) {
	if name == "" || name == AnyWindows {
		return len(t.Windows) - 1, nil
	}
	r, ok := products.ReleaseNamed(name)
	if !ok {
		return 0, fmt.Errorf("%q is not a known release of Windows Server; write a name or a build, such as 2022, ltsc2022 or 10.0.20348.2762",
			name)
	}
	build := r.Build
	if strings.HasPrefix(name, r.Build+".") {
		build = name
	}
	for i, w := range t.Windows {
		if w.Release == r.Name && w.Has(build) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is not a build of %s", name, r.Title)
}

// Through is the newest version whose documents were read: the last in which more claims
// have a status of its own than one that is carried over.
func (m *Matrix) Through() string {
	for v := len(m.versions) - 1; v >= 0; v-- {
		own, over := 0, 0
		for _, c := range m.claims {
			for i := range c.support {
				switch c.support[i].v[v] {
				case inside:
					own++
				case carried:
					over++
				}
			}
		}
		if own > over {
			return m.Versions[v]
		}
	}
	if len(m.Versions) > 0 {
		return m.Versions[len(m.Versions)-1]
	}
	return ""
}
