package trace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// Each verdict and each reason code that the source declares has one entry that explains
// it, and nothing else is explained.
func TestEveryCodeIsExplained(t *testing.T) {
	var verdicts, reasons []string
	for _, m := range Verdicts {
		verdicts = append(verdicts, string(m.ID))
		if m.Means == "" {
			t.Errorf("verdict %s has no meaning", m.ID)
		}
	}
	for _, e := range Reasons {
		reasons = append(reasons, string(e.Code))
		if e.Title == "" || e.Means == "" || e.Look == "" {
			t.Errorf("reason %s lacks a part of its explanation", e.Code)
		}
	}
	for _, list := range []struct {
		file, typ, name string
		explained       []string
	}{{"verdict.go", "Verdict", "Verdicts", verdicts}, {"reason.go", "Reason", "Reasons", reasons}} {
		declared := constants(t, list.file, list.typ)
		if len(declared) == 0 {
			t.Fatalf("no constants of type %s in %s", list.typ, list.file)
		}
		for _, value := range declared {
			if n := count(list.explained, value); n != 1 {
				t.Errorf("%s has %d entries for %q, want 1", list.name, n, value)
			}
		}
		for _, value := range list.explained {
			if !slices.Contains(declared, value) {
				t.Errorf("%s explains %q, which is not a constant in %s", list.name, value, list.file)
			}
		}
	}
}

func count(all []string, s string) (n int) {
	for _, x := range all {
		if x == s {
			n++
		}
	}
	return n
}

// constants are the values of a file's constants of a type.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}
