package diff

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// check is a check with an expectation and an outcome, "works: delivered" or
// "silent: dropped no-route".
func check(t *testing.T, what, text string) result.Check {
	t.Helper()
	expect, got, ok := strings.Cut(text, ": ")
	if !ok {
		t.Fatalf("%q", text)
	}
	k := result.Check{Level: result.Model, What: what}
	if expect != "silent" {
		k.Expect = expect
	}
	if rest, ok := strings.CutSuffix(got, ", not checked"); ok {
		got, k.NotChecked = rest, "no packet is sent"
	}
	k.Got, k.Reason, _ = strings.Cut(got, " ")
	k.Pass = k.Expect == "" || k.Expect == k.Got
	return k
}

func document(t *testing.T, settings []result.Setting, cells map[string][]string) *result.Document {
	t.Helper()
	d := &result.Document{Settings: settings, Claims: []result.Claim{{ID: "c", Title: "a claim"}}}
	for _, s := range settings {
		var cell result.Cell
		cell.Claim, cell.Setting = "c", s.ID
		for i, text := range cells[s.ID] {
			cell.Checks = append(cell.Checks, check(t, "flow "+string(rune('a'+i)), text))
		}
		d.Cells = append(d.Cells, cell)
	}
	return d
}

func setting(design, kubernetes, build string) result.Setting {
	return result.Setting{ID: design + "/" + kubernetes + "-" + build, Design: design, Kubernetes: kubernetes,
		Builds: []string{"10.0." + build}}
}

// TestKinds: how each kind of change is told, and that a change of every kind is found.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"delivered: delivered", "delivered: delivered", ""},
		{"delivered: delivered", "delivered: dropped no-route", "differs-now"},
		{"delivered: dropped no-route", "delivered: delivered", "agrees-now"},
		{"delivered: delivered", "dropped: dropped no-route", "stopped"},
		{"silent: dropped no-route", "silent: delivered", "works-now"},
		{"silent: delivered", "delivered: dropped no-route", "stopped"},
		{"dropped: dropped no-route", "dropped: dropped no-route, not checked", "checked"},
		{"silent: dropped no-route, not checked", "silent: dropped acl-block", "checked"},
		{"delivered: delivered", "delivered: dropped no-route, not checked", "differs-now"},
		{"silent: dropped no-route", "silent: rejected port-closed", "verdict"},
		{"silent: dropped no-route", "silent: dropped acl-block", "reason"},
		{"delivered: delivered", "silent: delivered", "expected"},
		// Where documents are silent on one side, nothing can begin to agree.
		{"dropped: delivered", "silent: delivered", "expected"},
	} {
		s := []result.Setting{setting("d", "1.20", "17763.1")}
		r, err := Compare(document(t, s, map[string][]string{s[0].ID: {c.a}}), document(t, s, map[string][]string{s[0].ID: {c.b}}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, g := range r.Groups {
			got += string(g.Kind)
			if g.Kind.Says() == "" {
				t.Errorf("%s has no words", g.Kind)
			}
		}
		if got != c.want {
			t.Errorf("%s > %s: %q, want %q", c.a, c.b, got, c.want)
		}
		if verdict := c.want != "" && c.want != "expected"; (r.Changed == 1) != verdict || (r.ExpectedElse == 1) != (c.want == "expected") {
			t.Errorf("%s > %s: %d changed, of %d something else is expected", c.a, c.b, r.Changed, r.ExpectedElse)
		}
	}
}

// TestOneSided: checks and settings of one side only are listed, not lost.
func TestOneSided(t *testing.T) {
	x, y := setting("d", "1.20", "17763.1"), setting("d", "1.21", "17763.1")
	a := document(t, []result.Setting{x}, map[string][]string{x.ID: {"silent: delivered", "silent: delivered"}})
	b := document(t, []result.Setting{x, y}, map[string][]string{x.ID: {"silent: delivered"}, y.ID: {"silent: delivered"}})
	r, err := Compare(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Compared != 1 || len(r.OnlyA) != 1 || r.OnlyA[0].What != "flow b" || len(r.OnlyB) != 1 || r.OnlyB[0].SettingA != y.ID {
		t.Errorf("compared %d, only in A %v, only in B %v", r.Compared, r.OnlyA, r.OnlyB)
	}
}

// TestPairs: settings are paired by design, with those that have most in common and the
// nearest builds; what is not clear is an error.
func TestPairs(t *testing.T) {
	all := []result.Setting{
		setting("d", "1.20", "17763.1"), setting("d", "1.20", "19041.1"), setting("d", "1.37", "20348.1"),
		setting("e", "1.20", "17763.1"), setting("f", "1.37", "20348.1"), setting("d", "1.5", "14393.1"),
	}
	for _, c := range []struct{ from, to, want string }{
		{"kubernetes=1.20", "kubernetes=1.37", "d/1.20-19041.1 > d/1.37-20348.1"},
		{"kubernetes=1.20,build=10.0.17763", "kubernetes=1.37", "d/1.20-17763.1 > d/1.37-20348.1"},
		{"build=10.0.17763", "build=10.0.19041", "d/1.20-17763.1 > d/1.20-19041.1"},
		{"design=e", "design=f", "error: no design has settings on both sides: --from finds e/1.20-17763.1, --to f/1.37-20348.1"},
		{"kubernetes=1.3", "kubernetes=1.37", "error: --from: no setting has kubernetes=1.3 (there are: 1.20, 1.37, 1.5)"},
		{"design=d,kubernetes=1.20", "design=d,kubernetes=1.20",
			"error: d has d/1.20-17763.1, d/1.20-19041.1 on one side and d/1.20-17763.1, d/1.20-19041.1 on the other, and no two of them have more in common than the others: also select by build or proxy"},
	} {
		d := document(t, all, nil)
		var o Options
		var err error
		if o.From, err = ParseSelector(c.from); err != nil {
			t.Fatal(err)
		}
		if o.To, err = ParseSelector(c.to); err != nil {
			t.Fatal(err)
		}
		r, err := Compare(d, d, o)
		got := ""
		switch {
		case err != nil:
			got = "error: " + err.Error()
		default:
			for i := range r.A.Settings {
				got += r.A.Settings[i] + " > " + r.B.Settings[i]
			}
		}
		if got != c.want {
			t.Errorf("%s, %s:\n%s\nwant\n%s", c.from, c.to, got, c.want)
		}
	}
}

// TestCauses: changes with one cause are one group whatever the nodes are called, and
// changes with two causes are two.
func TestCauses(t *testing.T) {
	step := func(place string, a trace.Action, fact string) trace.Step {
		return trace.Step{Place: place, Action: a, Evidence: fact, Event: trace.Note("at " + place)}
	}
	flow := func(v trace.Verdict, steps ...trace.Step) *trace.Trace {
		return &trace.Trace{Verdict: v, Paths: []trace.Path{{Verdict: v, Steps: steps}}}
	}
	s := setting("d", "1.20", "17763.1")
	texts := map[string][]string{s.ID: {"silent: delivered", "silent: delivered", "silent: delivered"}}
	gone := map[string][]string{s.ID: {"silent: dropped no-route", "silent: dropped no-route", "silent: dropped no-route"}}
	a, b := document(t, []result.Setting{s}, texts), document(t, []result.Setting{s}, gone)
	a.Traces, b.Traces = result.NewTraces(), result.NewTraces()
	for i, node := range []string{"win1", "win2", "win3"} {
		fact := "one"
		if i == 2 {
			fact = "two"
		}
		a.Cells[0].Checks[i].Trace, b.Cells[0].Checks[i].Trace = node, node
		a.Traces.Put(node, flow(trace.Delivered, step(node, trace.ActSend, "s"), step(node, trace.ActRewrite, fact),
			step(node, trace.ActDeliver, "")))
		b.Traces.Put(node, flow(trace.Dropped, step(node, trace.ActSend, "s"), step(node, trace.ActNoMatch, ""), step(node, trace.ActDrop, "d")))
	}
	r, err := Compare(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range r.Groups {
		var checks []string
		for _, c := range g.Changes {
			checks = append(checks, c.What)
		}
		got = append(got, strings.Join(checks, ", ")+": "+g.StepA.Fact+" > "+g.StepB.Fact)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"flow a, flow b: one > d", "flow c: two > d"}, got); diff != "" {
		t.Error(diff)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(w *bytes.Buffer) error { return WriteText(w, r, 1) },
		"markdown": func(w *bytes.Buffer) error { return WriteMarkdown(w, r, 1) },
		"json":     func(w *bytes.Buffer) error { return WriteJSON(w, r) },
	} {
		var w bytes.Buffer
		if err := write(&w); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"at win1", "no-route", "flow a"} {
			if !strings.Contains(w.String(), want) {
				t.Errorf("the %s does not say %q:\n%s", name, want, w.String())
			}
		}
		if name != "json" && (strings.Contains(w.String(), "flow b") || !strings.Contains(w.String(), "and 1 more")) {
			t.Errorf("the %s is not cut:\n%s", name, w.String())
		}
	}
}

// TestMarkdownIsNotRead: names of others are text in a pull request.
func TestMarkdownIsNotRead(t *testing.T) {
	for in, want := range map[string]string{"a<b>|c": `a\<b>\|c`, "*x*": `\*x\*`, "two\nlines": `two\\nlines`} {
		if got := md(in); got != want {
			t.Errorf("md(%q) = %q, want %q", in, got, want)
		}
	}
	if got := code("a`b``c"); got != "``` a`b``c ```" {
		t.Errorf("code: %q", got)
	}
}
