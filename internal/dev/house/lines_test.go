package house

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostOfLine is the longest line of Go, in characters. The text of a string literal does not
// count: cut in two it could not be found by the message that a user has seen. Nor do lines
// that a comment quotes, which are indented by a tab.
const mostOfLine = 140

func TestLinesAreReadable(t *testing.T) {
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") || strings.Contains(f, "testdata/") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		if generated(src) {
			continue
		}
		for _, n := range longLines(src) {
			t.Errorf("%s:%d: more than %d characters without the text of its strings; break it behind a comma or an operator", f, n, mostOfLine)
		}
	}
}

// longLines returns the numbers of the lines that are too long without their string literals.
func longLines(src []byte) []int {
	texts := make(map[int]int) // characters of string literals, by line
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
		if tok == token.STRING {
			for i, part := range strings.Split(lit, "\n") {
				texts[file.Line(pos)+i] += utf8.RuneCountInString(part)
			}
		}
	}
	var long []int
	for i, line := range strings.Split(string(src), "\n") {
		if utf8.RuneCountInString(line)-texts[i+1] > mostOfLine && !strings.HasPrefix(line, "//\t") {
			long = append(long, i+1)
		}
	}
	return long
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", mostOfLine)
	src := "package p\n\n// " + long + "\nvar a = \"" + long + "\"\nvar b = `\n" + long + long + "`\nvar c = " + long + "\n"
	if got, want := longLines([]byte(src)), []int{3, 7}; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v in\n%s", got, want, src)
	}
}
