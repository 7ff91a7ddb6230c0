package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// opens are the functions that open what a name leads to, whatever that is. Reading a folder cannot
// block, and temporary files have names that nobody gave; they are not among them.
var opens = map[string][]string{
	"os":  {"Open", "OpenFile", "ReadFile", "Create", "WriteFile", "DirFS"},
	"zip": {"OpenReader"},
}

// opensItself are the packages, or files, that open files without internal/input and
// internal/outfile, and why. A pattern that ends in ... is all below it.
var opensItself = map[string]string{
	"internal/input":                                "is what opens",
	"internal/outfile":                              "is what writes",
	"internal/dev/...":                              "tools for developers, on files of this repository",
	"internal/cache/lock_linux.go":                  "a lock in the program's own cache",
	"sim/real/...":                                  "programs in containers, and their folders, which are made for them",
	"sim/live":                                      "devices, and output of programs in folders that are made for them",
	"sim/live/agree/names.go":                       "/dev/null",
	"sim/live/netns":                                "/proc, and roots of namespaces that are made for them",
	"sim/live/control/control_linux.go":             "/proc/net/unix",
	"sim/lab/labtest":                               "writes labs of tests",
	"sim/windows/hcn/lock_unix.go":                  "a lock in the folder of the service's state",
	"sim/windows/hcn/store.go":                      "the journal is appended to",
	"sim/windows/hcn/calllog.go":                    "the log is appended to, and may be a pipe",
	"sim/windows/hcn/shims":                         "sources in a temporary folder",
	"conformance/node/bundle/write.go":              "a new .zip, which must not exist",
	"conformance/node/collect/node_windows.go":      "files of the node on which it runs, which have fixed names",
	"conformance/node/collect/cluster/nodes.go":     "the program that is copied into a pod",
	"conformance/e2e/...":                           "a cluster's own files, in folders that are made for it",
	"cmd/winlab/internal/cli/live_session_linux.go": "terminals",
}

// Files that a user names are opened by internal/input and written by internal/outfile, which refuse
// devices and inputs, and end.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	used := map[string]bool{}
	for _, f := range files(t) {
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") || strings.Contains(f, "testdata/") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, f), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		allowed := ""
		for at := range opensItself {
			if at == f || at == filepath.ToSlash(filepath.Dir(f)) || strings.HasSuffix(at, "...") && strings.HasPrefix(f, strings.TrimSuffix(at, "...")) {
				allowed = at
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for pkg, names := range opens {
				for _, name := range names {
					switch {
					case !calls(call, pkg, name):
					case allowed != "":
						used[allowed] = true
					default:
						t.Errorf("%s: %s.%s opens whatever a name leads to: use internal/input or internal/outfile, or say in opensItself why not",
							set.Position(call.Pos()), pkg, name)
					}
				}
			}
			return true
		})
	}
	for at := range opensItself {
		if !used[at] {
			t.Errorf("opensItself has %s, which opens nothing: remove it", at)
		}
	}
}
