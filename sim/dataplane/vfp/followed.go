package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// followed is a unified flow on the way of a packet, for those that go the same way.
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
	r.Follows(&followed{port: pt, u: u, more: size - r.Len, tunnelled: r.Edits.InTunnel()})
}

// Holds implements [path.State].
func (f *followed) Holds(now time.Duration) bool { return !f.u.gone && f.u.valid(now) }

// Pass implements [path.State]: what [Port.Process] does for a packet of a unified flow.
func (f *followed) Pass(by *path.Passing) {
	u, h := f.u, by.Headers
	if f.tunnelled {
		h = &aTunnel
	}
	f.port.now = by.Now
	u.used = by.Now
	for _, f := range u.flows {
		f.touch(by.Now)
		f.carry(h)
	}
	u.packets++
	u.bytes += uint64(by.Len + f.more)
	if u.inside {
		f.port.settle(u) // the port does not know of it
	}
}

// aTunnel has what a flow looks at in the headers of a tunnel packet.
var aTunnel = packet.Headers{Proto: packet.UDP}
