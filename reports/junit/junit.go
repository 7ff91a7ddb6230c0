// Package junit turns a results document into JUnit XML, the form that CI
// systems read. One test suite for each setting, each kind of static check and
// each lab, one test case for each check and each flow. It knows results only,
// nothing that produced them.
package junit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/junitxml"
	"github.com/winlab-dev/winlab/reports/result"
)

// Write writes the document as JUnit XML. The order is the document's. A check
// that failed is a failure; one that could not be done an error; what the model does not
// know, a disputed expectation that is not met and a check that nothing reached are skipped,
// with the text, because none of them fails a run. Claims that nothing checks are skipped in a
// suite of their own. The time of a case is written only when it was measured.
func Write(w io.Writer, doc *result.Document) error {
	claims := map[string]*result.Claim{}
	for i := range doc.Claims {
		claims[doc.Claims[i].ID] = &doc.Claims[i]
	}
	matrix, err := settings(doc, claims)
	if err != nil {
		return err
	}
	all := &junitxml.Suites{Name: "winlab", Suites: slices.Concat(matrix, statics(doc.Statics, claims), flows(doc.Flows),
		unchecked(doc.Claims))}
	unique(all.Suites)
	return all.Write(w)
}

// unique gives each case a name that no other one has: CI systems take cases of the same
// class and name for one, and do not look at the suite. The class begins with the suite's
// name; checks that are alike are numbered in the order of the document, which is the same
// in every run.
func unique(suites []*junitxml.Suite) {
	type id struct{ class, name string }
	seen := map[id]int{}
	for _, su := range suites {
		for _, c := range su.Cases {
			c.Class = su.Name + "." + c.Class
			k := id{c.Class, c.Name}
			seen[k]++
			if n := seen[k]; n > 1 {
				c.Name += fmt.Sprintf(" (%d)", n)
			}
		}
	}
}

// settings makes a suite for each setting, with the checks of its cells.
func settings(doc *result.Document, claims map[string]*result.Claim) ([]*junitxml.Suite, error) {
	var out []*junitxml.Suite
	of := map[string]*junitxml.Suite{}
	for _, s := range doc.Settings {
		su := newSuite(clean.Line(s.ID), clean.Line(s.File))
		property(su, "design", s.Design)
		property(su, "kubernetes", s.Kubernetes)
		property(su, "network", s.Network)
		property(su, "plugin", s.Plugin)
		property(su, "proxy", s.Proxy)
		property(su, "windows", strings.Join(s.Builds, " "))
		of[s.ID] = su
		out = append(out, su)
	}
	for _, c := range doc.Cells {
		su := of[c.Setting]
		if su == nil {
			return nil, fmt.Errorf("junit: a cell is about setting %q, which the document does not have", c.Setting)
		}
		cl := claims[c.Claim]
		if cl == nil {
			cl = &result.Claim{ID: c.Claim, Title: c.Claim}
		}
		for _, k := range c.Checks {
			su.Cases = append(su.Cases, caseOf(cl, c, k))
		}
	}
	return out, nil
}

func newSuite(name, file string) *junitxml.Suite {
	return &junitxml.Suite{Name: name, File: file, Properties: &junitxml.Properties{}}
}

func property(s *junitxml.Suite, name, value string) {
	if value != "" {
		s.Properties.List = append(s.Properties.List, junitxml.Property{Name: name, Value: clean.Line(value)})
	}
}

// unchecked makes a suite of the claims that nothing checks, if there are any.
func unchecked(cs []result.Claim) []*junitxml.Suite {
	su := newSuite("claims without a check", "")
	for _, c := range cs {
		if c.Unchecked != "" {
			su.Cases = append(su.Cases, &junitxml.Case{Class: clean.Line(c.Area), Name: clean.Line(c.ID + ": " + c.Title),
				Skipped: &junitxml.Problem{Message: clean.Line(c.Unchecked)}})
		}
	}
	if len(su.Cases) == 0 {
		return nil
	}
	return []*junitxml.Suite{su}
}

func caseOf(cl *result.Claim, c result.Cell, k result.Check) *junitxml.Case {
	t := newCase(cl.Area, cl.ID+": "+k.What, k)
	text := report(cl.Text, c, k)
	switch {
	case c.Outcome == result.Failed:
		t.Error = &junitxml.Problem{Message: clean.Line(k.Summary), Type: "error", Text: text}
	case k.NotChecked != "":
		t.Skipped = &junitxml.Problem{Message: clean.Line("not checked: " + k.NotChecked), Text: text}
	case k.Pass:
	case k.Explained:
		t.Skipped = &junitxml.Problem{Message: "differs, as another source says: " + headline(k), Text: text}
	case c.Outcome == result.Unknown:
		t.Skipped = &junitxml.Problem{Message: "the model does not know: " + headline(k), Text: text}
	default:
		t.Failure = &junitxml.Problem{Message: headline(k), Type: clean.Line(k.Reason), Text: text}
	}
	liveFailure(t, k)
	return t
}

// liveFailure makes a failure of a live flow that was not as in its trace.
func liveFailure(t *junitxml.Case, k result.Check) {
	if k.Live != nil && k.Live.Differs != "" && t.Error == nil && t.Failure == nil {
		t.Failure, t.Skipped = &junitxml.Problem{Message: "live: " + clean.Line(k.Live.Differs), Type: "live", Text: clean.Line(k.Command)}, nil
	}
}

func newCase(class, name string, k result.Check) *junitxml.Case {
	if k.Level != "" && k.Level != result.Model {
		name += " [" + string(k.Level) + "]"
	}
	t := &junitxml.Case{Class: clean.Line(class), Name: clean.Line(name)}
	if k.Millis > 0 {
		t.Time = fmt.Sprintf("%.6f", k.Millis/1000)
	}
	return t
}

// headline is the difference on one line.
func headline(k result.Check) string {
	wanted, came := k.Words()
	s := "got " + came
	if wanted != "" {
		s = "expected " + wanted + ", got " + came
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
	wanted, came := k.Words()
	line("expected", wanted)
	line("got", came)
	line("reason", k.Reason)
	line("because", k.Summary)
	line("evidence", string(k.Grade))
	line("repeat", k.Command)
	return b.String()
}

// statics makes a suite for each kind: rules, placements, resources, doctor.
func statics(ks []result.Static, claims map[string]*result.Claim) []*junitxml.Suite {
	var out []*junitxml.Suite
	of := map[string]*junitxml.Suite{}
	for _, k := range ks {
		su := of[k.Kind]
		if su == nil {
			su = newSuite("static "+clean.Line(k.Kind), "")
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
			t.Skipped = &junitxml.Problem{Message: "differs, as another source says: " + headline(k.Check), Text: staticReport(cl, k)}
		case k.Got == "error":
			t.Error = &junitxml.Problem{Message: clean.Line(k.Summary), Type: "error", Text: staticReport(cl, k)}
		default:
			t.Failure = &junitxml.Problem{Message: headline(k.Check), Type: clean.Line(k.Reason), Text: staticReport(cl, k)}
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

func flows(fs []result.FlowResult) []*junitxml.Suite {
	var out []*junitxml.Suite
	of := map[string]*junitxml.Suite{}
	for _, f := range fs {
		name := f.Lab
		if f.Variant != "" {
			name += "/" + f.Variant
		}
		su := of[name]
		if su == nil {
			su = newSuite("lab "+clean.Line(name), clean.Line(f.File))
			property(su, "incident", f.Incident)
			of[name] = su
			out = append(out, su)
		}
		t := newCase("flows", f.At()+": "+f.What, f.Check)
		if !f.Pass {
			t.Failure = &junitxml.Problem{Message: headline(f.Check), Type: clean.Line(f.Reason), Text: report(f.Title, result.Cell{}, f.Check)}
		}
		liveFailure(t, f.Check)
		su.Cases = append(su.Cases, t)
	}
	return out
}
