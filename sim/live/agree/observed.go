package agree

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/trace"
)

// observed is what the network itself saw of connections: which source an echo request
// had where it arrived, and why a packet went no further. A program sees neither.
type observed struct {
	mu    sync.Mutex
	all   map[attempt][]live.Connection
	added chan struct{} // closed with the next one
	stop  func()
}

// attempt is a connection as its client knows it. An echo request has no ports.
type attempt struct {
	machine, protocol string
	port              uint16
	to                netip.AddrPort
}

func observe(n *live.Net) *observed {
	events, _, stop := n.Watch()
	o := &observed{all: map[attempt][]live.Connection{}, added: make(chan struct{}), stop: stop}
	go func() {
		for c := range events {
			o.mu.Lock()
			a := attempt{c.From, c.Protocol, c.Source.Port(), c.Destination}
			o.all[a] = append(o.all[a], c)
			close(o.added)
			o.added = make(chan struct{})
			o.mu.Unlock()
		}
	}()
	return o
}

// waitForEvent is how long the network may take to say what became of a connection of
// which the program has the end already.
const waitForEvent = 5 * time.Second

// notSeen is not a reason of the network: it saw nothing of a connection.
const notSeen trace.Reason = "not-seen"

// get waits for what the network saw of a connection that was answered or not, and forgets
// it: the same ports may come again, and several flows send echo requests to one machine.
func (o *observed) get(ctx context.Context, a attempt, answered bool, wait time.Duration) (c live.Connection, ok bool) {
	late := time.After(wait)
	for {
		o.mu.Lock()
		i := slices.IndexFunc(o.all[a], func(c live.Connection) bool { return (c.Verdict == trace.Delivered) == answered })
		if i >= 0 {
			c, ok = o.all[a][i], true
			o.all[a] = slices.Delete(o.all[a], i, i+1)
		}
		more := o.added
		o.mu.Unlock()
		if ok {
			return c, true
		}
		select {
		case <-more:
		case <-late:
			return c, false
		case <-ctx.Done():
			return c, false
		}
	}
}

// protocolOf is a flow's protocol as the network names it.
func protocolOf(f *Flow, to netip.Addr) string {
	switch p := f.Trace.Flow.Protocol; {
	case p == "ping" && to.Is6():
		return "ICMPv6"
	case p == "ping":
		return "ICMP"
	default:
		return strings.ToUpper(p)
	}
}

// observe adds to what a program saw what the network saw of the same connection. An
// answer of another program than a responder says nothing of the source.
func (m *maker) observe(ctx context.Context, f *Flow, port uint16, to netip.AddrPort, s *seen) {
	ping := f.Trace.Flow.Protocol == "ping"
	if s.verdict == trace.Delivered && !ping || s.lost != "" || hasSecond(f) || f.Size != 0 && f.Trace.Flow.Protocol == "tcp" {
		return // the network sees what opens a connection
	}
	wait := waitForEvent
	if s.unsent {
		wait = 0 // either the kernel has no way, or the network has answered with an error
	}
	a := attempt{m.machine(f.From), protocolOf(f, to.Addr()), port, to}
	if ping {
		a.port, a.to = 0, netip.AddrPortFrom(to.Addr(), 0)
	}
	c, ok := m.observed.get(ctx, a, s.verdict == trace.Delivered, wait)
	switch {
	case !ok && s.unsent:
	case !ok:
		s.lost, s.note = notSeen, "the network saw no such packet"
	case s.verdict == trace.Delivered && c.To == a.machine: // a router of the simulation has answered
	case s.verdict == trace.Delivered && c.To != "":
		s.machine, s.client, s.server = c.To, c.SeenSource, c.SeenDestination
	case s.verdict != trace.Delivered:
		s.lost, s.why = c.Reason, c.Why
	}
}
