package claims

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// examples are the YAML blocks of docs/claims.md.
func examples(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	rest := string(text)
	for {
		_, after, ok := strings.Cut(rest, "```yaml\n")
		if !ok {
			return blocks
		}
		block, end, ok := strings.Cut(after, "```")
		if !ok {
			t.Fatal("docs/claims.md: a yaml block has no end")
		}
		blocks, rest = append(blocks, block), end
	}
}

// TestDocumentedExample: the examples in docs/claims.md are ledgers that load
// and lint, and the claim in the first is the one in the ledger.
func TestDocumentedExample(t *testing.T) {
	blocks := examples(t)
	if len(blocks) != 4 {
		t.Fatalf("%d yaml blocks in docs/claims.md", len(blocks))
	}
	for i, block := range []string{blocks[0], blocks[2]} {
		l, err := Parse("docs/claims.md", []byte(block))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors}); err != nil {
			t.Fatal(err)
		}
		c := l.Claims()[0]
		if i > 0 {
			continue
		}
		real := loadLedger(t).Claim(c.ID)
		if real == nil || real.Text != c.Text || len(real.Checks) != len(c.Checks) ||
			!slices.EqualFunc(real.Support, c.Support, func(a, b Support) bool {
				return a.Kubernetes == b.Kubernetes && a.Status == b.Status
			}) {
			t.Errorf("the example %s is not the claim in the ledger; update docs/claims.md", c.ID)
		}
	}
	var declared sourceList
	if ms := decode("docs/claims.md", []byte(blocks[1]), &declared); ms != nil {
		t.Fatal(ms)
	}
	program, _ := builtin()
	if declared.DocumentedThrough != program.through {
		t.Errorf("docs/claims.md says that the documents go through %s; it is %s", declared.DocumentedThrough, program.through)
	}
	for _, s := range declared.Sources {
		i := slices.IndexFunc(program.sources, func(p source) bool { return p.ID == s.ID })
		if s.pos = (pos{}); i < 0 {
			t.Errorf("docs/claims.md: no source is called %s", s.ID)
			continue
		}
		real := program.sources[i]
		if real.pos = (pos{}); real != s {
			t.Errorf("docs/claims.md has the source %v; it is %v", s, real)
		}
	}
	var rows []Row
	if ms := decode("docs/claims.md", []byte(blocks[3]), &rows); ms != nil {
		t.Fatal(ms)
	}
	if err := loadLedger(t).JoinRows(rows, 0); err != nil {
		t.Error(err)
	}
}

// TestDocumentedKindsOfChecks: docs/claims.md has a row for every kind of check
// and every field of Where.
func TestDocumentedKindsOfChecks(t *testing.T) {
	text, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range CheckKinds {
		if !strings.Contains(string(text), "\n| `"+kind+"` | ") {
			t.Errorf("docs/claims.md says nothing about checks of kind %s", kind)
		}
	}
	for _, field := range []string{"kubernetes", "build", "releases", "designs", "networks", "plugins", "proxies", "runtimes"} {
		if !strings.Contains(string(text), "\n| `"+field+"`") {
			t.Errorf("docs/claims.md says nothing about %s", field)
		}
	}
	for _, status := range Statuses {
		if !strings.Contains(string(text), "`"+status+"`") {
			t.Errorf("docs/claims.md says nothing about the status %s", status)
		}
	}
}
