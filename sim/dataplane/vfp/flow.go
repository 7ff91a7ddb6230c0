package vfp

import (
	"encoding/binary"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// conn is a connection in one stateful layer. Its two directions live and die
// together.
type conn struct {
	port        *Port
	there, back flow
	until       time.Duration // on the virtual clock
	ttl         time.Duration
	dead        bool
}

func (c *conn) expired(now time.Duration) bool { return c.dead || now >= c.until }

// flow is one direction of a connection.
type flow struct {
	conn    *conn
	rule    *Rule
	rewrite packet.Rewrite
	hairpin bool
	// reverse says that this direction undoes what the other one does.
	reverse bool
	// replaced says that another connection has taken the flow's key.
	replaced bool
}

func (f *flow) expired(now time.Duration) bool { return f.replaced || f.conn.expired(now) }

func (f *flow) touch(now time.Duration) { f.conn.until = now + f.conn.ttl }

type flowKey struct {
	tuple packet.Tuple
	dir   Direction
}

func (d Direction) opposite() Direction {
	if d == Out {
		return In
	}
	return Out
}

// flowTuple is a packet's part of the key of a flow as VFP sees it: ICMP by
// type, not by identifier (vfp.icmp-flow-key).
func flowTuple(h *packet.Headers) packet.Tuple {
	t := h.Tuple()
	t.ICMPID = 0
	return t
}

// stage is a layer of a port together with its flows.
type stage struct {
	*Layer
	flows map[flowKey]*flow
	// births counts the flows that were put in under keys of each bucket. A
	// unified flow that rests on there being no flow looks here whether one can
	// have appeared; keys that share a bucket cost it a visit to the layers.
	births [births]uint32
	// makesFlows is false when no rule of the layer can ever make a flow.
	makesFlows bool
	// tunnels are the UDP ports of tunnels that conditions look into.
	tunnels []uint16
	sweepAt int
}

func newStage(l *Layer) *stage {
	st := &stage{Layer: l, flows: map[flowKey]*flow{}, sweepAt: firstSweep}
	for _, g := range l.Groups {
		for _, r := range g.Rules {
			st.makesFlows = st.makesFlows || l.Stateful && r.keepsFlows()
			if r.Cond.TunnelPort != 0 {
				st.tunnels = append(st.tunnels, r.Cond.TunnelPort)
			}
		}
	}
	return st
}

// firstSweep is the number of flows in a layer above which it looks for expired
// ones to forget. After a sweep the number is twice what is left, so that a
// packet pays for it only a constant share.
const firstSweep = 1024

// put adds a flow under a key.
func (st *stage) put(k flowKey, f *flow, now time.Duration) {
	if len(st.flows) >= st.sweepAt {
		for k, f := range st.flows {
			if f.expired(now) {
				delete(st.flows, k)
			}
		}
		st.sweepAt = max(firstSweep, 2*len(st.flows))
	}
	if old := st.flows[k]; old != nil {
		old.replaced = true
	}
	st.flows[k] = f
	st.births[bucketOf(&k)]++
}

// births is the number of buckets of a stage.
const births = 1024

func bucketOf(k *flowKey) uint16 {
	t := &k.tuple
	src, dst := t.Src.As16(), t.Dst.As16()
	le := binary.LittleEndian
	x := uint64(t.SrcPort)<<48 | uint64(t.DstPort)<<32 | uint64(t.ICMPType)<<16 | uint64(t.Proto)<<8 | uint64(k.dir)
	for _, w := range [...]uint64{le.Uint64(src[:]), le.Uint64(src[8:]), le.Uint64(dst[:]), le.Uint64(dst[8:])} {
		x = (x ^ x>>29 ^ w) * 0xbf58476d1ce4e5b9
	}
	return uint16(x >> 54)
}

// remember keeps a new connection: the flow of the packet that made it, which
// had key k and now is p, and the flow of the replies. The replies to a hairpin
// come in at the same side as the requests, all others at the opposite side.
func (st *stage) remember(c *conn, k flowKey, p *packet.Packet, cameFrom, own packet.MAC, now time.Duration) {
	rw := &c.there.rewrite
	back := &c.back
	*back = flow{conn: c, rule: c.there.rule, hairpin: c.there.hairpin, reverse: true}
	if rw.Set&(packet.RwDst|packet.RwDstPort) != 0 {
		back.rewrite.Set |= packet.RwSrc | packet.RwSrcPort
		back.rewrite.Src, back.rewrite.SrcPort = k.tuple.Dst, k.tuple.DstPort
	}
	if rw.Set&(packet.RwSrc|packet.RwSrcPort) != 0 {
		back.rewrite.Set |= packet.RwDst | packet.RwDstPort
		back.rewrite.Dst, back.rewrite.DstPort = k.tuple.Src, k.tuple.SrcPort
	}
	dir := k.dir.opposite()
	if back.hairpin {
		dir = k.dir
		back.rewrite.Set |= packet.RwEthDst | packet.RwEthSrc
		back.rewrite.EthDst, back.rewrite.EthSrc = cameFrom, own
	}
	st.put(k, &c.there, now)
	if rk := (flowKey{flowTuple(p.Headers()).Reverse(), dir}); rk != k {
		st.put(rk, back, now)
	}
}
