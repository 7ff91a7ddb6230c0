package house

import (
	"bytes"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	root   = "../.."
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

// closure is everything that a package imports, directly or not.
func closure(all map[string]*pkg, dir string) map[string]bool {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(d string) {
		p := all[d]
		if p == nil {
			return
		}
		for i := range p.imports {
			if !seen[i] {
				seen[i] = true
				visit(i)
			}
		}
	}
	visit(dir)
	return seen
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

// mayKnow says which packages of this module a package may import, directly or
// not. A folder with a slash at its end stands for all below it.
var mayKnow = map[string][]string{
	"sim/dataplane/packet": {},
	"sim/trace/evidence":   {},
	"internal/strict":      {},
	"internal/capture":     {},
	"sim/trace":            {"sim/trace/evidence"},
	"sim/trace/text":       {"sim/trace/evidence", "sim/trace"},
	"sim/windows/builds":   {"sim/trace/evidence"},
	"sim/dataplane/vfp":    {"sim/dataplane/packet", "sim/dataplane/packet/diff", "sim/trace", "sim/trace/evidence"},
	"sim/dataplane/wire":   {"sim/dataplane/packet", "sim/dataplane/packet/diff", "sim/trace", "sim/trace/evidence"},
	"sim/dataplane/host":   {"sim/dataplane/packet", "sim/dataplane/packet/diff", "sim/trace", "sim/trace/evidence", "sim/dataplane/wire"},
	"sim/dataplane/fabric": {"sim/dataplane/packet", "sim/dataplane/packet/diff", "sim/trace", "sim/trace/evidence", "sim/dataplane/wire"},
	"sim/windows/hns":      {"sim/dataplane/packet", "sim/dataplane/packet/diff", "sim/trace", "sim/trace/evidence", "sim/dataplane/vfp", "sim/windows/builds"},
	"sim/kube/dns":         {"sim/dataplane/packet", "sim/trace", "sim/trace/evidence"},
	"sim/real/wine":        {"sim/windows/builds", "sim/trace/evidence"},
	"sim/kube/schedule":    {},
	"sim/kube/resources":   {},

	"reports/findings":    {"reports/clean", "reports/result", "reports/junit", "sim/trace/evidence", "sim/trace"},
	"conformance/source":  {"internal/strict"},
	"conformance/subject": {"conformance/claims", "reports/result", "sim/trace/evidence", "sim/trace", "internal/strict"},
}

func allowed(list []string, path string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == path || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a)
	})
}

// ours reports whether an import is a package of this module.
func ours(all map[string]*pkg, path string) bool { return all[path] != nil }

func TestWhoMayKnowWhom(t *testing.T) {
	all := packages(t)
	for dir, list := range mayKnow {
		if all[dir] == nil {
			t.Errorf("there is no package %s any more; mayKnow names it", dir)
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(closure(all, dir))) {
			if ours(all, i) && !allowed(list, i) {
				t.Errorf("%s imports %s, directly or not, which it must not know", dir, i)
			}
		}
	}
	for dir := range all {
		for _, i := range slices.Sorted(maps.Keys(closure(all, dir))) {
			switch {
			case strings.HasPrefix(i, "cmd/") && !strings.HasPrefix(dir, "cmd/"):
				t.Errorf("%s imports %s; nothing imports a command", dir, i)
			case i == "internal/house":
				t.Errorf("%s imports internal/house, which has no code", dir)
			case ours(all, i) && strings.HasPrefix(i, "sim/") && strings.HasPrefix(dir, "reports/") && i != "sim/trace" && i != "sim/trace/evidence" && !strings.HasPrefix(i, "sim/trace/"):
				t.Errorf("%s imports %s; reports read traces and facts only", dir, i)
			case dir == "conformance/claims" && strings.HasPrefix(i, "sim/") && i != "sim/trace" && i != "sim/trace/evidence" && i != "internal/strict":
				t.Errorf("%s imports %s; claims are data and must not know the simulator", dir, i)
			}
		}
		// A package of the simulator knows nothing of what is built upon it.
		for _, i := range slices.Sorted(maps.Keys(closure(all, dir))) {
			if strings.HasPrefix(dir, "sim/") && (strings.HasPrefix(i, "reports/") || strings.HasPrefix(i, "conformance/")) {
				t.Errorf("%s imports %s; the simulator knows no reports and no claims", dir, i)
			}
		}
	}
}

// atTheEdge are the packages that read manifests or answer for Kubernetes'
// own components: they use Kubernetes' own types. Everything else has the
// small types of sim/kube.
var atTheEdge = []string{"sim/lab/spec", "sim/real/components/apiserver", "sim/kube/schedule", "sim/kube/resources", "conformance/manifest", "conformance/check", "conformance/placement"}

func TestKubernetesTypesStayAtTheEdge(t *testing.T) {
	for dir, p := range packages(t) {
		if slices.Contains(atTheEdge, dir) {
			continue
		}
		for i := range p.imports {
			if strings.HasPrefix(i, "k8s.io/") || strings.HasPrefix(i, "sigs.k8s.io/") {
				t.Errorf("%s imports %s; only %s read Kubernetes objects", dir, i, strings.Join(atTheEdge, ", "))
			}
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

func TestFormatted(t *testing.T) {
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") || strings.Contains(f, "testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		want, err := format.Source(data)
		if err != nil {
			t.Errorf("%s: %v", f, err)
		} else if !bytes.Equal(want, data) {
			t.Errorf("%s is not formatted; run gofmt -w %s", f, f)
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
		info, err := os.Stat(filepath.Join(root, f))
		if err == nil && info.Size() > most {
			t.Errorf("%s has %d bytes, more than %d; split it by concept", f, info.Size(), most)
		}
	}
}
