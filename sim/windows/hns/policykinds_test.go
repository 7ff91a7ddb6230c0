package hns

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each constant of type PolicyType has one row in policyKinds, and each type of settings
// is what its row decodes. The constants and types are read from the source.
func TestPolicyKinds(t *testing.T) {
	constants, settings := declaredPolicies(t)
	if len(constants) < 20 || len(settings) < 20 {
		t.Fatalf("found %d constants and %d types of settings in the source", len(constants), len(settings))
	}
	for name, value := range constants {
		rows := 0
		for _, k := range policyKinds {
			if string(k.typ) == value {
				rows++
				if len(k.on) == 0 {
					t.Errorf("the row of %s in policyKinds (policykinds.go) names no object that can have it", name)
				}
			}
		}
		if rows != 1 {
			t.Errorf("%s has %d rows in policyKinds (policykinds.go), want 1", name, rows)
		}
	}
	for typ, constant := range settings {
		value := PolicyType(constants[constant])
		if !hasSettings(value) {
			t.Errorf("the row of %s in policyKinds (policykinds.go) must decode %s", constant, typ)
		} else if s, _ := policyKindOf(value).decode(nil); s.Type() != value {
			t.Errorf("the row of %s in policyKinds (policykinds.go) decodes %T", constant, s)
		}
	}
}

// declaredPolicies returns the constants of type PolicyType with their values, and the
// types with a method Type that returns one, each with the constant.
func declaredPolicies(t *testing.T) (constants, settings map[string]string) {
	t.Helper()
	constants, settings = map[string]string{}, map[string]string{}
	files, err := filepath.Glob("polic*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if typ, ok := n.Type.(*ast.Ident); ok && typ.Name == "PolicyType" {
					value, _ := strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
					constants[n.Names[0].Name] = value
				}
			case *ast.FuncDecl:
				if n.Recv == nil || n.Name.Name != "Type" {
					break
				}
				receiver, ok1 := n.Recv.List[0].Type.(*ast.Ident)
				ret, ok2 := n.Body.List[0].(*ast.ReturnStmt)
				if ok1 && ok2 {
					if id, ok := ret.Results[0].(*ast.Ident); ok {
						settings[receiver.Name] = id.Name
					}
				}
			}
			return true
		})
	}
	return constants, settings
}
