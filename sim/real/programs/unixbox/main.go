// Command unixbox is the Unix programs of Kubernetes' test images for Windows: sh.exe and
// the programs that its scripts call, as busybox has them, nc.exe, dig.exe and wget.exe, in
// one file, which looks at the name by which it was started.
//
// It has the forms that test suites use, with the exit codes and messages of the programs in
// those images: busybox for Windows, netcat-win32 1.12 and dig of BIND 9.14
// (kubernetes/kubernetes test/images/busybox/Dockerfile_windows). A form that it does not
// know is an error. The shell is mvdan.cc/sh, and what it has built in is that package's.
//
// It is built for Windows and runs under Wine; on Linux its tests run. It must not know the
// programs that start it. Names are resolved by the machine that winlab simulates.
package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

// system is what a program sees of the machine.
type system struct {
	in       io.Reader
	out, err io.Writer
	dir      string // the working folder
	environ  []string
	// addresses resolves a name; servers are the machine's name servers and the global
	// list of suffixes.
	addresses func(ctx context.Context, name string) ([]netip.Addr, error)
	servers   func(ctx context.Context) ([]netip.Addr, []string, error)
}

func (s *system) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// fail writes to the error output and returns an exit code.
func (s *system) fail(code int, format string, args ...any) int {
	fmt.Fprintf(s.err, format+"\n", args...)
	return code
}

// unknown is the end of a form of a program that only the real one has.
func (s *system) unknown(program, what string) int {
	return s.fail(2, "winlab: %s here does not know %s", program, what)
}

// path is where a path that a program was given is. A path without a drive is one of the
// system's drive, also when it begins with a slash.
func (s *system) path(name string) string { return place(s.dir, name, runtime.GOOS == "windows") }

func place(dir, name string, windows bool) string {
	switch {
	case name == "/dev/null" && windows:
		return "NUL"
	case windows && (strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`)):
		return "C:" + strings.ReplaceAll(name, "/", `\`)
	case filepath.IsAbs(name):
		return name
	}
	return filepath.Join(dir, name)
}

// programs by their name.
var programs map[string]func(context.Context, *system, []string) int

func init() {
	programs = map[string]func(context.Context, *system, []string) int{
		"bash": shell, "cat": cat, "date": date, "dd": dd, "dig": dig, "egrep": egrep, "env": env, "false": no,
		"grep": grep, "head": head, "hostname": hostname, "ls": ls, "mkdir": mkdir, "nc": nc, "rm": rm,
		"seq": seq, "sh": shell, "sleep": sleep, "tail": tail, "touch": touch, "tr": tr, "true": yes,
		"wc": wc, "wget": wget,
	}
}

// find is the program that a command names: by its name, or by a path in the folders where
// the images have them.
func find(command string) func(context.Context, *system, []string) int {
	name := strings.ToLower(strings.ReplaceAll(command, `\`, "/"))
	name = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".exe")
	return programs[name]
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	dir, _ := os.Getwd()
	s := &system{in: os.Stdin, out: os.Stdout, err: os.Stderr, dir: dir, environ: os.Environ(), addresses: relay.Resolve,
		servers: relay.Servers}
	args := os.Args
	f := find(args[0])
	if f == nil && len(args) > 1 { // busybox sh ...
		args = args[1:]
		f = find(args[0])
	}
	code := 127
	if f == nil {
		s.fail(code, "%s: applet not found", args[0])
	} else {
		code = f(ctx, s, args[1:])
	}
	stop()
	os.Exit(code)
}
