package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// pkg is what go list says of a package.
type pkg struct {
	Dir, ImportPath, Name string
	GoFiles               []string
}

func list(ctx context.Context, pattern string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Name,GoFiles", pattern)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	var ps []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// runner tries the mutants of one package.
type runner struct {
	pkg     pkg
	scratch string // a folder of its own
	limit   time.Duration
}

// build builds the package's tests with files replaced. What the compiler says is
// returned when they do not compile.
func (r *runner) build(ctx context.Context, binary string, replace map[string]string) (complaint string, err error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(r.scratch, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", overlay, "-gcflags", r.pkg.ImportPath+"=-e",
		r.pkg.ImportPath)
	cmd.Dir = r.pkg.Dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return string(out), nil
	}
	return "", err
}

// notices runs a test binary with a mutant on and reports whether a test fails. A test
// that runs longer than the limit has noticed the change.
func (r *runner) notices(ctx context.Context, binary string, number int) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	cmd := exec.CommandContext(limited, binary, "-test.short", "-test.failfast")
	cmd.Dir = r.pkg.Dir
	cmd.Env = append(os.Environ(), environment+"="+strconv.Itoa(number))
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		return false, nil
	case errors.As(err, &exit), limited.Err() != nil:
		return true, nil
	}
	return false, err
}

// together builds one test binary with all mutants that are inside functions, and
// returns those that compile.
func (r *runner) together(ctx context.Context, binary string, ms []mutant) ([]mutant, error) {
	ms = slices.DeleteFunc(slices.Clone(ms), func(m mutant) bool { return m.fn == nil })
	s := &schema{dir: r.pkg.Dir, scratch: r.scratch}
	for {
		if err := s.write(r.pkg.Name, r.pkg.GoFiles, ms); err != nil {
			return nil, err
		}
		complaint, err := r.build(ctx, binary, s.replace)
		if err != nil || complaint == "" {
			return ms, err
		}
		bad := s.broken(complaint)
		if len(bad) == 0 {
			return nil, fmt.Errorf("the source with the changes does not compile: %s", complaint)
		}
		ms = slices.DeleteFunc(ms, func(m mutant) bool { return bad[m.number] })
	}
}

// buildWithMutant builds a test binary with one mutant, for those outside functions. ok is false
// when it does not compile.
func (r *runner) buildWithMutant(ctx context.Context, binary string, m mutant) (ok bool, err error) {
	src, err := os.ReadFile(m.File)
	if err != nil {
		return false, err
	}
	file := filepath.Join(r.scratch, "alone.go")
	if err := os.WriteFile(file, []byte(apply(string(src), 0, []insertion{{m.From, m.To, m.New}})), 0o600); err != nil {
		return false, err
	}
	complaint, err := r.build(ctx, binary, map[string]string{m.File: file})
	return complaint == "", err
}
