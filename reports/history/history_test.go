package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/history"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
)

func dated(date string) *result.Document {
	doc := resulttest.Small()
	doc.Date = date
	return doc
}

func add(t *testing.T, dir string, doc *result.Document) []result.Point {
	t.Helper()
	points, err := history.Add(dir, doc)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// TestRunsGoOn: each run is a file that can be compared, and a point with what changed.
func TestRunsGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nightly")
	if points, err := history.Read(dir); err != nil || points != nil {
		t.Fatalf("no folder: %v %v", points, err)
	}
	add(t, dir, dated("2026-11-22T02:00:00Z"))
	add(t, dir, dated("2026-11-23T02:00:00Z"))
	worse := dated("2026-11-23T02:00:00Z") // in the same second
	for i := range worse.Flows {
		worse.Flows[i].Got, worse.Flows[i].Pass = "dropped", false
	}
	result.Summarise(worse)
	points := add(t, dir, worse)
	var told []string
	for _, p := range points {
		changed := "first"
		if p.Changed != nil {
			changed = "same"
			if *p.Changed > 0 {
				changed = "changed"
			}
		}
		told = append(told, p.File+" "+changed)
	}
	want := []string{"2026-11-22T020000Z.json first", "2026-11-23T020000Z.json same", "2026-11-23T020000Z_002.json changed"}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
	if *points[2].Changed != len(worse.Flows) {
		t.Errorf("%d changed, want the %d flows", *points[2].Changed, len(worse.Flows))
	}
	// The index can be lost, and what is kept is a document.
	if err := os.Remove(filepath.Join(dir, "history.json")); err != nil {
		t.Fatal(err)
	}
	again, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(points, again); d != "" {
		t.Errorf("made again (-before +after):\n%s", d)
	}
	doc, err := result.Load(filepath.Join(dir, points[0].File))
	if err != nil || doc.Traces.Len() != 0 || doc.NoTraces == "" {
		t.Errorf("%v, traces %d, %q", err, doc.Traces.Len(), doc.NoTraces)
	}
	// So can a run: the index is made again.
	if err := os.Remove(filepath.Join(dir, points[1].File)); err != nil {
		t.Fatal(err)
	}
	if rest, err := history.Read(dir); err != nil || len(rest) != 2 || rest[1].File != points[2].File {
		t.Errorf("%v %v", rest, err)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := history.Add(t.TempDir(), resulttest.Small()); err == nil || !strings.Contains(err.Error(), "no date") {
		t.Errorf("without a date: %v", err)
	}
	dir := t.TempDir()
	add(t, dir, dated("2026-11-22T02:00:00Z"))
	for name, text := range map[string]string{"2026-11-20T020000Z.json": "{}", "2026-11-21T020000Z.json": `{"schema": "v1"}`,
		"notes.json": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := history.Add(dir, dated("2026-11-23T02:00:00Z"))
	if err == nil || !strings.Contains(err.Error(), "2026-11-20T020000Z.json") || !strings.Contains(err.Error(), "2026-11-21T020000Z.json") ||
		strings.Contains(err.Error(), "notes") {
		t.Errorf("other files: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "2026-11-23*")); len(left) > 0 {
		t.Errorf("%v was written", left)
	}
}
