package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
)

// served are the responders of a machine: small programs for the ports on which the
// lab lets something listen.
type served struct {
	mu   sync.Mutex
	all  map[*host.Listener]io.Closer
	open map[io.Closer]bool // connections
	done bool
}

func newServed() *served {
	return &served{all: map[*host.Listener]io.Closer{}, open: map[io.Closer]bool{}}
}

func (v *served) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done = true
	for _, c := range v.all {
		_ = c.Close()
	}
	for c := range v.open {
		_ = c.Close()
	}
}

// track keeps an open connection, so that it ends with the machine; false when that
// has ended already.
func (v *served) track(c io.Closer) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done {
		_ = c.Close()
		return false
	}
	v.open[c] = true
	return true
}

func (v *served) untrack(c io.Closer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, c)
	_ = c.Close()
}

// respond starts responders for what listens on a machine now, and ends those of
// what listens no more. Of several on one port the last counts, as in the model.
func (n *Net) respond(ctx context.Context, s *space) error {
	type key struct {
		proto packet.Proto
		addr  netip.AddrPort
	}
	want := map[key]*host.Listener{}
	n.mu.Lock()
	listeners := s.entry.Stack().Listeners()
	v6 := false
	for _, a := range s.spec.Addrs {
		v6 = v6 || a.Addr().Is6()
	}
	for _, l := range listeners {
		addr := l.Addr
		if !addr.IsValid() {
			if addr = netip.IPv4Unspecified(); v6 {
				addr = netip.IPv6Unspecified()
			}
		}
		want[key{l.Proto, netip.AddrPortFrom(addr, l.Port)}] = l
	}
	n.mu.Unlock()
	keep := map[*host.Listener]bool{}
	for _, l := range want {
		keep[l] = true
	}
	v := s.served
	v.mu.Lock()
	for l, c := range v.all {
		if !keep[l] {
			_ = c.Close()
			delete(v.all, l)
		}
	}
	v.mu.Unlock()
	for k, l := range want {
		v.mu.Lock()
		running := v.all[l] != nil
		v.mu.Unlock()
		if running {
			continue
		}
		c, err := n.listen(ctx, s, k.proto, k.addr, l)
		if err != nil {
			// A program of the user may have the port.
			n.o.Log(fmt.Sprintf("%s %s port %d: %v", s.name, k.proto, k.addr.Port(), err))
			continue
		}
		if c == nil {
			continue
		}
		v.mu.Lock()
		if v.done {
			_ = c.Close()
		} else {
			v.all[l] = c
		}
		v.mu.Unlock()
	}
	return nil
}

func (n *Net) listen(ctx context.Context, s *space, proto packet.Proto, addr netip.AddrPort, l *host.Listener) (io.Closer, error) {
	switch proto {
	case packet.TCP:
		ln, err := n.host.Listen(ctx, s.name, addr)
		if err != nil {
			return nil, err
		}
		go n.acceptAll(s, ln, l)
		return ln, nil
	case packet.UDP:
		pc, err := n.host.ListenPacket(ctx, s.name, addr)
		if err != nil {
			return nil, err
		}
		if len(l.Backends) > 0 {
			go n.proxyDatagrams(s, pc, l)
		} else {
			go n.answerAll(s, pc, l)
		}
		return pc, nil
	}
	return nil, nil
}

func (n *Net) acceptAll(s *space, ln net.Listener, l *host.Listener) {
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, or reset before it was taken
			continue
		}
		if !s.served.track(c) {
			return
		}
		go func() {
			defer s.served.untrack(c)
			switch {
			case len(l.Backends) > 0:
				n.proxy(s, c, l)
			case l.Answer != nil:
				n.answerStream(s, c, l)
			default:
				serveConn(c, s.name)
			}
		}()
	}
}

// Greeting is the first line of what a responder says: its machine.
func greeting(machine string, server, client net.Addr) string {
	return fmt.Sprintf("%s\nserver %s\nclient %s\n", machine, unmap(server), unmap(client))
}

func unmap(a net.Addr) string {
	if p, err := netip.ParseAddrPort(a.String()); err == nil {
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()).String()
	}
	return a.String()
}

// serveConn answers HTTP requests with who serves whom, and sends back what is no
// HTTP.
func serveConn(c net.Conn, machine string) {
	who := greeting(machine, c.LocalAddr(), c.RemoteAddr())
	r := bufio.NewReader(c)
	for {
		start, err := r.Peek(4)
		if err != nil || !isHTTP(start) {
			if n := r.Buffered(); n > 0 {
				b, _ := r.Peek(n)
				_, _ = c.Write(b)
				_, _ = r.Discard(n)
			}
			if err == nil {
				_, _ = io.Copy(c, r)
			}
			return
		}
		req, err := http.ReadRequest(r)
		if err != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			return
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, 1<<20))
		resp := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: req, Close: req.Close,
			Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Server": {"winlab"}},
			ContentLength: int64(len(who)), Body: io.NopCloser(bytes.NewReader([]byte(who)))}
		if resp.Write(c) != nil || req.Close {
			return
		}
	}
}

func isHTTP(b []byte) bool {
	for _, m := range []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC"} {
		if string(b) == m {
			return true
		}
	}
	return false
}

// EchoDatagram begins a datagram that a responder sends back as it is.
const EchoDatagram = "echo\n"

// answerAll answers datagrams: with what the simulated program says (a name
// server), else with the machine's name, both addresses and the datagram; one that
// begins with EchoDatagram is sent back as it is.
func (n *Net) answerAll(s *space, pc net.PacketConn, l *host.Listener) {
	buf := make([]byte, 1<<16)
	for {
		size, from, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error of an earlier answer
		}
		data := bytes.Clone(buf[:size])
		if l.Answer != nil {
			go func() {
				if a := n.ask(s, l, data); a != nil {
					_, _ = pc.WriteTo(a, from)
				}
			}()
			continue
		}
		if bytes.HasPrefix(data, []byte(EchoDatagram)) {
			_, _ = pc.WriteTo(data, from)
			continue
		}
		_, _ = pc.WriteTo(append([]byte(greeting(s.name, pc.LocalAddr(), from)), data...), from)
	}
}

// answerStream answers DNS over TCP, whose messages have their length in front.
func (n *Net) answerStream(s *space, c net.Conn, l *host.Listener) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, int(size[0])<<8|int(size[1]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		a := n.ask(s, l, q)
		if a == nil {
			return
		}
		if _, err := c.Write(append([]byte{byte(len(a) >> 8), byte(len(a))}, a...)); err != nil {
			return
		}
	}
}

// upstreamTimeout is how long a name server waits for another one.
const upstreamTimeout = 2 * time.Second

// ask lets a name server of the model answer. What it must ask others is asked for
// real, from its machine.
func (n *Net) ask(s *space, l *host.Listener, query []byte) []byte {
	n.names.Lock()
	defer n.names.Unlock()
	const maxAsked = 16
	for range maxAsked {
		n.mu.Lock()
		answer := l.Answer(query)
		open := n.c.OpenQuestions()
		n.mu.Unlock()
		if len(open) == 0 {
			n.mu.Lock()
			n.c.ForgetAnswers()
			n.mu.Unlock()
			return answer
		}
		for _, q := range open {
			reply := n.askServer(q)
			n.mu.Lock()
			n.c.Answered(q, reply)
			n.mu.Unlock()
		}
	}
	return nil
}

func (n *Net) askServer(q cluster.Question) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
	defer cancel()
	c, err := n.Dial(ctx, q.From.String(), "udp", netip.AddrPortFrom(q.Server, 53), upstreamTimeout)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(upstreamTimeout))
	if _, err := c.Write(q.Query); err != nil {
		return nil
	}
	buf := make([]byte, 1<<16)
	size, err := c.Read(buf)
	if err != nil {
		return nil
	}
	return buf[:size]
}

// proxy is kube-proxy in userspace mode: it opens a connection of its own to a
// backend.
func (n *Net) proxy(s *space, c net.Conn, l *host.Listener) {
	n.mu.Lock()
	to := l.Backends[n.turn(l)]
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := n.host.Dial(ctx, s.name, "tcp", to, 10*time.Second)
	if err != nil || !s.served.track(b) {
		return
	}
	defer s.served.untrack(b)
	go func() {
		_, _ = io.Copy(b, c)
		if w, ok := b.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
	}()
	_, _ = io.Copy(c, b)
}

// proxyIdle is how long the user-space proxy keeps a conversation by UDP in which nothing
// is said (kube-proxy --udp-timeout, 250ms if nothing is given).
const proxyIdle = 250 * time.Millisecond

// maxProxied bounds the clients for which a user-space proxy has a socket.
const maxProxied = 1 << 10

// proxyDatagrams is kube-proxy in userspace mode for UDP: each client has a socket of its
// own to a backend, until nothing comes any more.
func (n *Net) proxyDatagrams(s *space, pc net.PacketConn, l *host.Listener) {
	var mu sync.Mutex
	open := map[string]net.Conn{}
	buf := make([]byte, 1<<16)
	for {
		size, from, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return // what is open ends by its idle time
		}
		if err != nil {
			continue // an ICMP error of an earlier answer
		}
		mu.Lock()
		b, full := open[from.String()], len(open) >= maxProxied
		mu.Unlock()
		if b == nil {
			if full {
				continue
			}
			n.mu.Lock()
			to := l.Backends[n.turn(l)]
			n.mu.Unlock()
			b, err = n.host.Dial(context.Background(), s.name, "udp", to, upstreamTimeout)
			if err != nil || !s.served.track(b) {
				continue
			}
			mu.Lock()
			open[from.String()] = b
			mu.Unlock()
			go func() {
				returnDatagrams(b, pc, from)
				mu.Lock()
				delete(open, from.String())
				mu.Unlock()
				s.served.untrack(b)
			}()
		}
		_ = b.SetReadDeadline(time.Now().Add(proxyIdle))
		_, _ = b.Write(buf[:size])
	}
}

// returnDatagrams hands a client what its backend says, until that is silent.
func returnDatagrams(from net.Conn, by net.PacketConn, client net.Addr) {
	buf := make([]byte, 1<<16)
	for {
		size, err := from.Read(buf)
		if err != nil {
			return
		}
		_, _ = by.WriteTo(buf[:size], client)
		_ = from.SetReadDeadline(time.Now().Add(proxyIdle))
	}
}

// turn is the backend whose turn it is.
func (n *Net) turn(l *host.Listener) int {
	if n.turns == nil {
		n.turns = map[*host.Listener]int{}
	}
	i := n.turns[l] % len(l.Backends)
	n.turns[l]++
	return i
}
