package vfp

import (
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// passage is one packet on its way through all layers of a port. What the
// layers do to it is noted in a unified flow, for the packets that follow.
type passage struct {
	port    *Port
	packet  *packet.Packet
	dir     Direction
	env     *Env
	unified *unified

	// The layer that the packet is in, and the rule that matched there with its
	// group; the rule is nil before one has, and the group is nil for the rule
	// of a flow. key is the packet's flow key with its hash, set in a layer that has or
	// makes flows only.
	layer *layerState
	group *Group
	rule  *Rule
	key   key
	hash  uint64
	// undoes is room for the rewrite of a flow of replies.
	undoes packet.Rewrite
}

// drop is the result of a packet that goes no further.
func drop(reason trace.Reason) Result { return Result{Reason: reason} }

// visitLayers sends a packet through every layer and keeps the unified flow that
// comes of it, by a key with its hash.
func (pt *Port) visitLayers(p *packet.Packet, k *key, hash uint64, env *Env) Result {
	pt.tell()
	u := pt.take()
	// The passage is part of the port because it would not stay on the stack:
	// actions see it through an interface.
	ps := &pt.passage
	ps.port, ps.packet, ps.dir, ps.env, ps.unified = pt, p, k.dir(), env, u
	size := p.Len()
	res := ps.run()
	// With a recorder each packet visits the layers: it would be kept only for those
	// that come later without one, who make it again.
	kept := res.Pass && !u.uncacheable && !u.inside && (env.Rec == nil || env.Path.On())
	if !env.Journal.On() {
		ps.count(res, size, kept)
	}
	ps.packet, ps.env, ps.unified = nil, nil, nil // the port must not keep them
	switch {
	case !res.Pass || env.Journal.On():
		env.Path.GiveUp()
	case u.uncacheable:
		env.Path.GiveUp()
	case u.inside:
		if env.Path.On() {
			pt.record(env.Path, u, size)
		}
	case kept:
		pt.keep(k, hash, u, env.Now)
		if env.Path.On() {
			pt.record(env.Path, u, size)
		}
		return res
	}
	pt.giveBack(u)
	return res
}

// run visits the layers in order; inbound, in the opposite order.
func (ps *passage) run() Result {
	p, u, layers := ps.packet, ps.unified, ps.port.layers
	u.uncacheable = p.Headers().Fragment
	order, swapped := &ps.port.order, false
	for i := range layers {
		at, asked := i, order.first
		if ps.dir == In {
			at, asked = len(layers)-1-i, order.then
		}
		if order.behind != nil && at == asked {
			swapped = ps.swaps(order)
		}
		l := layers[order.layerAt(at, swapped)]
		if !u.inside && len(l.tunnelPorts) != 0 && slices.Contains(l.tunnelPorts, p.Headers().DstPort) {
			// The tuple does not say what is in a tunnel packet.
			u.inside = true
		}
		res := ps.visit(l)
		if !res.Pass {
			return res
		}
		u.hairpin = u.hairpin || res.Hairpin
		if p.Headers().IPVersion == 0 {
			break // what was in the tunnel is not IP
		}
	}
	return Result{Pass: true, Hairpin: u.hairpin}
}

// visit sends the packet through one layer: a flow decides, else the first rule
// that matches, else the layer's default.
func (ps *passage) visit(l *layerState) Result {
	ps.layer, ps.group, ps.rule = l, nil, nil
	h := ps.packet.Headers()
	if l.Stateful {
		flows := l.makesFlows || l.flows.n != 0
		if flows {
			ps.key = keyOf(ps.packet, ps.dir)
			ps.hash = ps.key.hash()
		}
		if laterFragment(h) {
			if ps.rule, ps.group = l.fragmentRule(ps.packet, ps.dir); ps.rule != nil {
				return ps.fragment()
			}
		} else if flows {
			if f := ps.flow(); f != nil {
				return ps.follow(f)
			}
		}
	}
	for _, g := range l.Groups {
		if !g.serves(ps.dir, h.IPVersion) {
			continue
		}
		r := g.match(ps.packet, h, ps.env)
		if r != nil && ps.env.lifts(r) {
			r = g.behind(r, ps.packet, h, ps.env)
		}
		if r != nil {
			ps.rule, ps.group = r, g
			ps.unified.rules = append(ps.unified.rules, r)
			return r.Action.apply(ps)
		}
	}
	return ps.byDefault(h)
}

// flow returns the flow that the packet belongs to, or nil. One that has been
// idle for too long is forgotten.
func (ps *passage) flow() *flow {
	st := ps.layer
	f := st.flow(&ps.key, ps.hash)
	if f == nil {
		return nil
	}
	if undo := ps.env.Journal; undo.On() {
		st.keepFlow(undo, ps.key, ps.hash, f)
		journal.Keep(undo, f.conn)
	}
	if !f.expired(ps.env.Now) {
		if ps.stays(f) {
			return f
		}
	} else if ps.env.Rec.On() {
		ps.rule = f.rule
		ps.record(&trace.Step{Action: trace.ActNote, Event: trace.Of(flowExpired{f.conn.ttl})}, factTTL)
		ps.rule = nil
	}
	st.flows.remove(ps.hash, f)
	return nil
}

// stays decides whether a packet follows a flow that is there. What no source says
// about it is asked.
func (ps *passage) stays(f *flow) bool {
	if f.conn.orphan {
		f.conn.orphan = false
		if ps.asks(f, questionOrphan) == flowForgotten {
			ps.end(f.conn)
			return false
		}
	}
	h := ps.packet.Headers()
	if h.Proto != packet.TCP {
		return true
	}
	if f.conn.carry(h.Proto, h.TCPFlags); !opens(h) {
		return true
	}
	if f.conn.carried && ps.asks(f, questionSYN) == synByRules {
		ps.end(f.conn)
		return false
	}
	return true
}

// end ends a connection.
func (ps *passage) end(c *conn) {
	ps.port.changed()
	c.dead = true
}

// opens reports whether a TCP segment asks for a new connection.
func opens(h *packet.Headers) bool {
	return h.Proto == packet.TCP && asksToOpen(h.TCPFlags)
}

func asksToOpen(f uint8) bool { return f&(packet.SYN|packet.ACK) == packet.SYN }

// carry notes that a packet of a connection, not only its SYN, has taken the flow.
func (c *conn) carry(proto packet.Proto, flags uint8) {
	if carries(proto, flags) {
		c.carried = true
	}
}

// carries reports whether a packet is a TCP segment that does not open a connection.
func carries(proto packet.Proto, flags uint8) bool { return proto == packet.TCP && !asksToOpen(flags) }

// asks asks a question about a flow and records the answer.
func (ps *passage) asks(f *flow, q *evidence.Question) string {
	value := ps.env.answer(q, "")
	if ps.env.Rec.On() {
		ps.rule = f.rule
		ps.record(&trace.Step{Action: trace.ActNote, Event: trace.Of(taken{q, value})}, q.Fact)
		ps.rule = nil
	}
	return value
}

// follow applies an existing flow.
func (ps *passage) follow(f *flow) Result {
	now := ps.env.Now
	f.conn.touch(now)
	u := ps.unified
	u.addFlow(f)
	rw, hairpin := f.rewrite(&ps.undoes), f.conn.hairpin
	u.addRewrite(rw)
	u.rules = append(u.rules, f.rule)
	if !ps.env.Rec.On() {
		ps.packet.Apply(rw)
		return Result{Pass: true, Hairpin: hairpin}
	}
	before := *ps.packet.Headers()
	ps.packet.Apply(rw)
	s := trace.Step{Action: trace.ActAllow, Changes: diff.Headers(ps.env.Rec, &before, ps.packet.Headers(), shownChanges),
		Event: trace.Of(flowFollowed{reverse: f.isReverse(), translated: rw.Set != 0, hairpin: hairpin})}
	if rw.Set != 0 {
		s.Action = trace.ActRewrite
	}
	ps.rule = f.rule
	ps.record(&s, factFlow)
	return Result{Pass: true, Hairpin: hairpin}
}

// fragmentRule returns the rule that leaves open what happens to a fragment
// without ports: the first that could match it, when that asks for ports or for
// a flow.
func (l *layerState) fragmentRule(p *packet.Packet, dir Direction) (*Rule, *Group) {
	h := p.Headers()
	for _, g := range l.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		for _, r := range g.Rules {
			if !r.matchesNetwork(p, h) {
				continue
			}
			if r.set&transportFields != 0 || r.keepsFlows() {
				return r, g
			}
			return nil, nil
		}
	}
	return nil, nil
}

// fragment ends the path of a fragment whose flow cannot be known.
func (ps *passage) fragment() Result {
	const why = "a fragment without ports meets a rule that needs them, and how VFP finds its flow is not documented"
	return ps.unknown(why, factFragment)
}

// byDefault does what the layer does when no rule matches.
func (ps *passage) byDefault(h *packet.Headers) Result {
	l := ps.layer
	recording := ps.env.Rec.On()
	if l.Block {
		if recording {
			ps.record(&trace.Step{Action: trace.ActDrop, Event: trace.Of(blocked{byDefault: true}), Reason: trace.ACLBlock,
				Nearest: nearest(l.Layer, ps.packet, ps.dir)}, nil)
		}
		return drop(trace.ACLBlock)
	}
	if port, f := ps.tupleTaken(h); f != nil {
		return ps.withOwnPort(port, f)
	}
	ps.restsOnNoFlow()
	if recording && l.has(ps.dir, h.IPVersion) {
		s := trace.Step{Action: trace.ActNoMatch, Event: trace.Of(noMatch{}), Nearest: nearest(l.Layer, ps.packet, ps.dir)}
		if isICMP(h) {
			s.Rest(factICMPKey)
		}
		ps.record(&s, nil)
	}
	return Result{Pass: true}
}

// tupleTaken returns the flow whose replies have the 5-tuple that those to this packet
// will have, and another source port that is free, where VFP gives the packet one
// (questionTaken). The flow is nil otherwise.
func (ps *passage) tupleTaken(h *packet.Headers) (port uint16, f *flow) {
	l := ps.layer
	if !l.Stateful || l.flows.n == 0 || h.Proto != packet.UDP && !opens(h) {
		return 0, nil
	}
	k := keyOf(ps.packet, ps.dir)
	reply := k.reversed(ps.dir.opposite())
	f = l.flow(&reply, reply.hash())
	// What a hairpin sent back passes the port again, behind the translation: it is the
	// flow's own connection.
	if f == nil || !f.isReverse() || f.conn.hairpin || f.expired(ps.env.Now) || ps.asks(f, questionTaken) != ownPort {
		return 0, nil
	}
	for range 1 << 16 {
		if reply.setDstPort(reply.dstPort() + 1); reply.dstPort() < firstOwnPort {
			continue
		}
		if g := l.flow(&reply, reply.hash()); g == nil || g.expired(ps.env.Now) {
			return reply.dstPort(), f
		}
	}
	return 0, nil
}

// firstOwnPort is the first of the ports that a connection can get instead of its own.
const firstOwnPort = 1024

// withOwnPort gives a connection the source port instead of its own, for the sake of
// the flow that has its 5-tuple.
func (ps *passage) withOwnPort(port uint16, taken *flow) Result {
	c := ps.newConn(taken.rule, taken.conn.ttl)
	ps.rule = taken.rule
	return ps.rewrite(c, &rewriting{set: packet.Rewrite{Set: packet.RwSrcPort, SrcPort: port}, what: trace.ActRewrite,
		detail: sourceTranslated{}, fact: factTaken})
}

// restsOnNoFlow notes that the packet's way rests on there being no flow for it
// in the layer. A layer that cannot have one needs no note.
func (ps *passage) restsOnNoFlow() {
	if ps.layer.makesFlows {
		ps.unified.addAbsence(ps.layer, ps.hash)
	}
}

// connection starts a connection for the packet when the rule and the layer are
// stateful, and returns nil when they are not. The connection is not kept until
// [passage.rewrite] has it. A TCP segment in mid-connection can start none: it
// is dropped and ok is false.
func (ps *passage) connection() (c *conn, ok bool) {
	if !ps.layer.Stateful || ps.rule.Flags&Stateful == 0 {
		ps.restsOnNoFlow()
		return nil, true
	}
	if h := ps.packet.Headers(); h.Proto == packet.TCP && h.TCPFlags&packet.SYN == 0 {
		ps.drop(trace.NoFlow, noFlow{}, factNoFlow)
		return nil, false
	}
	return ps.newConn(ps.rule, ps.rule.ttl()), true
}

// newConn is a connection of the packet that begins now.
func (ps *passage) newConn(r *Rule, ttl time.Duration) *conn {
	c := &conn{port: ps.port, ttl: ttl}
	f := &c.forward
	f.key, f.conn, f.rule = ps.key, c, r
	c.touch(ps.env.Now)
	return c
}

// rewriting is what an action decided to do to a packet's headers.
type rewriting struct {
	set     packet.Rewrite
	hairpin bool
	// what and detail are for the trace; detail may be nil.
	what   trace.Action
	detail trace.Detail
	fact   *evidence.Fact // nil is the rule's own
}

// rewrite changes the packet's headers, and keeps the connection c, nil when
// there is none, so that it happens to the packets that follow too.
func (ps *passage) rewrite(c *conn, rw *rewriting) Result {
	p := ps.packet
	h := p.Headers()
	recording := ps.env.Rec.On()
	var before packet.Headers
	if recording {
		before = *h
	}
	cameFrom := h.EthSrc
	if !rw.set.IsZero() {
		dropOtherFamily(&rw.set, h)
		p.Apply(&rw.set)
		ps.unified.addRewrite(&rw.set)
	}
	if c != nil {
		c.rewrite, c.hairpin = rw.set, rw.hairpin
		ps.layer.remember(c, ps.hash, p, cameFrom, ps.env)
		ps.unified.addFlow(&c.forward)
	}
	if recording {
		if rw.hairpin {
			rw.detail = sentBack{rw.detail}
		}
		ps.record(&trace.Step{Action: rw.what, Event: trace.Event{Detail: rw.detail}, Changes: diff.Headers(ps.env.Rec, &before, h, shownChanges),
			Packet: ps.env.Rec.Describe(p)}, rw.fact)
	}
	return Result{Pass: true, Hairpin: rw.hairpin}
}

// dropOtherFamily takes out of a rewrite the addresses of another family than
// the packet's. Applying them does nothing, but joined with another rewrite
// they would replace what that one sets.
func dropOtherFamily(rw *packet.Rewrite, h *packet.Headers) {
	v4 := h.IPVersion == 4
	if rw.Set&packet.RwSrc != 0 && rw.Src.Unmap().Is4() != v4 {
		rw.Set &^= packet.RwSrc
	}
	if rw.Set&packet.RwDst != 0 && rw.Dst.Unmap().Is4() != v4 {
		rw.Set &^= packet.RwDst
	}
}

// drop records the packet's last step and returns its result. The step cites
// the fact; nil is the rule's own.
func (ps *passage) drop(reason trace.Reason, detail trace.Detail, fact *evidence.Fact) Result {
	if ps.env.Rec.On() {
		ps.record(&trace.Step{Action: trace.ActDrop, Reason: reason, Event: trace.Of(detail)}, fact)
	}
	return drop(reason)
}

// unknown ends the packet's way where the model does not know what happens. The
// step cites the fact; nil is the rule's own.
func (ps *passage) unknown(why string, fact *evidence.Fact) Result {
	if ps.env.Rec.On() {
		ps.record(&trace.Step{Action: trace.ActUnknown, Event: trace.Of(notModelled{why}), Reason: trace.ModelHole}, fact)
	}
	return Result{Unknown: why}
}

// shownChanges are the header fields whose changes a step shows.
const shownChanges = diff.MAC | diff.Address

// record adds a step at the place where the packet is. A step without a fact
// gets that of its rule.
func (ps *passage) record(s *trace.Step, fact *evidence.Fact) {
	s.Rest(fact)
	pt := ps.port
	s.Place, s.Object, s.Port, s.Dir, s.Layer = ps.env.Place, pt.Label, pt.ID, ps.dir.String(), ps.layer.Name
	g := ps.group
	if r := ps.rule; r != nil {
		s.Rule, s.RuleType, s.From = r.ID, r.Action.Type(), r.Origin
		if g == nil {
			g = groupOf(ps.layer.Layer, r)
		}
		if s.Evidence == "" {
			s.Rest(r.Fact)
		}
	}
	if g != nil {
		s.Group = g.Name
	}
	if s.Evidence == "" {
		s.Rest(factPipeline)
	}
	ps.env.Rec.Put(s)
}
