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
		for len(mistakes) > 0 && (f == nil || f.File != "" && cmp.Or(strings.Compare(mistakes[0].File, f.File),
			cmp.Compare(mistakes[0].Line, f.Line)) <= 0) {
			m := mistakes[0]
			p.head(m.File, m.Line, m.Column, Error, m.Message, "")
			mistakes = mistakes[1:]
		}
	}
	repeats := repeated(d.Findings)
	for i := range d.Findings {
		again, first := repeats[i]
		if !first {
			continue
		}
		until(&d.Findings[i])
		p.finding(&d.Findings[i])
		p.named("also", again)
	}
	until(nil)
	p.summary()
	return p.w.Flush()
}

// repeated finds, by the index of the first, findings that are the same in all but their
// place, and says where else they are; "" for a finding that is alone. What the doctor finds has
// its own evidence and is never joined.
func repeated(all []Finding) map[int]string {
	type words struct{ claim, level, effect, message, write, in string }
	first := map[words]int{}
	others := map[int][]int{}
	out := map[int]string{}
	for i, f := range all {
		k := words{f.Claim, string(f.Level), f.Effect, f.Message, f.Write, strings.Join(f.Settings, "\n")}
		j, seen := first[k]
		if !seen || f.Cause != "" || f.File == "" {
			first[k] = i
			out[i] = ""
			continue
		}
		others[j] = append(others[j], i)
	}
	for i, list := range others {
		out[i] = elsewhere(all, i, list)
	}
	return out
}

// mostPlaces is how many further places of a repeated finding are named.
const mostPlaces = 3

// elsewhere names the further places: "the same in 12 other files: b.yaml:7, c.yaml:9 and 11 more places".
func elsewhere(all []Finding, first int, list []int) string {
	files := map[string]bool{}
	var places []string
	for _, i := range list {
		f := &all[i]
		if f.File != all[first].File {
			files[f.File] = true
		}
		if len(places) < mostPlaces {
			places = append(places, place(f.File, f.Line, 0))
		}
	}
	words := "the same in this file: "
	if n := len(files); n > 0 {
		words = "the same in " + plural(n, "other file", "other files") + ": "
	}
	words += strings.Join(places, ", ")
	if n := len(list) - len(places); n > 0 {
		words += " and " + plural(n, "more place", "more places")
	}
	return words
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
	p.named("in", strings.Join(firstFew(f.Settings), "\n"))
}

// mostLines is how many lines say in which settings a finding holds.
const mostLines = 5

func firstFew(lines []string) []string {
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
	p.taken()
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
	p.known()
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

// known names the known issues whose symptoms were found, with the lines.
func (p *printer) known() {
	if len(p.d.Known) == 0 {
		return
	}
	p.w.WriteString("known issues with these symptoms:\n")
	for _, k := range p.d.Known {
		fmt.Fprintf(p.w, "    %4d %s\n", k.ID, clean.Line(k.Title))
		for _, l := range k.Lines {
			fmt.Fprintf(p.w, "         %s\n", clean.Line(l))
		}
	}
	fmt.Fprintf(p.w, "         winlab known show %d says more\n", p.d.Known[0].ID)
}

// taken says what is not among the findings, and why.
func (p *printer) taken() {
	d := p.d
	if d.Interrupted != "" {
		fmt.Fprintln(p.w, p.paint(levelColour[Warning], clean.Line(d.Interrupted)))
	}
	if len(d.NotShown) > 0 {
		claims := slices.SortedFunc(maps.Keys(d.NotShown), func(a, b string) int {
			return cmp.Or(cmp.Compare(d.NotShown[b], d.NotShown[a]), strings.Compare(a, b))
		})
		n := 0
		var words []string
		for i, c := range claims {
			n += d.NotShown[c]
			if i < mostPlaces {
				words = append(words, fmt.Sprintf("%d %s", d.NotShown[c], clean.Line(c)))
			}
		}
		if len(claims) > mostPlaces {
			words = append(words, "...")
		}
		fmt.Fprintf(p.w, "%s not shown (%s); --profile all shows them\n",
			plural(n, "remark that breaks or changes nothing is", "remarks that break or change nothing are"), strings.Join(words, ", "))
	}
	if n := len(d.Suppressed); n > 0 {
		fmt.Fprintf(p.w, "%s suppressed with a reason; -o json has them\n", plural(n, "finding is", "findings are"))
	}
	for _, s := range d.NeedlessIgnores {
		fmt.Fprintf(p.w, "        %s: there is nothing to ignore\n", clean.Line(s))
	}
	if b := d.Baseline; b != nil {
		fmt.Fprintf(p.w, "%s known from the baseline, %d of its findings no longer found\n", plural(b.Known, "finding is", "findings are"),
			b.Gone)
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
