package findings_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/winlab-dev/winlab/reports/findings"
)

func sarifOf(t *testing.T, d *findings.Document) (*sarif.Report, []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := findings.SARIF(&b, d); err != nil {
		t.Fatal(err)
	}
	r, err := sarif.FromBytes(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return r, b.Bytes()
}

// TestSARIFMatchesTheSchema uses the SARIF 2.1.0 schema that the library carries.
func TestSARIFMatchesTheSchema(t *testing.T) {
	for name, doc := range documents {
		r, _ := sarifOf(t, doc())
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, _ := sarifOf(t, oneFileDocument())
	r.Runs[0].Results[0].Level = "grave"
	if r.Validate() == nil {
		t.Error("the schema accepts a level that SARIF does not have")
	}
}

// TestSARIFForCodeScanning checks results against what GitHub code scanning asks for:
// a rule, a text, a relative address, a line, and a fingerprint of its own.
func TestSARIFForCodeScanning(t *testing.T) {
	r, _ := sarifOf(t, several())
	run := r.Runs[0]
	prints := map[string]bool{}
	for _, x := range run.Results {
		rule := run.Tool.Driver.Rules[x.RuleIndex]
		if *rule.ID != *x.RuleID || *rule.ShortDescription.Text == "" || *rule.Help.Text == "" {
			t.Errorf("%s: the rule at its index is %s, %q", *x.RuleID, *rule.ID, *rule.ShortDescription.Text)
		}
		at := x.Locations[0].PhysicalLocation
		if uri := *at.ArtifactLocation.URI; !strings.HasPrefix(uri, "dir/") || strings.Contains(uri, " ") ||
			*at.ArtifactLocation.URIBaseID != "%SRCROOT%" {
			t.Errorf("%s: address %q", *x.RuleID, uri)
		}
		if *at.Region.StartLine < 1 {
			t.Errorf("%s: no line", *x.RuleID)
		}
		print := x.PartialFingerprints["winlabFinding/v1"]
		if print == "" || prints[print] {
			t.Errorf("%s: fingerprint %q is empty or there twice", *x.RuleID, print)
		}
		prints[print] = true
	}
	if len(run.Results) != 4 {
		t.Errorf("%d results, want the 4 findings with a file", len(run.Results))
	}
	inv := run.Invocations[0]
	if n := inv.ToolConfigurationNotifications; len(n) != 1 || *n[0].AssociatedRule.ID != "sac-out-of-support" {
		t.Error("the finding about a setting is not a notification")
	}
	if n := inv.ToolExecutionNotifications; len(n) != 2 || n[0].Level != "error" || *inv.ExecutionSuccessful {
		t.Error("documents that could not be read are not notifications, or the run counts as complete")
	}
	for _, rule := range run.Tool.Driver.Rules {
		if *rule.ID == "mixed-os" && rule.DefaultConfiguration.Level != "error" {
			t.Error("mixed-os is not an error")
		}
	}
}

// TestFingerprintOutlivesMovedLines: lines that move keep the alert.
func TestFingerprintOutlivesMovedLines(t *testing.T) {
	prints := func(d *findings.Document) []string {
		var out []string
		r, _ := sarifOf(t, d)
		for _, x := range r.Runs[0].Results {
			out = append(out, x.PartialFingerprints["winlabFinding/v1"])
		}
		slices.Sort(out)
		return out
	}
	moved := oneFileDocument()
	for i := range moved.Findings {
		moved.Findings[i].Line += 10
	}
	if a, b := prints(oneFileDocument()), prints(moved); !slices.Equal(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
	other := oneFileDocument()
	other.Findings[0].Subject = "Pod other"
	if a, b := prints(oneFileDocument()), prints(other); slices.Equal(a, b) {
		t.Error("two subjects have one fingerprint")
	}
}

func TestAddressesOfFiles(t *testing.T) {
	for in, want := range map[string]string{
		"dir/a b.yaml": "dir/a%20b.yaml", "./x.yaml": "x.yaml", "/abs/x.yaml": "file:///abs/x.yaml", `C:\a\b.yaml`: "file:///C:/a/b.yaml",
		"a:b.yaml": "./a:b.yaml", "100%.yaml": "100%25.yaml", "../up.yaml": "../up.yaml",
	} {
		r, _ := sarifOf(t, &findings.Document{Findings: []findings.Finding{{File: in, Line: 1, Claim: "c", Level: findings.Info}}})
		if got := *r.Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestSARIFAndJSONOfOneDocumentAgree(t *testing.T) {
	var b bytes.Buffer
	if err := findings.JSON(&b, ill()); err != nil {
		t.Fatal(err)
	}
	var d findings.Document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	r, _ := sarifOf(t, &d)
	x := r.Runs[0].Results[0]
	if len(x.RelatedLocations) != 2 || *x.RelatedLocations[1].PhysicalLocation.Region.StartLine != 14 {
		t.Error("the evidence of the doctor has no places")
	}
	for _, want := range []string{"Symptom: pods do not", "Cause: kube-proxy does not", "Seen: node/hnsnetworks.json:14",
		"Cure: start kube-proxy"} {
		if !strings.Contains(*x.Message.Text, want) {
			t.Errorf("the message does not say %q", want)
		}
	}
}
