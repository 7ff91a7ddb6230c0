package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	"github.com/fzipp/gocyclo"
	"golang.org/x/tools/go/analysis"
	staticunused "honnef.co/go/tools/unused"
)

// mostComplex is the cyclomatic complexity up to which a function, tests included, may go.
const mostComplex = 24

var complexity = &analysis.Analyzer{
	Name: "complexity",
	Doc:  "report functions above a cyclomatic complexity",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					if c := gocyclo.Complexity(f); c > mostComplex {
						pass.Reportf(f.Pos(), "%s has a cyclomatic complexity of %d: split it (limit %d)", f.Name.Name, c, mostComplex)
					}
				}
			}
		}
		return nil, nil
	},
}

// unused reports what staticcheck's analyzer of the same name found. A named run of go vet has
// a package and its tests together, so that nothing has to be merged.
var unused = &analysis.Analyzer{
	Name:     "U1000",
	Doc:      "report unused code",
	Requires: []*analysis.Analyzer{staticunused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, object := range pass.ResultOf[staticunused.Analyzer.Analyzer].(staticunused.Result).Unused {
			pass.Reportf(position(pass, object.Position), "%s %s is unused", object.Kind, object.Name)
		}
		return nil, nil
	},
}

func position(pass *analysis.Pass, at token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == at.Filename {
			return file.LineStart(at.Line)
		}
	}
	return token.NoPos
}

var ignoreDirective = regexp.MustCompile(`^//lint:(ignore|file-ignore) ([A-Z0-9,]+) \S`)

// withoutIgnored returns the analyzer without what the source tells it to ignore, as
// staticcheck's own command does: //lint:ignore CHECK why, above the line or at its end, and
// //lint:file-ignore CHECK why.
func withoutIgnored(a *analysis.Analyzer) *analysis.Analyzer {
	filtered := *a
	filtered.Run = func(pass *analysis.Pass) (any, error) {
		ignored := ignoredLines(pass, a.Name)
		inner := *pass
		inner.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.Position(d.Pos)
			if !ignored[place{at.Filename, at.Line}] && !ignored[place{at.Filename, 0}] {
				pass.Report(d)
			}
		}
		return a.Run(&inner)
	}
	return &filtered
}

// A place is a line of a file; line 0 is the whole file.
type place struct {
	file string
	line int
}

func ignoredLines(pass *analysis.Pass, check string) map[place]bool {
	ignored := map[place]bool{}
	for _, f := range pass.Files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				m := ignoreDirective.FindStringSubmatch(c.Text)
				if m == nil || !strings.Contains(","+m[2]+",", ","+check+",") {
					continue
				}
				at := pass.Fset.Position(c.Pos())
				if m[1] == "file-ignore" {
					ignored[place{at.Filename, 0}] = true
				} else {
					ignored[place{at.Filename, at.Line}] = true
					ignored[place{at.Filename, at.Line + 1}] = true
				}
			}
		}
	}
	return ignored
}
