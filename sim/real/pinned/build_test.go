//go:build linux

package pinned

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildIsCachedByContent(t *testing.T) {
	if testing.Short() {
		t.Skip("-short builds no Windows program")
	}
	t.Setenv("WINLAB_CACHE", t.TempDir())
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module winlab.dev/x\n\ngo 1.26.0\n")
	write("main.go", "package main\n\nfunc main() {}\n")
	write("x_test.go", "//go:build extra\n\npackage main\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n")
	write("binaries.yaml",
		"binaries:\n- {name: x.exe, package: winlab.dev/x}\n- {name: x.test.exe, package: winlab.dev/x, test: true, tags: [extra]}\n")
	t.Setenv("GOFLAGS", "-tags=does-not-matter -mod=mod") // a user's settings
	t.Setenv("GOOS", "plan9")
	if b, err := Cached(t.Context(), dir); b != nil || err != nil {
		t.Errorf("before: %+v, %v", b, err)
	}
	first, err := Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Cached(t.Context(), dir); err != nil || b == nil || b.Dir != first.Dir {
		t.Errorf("after: %+v, %v", b, err)
	}
	for _, name := range []string{"x.exe", "x.test.exe"} {
		text, err := os.ReadFile(first.Path(name))
		if err != nil || !strings.HasPrefix(string(text), "MZ") {
			t.Errorf("%s is not a Windows program: %v", name, err)
		}
	}
	if first.Built == 0 || first.Path("y.exe") != "" {
		t.Errorf("%+v", first)
	}
	again, err := Build(t.Context(), dir)
	if err != nil || again.Built != 0 || again.Dir != first.Dir {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	write("main.go", "package main\n\nfunc main() { println() }\n")
	other, err := Build(t.Context(), dir)
	if err != nil || other.Built == 0 || other.Dir == first.Dir {
		t.Errorf("with another source: %+v, %v", other, err)
	}
	write("main.go", "package main\n\nfunc main() { undefined() }\n")
	if _, err := Build(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("a broken source: %v", err)
	}
}

func TestManifestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "no binaries",
		"binaries:\n- {name: .x, package: p}": "kube-proxy.exe",
		"binaries:\n- {name: ../x.exe, package: p}":                             "name of a file",
		"binaries:\n- {name: x.exe}":                                            "path of a Go package",
		"binaries:\n- {name: x.exe, package: -exec=rm}":                         "path of a Go package",
		"binaries:\n- {name: x.exe, package: p}\n- {name: x.exe, package: q}":   "twice",
		"binaries:\n- {name: x.exe, package: p, set: {main.v: \"1 -extld=x\"}}": "without spaces",
		"binaries:\n- {name: x.exe, packages: p}":                               "packages",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "binaries.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := Build(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a folder of pinned programs") {
		t.Errorf("an empty folder: %v", err)
	}
}
