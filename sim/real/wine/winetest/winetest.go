// Package winetest is what tests that run Windows programs begin with. It must not
// know what they run.
package winetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

// Need skips the test with -short, which builds and runs no Windows program, and
// where Wine or the compiler of the DLLs is missing, with one line that says what is.
// Where WINLAB_NEED_WINE is set, as in CI, a missing Wine is a failure: a test that
// always skips tests nothing.
func Need(tb testing.TB) *wine.Wine {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short builds and runs no Windows program")
	}
	w, err := wine.Find()
	if err == nil {
		if _, lookErr := exec.LookPath(shims.Compiler); lookErr != nil {
			err = shims.ErrNoCompiler
		}
	}
	switch {
	case err == nil:
	case os.Getenv("WINLAB_NEED_WINE") != "":
		tb.Fatalf("%v; WINLAB_NEED_WINE is set", err)
	default:
		tb.Skip(err)
	}
	return w
}

// Binaries builds a folder of fixtures/windows-binaries, for example
// "cni-plugins-1.9.1", or takes it from the cache. A folder that is not there is looked
// for in WINLAB_BINARIES.
func Binaries(tb testing.TB, name string) *pinned.Binaries {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(root, "fixtures", "windows-binaries", name)
	if other := os.Getenv("WINLAB_BINARIES"); other != "" {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			dir = filepath.Join(other, name)
		}
	}
	b, err := pinned.Build(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// moduleRoot looks for the folder with fixtures above the test's own.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "fixtures", "windows-binaries")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no folder fixtures/windows-binaries above the test's folder")
		}
		dir = up
	}
}
