package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Container is a program in a sandbox, or in a node's own network, with files of its own.
//
// On a Linux machine it has a root file system in memory with this machine's programs
// and libraries, read-only, see [netns.Container]. On a Windows machine it is a Wine
// prefix of its own: its drive C is new, and its programs are Wine's, winlab's and those
// that it mounts.
type Container struct {
	// Name is its own on the machine's node.
	Name string
	// Args begin with the program. On a Windows machine that is a path of this machine,
	// a path of Windows, or the name of one in system32, with or without .exe.
	Args []string
	// Env is the whole environment; Windows has its own variables beside it.
	Env []string
	// Dir is the working folder, one of the container; "" is / or C:\.
	Dir string
	// Terminal says that standard input is a terminal that the program shall control.
	Terminal bool
	Mounts   []Mount
	// Files are written into it, by their path.
	Files map[string]string
	// HostProcess runs it with the files and in the network of its Windows node. Its own are
	// Mounts, which no other container sees, and Volume; there are no Files. On Windows it has the
	// node's registry and named objects, too; here these are its own, as Wine's server has them,
	// which also opens files.
	HostProcess bool
	// Volume is where a host process has a new folder of its own: C:\hpc. It is its working
	// folder, too, if Dir is "".
	Volume string

	// CPU is the most that its processes together can use of processors, in thousandths of
	// one; 0 means no limit.
	CPU int64
	// Commit is the most memory that each program of a Windows container can commit, in
	// bytes, 0 for no limit: more is refused to it, as by a job object with a limit. A job's
	// limit is for all of its programs together, and programs that Exec starts have none here.
	Commit uint64

	// The rest is for Linux.

	// Processes is the name of another container of the machine whose processes it sees,
	// and with which it ends at the latest; "" for its own PID namespace.
	Processes string
	// User is who it runs as, nil for user 0; see [netns.User] for what that is worth.
	User                     *netns.User
	ReadOnlyRoot, Privileged bool
	AddCaps, DropCaps        []string
	NoNewPrivileges          bool
}

// Mount is a file or folder of the node that a container sees at another place.
type Mount struct {
	// Source is a path of this machine as programs of the node see it, or one of Windows
	// for the node's own drive C.
	Source string
	// Target is a path of the container: /data, C:\data.
	Target   string
	ReadOnly bool
}

// ContainerHandle is a container that was created. Its methods can be called from several
// goroutines.
type ContainerHandle struct {
	n       *Net
	s       *space
	machine string
	c       Container
	windows *windows // the prefix of a Windows container
	node    string   // the prefix of the node of a host process
	volume  string   // the folder of a host process on this machine

	mu      sync.Mutex
	process *netns.Process
	started bool
	removed bool
	exit    netns.Exit
	err     error
	done    chan struct{} // closed when the program has ended
}

// ErrNotRunning says that a container was not started, or has ended.
var ErrNotRunning = errors.New("the container does not run")

// CreateContainer creates a container on a machine ("pod/default/web"): what must be there
// before it starts is made, and its name is taken until Remove. It goes with its sandbox at
// the latest.
func (n *Net) CreateContainer(ctx context.Context, machine string, c Container) (*ContainerHandle, error) {
	s, err := n.find(machine)
	if err != nil {
		return nil, err
	}
	if c.Name == "" || len(c.Args) == 0 {
		return nil, fmt.Errorf("a container on %s needs a name and a program", machine)
	}
	h := &ContainerHandle{n: n, s: s, machine: machine, c: c, done: make(chan struct{})}
	if err := n.register(h); err != nil {
		return nil, err
	}
	if _, err := n.buildOf(s); err == nil {
		if err := h.prepareWindows(ctx); err != nil {
			n.unregister(h)
			return nil, fmt.Errorf("container %s on %s: %w", c.Name, machine, err)
		}
	} else if c.HostProcess {
		n.unregister(h)
		return nil, fmt.Errorf("container %s on %s: host processes are only for Windows", c.Name, machine)
	}
	if n.life.Err() != nil { // closed meanwhile
		return nil, errors.Join(errDown, h.Remove(ctx))
	}
	return h, nil
}

// register takes the name of a container.
func (n *Net) register(h *ContainerHandle) error {
	n.containersMu.Lock()
	defer n.containersMu.Unlock()
	for _, o := range n.containers {
		if o.s == h.s && o.c.Name == h.c.Name {
			return fmt.Errorf("container %s already exists on %s", h.c.Name, h.machine)
		}
	}
	n.containers = append(n.containers, h)
	return nil
}

func (n *Net) unregister(h *ContainerHandle) {
	n.containersMu.Lock()
	defer n.containersMu.Unlock()
	n.containers = slices.DeleteFunc(n.containers, func(o *ContainerHandle) bool { return o == h })
}

// removeContainers removes those that f picks, at once.
func (n *Net) removeContainers(f func(*ContainerHandle) bool) {
	n.containersMu.Lock()
	var all []*ContainerHandle
	for _, h := range n.containers {
		if f(h) {
			all = append(all, h)
		}
	}
	n.containersMu.Unlock()
	var removing sync.WaitGroup
	for _, h := range all {
		removing.Go(func() { _ = h.Remove(context.Background()) })
	}
	removing.Wait()
}

// Start starts the container's program with three open files as its standard input,
// output and error. It can be done once. The error wraps exec.ErrNotFound when there is no
// such program, or no source of a mount.
func (h *ContainerHandle) Start(ctx context.Context, stdio [3]*os.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.removed:
		return fmt.Errorf("container %s was removed", h.c.Name)
	case h.started:
		return fmt.Errorf("container %s was started before", h.c.Name)
	}
	ctx, cancel := h.n.withNetLife(ctx)
	defer cancel()
	p, err := h.start(ctx, stdio)
	if err != nil && ctx.Err() != nil {
		// What is no longer waited for may still start.
		err = errors.Join(err, h.n.host.RemoveContainer(context.WithoutCancel(ctx), h.s.name, h.c.Name))
	}
	if err != nil {
		return err
	}
	h.process, h.started = p, true
	go func() {
		e, err := p.Wait(context.Background()) // ends with the helper
		h.mu.Lock()
		h.exit, h.err = e, err
		h.mu.Unlock()
		close(h.done)
	}()
	return nil
}

func (h *ContainerHandle) start(ctx context.Context, stdio [3]*os.File) (*netns.Process, error) {
	command := netns.Command{Args: h.c.Args, Env: h.env(h.c.Env), Dir: h.c.Dir, Terminal: h.c.Terminal, User: h.c.User}
	if h.windows == nil {
		return h.n.host.StartContainer(ctx, h.s.name, h.linux(), command, stdio)
	}
	command, err := h.windowsCommand(ctx, command)
	if err != nil {
		return nil, err
	}
	c, err := h.windowsContainer(ctx)
	if err != nil {
		return nil, err
	}
	return h.n.host.StartContainer(ctx, h.s.name, c, command, stdio)
}

// env is never nil, which would be the environment of this process.
func (h *ContainerHandle) env(given []string) []string {
	all := append([]string{}, given...)
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if h.windows != nil {
		if h.c.CPU > 0 {
			all = unpreempted(all)
		}
		return all
	}
	if !has("PATH") {
		all = append(all, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	if !has("HOME") {
		home := "/root"
		if h.c.User != nil && h.c.User.UID != 0 {
			home = "/"
		}
		all = append(all, "HOME="+home)
	}
	return all
}

// unpreempted tells Go's runtime to suspend no threads for preemption: with Wine 8.0 all
// threads of a program wait for each other in the end when the program is stopped and
// continued meanwhile, as one with a limit of CPU is (seen after 10 seconds of CPU time; with
// this, none in minutes).
func unpreempted(env []string) []string {
	const off = "asyncpreemptoff=1"
	for i, kv := range env {
		if value, ok := strings.CutPrefix(kv, "GODEBUG="); ok {
			env[i] = "GODEBUG=" + strings.TrimPrefix(value+","+off, ",")
			return env
		}
	}
	return append(env, "GODEBUG="+off)
}

// linux is the container of a Linux machine.
func (h *ContainerHandle) linux() netns.Container {
	c := netns.Container{Name: h.c.Name, OwnRoot: true, ReadOnly: h.c.ReadOnlyRoot, Files: h.c.Files,
		CPU: h.c.CPU, Privileged: h.c.Privileged, AddCaps: h.c.AddCaps, DropCaps: h.c.DropCaps, NoNewPrivileges: h.c.NoNewPrivileges}
	c.Processes = h.c.Processes
	for _, m := range h.mounts() {
		c.Mounts = append(c.Mounts, netns.Mount{Source: m.Source, Target: m.Target, From: h.n.nodeOf(h.s), ReadOnly: m.ReadOnly})
	}
	return c
}

// mounts are the container's, those below others last, as containerd orders them
// (internal/cri/opts/spec_opts.go, orderedMounts).
func (h *ContainerHandle) mounts() []Mount {
	depth := func(m Mount) int {
		return strings.Count(filepath.Clean("/"+strings.ReplaceAll(m.Target, `\`, "/")), "/")
	}
	all := slices.Clone(h.c.Mounts)
	slices.SortStableFunc(all, func(a, b Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return all
}

// nodeOf is the namespace of the node on which a machine is.
func (n *Net) nodeOf(s *space) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.machine(s.entry); m != nil && m.Node != nil {
		return "node/" + m.Node.Name
	}
	return s.name
}

// Exec starts another program in the container; it ends with it at the latest. A User of
// nil is the container's.
func (h *ContainerHandle) Exec(ctx context.Context, c netns.Command, stdio [3]*os.File) (*netns.Process, error) {
	if !h.running() {
		return nil, fmt.Errorf("container %s: %w", h.c.Name, ErrNotRunning)
	}
	if len(c.Args) == 0 {
		return nil, fmt.Errorf("container %s: no program to start", h.c.Name)
	}
	if c.Env == nil {
		c.Env = h.c.Env
	}
	if c.Dir == "" {
		c.Dir = h.c.Dir
	}
	if c.User == nil {
		c.User = h.c.User
	}
	c.Env = h.env(c.Env)
	if h.windows != nil {
		var err error
		h.services(ctx, c.Args)
		if c, err = h.windowsCommand(ctx, c); err != nil {
			return nil, err
		}
	}
	return h.n.host.ExecContainer(ctx, h.s.name, h.c.Name, c, stdio)
}

func (h *ContainerHandle) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.started || h.removed {
		return false
	}
	select {
	case <-h.done:
		return false
	default:
		return true
	}
}

// Done is closed when the program has ended.
func (h *ContainerHandle) Done() <-chan struct{} { return h.done }

// Wait waits for the end of the program and returns how it was: an exit code, or the
// signal. Of a Windows program Linux keeps the lowest eight bits of the exit code.
func (h *ContainerHandle) Wait(ctx context.Context) (netns.Exit, error) {
	select {
	case <-h.done:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.exit, h.err
	case <-ctx.Done():
		return netns.Exit{}, ctx.Err()
	}
}

// Signal sends a signal to the container's program, which is process 1 there: without
// a handler for it only SIGKILL has an effect. The program of a Windows container gets
// CTRL_SHUTDOWN_EVENT for SIGTERM, as runhcs sends it (microsoft/hcsshim internal/signals,
// ValidateWCOW): programs of Go see it as SIGTERM, and without a handler it ends the program.
func (h *ContainerHandle) Signal(s syscall.Signal) error {
	if !h.running() {
		return fmt.Errorf("container %s: %w", h.c.Name, ErrNotRunning)
	}
	if h.windows != nil && s == syscall.SIGTERM {
		return h.shutdownEvent()
	}
	return h.process.Signal(s)
}

// Stop asks the program to end with SIGTERM, and ends it after the grace period, or at
// once with none. It returns when the container has ended.
func (h *ContainerHandle) Stop(ctx context.Context, grace time.Duration) error {
	if !h.running() {
		return nil
	}
	if grace > 0 {
		if err := h.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, ErrNotRunning) {
			return err
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-h.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	if err := h.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Usage is what the container's processes use now.
func (h *ContainerHandle) Usage(ctx context.Context) (netns.Usage, error) {
	if !h.running() {
		return netns.Usage{}, fmt.Errorf("container %s: %w", h.c.Name, ErrNotRunning)
	}
	u, err := h.n.host.Usage(ctx, h.s.name, h.c.Name)
	switch {
	case err != nil || h.windows == nil:
	case h.c.HostProcess:
		u.Disk, u.Inodes = size(h.volume)
	default:
		u.Disk, u.Inodes = h.windows.size()
	}
	return u, err
}

// Remove ends the container and takes away what was its own. Calling it twice is not an error.
func (h *ContainerHandle) Remove(ctx context.Context) error {
	h.mu.Lock()
	if h.removed {
		h.mu.Unlock()
		return nil
	}
	h.removed = true
	p := h.process
	h.mu.Unlock()
	var err error
	if p != nil {
		err = h.n.host.RemoveContainer(ctx, h.s.name, h.c.Name)
		select {
		case <-h.done:
			err = nil // also when the sandbox has gone before
		case <-ctx.Done():
			err = errors.Join(err, ctx.Err())
		case <-h.n.host.Done():
			err = nil
		}
	}
	if h.windows != nil {
		h.windows.close()
	}
	if h.volume != "" {
		err = errors.Join(err, os.RemoveAll(h.volume))
	}
	h.n.unregister(h)
	return err
}

// NotFound reports whether an error of Start or Exec says that a program or the source of
// a mount does not exist.
func NotFound(err error) bool { return errors.Is(err, exec.ErrNotFound) }
