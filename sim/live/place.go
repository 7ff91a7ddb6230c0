package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/wine"
)

// place is a node's namespace as the place of its programs.
type place struct {
	n    *Net
	node string
}

func (n *Net) placeOf(node string) components.Place { return &place{n, node} }

// Listen listens for the API server on a Linux node of the lab, whose network is then
// between it and the node's programs. Where there is no Linux node, or the node cannot
// reach it from the beginning or gets only small answers, it listens on the node's loopback: what a lab is about is
// not what kept its kube-proxy from its Services.
func (p *place) Listen(ctx context.Context) (net.Listener, error) {
	p.n.mu.Lock()
	on, at, ok := p.n.apiMachine()
	p.n.mu.Unlock()
	if ok {
		l, err := p.n.listenAPI(ctx, on, at)
		if err != nil {
			return nil, err
		}
		if err = p.exchanges(ctx, l); err == nil {
			return l, nil
		}
		p.n.o.Log(fmt.Sprintf("node/%s does not reach %s (%v): kube-proxy there asks an API server on its loopback", p.node, on, err))
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	return p.n.Listen(ctx, "node/"+p.node, netip.MustParseAddrPort("127.0.0.1:0"))
}

// Reaches says why a program of the node does not reach an address, nil when it does.
func (p *place) Reaches(ctx context.Context, a netip.AddrPort) error {
	c, err := p.n.Dial(ctx, "node/"+p.node, "tcp", a, reachWithin)
	if err != nil {
		return err
	}
	return c.Close()
}

// asMuch is what a client and the API server exchange in a trial, in bytes: more than
// one segment of any MTU, since a network can carry a handshake and lose what is large.
const asMuch = 64 << 10

// exchanges says why a program of the node does not get answers from a listener that no
// program serves yet, nil when it does: each side sends asMuch to the other.
func (p *place) exchanges(ctx context.Context, l net.Listener) error {
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return err
	}
	client, err := p.n.Dial(ctx, "node/"+p.node, "tcp", at, reachWithin)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	deadline := time.Now().Add(reachWithin)
	if err := errors.Join(client.SetDeadline(deadline), server.SetDeadline(deadline)); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		_, err := io.CopyN(server, server, asMuch)
		answered <- err
	}()
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, asMuch))
		sent <- err
	}()
	_, err = io.CopyN(io.Discard, client, asMuch)
	// Where that failed the others fail, too, when they have not: a deadline has passed.
	others := errors.Join(<-sent, <-answered)
	if err != nil {
		return fmt.Errorf("the connection opens, but %d bytes and their echo do not pass: %w", asMuch, err)
	}
	return others
}

// Start starts a program in the namespace, under Wine.
func (p *place) Start(ctx context.Context, c wine.Command) (components.Process, string, error) {
	s, err := p.n.find("node/" + p.node)
	if err != nil {
		return nil, "", err
	}
	command, err := p.n.wineCommand(ctx, s, netns.Command{Args: append([]string{c.Path}, c.Args...), Env: c.Env})
	if err != nil {
		return nil, "", err
	}
	s.windows.mu.Lock()
	copied := s.windows.copy
	s.windows.mu.Unlock()
	if copied == nil {
		return nil, "", fmt.Errorf("%s has no network any more", s.name)
	}
	command.Dir = filepath.Join(copied.Dir, "drive_c")
	// In the prefix, which a guard removes.
	dir, err := os.MkdirTemp(copied.Dir, "program-")
	if err != nil {
		return nil, "", err
	}
	r := &process{n: p.n, node: s.name, command: command, speaks: c.Speaks, stdout: filepath.Join(dir, "stdout"),
		stderr: filepath.Join(dir, "stderr"), done: make(chan struct{})}
	if err := r.launch(ctx); err != nil {
		return nil, "", err
	}
	go r.watch()
	return r, r.stderr, nil
}

// process is a program of a node.
type process struct {
	n              *Net
	node           string
	command        netns.Command
	speaks         bool
	stdout, stderr string
	done           chan struct{}

	mu      sync.Mutex
	p       *netns.Process
	starts  int
	stopped bool
	exit    netns.Exit
	err     error
}

func (r *process) launch(ctx context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	files := [3]*os.File{null}
	for i, name := range []string{r.stdout, r.stderr} {
		if files[i+1], err = os.Create(name); err != nil {
			return err
		}
		defer func() { _ = files[i+1].Close() }()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errors.New("the program was stopped")
	}
	p, err := r.n.host.Start(ctx, r.node, r.command, files)
	if err != nil {
		return err
	}
	r.p = p
	r.starts++
	return nil
}

// watch waits for the end, and starts a program again that Wine did not start.
func (r *process) watch() {
	defer close(r.done)
	for {
		r.mu.Lock()
		p := r.p
		r.mu.Unlock()
		e, err := p.Wait(context.Background()) // ends with the helper
		r.mu.Lock()
		r.exit, r.err = e, err
		again := err == nil && !r.stopped && r.starts < wine.Starts && r.silent()
		r.mu.Unlock()
		if !again || r.launch(r.n.life) != nil {
			return
		}
	}
}

// silent reports whether the program has failed before its own code ran. The lock is
// held.
func (r *process) silent() bool {
	stdout, err1 := os.ReadFile(r.stdout)
	stderr, err2 := os.ReadFile(r.stderr)
	return r.speaks && r.exit.Code != 0 && err1 == nil && err2 == nil && wine.NeverBegan(string(stdout), string(stderr))
}

func (r *process) PID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.PID
}

func (r *process) Done() <-chan struct{} { return r.done }

func (r *process) Silent() bool {
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent()
}

func (r *process) End() string {
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	s := fmt.Sprintf("code %d", r.exit.Code)
	if r.err != nil {
		s = r.err.Error()
	}
	if r.silent() {
		s += ", without any output: Wine did not start it"
	}
	if r.starts > 1 {
		s += fmt.Sprintf(", at start %d", r.starts)
	}
	return s
}

// State is what Linux says of the process as far as this process can see it.
func (r *process) State() string {
	return fmt.Sprintf("process %d in the network of %s", r.PID(), r.node)
}

// grace is how long a program may take to end by itself after Ctrl-C.
const grace = 5 * time.Second

func (r *process) Stop() {
	r.mu.Lock()
	r.stopped = true
	p := r.p
	r.mu.Unlock()
	select {
	case <-r.done:
		return
	default:
	}
	_ = p.Signal(syscall.SIGINT)
	select {
	case <-r.done:
	case <-time.After(grace):
		r.Kill()
	}
}

func (r *process) Kill() {
	r.mu.Lock()
	r.stopped = true
	p := r.p
	r.mu.Unlock()
	select {
	case <-r.done:
	default:
		_ = p.Signal(syscall.SIGKILL)
		<-r.done
	}
}
