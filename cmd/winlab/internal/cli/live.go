package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/control"
	"github.com/winlab-dev/winlab/sim/trace"
)

// exitWith ends the program with a code of another program, and says why when there
// is a text.
type exitWith struct {
	code int
	text string
}

func (e exitWith) Error() string { return e.text }

// stdio are the program's own files, to hand over to a lab that is up.
func stdio() [3]*os.File { return [3]*os.File{os.Stdin, os.Stdout, os.Stderr} }

// runningFlag adds --name for commands that look into a lab that is up.
func (a *app) runningFlag(cmd *cobra.Command) *string {
	name := cmd.Flags().String("name", "", "the `lab`, when several are up (winlab ps)")
	completeRunning(cmd, "name")
	return name
}

// completeRunning completes the names of labs that are up.
func completeRunning(cmd *cobra.Command, flag string) {
	complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := control.Names()
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// running is the lab that a command is for: the one with the name, else the only one.
func running(name string) (string, error) { return control.Select(name, "winlab up LAB") }

// call asks a lab that is up to do something.
func (a *app) call(ctx context.Context, name, verb string, args any) error {
	return a.callWith(ctx, name, verb, args, stdio())
}

// callWith is call with other files than the standard ones.
func (a *app) callWith(ctx context.Context, name, verb string, args any, files [3]*os.File) error {
	name, err := running(name)
	if err != nil {
		return err
	}
	// The lab ends what it does for us when we go; only exec passes signals on.
	code, err := control.Ask(ctx, name, verb, args, files, verb == verbExec)
	return ended(code, err)
}

// ended is how a call has ended: the code counts, and an error of the lab's side is
// shown.
func ended(code int, err error) error {
	var remote *control.Remote
	switch {
	case errors.As(err, &remote):
		return exitWith{code, remote.Text}
	case err != nil:
		return err
	case code != 0:
		return exitWith{code: code}
	}
	return nil
}

// The verbs of a lab that is up.
const (
	verbPs      = "ps"
	verbExec    = "exec"
	verbWatch   = "watch"
	verbLogs    = "logs"
	verbDown    = "down"
	verbChange  = "change"
	verbCapture = "capture"
	verbHNS     = "hns"
	verbLink    = "link"
	verbTrace   = "trace"
	verbRules   = "rules"
)

// liveLab is a lab that is up, in the process that holds it.
type liveLab struct {
	name, path string
	since      time.Time
	net        *live.Net
	down       chan struct{} // closed when somebody asks for the end
	once       sync.Once
	log        *ring
	// history has its connections, nil where none are kept.
	history *connections

	mu       sync.Mutex
	programs map[int]*liveProgram
}

// liveProgram is a program that somebody started in a machine.
type liveProgram struct {
	Machine string    `json:"machine"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	// Ended says how a program of the lab has ended by itself.
	Ended string `json:"ended,omitempty"`
}

// ring keeps the last lines that were written.
type ring struct {
	mu    sync.Mutex
	lines []string
}

const maxLog = 10000

func (r *ring) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, time.Now().Format("15:04:05.000 ")+line)
	if len(r.lines) > maxLog {
		r.lines = slices.Delete(r.lines, 0, len(r.lines)-maxLog)
	}
}

func (r *ring) entries() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// handle does what another winlab asks for.
func (l *liveLab) handle(ctx context.Context, c control.Call) (int, error) {
	switch c.Verb {
	case verbPs:
		return 0, decode(c.Args, func(o psArgs) error { return l.ps(c.Stdio[1], o) })
	case verbExec:
		code := 0
		err := decode(c.Args, func(o execArgs) (err error) { code, err = l.exec(ctx, c, o); return err })
		return code, err
	case verbWatch:
		return 0, decode(c.Args, func(o watchArgs) error { return l.watch(ctx, c.Stdio[1], o) })
	case verbLogs:
		return 0, decode(c.Args, func(program string) error { return l.logs(c.Stdio[1], program) })
	case verbChange:
		return 0, decode(c.Args, func(o changeArgs) error {
			err := l.change(ctx, c.Stdio[0], o)
			if err == nil {
				fmt.Fprintln(c.Stdio[2], o.Done)
			}
			return err
		})
	case verbCapture:
		return 0, decode(c.Args, func(o captureArgs) error { return l.capture(ctx, c.Stdio[1], o) })
	case verbLink:
		return 0, decode(c.Args, func(o linkArgs) error { return l.link(ctx, c.Stdio[1], c.Stdio[2], o) })
	case verbHNS:
		return 0, decode(c.Args, func(node string) error {
			at, err := l.net.HNS(ctx, node)
			if err == nil {
				fmt.Fprintln(c.Stdio[1], at)
			}
			return err
		})
	case verbRules:
		return exitOf(decode(c.Args, func(o rulesArgs) error { return l.rules(c.Stdio[1], o) }))
	case verbTrace:
		return exitOf(decode(c.Args, func(o liveTraceArgs) error { return l.trace(ctx, c.Stdio[1], o) }))
	case verbDown:
		l.once.Do(func() { close(l.down) })
		return 0, nil
	}
	return 2,
		fmt.Errorf(
			"the program that runs this lab does not support %q: it is another program (winlab up runs no Kubernetes, winlab-e2e has fewer verbs than winlab-cluster), or another version", c.Verb)
}

func decode[T any](args json.RawMessage, f func(T) error) error {
	var v T
	if err := json.Unmarshal(args, &v); err != nil {
		return err
	}
	return f(v)
}

func (l *liveLab) logs(w io.Writer, program string) error {
	if program != "" {
		return l.programLog(w, program)
	}
	for _, line := range append(l.log.entries(), statLines(l.net.Stats())...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// statLines say what was counted.
func statLines(s live.Stats) []string {
	all := []string{fmt.Sprintf("%d frames from programs, %d delivered, %d malformed", s.Frames, s.Delivered, s.Malformed)}
	for _, m := range []struct {
		what   string
		counts map[string]uint64
	}{{"lost", s.Lost}, {"not modelled", s.Unknown}} {
		var keys []string
		for k := range m.counts {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			all = append(all, fmt.Sprintf("%s: %s: %d", m.what, k, m.counts[k]))
		}
	}
	return all
}

// nameOf makes the name of a lab from its file.
func nameOf(path string, f *lab.File) string {
	name := cmp.Or(f.Lab.Metadata.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	name = strings.Trim(name, "-.")
	if len(name) > 60 {
		name = strings.Trim(name[:60], "-.")
	}
	return cmp.Or(name, "lab")
}

// connectionLine is a connection as one line, as hubble observe prints flows.
func connectionLine(c live.Connection, colour bool) string {
	to := hostPort(c.Destination)
	if c.SeenDestination.IsValid() && c.SeenDestination != c.Destination {
		to += " -> " + hostPort(c.SeenDestination)
	}
	if c.To != "" {
		to += " (" + shortName(c.To) + ")"
	}
	verdict := strings.ToUpper(string(c.Verdict))
	if c.Verdict == trace.Delivered {
		verdict = string(c.Verdict)
	}
	if c.Reason != "" && c.Reason != trace.OK {
		verdict += " " + string(c.Reason)
	}
	if colour {
		verdict = paint(c.Verdict, verdict)
	}
	line := fmt.Sprintf("%s  %s %s (%s) -> %s  %s", c.Time.Format("15:04:05.000"), c.Protocol, hostPort(c.Source), shortName(c.From), to,
		verdict)
	if c.Took > 0 {
		line += "  " + c.Took.Round(10*time.Microsecond).String()
	}
	if c.Why != "" {
		line += "  " + clean.Line(c.Why)
	}
	for i, r := range c.RestsOn {
		word := "  taken as open: "
		if i > 0 {
			word = "; "
		}
		about := ""
		if r.About != "" {
			about = "on " + r.About + " "
		}
		line += word + clean.Line(about+r.Means) + " (" + r.Param + ")"
	}
	return line
}

func paint(v trace.Verdict, text string) string {
	switch v {
	case trace.Delivered:
		return "\033[32m" + text + "\033[0m"
	case trace.Unknown:
		return "\033[33m" + text + "\033[0m"
	}
	return "\033[31m" + text + "\033[0m"
}

// hostPort is an end of a connection; protocols without ports have none.
func hostPort(a netip.AddrPort) string {
	if a.Port() == 0 {
		return a.Addr().String()
	}
	return a.String()
}

// shortName leaves out the namespace default.
func shortName(machine string) string { return strings.Replace(machine, "pod/default/", "pod/", 1) }

// writeLine writes a value as one line of JSON.
func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// hnsOf asks a lab that is up for the address of a node's HNS.
func (a *app) hnsOf(ctx context.Context, name, node string) (string, error) {
	lab, err := running(name)
	if err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	code, err := control.Do(ctx, lab, verbHNS, node, [3]*os.File{os.Stdin, w, os.Stderr}, nil)
	_ = w.Close()
	if err := ended(code, err); err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return strings.TrimSpace(string(text)), err
}
