package upstream

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestSIGWindows(t *testing.T) {
	table, err := SIGWindows()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range table.Tests {
		n[e.Class]++
	}
	// test/e2e/windows of 1.37.0 has 39 tests.
	if len(table.Tests) != 39 || n["A"] != 5 {
		t.Errorf("%d tests, by class %v", len(table.Tests), n)
	}
}

func TestSIGNetwork(t *testing.T) {
	table, err := SIGNetwork()
	if err != nil {
		t.Fatal(err)
	}
	focus, skip := regexp.MustCompile(table.Focus), regexp.MustCompile(table.Skip)
	for _, e := range table.Tests {
		if !focus.MatchString(e.Test) || skip.MatchString(e.Test) {
			t.Errorf("the expressions do not pick %s", e.Test)
		}
	}
	// e2e.test of 1.37.0 lists 249 tests of SIG Network; 115 have no label that the table skips.
	if len(table.Tests) != 115 {
		t.Errorf("%d tests", len(table.Tests))
	}
}

func TestMistakesInATable(t *testing.T) {
	for text, want := range map[string]string{
		"tests: []": "no focus",
		"focus: x\ntests: [{class: A, want: pass}]":                                           "has no test",
		"focus: x\ntests: [{test: a, class: A, want: pass}, {test: a, class: A, want: pass}]": "twice",
		"focus: x\ntests: [{test: a, class: D, want: pass}]":                                  "write one of A, B, C",
		"focus: x\ntests: [{test: a, class: A, want: green}]":                                 "pass, fail, skip or leave out",
		"focus: x\ntests: [{test: a, class: A, want: fail}]":                                  "write why",
		"focus: x\ntest: []": "unknown field",
	} {
		if _, err := ReadTable([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	table := &Table{Tests: []Expected{{Test: "a (b)", Want: Leave}, {Test: "c", Want: Pass}, {Test: "d", Want: Leave}}}
	if got := table.LeftOut(); got != `a \(b\)|d` {
		t.Errorf("%q", got)
	}
	if got := (&Table{}).LeftOut(); got != "" {
		t.Errorf("%q", got)
	}
}

// TestCompare: what is not as expected is an error, whichever way it goes.
func TestCompare(t *testing.T) {
	f, err := os.Open("testdata/junit_01.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	results, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 || results[0].Took != 34500*time.Millisecond {
		t.Fatalf("%+v", results)
	}
	row := func(name string, want Outcome) Expected {
		return Expected{Test: "[sig-windows] " + name, Class: "A", Want: want, Why: "because"}
	}
	all := []Expected{row("passes", Pass), row("fails", Fail), row("skips itself", Skip)}
	for name, c := range map[string]struct {
		tests  []Expected
		partly bool
		says   string
	}{
		"as expected":          {all, false, ""},
		"fails":                {[]Expected{all[0], row("fails", Pass), all[2]}, false, "fail instead of pass: timed out"},
		"passes by surprise":   {[]Expected{row("passes", Fail), all[1], all[2]}, false, "change the table"},
		"skipped by surprise":  {[]Expected{all[0], all[1], row("skips itself", Pass)}, false, "skip instead of pass: no GPU here"},
		"not expected":         {all[1:], false, "the table does not have it"},
		"it did not run":       {append(all, row("other", Pass)), false, "did not run"},
		"it did not need to":   {append(all, row("other", Pass)), true, ""},
		"it was left out":      {append(all, row("other", Leave)), false, ""},
		"it was not left out":  {[]Expected{all[0], row("fails", Leave), all[2]}, false, "fail instead of leave out"},
		"not even when partly": {[]Expected{all[0], row("fails", Pass), all[2], row("other", Pass)}, true, "instead of"},
	} {
		rows, err := Compare(&Table{Tests: c.tests}, results, c.partly)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
		var b strings.Builder
		if err := Markdown(&b, rows); err != nil || !strings.Contains(b.String(), "Class A: ") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}
