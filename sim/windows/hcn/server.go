package hcn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"unicode"
)

// Server answers the wire protocol on a loopback address.
type Server struct {
	service *Service
	// listeners are that of TCP, and the one beside it, see listenNear.
	listeners []net.Listener

	limits  limits
	closing chan struct{} // closed by Close

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
	wg    sync.WaitGroup
}

// Listen listens on a loopback address, "127.0.0.1:0" for a free port. It refuses
// any other: whoever can reach the service can change the node's network.
func Listen(s *Service, address string) (*Server, error) {
	if _, err := loopback(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	near, err := listenNear(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	v := On(s, l)
	if near != nil {
		v.listeners = append(v.listeners, near)
	}
	return v, nil
}

// On serves on a listener of the caller's, for example one in a network namespace. It
// must be on loopback: whoever can reach it can change the node's network. Close closes
// it.
func On(s *Service, l net.Listener) *Server {
	s.started()
	return &Server{service: s, listeners: []net.Listener{l}, limits: defaultLimits, closing: make(chan struct{}), conns: map[net.Conn]bool{}}
}

func loopback(address string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Is4() || !a.Addr().IsLoopback() {
		return a, fmt.Errorf("address %q: the service listens only on loopback; write 127.0.0.1:PORT, with port 0 for a free port", address)
	}
	return a, nil
}

// Addr returns where the server listens, "127.0.0.1:40123".
func (v *Server) Addr() string { return v.listeners[0].Addr().String() }

// Serve accepts clients until ctx ends or Close is called; then all connections
// are closed. It returns nil when that is how it ended.
func (v *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = v.Close() })
	defer stop()
	ended := make(chan error, len(v.listeners))
	for _, l := range v.listeners {
		go func() { ended <- v.acceptAll(l) }()
	}
	err := <-ended
	v.mu.Lock()
	if v.done {
		err = nil
	}
	v.mu.Unlock()
	err = errors.Join(err, v.Close())
	for range v.listeners[1:] {
		<-ended // by Close
	}
	v.wg.Wait()
	return err
}

// acceptAll serves the clients of a listener until that is gone.
func (v *Server) acceptAll(l net.Listener) error {
	for {
		c, err := v.accept(l)
		if err != nil {
			return err
		}
		if !v.admit(c) {
			_ = c.Close()
			continue
		}
		go v.serve(c)
	}
}

// Close stops the server and cuts off its clients.
func (v *Server) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done {
		return nil
	}
	v.done = true
	close(v.closing)
	for c := range v.conns {
		_ = c.Close()
	}
	var errs []error
	for _, l := range v.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func (v *Server) serve(c net.Conn) {
	defer v.wg.Done()
	name := clientAddress(c)
	err := v.converse(c, &name)
	v.mu.Lock()
	delete(v.conns, c)
	done := v.done
	v.mu.Unlock()
	_ = c.Close()
	if err != nil && !errors.Is(err, io.EOF) && !done {
		v.service.log.Printf("%s: %v; the connection is closed", name, err)
	}
}

// clientAddress is where a client is, until it says its name.
func clientAddress(c net.Conn) string {
	if a := c.RemoteAddr(); a.Network() == "tcp" {
		return a.String()
	}
	return "a program of this machine"
}

// converse speaks with one client until it ends or errs.
func (v *Server) converse(conn net.Conn, name *string) error {
	c := bounded{conn, turnsOf(conn), v.limits.answer}
	r := bufio.NewReader(c)
	var version uint16
	var given string
	err := readWithin(c, v.limits.hello, "the hello", func() (err error) {
		version, given, err = readHello(r)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := c.Write(appendHello(nil, "")); err != nil {
		return err
	}
	if version != wireVersion {
		return fmt.Errorf("version %d of the protocol; this service speaks %d", version, wireVersion)
	}
	if given != "" {
		*name = printable(given)
	}
	session := v.service.session(*name)
	defer session.close()
	t := talk{server: v, conn: c, session: session, in: frames{most: maxRequest}}
	begun, _ := r.Peek(r.Buffered()) // what the client sent behind its hello
	for len(begun) > 0 {
		n := copy(t.in.room(), begun)
		t.in.came(n)
		begun = begun[n:]
	}
	return t.run()
}

// printable returns a client's name for logs: it must not make lines of its own there.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

// watch sends entries of the call log until the client ends. The first response
// is empty: from then on nothing is missed.
func (v *Server) watch(c net.Conn, seq uint32) error {
	entries, stop := v.service.watch()
	defer stop()
	go func() { // notices that the client has gone; it has nothing more to say
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		stop()
	}()
	send := func(line []byte) error {
		_, err := c.Write(appendResponse(nil, &response{Seq: seq, Output: string(line)}))
		return err
	}
	err := send(nil)
	for line := range entries {
		if err != nil {
			break
		}
		err = send(bytes.TrimSuffix(line, []byte("\n")))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil // a watcher ends by going away
}
