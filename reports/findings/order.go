package findings

import (
	"cmp"
	"slices"
	"strings"
)

// Level says how grave a finding is.
type Level string

// The levels, the gravest first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// Levels are all of them, the gravest first.
var Levels = []Level{Error, Warning, Info}

// Sort orders findings by file, line, column and claim, and mistakes by place.
// All forms write this order, so that the same document gives the same bytes.
func (d *Document) Sort() {
	compare := func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Claim, b.Claim), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Field, b.Field),
			strings.Compare(a.Message, b.Message))
	}
	slices.SortStableFunc(d.Findings, compare)
	slices.SortStableFunc(d.Suppressed, func(a, b Suppressed) int { return compare(a.Finding, b.Finding) })
	slices.SortStableFunc(d.Mistakes, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Message, b.Message))
	})
}

// sorted is a sorted copy; the caller's document stays as it is.
func (d *Document) sorted() *Document {
	c := *d
	c.Findings = slices.Clone(d.Findings)
	c.Mistakes = slices.Clone(d.Mistakes)
	c.Suppressed = slices.Clone(d.Suppressed)
	c.Sort()
	return &c
}

// Checked is how many documents some rule looked at.
func (d *Document) Checked() int {
	n := d.Documents
	for _, passed := range d.Passed {
		n -= passed
	}
	return max(n, 0)
}
