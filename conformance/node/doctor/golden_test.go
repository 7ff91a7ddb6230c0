package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
)

var update = flag.Bool("update", false, "write the golden files")

const nodes = "../../../fixtures/nodes"

var load = sync.OnceValues(claims.Load)

func ledger(t testing.TB) *claims.Ledger {
	t.Helper()
	l, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func folder(t testing.TB, name string) *observed.Node {
	t.Helper()
	n, err := observed.Read(t.Context(), filepath.Join(nodes, name))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func folders(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(nodes)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestFolders compares the findings on each folder with its golden file.
func TestFolders(t *testing.T) {
	l := ledger(t)
	for _, name := range folders(t) {
		t.Run(name, func(t *testing.T) {
			got := render(Examine(folder(t, name), claims.Target{}, l))
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s (go test ./conformance/node/doctor -update writes it):\n%s", file, diff)
			}
		})
	}
}

func render(d *findings.Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.Join(d.Settings, "; "))
	for _, m := range d.Mistakes {
		fmt.Fprintf(&b, "mistake %s:%d: %s\n", m.File, m.Line, m.Message)
	}
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "\n%s %s [%s, %s]\n  at:       %s:%d, %s\n  symptom:  %s\n  cause:    %s\n", f.Level, f.CauseID, f.Claim, f.Effect,
			f.File, f.Line, f.Subject, f.Symptom, f.Cause)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "  evidence: %s\n", e)
		}
		fmt.Fprintf(&b, "  cure:     %s\n", f.Write)
	}
	b.WriteByte('\n')
	for _, h := range d.Healthy {
		fmt.Fprintf(&b, "in order: %s\n", h)
	}
	for _, h := range d.NotExamined {
		fmt.Fprintf(&b, "not examined: %s\n", h)
	}
	return b.String()
}

// TestHealthyNodes: a good node gets no finding and no
// mistake, whatever version the documents are read for.
func TestHealthyNodes(t *testing.T) {
	l := ledger(t)
	for _, name := range []string{"healthy-l2bridge", "healthy-overlay"} {
		n := folder(t, name)
		targets := []claims.Target{{}}
		for _, minor := range claims.Minors() {
			targets = append(targets, claims.Target{Kubernetes: minor})
		}
		for _, target := range targets {
			d := Examine(n, target, l)
			for _, f := range d.Findings {
				t.Errorf("%s with %s: found %s: %s %q", name, target, f.CauseID, f.Cause, f.Evidence)
			}
			for _, m := range d.Mistakes {
				t.Errorf("%s: mistake %s:%d: %s", name, m.File, m.Line, m.Message)
			}
		}
		if d := Examine(n, claims.Target{}, l); len(d.Healthy) < 7 {
			t.Errorf("%s: only %q are said to be in order", name, d.Healthy)
		}
		for _, f := range n.Files {
			if f.Skipped != "" || len(f.As) == 0 {
				t.Errorf("%s: %s was not recognised (%s)", name, f.Name, f.Skipped)
			}
		}
	}
}

// TestEveryCauseHasAFolder: every cause is found in some folder of the fixtures.
func TestEveryCauseHasAFolder(t *testing.T) {
	l := ledger(t)
	seen := map[string]bool{}
	for _, name := range folders(t) {
		for _, f := range Examine(folder(t, name), claims.Target{}, l).Findings {
			seen[f.CauseID] = true
			if len(f.Evidence) == 0 || f.Symptom == "" || f.Write == "" || f.Cause == "" || f.File == "" {
				t.Errorf("%s: %s has no evidence, symptom, cause, cure or place: %+v", name, f.CauseID, f)
			}
			for _, e := range f.Evidence {
				if file, _, ok := strings.Cut(e, ":"); !ok || file == "" {
					t.Errorf("%s: the evidence %q has no file", name, e)
				}
			}
		}
	}
	for _, id := range causeIDs() {
		if !seen[id] {
			t.Errorf("no folder of fixtures/nodes has the cause %s", id)
		}
	}
}

// TestLedger tries the doctor checks of the ledger.
func TestLedger(t *testing.T) {
	l := ledger(t)
	read := map[string]*observed.Node{}
	n := 0
	for _, c := range l.Claims() {
		for _, k := range c.Checks {
			if k.Doctor == nil {
				continue
			}
			n++
			if read[k.Doctor.Node] == nil {
				read[k.Doctor.Node] = folder(t, k.Doctor.Node)
			}
			if k.Doctor.Finds != "" && !slices.Contains(causeIDs(), k.Doctor.Finds) {
				t.Errorf("%s: no cause is called %q", c.ID, k.Doctor.Finds)
			}
			for _, minor := range claims.Minors() {
				target := claims.Target{Kubernetes: minor}
				if !k.Holds(target) {
					continue
				}
				if wrong := Check(read[k.Doctor.Node], target, l, c.ID, k.Doctor.Finds); wrong != "" {
					t.Errorf("%s, %s with Kubernetes %s: %s", c.ID, k.Doctor.Node, minor, wrong)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("the ledger has %d doctor checks; they were lost", n)
	}
}

// TestItemsHaveClaims keeps the items and the ledger together.
func TestItemsHaveClaims(t *testing.T) {
	l := ledger(t)
	ids := map[string]bool{}
	for _, i := range Items() {
		for _, id := range append([]string{i.Claim}, claimsOf(i)...) {
			if c := l.Claim(id); c == nil || c.Trouble == nil {
				t.Errorf("item %s: the ledger has no claim %q with symptom, cause and cure", i.id, id)
			}
		}
		if len(i.Causes) == 0 && i.explains == "" {
			t.Errorf("item %s has no causes and explains nothing", i.id)
		}
		for _, c := range i.Causes {
			if ids[c.ID] {
				t.Errorf("two causes are called %s", c.ID)
			}
			ids[c.ID] = true
			if !slices.Contains(findings.Levels, c.Level) || claims.Effects[c.Effect] == "" || c.says == "" {
				t.Errorf("cause %s: level %q, effect %q, says %q", c.ID, c.Level, c.Effect, c.says)
			}
		}
	}
}

func claimsOf(i Item) []string {
	var out []string
	for _, c := range i.Causes {
		if c.Claim != "" {
			out = append(out, c.Claim)
		}
	}
	return out
}

// causeIDs are the ids of all causes.
func causeIDs() []string {
	var ids []string
	for _, i := range Items() {
		for _, c := range i.Causes {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
