// Package programs has the sources of programs that a Windows container has and Wine lacks,
// or has otherwise than Windows: winbox is curl.exe, powershell.exe and others in one file,
// which looks at the name by which it was started. The package writes them as a module that
// can be built for Windows. It must not know Wine, nor what starts the programs.
package programs

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed winbox/*.go
var sources embed.FS

// File is the program that the module of [Write] builds.
const File = "winbox.exe"

// Places are the names by which the program is started, below system32.
var Places = []string{
	"curl.exe", "findstr.exe", "hostname.exe", "nltest.exe", "timeout.exe", "whoami.exe",
	"WindowsPowerShell/v1.0/powershell.exe",
}

// Write writes the module into a folder, which must exist: go.mod, binaries.yaml (as package
// pinned of sim/real reads it) and the sources without their tests.
func Write(dir string) error {
	const module = "winlab.dev/winbox"
	files := map[string]string{
		"go.mod":        "module " + module + "\n\ngo 1.26.0\n",
		"binaries.yaml": "binaries:\n- name: " + File + "\n  package: " + module + "\n",
	}
	all, err := fs.Glob(sources, "winbox/*.go")
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
		files[filepath.Base(name)] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
