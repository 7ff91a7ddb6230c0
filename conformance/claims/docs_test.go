package claims

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedExample: the example in docs/claims.md is a ledger that loads
// and lints, and the claim in it is the one in the ledger.
func TestDocumentedExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no yaml block in docs/claims.md")
	}
	l, err := Parse("docs/claims.md", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors}); err != nil {
		t.Fatal(err)
	}
	c := l.Claims()[0]
	if real := loadLedger(t).Claim(c.ID); real == nil || real.Text != c.Text || len(real.Checks) != len(c.Checks) {
		t.Errorf("the example %s is not the claim in the ledger; update docs/claims.md", c.ID)
	}
}
