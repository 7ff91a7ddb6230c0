package house

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	root   = "../../.."
	module = "github.com/winlab-dev/winlab/"
)

// pkg is one folder with Go files.
type pkg struct {
	doc string
	// imports and testImports are what its files and its tests import; those
	// of this module without the module's name.
	imports, testImports map[string]bool
}

// files lists the files of the repository: those that git knows, or all but
// hidden and generated folders where there is no git.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		var all []string
		for f := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			if _, err := os.Stat(filepath.Join(root, f)); err == nil {
				all = append(all, f)
			}
		}
		return all
	}
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "out"):
			return filepath.SkipDir
		case !d.IsDir():
			all = append(all, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// packages reads the imports and documentation of all packages.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	all := map[string]*pkg{}
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") || strings.Contains(f, "testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f), nil, parser.ParseComments|parser.ImportsOnly)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		dir := filepath.ToSlash(filepath.Dir(f))
		p := all[dir]
		if p == nil {
			p = &pkg{imports: map[string]bool{}, testImports: map[string]bool{}}
			all[dir] = p
		}
		to := p.imports
		if strings.HasSuffix(f, "_test.go") {
			to = p.testImports
		} else if file.Doc != nil {
			p.doc += file.Doc.Text()
		}
		for _, i := range file.Imports {
			to[strings.TrimPrefix(strings.Trim(i.Path.Value, `"`), module)] = true
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for dir, p := range packages(t) {
		if len(p.imports) == 0 && p.doc == "" && len(p.testImports) > 0 {
			continue // tests only
		}
		if !strings.HasPrefix(p.doc, "Package ") && !strings.HasPrefix(p.doc, "Command ") {
			t.Errorf("%s has no documentation; write \"// Package %s ...\" above its package clause", dir, filepath.Base(dir))
		}
	}
}

// No file may depend on the machine that it was written on.
func TestNoPathsOfOneMachine(t *testing.T) {
	forbidden := []string{"/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/"}
	for _, f := range files(t) {
		data, err := os.ReadFile(filepath.Join(root, f))
		if err != nil || !utf8.Valid(data) {
			continue
		}
		for n, line := range strings.Split(string(data), "\n") {
			for _, bad := range forbidden {
				if strings.Contains(line, bad) {
					t.Errorf("%s:%d: a path of one machine: %s", f, n+1, bad)
				}
			}
		}
	}
}

// Files hold one concept each and stay small enough to be read at once.
func TestFilesAreReadable(t *testing.T) {
	const most = 32 << 10
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, f))
		if err == nil && len(src) > most && !generated(src) {
			t.Errorf("%s has %d bytes, more than %d; split it by concept", f, len(src), most)
		}
	}
}

// generated reports whether a program wrote a file of Go, for the compiler and not for readers.
func generated(src []byte) bool { return bytes.HasPrefix(src, []byte("// Code generated ")) }
