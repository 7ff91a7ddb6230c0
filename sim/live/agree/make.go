package agree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// How long a program waits. Where the trace says that nothing comes, a while must do;
// the kernel sends a SYN again after a second. Where something must come, a busy
// machine has time.
const (
	waitForNothing = 1500 * time.Millisecond
	waitForEither  = 4 * time.Second
	waitForAnswer  = 15 * time.Second
	sendAgain      = time.Second // a datagram
)

// maker makes flows on a network.
type maker struct {
	n        *live.Net
	observed *observed
	// more counts the connections that were made to see how a Service spreads them.
	more atomic.Uint32
}

// Ports of senders: what a load balancer picks by its hash must not depend on those
// that the kernel picks. The first are for flows of one connection, the others for
// several, and the last for the spread over backends; all lie below node ports, and
// those that the kernel gives.
const (
	firstPort, somePorts     = 12000, 9000
	firstOfMany, manyPorts   = 21000, 3000
	firstSpread, spreadPorts = 24000, 6000
)

// senderPort is the port of connection k of a flow.
func senderPort(f *Flow, number, k int) uint16 {
	switch {
	case f.SourcePort != 0:
		return f.SourcePort
	case f.Connections > 1:
		return uint16(firstOfMany + (number*37+k)%manyPorts)
	}
	return uint16(firstPort + number%somePorts)
}

// flow makes one flow, which has a number among all.
func (m *maker) flow(ctx context.Context, f *Flow, number int) Result {
	var r Result
	if f.Lookup != nil {
		r.Verdict, r.Got, r.Differs = m.lookup(ctx, f, f.Lookup)
		return r
	}
	t := f.Trace
	if len(t.Names) > 0 {
		if r.Verdict, r.Got, r.Differs = m.lookup(ctx, f, &t.Names[0]); r.Differs != "" || len(t.Paths) == 0 {
			return r
		}
	}
	paths := Ways(t)
	wait := waitForEither
	switch answers(paths) {
	case 0:
		wait = waitForNothing
	case len(paths):
		wait = waitForAnswer
	}
	dst, err := netip.ParseAddr(t.Flow.Dst)
	if err != nil {
		r.Differs = "no live flow: " + err.Error()
		return r
	}
	for k := range max(f.Connections, 1) {
		s, err := m.send(ctx, f, senderPort(f, number, k), netip.AddrPortFrom(dst, t.Flow.DstPort), wait)
		if err != nil {
			r.Differs = "no live flow: " + err.Error()
			return r
		}
		m.observe(ctx, f, senderPort(f, number, k), netip.AddrPortFrom(dst, t.Flow.DstPort), s)
		r.Verdict, r.Got = s.verdict, s.String()
		_ = m.n.Do(func(c *lab.Cluster) error { r.Differs = differsFrom(c, paths, s); return nil })
		if r.Differs != "" {
			return r
		}
	}
	r.Differs = m.spread(ctx, f, paths, netip.AddrPortFrom(dst, t.Flow.DstPort))
	return r
}

// How many connections are made through a Service that spreads them: at least so many,
// and for each backend of the trace as many more until all of them have answered; with
// three of them one is missed once in 10^10 times.
const least, each = 10, 20

// spread holds the backends that answer against those of the trace, as sets: it says
// which of them did not answer, or what else came.
func (m *maker) spread(ctx context.Context, f *Flow, paths []*trace.Path, to netip.AddrPort) (differs string) {
	missing := m.backends(f, paths, to)
	tries := each * len(missing)
	for try := range tries {
		if len(missing) == 0 && try >= least {
			return ""
		}
		port := uint16(firstSpread + m.more.Add(1)%spreadPorts)
		s, err := m.send(ctx, f, port, to, waitForAnswer)
		if err != nil {
			return "no live flow: " + err.Error()
		}
		_ = m.n.Do(func(c *lab.Cluster) error {
			if differs = differsFrom(c, paths, s); differs != "" {
				return nil
			}
			missing = slices.DeleteFunc(missing, func(p *trace.Path) bool { return matches(c, p, s) })
			return nil
		})
		if differs != "" {
			return differs
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("the trace says %s, too; in %d connections it did not answer", describe(missing[0]), tries)
	}
	return ""
}

// backends are the paths of a trace, one for each backend that a client reaches from
// different ports; none where one of them does not deliver, and where a client stays with
// a backend or the Service has no other.
func (m *maker) backends(f *Flow, paths []*trace.Path, to netip.AddrPort) (all []*trace.Path) {
	if f.Connections > 1 || f.SourcePort != 0 || f.Idle != "" || len(f.Meanwhile) > 0 || f.Size != 0 || f.Trace.Flow.Protocol == "ping" ||
		to.Port() == dnsPort {
		return nil
	}
	spreads := false
	_ = m.n.Do(func(c *lab.Cluster) error {
		proto := map[string]packet.Proto{"tcp": packet.TCP, "udp": packet.UDP}[f.Trace.Flow.Protocol]
		s := c.Frontend(to.Addr(), to.Port(), proto)
		spreads = s != nil && !s.ClientIPAffinity && len(s.Endpoints) > 1
		return nil
	})
	for _, p := range paths {
		if !spreads || p.Verdict != trace.Delivered || p.Seen == nil {
			return nil
		}
		if !slices.ContainsFunc(all, func(o *trace.Path) bool { return o.Seen.Dst == p.Seen.Dst }) {
			all = append(all, p)
		}
	}
	return all
}

// send makes one connection, datagram or echo request.
func (m *maker) send(ctx context.Context, f *Flow, port uint16, to netip.AddrPort, wait time.Duration) (*seen, error) {
	if f.Trace.Flow.Protocol == "ping" {
		return m.ping(ctx, f, to, wait)
	}
	network := f.Trace.Flow.Protocol
	c, err := m.n.DialFrom(ctx, f.From, network, port, to, wait)
	if err != nil {
		return ended(err)
	}
	defer func() { _ = c.Close() }()
	if err := fragments(c, f); err != nil {
		return nil, err
	}
	talk := talkTCP
	switch {
	case f.Size != 0 && network == "udp":
		talk = talkSized(append([]byte(live.EchoDatagram), payload(f.Size-len(live.EchoDatagram))...))
	case f.Size != 0:
		talk = talkSized(payload(f.Size))
	case to.Port() == dnsPort && network == "udp":
		talk = talkDNS
	case to.Port() == dnsPort:
		talk = talkDNSStream
	case network == "udp":
		talk = talkUDP
	}
	r := bufio.NewReader(c)
	s, err := talk(c, r, wait)
	if err != nil || !hasSecond(f) || s.verdict != trace.Delivered {
		return s, err
	}
	if err := m.passTime(f); err != nil {
		return nil, err
	}
	return talk(c, r, wait)
}

// hasSecond reports whether it is a later packet of the connection that is judged.
func hasSecond(f *Flow) bool { return f.Idle != "" || len(f.Meanwhile) > 0 }

// passTime does what a lab says for the time between the first and the judged packet.
func (m *maker) passTime(f *Flow) error {
	if f.Idle != "" {
		idle, err := time.ParseDuration(f.Idle)
		if err != nil {
			return err
		}
		m.n.Skip(idle)
	}
	if len(f.Meanwhile) == 0 {
		return nil
	}
	return m.n.Do(func(c *lab.Cluster) error { return c.Call(f.Meanwhile) })
}

// ping sends an echo request, and a second one when that is the one that is judged.
func (m *maker) ping(ctx context.Context, f *Flow, to netip.AddrPort, wait time.Duration) (*seen, error) {
	e := netns.Echo{Size: f.Size, DontFragment: f.DontFragment}
	_, err := m.n.PingWith(ctx, f.From, to.Addr(), e, wait)
	if err == nil && hasSecond(f) {
		if err := m.passTime(f); err != nil {
			return nil, err
		}
		_, err = m.n.PingWith(ctx, f.From, to.Addr(), e, wait)
	}
	if err != nil {
		return ended(err)
	}
	return &seen{verdict: trace.Delivered}, nil
}

// dnsPort is where name servers of the model answer, with DNS messages only.
const dnsPort = 53

// talkTCP asks a responder who it is.
func talkTCP(c net.Conn, r *bufio.Reader, wait time.Duration) (*seen, error) {
	_ = c.SetDeadline(time.Now().Add(wait))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: winlab\r\n\r\n"); err != nil {
		return ended(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return ended(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return ended(err)
	}
	return greeted(string(body))
}

// talkUDP sends a datagram, and again while nothing comes.
func talkUDP(c net.Conn, _ *bufio.Reader, wait time.Duration) (*seen, error) {
	answer, err := ask(c, []byte("who is there?"), wait)
	if err != nil {
		return ended(err)
	}
	return greeted(string(answer))
}

// ask sends a datagram, and again while nothing comes.
func ask(c net.Conn, question []byte, wait time.Duration) ([]byte, error) {
	buf := make([]byte, 1<<16)
	end := time.Now().Add(wait)
	for {
		if _, err := c.Write(question); err != nil {
			return nil, err
		}
		until := time.Now().Add(sendAgain)
		if until.After(end) {
			until = end
		}
		_ = c.SetReadDeadline(until)
		n, err := c.Read(buf)
		if err == nil {
			return buf[:n], nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || until == end {
			return nil, err
		}
	}
}

func question() []byte {
	q, err := new(mdns.Msg).SetQuestion("kubernetes.default.svc.cluster.local.", mdns.TypeA).Pack()
	if err != nil {
		panic(err) // a constant
	}
	return q
}

func talkDNS(c net.Conn, _ *bufio.Reader, wait time.Duration) (*seen, error) {
	if _, err := ask(c, question(), wait); err != nil {
		return ended(err)
	}
	return &seen{verdict: trace.Delivered}, nil
}

func talkDNSStream(c net.Conn, r *bufio.Reader, wait time.Duration) (*seen, error) {
	_ = c.SetDeadline(time.Now().Add(wait))
	q := question()
	if _, err := c.Write(append([]byte{byte(len(q) >> 8), byte(len(q))}, q...)); err != nil {
		return ended(err)
	}
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return ended(err)
	}
	return &seen{verdict: trace.Delivered}, nil
}

// greeted reads what a responder says: its machine, its address and the client's.
func greeted(text string) (*seen, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 3 {
		return nil, fmt.Errorf("the answer is not that of a responder: %q", text)
	}
	s := &seen{verdict: trace.Delivered, machine: lines[0]}
	var err, err2 error
	s.server, err = netip.ParseAddrPort(strings.TrimPrefix(lines[1], "server "))
	s.client, err2 = netip.ParseAddrPort(strings.TrimPrefix(lines[2], "client "))
	return s, errors.Join(err, err2)
}

// ended is what an error tells of a flow. Errors that come from the helper process
// are texts.
func ended(err error) (*seen, error) {
	text := err.Error()
	is := func(errs ...error) bool {
		for _, e := range errs {
			if errors.Is(err, e) || strings.HasSuffix(text, e.Error()) {
				return true
			}
		}
		return false
	}
	switch {
	case is(syscall.ECONNREFUSED, syscall.ECONNRESET):
		return &seen{verdict: trace.Rejected}, nil
	case is(os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ETIMEDOUT):
		return &seen{verdict: trace.Dropped}, nil
	case is(syscall.EMSGSIZE):
		return &seen{verdict: trace.Dropped, lost: trace.PacketTooBig, unsent: true, note: "the kernel says: message too long"}, nil
	case is(syscall.ENETUNREACH, syscall.EHOSTUNREACH):
		return &seen{verdict: trace.Dropped, unsent: true, note: "the kernel says: unreachable"}, nil
	case is(io.EOF, io.ErrUnexpectedEOF):
		return &seen{verdict: trace.Dropped, note: "accepted, and closed without an answer"}, nil
	}
	return nil, err
}
