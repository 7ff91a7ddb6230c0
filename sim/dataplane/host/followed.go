package host

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// followed is a connection of a NAT on a packet's path, for those that go the same way.
type followed struct {
	nat       *NAT
	e         *connection
	changes   uint32
	tunnelled bool // the packet came in a tunnel
	// idle says that packets do not follow the connection: that it is there decides,
	// with forgotten also when it has expired.
	idle, forgotten bool
}

// Holds implements [path.State].
func (f *followed) Holds(now time.Duration) bool {
	if f.e.gone || f.changes != f.nat.changes {
		return false
	}
	switch {
	case f.forgotten:
		return true
	case f.e.expired(now):
		return false
	}
	return f.idle || !f.nat.doubts(f.e, now)
}

// Until implements [path.State].
func (f *followed) Until() time.Duration {
	until := path.Forever
	if f.forgotten {
		return until
	}
	if f.e.until != 0 {
		until = f.e.until
	}
	if d := f.nat.Timeouts.Doubt; d != 0 && f.e.state == open && !f.idle {
		until = min(until, f.e.last+d)
	}
	return until
}

// Pass implements [path.State]: what translateKnown does for packets.
func (f *followed) Pass(by *path.Passing) {
	if f.idle {
		return
	}
	proto := by.Proto
	if f.tunnelled {
		proto = packet.UDP
	}
	if f.nat.touch(f.e, by.Now, proto, by.TCPFlags) {
		by.Changes()
	}
}

// doubts reports whether it is unknown if the NAT still knows a connection.
func (n *NAT) doubts(e *connection, now time.Duration) bool {
	d := n.Timeouts.Doubt
	return d != 0 && e.state == open && now-e.last >= d
}

// natBuckets is how many buckets there are for tuples. A path that rests on there being
// no connection for a tuple looks at one of them.
const natBuckets = 1 << 8

func natBucket(t *packet.Tuple) uint32 {
	return uint32(t.SrcPort^t.DstPort^t.ICMPID) % natBuckets
}

// passedBy notes what a packet rests on that the NAT lets pass: the direction of a
// connection that is there for a tuple, nil for none. Forgotten says that one counts
// that has expired, too.
func (n *NAT) passedBy(r *path.Record, t packet.Tuple, e *connection, forgotten bool) {
	switch {
	case !r.On():
	case e != nil:
		r.Follows(&followed{nat: n, e: e, changes: n.changes, idle: true, forgotten: forgotten}, &n.ways)
	default:
		r.Rests(&n.added[natBucket(&t)], &n.ways)
	}
}
