package findings

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []*suite `xml:"testsuite"`
}

type suite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	File     string      `xml:"file,attr,omitempty"`
	Cases    []*testcase `xml:"testcase"`
}

type testcase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr,omitempty"`
	Line    int      `xml:"line,attr,omitempty"`
	Failure *problem `xml:"failure,omitempty"`
	Error   *problem `xml:"error,omitempty"`
	Skipped *problem `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`

	errors int
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the findings as JUnit XML: a suite for each file, a case for
// each subject in it. Findings with the level error are failures; warnings and
// what is good to know are the case's output and do not fail it. Documents that
// could not be read are errors. A file of Read without a finding is a case that
// passes, as is what the doctor found in order; what it could not look at is
// skipped.
func JUnit(w io.Writer, doc *Document) error {
	d := doc.sorted()
	all := suites{Name: "winlab"}
	of := map[string]*suite{}
	file := func(name string) *suite {
		if of[name] == nil {
			s := &suite{Name: clean.Line(name), File: clean.Line(name)}
			if name == "" {
				s.Name = "the setting"
			}
			of[name] = s
			all.Suites = append(all.Suites, s)
		}
		return of[name]
	}
	names := slices.Clone(d.Read)
	for _, m := range d.Mistakes {
		names = append(names, m.File)
	}
	for _, f := range d.Findings {
		names = append(names, f.File)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		file(name)
	}
	for _, m := range d.Mistakes {
		s := file(m.File)
		message := clean.Line(m.Message)
		s.Cases = append(s.Cases, &testcase{Class: s.Name, Name: "can be read", File: s.File, Line: m.Line,
			Error: &problem{Message: message, Type: "mistake", Text: "\n" + place(m.File, m.Line, m.Column) + ": " + message + "\n"}})
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		s := file(f.File)
		s.finding(f).add(f, block(d, f))
	}
	for _, s := range all.Suites {
		if len(s.Cases) == 0 {
			s.Cases = append(s.Cases, &testcase{Class: s.Name, Name: "nothing found", File: s.File})
		}
	}
	all.Suites = append(all.Suites, doctor(d)...)
	if len(all.Suites) == 0 {
		all.Suites = append(all.Suites, &suite{Name: "winlab", Cases: []*testcase{{Class: "winlab", Name: fmt.Sprintf("nothing found in %s", plural(d.Checked(), "document", "documents"))}}})
	}
	for _, s := range all.Suites {
		s.count()
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("findings: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *suite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
			if c.errors > 1 {
				c.Failure.Message = fmt.Sprintf("%s, and %d more", c.Failure.Message, c.errors-1)
			}
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// doctor makes suites of what was in order, and of what could not be looked at.
func doctor(d *Document) []*suite {
	var out []*suite
	if len(d.Healthy) > 0 {
		s := &suite{Name: "in order"}
		for _, h := range d.Healthy {
			s.Cases = append(s.Cases, &testcase{Class: s.Name, Name: clean.Line(h)})
		}
		out = append(out, s)
	}
	if len(d.NotExamined) > 0 {
		s := &suite{Name: "not examined"}
		for _, n := range d.NotExamined {
			what, take, _ := strings.Cut(n, ": ")
			s.Cases = append(s.Cases, &testcase{Class: s.Name, Name: clean.Line(what), Skipped: &problem{Message: clean.Line(take)}})
		}
		out = append(out, s)
	}
	return out
}

// finding returns the case of a finding's subject.
func (s *suite) finding(f *Finding) *testcase {
	name := clean.Line(f.Subject)
	if name == "" {
		name = "the whole"
	}
	for _, c := range s.Cases {
		if c.Name == name && c.Error == nil {
			return c
		}
	}
	c := &testcase{Class: s.Name, Name: name, File: s.File, Line: f.Line}
	s.Cases = append(s.Cases, c)
	return c
}

func (c *testcase) add(f *Finding, text string) {
	if f.Level != Error {
		c.Out += text
		return
	}
	c.errors++
	if c.Failure == nil {
		c.Failure = &problem{Message: clean.Line(f.Message), Type: clean.Line(f.Claim), Text: "\n"}
	}
	c.Failure.Text += text
}

// block is a finding as Text writes it, without colour.
func block(d *Document, f *Finding) string {
	var b strings.Builder
	p := newPrinter(&b, d, TextOptions{})
	p.finding(f)
	p.w.Flush() // a strings.Builder does not fail
	return b.String()
}
