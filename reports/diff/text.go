package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
)

// Shown is how many checks of a group the texts name when nothing else is asked for.
const Shown = 5

// WriteJSON writes the report as indented JSON.
func WriteJSON(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for a terminal, with at most limit checks of each group; 0
// is all.
func WriteText(w io.Writer, r *Report, limit int) error {
	var b bytes.Buffer
	p := func(format string, a ...any) { b.WriteString(clean.Line(fmt.Sprintf(format, a...)) + "\n") }
	for _, side := range []struct {
		name string
		Side
	}{{"A", r.A}, {"B", r.B}} {
		p("%-10s%s  (%s)", side.name, side.Name, side.Origin())
		if side.NoTraces != "" {
			p("          causes are unknown without its traces: %s", side.NoTraces)
		}
	}
	for _, s := range r.Pairs() {
		p("          %s", s)
	}
	for _, in := range r.Inputs {
		p("differs   %s: %s > %s%s", in.What, orNone(in.A), orNone(in.B), ofPairs(in.Pairs, len(r.A.Settings)))
	}
	if len(r.Files) > 0 {
		p("changed   %s", strings.Join(r.Files, ", "))
	}
	p("compared  %s", r.Counts())
	for i := range r.Groups {
		g := &r.Groups[i]
		p("")
		p("%d  %s", i+1, g.Head())
		if g.Kind == Differs || g.Kind == Agrees {
			p("   expected  A: %s   B: %s", g.A.expects(), g.B.expects())
		}
		for _, side := range []struct {
			name string
			step *Step
			o    Outcome
		}{{"A", g.StepA, g.A}, {"B", g.StepB, g.B}} {
			if side.step != nil {
				p("   parts  %s  %s", side.name, side.step.says())
			}
			if side.o.Summary != "" && g.Kind != Expected {
				p("   says   %s  %s", side.name, side.o.Summary)
			}
		}
		shown, more := cut(g.Changes, limit)
		for _, c := range shown {
			p("   check     %s", c.Says())
		}
		if more > 0 {
			p("             and %d more (--all)", more)
		}
		for _, o := range []Outcome{g.A, g.B} {
			if o.Command != "" && g.Kind != Expected {
				p("   see       %s", o.Command)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Origin is how and when a side was made.
func (s *Side) Origin() string {
	parts := []string{s.Command, s.Tool}
	if s.Date != "" {
		parts = append(parts, s.Date)
	}
	return strings.Join(parts, "; ")
}

// WriteMarkdown writes the report for a pull request, with at most limit checks of each
// group; 0 is all.
func WriteMarkdown(w io.Writer, r *Report, limit int) error {
	var b bytes.Buffer
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	p("### winlab: %s", r.Counts())
	p("")
	p("A: %s (%s). B: %s (%s).", code(r.A.Name), code(r.A.Origin()), code(r.B.Name), code(r.B.Origin()))
	if len(r.Files) > 0 {
		p("")
		p("Changed: %s.", code(strings.Join(r.Files, ", ")))
	}
	for _, side := range []Side{r.A, r.B} {
		if side.NoTraces != "" {
			p("")
			p("Causes are unknown without the traces of %s: %s.", code(side.Name), md(side.NoTraces))
		}
	}
	if pairs := r.Pairs(); len(pairs) > 0 {
		p("")
		for _, s := range pairs {
			p("- %s", code(s))
		}
	}
	if len(r.Inputs) > 0 {
		p("")
		p("| differs | A | B | pairs of settings |\n|---|---|---|---|")
		for _, in := range r.Inputs {
			p("| %s | %s | %s | %d of %d |", in.What, cell(orNone(in.A)), cell(orNone(in.B)), in.Pairs, len(r.A.Settings))
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		p("")
		p("#### %d. %s", i+1, md(sentence(g.Head())))
		p("")
		for _, side := range []struct {
			name string
			step *Step
			o    Outcome
		}{{"A", g.StepA, g.A}, {"B", g.StepB, g.B}} {
			if side.step != nil {
				p("- the path of %s differs at %s", side.name, code(side.step.says()))
			}
			if g.Kind == Expected {
				continue
			}
			if side.o.Summary != "" {
				p("- %s: %s", side.name, md(side.o.Summary))
			}
			if side.o.Command != "" {
				p("- %s: %s", side.name, code(side.o.Command))
			}
		}
		p("")
		p("<details><summary>%s</summary>", plural(len(g.Changes), "check", "checks"))
		p("")
		shown, more := cut(g.Changes, limit)
		for _, c := range shown {
			p("- %s", code(c.Says()))
		}
		if more > 0 {
			p("- and %d more", more)
		}
		p("")
		p("</details>")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Counts says in one line how much changed.
func (r *Report) Counts() string {
	s := plural(r.Compared, "check", "checks") + " in " + plural(len(r.A.Settings), "setting", "settings")
	if r.Changed == 0 {
		s += ", none changed"
	} else {
		groups := 0
		for _, g := range r.Groups {
			if g.Kind != Expected {
				groups++
			}
		}
		s += fmt.Sprintf(", %d changed, in %s", r.Changed, plural(groups, "group", "groups"))
	}
	if r.ExpectedElse > 0 {
		s += fmt.Sprintf("; for %d others the documents say something else", r.ExpectedElse)
	}
	if n := len(r.OnlyA); n > 0 {
		s += fmt.Sprintf("; %d only in A", n)
	}
	if n := len(r.OnlyB); n > 0 {
		s += fmt.Sprintf("; %d only in B", n)
	}
	return s
}

// Pairs lists the settings that were compared under different names.
func (r *Report) Pairs() []string {
	var all []string
	for i, a := range r.A.Settings {
		if b := r.B.Settings[i]; a != b {
			all = append(all, a+" > "+b)
		}
	}
	return all
}

// head says what the group is.
// Head says in a sentence how the checks of the group changed.
func (g *Group) Head() string {
	n := plural(len(g.Changes), "check", "checks")
	if g.Kind == Expected {
		return fmt.Sprintf("%s: %s > %s, in %s", g.Kind.Says(), g.A.expects(), g.B.expects(), n)
	}
	return fmt.Sprintf("%s: %s > %s, in %s", g.Kind.Says(), g.A.Says(), g.B.Says(), n)
}

func (o Outcome) expects() string {
	if o.Expect == "" {
		return "silent"
	}
	return o.Expect
}

// Says is the outcome in a few words.
func (o Outcome) Says() string {
	says := o.Got
	if o.Reason != "" && o.Reason != "ok" {
		says += " " + o.Reason
	}
	if o.NotChecked != "" {
		says += " (not checked)"
	}
	return says
}

// Says names the check in one line.
func (c Check) Says() string {
	var parts []string
	for _, s := range []string{c.Claim, c.Lab, c.Flow, c.SettingA} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if c.What != "" && c.What != c.Flow {
		parts = append(parts, c.What)
	}
	if c.Level != "model" && c.Level != "" {
		parts = append(parts, "("+c.Level+")")
	}
	return strings.Join(parts, "  ")
}

func (s *Step) says() string {
	t := fmt.Sprintf("step %d, %s: %s", s.N, s.Place, s.Text)
	if s.Rule != "" {
		t += ", " + s.Rule
	}
	if s.From != "" {
		t += ", from " + s.From
	}
	if s.Fact != "" {
		t += " [" + s.Fact + "]"
	}
	return t
}

func cut(all []Check, limit int) (shown []Check, more int) {
	if limit == 0 || len(all) <= limit {
		return all, 0
	}
	return all[:limit], len(all) - limit
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func ofPairs(n, of int) string {
	if n == of {
		return ""
	}
	return fmt.Sprintf("  (in %d of %s)", n, plural(of, "setting", "settings"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// md keeps a text from being read as Markdown or HTML.
func md(s string) string {
	s = clean.Line(s)
	for _, c := range []string{"\\", "`", "*", "_", "[", "<", "|", "#"} {
		s = strings.ReplaceAll(s, c, "\\"+c)
	}
	return s
}

func code(s string) string {
	s = clean.Line(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

func cell(s string) string { return strings.ReplaceAll(md(s), "\n", " ") }
