package nodeconf

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
)

// maxSize bounds a file in bytes: configurations of a node have kilobytes, and
// a mistaken argument should not be read for minutes.
const maxSize = 1 << 20

// input is a file, or a part of one, as UTF-8 with the places of its lines.
type input struct {
	file string
	text string
	// data is the file as it is, with its byte order mark.
	data []byte
	// lines are the byte offsets at which lines begin.
	lines []int
	// place maps a line and a column of text, both from 1, to those of the
	// file; nil is the identity.
	place func(line, column int) (int, int)

	mistakes strict.Mistakes
	// embedded is set for a part of a ConfigMap.
	embedded bool

	// The last place that was asked for: places are asked for in order, and a
	// line may be as long as the file.
	lastOffset, lastLine, lastColumn int
}

func newInput(file, text string) *input {
	s := &input{file: file, text: text, data: []byte(text), lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// relocated moves a tree to its place in the file.
func (s *input) relocated(root *yaml.Node) *yaml.Node {
	if s.place != nil && root != nil {
		relocate(root, s.place, 0)
	}
	return root
}

// lineAndColumn is the place of a byte offset, columns counted in characters.
func (s *input) lineAndColumn(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.text))
	lo, hi := 0, len(s.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	line, column = lo+1, 1
	from := s.lines[lo]
	if s.lastLine == line && s.lastOffset <= offset {
		from, column = s.lastOffset, s.lastColumn
	}
	column += utf8.RuneCountInString(s.text[from:offset])
	s.lastOffset, s.lastLine, s.lastColumn = offset, line, column
	if s.place != nil {
		return s.place(line, column)
	}
	return line, column
}

func (s *input) mistake(offset int, message string) {
	line, column := s.lineAndColumn(offset)
	s.mistakes = append(s.mistakes, strict.Mistake{File: s.file, Line: line, Column: column, Message: message})
}

// binaryText reports whether a file is not text: configurations have no NUL.
func binaryText(text string) bool {
	head := text[:min(len(text), 8000)]
	return strings.IndexByte(head, 0) >= 0
}
