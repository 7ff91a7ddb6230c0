package main

import (
	"fmt"
	"go/build"
	"go/types"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"
)

// windows type-checks packages without their tests as they are built for Windows, from source: no package is
// compiled, so that a machine that only tests needs no second build of all dependencies. The
// analyzers look only at files that are not built on Linux; the others they have seen. What
// an analyzer would have learnt in other packages, such as which of their functions print, it
// does not know here. It returns what it found.
func windows(patterns []string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Env: append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			found[e.Error()] = true
		}
		if len(p.Errors) > 0 {
			continue
		}
		r := run{pkg: p, only: notOnLinux(p.GoFiles), found: found, results: map[*analysis.Analyzer]any{}}
		if len(r.only) == 0 {
			continue
		}
		for _, a := range all() {
			if a != unused { // it would not see the files of Linux
				r.of(a)
			}
		}
	}
	var lines []string
	for line := range found {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	return lines, nil
}

// notOnLinux returns those of the files that a build for Linux leaves out.
func notOnLinux(files []string) map[string]bool {
	linux := build.Default
	linux.GOOS = "linux"
	only := map[string]bool{}
	for _, f := range files {
		if on, err := linux.MatchFile(filepath.Dir(f), filepath.Base(f)); err == nil && !on {
			only[f] = true
		}
	}
	return only
}

// A run is one package with the results of the analyzers that have run on it.
type run struct {
	pkg     *packages.Package
	only    map[string]bool // files to report about
	found   map[string]bool
	results map[*analysis.Analyzer]any
}

func (r run) of(a *analysis.Analyzer) {
	if _, done := r.results[a]; done {
		return
	}
	for _, required := range a.Requires {
		r.of(required)
	}
	result, err := a.Run(r.pass(a))
	if err != nil {
		r.found[fmt.Sprintf("%s: %s: %v", r.pkg.PkgPath, a.Name, err)] = true
	}
	r.results[a] = result
}

func (r run) pass(a *analysis.Analyzer) *analysis.Pass {
	pass := &analysis.Pass{
		Analyzer: a, Fset: r.pkg.Fset, Files: r.pkg.Syntax, OtherFiles: r.pkg.OtherFiles, IgnoredFiles: r.pkg.IgnoredFiles,
		Pkg: r.pkg.Types, TypesInfo: r.pkg.TypesInfo, TypesSizes: r.pkg.TypesSizes, ResultOf: r.results, ReadFile: os.ReadFile,
		Report: func(d analysis.Diagnostic) {
			if at := r.pkg.Fset.Position(d.Pos); r.only[at.Filename] {
				r.found[fmt.Sprintf("%s: %s (GOOS=windows)", at, d.Message)] = true
			}
		},
		ImportObjectFact:  func(types.Object, analysis.Fact) bool { return false },
		ExportObjectFact:  func(types.Object, analysis.Fact) {},
		ImportPackageFact: func(*types.Package, analysis.Fact) bool { return false },
		ExportPackageFact: func(analysis.Fact) {},
		AllObjectFacts:    func() []analysis.ObjectFact { return nil },
		AllPackageFacts:   func() []analysis.PackageFact { return nil },
	}
	if m := r.pkg.Module; m != nil {
		pass.Module = &analysis.Module{Path: m.Path, Version: m.Version, GoVersion: m.GoVersion}
	}
	return pass
}
