package builds

import (
	"fmt"
	"math"
	"strings"
)

// versionRange is a set of Windows versions, written as comparisons that must all
// hold: ">=10.0.17763.1432 <17763.2000". A build number alone, "17763", means
// every revision of that build, and "" every version.
type versionRange struct {
	terms []term
	text  string
}

type term struct {
	op string
	v  Version
}

// parseRange reads a range. Comparisons take >=, >, <=, < and =.
func parseRange(s string) (versionRange, error) {
	r := versionRange{text: s}
	for _, f := range strings.Fields(s) {
		op := ""
		for _, o := range []string{">=", "<=", ">", "<", "="} {
			if rest, ok := strings.CutPrefix(f, o); ok {
				op, f = o, rest
				break
			}
		}
		v, hasUBR, err := parseNumbers(f)
		if err != nil {
			return versionRange{}, fmt.Errorf("range %q: %w", s, err)
		}
		last := v
		if !hasUBR {
			last.UBR = math.MaxInt
		}
		switch op {
		case "", "=":
			r.terms = append(r.terms, term{">=", v}, term{"<=", last})
		case ">", "<=":
			r.terms = append(r.terms, term{op, last})
		default:
			r.terms = append(r.terms, term{op, v})
		}
	}
	return r, nil
}

// Contains reports whether v is in the range.
func (r versionRange) Contains(v Version) bool {
	for _, t := range r.terms {
		c := v.Compare(t.v)
		ok := map[string]bool{">=": c >= 0, ">": c > 0, "<=": c <= 0, "<": c < 0}[t.op]
		if !ok {
			return false
		}
	}
	return true
}

// String returns the range as it was written.
func (r versionRange) String() string { return r.text }

// hnsRange is a set of HNS versions: "9.3-9.*", "10.2+", "15.4".
type hnsRange struct{ min, max HNSVersion }

func parseHNSRange(s string) (hnsRange, error) {
	if low, ok := strings.CutSuffix(s, "+"); ok {
		v, err := parseHNS(low)
		return hnsRange{v, HNSVersion{math.MaxInt, math.MaxInt}}, err
	}
	low, high, ok := strings.Cut(s, "-")
	if !ok {
		v, err := parseHNS(s)
		return hnsRange{v, v}, err
	}
	major, isMax := strings.CutSuffix(high, ".*")
	if !isMax {
		return hnsRange{}, fmt.Errorf("%q is not a range of HNS versions: write it like 9.3-9.*, 10.2+ or 15.4", s)
	}
	v, err := parseHNS(low)
	if err != nil {
		return hnsRange{}, err
	}
	top, err := parseHNS(major + ".0")
	top.Minor = math.MaxInt
	return hnsRange{v, top}, err
}

func (r hnsRange) contains(v HNSVersion) bool {
	return v.Compare(r.min) >= 0 && v.Compare(r.max) <= 0
}
