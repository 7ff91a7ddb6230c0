// Command winbox is the programs of a Windows container that Wine lacks or has otherwise
// than Windows: curl.exe, powershell.exe, findstr.exe, hostname.exe, nltest.exe,
// ping.exe, tar.exe, testlimit.exe, timeout.exe and whoami.exe in one file, which looks at the name by which it was started;
// and winlab-ctrl.exe, by which a container's program is asked to end.
// It has the forms that documents and test suites use, with the exit codes and messages of
// the real programs; a form that it does not know is an error that begins with "winlab:".
//
// It is built for Windows and runs under Wine; on Linux its tests run. It uses the standard
// library alone, so that it builds without the network. It must not know the programs that
// start it. Names are resolved by the machine that winlab simulates (package relay).
package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

// system is what a program sees of the machine.
type system struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	// addresses resolves a name as getaddrinfo of Windows does.
	addresses func(ctx context.Context, name string) ([]netip.Addr, error)
	// echo sends an echo request and waits for the answer.
	echo func(to netip.Addr, size, ttl int, wait time.Duration) (echo, error)
	// processes lists the container's, and shutdownEvent tells one of them that the system
	// shuts down.
	processes     func() ([]proc, error)
	shutdownEvent func(id uint32) error
	// start runs another program with the given input and output and returns its code.
	start func(ctx context.Context, s *system, args []string) (int, error)
}

// printf writes to the output, with the line ends of Windows.
func (s *system) printf(format string, args ...any) {
	fmt.Fprint(s.out, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\r\n"))
}

// complain writes to the error output and returns an exit code.
func (s *system) complain(code int, format string, args ...any) int {
	fmt.Fprint(s.err, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\r\n")+"\r\n")
	return code
}

// programs by their name.
var programs = map[string]func(context.Context, *system, []string) int{}

func init() {
	programs["curl"] = curl
	programs["findstr"] = findstr
	programs["hostname"] = hostname
	programs["nltest"] = nltest
	programs["ping"] = ping
	programs["powershell"] = powershell
	programs["tar"] = untar
	programs["testlimit"] = testLimit
	programs["timeout"] = timeout
	programs["whoami"] = whoami
	programs["winlab-ctrl"] = ctrlEvent
}

// run runs the program with a name; known is false for none of these.
func run(ctx context.Context, s *system, args []string) (code int, known bool) {
	name := args[0][strings.LastIndexAny(args[0], `\/`)+1:]
	f := programs[strings.TrimSuffix(strings.ToLower(name), ".exe")]
	if f == nil {
		return 1, false
	}
	return f(ctx, s, args[1:]), true
}

// start runs a program: one of these in this process, others as Windows finds them.
func start(ctx context.Context, s *system, args []string) (int, error) {
	if !strings.ContainsAny(args[0], `\/`) {
		if code, known := run(ctx, s, args); known {
			return code, nil
		}
	}
	program := args[0]
	if runtime.GOOS == "windows" {
		program = strings.ReplaceAll(program, "/", `\`) // programs look for options in their own name
	}
	c := exec.CommandContext(ctx, program, args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = s.in, s.out, s.err
	err := c.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	s := &system{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, addresses: relay.Resolve, echo: sendEcho,
		processes: processes, shutdownEvent: shutdownEvent, start: start}
	code, known := run(ctx, s, os.Args)
	if !known && len(os.Args) > 1 { // winbox curl ...
		if code, known = run(ctx, s, os.Args[1:]); !known {
			code = s.complain(1, "winlab: winbox has no program %q", os.Args[1])
		}
	}
	stop()
	os.Exit(code)
}
