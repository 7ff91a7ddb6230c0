package junit

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/junitxml"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
)

func write(t *testing.T, doc *result.Document) junitxml.Suites {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, doc); err != nil {
		t.Fatal(err)
	}
	var s junitxml.Suites
	if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatalf("not XML: %v\n%s", err, b.String())
	}
	return s
}

func find(t *testing.T, s junitxml.Suites, suiteName, caseStart string) *junitxml.Case {
	t.Helper()
	for _, su := range s.Suites {
		for _, c := range su.Cases {
			if su.Name == suiteName && strings.HasPrefix(c.Name, caseStart) {
				return c
			}
		}
	}
	t.Fatalf("no case %q in suite %q", caseStart, suiteName)
	return nil
}

func TestEveryCheckAndFlowIsACase(t *testing.T) {
	doc := resulttest.Sample()
	s := write(t, doc)
	want := len(doc.Flows) + len(doc.Statics)
	for _, c := range doc.Cells {
		want += len(c.Checks)
	}
	for _, c := range doc.Claims {
		if c.Unchecked != "" {
			want++
		}
	}
	if s.Tests != want {
		t.Errorf("%d cases, want %d", s.Tests, want)
	}
	if s.Failures == 0 || s.Errors == 0 || s.Skipped == 0 {
		t.Errorf("%d failures, %d errors, %d skipped", s.Failures, s.Errors, s.Skipped)
	}
}

// TestNoTwoCasesAreCalledAlike: CI systems know a case by its class and name.
func TestNoTwoCasesAreCalledAlike(t *testing.T) {
	doc := resulttest.Sample()
	for i := range doc.Cells {
		doc.Cells[i].Checks = append(doc.Cells[i].Checks, doc.Cells[i].Checks...)
	}
	doc.Flows = append(doc.Flows, doc.Flows...)
	seen := map[string]bool{}
	for _, su := range write(t, doc).Suites {
		for _, c := range su.Cases {
			if name := c.Class + "\x00" + c.Name; seen[name] {
				t.Errorf("class %q has two cases %q", c.Class, c.Name)
			} else {
				seen[name] = true
			}
		}
	}
}

// A live flow that is not as in its trace fails, whatever the model's check says.
func TestLiveDifferencesFail(t *testing.T) {
	doc := resulttest.Sample()
	before := write(t, doc).Failures
	for i := range doc.Flows {
		if doc.Flows[i].Pass {
			doc.Flows[i].Live = &result.Live{Got: "rejected", Differs: "the trace says delivered"}
			break
		}
	}
	for i := range doc.Cells {
		if c := &doc.Cells[i]; c.Outcome == result.Disputed {
			c.Checks[0].Live = &result.Live{Got: "rejected", Differs: "the trace says delivered"}
			break
		}
	}
	if after := write(t, doc).Failures; after != before+2 {
		t.Errorf("%d failures, before %d", after, before)
	}
}

func TestFailureSaysWhatAReaderNeeds(t *testing.T) {
	c := find(t, write(t, resulttest.Sample()), "overlay-win-overlay/1.20", "clusterip-split: ")
	if c.Failure == nil {
		t.Fatal("no failure")
	}
	if c.Failure.Message != "expected delivered, got varies (depends-on-backend)" {
		t.Errorf("message %q", c.Failure.Message)
	}
	for _, w := range []string{"claim     The choice of backend", "documents works stated", "expected  delivered", "got       varies",
		"reason    depends-on-backend", "repeat    winlab trace fixtures/labs/"} {
		if !strings.Contains(c.Failure.Text, w) {
			t.Errorf("no %q in\n%s", w, c.Failure.Text)
		}
	}
}

func TestWhatDoesNotFailARunIsSkipped(t *testing.T) {
	s := write(t, resulttest.Sample())
	if c := find(t, s, "overlay-win-overlay/1.20", "pod-to-node: "); c.Failure != nil {
		t.Error("a disputed expectation that is met fails")
	}
	if c := find(t, s, "l2bridge-azure-cni/1.20", "hairpin: "); c.Failure != nil {
		t.Error("a disputed expectation fails")
	}
	if c := find(t, s, "claims without a check", "rras-forwarding"); c.Skipped == nil ||
		!strings.Contains(c.Skipped.Message, "real Windows node") {
		t.Error("an unchecked claim does not say why")
	}
	if c := find(t, s, "nat-winnat/1.20", "pod-to-outside-tcp"); c.Error == nil || !strings.Contains(c.Error.Message, "nat.conf:7:3") {
		t.Error("a check that could not be done is not an error")
	}
	if c := find(t, s, "lab i-31-acl-priority/fixed", "client to peer"); c.Failure == nil {
		t.Error("a failed flow of a lab is not a failure")
	}
}

func TestStaticChecksAreCases(t *testing.T) {
	doc := resulttest.Sample()
	s := write(t, doc)
	c := find(t, s, "static rule",
		"readonly-rootfs: pod: spec.containers[*].securityContext.readOnlyRootFilesystem set (Kubernetes 1.17 to 1.20)")
	if c.Failure == nil || !strings.Contains(c.Failure.Text, "must be found:\nspec:\n  containers:") {
		t.Errorf("a rule that does not find its example is not a failure, or does not show it: %+v", c.Failure)
	}
	if c := find(t, s, "static placement", "windows-build-label: a pod without"); c.Skipped == nil ||
		c.Skipped.Message != "differs, as another source says: expected fits linux1, win2019, runs on linux1, got fits linux1, win2019, runs on linux1, win2019" {
		t.Errorf("a disputed placement that comes out otherwise: %+v", c)
	}
	if c := find(t, s, "static doctor", "trouble-source-vip: "); c.Failure != nil {
		t.Error("a check that passes fails")
	}
	doc.Statics[0].Pass, doc.Statics[0].Got, doc.Statics[0].Summary = false, "error", "The example cannot be read: 1:3: odd"
	if c := find(t, write(t, doc), "static rule", "hostnetwork: "); c.Error == nil || !strings.Contains(c.Error.Message, "1:3: odd") {
		t.Error("a check that could not be done is not an error")
	}
}

func TestTextFromLabsCannotBreakTheXML(t *testing.T) {
	doc := resulttest.Small()
	doc.Cells[0].Checks[0] = result.Check{What: "a\x1b[31m\x00<b>]]>", Got: "\ufffe", Expect: "b\n", Summary: "\xff", Reason: "\u202e"}
	doc.Cells[0].Outcome = result.Differs
	var b bytes.Buffer
	if err := Write(&b, doc); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(b.Bytes(), "\x1b\x00") || !strings.Contains(b.String(), `\x1b[31m\x00`) {
		t.Error("a control character was not made visible")
	}
	write(t, doc)
}

func TestTimeOnlyWhenMeasured(t *testing.T) {
	doc := resulttest.Small()
	doc.Cells[0].Checks[0].Millis = 1.5
	s := write(t, doc)
	if got := s.Suites[0].Cases[0].Time; got != "0.001500" {
		t.Errorf("time %q", got)
	}
	if got := s.Suites[0].Cases[1].Time; got != "" {
		t.Errorf("time of an unmeasured case %q", got)
	}
}

func TestDanglingSettingIsAnError(t *testing.T) {
	if err := Write(&bytes.Buffer{}, &result.Document{Cells: []result.Cell{{Setting: "gone"}}}); err == nil {
		t.Error("no error")
	}
}
