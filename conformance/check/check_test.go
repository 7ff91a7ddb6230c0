package check

import (
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

func ledger(t *testing.T) *claims.Ledger {
	t.Helper()
	l, err := claims.Load()
	if err != nil {
		t.Fatalf("the ledger does not load:\n%v", err)
	}
	return l
}

// TestLedgerWithRules lints the ledger with tests and fields known.
func TestLedgerWithRules(t *testing.T) {
	if err := ledger(t).Lint(LintOptions()); err != nil {
		t.Fatalf("the ledger has mistakes:\n%v", err)
	}
}

// TestExamples: every rule finds its bad example and not its good one, and
// says nothing in a setting that it is not for.
func TestExamples(t *testing.T) {
	n := 0
	for _, c := range ledger(t).Claims() {
		for i := range c.Checks {
			if c.Checks[i].Rule == nil {
				continue
			}
			n++
			if s := Example(c, &c.Checks[i]); !s.Pass {
				t.Errorf("claim %s, rule %q (%s): %s: %s", s.Claim, s.What, s.Where, s.Got, s.Summary)
			}
		}
	}
	t.Logf("%d rules", n)
}

// TestEveryTestIsAsked: a condition that no rule of the ledger uses is dead code.
func TestEveryTestIsAsked(t *testing.T) {
	used := map[string]bool{}
	for _, c := range ledger(t).Claims() {
		for _, k := range c.Checks {
			if k.Rule != nil && k.Rule.Test != "" {
				used[k.Rule.On+" "+k.Rule.Test] = true
			}
		}
	}
	for _, one := range tests() {
		any := false
		for _, on := range one.On {
			any = any || used[on+" "+one.Name]
		}
		if !any {
			t.Errorf("no rule uses the test %s (on %v); remove it or write a rule", one.Name, one.On)
		}
	}
}
