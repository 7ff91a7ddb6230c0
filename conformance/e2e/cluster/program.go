package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// program is a program of the cluster on a node, with what a service manager knows of it.
type program struct {
	name, machine string
	c             *Cluster
	log           string // "" for one without a log of its own

	mu     sync.Mutex
	launch launcher
	again  backOff
	// health asks it whether it is well, and within is how long that may take after a
	// start; nil for one that is well as soon as it runs.
	health func(context.Context) error
	within time.Duration

	run *run // the last one
	// wanted says that it should run: it was not stopped.
	wanted   bool
	restarts int
	next     time.Time // of its next start, while it waits for that
	trouble  string    // why its last start has failed
	tries    int       // in a row, for the back-off
	since    uint64    // which start the supervisor belongs to
}

// launcher starts what a program is.
type launcher func(ctx context.Context) (*run, error)

// run is one life of a program.
type run struct {
	pid   int // 0 for one without a process of its own
	since time.Time
	// signal asks it to end, politely or not.
	signal func(kill bool) error
	// memory is what it has in memory, in bytes; nil for one without a process of its own.
	memory func(context.Context) (uint64, error)
	done   chan struct{} // closed when it has ended, how says how
	how    string
}

// programPath is where programs of Linux look for others.
const programPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Program is a program of the cluster as users see it.
type Program struct {
	// Name is "kube-apiserver", or "kubelet/win1" of those that each node has; Machine is
	// where it runs, as package live names it.
	Name, Machine string
	// PID is 0 for a container runtime, which is a part of this process.
	PID   int
	Since time.Time
	// Ended says how it has ended, and when it starts again, "" for one that runs.
	Ended string
	// Restarts is how often it was started again.
	Restarts int
	// Log is the file that it writes to.
	Log string
}

// process is the launcher of a program in a node's network namespace. Its output and
// errors go to one file. One of Windows is asked to end by Ctrl-C.
func (c *Cluster) process(machine, log string, command netns.Command, windows bool) launcher {
	if command.Env == nil {
		// Nothing of the user's own: a proxy or a KUBECONFIG of theirs is not for the cluster.
		command.Env = []string{"PATH=" + programPath, "HOME=" + c.dir}
	}
	if command.Dir == "" {
		command.Dir = c.dir
	}
	end := syscall.SIGTERM
	if windows {
		end = syscall.SIGINT
	}
	return func(ctx context.Context) (*run, error) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		defer func() { _ = null.Close() }()
		out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Close() }()
		p, err := c.Net.Start(ctx, machine, command, [3]*os.File{null, out, out})
		if err != nil {
			return nil, err
		}
		r := &run{pid: p.PID, since: time.Now(), done: make(chan struct{}), memory: p.Memory, signal: func(kill bool) error {
			if kill {
				return p.Signal(syscall.SIGKILL)
			}
			return p.Signal(end)
		}}
		go func() {
			defer close(r.done)
			e, err := p.Wait(context.Background()) // ends with the network
			r.how = ending(e, err)
		}()
		return r, nil
	}
}

// ending says how a process has ended.
func ending(e netns.Exit, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case e.Signal != 0:
		return syscall.Signal(e.Signal).String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// logFile is the file of a program's output.
func (c *Cluster) logFile(name string) string {
	return filepath.Join(c.dir, "logs", strings.ReplaceAll(name, "/", "-")+".log")
}

// program enters a program of a machine. One that is there already, since its node starts
// again, gets its new launcher.
func (c *Cluster) program(machine, name string, l launcher, b backOff) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.programs {
		if p.name == name {
			p.mu.Lock()
			p.launch = l
			p.mu.Unlock()
			return p
		}
	}
	p := &program{name: name, machine: machine, c: c, launch: l, again: b}
	c.programs = append(c.programs, p)
	return p
}

// start starts a program of a machine, whose service manager starts it again when it ends.
func (c *Cluster) start(ctx context.Context, machine, name string, l launcher, b backOff) (*program, error) {
	p := c.program(machine, name, l, b)
	p.log = c.logFile(name)
	return p, p.start(ctx)
}

// run runs a program of Linux on a node until its end.
func (c *Cluster) run(ctx context.Context, machine string, args ...string) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	out, err := os.CreateTemp(c.dir, "run-")
	if err != nil {
		return err
	}
	defer func() { _, _ = out.Close(), os.Remove(out.Name()) }()
	p, err := c.Net.Start(ctx, machine, netns.Command{Args: args, Dir: c.dir, Env: []string{"PATH=" + programPath}},
		[3]*os.File{null, out, out})
	if err != nil {
		return fmt.Errorf("%s on %s: %w", args[0], machine, err)
	}
	e, err := p.Wait(ctx)
	if err == nil && e.Code != 0 {
		text, _ := os.ReadFile(out.Name())
		err = fmt.Errorf("exit code %d: %s", e.Code, strings.TrimSpace(string(text)))
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %w", strings.Join(args, " "), machine, err)
	}
	return nil
}

// state is the program as users see it.
func (p *program) state() Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Program{Name: p.name, Machine: p.machine, Restarts: p.restarts, Log: p.log, Ended: p.ended()}
	if p.run != nil {
		s.PID, s.Since = p.run.pid, p.run.since
	}
	return s
}

// ended says how a program has ended, "" for one that runs. The lock is held.
func (p *program) ended() string {
	if p.run == nil {
		return "not started"
	}
	select {
	case <-p.run.done:
	default:
		return ""
	}
	switch {
	case !p.wanted:
		return "stopped"
	case p.trouble != "":
		return "it does not start: " + p.trouble + p.waits()
	}
	return p.run.how + p.waits()
}

// waits says when a program starts again. The lock is held.
func (p *program) waits() string {
	if p.next.IsZero() {
		return ""
	}
	return fmt.Sprintf("; starts again in %v", max(0, time.Until(p.next)).Round(time.Second))
}

// poll is how often a program is asked whether it is ready.
const poll = 100 * time.Millisecond

// ready waits until ask says that a program is. The error says what did not come up, and
// has the end of its log. A program that ends meanwhile is not waited for.
func (p *program) ready(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %v", within))
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("%s on %s has ended: %s%s", p.name, p.machine, r.how, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s on %s is not ready: %w (%w)%s", p.name, p.machine, context.Cause(ctx), last, p.tail())
		case <-tick.C:
		}
	}
}

// check says how to ask a program whether it is well, and how long that may take after a
// start.
func (p *program) check(within time.Duration, health func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.health, p.within = health, within
}

// well waits until a program that was started is well.
func (p *program) well(ctx context.Context) error {
	p.mu.Lock()
	health, within := p.health, p.within
	p.mu.Unlock()
	if health == nil {
		return nil
	}
	return p.ready(ctx, within, health)
}

// lines of a log that an error shows.
const lines = 15

// tail is the end of a program's log, for an error.
func (p *program) tail() string {
	if p.log == "" {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return "; its log: " + err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "; its log ends with\n  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
