package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// unified is what all layers of a port together do to the packets of one flow
// in one direction: VFP's unified flow. It holds as long as the port's rules do
// not change, all flows that it rests on live, and no flow appears where it
// rests on there being none.
type unified struct {
	ops     []op
	flows   []*flow
	hairpin bool
	missed  []missed
	// once is set when the decision rests on more of the packet than the key.
	once bool

	// Room for what most flows need, to save allocations.
	opRoom   [1]op
	flowRoom [2]*flow
	missRoom [2]missed
}

// missed is a look-up in a stateful layer that found no flow: when a flow has
// been born since in the bucket of its key, the key may have one.
type missed struct {
	st     *stage
	bucket uint16
	births uint32
}

// misses notes that u rests on there being no flow with a key.
func (u *unified) misses(st *stage, k *flowKey) {
	b := bucketOf(k)
	u.missed = append(u.missed, missed{st, b, st.births[b]})
}

// unifiedKey is everything of a packet that a rule or flow can look at. What is
// not in it, a tunnel's inside and the fragment offset, makes a packet go the
// slow way. TCP flags are not in it because they only decide whether a flow is
// made: with a flow they do not matter, and a refusal is not remembered.
type unifiedKey struct {
	tuple  packet.Tuple
	ethDst packet.MAC
	dir    Direction
}

const (
	// maxUnified bounds a port's unified flows, of which those that rest on no
	// flow never expire; at the limit all are made anew when they are needed.
	maxUnified = 1 << 16
	// maxFast is the longest frame that may take the fast way, in bytes. A
	// longer one may not fit into a tunnel, which only the slow way tells.
	maxFast = 60000
)

func (u *unified) init() {
	*u = unified{}
	u.ops, u.flows, u.missed = u.opRoom[:0], u.flowRoom[:0], u.missRoom[:0]
}

// holds reports whether nothing has changed that u rests on.
func (u *unified) holds(now time.Duration) bool {
	for _, f := range u.flows {
		if f.expired(now) {
			return false
		}
	}
	for i := range u.missed {
		m := &u.missed[i]
		if m.st.births[m.bucket] != m.births {
			return false
		}
	}
	return true
}

// keep stores a unified flow that was just made.
func (pt *Port) keep(k unifiedKey, u *unified, now time.Duration) {
	if len(pt.unified) >= pt.sweepAt {
		for k, u := range pt.unified {
			if !u.holds(now) {
				delete(pt.unified, k)
			}
		}
		if len(pt.unified) >= maxUnified {
			pt.Invalidate()
		}
		pt.sweepAt = max(firstSweep, 2*len(pt.unified))
	}
	pt.unified[k] = u
}

// Invalidate forgets the unified flows, not the flows of the layers: the next
// packet of each flow visits every layer again. SetLayers and Flush do it by
// themselves.
func (pt *Port) Invalidate() { clear(pt.unified) }

// op is one thing that a unified flow does to a packet: rewrite its headers,
// then wrap it when there is a tunnel.
type op struct {
	rewrite packet.Rewrite
	tunnel  *Tunnel
	// srcPort is the outer source port, which depends on the inner flow only.
	srcPort uint16
}

// rewrites notes a header rewrite, joining it with one right before it.
func (u *unified) rewrites(rw *packet.Rewrite) {
	if rw.IsZero() {
		return
	}
	if n := len(u.ops); n > 0 && u.ops[n-1].tunnel == nil {
		u.ops[n-1].rewrite = u.ops[n-1].rewrite.Then(*rw)
		return
	}
	u.ops = append(u.ops, op{rewrite: *rw})
}

// wraps notes an encapsulation.
func (u *unified) wraps(t *Tunnel, srcPort uint16) {
	if n := len(u.ops); n == 0 || u.ops[n-1].tunnel != nil {
		u.ops = append(u.ops, op{})
	}
	o := &u.ops[len(u.ops)-1]
	o.tunnel, o.srcPort = t, srcPort
}

// inner is what the tunnel does to the frame before it wraps it.
func (t *Tunnel) inner() packet.Rewrite {
	rw := packet.Rewrite{EthDst: t.InnerDst, EthSrc: t.InnerSrc}
	if !t.InnerDst.IsZero() {
		rw.Set |= packet.RwEthDst
	}
	if !t.InnerSrc.IsZero() {
		rw.Set |= packet.RwEthSrc
	}
	return rw
}

// wrap encapsulates a packet. The outer MAC addresses are those of the frame; a
// paroute rule sets others.
func (t *Tunnel) wrap(p *packet.Packet, srcPort uint16) error {
	h := p.Headers()
	return p.Encap(packet.Outer{
		Kind: t.Kind, EthSrc: h.EthSrc, EthDst: h.EthDst, Src: t.Src, Dst: t.Dst,
		SrcPort: srcPort, DstPort: t.Port, VNI: t.VNI, TTL: outerTTL,
	})
}

// outerTTL is the time to live of tunnel packets: the default of Windows.
const outerTTL = 128
