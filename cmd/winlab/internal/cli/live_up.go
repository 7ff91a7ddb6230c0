package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// upOptions are the flags of up.
type upOptions struct {
	*labOptions
	name   string
	detach bool
	quiet  bool
	clock  string
	// history is how many connections are kept.
	history int
}

// readyEnv is set for a lab in the background: the descriptor on which it says how
// far it is.
const readyEnv = "WINLAB_READY_FD"

func (a *app) upCmd() *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up LAB",
		Short: "Run a lab's network: real programs on the simulated Windows nodes",
		Long: `Run a lab's network. Each pod, node and host of the lab becomes a network namespace of
Linux; what programs in it send goes through the simulated switches, the same that
winlab trace explains. Ports on which the lab lets something listen are served by a small
responder that says who serves whom. No root is needed.

In the foreground each new connection is shown as it happens, and Ctrl-C ends the lab. With
-d it runs in the background until winlab down. The other commands (exec, watch, ps, logs,
down) look into it.

With --components real, kube-proxy.exe and the plugin's program run under Wine and keep running:
they follow winlab apply, delete and restart as on a node.`,
		Example: `  winlab up fixtures/labs/l2bridge-flannel-host-gw.yaml
  winlab up fixtures/labs/overlay-win-overlay.yaml -d --name overlay
  winlab exec pod/client -- curl -s http://win-webserver
  winlab down`,
		Args:              exactly("LAB"),
		ValidArgsFunction: files(false, labExts),
	}
	o.labOptions = a.labFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "the running lab's `name` (default: that of the lab)")
	f.BoolVarP(&o.detach, "detach", "d", false, "run in the background")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no connections")
	f.StringVar(&o.clock, "clock", "1x", "how much faster than the wall clock flows age: `60x`")
	f.IntVar(&o.history, "history", 1000, "how many connections are kept for winlab watch; 0 keeps none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.history < 0 {
			return usagef("--history %d: write how many connections", o.history)
		}
		if o.detach {
			return a.upDetached(cmd.Context(), args[0], o)
		}
		return a.up(cmd.Context(), args[0], o)
	}
	return cmd
}

// clockFactor reads "60x".
func clockFactor(s string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(s, "x"), 64)
	if err != nil || x < 1 || x > 100000 {
		return 0, usagef("--clock %s: write how many times faster, from 1x to 100000x", s)
	}
	return x, nil
}

// up runs a lab until it is interrupted or somebody takes it down.
func (a *app) up(ctx context.Context, path string, o *upOptions) error {
	say, ready := a.announce()
	clock, err := clockFactor(o.clock)
	if err != nil {
		return err
	}
	f, err := lab.Load(path)
	if err != nil {
		return err
	}
	if o.name == "" {
		o.name = nameOf(path, f)
	}
	l := &liveLab{name: o.name, path: path, since: time.Now(), down: make(chan struct{}), log: &ring{}, programs: map[int]*liveProgram{}}
	// The name is taken first: building can take long.
	up := make(chan struct{})
	s, err := control.Listen(o.name, func(ctx context.Context, c control.Call) (int, error) {
		if c.Verb != verbDown {
			select {
			case <-up:
			case <-ctx.Done():
				return 2, errors.New("the lab went down before it was up")
			}
		}
		return l.handle(ctx, c)
	})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.down:
			cancel()
		case <-ctx.Done():
		}
	}()
	o.keep = true
	c, err := o.labOptions.build(ctx, path)
	if err != nil {
		return l.ended(err)
	}
	l.net, err = live.Up(ctx, c, live.Options{Clock: clock, Log: l.log.add})
	if err != nil {
		return l.ended(err)
	}
	defer l.net.Close()
	if o.history > 0 {
		l.history = newHistory(o.history)
		go l.history.keep(ctx, l.net)
	}
	close(up)
	say("%s is up: %s (%.1f s); winlab exec MACHINE -- COMMAND runs a program", o.name, count(c), time.Since(l.since).Seconds())
	for _, k := range c.Assumptions() {
		say("note: %s", k)
	}
	ready()
	return l.show(ctx, a, o)
}

// ended is nil when somebody took the lab down.
func (l *liveLab) ended(err error) error {
	select {
	case <-l.down:
		return nil
	default:
		return err
	}
}

// count says what a cluster has.
func count(c *lab.Cluster) string {
	from, _ := c.Names()
	kinds := map[string]int{}
	for _, n := range from {
		kind, _, _ := strings.Cut(n, "/")
		kinds[kind]++
	}
	return fmt.Sprintf("%d nodes, %d pods, %d hosts", kinds["node"], kinds["pod"], kinds["host"])
}

// show prints connections until the end.
func (l *liveLab) show(ctx context.Context, a *app, o *upOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.quiet && a.getenv(readyEnv) == "" && l.history != nil {
		shown := make(chan struct{})
		go func() {
			defer close(shown)
			_ = l.watch(ctx, a.out, watchArgs{Colour: a.colour(), Follow: true, summary: a.outTerm})
		}()
		defer func() {
			cancel()
			<-shown
			if a.outTerm {
				fmt.Fprint(a.out, "\r\033[K")
			}
			fmt.Fprintln(a.out, l.history.summary())
		}()
	}
	select {
	case <-ctx.Done():
		return nil // Ctrl-C is how a lab in the foreground ends
	case <-l.down:
		return nil
	case <-l.net.Done():
		return errors.New("the helper with the network namespaces has ended")
	}
}

// announce returns how to say what happens: to the user, or to the winlab that waits
// for this one in the background.
func (a *app) announce() (say func(string, ...any), ready func()) {
	fd, err := strconv.Atoi(a.getenv(readyEnv))
	if err != nil {
		return func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }, func() {}
	}
	f := os.NewFile(uintptr(fd), "ready")
	return func(format string, args ...any) { fmt.Fprintf(f, format+"\n", args...) }, func() {
		fmt.Fprintln(f, readyMark)
		_ = f.Close()
	}
}

// readyMark ends what a lab in the background says at its start.
const readyMark = "winlab: ready"

// upDetached starts another winlab and waits until its lab is up.
func (a *app) upDetached(ctx context.Context, path string, o *upOptions) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	args := []string{"up", path, "--quiet", "--clock", o.clock}
	for _, f := range []struct{ flag, value string }{{"name", o.name}, {"variant", o.variant}, {"kubernetes", o.kubernetes},
		{"windows", o.windows}, {"components", o.components}, {"history", strconv.Itoa(o.history)}} {
		if f.value != "" {
			args = append(args, "--"+f.flag, f.value)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), readyEnv+"=3")
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = w
	cmd.SysProcAttr = newSession()
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = w.Close()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer stop()
	said, up := readAnnounced(r)
	if up {
		fmt.Fprint(a.err, said)
		return cmd.Process.Release()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprint(a.err, said)
	if errors.As(err, &exit) {
		return exitWith{code: exit.ExitCode()}
	}
	return errors.Join(err, errors.New("the lab ended before it was up"))
}

// readAnnounced reads until the lab is up, or has ended.
func readAnnounced(r io.Reader) (said string, up bool) {
	var b strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == readyMark {
			return b.String(), true
		}
		b.WriteString(lines.Text() + "\n")
	}
	return b.String(), false
}
