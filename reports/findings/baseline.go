package findings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Baseline says what became of the findings of an earlier run.
type Baseline struct {
	// Known are found again and not shown; Gone are those of the baseline that are not found any more.
	Known int `json:"known"`
	Gone  int `json:"gone"`
}

// Suppressed is a finding that the user chose to ignore.
type Suppressed struct {
	Finding Finding `json:"finding"`
	// Reason is theirs. By is "comment", "annotation" or "flag", At the place: "pod.yaml:7".
	Reason string `json:"reason"`
	By     string `json:"by"`
	At     string `json:"at"`
}

// Read reads a document that [JSON] wrote.
func Read(r io.Reader) (*Document, error) {
	var d Document
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("this is not a file of findings: %w; make one with -o json", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("this is not a file of findings: its schema is %q, not %q; make one with -o json", d.Schema, Schema)
	}
	return &d, nil
}

// same is what makes two findings of two runs the same. Lines move when a file is edited,
// so they do not count; two that are alike otherwise count as two.
type same struct{ file, subject, field, claim, message, cause string }

func (f *Finding) identity() same {
	return same{f.File, f.Subject, f.Field, f.Claim, f.Message, f.CauseID}
}

// TakeOut removes from a document the findings that a baseline has. One that is
// suppressed now is neither known nor gone.
func TakeOut(d, baseline *Document) *Baseline {
	left := map[same]int{}
	for i := range baseline.Findings {
		left[baseline.Findings[i].identity()]++
	}
	b := &Baseline{}
	d.Findings = slices.DeleteFunc(d.Findings, func(f Finding) bool {
		k := f.identity()
		if left[k] == 0 {
			return false
		}
		left[k]--
		b.Known++
		return true
	})
	for i := range d.Suppressed { // fixed or not, somebody decided about it
		if k := d.Suppressed[i].Finding.identity(); left[k] > 0 {
			left[k]--
		}
	}
	for _, n := range left {
		b.Gone += n
	}
	return b
}
