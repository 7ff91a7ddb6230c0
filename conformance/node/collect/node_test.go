package collect

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// TestSteps: what fails, is late or panics is noted, and the others go on.
func TestSteps(t *testing.T) {
	at := filepath.Join(t.TempDir(), "b")
	w, err := bundle.Create(at, "test", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan struct{})
	defer close(late)
	var told []string
	o := Options{Timeout: 50 * time.Millisecond, Progress: func(s bundle.Step) { told = append(told, s.Name) }}
	for _, s := range []Step{
		{Name: "good", run: func(_ context.Context, n *node) error {
			n.addText("a.txt", "text", `C:\a.txt`, []byte("--token=abc x"), 100)
			return nil
		}},
		{Name: "half", run: func(_ context.Context, n *node) error {
			n.add("b.txt", "text", "b", []byte("b"))
			return errors.New("the other half")
		}},
		{Name: "absent", run: func(context.Context, *node) error { return absent{"not here"} }},
		{Name: "late", run: func(_ context.Context, n *node) error {
			<-late
			n.add("c.txt", "text", "c", nil) // it is not taken any more
			return nil
		}},
		{Name: "broken", run: func(context.Context, *node) error { panic("at the disco") }},
	} {
		if err := s.take(t.Context(), w, safeName("WIN 1/.."), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), at, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"nodes/WIN_1_../a.txt", "nodes/WIN_1_../b.txt"}, b.Files); d != "" || len(told) != 5 {
		t.Errorf("%s%q", d, told)
	}
	if data, err := b.Read("nodes/WIN_1_../a.txt"); string(data) != "--token=REDACTED x" {
		t.Errorf("%q %v", data, err)
	}
	if f := b.Manifest.Files[0]; f.Redacted != 1 || f.CutFrom != 100 || f.From != `C:\a.txt` {
		t.Errorf("%+v", f)
	}
	var said []string
	for _, s := range b.Manifest.Steps {
		said = append(said, s.Name+": "+strings.Join(s.Files, " ")+s.Absent+s.Error)
	}
	want := []string{"good: nodes/WIN_1_../a.txt", "half: nodes/WIN_1_../b.txtthe other half", "absent: not here",
		"late: no answer after 50ms", "broken: winlab failed here: at the disco"}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := Step{Name: "late", run: func(context.Context, *node) error { <-late; return nil }}
	if err := s.take(ctx, w, "n", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		in, out string
		cut     int64
	}{{"ab\ncd\n", "ab\ncd\n", 0}, {"abcd\nef\n", "ef\n", 8}, {"abcdefgh", "cdefgh", 8}, {"", "", 0}} {
		if out, cut := tail([]byte(c.in), 6); string(out) != c.out || cut != c.cut {
			t.Errorf("%q: %q %d", c.in, out, cut)
		}
	}
}
