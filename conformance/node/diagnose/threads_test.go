package diagnose_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/diagnose"
	"github.com/winlab-dev/winlab/conformance/node/doctor"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/sim/lab"
)

var update = flag.Bool("update", false, "write the outcomes of posted bundles")

// threads are bundles that people posted.
const threads = "../../../fixtures/bundles/threads"

func posted(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(threads)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestThreads holds what the doctor and an import say of each posted bundle. What the doctor
// could not look at in any of them is listed once.
func TestThreads(t *testing.T) {
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]*findings.Document{}
	count := map[string]int{}
	names := posted(t)
	for _, name := range names {
		docs[name] = doctorOf(t, filepath.Join(threads, name), l)
		for _, n := range docs[name].NotExamined {
			count[n]++
		}
	}
	var b strings.Builder
	b.WriteString("=== not examined in any\n")
	var all []string
	for n, c := range count {
		if c == len(names) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	for _, n := range all {
		fmt.Fprintf(&b, "%s\n", n)
	}
	for _, name := range names {
		d := docs[name]
		fmt.Fprintf(&b, "\n=== %s\n", name)
		for _, f := range d.Findings {
			fmt.Fprintf(&b, "doctor %s %s: %s:%d: %s\n", f.Level, f.CauseID, f.File, f.Line, f.Cause)
		}
		for _, m := range d.Mistakes {
			fmt.Fprintf(&b, "doctor %s:%d:%d: %s\n", m.File, m.Line, m.Column, m.Message)
		}
		for _, h := range d.Healthy {
			fmt.Fprintf(&b, "doctor in order: %s\n", h)
		}
		for _, n := range d.NotExamined {
			if count[n] != len(names) {
				fmt.Fprintf(&b, "doctor not examined: %s\n", n)
			}
		}
		b.WriteString(importOf(t, filepath.Join(threads, name)))
	}
	file := filepath.Join(threads, "outcomes.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf(
			"differs from %s (go test ./conformance/node/diagnose -run TestThreads -update writes it); judge it in docs/reference/accuracy.md:\n%s",
			file, diff)
	}
}

// doctorOf is what winlab doctor finds in a folder.
func doctorOf(t *testing.T, dir string, l *claims.Ledger) *findings.Document {
	t.Helper()
	is, err := diagnose.Is(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if is {
		return examine(t, dir)
	}
	n, err := observed.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Examine(n, claims.Target{}, l)
}

// importOf is what an import says of a folder, and whether its lab can be built.
func importOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	base, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := importer.Import(t.Context(), b, "posted", func(f string) string { return filepath.Join(base, f) },
		func(s string) string { return s })
	if err != nil {
		return "import: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir+"/", ""), dir, "BUNDLE") + "\n"
	}
	var s strings.Builder
	for _, c := range r.Concluded {
		fmt.Fprintf(&s, "import concluded: %s: %s (%s)\n", c.What, c.Value, c.Because)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(&s, "import missing: %s; settle it with: %s\n", m.What, m.Settle)
	}
	out := t.TempDir()
	for name, data := range r.Extra {
		err = errors.Join(err, os.WriteFile(filepath.Join(out, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse(filepath.Join(out, "lab.yaml"), r.Lab)
	if err == nil {
		var c *lab.Cluster
		if c, err = lab.Build(t.Context(), f, lab.Options{}); err == nil {
			for _, n := range c.Nodes {
				fmt.Fprintf(&s, "lab: node %s\n", n.Name)
			}
		}
	}
	if err != nil {
		fmt.Fprintf(&s, "lab: %v\n", err)
	}
	return s.String()
}

var scoreRow = regexp.MustCompile(
	"(?m)^\\| `([a-z0-9-]+)`(?: †)? \\| (right|open|silent|wrong) \\| (right|open|silent|wrong) \\| (right|open|silent|wrong) \\| (right|open|silent|wrong) \\|")

// TestPostedScores: the page judges each bundle, and its sums are those of its rows.
func TestPostedScores(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	sums := [4]map[string]int{{}, {}, {}, {}}
	seen := map[string]bool{}
	for _, m := range scoreRow.FindAllStringSubmatch(string(page), -1) {
		seen[m[1]] = true
		for i := range sums {
			sums[i][m[i+2]]++
		}
	}
	for _, name := range posted(t) {
		if !seen[name] {
			t.Errorf("%s is not judged", name)
		}
	}
	for i, what := range []string{"doctor, first", "import, first", "doctor, now", "import, now"} {
		want := fmt.Sprintf("| %s | %d | %d | %d | %d |", what, sums[i]["right"], sums[i]["open"], sums[i]["silent"], sums[i]["wrong"])
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
