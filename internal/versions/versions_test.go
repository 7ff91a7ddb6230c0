package versions

import (
	"fmt"
	"testing"
)

func TestRangeHolds(t *testing.T) {
	for _, c := range []struct {
		rng, version string
		want         bool
	}{
		{"", "1.5", true},
		{">=1.14 <=1.20", "1.14", true},
		{">=1.14 <=1.20", "1.20", true},
		{">=1.14 <=1.20", "1.20.15", true}, // a bound looks at its own numbers only
		{">=1.14 <=1.20", "1.21", false},
		{">=1.14 <=1.20", "1.5", false}, // numbers, not text
		{">1.20", "1.20.4", false},
		{">1.20", "1.36", true},
		{"<1.19", "1.18.20", true},
		{"1.5", "1.5.2", true},
		{"=1.5", "1.50", false},
		{"1.5 || >=1.14", "1.16", true},
		{"1.5 || >=1.14", "1.9", false},
		{">=10.0.17763.1432", "10.0.17763.1", false},
		{">=10.0.17763.1432", "10.0.17763.2000", true},
		{">=10.0.17763.1432", "10.0.19041.1", true},
		{">=10.0.17763 <10.0.17763.379", "10.0.17763.348", true},
		{">=10.0.17763 <10.0.17763.379", "10.0.14393.5000", false},
		{"<0.12.0", "0.11", true},
		{">=1.14", "v1.14.1", true},
	} {
		r, err := ParseRange(c.rng)
		if err != nil {
			t.Errorf("%q: %v", c.rng, err)
			continue
		}
		v, err := Parse(c.version)
		if err != nil {
			t.Errorf("%q: %v", c.version, err)
			continue
		}
		if got := r.Holds(v); got != c.want {
			t.Errorf("%s in %q: got %v, want %v", c.version, c.rng, got, c.want)
		}
	}
}

func TestParseRangeRefuses(t *testing.T) {
	for _, rng := range []string{"1.x", ">=", ">>1.2", "1.5 ||", "|| 1.5", ">=1.20 <1.14", "1.14 1.15", "~1.14", ">1.20 <=1.20", "1.",
		"+1.2"} {
		if r, err := ParseRange(rng); err == nil {
			t.Errorf("%q was read as %v; it should be refused", rng, r)
		}
	}
}

func TestRangesOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", ">=1.14", true},
		{">=1.14 <=1.20", ">1.20", false},
		{">=1.14 <=1.20", ">=1.20", true},
		{">=1.14 <1.19", ">=1.19 <=1.20", false},
		{"1.5", ">=1.14", false},
		{"1.5 || 1.14", ">=1.14 <=1.20", true},
		{"1.20.4", "<=1.20", true},
		{">=10.0.17763 <10.0.17763.379", ">=10.0.17763.379", false},
		{"<10.0.19041.610", ">=10.0.19041", true},
		{"<10.0.19041", ">=10.0.19041", false},
		{">1.20", "<1.21", false}, // nothing lies between when both look at two numbers
		{"<1.0", ">=0.12.0", true},
	} {
		a, errA := ParseRange(c.a)
		b, errB := ParseRange(c.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := a.Overlaps(b); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
		if got := b.Overlaps(a); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

// What is remembered of ranges says what reading them again does, also beyond as many as are
// remembered, and of ranges that cannot be read.
func TestInRangeAgain(t *testing.T) {
	texts := []string{"", ">=1.14 <=1.20", "1.5 || >=1.14", ">1.20", "<1.20 >1.30", "x", "1.2 ||", ">=10.0.17763.1432"}
	for i := range knownMost + 10 {
		texts = append(texts, fmt.Sprintf(">=1.%d", i))
	}
	for range 2 {
		for _, rng := range texts {
			for _, version := range []string{"1.5", "1.14.1", "1.20.4", "10.0.17763.2000", "y"} {
				r, err := ParseRange(rng)
				v, bad := Parse(version)
				if got, want := InRange(rng, version), rng == "" || err == nil && bad == nil && r.Holds(v); got != want {
					t.Errorf("%s in %q: %v, want %v", version, rng, got, want)
				}
			}
		}
	}
	if n := len(knownRanges.of); n > knownMost {
		t.Errorf("%d ranges are remembered, more than %d", n, knownMost)
	}
}
