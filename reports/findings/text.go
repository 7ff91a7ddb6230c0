package findings

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
)

// TextOptions say how findings are written for people.
type TextOptions struct {
	// Color uses the escape sequences of terminals.
	Color bool
}

// Text writes findings for people: one paragraph each, in the form that
// editors and CI logs know, "file:line:column: level: message (claim)", and
// a summary as the last lines. Nothing that is in a file can drive the
// terminal: control characters are written as escapes.
func Text(w io.Writer, d *Document, o TextOptions) error {
	d = d.sorted()
	p := newPrinter(w, d, o)
	// File by file: what is a mistake in it, and what was found in the rest.
	mistakes := d.Mistakes
	until := func(f *Finding) {
		for len(mistakes) > 0 && (f == nil || f.File != "" && cmp.Or(strings.Compare(mistakes[0].File, f.File), cmp.Compare(mistakes[0].Line, f.Line)) <= 0) {
			m := mistakes[0]
			p.head(m.File, m.Line, m.Column, Error, m.Message, "")
			mistakes = mistakes[1:]
		}
	}
	for i := range d.Findings {
		until(&d.Findings[i])
		p.finding(&d.Findings[i])
	}
	until(nil)
	p.summary()
	return p.w.Flush()
}

func newPrinter(w io.Writer, d *Document, o TextOptions) *printer {
	return &printer{w: bufio.NewWriter(w), o: o, d: d}
}

type printer struct {
	w *bufio.Writer
	o TextOptions
	d *Document
}

var levelColour = map[Level]string{Error: "1;31", Warning: "1;33", Info: "1;34"}

func (p *printer) paint(code, s string) string {
	if !p.o.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) head(file string, line, column int, level Level, message, claim string) {
	if at := place(file, line, column); at != "" {
		fmt.Fprintf(p.w, "%s: ", p.paint("1", at))
	}
	fmt.Fprintf(p.w, "%s: %s", p.paint(levelColour[level], clean.Line(string(level))), clean.Line(message))
	if claim != "" {
		fmt.Fprintf(p.w, " %s", p.paint("2", "("+clean.Line(claim)+")"))
	}
	p.w.WriteByte('\n')
}

// place is "file:line:column" as far as it is known.
func place(file string, line, column int) string {
	s := clean.Line(file)
	if s == "" || line <= 0 {
		return s
	}
	if column <= 0 {
		return fmt.Sprintf("%s:%d", s, line)
	}
	return fmt.Sprintf("%s:%d:%d", s, line, column)
}

func (p *printer) finding(f *Finding) {
	p.head(f.File, f.Line, f.Column, f.Level, f.Message, f.Claim)
	effect := f.EffectWords
	if f.Subject != "" && effect != "" {
		effect = f.Subject + ": " + effect
	}
	remedy := "write"
	if f.Symptom != "" || f.Cause != "" {
		remedy = "cure"
	}
	p.named("symptom", f.Symptom)
	p.named("cause", f.Cause)
	p.named("effect", effect)
	p.named("seen", strings.Join(f.Evidence, "\n"))
	p.named(remedy, f.Write)
	p.named("in", strings.Join(few(f.Settings), "\n"))
}

// mostLines is how many lines say in which settings a finding holds.
const mostLines = 5

func few(lines []string) []string {
	if n := len(lines); n > mostLines {
		return append(slices.Clone(lines[:mostLines-1]), fmt.Sprintf("and %d more", n-mostLines+1))
	}
	return lines
}

// named writes a line that belongs to the finding above, behind its name;
// further lines of the text follow below the first.
func (p *printer) named(name, s string) {
	if s == "" {
		return
	}
	for l := range strings.Lines(clean.Text(s)) {
		fmt.Fprintf(p.w, "        %s  %s\n", p.paint("2", fmt.Sprintf("%-7s", name)), strings.TrimRight(l, "\n"))
		name = ""
	}
}

func (p *printer) summary() {
	d := p.d
	what := plural(d.Files, "file", "files")
	switch {
	case len(d.Read) == 1:
		what = clean.Line(d.Read[0])
	case d.Files == 1 && len(d.Findings)+len(d.Mistakes) > 0:
		what = clean.Line(fileOf(d))
	}
	fmt.Fprintf(p.w, "%s: %s", what, p.counts())
	switch n := len(d.Settings); {
	case n == 1:
		fmt.Fprintf(p.w, " for %s", clean.Line(settingsWords(d.Settings)))
	case n > 1:
		fmt.Fprintf(p.w, " in %d settings, %s", n, clean.Line(settingsWords(d.Settings)))
	}
	p.w.WriteByte('\n')
	if n := len(d.Assumed); n > 0 {
		flags := clean.Line(d.Assumed[n-1])
		if n > 1 {
			flags = clean.Line(strings.Join(d.Assumed[:n-1], ", ")) + " and " + flags
		}
		fmt.Fprintf(p.w, "defaults, the newest that the documents cover, were used for %s\n", flags)
	}
	if len(d.Passed) > 0 {
		var kinds []string
		n := 0
		for _, k := range slices.Sorted(maps.Keys(d.Passed)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", d.Passed[k], clean.Line(k)))
			n += d.Passed[k]
		}
		fmt.Fprintf(p.w, "no rule looks at %s of %d: %s\n", plural(n, "document", "documents"), d.Documents, strings.Join(kinds, ", "))
	}
	for i, f := range d.NotUnderstood {
		if i == maxNotUnderstood {
			fmt.Fprintf(p.w, "        and %d more; -o json lists all\n", len(d.NotUnderstood)-i)
			break
		}
		fmt.Fprintf(p.w, "        %s\n", clean.Line(f))
	}
	if n := len(d.Healthy); n > 0 {
		fmt.Fprintf(p.w, "%s in order\n", plural(n, "thing was looked at and is", "things were looked at and are"))
	}
	if len(d.NotExamined) > 0 {
		p.w.WriteString("not examined:\n")
		for _, s := range d.NotExamined {
			fmt.Fprintf(p.w, "        %s\n", clean.Line(s))
		}
	}
}

// maxNotUnderstood bounds the files that text names.
const maxNotUnderstood = 12

// fileOf is the file that all findings and mistakes are in, when it is one.
func fileOf(d *Document) string {
	name := ""
	for _, f := range d.Findings {
		if f.File != "" {
			name = f.File
		}
	}
	for _, m := range d.Mistakes {
		name = m.File
	}
	if name == "" {
		return "1 file"
	}
	return name
}

// counts says how much was found, by level.
func (p *printer) counts() string {
	d := p.d
	var counts []string
	if n := d.Count(Error); n > 0 {
		counts = append(counts, p.paint(levelColour[Error], plural(n, "error", "errors")))
	}
	if n := d.Count(Warning); n > 0 {
		counts = append(counts, p.paint(levelColour[Warning], plural(n, "warning", "warnings")))
	}
	if n := d.Count(Info); n > 0 {
		counts = append(counts, p.paint(levelColour[Info], fmt.Sprintf("%d info", n)))
	}
	if n := len(d.Mistakes); n > 0 {
		counts = append(counts, p.paint(levelColour[Error], plural(n, "mistake", "mistakes")+" in the files"))
	}
	if len(counts) > 0 {
		return strings.Join(counts, ", ")
	}
	if d.Checked() == 0 && len(d.Healthy) == 0 {
		return p.paint(levelColour[Warning], "nothing was checked")
	}
	return p.paint("32", "nothing found")
}
