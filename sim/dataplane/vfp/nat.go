package vfp

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// NAT translates an address or port to a fixed other one.
type NAT struct {
	Set packet.Rewrite
}

// Type returns "nat".
func (NAT) Type() string     { return "nat" }
func (NAT) translates() bool { return true }
func (NAT) keepsFlows() bool { return true }

func (a NAT) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	return ps.rewrite(c, &rewriting{set: a.Set, what: trace.ActRewrite, detail: translated{}})
}

// DynNAT translates the source to the address of a pool and a port that the
// pool has free.
type DynNAT struct {
	Pool *Pool
}

// Type returns "dynnat".
func (DynNAT) Type() string     { return "dynnat" }
func (DynNAT) translates() bool { return true }
func (DynNAT) keepsFlows() bool { return true }

func (a DynNAT) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	rw := rewriting{what: trace.ActRewrite, detail: sourceTranslated{}}
	if !ps.bindSource(a.Pool, c, &rw.set) {
		return drop(trace.NoFreePort)
	}
	return ps.rewrite(c, &rw)
}

// LBNAT is the rule of a load balancer: it picks a backend for each flow and
// translates the destination to it.
type LBNAT struct {
	// Targets are the backends. Without one every packet is dropped.
	Targets []Target
	// KeepDst leaves the destination address alone: the packet is only sent
	// on to the target's MAC address (preserve-destination, hairpin rules).
	KeepDst bool
	// BySource picks by the source address only (session affinity).
	BySource bool
	// Pool is where a new source is taken from; nil keeps the source.
	Pool *Pool
	// Hairpin sends the packet back into the switch instead of out of the port.
	Hairpin bool
}

// Target is one backend of a load balancer.
type Target struct {
	Addr netip.Addr
	Port uint16
	// MAC is where the frame goes next, zero to leave that alone.
	MAC packet.MAC
	// Note is what a trace says of the backend, and Fact what that rests on; both may
	// be missing. Unknown is set when its address is not known: the path of a packet
	// that gets it ends there.
	Note    string
	Fact    *evidence.Fact
	Unknown bool
}

func (t *Target) addrPort() netip.AddrPort { return netip.AddrPortFrom(t.Addr, t.Port) }

// label names the backend among the others.
func (t *Target) label() string {
	if t.Unknown {
		return t.Note
	}
	return t.addrPort().String()
}

// Type returns "lbnat".
func (LBNAT) Type() string     { return "lbnat" }
func (LBNAT) translates() bool { return true }
func (LBNAT) keepsFlows() bool { return true }

func (a LBNAT) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	if len(a.Targets) == 0 {
		return ps.drop(trace.NoBackend, noBackend{}, nil)
	}
	if c == nil && len(a.Targets) > 1 {
		ps.unified.uncacheable = true // without a flow the next packet may get another backend
	}
	i := a.pick(ps)
	t := &a.Targets[i]
	if t.Unknown {
		return ps.unknown(t.Note, t.Fact)
	}
	rw := rewriting{set: a.rewriteTo(t, ps.port.MAC), what: trace.ActRewrite, hairpin: a.Hairpin, fact: t.Fact}
	if ps.env.Rec.On() {
		rw.detail = backendPicked{n: i + 1, of: len(a.Targets), backend: t.addrPort(), keptDst: a.KeepDst, note: t.Note}
	}
	if !ps.bindSource(a.Pool, c, &rw.set) {
		return drop(trace.NoFreePort)
	}
	return ps.rewrite(c, &rw)
}

// rewriteTo is the rewrite that leads a packet to a backend, from a port with the MAC
// address own.
func (a *LBNAT) rewriteTo(t *Target, own packet.MAC) (rw packet.Rewrite) {
	if !a.KeepDst {
		rw.Set |= packet.RwDst | packet.RwDstPort
		rw.Dst, rw.DstPort = t.Addr, t.Port
	}
	if !t.MAC.IsZero() {
		rw.Set |= packet.RwEthDst
		rw.EthDst = t.MAC
		if a.Hairpin {
			rw.Set |= packet.RwEthSrc
			rw.EthSrc = own
		}
	}
	return rw
}

// pick chooses the target of a new flow.
func (a *LBNAT) pick(ps *passage) int {
	n := len(a.Targets)
	if n == 1 {
		return 0
	}
	def := int(hash(ps.packet.Headers(), a.BySource) % uint32(n))
	if ps.env.Choose == nil {
		return def
	}
	targets := a.Targets
	return ps.env.Choose(ps.rule.ID, n, def, func(i int) string { return targets[i].label() })
}

// hash spreads flows over backends. The real hash is not published; winlab shows every
// admissible pick and uses this one where it must take just one. Flows that differ in
// one bit of a port only are spread, too.
func hash(h *packet.Headers, bySource bool) uint32 {
	if bySource {
		return packet.Tuple{Src: h.Src}.Hash()
	}
	return packet.Tuple{Src: h.Src, Dst: h.Dst, SrcPort: h.SrcPort, DstPort: h.DstPort, Proto: h.Proto}.Hash()
}

// bindSource takes a source port for the connection c out of a pool and adds
// the translation to rw. Without a pool there is nothing to do; without a free
// port the packet is dropped and ok is false.
func (ps *passage) bindSource(pool *Pool, c *conn, rw *packet.Rewrite) (ok bool) {
	if pool == nil {
		return true
	}
	if c == nil {
		// There is no flow that would undo the translation and give the port
		// back: the port is free again at once, and every packet binds its own.
		ps.unified.uncacheable = true
		c = &conn{dead: true}
	}
	if _, ok := ps.port.bound[pool]; !ok {
		if ps.port.bound == nil {
			ps.port.bound = map[*Pool]struct{}{}
		}
		ps.port.bound[pool] = struct{}{}
	}
	proto := ps.packet.Headers().Proto
	port, ok := pool.bind(proto, c, ps.env)
	if !ok {
		ps.drop(trace.NoFreePort, poolExhausted{pool.Name}, factBlocks)
		return false
	}
	if sw := ps.port.sw; sw != nil {
		sw.bind(binding{pool.Addr, proto, port}, ps.port, ps.env.Journal)
	}
	rw.Set |= packet.RwSrc | packet.RwSrcPort
	rw.Src, rw.SrcPort = pool.Addr, port
	return true
}

// poolOf returns the pool that an action takes ports from, or nil.
func poolOf(a Action) *Pool {
	switch a := a.(type) {
	case DynNAT:
		return a.Pool
	case LBNAT:
		return a.Pool
	}
	return nil
}
