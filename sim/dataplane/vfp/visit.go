package vfp

import (
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

// slow visits every layer and makes the unified flow.
func (pt *Port) slow(p *packet.Packet, k unifiedKey, env *Env) Result {
	u := pt.spare
	if u == nil {
		u = new(unified)
	}
	pt.spare = u
	u.init()
	u.once = p.Headers().Fragment
	for i := range pt.stages {
		st := pt.stages[i]
		if k.dir == In {
			st = pt.stages[len(pt.stages)-1-i]
		}
		if !u.once && len(st.tunnels) != 0 && slices.Contains(st.tunnels, p.Headers().DstPort) {
			// The tuple does not say what is in a tunnel packet.
			u.once = true
		}
		res := pt.visit(st, p, k.dir, env, u)
		if !res.Pass || res.Hole != "" {
			return res
		}
		u.hairpin = u.hairpin || res.Hairpin
		if p.Headers().IPVersion == 0 {
			break // what was in the tunnel is not IP
		}
	}
	if !u.once {
		pt.spare = nil
		pt.keep(k, u, env.Now)
	}
	return Result{Pass: true, Hairpin: u.hairpin}
}

// visit sends the packet through one layer and notes in u what that did.
func (pt *Port) visit(st *stage, p *packet.Packet, dir Direction, env *Env, u *unified) Result {
	h := p.Headers()
	var k flowKey
	switch {
	case st.Stateful && laterFragment(h):
		if r, g := st.fragmentRule(dir, h); r != nil {
			return pt.fragment(st, g, r, dir, env)
		}
	case st.Stateful:
		k = flowKey{flowTuple(h), dir}
		if f := st.flows[k]; f != nil {
			if !f.expired(env.Now) {
				f.touch(env.Now)
				return pt.follow(st, f, p, dir, env, u)
			}
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, dir, st.Layer, nil, f.rule, trace.Step{
					Action: trace.ActNote, Event: trace.Note(fmt.Sprintf("a flow was here, idle for longer than %s: forgotten", f.conn.ttl)),
				}).Cite(factTTL))
			}
			delete(st.flows, k)
		}
	}
	for _, g := range st.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		if r := g.index.find(p, h); r != nil {
			return pt.apply(st, g, r, p, k, dir, env, u)
		}
	}
	if st.Block {
		return pt.blocked(st.Layer, nil, nil, p, dir, env)
	}
	if st.makesFlows {
		u.misses(st, &k)
	}
	if env.Rec.On() && st.has(dir, h.IPVersion) {
		s := trace.Step{Action: trace.ActNoMatch, Event: trace.Note("no rule matches"), Nearest: nearest(st.Layer, p, dir)}
		if isICMP(h) {
			s = s.Cite(factICMPKey)
		} else {
			s = s.Cite(factPipeline)
		}
		env.Rec.Add(pt.step(env, dir, st.Layer, nil, nil, s))
	}
	return Result{Pass: true}
}

// fragmentRule returns the rule that stands between a fragment without ports
// and a decision: the first that could match it, when that asks for ports or
// for a flow.
func (st *stage) fragmentRule(dir Direction, h *packet.Headers) (*Rule, *Group) {
	for _, g := range st.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		for _, r := range g.Rules {
			if !r.Cond.matchNetwork(h) || r.translates() && isICMP(h) {
				continue
			}
			if r.Cond.needsTransport() || r.keepsFlows() {
				return r, g
			}
			return nil, nil
		}
	}
	return nil, nil
}

func (pt *Port) fragment(st *stage, g *Group, r *Rule, dir Direction, env *Env) Result {
	const hole = "a fragment without ports meets a rule that needs them, and how VFP finds its flow is not public"
	if env.Rec.On() {
		env.Rec.Add(pt.step(env, dir, st.Layer, g, r, trace.Step{Action: trace.ActUnknown, Event: trace.Note(hole), Reason: trace.ModelHole}.Cite(factFragment)))
	}
	return Result{Pass: true, Hole: hole}
}

// follow applies an existing flow.
func (pt *Port) follow(st *stage, f *flow, p *packet.Packet, dir Direction, env *Env, u *unified) Result {
	u.flows = append(u.flows, f)
	u.rewrites(&f.rewrite)
	if !env.Rec.On() {
		p.Apply(&f.rewrite)
		return Result{Pass: true, Hairpin: f.hairpin}
	}
	before := *p.Headers()
	p.Apply(&f.rewrite)
	text := "flow"
	if f.reverse {
		text = "flow of the other direction"
	}
	action := trace.ActAllow
	if f.rewrite.Set != 0 {
		action = trace.ActRewrite
		if f.reverse {
			text += ": translation undone"
		}
	}
	if f.hairpin {
		text += ", sent back into the switch"
	}
	env.Rec.Add(pt.step(env, dir, st.Layer, nil, f.rule, trace.Step{
		Action: action, Event: trace.Note(text), Changes: diff.Headers(&before, p.Headers(), diff.MAC|diff.Address),
	}).Cite(factFlow))
	return Result{Pass: true, Hairpin: f.hairpin}
}

func (pt *Port) blocked(l *Layer, g *Group, r *Rule, p *packet.Packet, dir Direction, env *Env) Result {
	if env.Rec.On() {
		text := "blocked"
		if r == nil {
			text = "blocked: no rule allows it"
		}
		s := trace.Step{Action: trace.ActDrop, Event: trace.Note(text), Reason: blockReason(r)}
		if r == nil {
			s.Nearest = nearest(l, p, dir)
			s = s.Cite(factPipeline)
		}
		env.Rec.Add(pt.step(env, dir, l, g, r, s))
	}
	return Result{Reason: blockReason(r)}
}

func blockReason(r *Rule) trace.Reason {
	if r != nil && r.Reason != "" {
		return r.Reason
	}
	return trace.ACLBlock
}

// apply does what a rule says. k is the packet's key when the layer is stateful.
func (pt *Port) apply(st *stage, g *Group, r *Rule, p *packet.Packet, k flowKey, dir Direction, env *Env, u *unified) Result {
	h := p.Headers()
	rec := env.Rec.On()
	// end records the last step of a packet and drops it.
	end := func(reason trace.Reason, text string) Result {
		if rec {
			s := trace.Step{Action: trace.ActDrop, Reason: reason, Event: trace.Note(text)}
			if reason == trace.NoFreePort {
				s = s.Cite(factBlocks)
			}
			env.Rec.Add(pt.step(env, dir, st.Layer, g, r, s))
		}
		return Result{Reason: reason}
	}
	switch {
	case r.Hole != "":
		if rec {
			env.Rec.Add(pt.step(env, dir, st.Layer, g, r, trace.Step{Action: trace.ActUnknown, Event: trace.Note(r.Hole), Reason: trace.ModelHole}))
		}
		return Result{Pass: true, Hole: r.Hole}
	case r.Type == Block:
		return pt.blocked(st.Layer, g, r, p, dir, env)
	}
	var c *conn
	if st.Stateful && r.keepsFlows() {
		if h.Proto == packet.TCP && h.TCPFlags&packet.SYN == 0 {
			if rec {
				env.Rec.Add(pt.step(env, dir, st.Layer, g, r, trace.Step{
					Action: trace.ActDrop, Reason: trace.NoFlow,
					Event: trace.Note("a TCP segment without SYN, and no flow for its connection"),
				}).Cite(factNoFlow))
			}
			return Result{Reason: trace.NoFlow}
		}
		c = &conn{port: pt, ttl: r.TTL}
		if c.ttl == 0 {
			c.ttl = DefaultTTL
		}
		c.there = flow{conn: c, rule: r, hairpin: r.Hairpin}
		c.there.touch(env.Now)
	} else if st.makesFlows {
		u.misses(st, &k)
	}

	var before packet.Headers
	if rec {
		before = *h
	}
	var rw packet.Rewrite
	var text string
	action := trace.ActRewrite
	switch r.Type {
	case Allow:
		action, text = trace.ActAllow, "allowed"
	case NAT:
		rw, text = r.Set, "translated"
	case Transpose:
		rw, text = r.Set, "headers set"
	case DynNAT, LBNAT:
		if c == nil && (r.Pool != nil || len(r.Targets) > 1) {
			u.once = true // without a flow every packet is picked for anew
		}
		var reason trace.Reason
		rw, text, reason = pt.translate(r, h, c, env)
		if reason != "" {
			return end(reason, text)
		}
	case RouteEncap:
		rw, srcPort := r.Tunnel.inner(), packet.VXLANSrcPort(p.Tuple())
		p.Apply(&rw)
		u.rewrites(&rw)
		if err := r.Tunnel.wrap(p, srcPort); err != nil {
			return end(trace.BadPacket, err.Error())
		}
		u.wraps(r.Tunnel, srcPort)
		if rec {
			env.Rec.Add(pt.step(env, dir, st.Layer, g, r, encapStep(p, r.Tunnel, &before)))
		}
		return Result{Pass: true}
	case Decap:
		u.once = true // what comes out of the tunnel is not in the key
		outer, err := p.Decap(r.Tunnel.Kind)
		if err != nil {
			return end(trace.BadPacket, err.Error())
		}
		if rec {
			env.Rec.Add(pt.step(env, dir, st.Layer, g, r, decapStep(p, &outer)))
		}
		return Result{Pass: true}
	case PARoute:
		hop, ok := r.Next.NextHop(h.Dst)
		if !ok {
			text = "no next hop for " + h.Dst.String()
			if rec && hop.Via != nil {
				text += ": " + hop.Via.String()
			}
			return end(hop.Reason, text)
		}
		rw = packet.Rewrite{Set: packet.RwEthSrc | packet.RwEthDst, EthSrc: hop.Src, EthDst: hop.Dst}
		action = trace.ActForward
		if rec && hop.Via != nil {
			text = "next hop by the host's route table: " + hop.Via.String()
		}
	}
	fit(&rw, h)
	cameFrom := h.EthSrc
	p.Apply(&rw)
	u.rewrites(&rw)
	if c != nil {
		c.there.rewrite = rw
		st.remember(c, k, p, cameFrom, pt.MAC, env.Now)
		u.flows = append(u.flows, &c.there)
	}
	if rec {
		if r.Hairpin {
			text += ", sent back into the switch"
		}
		env.Rec.Add(pt.step(env, dir, st.Layer, g, r, trace.Step{
			Action: action, Event: trace.Note(text), Changes: diff.Headers(&before, p.Headers(), diff.MAC|diff.Address), Packet: env.Rec.Describe(p),
		}))
	}
	return Result{Pass: true, Hairpin: r.Hairpin}
}

// fit takes out of a rewrite the addresses that the packet's family has no room
// for. Applying them does nothing, but joined with another rewrite they would
// push out what that one sets.
func fit(rw *packet.Rewrite, h *packet.Headers) {
	v4 := h.IPVersion == 4
	if rw.Set&packet.RwSrc != 0 && rw.Src.Unmap().Is4() != v4 {
		rw.Set &^= packet.RwSrc
	}
	if rw.Set&packet.RwDst != 0 && rw.Dst.Unmap().Is4() != v4 {
		rw.Set &^= packet.RwDst
	}
}
