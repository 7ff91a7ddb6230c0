package trace

import (
	"slices"
	"strings"
	"testing"
)

// Each word is a step; the turn is what repeats.
func TestFindTurn(t *testing.T) {
	t.Parallel()
	for steps, want := range map[string]Turn{
		"":                                  {},
		"a b c":                             {},
		"a b a b":                           {}, // there and back
		"a b a b a b":                       {0, 2, 3},
		"start a b a b a b a end":           {1, 2, 3},
		"x " + strings.Repeat("a b c ", 60): {1, 3, 60},
		"a a b a a b a a b":                 {0, 3, 3},
		"a b a c a b a c":                   {},
	} {
		var all []Step
		for i, w := range strings.Fields(steps) {
			all = append(all, Step{N: i + 1, Place: w, Action: ActForward})
		}
		got, ok := FindTurn(all)
		if got != want || ok != (want != Turn{}) {
			t.Errorf("%q: %+v, %v; want %+v", steps, got, ok, want)
		}
		if !slices.IsSortedFunc(all, func(a, b Step) int { return a.N - b.N }) {
			t.Errorf("%q: the steps were changed", steps)
		}
	}
}
