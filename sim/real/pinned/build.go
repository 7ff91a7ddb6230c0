package pinned

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/cache"
)

// Binaries are programs that were built from one pinned module.
type Binaries struct {
	// Dir holds them, in the cache.
	Dir string
	// Names are their files, sorted.
	Names []string
	// Built is how long building took now; zero when they came from the cache.
	Built time.Duration
}

// Path returns the file of a program, for example of "win-bridge.exe"; "" when
// there is none of that name.
func (b *Binaries) Path(name string) string {
	if !slices.Contains(b.Names, name) {
		return ""
	}
	return filepath.Join(b.Dir, name)
}

// Build builds the programs that dir/binaries.yaml names from the module dir/go.mod
// without cgo, with the versions and checksums of go.mod and go.sum: NAME.exe for
// Windows on amd64, others for the machine that winlab runs on. They are cached by the content of dir and the version of Go, so a second
// call costs milliseconds; several calls at once, from any process, build once. The
// network is needed only where the module cache of Go lacks a module.
func Build(ctx context.Context, dir string) (*Binaries, error) {
	m, b, entry, err := named(ctx, dir)
	if err != nil {
		return nil, err
	}
	var made bool
	b.Dir, made, err = cache.Entry(ctx, group, entry, func(tmp string) error {
		start := time.Now()
		for _, bin := range m.Binaries {
			if _, err := goCommand(ctx, dir, bin.system(), bin.args(filepath.Join(tmp, bin.Name))...); err != nil {
				return fmt.Errorf("%s of %s: %w", bin.Name, dir, err)
			}
		}
		b.Built = time.Since(start)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if made {
		cache.RemoveUnused(group)
	}
	return b, nil
}

// Cached returns the programs that [Build] would return without building any, nil when
// they would have to be built.
func Cached(ctx context.Context, dir string) (*Binaries, error) {
	_, b, entry, err := named(ctx, dir)
	if err != nil {
		return nil, err
	}
	var ok bool
	if b.Dir, ok = cache.Find(group, entry); !ok {
		return nil, nil
	}
	return b, nil
}

// group of the cache.
const group = "programs"

// named returns what a folder names, without a place, and the cache entry that it has.
func named(ctx context.Context, dir string) (*manifest, *Binaries, string, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, nil, "", err
	}
	k, err := sourceKey(ctx, dir)
	if err != nil {
		return nil, nil, "", err
	}
	if slices.ContainsFunc(m.Binaries, func(b binary) bool { return !b.windows() }) {
		k.Add("system", runtime.GOOS+"/"+runtime.GOARCH)
	}
	b := &Binaries{}
	for _, bin := range m.Binaries {
		b.Names = append(b.Names, bin.Name)
	}
	slices.Sort(b.Names)
	abs, err := filepath.Abs(dir)
	return m, b, filepath.Base(abs) + "-" + k.String(), err
}

// sourceKey hashes what the binaries are made from: Go and every file of dir.
func sourceKey(ctx context.Context, dir string) (*cache.Key, error) {
	version, err := goCommand(ctx, dir, []string{"GOOS=windows"}, "env", "GOVERSION")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	k := &cache.Key{}
	k.Add("format", "1") // raise when the way of building changes
	k.Add("go", strings.TrimSpace(version))
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		k.Add(filepath.ToSlash(rel), string(text))
		return err
	})
	return k, err
}

// goCommand runs the go command for a system in a folder and returns its output. An
// error holds the end of what it said.
func goCommand(ctx context.Context, dir string, system []string, args ...string) (string, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("the go command is needed to build programs: %w", err)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	// What a user has set for builds of this machine must not reach these.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"GOOS", "GOARCH", "GOFLAGS", "GOWORK", "GOEXPERIMENT", "GOAMD64", "GO111MODULE", "CC", "CXX"}, name)
	}), append(system, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")...)
	ownGroup(cmd)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, tail(errOut.String(), 20))
	}
	return out.String(), nil
}

// tail returns the last lines of a text.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	if n := len(all) - lines; n > 0 {
		all = append([]string{fmt.Sprintf("... (%d lines before)", n)}, all[n:]...)
	}
	return strings.Join(all, "\n")
}
