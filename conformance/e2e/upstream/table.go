package upstream

import (
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Outcome is what a test came to.
type Outcome string

// The outcomes. None is of a test that did not run.
const (
	Pass Outcome = "pass"
	Fail Outcome = "fail"
	Skip Outcome = "skip" // it has skipped itself
	None Outcome = ""
	// Leave is only wanted: the test is not started.
	Leave Outcome = "leave out"
)

// Expected is a row of the table.
type Expected struct {
	// Test is the test's whole name without labels in brackets at its end.
	Test string `json:"test"`
	// Class is one of the table's.
	Class string `json:"class"`
	// Want is the outcome; Why says why it is not Pass.
	Want Outcome `json:"want"`
	Why  string  `json:"why,omitempty"`
}

// Table is what is expected of a suite.
type Table struct {
	// Focus is the regular expression that picks the suite's tests.
	Focus string `json:"focus"`
	// Skip is the one that leaves out some of these; "" leaves out none.
	Skip string `json:"skip,omitempty"`
	// Classes are the groups of tests. Without classes in a table they are A for tests of the
	// network, B for those of a node's contract with Kubernetes, C for those that need more
	// of Windows than there is here.
	Classes []string   `json:"classes,omitempty"`
	Tests   []Expected `json:"tests"`
}

//go:embed sig-windows.yaml
var sigWindows []byte

//go:embed sig-network.yaml
var sigNetwork []byte

// SIGWindows is the table of the tests of SIG Windows.
func SIGWindows() (*Table, error) { return ReadTable(sigWindows) }

// SIGNetwork is the table of those tests of SIG Network that are also for Windows nodes.
func SIGNetwork() (*Table, error) { return ReadTable(sigNetwork) }

// ReadTable reads a table from YAML and names all mistakes in it.
func ReadTable(text []byte) (*Table, error) {
	t := &Table{}
	if err := yaml.UnmarshalStrict(text, t); err != nil {
		return nil, fmt.Errorf("table of expected results: %w", err)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.Focus == "" {
		bad("the table has no focus; write the regular expression that picks its tests")
	}
	if len(t.Classes) == 0 {
		t.Classes = []string{"A", "B", "C"}
	}
	seen := map[string]bool{}
	for _, e := range t.Tests {
		switch {
		case e.Test == "":
			bad("a row has no test")
		case seen[e.Test]:
			bad("%s: it is listed twice", e.Test)
		case !slices.Contains(t.Classes, e.Class):
			bad("%s: class %q; write one of %s", e.Test, e.Class, strings.Join(t.Classes, ", "))
		case !slices.Contains([]Outcome{Pass, Fail, Skip, Leave}, e.Want):
			bad("%s: want %q; write pass, fail, skip or leave out", e.Test, e.Want)
		case e.Want != Pass && e.Why == "":
			bad("%s: it is not wanted to pass; write why", e.Test)
		}
		seen[e.Test] = true
	}
	return t, errors.Join(errs...)
}

// LeftOut is a regular expression of the tests that are not to be started, "" for none.
func (t *Table) LeftOut() string {
	var all []string
	for _, e := range t.Tests {
		if e.Want == Leave {
			all = append(all, regexp.QuoteMeta(e.Test))
		}
	}
	return strings.Join(all, "|")
}

// Result is how a test ended.
type Result struct {
	Test    string
	Outcome Outcome
	Took    time.Duration
	// Message is why it failed or was skipped, one line.
	Message string
}

// Read reads the JUnit XML that e2e.test writes (--report-dir). Tests that were not
// selected are left out.
func Read(r io.Reader) ([]Result, error) {
	var doc struct {
		Cases []struct {
			Name    string  `xml:"name,attr"`
			Status  string  `xml:"status,attr"`
			Seconds float64 `xml:"time,attr"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error *struct {
				Message string `xml:"message,attr"`
			} `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("JUnit XML of e2e.test: %w", err)
	}
	var all []Result
	for _, c := range doc.Cases {
		name, isTest := strings.CutPrefix(c.Name, "[It] ")
		if !isTest {
			continue // what comes before and after all tests
		}
		if c.Status == "interrupted" {
			continue // by Ctrl-C or an API server that went away: it did not end, and says nothing
		}
		r := Result{Test: bare(name), Took: time.Duration(c.Seconds * float64(time.Second)), Outcome: Pass}
		switch {
		case c.Failure != nil:
			r.Outcome, r.Message = Fail, line(c.Failure.Message)
		case c.Error != nil:
			r.Outcome, r.Message = Fail, line(c.Error.Message)
		case c.Skipped != nil && strings.HasPrefix(c.Skipped.Message, "skipped - "):
			r.Outcome, r.Message = Skip, line(strings.TrimPrefix(c.Skipped.Message, "skipped - "))
		case c.Skipped != nil:
			continue // not selected
		}
		all = append(all, r)
	}
	return all, nil
}

// bare is a test's name without the labels at its end.
func bare(name string) string {
	for {
		name = strings.TrimSpace(name)
		i := strings.LastIndex(name, " [")
		if i < 0 || !strings.HasSuffix(name, "]") {
			return name
		}
		name = name[:i]
	}
}

func line(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// Row is an expected test with its result.
type Row struct {
	Expected
	Result
}

// Compare sets results beside a table, in its order. The error names each test that came
// to something else than expected, and each that the table does not have. With partly,
// tests that did not run are not a difference.
func Compare(t *Table, results []Result, partly bool) ([]Row, error) {
	got := map[string]Result{}
	for _, r := range results {
		got[r.Test] = r
	}
	var rows []Row
	var errs []error
	for _, e := range t.Tests {
		r := got[e.Test]
		delete(got, e.Test)
		rows = append(rows, Row{e, r})
		switch {
		case r.Outcome == e.Want, r.Outcome == None && (partly || e.Want == Leave):
		case r.Outcome == None:
			errs = append(errs, fmt.Errorf("%s: it did not run", e.Test))
		case r.Outcome == Pass:
			errs = append(errs, fmt.Errorf("%s: it passes; expected was %s (%s): change the table", e.Test, e.Want, e.Why))
		default:
			errs = append(errs, fmt.Errorf("%s: %s instead of %s: %s", e.Test, r.Outcome, e.Want, r.Message))
		}
	}
	for _, r := range results {
		if _, ok := got[r.Test]; ok {
			errs = append(errs, fmt.Errorf("%s: %s, and the table does not have it", r.Test, r.Outcome))
			rows = append(rows, Row{Expected{Test: r.Test}, r})
		}
	}
	return rows, errors.Join(errs...)
}

// Markdown writes rows as a table, with counts by class below.
func Markdown(w io.Writer, rows []Row) error {
	var b strings.Builder
	b.WriteString("| class | test | result | why not |\n|---|---|---|---|\n")
	passed, all := map[string]int{}, map[string]int{}
	for _, r := range rows {
		outcome := r.Outcome
		switch {
		case outcome == None && r.Want == Leave:
			outcome = "left out"
		case outcome == None:
			outcome = "not run"
		}
		why := r.Why
		if r.Outcome == Fail && r.Want != Fail {
			why = r.Message
		}
		if all[r.Class]++; r.Outcome == Pass {
			passed[r.Class]++
			why = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Class, strings.TrimPrefix(strings.TrimPrefix(r.Expected.Test, "[sig-windows] "),
			"[sig-network] "), outcome, strings.ReplaceAll(why, "|", "\\|"))
	}
	b.WriteString("\n")
	for _, r := range rows {
		if c := r.Class; all[c] > 0 {
			fmt.Fprintf(&b, "Class %s: %d of %d pass.\n", c, passed[c], all[c])
			all[c] = 0
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
