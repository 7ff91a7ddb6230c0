package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// unified is what all layers of a port together do to the packets of one flow
// in one direction: VFP's unified flow. It is valid as long as the port's rules do
// not change, all flows that it rests on live, and no flow appears where it
// rests on there being none.
type unified struct {
	ops      []op
	flows    []*flow
	absences []absence
	hairpin  bool
	// uncacheable is set when the outcome rests on more of the packet than the
	// key has, so that it says nothing about the next packet.
	uncacheable bool
	// inside is set when it rests on what is in a tunnel. Then it says nothing about
	// other packets of the port, but it does about those of a path that put on the tunnel.
	inside bool
	// gone is set when the port has forgotten it.
	gone bool
	// used is when its last packet came.
	used time.Duration
	// rules decided about the flow's packets; packets and bytes are those that they do
	// not know of yet.
	rules          []*Rule
	packets, bytes uint64

	// Room for what most flows need, to save allocations.
	opRoom      [1]op
	flowRoom    [2]*flow
	absenceRoom [2]absence
	ruleRoom    [4]*Rule
}

// absence is a look-up in a stateful layer that found no flow. It is out of
// date when a flow was put into the bucket of its key since.
type absence struct {
	layer      *layerState
	bucket     uint16
	insertions uint32
}

// addAbsence notes that u rests on there being no flow with a key.
func (u *unified) addAbsence(l *layerState, k *flowKey) {
	b := bucketOf(k)
	u.absences = append(u.absences, absence{l, b, l.insertions[b]})
}

// unifiedKey is everything of a packet that a rule or flow can look at. What is
// not in it, a tunnel's inside and the fragment offset, sends a packet through
// the layers. TCP flags are not in it because they only decide whether a flow is
// made: with a flow they do not matter, and a refusal is not remembered.
type unifiedKey struct {
	tuple  packet.Tuple
	ethDst packet.MAC
	dir    Direction
}

const (
	// maxUnified bounds a port's unified flows: at the limit the cache is cleared.
	maxUnified = 1 << 16
	// maxUnused is how long a unified flow without packets is kept. One that rests on
	// no flow would be valid for ever.
	maxUnused = DefaultTTL
	// maxFast is the longest frame that may use a unified flow, in bytes. A
	// longer one may not fit into a tunnel, and then it must not keep the flows
	// of the layers after the tunnel alive.
	maxFast = 60000
)

func (u *unified) init() {
	*u = unified{}
	u.ops, u.flows, u.absences, u.rules = u.opRoom[:0], u.flowRoom[:0], u.absenceRoom[:0], u.ruleRoom[:0]
}

// valid reports whether nothing has changed that u rests on.
func (u *unified) valid(now time.Duration) bool {
	for _, f := range u.flows {
		if f.expired(now) {
			return false
		}
	}
	for i := range u.absences {
		a := &u.absences[i]
		if a.layer.insertions[a.bucket] != a.insertions {
			return false
		}
	}
	return true
}

// keep stores a unified flow that was just made.
func (pt *Port) keep(k unifiedKey, u *unified, now time.Duration) {
	if len(pt.unified) >= pt.sweepAt {
		for k, u := range pt.unified {
			if now-u.used >= maxUnused || !u.valid(now) {
				pt.ways.Changed()
				pt.settle(u)
				u.gone = true
				delete(pt.unified, k)
			}
		}
		if len(pt.unified) >= maxUnified {
			pt.clearUnified()
		}
		pt.sweepAt = max(firstSweep, 2*len(pt.unified))
	}
	u.used = now
	if old := pt.unified[k]; old != nil {
		pt.ways.Changed()
		pt.settle(old)
		old.gone = true
	}
	pt.unified[k] = u
}

// clearUnified forgets the unified flows, not the flows of the layers: the next
// packet of each flow visits every layer again.
func (pt *Port) clearUnified() {
	pt.ways.Changed()
	pt.Count()
	for _, u := range pt.unified {
		u.gone = true
	}
	clear(pt.unified)
}

// op is one thing that a unified flow does to a packet: rewrite its headers,
// then wrap it when there is a tunnel.
type op struct {
	rewrite packet.Rewrite
	tunnel  *Tunnel
	// srcPort is the outer source port, which depends on the inner flow only.
	srcPort uint16
}

// addRewrite notes a header rewrite, joining it with one right before it.
func (u *unified) addRewrite(rw *packet.Rewrite) {
	if rw.IsZero() {
		return
	}
	if n := len(u.ops); n > 0 && u.ops[n-1].tunnel == nil {
		u.ops[n-1].rewrite = u.ops[n-1].rewrite.Then(*rw)
		return
	}
	u.ops = append(u.ops, op{rewrite: *rw})
}

// addTunnel notes an encapsulation.
func (u *unified) addTunnel(t *Tunnel, srcPort uint16) {
	if n := len(u.ops); n == 0 || u.ops[n-1].tunnel != nil {
		u.ops = append(u.ops, op{})
	}
	o := &u.ops[len(u.ops)-1]
	o.tunnel, o.srcPort = t, srcPort
}
