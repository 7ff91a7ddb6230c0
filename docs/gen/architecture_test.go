package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/winlab-dev/winlab/"

var quoted = regexp.MustCompile("`([^`]+)`")

// TestImportsAreThoseOfTheTable holds the source to the table of packages in
// docs/architecture.md. It is what keeps arrows from pointing the wrong way.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]func(string) bool{}
	for line := range strings.Lines(string(page)) {
		cols := strings.Split(line, "|")
		if len(cols) != 5 || !regexp.MustCompile("^ `(sim|conformance|reports|cmd|docs|internal)/[a-z/0-9]+` $").MatchString(cols[1]) {
			continue
		}
		pkg := strings.Trim(cols[1], " `")
		switch may := strings.TrimSpace(cols[3]); may {
		case "everything":
			allowed[pkg] = func(string) bool { return true }
		case "everything in `sim`":
			allowed[pkg] = func(p string) bool { return strings.HasPrefix(p, "sim/") }
		default:
			var list []string
			for _, m := range quoted.FindAllStringSubmatch(may, -1) {
				list = append(list, m[1])
			}
			allowed[pkg] = func(p string) bool { return slices.Contains(list, p) }
		}
	}
	found := imports(t)
	for pkg, list := range found {
		may := allowed[pkg]
		if may == nil {
			t.Errorf("docs/architecture.md has no row for %s, which imports %s", pkg, strings.Join(list, " "))
			continue
		}
		for _, p := range list {
			if !may(p) {
				t.Errorf("%s imports %s, which its row in docs/architecture.md does not name", pkg, p)
			}
		}
	}
	for pkg := range allowed {
		if _, ok := found[pkg]; !ok {
			t.Errorf("docs/architecture.md has a row for %s, which is no package", pkg)
		}
	}
}

// imports maps every package of this module to the packages of this module
// that its files import, those of tests left out.
func imports(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, top := range []string{"sim", "conformance", "reports", "cmd", "docs", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				// A folder with a go.mod is another module.
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			pkg := filepath.ToSlash(rel)
			found[pkg] = append(found[pkg], []string{}...)
			for _, spec := range file.Imports {
				p, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if p, ok := strings.CutPrefix(p, module); ok && !slices.Contains(found[pkg], p) {
					found[pkg] = append(found[pkg], p)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
