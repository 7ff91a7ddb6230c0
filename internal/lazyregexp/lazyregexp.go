// Package lazyregexp has regular expressions that are compiled when they are first used.
//
// A program pays for every expression that a package compiles while it is initialised, also
// when it asks for something else: winlab has a hundred of them for the output of Windows
// nodes, and a trace reads none. The methods are those of [regexp.Regexp] that winlab uses.
// go test ./internal/dev/house compiles every expression, so that a mistake in one is not found by
// a user. The package must know nothing of what the expressions are for.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled at its first use. It may be used by several
// goroutines.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// New returns an expression that is not compiled yet. One that cannot be compiled panics when
// it is used.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// Match is [regexp.Regexp.Match].
func (r *Regexp) Match(b []byte) bool { return r.get().Match(b) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindStringIndex is [regexp.Regexp.FindStringIndex].
func (r *Regexp) FindStringIndex(s string) []int { return r.get().FindStringIndex(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindStringSubmatchIndex is [regexp.Regexp.FindStringSubmatchIndex].
func (r *Regexp) FindStringSubmatchIndex(s string) []int { return r.get().FindStringSubmatchIndex(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is [regexp.Regexp.FindAllStringSubmatchIndex].
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, by string) string { return r.get().ReplaceAllString(s, by) }

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, by)
}
