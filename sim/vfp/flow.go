package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/packet"
)

// flow is one direction of a connection in one stateful layer. Both directions
// live and die together.
type flow struct {
	rule    *Rule
	rewrite packet.Rewrite
	hairpin bool
	// reverse says that this entry undoes what its peer does.
	reverse bool
	life    *life
	target  string // the picked backend, for the trace
}

// life is what the two directions of a flow share.
type life struct {
	until time.Duration
	ttl   time.Duration
	dead  bool
}

func (f *flow) expired(now time.Duration) bool { return f.life.dead || now >= f.life.until }

func (f *flow) touch(now time.Duration) { f.life.until = now + f.life.ttl }

type flowKey struct {
	tuple packet.Tuple
	dir   Direction
}

// keyOf is the key of a packet as VFP sees it: ICMP by type, not by identifier.
func keyOf(p *packet.Packet) packet.Tuple {
	t := p.Tuple()
	t.ICMPID = 0
	return t
}

// unified is what all layers of a port together do to one flow in one
// direction: VFP's unified flow. It holds as long as the port's rules do not
// change and none of the flows it rests on has expired.
type unified struct {
	gen   uint32
	ops   []op
	flows []*flow
	res   Result
}

type opKind uint8

const (
	opRewrite opKind = iota
	opEncap
)

type op struct {
	kind    opKind
	rewrite packet.Rewrite
	tunnel  *Tunnel
}

// then appends an operation, joining neighbouring rewrites into one.
func then(ops []op, o op) []op {
	if n := len(ops); n > 0 && o.kind == opRewrite && ops[n-1].kind == opRewrite {
		ops[n-1].rewrite = ops[n-1].rewrite.Then(o.rewrite)
		return ops
	}
	return append(ops, o)
}

func (o *op) apply(p *packet.Packet) {
	switch o.kind {
	case opRewrite:
		p.Apply(&o.rewrite)
	case opEncap:
		// A frame too long for the tunnel was refused when the flow was made;
		// a later one keeps its native form and is seen as such on the wire.
		_ = o.tunnel.encap(p)
	}
}

func (t *Tunnel) encap(p *packet.Packet) error {
	inner := p.Tuple()
	if !t.InnerDst.IsZero() {
		p.SetEthDst(t.InnerDst)
	}
	if !t.InnerSrc.IsZero() {
		p.SetEthSrc(t.InnerSrc)
	}
	h := p.Headers()
	return p.Encap(packet.Outer{
		Kind: t.Kind, EthSrc: h.EthSrc, EthDst: h.EthDst, Src: t.Src, Dst: t.Dst,
		SrcPort: packet.VXLANSrcPort(inner), DstPort: t.Port, VNI: t.VNI, TTL: 128,
	})
}
