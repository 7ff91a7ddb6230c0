package text

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares output with testdata/NAME.txt.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test -update and look at the change.\n got:\n%s\nwant:\n%s", file, got, want)
	}
}

func render(t *testing.T, tr *trace.Trace, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, tr, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace *trace.Trace
		opt   Options
	}{
		{"delivered", delivered(), Options{}},
		{"delivered-color", delivered(), Options{Color: true}},
		{"delivered-hex", delivered(), Options{Detail: Verbose, Hex: true}},
		{"balanced", balanced(), Options{}},
		{"balanced-verbose", balanced(), Options{Detail: Verbose}},
		{"balanced-summary", balanced(), Options{Detail: Summary}},
		{"balanced-minimal", balanced(), Options{Detail: Minimal}},
		{"overlay", overlay(), Options{}},
		{"overlay-summary", overlay(), Options{Detail: Summary}},
		{"noreply-icmp", noReply(), Options{}},
		{"noreply-icmp-narrow", noReply(), Options{Width: 60}},
		{"noreply-icmp-summary", noReply(), Options{Detail: Summary}},
		{"unresolved", unresolved(), Options{}},
		{"unresolved-summary", unresolved(), Options{Detail: Summary}},
		{"unknown", unknown(), Options{}},
		{"many-backends", manyBackends(64), Options{}},
		{"hostile", hostile(), Options{Detail: Verbose}},
	} {
		t.Run(c.name, func(t *testing.T) { golden(t, c.name, render(t, c.trace, c.opt)) })
	}
}

func TestLookupGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		look *trace.Lookup
		opt  Options
	}{
		{"lookup-found", found(), Options{}},
		{"lookup-not-completed", &unresolved().Names[0], Options{Detail: Verbose}},
		{"lookup-silent", silent(), Options{}},
		{"lookup-minimal", found(), Options{Detail: Minimal}},
	} {
		var b bytes.Buffer
		if err := Lookup(&b, c.look, c.opt); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name, b.Bytes())
	}
}

func TestDocsGolden(t *testing.T) {
	var b bytes.Buffer
	e, _ := trace.Explain(trace.ICMPNotTranslated)
	if err := errors.Join(Explanation(&b, e), VerdictsMarkdown(&b)); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain", b.Bytes())
	b.Reset()
	if err := ReasonsMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.Reasons {
		if !strings.Contains(b.String(), "| `"+string(e.Code)+"` |") {
			t.Errorf("the table has no row for %s", e.Code)
		}
	}
}

// The verdict and its code must be on the last block, whatever the detail.
func TestLastBlockHasVerdict(t *testing.T) {
	for _, d := range []Detail{Minimal, Summary, Normal, Verbose} {
		out := string(render(t, noReply(), Options{Detail: d}))
		last := out[strings.LastIndex(strings.TrimSpace(out), "NO-REPLY"):]
		if !strings.HasPrefix(last, "NO-REPLY  icmp-not-translated") {
			t.Errorf("%s: no verdict at the end:\n%s", d, out)
		}
	}
}

// Nothing from a lab may reach the terminal as a control character.
func TestTerminalSafe(t *testing.T) {
	for _, d := range []Detail{Minimal, Summary, Normal, Verbose} {
		out := string(render(t, hostile(), Options{Detail: d, Hex: true}))
		for _, r := range out {
			if r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x200b || r == 0xfffd) {
				t.Fatalf("%s: %U in the output:\n%q", d, r, out)
			}
		}
	}
	for in, want := range map[string]string{
		"a\x1b[2Jb": `a\x1b[2Jb`, "a\nb": `a\nb`, "a\tb": `a\tb`, "\xff": `\xff`, "\u202e": `\u202e`, "ä·": "ä·", "\x7f": `\x7f`,
		"\uFFFD": `\ufffd`,
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestColorIsOnlyColor(t *testing.T) {
	for _, tr := range []*trace.Trace{delivered(), balanced(), unknown(), unresolved()} {
		colored := string(render(t, tr, Options{Color: true}))
		if !strings.Contains(colored, "\x1b[") {
			t.Error("no colour where it was asked for")
		}
		for strings.Contains(colored, "\x1b[") {
			i := strings.Index(colored, "\x1b[")
			j := strings.IndexByte(colored[i:], 'm')
			colored = colored[:i] + colored[i+j+1:]
		}
		if plain := string(render(t, tr, Options{})); plain != colored {
			t.Errorf("colours changed the text:\n%s\n%s", plain, colored)
		}
	}
}

func TestWidthIsKept(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120} {
		limit := width
		if width == 0 {
			limit = 100
		}
		for _, l := range strings.Split(string(render(t, balanced(), Options{Width: width})), "\n") {
			// Names are copied from here, so a long one stays whole.
			if n := len([]rune(l)); n > limit && width >= 80 {
				t.Errorf("width %d: %d columns: %s", width, n, l)
			}
		}
	}
}

func TestParseDetail(t *testing.T) {
	for _, d := range []Detail{Minimal, Summary, Normal, Verbose} {
		if got, err := ParseDetail(strings.ToUpper(d.String())); err != nil || got != d {
			t.Errorf("%s: %v %v", d, got, err)
		}
	}
	if _, err := ParseDetail("loud"); err == nil || !strings.Contains(err.Error(), "minimal, summary, normal, verbose") {
		t.Errorf("unhelpful error: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterErrorIsReturned(t *testing.T) {
	if err := Render(broken{}, delivered(), Options{}); err == nil {
		t.Error("the writer's error is lost")
	}
}

func TestEmptyTrace(t *testing.T) {
	for _, d := range []Detail{Minimal, Summary, Normal, Verbose} {
		render(t, &trace.Trace{}, Options{Detail: d})
		render(t, &trace.Trace{Paths: make([]trace.Path, 2), Names: make([]trace.Lookup, 1)}, Options{Detail: d})
	}
}

// A packet that goes round in circles is written for one turn; with Verbose for all.
func TestLoopIsFolded(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Verdict: trace.Looped, Reason: trace.TTLExceeded, Paths: []trace.Path{{Verdict: trace.Looped}}}
	steps := &tr.Paths[0].Steps
	for i := range 40 {
		*steps = append(*steps, trace.Step{N: i + 1, Leg: trace.Request, Place: []string{"gw", "win1"}[i%2], Action: trace.ActForward,
			Event: trace.Note("forwarded")})
	}
	for detail, want := range map[Detail]int{Normal: 2, Verbose: 40} {
		var b strings.Builder
		if err := Render(&b, tr, Options{Detail: detail}); err != nil {
			t.Fatal(err)
		}
		folded := strings.Contains(b.String(), "steps 1-2 repeat, 20 times in all")
		if n := strings.Count(b.String(), "forwarded"); n != want || folded != (detail == Normal) {
			t.Errorf("detail %s: %d steps, want %d:\n%s", detail, n, want, b.String())
		}
	}
}
