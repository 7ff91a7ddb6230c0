package house

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kubernetes in a row's imports says that the package uses Kubernetes' own types.
const kubernetes = "k8s.io"

// architecture is what docs/architecture.md says about imports. The page is the only
// place where that is written down.
type architecture struct {
	rows  map[string]row
	rules []rule
}

// row is what a package may import itself.
type row struct {
	everything bool
	imports    []string
}

// rule keeps rooms apart: no package of these imports one of those, directly or not.
type rule struct {
	these, those set
	because      string
}

// set is a set of packages, written as patterns: a/b is one package, a/... is a and all
// below it, ... is all.
type set struct{ patterns, but []string }

func (s set) has(pkg string) bool {
	return matches(s.patterns, pkg) && !matches(s.but, pkg)
}

func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, all := strings.CutSuffix(p, "...")
		return p == pkg || all && (below == "" || strings.HasPrefix(pkg+"/", below))
	})
}

func (s set) String() string {
	text := strings.Join(s.patterns, " ")
	if len(s.but) != 0 {
		text += " but " + strings.Join(s.but, " ")
	}
	return text
}

// readArchitecture reads the two tables of the page. They are known by their headings.
func readArchitecture(t *testing.T) *architecture {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	a := &architecture{rows: map[string]row{}}
	table := ""
	for line := range strings.Lines(string(page)) {
		cols := strings.Split(strings.TrimSpace(line), "|")
		if len(cols) != 5 {
			table = ""
			continue
		}
		for i := range cols {
			cols[i] = strings.TrimSpace(cols[i])
		}
		switch {
		case table == "":
			table = cols[3]
		case strings.HasPrefix(cols[1], "---"):
		case table == "imports of this module":
			pkg := strings.Trim(cols[1], "`")
			if _, ok := a.rows[pkg]; ok {
				t.Errorf("docs/architecture.md has two rows for %s", pkg)
			}
			a.rows[pkg] = row{everything: strings.HasPrefix(cols[3], "everything"), imports: quotedWords(cols[3])}
		case table == "because":
			a.rules = append(a.rules, rule{setOf(cols[1]), setOf(cols[2]), cols[3]})
		}
	}
	if len(a.rows) < 20 || len(a.rules) == 0 {
		t.Fatalf("docs/architecture.md: only %d packages and %d rules found", len(a.rows), len(a.rules))
	}
	return a
}

var quoted = regexp.MustCompile("`([^`]+)`")

func quotedWords(text string) []string {
	var words []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

func setOf(text string) set {
	patterns, but, _ := strings.Cut(text, " but ")
	return set{quotedWords(patterns), quotedWords(but)}
}

// TestImportsAreThoseOfTheTable compares the imports of each package with the
// table of packages in docs/architecture.md, so that no package imports one
// above it.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	all := packages(t)
	a := readArchitecture(t)
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		imports := ours(all, all[pkg].imports)
		row, ok := a.rows[pkg]
		if !ok {
			t.Errorf("docs/architecture.md has no row for %s, which imports %s", pkg, strings.Join(imports, " "))
			continue
		}
		for _, i := range imports {
			if !row.everything && !slices.Contains(row.imports, i) {
				t.Errorf("%s imports %s, which its row in docs/architecture.md does not name", pkg, i)
			}
		}
		for _, i := range row.imports {
			if i != kubernetes && !all[pkg].imports[i] {
				t.Errorf("%s does not import %s, which its row in docs/architecture.md names", pkg, i)
			}
		}
	}
	for pkg := range a.rows {
		if all[pkg] == nil {
			t.Errorf("docs/architecture.md has a row for %s, which is not a package", pkg)
		}
	}
}

// TestRoomsAreApart checks the table in docs/architecture.md that says which folders
// must not import which.
func TestRoomsAreApart(t *testing.T) {
	all := packages(t)
	for _, r := range readArchitecture(t).rules {
		for _, p := range slices.Concat(r.these.patterns, r.these.but, r.those.patterns, r.those.but) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(pkg string) bool { return matches([]string{p}, pkg) }) {
				t.Errorf("docs/architecture.md: there is no package %s any more", p)
			}
		}
		for _, pkg := range slices.Sorted(maps.Keys(all)) {
			if !r.these.has(pkg) {
				continue
			}
			if way := wayTo(all, pkg, r.those); way != nil {
				t.Errorf("%s: none of %s may know %s: %s", strings.Join(way, " imports "), r.these, r.those, r.because)
			}
		}
	}
}

// wayTo is a shortest chain of imports from a package to one of a set.
func wayTo(all map[string]*pkg, from string, to set) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) != 0; queue = queue[1:] {
		p := queue[0]
		if p != from && to.has(p) {
			way := []string{p}
			for b := before[p]; b != ""; b = before[b] {
				way = append(way, b)
			}
			slices.Reverse(way)
			return way
		}
		for _, i := range ours(all, all[p].imports) {
			if _, seen := before[i]; !seen {
				before[i] = p
				queue = append(queue, i)
			}
		}
	}
	return nil
}

// ours lists those imports that are packages of this module.
func ours(all map[string]*pkg, imports map[string]bool) []string {
	var list []string
	for _, i := range slices.Sorted(maps.Keys(imports)) {
		if all[i] != nil {
			list = append(list, i)
		}
	}
	return list
}

// TestKubernetesTypesStayAtTheEdge: packages that read manifests or answer for
// Kubernetes' own components use Kubernetes' own types, and their rows say so.
// Everything else has the small types of sim/kube.
func TestKubernetesTypesStayAtTheEdge(t *testing.T) {
	all := packages(t)
	for pkg, row := range readArchitecture(t).rows {
		if all[pkg] == nil {
			continue
		}
		uses := ""
		for i := range all[pkg].imports {
			if strings.HasPrefix(i, "k8s.io/") || strings.HasPrefix(i, "sigs.k8s.io/") {
				uses = i
			}
		}
		switch says := slices.Contains(row.imports, kubernetes); {
		case uses != "" && !says:
			t.Errorf("%s imports %s; only packages whose row in docs/architecture.md names `%s` read Kubernetes objects", pkg, uses, kubernetes)
		case uses == "" && says:
			t.Errorf("%s does not use Kubernetes' types, but its row in docs/architecture.md says so", pkg)
		}
	}
}

func TestSet(t *testing.T) {
	s := setOf("`sim/...` `internal/dev/docsgen` but `sim/trace/...`")
	if got, want := fmt.Sprint(s), "sim/... internal/dev/docsgen but sim/trace/..."; got != want {
		t.Errorf("read as %q, want %q", got, want)
	}
	for pkg, want := range map[string]bool{"sim": true, "sim/kube": true, "sim/trace": false, "sim/trace/text": false, "sim/tracer": true,
		"simulator": false, "internal/dev/docsgen": true, "internal/dev/docsgen/a": false} {
		if s.has(pkg) != want {
			t.Errorf("%s has %s: %v, want %v", s, pkg, !want, want)
		}
	}
	if !setOf("`...`").has("cmd/winlab") {
		t.Error("... is not everything")
	}
}
