// Command lint is the one analysis pass of this repository: the analyzers of go vet and of
// staticcheck, and a limit on cyclomatic complexity, in one tool for
//
//	go vet -vettool=bin/lint ./...
//
// The go command caches its result by package, so that a second run takes seconds. It is a
// module of its own: nothing that it needs reaches go.mod of winlab.
package main

import (
	"encoding/gob"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

// ours is what the import paths of our modules begin with.
const ours = "github.com/winlab-dev/winlab"

// leftOut are checks that we do not follow. ST1005 wants errors to begin in lower case; ours
// may begin with a name (Kubernetes, HNS, Windows). scannererr wants the error of every
// bufio.Scanner to be read; ours read from programs, whose end is not an error of the reader.
var leftOut = map[string]bool{"ST1005": true, "scannererr": true}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "windows" {
		lines, err := windows(os.Args[2:])
		if err != nil {
			lines = []string{"lint: " + err.Error()}
		}
		for _, line := range lines {
			fmt.Fprintln(os.Stderr, line)
		}
		os.Exit(min(len(lines), 1))
	}
	analyzers := all()
	if cfg := os.Args[len(os.Args)-1]; strings.HasSuffix(cfg, ".cfg") {
		path, onlyFacts, err := prepare(cfg)
		if err != nil {
			fmt.Fprintln(os.Stderr, "lint:", err)
			os.Exit(1)
		}
		if onlyFacts {
			analyzers = withFacts(analyzers, path)
		}
	}
	unitchecker.Main(analyzers...)
}

// all returns the analyzers that report.
func all() []*analysis.Analyzer {
	analyzers := []*analysis.Analyzer{complexity, unused}
	for _, a := range vet.Suite {
		if !leftOut[a.Name] {
			analyzers = append(analyzers, a)
		}
	}
	for _, checks := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers} {
		for _, c := range checks {
			if !c.Doc.NonDefault && !leftOut[c.Analyzer.Name] {
				analyzers = append(analyzers, withoutIgnored(c.Analyzer))
			}
		}
	}
	return analyzers
}

// withFacts returns the analyzers, and those that they require, that export facts; on a
// dependency unitchecker would also run those that only read them. Of packages that are
// neither ours nor Go's own, only two cheap ones: which functions print, and what is
// deprecated. The others build an intermediate form of each function, for a thousand packages.
func withFacts(analyzers []*analysis.Analyzer, path string) []*analysis.Analyzer {
	first, _, _ := strings.Cut(path, "/")
	foreign := strings.Contains(first, ".") && !strings.HasPrefix(path, ours)
	var facts []*analysis.Analyzer
	seen := map[*analysis.Analyzer]bool{}
	var visit func([]*analysis.Analyzer)
	visit = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if seen[a] {
				continue
			}
			seen[a] = true
			for _, f := range a.FactTypes {
				gob.Register(f) // facts of Go's own packages are read, whatever is added to them
			}
			if len(a.FactTypes) > 0 && (!foreign || a.Name == "printf" || a.Name == "fact_deprecated") {
				facts = append(facts, a)
			}
			visit(a.Requires)
		}
	}
	visit(analyzers)
	return facts
}

// prepare reads the configuration that the go command wrote for one package and says which
// that is, and whether only facts are wanted of it.
//
// Go 1.26 caches the result of a package under the same key whether the package was named or
// is a dependency that is run for its facts, silently. After go vet ./a, go vet ./b would
// hence find nothing in a package b that a imports. So a package of ours whose named run is
// the same unit is always run in full.
func prepare(cfg string) (path string, onlyFacts bool, err error) {
	data, err := os.ReadFile(cfg)
	if err != nil {
		return "", false, err
	}
	var unit map[string]any
	if err := json.Unmarshal(data, &unit); err != nil {
		return "", false, fmt.Errorf("%s: %w", cfg, err)
	}
	path, _ = unit["ImportPath"].(string)
	dir, _ := unit["Dir"].(string)
	if onlyFacts, _ = unit["VetxOnly"].(bool); !onlyFacts || !strings.HasPrefix(path, ours) || strings.Contains(path, " ") || hasTests(dir) {
		return path, onlyFacts, nil
	}
	unit["VetxOnly"] = false
	data, err = json.Marshal(unit)
	if err != nil {
		return "", false, err
	}
	return path, false, os.WriteFile(cfg, data, 0o644)
}

// hasTests says whether go vet would run the package in dir together with its tests.
func hasTests(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return len(files) > 0
}
