package claims

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares an error with a file next to its input.
func golden(t *testing.T, input string, err error) {
	t.Helper()
	got := "no mistakes\n"
	if err != nil {
		var ms Mistakes
		if !errors.As(err, &ms) {
			t.Fatalf("%s: the error is %T; callers expect Mistakes", input, err)
		}
		got = ms.Error() + "\n"
	}
	file := strings.TrimSuffix(input, ".yaml") + ".golden"
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
		t.Errorf("%s (-want +got):\n%s", input, diff)
	}
}

// TestDecodeMistakes: every mistake of a file in one go, each with its place.
func TestDecodeMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/decode/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(filepath.Base(file), text)
		if err == nil {
			t.Errorf("%s was read without a mistake", file)
		}
		golden(t, file, err)
	}
}

// TestLintMistakes: every mistake that only the linter can see.
func TestLintMistakes(t *testing.T) {
	const file = "testdata/lint/bad.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Parse(filepath.Base(file), text)
	if err != nil {
		t.Fatalf("the file must decode so that the linter sees it:\n%v", err)
	}
	golden(t, file, l.Lint(LintOptions{Designs: Designs, Actors: Actors,
		Specs: []Spec{{Name: "exists", Claims: []string{"checks", "no-such-claim"}}, {Name: "other", Claims: []string{"rules"}}}}))
}

// TestLintKnowsTheDesigns: the designs are a parameter, so a ledger that
// selects a design which is gone is an error.
func TestLintKnowsTheDesigns(t *testing.T) {
	err := loadLedger(t).Lint(LintOptions{Designs: Designs[:9], Actors: Actors})
	if err == nil || !strings.Contains(err.Error(), `nothing is called "nat-winnat"`) {
		t.Errorf("without the design nat-winnat the ledger must not lint; got %v", err)
	}
}

func TestLoadWithoutFiles(t *testing.T) {
	if _, err := LoadFS(os.DirFS("testdata"), "nothing/*.yaml"); err == nil || !strings.Contains(err.Error(), "no file of claims") {
		t.Errorf("got %v", err)
	}
}

func TestLedgerLooksUp(t *testing.T) {
	l := loadLedger(t)
	if c := l.Claim("flow-udp"); c == nil || c.ID != "flow-udp" || l.AreaOf("flow-udp") != "flows" {
		t.Errorf("flow-udp is %v in %q", c, l.AreaOf("flow-udp"))
	}
	if l.Claim("no-such-claim") != nil || l.AreaOf("no-such-claim") != "" {
		t.Error("a claim that does not exist was found")
	}
	rows := l.Results()
	if len(rows) != len(l.Claims()) {
		t.Errorf("%d rows for %d claims", len(rows), len(l.Claims()))
	}
	if !slices.IsSortedFunc(l.Files, func(a, b File) int { return a.Order - b.Order }) || len(l.Areas()) != len(l.Files) {
		t.Errorf("the areas are out of order: %v", l.Areas())
	}
	for _, r := range rows {
		if len(r.History) == 0 || r.Area == "" {
			t.Errorf("row %s has no history or no area", r.ID)
		}
	}
}

// FuzzParse: whatever the file holds, loading and linting end with a ledger or
// with mistakes that have a place, and never with a panic.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "data/ipv6.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse("fuzz.yaml", text)
		if err == nil {
			l.Results()
			err = l.Lint(LintOptions{Designs: Designs, Actors: Actors})
		}
		var ms Mistakes
		if err != nil && !errors.As(err, &ms) {
			t.Fatalf("the error is %T", err)
		}
		for _, m := range ms {
			if m.Line < 1 || m.Column < 1 || m.Message == "" {
				t.Fatalf("a mistake without a place: %v", m)
			}
		}
	})
}

// FuzzParseRange: a range that is read holds some version, and means the same
// when its parts are written in another order.
func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"", ">=1.14 <=1.20", "1.5 || >=1.14", ">10.0.17763", "<0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err != nil {
			return
		}
		if !r.Overlaps(nil) || !r.Overlaps(r) {
			t.Fatalf("%q was read but holds nothing", s)
		}
		_ = rangeWords("Kubernetes", s)
		_ = lowest(s)
	})
}
