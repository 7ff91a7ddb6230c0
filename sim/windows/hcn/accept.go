package hcn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// limits protect the service from its clients, and other clients from them. None is
// HNS's: RPC has limits of its own, which no document states for HNS.
type limits struct {
	// conns is how many clients the service speaks with at once.
	conns int
	// hello and request are how long a client may take from the first byte of its hello,
	// or of a request, to the last; answer is how long it may leave an answer unread.
	// Between requests a client may be silent for as long as it likes: kube-proxy is.
	hello, request, answer time.Duration
}

var defaultLimits = limits{conns: 4096, hello: 10 * time.Second, request: time.Minute, answer: time.Minute}

// The pauses after a failed accept, as in net/http: they double up to the longest.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

// passing are the errors of accept(2) that say nothing about the listener: no
// descriptors or memory at the moment, or a client that failed in the queue.
var passing = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN,
	syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPROTO, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
}

// accept returns the next client of a listener. An error that passes, such as a process out of
// file descriptors (EMFILE) or a client that went away in the queue (ECONNABORTED),
// is not the end of the service: it is logged, and tried again after a pause. An
// error means that the listener is gone.
func (v *Server) accept(l net.Listener) (net.Conn, error) {
	var pause time.Duration
	for {
		c, err := l.Accept()
		if err == nil {
			if pause > 0 {
				v.service.log.Printf("clients are accepted again")
			}
			return c, nil
		}
		if !slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) }) {
			return nil, err
		}
		if pause == 0 { // once, not for every attempt
			v.service.log.Printf("%v; no client is accepted until this problem is gone", err)
		}
		pause = min(max(2*pause, firstPause), longestPause)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-v.closing:
			wait.Stop()
			return nil, err
		}
	}
}

// admit keeps a connection, unless the server is closed or has as many clients as
// it takes.
func (v *Server) admit(c net.Conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.done:
	case len(v.conns) >= v.limits.conns:
		v.service.log.Printf("%s: %d clients are connected, which is the limit; the connection is closed", clientAddress(c), len(v.conns))
	default:
		v.conns[c] = true
		v.wg.Add(1)
		return true
	}
	return false
}

// bounded is a connection whose answers must be read in time. A client that asks and
// never reads would hold its goroutine for ever.
type bounded struct {
	net.Conn
	turns  *turns // nil where there are none
	answer time.Duration
}

// Write sets a deadline for what does not go out at once.
func (b bounded) Write(p []byte) (int, error) {
	now := 0
	if b.turns != nil {
		if now = b.turns.writeNow(p); now == len(p) {
			return now, nil
		}
	}
	if err := b.SetWriteDeadline(time.Now().Add(b.answer)); err != nil {
		return now, err
	}
	n, err := b.Conn.Write(p[now:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the client did not read its answers for %v: %w", b.answer, err)
	}
	return now + n, err
}

// readWithin calls read, which must end in time. what is what it reads, for the error.
func readWithin(c net.Conn, most time.Duration, what string, read func() error) error {
	if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	if err := read(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%s did not arrive completely within %v", what, most)
		}
		return err
	}
	return c.SetReadDeadline(time.Time{})
}
