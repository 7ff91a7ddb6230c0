package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/internal/fdmsg"
)

// helperEnv marks the helper process; its value is the descriptor of its socket.
const helperEnv = "WINLAB_NETNS_HELPER"

// Host is the helper process and all its namespaces. Its methods may be called
// from several goroutines.
type Host struct {
	cmd  *exec.Cmd
	conn *fdmsg.Conn
	ends chan struct{} // closed when the helper has ended
	log  *tail

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply
	exits   map[int]chan Exit // of programs, by their process id there
	early   map[int]Exit      // of programs that ended before anybody asked
	closed  bool
}

type reply struct {
	answer
	files []int
}

// Options choose how the helper is started.
type Options struct {
	// KeepUser makes the namespaces as the present user, who must be root then,
	// instead of in a user namespace.
	KeepUser bool
}

// Start starts the helper. The error wraps [ErrUnsupported] where the machine
// does not allow what is needed.
func Start(o Options) (*Host, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper")
	defer func() { _ = theirs.Close() }()
	conn, err := connOf(pair[0])
	if err != nil {
		return nil, err
	}
	h := &Host{conn: conn, ends: make(chan struct{}), log: &tail{}, waiting: map[uint64]chan reply{}, exits: map[int]chan Exit{},
		early: map[int]Exit{}}
	h.cmd = exec.Command("/proc/self/exe")
	h.cmd.Args[0] = "winlab-netns"
	h.cmd.Env = append(os.Environ(), helperEnv+"=3")
	h.cmd.ExtraFiles = []*os.File{theirs}
	h.cmd.Stderr = h.log
	h.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true, // Ctrl-C at the terminal is for the parent
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if !o.KeepUser {
		h.cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		h.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		h.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		if uids, gids := extents("uid"), extents("gid"); os.Geteuid() == 0 && os.Getegid() == 0 && len(uids) > 0 && len(gids) > 0 {
			// Root may hand all users on, so that containers can have them.
			h.cmd.SysProcAttr.UidMappings, h.cmd.SysProcAttr.GidMappings, h.cmd.SysProcAttr.GidMappingsEnableSetgroups = apart(uids), apart(gids),
				true
		}
	}
	if err := h.cmd.Start(); err != nil {
		_ = h.conn.Close()
		return nil, unsupported(err)
	}
	go h.read()
	if _, err := h.ask(context.Background(), request{Op: "hello"}); err != nil {
		h.Close()
		return nil, unsupported(err)
	}
	return h, nil
}

// connOf makes a connection of one end of a socket pair.
func connOf(fd int) (*fdmsg.Conn, error) {
	f := fileOf(fd, "helper")
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return fdmsg.New(c.(*net.UnixConn)), nil
}

// unsupported says what to set where the kernel forbids what is needed.
func unsupported(err error) error {
	text := err.Error()
	switch {
	case setTo("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		text = "AppArmor forbids user namespaces to programs without a profile; run as root, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case setTo("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		text = "user namespaces are off; run as root, or sudo sysctl kernel.unprivileged_userns_clone=1"
	case setTo("/proc/sys/user/max_user_namespaces", "0"):
		text = "no user namespaces are allowed; run as root, or sudo sysctl user.max_user_namespaces=10000"
	case errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES):
		text += "; this container or sandbox forbids user and network namespaces"
	}
	return fmt.Errorf("%w: %s", ErrUnsupported, text)
}

func setTo(path, value string) bool {
	data, err := os.ReadFile(path)
	return err == nil && os.Geteuid() != 0 && strings.TrimSpace(string(data)) == value
}

// tail keeps the last that a helper wrote to its standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 8<<10; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

// read takes what the helper says, until it ends.
func (h *Host) read() {
	for {
		var r reply
		var err error
		if r.files, err = h.conn.Receive(&r.answer); err != nil {
			break
		}
		h.mu.Lock()
		if r.Exit != nil {
			if c := h.exits[r.PID]; c != nil {
				c <- *r.Exit
			} else {
				h.early[r.PID] = *r.Exit
			}
			h.mu.Unlock()
			continue
		}
		c := h.waiting[r.ID]
		delete(h.waiting, r.ID)
		if c == nil {
			fdmsg.CloseAll(r.files)
		} else {
			if r.PID != 0 && r.Error != "" {
				delete(h.early, r.PID)
			} else if r.PID != 0 { // a program was started
				exit := make(chan Exit, 1)
				if e, ok := h.early[r.PID]; ok {
					exit <- e
					delete(h.early, r.PID)
				}
				h.exits[r.PID] = exit
			}
			c <- r
		}
		h.mu.Unlock()
	}
	_ = h.cmd.Wait()
	h.mu.Lock()
	h.closed = true
	_ = h.conn.Close()
	close(h.ends)
	h.mu.Unlock()
}

// Done is closed when the helper has ended, and with it all namespaces.
func (h *Host) Done() <-chan struct{} { return h.ends }

// PID is the helper's process id.
func (h *Host) PID() int { return h.cmd.Process.Pid }

// Close ends the helper, all its programs and namespaces, and waits for that.
func (h *Host) Close() {
	h.mu.Lock()
	if !h.closed {
		_ = h.conn.Close()
	}
	h.mu.Unlock()
	select {
	case <-h.ends:
	case <-time.After(2 * time.Second):
		_ = h.cmd.Process.Kill()
		<-h.ends
	}
}

// ended is the error of a helper that is not there any more.
func (h *Host) ended() error {
	if said := h.log.String(); said != "" {
		return errors.New("the helper with the network namespaces has ended: " + said)
	}
	return errors.New("the helper with the network namespaces has ended")
}

// ask sends a request and waits for the answer.
func (h *Host) ask(ctx context.Context, q request, files ...int) (reply, error) {
	c := make(chan reply, 1)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return reply{}, h.ended()
	}
	h.last++
	q.ID = h.last
	h.waiting[q.ID] = c
	err := h.conn.Send(q, files...)
	if err != nil {
		delete(h.waiting, q.ID)
	}
	h.mu.Unlock()
	if err != nil {
		select {
		case <-h.ends:
			return reply{}, h.ended()
		case <-time.After(100 * time.Millisecond):
		}
		return reply{}, err
	}
	select {
	case r := <-c:
		if r.NotFound {
			return r, notFound{r.Error}
		}
		if r.Error != "" {
			return r, errors.New(r.Error)
		}
		return r, nil
	case <-ctx.Done():
		h.forget(q.ID, c)
		return reply{}, ctx.Err()
	case <-h.ends:
		return reply{}, h.ended()
	}
}

// notFound is the helper's text for a program that does not exist.
type notFound struct{ text string }

func (e notFound) Error() string { return e.text }
func (e notFound) Unwrap() error { return exec.ErrNotFound }

// forget drops the answer to a request that is no longer waited for.
func (h *Host) forget(id uint64, c chan reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, id)
	select {
	case r := <-c:
		fdmsg.CloseAll(r.files)
	default:
	}
}

// onlyFile returns the only file of a reply.
func (r *reply) onlyFile() (int, error) {
	if len(r.files) != 1 {
		fdmsg.CloseAll(r.files)
		return -1, fmt.Errorf("%d files instead of one", len(r.files))
	}
	return r.files[0], nil
}

// Add makes a namespace and returns its device.
func (h *Host) Add(ctx context.Context, s Spec) (*Device, error) {
	r, err := h.ask(ctx, request{Op: "add", Name: s.Name, Spec: &s})
	if err != nil {
		return nil, fmt.Errorf("network namespace of %s: %w", s.Name, err)
	}
	fd, err := r.onlyFile()
	if err != nil {
		return nil, err
	}
	return newDevice(fd, s)
}

// Set replaces the addresses and routes of a namespace.
func (h *Host) Set(ctx context.Context, name string, a Addresses) error {
	_, err := h.ask(ctx, request{Op: "set", Name: name, Set: &a})
	return err
}

// Remove ends the programs of a namespace and removes it. Sockets that were
// made in it and given away keep the namespace until they are closed.
func (h *Host) Remove(ctx context.Context, name string) error {
	_, err := h.ask(ctx, request{Op: "remove", Name: name})
	return err
}

// Bound lists the sockets of a namespace that wait for connections or datagrams.
func (h *Host) Bound(ctx context.Context, name string) ([]Bound, error) {
	r, err := h.ask(ctx, request{Op: "bound", Name: name})
	return r.Bound, err
}

// Listen listens in a namespace on a TCP address.
func (h *Host) Listen(ctx context.Context, name string, address netip.AddrPort) (net.Listener, error) {
	f, err := h.socket(ctx, request{Op: "listen", Name: name, Network: "tcp", Address: address.String()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return net.FileListener(f)
}

// ListenPacket listens in a namespace on a UDP address.
func (h *Host) ListenPacket(ctx context.Context, name string, address netip.AddrPort) (net.PacketConn, error) {
	f, err := h.socket(ctx, request{Op: "listen", Name: name, Network: "udp", Address: address.String()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return net.FilePacketConn(f)
}

// Dial opens a connection in a namespace. The network is tcp or udp, the address
// has no names. Without an answer for timeout the attempt ends.
func (h *Host) Dial(ctx context.Context, name, network string, address netip.AddrPort, timeout time.Duration) (net.Conn, error) {
	return h.DialFrom(ctx, name, network, 0, address, timeout)
}

// DialFrom is Dial with a local port; 0 is any.
func (h *Host) DialFrom(ctx context.Context, name, network string, port uint16, address netip.AddrPort, timeout time.Duration) (net.Conn,
	error) {
	f, err := h.socket(ctx, request{Op: "dial", Name: name, Network: network, Port: port, Address: address.String(), Timeout: int64(timeout)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return net.FileConn(f)
}

// Ping sends one echo request in a namespace and waits for its reply. It returns
// the round trip time.
func (h *Host) Ping(ctx context.Context, name string, to netip.Addr, e Echo, timeout time.Duration) (time.Duration, error) {
	network := "ping4"
	if to.Is6() {
		network = "ping6"
	}
	f, err := h.socket(ctx, request{Op: "dial", Name: name, Network: network, Address: netip.AddrPortFrom(to, 0).String(),
		Timeout: int64(timeout)})
	if err != nil {
		return 0, err
	}
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if e != (Echo{}) {
		if err := SetDontFragment(c, e.DontFragment); err != nil {
			return 0, err
		}
	}
	return ping(ctx, c, to.Is6(), e.Size, timeout)
}

func (h *Host) socket(ctx context.Context, q request) (*os.File, error) {
	r, err := h.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	fd, err := r.onlyFile()
	if err != nil {
		return nil, err
	}
	return fileOf(fd, q.Address), nil
}

// Process is a program that was started in a namespace.
type Process struct {
	// PID is its process id in the helper's PID namespace.
	PID   int
	h     *Host
	exit  chan Exit
	alone bool // signals are not for its group
}

// Start starts a program with three open files as its standard input, output and
// error. The error wraps exec.ErrNotFound when there is no such program.
func (h *Host) Start(ctx context.Context, name string, c Command, stdio [3]*os.File) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no program to start")
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Dir == "" {
		c.Dir, _ = os.Getwd()
	}
	return h.launch(ctx, request{Op: "start", Name: name, Command: &c}, stdio)
}

// launch starts a program with three open files.
func (h *Host) launch(ctx context.Context, q request, stdio [3]*os.File) (*Process, error) {
	var fds []int
	for _, f := range stdio {
		fds = append(fds, int(f.Fd()))
	}
	r, err := h.ask(ctx, q, fds...)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Process{PID: r.PID, h: h, exit: h.exits[r.PID]}, nil
}

// Wait waits until the program has ended, and returns how. It is to be called once.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	defer func() {
		p.h.mu.Lock()
		delete(p.h.exits, p.PID)
		p.h.mu.Unlock()
	}()
	select {
	case e := <-p.exit:
		return e, nil
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	case <-p.h.ends:
		return Exit{}, p.h.ended()
	}
}

// Memory is the resident memory of the program in bytes, with what processes share divided
// among them, and without programs that it has started; 0 when it has ended.
func (p *Process) Memory(ctx context.Context) (uint64, error) {
	r, err := p.h.ask(ctx, request{Op: "memory", PID: p.PID})
	if err != nil {
		return 0, err
	}
	return r.Usage.Memory, nil
}

// Signal sends a signal to the program and all that it has started; to the first program
// of a container alone, whose end is theirs.
func (p *Process) Signal(s syscall.Signal) error {
	_, err := p.h.ask(context.Background(), request{Op: "signal", PID: p.PID, Signal: int(s), Only: p.alone})
	return err
}
