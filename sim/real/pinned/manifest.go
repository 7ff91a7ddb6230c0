package pinned

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// binary is one program of a binaries.yaml: what to build, and how.
type binary struct {
	// Name is the file's name: "kube-proxy.exe" is for Windows on amd64, "etcd" for this
	// machine.
	Name string
	// Package is its Go package; Test asks for the package's tests instead.
	Package string
	Test    bool
	Tags    []string
	// Set gives string variables of the program a value, as upstream's own
	// build does with its version.
	Set map[string]string
}

// manifest is a binaries.yaml.
type manifest struct{ Binaries []binary }

func readManifest(dir string) (*manifest, error) {
	file := filepath.Join(dir, "binaries.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a folder of pinned programs: %w", dir, err)
	}
	m := &manifest{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(m); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(file+": "+format, args...)) }
	if len(m.Binaries) == 0 {
		bad("no binaries; write \"binaries:\" with a name and a package each")
	}
	names := map[string]bool{}
	for i, b := range m.Binaries {
		if b.Name == "" || strings.HasPrefix(b.Name, ".") || filepath.Base(b.Name) != b.Name {
			bad("binary %d: name %q: write the name of a file like kube-proxy.exe, or etcd for Linux", i+1, b.Name)
		}
		if names[b.Name] {
			bad("binary %d: the name %q is listed twice", i+1, b.Name)
		}
		names[b.Name] = true
		if b.Package == "" || strings.HasPrefix(b.Package, "-") {
			bad("binary %d: package %q: write the path of a Go package", i+1, b.Package)
		}
		for _, k := range slices.Sorted(maps.Keys(b.Set)) {
			if strings.ContainsAny(k+b.Set[k], " \t\n'\"") || !strings.Contains(k, ".") {
				bad("binary %d: set %q: write package.variable: value, without spaces or quotes", i+1, k)
			}
		}
	}
	return m, errors.Join(errs...)
}

// windows reports whether the program is one for Windows.
func (b *binary) windows() bool { return strings.HasSuffix(b.Name, ".exe") }

// system is the environment in which the go command builds it.
func (b *binary) system() []string {
	if b.windows() {
		return []string{"GOOS=windows", "GOARCH=amd64"}
	}
	return []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// args are the arguments of the go command that builds the program.
func (b *binary) args(out string) []string {
	args := []string{"build"}
	if b.Test {
		args = []string{"test", "-c"}
	}
	// As upstream's releases are linked: no symbol table, no paths of this
	// machine. Panics still have their stack.
	ld := "-s -w"
	for _, k := range slices.Sorted(maps.Keys(b.Set)) {
		ld += " -X " + k + "=" + b.Set[k]
	}
	args = append(args, "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", ld)
	if len(b.Tags) > 0 {
		args = append(args, "-tags", strings.Join(b.Tags, ","))
	}
	return append(args, "-o", out, b.Package)
}
