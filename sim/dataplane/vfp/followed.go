package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// followed is a unified flow on a packet's path, for packets that take the same path.
type followed struct {
	port *Port
	u    *unified
	// more is how many bytes the frame had more, when it came to the port, than at the
	// beginning of its way.
	more int
	// tunnelled says that it came in a tunnel.
	tunnelled bool
}

// record notes that a packet, of a length in bytes as it came to the port, has followed
// a unified flow.
func (pt *Port) record(r *path.Record, u *unified, size int) {
	u.onPath = true
	r.Follows(&followed{port: pt, u: u, more: size - r.Len, tunnelled: r.Edits.InTunnel()}, &pt.ways)
}

// Holds implements [path.State].
func (f *followed) Holds(now time.Duration) bool {
	f.port.tell()
	return !f.u.gone && f.port.valid(f.u, now)
}

// Until implements [path.State]. Connections that are not told yet live longer.
func (f *followed) Until() time.Duration {
	return f.u.end()
}

// Pass implements [path.State]: what [Port.Process] does for packets of a unified flow.
func (f *followed) Pass(by *path.Passing) {
	u, proto := f.u, by.Proto
	if f.tunnelled {
		proto = packet.UDP
	}
	f.port.now = max(f.port.now, by.Now)
	u.pass(by.Now, proto, by.TCPFlags, by.Packets, by.Bytes+by.Packets*uint64(f.more))
	if u.inside {
		f.port.settle(u) // the port does not know of it
	}
}
