// Package programs has the sources of programs that a Windows container has and Wine lacks,
// or has otherwise than Windows. winbox is curl.exe, powershell.exe and others in one file,
// which looks at the name by which it was started; unixbox is sh.exe, nc.exe, dig.exe and
// others of Kubernetes' test images. The package writes them as modules that can be built
// for Windows. It must not know Wine, nor what starts the programs.
package programs

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed winbox/*.go unixbox/*.go unixbox/go.mod.txt unixbox/go.sum.txt relay/*.go
var sources embed.FS

// File and UnixFile are the programs that the modules of [Write] and [WriteUnix] build.
const (
	File     = "winbox.exe"
	UnixFile = "unixbox.exe"
)

// Places are the names by which winbox is started, below system32.
var Places = []string{
	"curl.exe", "findstr.exe", "hostname.exe", "nltest.exe", "ping.exe", "tar.exe", "timeout.exe", "whoami.exe",
	"WindowsPowerShell/v1.0/powershell.exe", Ctrl,
}

// Ctrl is the program that asks a container's program to end, with its image as argument. It
// is not one of Windows.
const Ctrl = "winlab-ctrl.exe"

// module is the path of the modules: that of this package, so that the programs' imports of
// each other are the same here and there.
const module = "github.com/winlab-dev/winlab/sim/real/programs"

// Write writes the module of winbox into a folder, which must exist: go.mod, binaries.yaml
// (as package pinned of sim/real reads it) and the sources without their tests. It has no
// other modules.
func Write(dir string) error {
	return write(dir, "winbox", File, "module "+module+"\n\ngo 1.26.0\n", "")
}

// WriteUnix is [Write] for unixbox, whose other modules are pinned.
func WriteUnix(dir string) error {
	mod, err := sources.ReadFile("unixbox/go.mod.txt")
	if err != nil {
		return err
	}
	sum, err := sources.ReadFile("unixbox/go.sum.txt")
	if err != nil {
		return err
	}
	return write(dir, "unixbox", UnixFile, string(mod), string(sum))
}

func write(dir, program, file, mod, sum string) error {
	files := map[string]string{
		"go.mod":        mod,
		"binaries.yaml": "binaries:\n- name: " + file + "\n  package: " + path.Join(module, program) + "\n",
	}
	if sum != "" {
		files["go.sum"] = sum
	}
	for _, of := range []string{program, "relay"} {
		all, err := fs.Glob(sources, of+"/*.go")
		if err != nil {
			return err
		}
		for _, name := range all {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := sources.ReadFile(name)
			if err != nil {
				return err
			}
			files[name] = string(text)
		}
	}
	for name, text := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
