package growth

import (
	"flag"
	// Part of what is built and counted, so that Go runs this test again when it changes.
	_ "github.com/winlab-dev/winlab/conformance/reach"
	_ "github.com/winlab-dev/winlab/sim/lab"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	envelope = flag.Bool("envelope", false, "up to the size for which Kubernetes is tested: long, and gigabytes")
	only     = flag.String("only", "", "only what grows whose name contains this")
)

// TestGrowth holds how work grows with nodes, pods, Services and policies. It counts statements that ran.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this builds winlab a second time, with counters, and takes a minute or more")
	}
	p, err := Build(t.Context(), "../../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	scale := Small
	if *envelope {
		scale = Envelope
	}
	rows, err := p.Grow(t.Context(), t.TempDir(), scale, *only)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	over, err := Print(&table, rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	if over > 0 {
		t.Errorf("%d of %d grow faster than they may", over, len(rows))
	}
	for _, r := range rows {
		if r.Small < 100 {
			t.Errorf("%s, %s: %.0f statements ran: is anything counted?", r.Grown, r.Phase, r.Small)
		}
	}
}

// TestCompare: what grows with the square of a cluster is found, also where it is a small part of
// the whole.
func TestCompare(t *testing.T) {
	small, large := Counts{}, Counts{}
	for _, ph := range phases {
		small[ph.name] = map[string]float64{"p linear": 1e6, "p square": 300, "p rare": 3, "p begins": 66}
		large[ph.name] = map[string]float64{"p linear": 4e6, "p square": 4800, "p rare": 48, "p begins": 6114}
	}
	rows := Compare("nodes", 4, small, large)
	if r := rows[0]; r.Phase != "read" || !r.Over() || len(r.Steep) != 1 || r.Steep[0].Name != "p square" || r.Steep[0].Exponent != 2 {
		t.Errorf("%+v", r)
	}
	for _, ph := range phases {
		large[ph.name] = map[string]float64{"p linear": 4e6, "p square": 1200}
	}
	for _, r := range Compare("nodes", 4, small, large) {
		if r.Over() != (r.Limit == limitOfPath) {
			t.Errorf("%s grows with the power %.2f, limit %.2f: %+v", r.Phase, r.Exponent(), r.Limit, r)
		}
	}
}

// TestRead reads blocks as Go writes them, and gives each to its function.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	source := "package x\n\nfunc a() {\n\tprintln()\n}\n\nfunc (t *T[K]) b() {\n\tprintln()\n}\n\nvar c = func() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	counts := filepath.Join(dir, "counts.txt")
	blocks := "mode: atomic\n" + module + "x.go:3.10,4.11 2 7\n" + module + "x.go:4.11,5.2 1 0\n" + module + "x.go:7.20,8.3 1 5\n" + module +
		"x.go:11.16,11.18 1 3\n"
	if err := os.WriteFile(counts, []byte(blocks), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &Program{root: dir, functions: map[string][]function{}}
	got, err := p.read(counts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[". a"] != 14 || got[". T.b"] != 5 || got["x.go:11"] != 3 {
		t.Errorf("%v", got)
	}
	if err := os.WriteFile(counts, []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(counts); err == nil {
		t.Error("nonsense is read")
	}
}
