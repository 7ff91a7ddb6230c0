//go:build linux

package wine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

func benchPrefix(b *testing.B, w *Wine, dll, boot string) *Prefix {
	b.Helper()
	dir, err := os.MkdirTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	p, err := w.Prefix(b.Context(), Config{Dir: dir, Build: builds.MustLookup("2022"), DLLs: []string{dll}, Boot: boot})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func benchNeed(b *testing.B) (w *Wine, dll, boot, hello string) {
	b.Helper()
	w, err := Find()
	if err != nil {
		b.Skip(err)
	}
	if _, err := exec.LookPath(shims.Compiler); err != nil {
		b.Skip(shims.ErrNoCompiler)
	}
	dir := b.TempDir()
	if _, err := shims.Build(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	if boot, err = shims.BuildBoot(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	bin, err := pinned.Build(b.Context(), "testdata/hello")
	if err != nil {
		b.Fatal(err)
	}
	return w, filepath.Join(dir, "bcryptprimitives.dll"), boot, bin.Path("hello.exe")
}

// BenchmarkBoot is what wineboot and the links after it cost: once per machine.
func BenchmarkBoot(b *testing.B) {
	w, _, _, _ := benchNeed(b)
	for b.Loop() {
		dir, err := os.MkdirTemp(b.TempDir(), "")
		if err != nil {
			b.Fatal(err)
		}
		if err := w.boot(b.Context(), dir, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrefix is a prefix from nothing to nothing, with its first program, with Wine's
// wineboot and with winlab's.
func BenchmarkPrefix(b *testing.B) {
	w, dll, boot, hello := benchNeed(b)
	for name, boot := range map[string]string{"wine": "", "winlab": boot} {
		b.Run(name, func(b *testing.B) {
			benchPrefix(b, w, dll, boot).Close() // makes the template
			for b.Loop() {
				p := benchPrefix(b, w, dll, boot)
				if _, err := p.Run(b.Context(), Command{Path: hello, Args: []string{"exit", "0"}}); err != nil {
					b.Fatal(err)
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCopy is a prefix in which nothing runs.
func BenchmarkCopy(b *testing.B) {
	w, dll, boot, _ := benchNeed(b)
	for b.Loop() {
		p, err := w.Copy(b.Context(), Config{Dir: b.TempDir(), Build: builds.MustLookup("2022"), DLLs: []string{dll}, Boot: boot})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkProgram is one more program in a prefix that is in use.
func BenchmarkProgram(b *testing.B) {
	w, dll, boot, hello := benchNeed(b)
	p := benchPrefix(b, w, dll, boot)
	defer p.Close()
	for b.Loop() {
		if _, err := p.Run(b.Context(), Command{Path: hello, Args: []string{"exit", "0"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuildWarm is Build when the programs are in the cache.
func BenchmarkBuildWarm(b *testing.B) {
	for b.Loop() {
		if _, err := pinned.Build(b.Context(), "testdata/hello"); err != nil {
			b.Fatal(err)
		}
	}
}
