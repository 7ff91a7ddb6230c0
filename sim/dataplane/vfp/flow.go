package vfp

import (
	"encoding/binary"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// conn is a connection in one stateful layer of a port: the flow of the packet
// that opened it and the flow of the replies, which live and die together.
type conn struct {
	port             *Port
	forward, reverse flow
	until            time.Duration // on the virtual clock
	ttl              time.Duration
	dead             bool
	// orphan says that its rule was taken away since its last packet, carried that
	// it had a TCP segment without SYN.
	orphan, carried bool
}

func (c *conn) expired(now time.Duration) bool { return c.dead || now >= c.until }

// flow is one direction of a connection.
type flow struct {
	conn    *conn
	rule    *Rule
	rewrite packet.Rewrite
	hairpin bool
	// reverse says that this is the direction of the replies, which undoes what
	// the other one does.
	reverse bool
	// replaced says that another connection has taken the flow's key.
	replaced bool
}

func (f *flow) expired(now time.Duration) bool { return f.replaced || f.conn.expired(now) }

// touch notes a packet. Those that took the same way as others are told of later, and not
// in the order in which they came.
func (c *conn) touch(now time.Duration) { c.until = max(c.until, now+c.ttl) }

type flowKey struct {
	tuple packet.Tuple
	dir   Direction
}

// flowTuple is a packet's part of the key of a flow as VFP sees it: ICMP by
// type, not by identifier (vfp.icmp-flow-key).
func flowTuple(h *packet.Headers) packet.Tuple {
	t := h.Tuple()
	t.ICMPID = 0
	return t
}

// layerState is a layer of a port together with its flows.
type layerState struct {
	*Layer
	flows map[flowKey]*flow
	// insertions counts, for each bucket of keys, the flows that were put in. A
	// unified flow that rests on there being no flow for a key looks here
	// whether one can have been put in since; when another key of the bucket got
	// one, the unified flow is rebuilt without need.
	insertions [buckets]uint32
	// makesFlows is false when no rule of the layer can ever make a flow.
	makesFlows bool
	// tunnelPorts are the UDP ports of tunnels that conditions look into.
	tunnelPorts []uint16
	// sweepAt is the number of flows at which to look for expired ones.
	sweepAt int
}

func newLayerState(l *Layer) *layerState {
	st := &layerState{Layer: l, flows: map[flowKey]*flow{}, sweepAt: firstSweep}
	for _, g := range l.Groups {
		for _, r := range g.Rules {
			st.makesFlows = st.makesFlows || l.Stateful && r.keepsFlows()
			if r.Cond.TunnelPort != 0 {
				st.tunnelPorts = append(st.tunnelPorts, r.Cond.TunnelPort)
			}
		}
	}
	return st
}

// firstSweep is the number of flows in a layer above which it looks for expired
// ones to forget. After a sweep the number is twice what is left, so that a
// packet pays for it only a constant share.
const firstSweep = 1024

// put adds a flow under a key. One that will be undone leaves expired flows alone.
func (st *layerState) put(k flowKey, f *flow, now time.Duration, undo *journal.Journal) {
	if len(st.flows) >= st.sweepAt && !undo.On() {
		for k, f := range st.flows {
			if f.expired(now) {
				delete(st.flows, k)
			}
		}
		st.sweepAt = max(firstSweep, 2*len(st.flows))
	}
	f.conn.port.changed()
	if old := st.flows[k]; old != nil {
		journal.Keep(undo, &old.replaced)
		old.replaced = true
	}
	journal.KeepKey(undo, st.flows, k)
	st.flows[k] = f
	n := &st.insertions[bucketOf(&k)]
	journal.Keep(undo, n)
	*n++
}

// buckets is the number of buckets into which a layer's flow keys fall. The
// bucket is the first ten bits of a hash.
const buckets = 1 << 10

func bucketOf(k *flowKey) uint16 {
	t := &k.tuple
	src, dst := t.Src.As16(), t.Dst.As16()
	le := binary.LittleEndian
	x := uint64(t.SrcPort)<<48 | uint64(t.DstPort)<<32 | uint64(t.ICMPType)<<16 | uint64(t.Proto)<<8 | uint64(k.dir)
	for _, w := range [...]uint64{le.Uint64(src[:]), le.Uint64(src[8:]), le.Uint64(dst[:]), le.Uint64(dst[8:])} {
		x = (x ^ x>>29 ^ w) * 0xbf58476d1ce4e5b9
	}
	return uint16(x >> (64 - 10))
}

// remember keeps a new connection: the flow of the packet that opened it, which
// came from a MAC address with key k and now is p, and the flow of the replies.
// The replies to a hairpin come in at the same side as the requests, all others
// at the opposite side.
func (st *layerState) remember(c *conn, k flowKey, p *packet.Packet, cameFrom packet.MAC, env *Env) {
	rw := &c.forward.rewrite
	rev := &c.reverse
	*rev = flow{conn: c, rule: c.forward.rule, hairpin: c.forward.hairpin, reverse: true}
	if rw.Set&(packet.RwDst|packet.RwDstPort) != 0 {
		rev.rewrite.Set |= packet.RwSrc | packet.RwSrcPort
		rev.rewrite.Src, rev.rewrite.SrcPort = k.tuple.Dst, k.tuple.DstPort
	}
	if rw.Set&(packet.RwSrc|packet.RwSrcPort) != 0 {
		rev.rewrite.Set |= packet.RwDst | packet.RwDstPort
		rev.rewrite.Dst, rev.rewrite.DstPort = k.tuple.Src, k.tuple.SrcPort
	}
	dir := k.dir.opposite()
	if rev.hairpin {
		dir = k.dir
		rev.rewrite.Set |= packet.RwEthDst | packet.RwEthSrc
		rev.rewrite.EthDst, rev.rewrite.EthSrc = cameFrom, c.port.MAC
	}
	st.put(k, &c.forward, env.Now, env.Journal)
	// A packet from an address to itself is its own reply.
	if rk := (flowKey{flowTuple(p.Headers()).Reverse(), dir}); rk != k {
		st.put(rk, rev, env.Now, env.Journal)
	}
}
