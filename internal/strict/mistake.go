package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong with a file.
type Mistake struct {
	File         string
	Line, Column int // from 1; 0 for the whole file
	Message      string
}

// String is "file:line:column: message".
func (m Mistake) String() string { return m.Place() + ": " + m.Message }

// Place is "file:line:column", without what is not known.
func (m Mistake) Place() string {
	switch {
	case m.Line == 0:
		return m.File
	case m.Column == 0:
		return fmt.Sprintf("%s:%d", m.File, m.Line)
	}
	return fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column)
}

// Mistakes are all that was found, in the order of files and lines.
type Mistakes []Mistake

// Error has one line for each mistake.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// AsError is nil when there is no mistake.
func (ms Mistakes) AsError() error {
	if len(ms) == 0 {
		return nil
	}
	return ms.Sorted()
}

// Sorted puts the mistakes into the order of files and lines.
func (ms Mistakes) Sorted() Mistakes {
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return ms
}
