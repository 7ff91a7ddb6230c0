package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/internal/fdmsg"
)

// message goes from the caller to the network: first a call, then signals.
type message struct {
	Verb   string          `json:",omitempty"`
	Args   json.RawMessage `json:",omitempty"`
	Signal int             `json:",omitempty"`
}

// result ends a call.
type result struct {
	Code  int
	Error string `json:",omitempty"`
}

func prefix() string { return "@winlab/" + strconv.Itoa(os.Getuid()) + "/" }

func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: prefix() + name}
}

// Server takes calls for one network.
type Server struct {
	l      *net.UnixListener
	handle Handler
	calls  sync.WaitGroup
	ctx    context.Context
	stop   context.CancelFunc
}

// Listen takes calls under a name. The error says when another network has it.
func Listen(name string, handle Handler) (*Server, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", address(name))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("a lab named %s is already up; end it with winlab down %s, or give this one another name with --name", name, name)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{l: l, handle: handle}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.calls.Add(1)
	go s.accept()
	return s, nil
}

// Close ends all calls and waits for them.
func (s *Server) Close() {
	s.stop()
	_ = s.l.Close()
	s.calls.Wait()
}

func (s *Server) accept() {
	defer s.calls.Done()
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			return
		}
		s.calls.Add(1)
		go func() {
			defer s.calls.Done()
			s.serve(c)
		}()
	}
}

// peer is the user at the other end.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) { cred, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if got != nil {
		return 0, got
	}
	return int(cred.Uid), nil
}

func (s *Server) serve(uc *net.UnixConn) {
	c := fdmsg.New(uc)
	defer func() { _ = c.Close() }()
	if uid, err := peer(uc); err != nil || uid != os.Getuid() && uid != 0 {
		_ = c.Send(result{Code: 2, Error: "the network belongs to another user"})
		return
	}
	var m message
	fds, err := c.Receive(&m)
	if err != nil {
		return
	}
	if len(fds) != 3 {
		fdmsg.CloseAll(fds)
		_ = c.Send(result{Code: 2, Error: fmt.Sprintf("%d files instead of three", len(fds))})
		return
	}
	signals := make(chan int, 16)
	call := Call{Verb: m.Verb, Args: m.Args, Signals: signals}
	for i, fd := range fds {
		call.Stdio[i] = os.NewFile(uintptr(fd), []string{"stdin", "stdout", "stderr"}[i])
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() {
		defer cancel() // the caller has gone
		for {
			var m message
			extra, err := c.Receive(&m)
			if err != nil {
				return
			}
			fdmsg.CloseAll(extra)
			if m.Signal != 0 {
				select {
				case signals <- m.Signal:
				default:
				}
			}
		}
	}()
	code, err := s.handle(ctx, call)
	for _, f := range call.Stdio {
		_ = f.Close()
	}
	r := result{Code: code}
	if err != nil {
		if r.Error = err.Error(); r.Code == 0 {
			r.Code = 2
		}
	}
	_ = c.Send(r)
}

// Remote is an error of the network's side.
type Remote struct{ Text string }

func (e *Remote) Error() string { return e.Text }

// Do makes a call and waits for its end. Signals are passed on. The error wraps
// [ErrNone] when no network has the name; a *[Remote] is what the network's side
// says.
func Do(ctx context.Context, name, verb string, args any, stdio [3]*os.File, signals <-chan os.Signal) (code int, err error) {
	uc, err := net.DialUnix("unixpacket", nil, address(name))
	if err != nil {
		return 2, fmt.Errorf("%s: %w", name, ErrNone)
	}
	c := fdmsg.New(uc)
	defer func() { _ = c.Close() }()
	data, err := json.Marshal(args)
	if err != nil {
		return 2, err
	}
	if err := c.Send(message{Verb: verb, Args: data}, int(stdio[0].Fd()), int(stdio[1].Fd()), int(stdio[2].Fd())); err != nil {
		return 2, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok {
					_ = c.Send(message{Signal: int(n)})
				}
			case <-ctx.Done():
				_ = c.Close()
				return
			case <-ended:
				return
			}
		}
	}()
	var r result
	fds, err := c.Receive(&r)
	fdmsg.CloseAll(fds)
	switch {
	case ctx.Err() != nil:
		return 2, ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return 2, fmt.Errorf("lab %s went down", name)
	case err != nil:
		return 2, err
	case r.Error != "":
		return r.Code, &Remote{r.Error}
	}
	return r.Code, nil
}

// Names lists the networks of this user that run.
func Names() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var names []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			continue
		}
		// Listening sockets only: __SO_ACCEPTCON (include/uapi/linux/net.h).
		if flags, err := strconv.ParseUint(fields[3], 16, 32); err != nil || flags&(1<<16) == 0 {
			continue
		}
		if name, ok := strings.CutPrefix(fields[7], prefix()); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), lines.Err()
}
