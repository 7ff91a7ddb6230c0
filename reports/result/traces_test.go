package result_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// asJSON is what a trace says, as text.
func asJSON(t *testing.T, tr *trace.Trace) string {
	t.Helper()
	b, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTracesAreWhatWasPut: as they were then, in new structs, under the key that was given last.
func TestTracesAreWhatWasPut(t *testing.T) {
	var none *result.Traces
	if none.Has("") || none.Get("a") != nil || none.Len() != 0 {
		t.Error("no traces have one")
	}
	all := result.NewTraces()
	var wg sync.WaitGroup
	doc := resulttest.Sample()
	for key, tr := range doc.Traces.All() {
		wg.Go(func() { all.Put(key, tr) })
	}
	wg.Wait()
	if all.Len() != doc.Traces.Len() || all.Len() < 20 {
		t.Fatalf("%d traces, put were %d", all.Len(), doc.Traces.Len())
	}
	other := result.NewTraces()
	other.Join(all)
	for key, tr := range doc.Traces.All() {
		for _, set := range []*result.Traces{all, other} {
			got := set.Get(key)
			if d := cmp.Diff(asJSON(t, tr), asJSON(t, got)); d != "" {
				t.Errorf("%s (-put +got):\n%s", key, d)
			}
			got.Summary = "changed"
			if set.Get(key).Summary == "changed" {
				t.Errorf("%s: what was got is kept", key)
			}
		}
	}
	tr := &trace.Trace{Schema: trace.Schema, Verdict: trace.Delivered, Lab: trace.Lab{Name: "a"}, Command: "x"}
	all.Put("k", tr)
	tr.Verdict, tr.Lab.Name = trace.Dropped, "b"
	if got := all.Get("k"); got.Verdict != trace.Delivered || got.Lab.Name != "a" || got.Command != "x" {
		t.Errorf("a trace that was changed after it was put: %+v", got)
	}
	all.Put("k", tr)
	if got := all.Get("k"); got.Verdict != trace.Dropped || got.Lab.Name != "b" {
		t.Errorf("put again: %+v", got)
	}
}

// TestLoadOfTracesWithMore: an entry that holds more than a trace, or another one, is a
// mistake when the file is read, and not when somebody opens the trace.
func TestLoadOfTracesWithMore(t *testing.T) {
	doc := resulttest.Small()
	dir := t.TempDir()
	if err := result.Save(dir, doc); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, result.TraceFile)
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.TrimSuffix(z.File[0].Name, ".json")
	z.Close()
	text, err := os.ReadFile(filepath.Join(dir, result.File))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"has more than one JSON value": `{"schema":"winlab.dev/trace/v1alpha1","verdict":"dropped"} {}`,
		"unknown field":                `{"nope":1}`,
		"unexpected EOF":               `{"schema":`,
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			sum := sha256.Sum256([]byte(content))
			other := hex.EncodeToString(sum[:8])
			out, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			w := zip.NewWriter(out)
			e, err := w.CreateHeader(&zip.FileHeader{Name: other + ".json", Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			out.Close()
			if err := os.WriteFile(filepath.Join(dir, result.File), []byte(strings.ReplaceAll(string(text), hash, other)), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), other) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
