package house

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExpressionsCompile compiles every expression of internal/lazyregexp: the program does so
// when it first uses one, and that is too late to learn of a mistake. And no package but tests
// and programs of their own compiles one while it is initialised.
func TestExpressionsCompile(t *testing.T) {
	found := 0
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") || strings.Contains(f, "testdata/") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, f), nil, 0)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !calls(call, "lazyregexp", "New") {
				return true
			}
			found++
			expr, ok := text(file, call.Args[0])
			if !ok {
				t.Errorf("%s: an expression of lazyregexp is a constant text", set.Position(call.Pos()))
			} else if _, err := regexp.Compile(expr); err != nil {
				t.Errorf("%s: %v", set.Position(call.Pos()), err)
			}
			return true
		})
		if file.Name.Name == "main" || strings.HasPrefix(f, "conformance/e2e/") {
			continue
		}
		for _, d := range file.Decls {
			v, ok := d.(*ast.GenDecl)
			if !ok || v.Tok != token.VAR {
				continue
			}
			for _, s := range v.Specs {
				for _, value := range s.(*ast.ValueSpec).Values {
					if call, ok := value.(*ast.CallExpr); ok && calls(call, "regexp", "MustCompile") {
						t.Errorf("%s: every program that imports the package compiles this at its start; use internal/lazyregexp", set.Position(call.Pos()))
					}
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("%d expressions found: does this test look at the right files?", found)
	}
}

// calls reports whether a call is of a function of a package.
func calls(call *ast.CallExpr, pkg, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// text is the value of a string that is written in the source, also in parts with names.
func text(file *ast.File, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v := constant.MakeFromLiteral(e.Value, e.Kind, 0)
		return constant.StringVal(v), v.Kind() == constant.String
	case *ast.BinaryExpr:
		a, ok := text(file, e.X)
		b, both := text(file, e.Y)
		return a + b, ok && both && e.Op == token.ADD
	case *ast.Ident:
		for _, d := range file.Decls {
			v, ok := d.(*ast.GenDecl)
			if !ok || v.Tok != token.CONST && v.Tok != token.VAR {
				continue
			}
			for _, s := range v.Specs {
				for i, name := range s.(*ast.ValueSpec).Names {
					if values := s.(*ast.ValueSpec).Values; name.Name == e.Name && i < len(values) {
						return text(file, values[i])
					}
				}
			}
		}
	}
	return "", false
}
