package claims

import "testing"

// TestLedger loads and lints the ledger that is part of the program.
func TestLedger(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatalf("the ledger does not load:\n%v", err)
	}
	if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors, Specs: Specs()}); err != nil {
		t.Fatalf("the ledger has mistakes:\n%v", err)
	}
}
