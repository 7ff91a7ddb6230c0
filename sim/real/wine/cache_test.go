//go:build linux

package wine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Callers at once make an entry once; all get it whole.
func TestCacheMakesOnce(t *testing.T) {
	t.Setenv("WINLAB_CACHE", t.TempDir())
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, _, err := cached(t.Context(), "group", "entry", func(tmp string) error {
				made.Add(1)
				return os.WriteFile(filepath.Join(tmp, "file"), []byte("x"), 0o644)
			})
			if err != nil {
				t.Error(err)
			} else if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "x" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

// An attempt that fails leaves nothing; the next one makes the entry. A caller
// whose context ends does not wait for another.
func TestCacheFailure(t *testing.T) {
	root := t.TempDir()
	t.Setenv("WINLAB_CACHE", root)
	broken := errors.New("broken")
	_, _, err := cached(t.Context(), "g", "e", func(tmp string) error {
		_ = os.WriteFile(filepath.Join(tmp, "half"), nil, 0o644)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := cached(ctx, "g", "e", func(string) error { t.Error("made twice"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller in a hurry got %v", err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(root, "g")); len(entries) != 1 { // the lock
		t.Errorf("left: %v", entries)
	}
	dir, made, err := cached(t.Context(), "g", "e", func(string) error { return nil })
	if err != nil || !made {
		t.Errorf("%v, %v", made, err)
	}

	// What nobody has used for long is forgotten, what is in use is not.
	old := filepath.Join(root, "g", ".making-old")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * unused)
	for _, d := range []string{old, dir} {
		if err := os.Chtimes(d, past, past); err != nil {
			t.Fatal(err)
		}
	}
	if !touch(dir) {
		t.Error("the entry is not there")
	}
	removeUnused("g")
	if _, err := os.Stat(old); err == nil {
		t.Error("the remains of an old attempt are still there")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("an entry in use is gone")
	}
}

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
	write("binaries.yaml", "binaries:\n- {name: x.exe, package: winlab.dev/x}\n- {name: x.test.exe, package: winlab.dev/x, test: true, tags: [extra]}\n")
	t.Setenv("GOFLAGS", "-tags=does-not-matter -mod=mod") // a user's settings
	t.Setenv("GOOS", "plan9")
	first, err := Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
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
		"":                                   "no binaries",
		"binaries:\n- {name: x, package: p}": "kube-proxy.exe",
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
	if _, err := Build(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a folder of Windows binaries") {
		t.Errorf("an empty folder: %v", err)
	}
}

// Where Wine is not there or does not work, one line says why.
func TestFindSaysWhy(t *testing.T) {
	if _, err := Find(); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("not one line: %v", err)
	}
	t.Setenv("WINLAB_WINE", "/bin/false")
	_, err := Find()
	if !errors.Is(err, errNoWine) || !strings.Contains(err.Error(), "/bin/false") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a Wine that fails: %v", err)
	}
}
