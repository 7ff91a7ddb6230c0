package findings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/junitxml"
)

// JUnit writes the findings as JUnit XML: a suite for each file, a case for
// each subject in it. Findings with the level error are failures; warnings and
// what is good to know are the case's output and do not fail it. Documents that
// could not be read are errors. A file of Read without a finding is a case that
// passes, as is what the doctor found in order; what it could not look at is
// skipped.
func JUnit(w io.Writer, doc *Document) error {
	d := doc.sorted()
	b := &junitBuilder{doc: d, all: junitxml.Suites{Name: "winlab"}, suites: map[string]*junitxml.Suite{}, errors: map[*junitxml.Case]int{}}
	b.files()
	for _, m := range d.Mistakes {
		b.mistake(m)
	}
	for i := range d.Findings {
		b.finding(&d.Findings[i])
	}
	for c, n := range b.errors {
		if n > 1 {
			c.Failure.Message = fmt.Sprintf("%s, and %d more", c.Failure.Message, n-1)
		}
	}
	for _, s := range b.all.Suites {
		if len(s.Cases) == 0 {
			s.Cases = append(s.Cases, &junitxml.Case{Class: s.Name, Name: "nothing found", File: s.File})
		}
	}
	b.all.Suites = append(b.all.Suites, doctor(d)...)
	if len(b.all.Suites) == 0 {
		nothing := fmt.Sprintf("nothing found in %s", plural(d.Checked(), "document", "documents"))
		b.all.Suites = append(b.all.Suites, &junitxml.Suite{Name: "winlab", Cases: []*junitxml.Case{{Class: "winlab", Name: nothing}}})
	}
	return b.all.Write(w)
}

type junitBuilder struct {
	doc *Document
	all junitxml.Suites
	// suites has the suite of a file.
	suites map[string]*junitxml.Suite
	// errors is the number of findings behind a case's failure.
	errors map[*junitxml.Case]int
}

// files makes the suites, in the order of the files' names.
func (b *junitBuilder) files() {
	names := slices.Clone(b.doc.Read)
	for _, m := range b.doc.Mistakes {
		names = append(names, m.File)
	}
	for _, f := range b.doc.Findings {
		names = append(names, f.File)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		s := &junitxml.Suite{Name: clean.Line(name), File: clean.Line(name)}
		if name == "" {
			s.Name = "the setting"
		}
		b.suites[name] = s
		b.all.Suites = append(b.all.Suites, s)
	}
}

func (b *junitBuilder) mistake(m Mistake) {
	s := b.suites[m.File]
	message := clean.Line(m.Message)
	s.Cases = append(s.Cases, &junitxml.Case{Class: s.Name, Name: "can be read", File: s.File, Line: m.Line,
		Error: &junitxml.Problem{Message: message, Type: "mistake", Text: "\n" + place(m.File, m.Line, m.Column) + ": " + message + "\n"}})
}

func (b *junitBuilder) finding(f *Finding) {
	c := caseOf(b.suites[f.File], f)
	text := block(b.doc, f)
	if f.Level != Error {
		c.Out += text
		return
	}
	b.errors[c]++
	if c.Failure == nil {
		c.Failure = &junitxml.Problem{Message: clean.Line(f.Message), Type: clean.Line(f.Claim), Text: "\n"}
	}
	c.Failure.Text += text
}

// caseOf returns the case of a finding's subject.
func caseOf(s *junitxml.Suite, f *Finding) *junitxml.Case {
	name := clean.Line(f.Subject)
	if name == "" {
		name = "the whole"
	}
	for _, c := range s.Cases {
		if c.Name == name && c.Error == nil {
			return c
		}
	}
	c := &junitxml.Case{Class: s.Name, Name: name, File: s.File, Line: f.Line}
	s.Cases = append(s.Cases, c)
	return c
}

// doctor makes suites of what was in order, and of what could not be looked at.
func doctor(d *Document) []*junitxml.Suite {
	var out []*junitxml.Suite
	if len(d.Healthy) > 0 {
		s := &junitxml.Suite{Name: "in order"}
		for _, h := range d.Healthy {
			s.Cases = append(s.Cases, &junitxml.Case{Class: s.Name, Name: clean.Line(h)})
		}
		out = append(out, s)
	}
	if len(d.NotExamined) > 0 {
		s := &junitxml.Suite{Name: "not examined"}
		for _, n := range d.NotExamined {
			what, take, _ := strings.Cut(n, ": ")
			s.Cases = append(s.Cases, &junitxml.Case{Class: s.Name, Name: clean.Line(what), Skipped: &junitxml.Problem{Message: clean.Line(take)}})
		}
		out = append(out, s)
	}
	return out
}

// block is a finding as Text writes it, without colour.
func block(d *Document, f *Finding) string {
	var b strings.Builder
	p := newPrinter(&b, d, TextOptions{})
	p.finding(f)
	p.w.Flush() // a strings.Builder does not fail
	return b.String()
}
