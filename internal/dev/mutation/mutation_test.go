package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sampleSource = `package sample

import "strings"

const limit = 3

type list[T any] struct{ all []T }

// Add has a name that is not used, and one that the caller does not give.
func (l *list[T]) Add(_ string, v ...T) {
	l.all = append(l.all, v...)
}

func (list[T]) Most(int) int { return limit }

func longest[T ~string](all ...T) (n int) {
	for _, s := range all {
		if len(s) > n {
			n = len(s)
		}
	}
	return n
}

type point struct{ x, y int }

func at(a int, deep bool) point {
	p := point{x: a, y: 1}
	switch {
	case deep && a > 0:
		p.y += 2
		p.x--
	default:
		p.y = 7
	}
	return p
}

// A change of its signature does not compile, where it is called.
func first(a [2]byte) byte { return a[0] }

func trim(s string) string {
	if !strings.HasPrefix(s, "-") {
		return s
	}
	for len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	return s
}
`

// The tests of the sample leave open whether a limit counts, what at does to a
// shallow point, and where trim ends.
const sampleTests = `package sample

import "testing"

func Test(t *testing.T) {
	l := &list[int]{}
	l.Add("", 4, 5)
	if len(l.all) != 2 || longest("a", "abc", "ab") != 3 || trim("---x") != "x" || trim("y") != "y" {
		t.Error(l.all)
	}
	if first([2]byte{7, 8}) != 7 {
		t.Error("first")
	}
	if p := at(2, true); p != (point{1, 3}) {
		t.Error(p)
	}
}
`

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMutationTesting(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it: it compiles a package for each mutant")
	}
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.test/sample\n\ngo 1.21\n")
	write(t, dir, "sample.go", sampleSource)
	write(t, dir, "sample_test.go", sampleTests)
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-buildvcs=false")
	t.Setenv("GOWORK", "off")
	var out strings.Builder
	m := &tester{out: &out, limit: 5 * time.Second}
	if err := m.tryPackages(context.Background(), []string{"."}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var survivors []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "  sample.go:") {
			survivors = append(survivors, strings.TrimSpace(line))
		}
	}
	want := []string{
		"sample.go:18: len(s) > n -> >=", // the same: there is nothing to notice
		"sample.go:30: deep && a > 0 -> ||",
		"sample.go:30: a > 0 -> >=",
		"sample.go:30: 0 -> (0 + 1)",
		"sample.go:34: without p.y = 7",
		"sample.go:34: 7 -> (7 + 1)",
		`sample.go:43: if !strings.HasPrefix(s, "-") -> never`, // the same
		"sample.go:46: len(s) > 0 -> >=",
		"sample.go:46: 0 -> (0 + 1)",
		"sample.go:5: 3 -> (3 + 1)",
	}
	if got := strings.Join(survivors, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("survivors:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if s := m.scores[0]; s.tried <= len(want) || s.tried-s.noticed != len(want) {
		t.Errorf("%+v", s)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	ms, err := find(dir, []string{filepath.Base(write(t, dir, "sample.go", sampleSource))})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]mutant{}
	for _, m := range ms {
		at[m.What] = m
	}
	for what, want := range map[string]string{
		"deep && a > 0 -> ||":                     "case deep || a > 0:",
		"a > 0 -> <=":                             "case deep && a <= 0:",
		"p.y += 2 -> -=":                          "p.y -= 2",
		"p.x-- -> ++":                             "p.x++",
		"without y: 1":                            "point{x: a, }",
		"if len(s) > n -> always":                 "if true || (len(s) > n) {",
		`!strings.HasPrefix(s, "-") -> without !`: `if strings.HasPrefix(s, "-") {`,
		"3 -> (3 + 1)":                            "const limit = (3 + 1)",
		"without the branch case deep && a > 0":   "case deep && a > 0:\n\t\t\n\n\tdefault:",
		"len(s) > 0 && s[0] == '-' -> false && (len(s) > 0 && s[0] == '-')": "for false && (len(s) > 0 && s[0] == '-') {",
	} {
		m, ok := at[what]
		if !ok {
			t.Errorf("no change %q", what)
			continue
		}
		if text := apply(sampleSource, 0, []insertion{{m.From, m.To, m.New}}); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", what, want, text)
		}
	}
}

// A sample is the same whatever stands above in the file, and a larger one holds a
// smaller one.
func TestSample(t *testing.T) {
	names := func(src string, n int) (all []string) {
		ms, err := findIn("sample.go", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sample(ms, n) {
			all = append(all, m.What)
		}
		return all
	}
	few := names(sampleSource, 5)
	if moved := names(strings.Replace(sampleSource, "const limit", "\n// A comment.\nconst limit", 1), 5); strings.Join(few,
		"|") != strings.Join(moved, "|") {
		t.Errorf("%q became %q", few, moved)
	}
	more := strings.Join(names(sampleSource, 12), "|")
	for _, what := range few {
		if !strings.Contains(more, what) {
			t.Errorf("%q is not in %s", what, more)
		}
	}
}
