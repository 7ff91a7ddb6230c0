// Package junit turns a results document into JUnit XML, the form that CI
// systems read. One test suite for each setting, each kind of static check and
// each lab, one test case for each check and each flow. It knows results only, nothing that produced them.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
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
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	File       string     `xml:"file,attr,omitempty"`
	Properties []property `xml:"properties>property,omitempty"`
	Cases      []testcase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Time    string   `xml:"time,attr,omitempty"`
	Failure *problem `xml:"failure,omitempty"`
	Error   *problem `xml:"error,omitempty"`
	Skipped *problem `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Write writes the document as JUnit XML. The order is the document's. A check
// that failed is a failure; one that could not be done an error; a hole of the
// model and a disputed expectation that is not met are skipped, with the text,
// because neither fails a run. Claims that nothing checks are skipped in a
// suite of their own. The time of a case is written only when it was measured.
func Write(w io.Writer, doc *result.Document) error {
	claims := map[string]*result.Claim{}
	for i := range doc.Claims {
		claims[doc.Claims[i].ID] = &doc.Claims[i]
	}
	all := suites{Name: "winlab"}
	of := map[string]*suite{}
	for _, s := range doc.Settings {
		su := &suite{Name: clean.Line(s.ID), File: clean.Line(s.File)}
		for _, p := range []property{{"design", s.Design}, {"kubernetes", s.Kubernetes}, {"network", s.Network}, {"plugin", s.Plugin}, {"proxy", s.Proxy}, {"windows", strings.Join(s.Builds, " ")}} {
			if p.Value != "" {
				su.Properties = append(su.Properties, property{p.Name, clean.Line(p.Value)})
			}
		}
		of[s.ID] = su
		all.Suites = append(all.Suites, su)
	}
	for _, c := range doc.Cells {
		su := of[c.Setting]
		if su == nil {
			return fmt.Errorf("junit: a cell is about setting %q, which the document does not have", c.Setting)
		}
		cl := claims[c.Claim]
		if cl == nil {
			cl = &result.Claim{ID: c.Claim, Title: c.Claim}
		}
		for _, k := range c.Checks {
			su.Cases = append(su.Cases, caseOf(cl, c, k))
		}
	}
	unchecked := &suite{Name: "claims without a check"}
	for _, c := range doc.Claims {
		if c.Unchecked != "" {
			unchecked.Cases = append(unchecked.Cases, testcase{Class: clean.Line(c.Area), Name: clean.Line(c.ID + ": " + c.Title), Skipped: &problem{Message: clean.Line(c.Unchecked)}})
		}
	}
	all.Suites = append(all.Suites, statics(doc.Statics, claims)...)
	all.Suites = append(all.Suites, flows(doc.Flows)...)
	if len(unchecked.Cases) > 0 {
		all.Suites = append(all.Suites, unchecked)
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
		return fmt.Errorf("junit: %w", err)
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
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

func caseOf(cl *result.Claim, c result.Cell, k result.Check) testcase {
	t := newCase(cl.Area, cl.ID+": "+k.What, k)
	text := report(cl.Text, c, k)
	switch {
	case c.Outcome == result.Failed:
		t.Error = &problem{Message: clean.Line(k.Summary), Type: "error", Text: text}
	case k.Pass:
	case c.Outcome == result.Disputed:
		t.Skipped = &problem{Message: "disputed: " + headline(k), Text: text}
	case c.Outcome == result.Hole:
		t.Skipped = &problem{Message: "the model does not know: " + headline(k), Text: text}
	default:
		t.Failure = &problem{Message: headline(k), Type: clean.Line(k.Reason), Text: text}
	}
	return t
}

func newCase(class, name string, k result.Check) testcase {
	if k.Level != "" && k.Level != result.Model {
		name += " [" + string(k.Level) + "]"
	}
	t := testcase{Class: clean.Line(class), Name: clean.Line(name)}
	if k.Millis > 0 {
		t.Time = fmt.Sprintf("%.6f", k.Millis/1000)
	}
	return t
}

// headline is the difference on one line.
func headline(k result.Check) string {
	s := "got " + k.Got
	if k.Expect != "" {
		s = "expected " + k.Expect + ", got " + k.Got
	}
	if k.Reason != "" {
		s += " (" + k.Reason + ")"
	}
	return clean.Line(s)
}

func report(claim string, c result.Cell, k result.Check) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s%s\n", name, clean.Line(value))
		}
	}
	b.WriteByte('\n')
	line("claim", claim)
	line("documents", strings.TrimSpace(c.Documented+" "+c.Basis))
	line("tried", k.What)
	line("expected", k.Expect)
	line("got", k.Got)
	line("reason", k.Reason)
	line("because", k.Summary)
	line("evidence", string(k.Grade))
	line("repeat", k.Command)
	return b.String()
}

// statics makes a suite for each kind: rules, placements, resources, doctor.
func statics(ks []result.Static, claims map[string]*result.Claim) []*suite {
	var out []*suite
	of := map[string]*suite{}
	for _, k := range ks {
		su := of[k.Kind]
		if su == nil {
			su = &suite{Name: "static " + clean.Line(k.Kind)}
			of[k.Kind] = su
			out = append(out, su)
		}
		cl := claims[k.Claim]
		if cl == nil {
			cl = &result.Claim{ID: k.Claim}
		}
		t := newCase(cl.Area, k.Claim+": "+k.What+" ("+k.Where+")", k.Check)
		switch {
		case k.Pass:
		case k.Outcome() == result.Disputed:
			t.Skipped = &problem{Message: "disputed: " + headline(k.Check), Text: staticReport(cl, k)}
		case k.Got == "error":
			t.Error = &problem{Message: clean.Line(k.Summary), Type: "error", Text: staticReport(cl, k)}
		default:
			t.Failure = &problem{Message: headline(k.Check), Type: clean.Line(k.Reason), Text: staticReport(cl, k)}
		}
		su.Cases = append(su.Cases, t)
	}
	return out
}

func staticReport(cl *result.Claim, k result.Static) string {
	text := report(cl.Text, result.Cell{}, k.Check)
	if k.Input != "" {
		text += "tried with:\n" + clean.Text(k.Input) + "\n"
	}
	if k.Rule == nil {
		return text
	}
	for _, example := range []struct{ name, text string }{{"must be found", k.Rule.Bad}, {"must not be found", k.Rule.Good}} {
		if example.text != "" {
			text += example.name + ":\n" + clean.Text(example.text) + "\n"
		}
	}
	return text
}

func flows(fs []result.FlowResult) []*suite {
	var out []*suite
	of := map[string]*suite{}
	for _, f := range fs {
		name := f.Lab
		if f.Variant != "" {
			name += "/" + f.Variant
		}
		su := of[name]
		if su == nil {
			su = &suite{Name: "lab " + clean.Line(name), File: clean.Line(f.File)}
			if f.Incident != "" {
				su.Properties = append(su.Properties, property{"incident", clean.Line(f.Incident)})
			}
			of[name] = su
			out = append(out, su)
		}
		t := newCase("flows", f.Name+": "+f.What, f.Check)
		if !f.Pass {
			t.Failure = &problem{Message: headline(f.Check), Type: clean.Line(f.Reason), Text: report(f.Title, result.Cell{}, f.Check)}
		}
		su.Cases = append(su.Cases, t)
	}
	return out
}
