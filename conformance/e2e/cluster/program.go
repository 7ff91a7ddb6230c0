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

	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// program is a program of the cluster in the network namespace of a node.
type program struct {
	name, machine string
	net           *live.Net
	command       netns.Command
	log           string
	done          chan struct{}

	mu      sync.Mutex
	process *netns.Process
	since   time.Time
	exit    netns.Exit
	err     error
}

// programPath is where programs of Linux look for others.
const programPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Program is a program of the cluster as users see it.
type Program struct {
	// Name is "kube-apiserver", or "kubelet/win1" of those that each node has; Machine is
	// where it runs, as package live names it.
	Name, Machine string
	PID           int
	Since         time.Time
	// Ended says how it has ended, "" for one that runs.
	Ended string
	// Log is the file that it writes to.
	Log string
}

// start starts a program. Its output and errors go to one file.
func (c *Cluster) start(ctx context.Context, machine, name string, command netns.Command) (*program, error) {
	if command.Env == nil {
		// Nothing of the user's own: a proxy or a KUBECONFIG of theirs is not for the cluster.
		command.Env = []string{"PATH=" + programPath, "HOME=" + c.dir}
	}
	if command.Dir == "" {
		command.Dir = c.dir
	}
	p := &program{name: name, machine: machine, net: c.Net, command: command, done: make(chan struct{}),
		log: filepath.Join(c.dir, "logs", strings.ReplaceAll(name, "/", "-")+".log")}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	if p.process, err = c.Net.Start(ctx, machine, command, [3]*os.File{null, out, out}); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.since = time.Now()
	go func() {
		defer close(p.done)
		e, err := p.process.Wait(context.Background()) // ends with the network
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exit, p.err = e, err
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs = append(c.programs, p)
	return p, nil
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
	p, err := c.Net.Start(ctx, machine, netns.Command{Args: args, Dir: c.dir, Env: []string{"PATH=" + programPath}}, [3]*os.File{null, out, out})
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

// ended says how a program has ended, "" for one that runs.
func (p *program) ended() string {
	select {
	case <-p.done:
	default:
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return p.err.Error()
	case p.exit.Signal != 0:
		return syscall.Signal(p.exit.Signal).String()
	}
	return fmt.Sprintf("exit code %d", p.exit.Code)
}

func (p *program) state() Program {
	return Program{Name: p.name, Machine: p.machine, PID: p.process.PID, Since: p.since, Ended: p.ended(), Log: p.log}
}

// poll is how often a program is asked whether it is ready.
const poll = 100 * time.Millisecond

// ready waits until ask says that a program is. The error says what did not come up, and
// has the end of its log.
func (p *program) ready(ctx context.Context, within time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %v", within))
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s on %s has ended: %s; its log ends with\n%s", p.name, p.machine, p.ended(), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s on %s is not ready: %w (%w); its log ends with\n%s", p.name, p.machine, context.Cause(ctx), last, p.tail())
		case <-tick.C:
		}
	}
}

// lines of a log that an error shows.
const lines = 15

func (p *program) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
