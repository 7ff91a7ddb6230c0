package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shell is sh: sh [-ex] -c SCRIPT [NAME [ARGUMENT...]], sh FILE [ARGUMENT...], or a script
// from its input.
func shell(ctx context.Context, s *system, args []string) int {
	var options []string
	script, given := "", false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, o := range a[1:] {
			switch {
			case o == 'c' && a[0] == '-':
				given = true
			case strings.ContainsRune("aefnux", o):
				options = append(options, a[:1]+string(o))
			default:
				return s.fail(2, "sh: illegal option -%c", o)
			}
		}
	}
	name := "sh"
	switch {
	case given && len(args) == 0:
		return s.fail(2, "sh: -c requires an argument")
	case given:
		script, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case len(args) > 0:
		text, err := os.ReadFile(s.path(args[0]))
		if err != nil {
			return s.fail(127, "sh: can't open '%s': No such file or directory", args[0])
		}
		name, script, args = args[0], string(text), args[1:]
	default:
		text, err := io.ReadAll(s.in)
		if err != nil {
			return s.fail(2, "sh: %v", err)
		}
		script = string(text)
	}
	return s.script(ctx, name, strings.ReplaceAll(script, "\r\n", "\n"), append(append(options, "--"), args...))
}

// script runs a script with the shell's own options and the script's arguments.
func (s *system) script(ctx context.Context, name, script string, params []string) int {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), name)
	if err != nil {
		return s.fail(2, "%s: syntax error: %v", name, err)
	}
	r, err := interp.New(interp.StdIO(s.in, s.out, s.err), interp.Env(expand.ListEnviron(s.environ...)), interp.Dir(s.dir),
		interp.Params(params...), interp.ExecHandlers(s.run), interp.OpenHandler(open))
	if err != nil {
		return s.fail(2, "%s: %v", name, err)
	}
	err = r.Run(ctx, file)
	var code interp.ExitStatus
	if errors.As(err, &code) {
		return int(code)
	}
	if err != nil {
		return s.fail(2, "%s: %v", name, err)
	}
	return 0
}

// run runs a command of a script: one of these programs in this process, others as Windows
// finds them.
func (s *system) run(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		h := interp.HandlerCtx(ctx)
		f := find(args[0])
		if f == nil {
			if runtime.GOOS == "windows" && strings.HasPrefix(args[0], "/") {
				args = append([]string{place(h.Dir, args[0], true)}, args[1:]...)
			}
			return next(ctx, args)
		}
		inner := *s
		inner.in, inner.out, inner.err, inner.dir = h.Stdin, h.Stdout, h.Stderr, h.Dir
		if inner.in == nil {
			inner.in = strings.NewReader("")
		}
		inner.environ = nil
		h.Env.Each(func(name string, v expand.Variable) bool {
			if v.Exported && v.Kind == expand.String {
				inner.environ = append(inner.environ, name+"="+v.Str)
			}
			return true
		})
		if code := f(ctx, &inner, args[1:]); code != 0 {
			return interp.ExitStatus(uint8(code))
		}
		return nil
	}
}

// open opens a file that a script reads or writes.
func open(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	return os.OpenFile(place(interp.HandlerCtx(ctx).Dir, path, runtime.GOOS == "windows"), flag, perm)
}

// wait waits for a time or the end of a context, and reports which.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
