// Package shims builds the DLLs through which Windows programs under Wine reach
// winlab's HNS service: computenetwork.dll and vmcompute.dll forward the calls of HCN
// v2 and HNS v1 (and those with which a container is attached to an endpoint of the
// latter), bcryptprimitives.dll gives Go programs the random bytes and the UDP sockets
// that older Wine lacks and has them look names up as Windows does, iphlpapi.dll shows the network adapters of a node instead of
// those of this machine, and nsi.dll starts Wine's services when a program asks for
// network tables; wineboot.exe starts none. For the kubelet, pdh.dll has its performance
// counters, and Go programs that are started with [UnixListeners] can listen on AF_UNIX,
// with [Symlinks] they have symbolic links, and with [Memory] the memory of a node. tool.exe stands for programs of Windows that
// winlab answers itself: it sends its arguments there and prints the answer. The package
// must not know Wine, nor the programs; it needs the C compiler mingw-w64.
package shims

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed src
var sources embed.FS

// Compiler is the C compiler for 64-bit Windows (Debian and Ubuntu:
// gcc-mingw-w64-x86-64).
const Compiler = "x86_64-w64-mingw32-gcc"

// dlls are the names of the libraries without ".dll".
var dlls = []string{"bcryptprimitives", "computenetwork", "iphlpapi", "nsi", "pdh", "vmcompute"}

// libraries are what a DLL is linked with, beside its one source.
var libraries = map[string][]string{
	"bcryptprimitives": {"-ladvapi32"},
	"computenetwork":   {"-lws2_32", "-lole32"},
	"iphlpapi":         {"iphlpapi.def", "-lws2_32"},
	"nsi":              {"nsi.def"},
	"pdh":              {"-liphlpapi"},
	"vmcompute":        {"-lws2_32", "-lole32"},
	"tool":             {"-lws2_32"},
	"wineboot":         {"-nostdlib", "-ffreestanding", "-fno-builtin", "-mwindows", "-Wl,-e,start", "-lkernel32", "-lntdll"},
}

// UnixListeners is a variable of the environment with which Go programs can have listeners
// of family AF_UNIX, which older Wine lacks.
const UnixListeners = "WINLAB_AF_UNIX=1"

// Symlinks is a variable of the environment with which symbolic links of Go programs are
// made, which older Wine only says that it does.
const Symlinks = "WINLAB_SYMLINKS=1"

// Memory is a variable of the environment with which Go programs see the memory of a node
// instead of this machine's: its value is the path of a file, as the program sees it, with
// the whole and what is available in bytes, "TOTAL AVAILABLE".
const Memory = "WINLAB_MEMORY"

// ErrNoCompiler says that there is no compiler for Windows.
var ErrNoCompiler = errors.New("no " + Compiler + " (Debian, Ubuntu: apt-get install gcc-mingw-w64-x86-64)")

// Key identifies the sources: DLLs built from other sources have another key.
func Key() string {
	h := sha256.New()
	for _, name := range files() {
		text, _ := sources.ReadFile(name) // embedded
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func files() []string {
	names, _ := fs.Glob(sources, "src/*") // the pattern is well formed; sorted
	return names
}

// Tool is the file name of the program that [BuildTool] writes.
const Tool = "tool.exe"

// BuildTool writes the [Tool] into a folder, which must exist.
func BuildTool(ctx context.Context, dir string) error {
	_, err := compile(ctx, dir, []string{Tool})
	return err
}

// Boot is the file name of the program that [BuildBoot] writes: it takes the place of
// Wine's own in copies of a prefix.
const Boot = "wineboot.exe"

// BuildBoot writes [Boot] into a folder, which must exist, and returns its path.
func BuildBoot(ctx context.Context, dir string) (string, error) {
	all, err := compile(ctx, dir, []string{Boot})
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// Build writes the DLLs into a folder, which must exist, and returns their
// absolute paths.
func Build(ctx context.Context, dir string) ([]string, error) {
	var all []string
	for _, name := range dlls {
		all = append(all, name+".dll")
	}
	return compile(ctx, dir, all)
}

// compile builds files and returns their absolute paths.
func compile(ctx context.Context, dir string, wanted []string) ([]string, error) {
	gcc, err := exec.LookPath(Compiler)
	if err != nil {
		return nil, ErrNoCompiler
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	src, err := os.MkdirTemp("", "winlab-shims-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(src) }()
	for _, name := range files() {
		text, err := sources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(src, filepath.Base(name)), text, 0o644); err != nil {
			return nil, err
		}
	}
	var built []string
	for _, file := range wanted {
		name, ext, _ := strings.Cut(file, ".")
		out := filepath.Join(dir, file)
		// The same sources make the same bytes: what is built with them is cached by content.
		args := []string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-static-libgcc", "-Wl,--no-insert-timestamp", "-o", out, name + ".c"}
		if ext == "dll" {
			args = append(args, "-shared")
		}
		cmd := exec.CommandContext(ctx, gcc, append(args, libraries[name]...)...)
		cmd.Dir = src
		// Its output is read until the compiler's own children have ended, too.
		if text, err := cmd.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return nil, fmt.Errorf("%s.c: %w\n%s", name, err, text)
		}
		built = append(built, out)
	}
	return built, nil
}
