// Package junitxml is the XML that CI systems know as JUnit's: suites of cases. It must
// not know what a case is about; reports/junit and reports/findings do, and hand over
// text that is safe to print.
package junitxml

import (
	"encoding/xml"
	"fmt"
	"io"
)

// Suites is a whole document. Write fills in the numbers; callers leave them out.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	Counts
	Suites []*Suite `xml:"testsuite"`
}

// Suite is a list of cases under one name.
type Suite struct {
	Name string `xml:"name,attr"`
	Counts
	File       string      `xml:"file,attr,omitempty"`
	Properties *Properties `xml:"properties,omitempty"`
	Cases      []*Case     `xml:"testcase"`
}

// Counts are numbers of cases.
type Counts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

// Properties is a list that may be written empty; nil is not written.
type Properties struct {
	List []Property `xml:"property"`
}

// Property is something to know about a suite.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Case is one check. At most one of Failure, Error and Skipped is set; without one it
// has passed.
type Case struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Time    string   `xml:"time,attr,omitempty"`
	File    string   `xml:"file,attr,omitempty"`
	Line    int      `xml:"line,attr,omitempty"`
	Failure *Problem `xml:"failure,omitempty"`
	Error   *Problem `xml:"error,omitempty"`
	Skipped *Problem `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

// Problem says why a case has not passed: a line, and a text for those who look closer.
type Problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Write counts the cases and writes the document.
func (s *Suites) Write(w io.Writer) error {
	s.Counts = Counts{}
	for _, su := range s.Suites {
		su.Counts = count(su.Cases)
		s.Tests += su.Tests
		s.Failures += su.Failures
		s.Errors += su.Errors
		s.Skipped += su.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func count(cases []*Case) Counts {
	n := Counts{Tests: len(cases)}
	for _, c := range cases {
		switch {
		case c.Failure != nil:
			n.Failures++
		case c.Error != nil:
			n.Errors++
		case c.Skipped != nil:
			n.Skipped++
		}
	}
	return n
}
