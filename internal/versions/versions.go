// Package versions reads versions of numbers with dots between them, and ranges of them,
// as the ledger and the documents of results write them: "1.20", ">=10.0.17763.1432". It
// must not know what has the version.
package versions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Version is a version as a list of numbers: 1.20, 0.12.0, 10.0.17763.1432.
type Version []int

// Parse reads numbers with dots between them; a leading "v" is dropped.
func Parse(s string) (Version, error) {
	var v Version
	for _, part := range strings.Split(strings.TrimPrefix(s, "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || strings.HasPrefix(part, "+") {
			return nil, fmt.Errorf("%q is not a version; write numbers with dots, such as 1.20 or 10.0.17763.1432", s)
		}
		v = append(v, n)
	}
	return v, nil
}

// String writes the version as it is read.
func (v Version) String() string {
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

// Range is a set of versions: alternatives, each a list of bounds that must
// all hold. The empty range holds every version.
type Range [][]Bound

// Bound is one comparison. It looks at as many numbers as its version has:
// "<=1.20" holds 1.20.4, and ">1.20" does not.
type Bound struct {
	// Op is "=", ">=", "<=", ">" or "<".
	Op      string
	Version Version
	// Text is the version as it was written: Docker's 18.09 is not 18.9.
	Text string
}

// ParseRange reads bounds with spaces between them, ">=1.14 <=1.20", and
// alternatives with "||" between them, "1.5 || >=1.14". A version without an
// operator means "=".
func ParseRange(s string) (Range, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var r Range
	for _, alt := range strings.Split(s, "||") {
		var bounds []Bound
		for _, word := range strings.Fields(alt) {
			op := word[:len(word)-len(strings.TrimLeft(word, "<>="))]
			if !slices.Contains([]string{"", "=", ">=", "<=", ">", "<"}, op) {
				return nil, fmt.Errorf("%q is not a comparison in %q; write =, >=, <=, > or < and a version", op, s)
			}
			v, err := Parse(word[len(op):])
			if err != nil {
				return nil, fmt.Errorf("in the range %q: %w", s, err)
			}
			if op == "" {
				op = "="
			}
			bounds = append(bounds, Bound{op, v, strings.TrimLeft(word, "<>=v")})
		}
		if len(bounds) == 0 {
			return nil, fmt.Errorf("an empty alternative in the range %q; write a bound on both sides of ||", s)
		}
		if !satisfiable(bounds) {
			return nil, fmt.Errorf("no version is in %q; use || between alternatives", strings.TrimSpace(alt))
		}
		r = append(r, bounds)
	}
	return r, nil
}

// Holds reports whether the version is in the range.
func (r Range) Holds(v Version) bool {
	if len(r) == 0 {
		return true
	}
	return slices.ContainsFunc(r, func(bounds []Bound) bool { return all(bounds, v) })
}

func all(bounds []Bound, v Version) bool {
	return !slices.ContainsFunc(bounds, func(b Bound) bool { return !b.holds(v) })
}

func (b Bound) holds(v Version) bool {
	c := 0
	for i, want := range b.Version {
		have := 0
		if i < len(v) {
			have = v[i]
		}
		if c = have - want; c != 0 {
			break
		}
	}
	switch b.Op {
	case ">=":
		return c >= 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case "<":
		return c < 0
	}
	return c == 0
}

// InRange reports whether a version is in a range, both as text. The empty range holds
// everything; what cannot be read holds nothing.
func InRange(rng, version string) bool {
	if rng == "" {
		return true
	}
	r, err := known(rng)
	if err != nil {
		return false
	}
	v, err := Parse(version)
	return err == nil && r.Holds(v)
}

// knownMost bounds how many ranges are remembered. The ledger has some hundreds.
const knownMost = 4096

// knownRanges are ranges that were read before, by their text: a run over all labs asks a
// hundred thousand times whether a version is in one of the ledger's.
var knownRanges = struct {
	sync.RWMutex
	of map[string]parsed
}{of: map[string]parsed{}}

// parsed is what [ParseRange] returns.
type parsed struct {
	r   Range
	err error
}

// known is ParseRange for who does not change what it returns.
func known(s string) (Range, error) {
	knownRanges.RLock()
	k, ok := knownRanges.of[s]
	knownRanges.RUnlock()
	if ok {
		return k.r, k.err
	}
	k.r, k.err = ParseRange(s)
	knownRanges.Lock()
	defer knownRanges.Unlock()
	if len(knownRanges.of) < knownMost {
		knownRanges.of[s] = k
	}
	return k.r, k.err
}

// Overlaps reports whether some version is in both ranges.
func (r Range) Overlaps(o Range) bool {
	if len(r) == 0 || len(o) == 0 {
		return true
	}
	for _, a := range r {
		for _, b := range o {
			if satisfiable(slices.Concat(a, b)) {
				return true
			}
		}
	}
	return false
}

// satisfiable tries the versions at and around every bound: if any version
// fits, one of these does, because between two neighbouring bounds nothing
// changes.
func satisfiable(bounds []Bound) bool {
	longest := 0
	for _, b := range bounds {
		longest = max(longest, len(b.Version))
	}
	tries := []Version{make(Version, longest+1)}
	for _, b := range bounds {
		at := append(slices.Clone(b.Version), make(Version, longest+1-len(b.Version))...)
		// Just above b as a whole: its last number plus one, then zeros.
		above := slices.Clone(at)
		above[len(b.Version)-1]++
		// Inside b, above every longer bound that begins like b.
		inside := slices.Clone(at)
		for i := len(b.Version); i < len(inside); i++ {
			inside[i] = 1 << 30
		}
		// Just below b.
		below := slices.Clone(at)
		for i := len(b.Version) - 1; i >= 0; i-- {
			if below[i] > 0 {
				below[i]--
				for j := i + 1; j < len(below); j++ {
					below[j] = 1 << 30
				}
				break
			}
		}
		tries = append(tries, at, above, inside, below)
	}
	return slices.ContainsFunc(tries, func(v Version) bool { return all(bounds, v) })
}
