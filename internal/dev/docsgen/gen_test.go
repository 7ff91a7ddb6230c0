package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

const root = "../../.."

func TestCommittedPagesAreCurrent(t *testing.T) {
	for name, want := range pages() {
		have, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), string(want)); diff != "" {
			t.Errorf("docs/%s is stale; run go run ./internal/dev/docsgen (- committed, + generated):\n%s", name, diff)
		}
	}
}

// TestEveryDeclaredFactIsListed: a package that declares facts and is not
// linked into this command would be missing from the page without a word.
func TestEveryDeclaredFactIsListed(t *testing.T) {
	declared := 0
	err := filepath.WalkDir(filepath.Join(root, "sim"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := factID(n); ok {
				declared++
				if evidence.Lookup(id) == nil {
					t.Errorf("%s declares the fact %s, which this command does not link; import the package in main.go", path, id)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if declared == 0 {
		t.Fatal("found no declaration of a fact: does this test still read the right calls?")
	}
}

// factID returns the identifier in a call of evidence.New or evidence.NewParam.
// Identifiers that are computed are those of sim/windows/builds, whose table is tested there.
func factID(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "evidence" {
		return "", false
	}
	at := map[string]int{"New": 0, "NewParam": 1}
	i, ok := at[sel.Sel.Name]
	if !ok || i >= len(call.Args) {
		return "", false
	}
	lit, ok := call.Args[i].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	id, err := strconv.Unquote(lit.Value)
	return id, err == nil
}

// TestAreasHaveTitles: a new prefix needs a heading that a reader understands.
func TestAreasHaveTitles(t *testing.T) {
	for _, f := range evidence.All() {
		if area, _, _ := strings.Cut(f.ID, "."); areas[area] == "" {
			t.Errorf("the fact %s has a prefix without a title in fidelity.go", f.ID)
		}
	}
}

// TestEveryCodeIsExplained: a verdict or reason code that is declared and not
// explained would be missing from docs/reference/verdicts.md.
func TestEveryCodeIsExplained(t *testing.T) {
	explained := func(typ, id string) bool {
		if typ == "Verdict" {
			return trace.Verdict(id).Valid()
		}
		_, ok := trace.Explain(trace.Reason(id))
		return ok
	}
	found := map[string]int{}
	for _, name := range []string{"verdict.go", "reason.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "sim/trace", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			typ, ok := spec.Type.(*ast.Ident)
			lit, lok := spec.Values[0].(*ast.BasicLit)
			if !ok || !lok {
				return true
			}
			id, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[typ.Name]++
			if !explained(typ.Name, id) {
				t.Errorf("%s: the %s %s has no explanation", name, typ.Name, id)
			}
			return true
		})
	}
	if found["Verdict"] != len(trace.Verdicts) || found["Reason"] != len(trace.Reasons) {
		t.Errorf("declared %v; explained %d verdicts and %d reasons", found, len(trace.Verdicts), len(trace.Reasons))
	}
}
