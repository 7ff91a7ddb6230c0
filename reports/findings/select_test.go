package findings

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestRepeats: the same finding in many files is one paragraph with the places.
func TestRepeats(t *testing.T) {
	d := &Document{Files: 7}
	for i := range 6 {
		d.Findings = append(d.Findings, Finding{File: fmt.Sprintf("f%d.yaml", i), Line: 7, Column: 3, Level: Warning, Claim: "host-network",
			Message: "no host network", Write: "remove it"})
	}
	d.Findings = append(d.Findings, Finding{File: "f0.yaml", Line: 9, Column: 3, Level: Error, Claim: "host-network",
		Message: "no host network", Write: "remove it"})
	var b bytes.Buffer
	if err := Text(&b, d, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `f0.yaml:7:3: warning: no host network (host-network)
        write    remove it
        also     the same in 5 other files: f1.yaml:7, f2.yaml:7, f3.yaml:7 and 2 more places
f0.yaml:9:3: error: no host network (host-network)
        write    remove it
7 files: 1 error, 6 warnings
`
	if got := b.String(); got != want {
		t.Errorf("printed is\n%s\nwant\n%s", got, want)
	}
}

// TestTaken: what is not among the findings is counted, in every form in which it can be.
func TestTaken(t *testing.T) {
	f := Finding{File: "pod.yaml", Line: 7, Level: Error, Claim: "host-network", Message: "no host network"}
	d := &Document{Files: 1, Documents: 1, Read: []string{"pod.yaml"}, NotShown: map[string]int{"a": 1, "b": 2, "c": 1, "d": 1},
		Baseline:        &Baseline{Known: 1, Gone: 2},
		Suppressed:      []Suppressed{{Finding: f, Reason: "our runtime has it", By: "comment", At: "pod.yaml:7"}},
		NeedlessIgnores: []string{"pod.yaml:9: a"}, Interrupted: "interrupted: checked in 2 of 3 settings"}
	var text, sarif, js bytes.Buffer
	for _, err := range []error{Text(&text, d, TextOptions{}), SARIF(&sarif, d), JSON(&js, d)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `pod.yaml: nothing found
interrupted: checked in 2 of 3 settings
5 remarks that break or change nothing are not shown (2 b, 1 a, 1 c, ...); --profile all shows them
1 finding is suppressed with a reason; -o json has them
        pod.yaml:9: a: there is nothing to ignore
1 finding is known from the baseline, 2 of its findings no longer found
`
	if got := text.String(); got != want {
		t.Errorf("printed is\n%s\nwant\n%s", got, want)
	}
	for _, word := range []string{`"suppressions": [`, `"kind": "inSource"`, `"justification": "our runtime has it"`} {
		if !strings.Contains(sarif.String(), word) {
			t.Errorf("SARIF has no %s:\n%s", word, sarif.String())
		}
	}
	again, err := Read(&js)
	if err != nil || len(again.Suppressed) != 1 || again.NotShown["b"] != 2 {
		t.Errorf("JSON is read as %+v, %v", again, err)
	}
	for _, bad := range []string{"", "{", `{"schema": "winlab.dev/v1alpha1"}`} {
		if _, err := Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "-o json") {
			t.Errorf("%q is read, or nothing says how to make one: %v", bad, err)
		}
	}
}
