package vfp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Env is what a packet's passage needs from outside. The zero Env is valid:
// time zero, nothing recorded, default choices.
type Env struct {
	// Now is the virtual clock.
	Now time.Duration
	// Rec records steps; nil on the hot path.
	Rec *trace.Recorder
	// Place is the machine's name for the trace.
	Place string
	// Choose picks one of n candidates; def is what a deterministic hash says.
	// Nil takes def.
	Choose func(where string, n, def int, label func(int) string) int
}

// Result says what became of a packet at a port.
type Result struct {
	Pass bool
	// Reason is why it was dropped.
	Reason trace.Reason
	// Hairpin: the packet goes back into the switch instead of out of the port.
	Hairpin bool
	// Hole names what the model does not know; the packet went no further.
	Hole string
}

// Port is one port of a switch.
type Port struct {
	// ID is the port's name as vfpctrl prints it, Friendly what it is for.
	ID, Friendly string
	MAC          packet.MAC
	// External is the port to the wire, Host one of the node's own vNICs.
	External, Host bool
	// Label is how the trace names the port's owner ("endpoint client").
	Label string

	layers []*Layer
	flows  map[*Layer]map[flowKey]*flow
	uf     map[flowKey]*unified
	gen    uint32
	sw     *Switch
}

// Layers returns the port's layers in outbound order. They must not be changed;
// use SetLayers.
func (pt *Port) Layers() []*Layer { return pt.layers }

// SetLayers replaces the port's rules. Flows survive if their layer and rule
// are still there under the same names; the unified flows are made anew.
func (pt *Port) SetLayers(layers []*Layer) {
	slices.SortStableFunc(layers, func(a, b *Layer) int { return int(a.Priority) - int(b.Priority) })
	flows := map[*Layer]map[flowKey]*flow{}
	for _, l := range layers {
		l.seal()
		rules := map[string]*Rule{}
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				rules[r.ID] = r
			}
		}
		for _, old := range pt.layers {
			if old.Name != l.Name {
				continue
			}
			kept := map[flowKey]*flow{}
			for k, f := range pt.flows[old] {
				if r := rules[f.rule.ID]; r != nil {
					f.rule = r
					kept[k] = f
				} else {
					f.life.dead = true
				}
			}
			flows[l] = kept
		}
	}
	pt.layers, pt.flows = layers, flows
	pt.gen++
}

// Flush forgets the flows of the named layer, as replacing its policies does,
// and returns the outbound tuples of the TCP connections that were cut, sorted.
func (pt *Port) Flush(layer string) []packet.Tuple {
	var cut []packet.Tuple
	for _, l := range pt.layers {
		if l.Name != layer {
			continue
		}
		for k, f := range pt.flows[l] {
			if !f.life.dead && k.dir == Out && k.tuple.Proto == packet.TCP {
				cut = append(cut, k.tuple)
			}
			f.life.dead = true
		}
		clear(pt.flows[l])
	}
	pt.gen++
	slices.SortFunc(cut, func(a, b packet.Tuple) int { return strings.Compare(a.String(), b.String()) })
	return cut
}

// Reset forgets all flows.
func (pt *Port) Reset() {
	clear(pt.uf)
	clear(pt.flows)
	for _, l := range pt.layers {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				if r.Pool != nil {
					r.Pool.reset()
				}
			}
		}
	}
}

// Process sends a packet through the port's layers. It changes the packet in
// place. With a recorder it explains every layer and does not use the unified
// flow; the outcome is the same.
func (pt *Port) Process(p *packet.Packet, dir Direction, env *Env) Result {
	h := p.Headers()
	if h.IPVersion == 0 || len(pt.layers) == 0 {
		return Result{Pass: true}
	}
	k := flowKey{keyOf(p), dir}
	if env.Rec == nil {
		if u := pt.uf[k]; u != nil && u.gen == pt.gen && u.hit(env.Now) {
			for i := range u.ops {
				u.ops[i].apply(p)
			}
			return u.res
		}
	}
	return pt.slow(p, k, env)
}

// hit reports whether all flows under a unified flow live, and keeps them alive.
func (u *unified) hit(now time.Duration) bool {
	for _, f := range u.flows {
		if f.expired(now) {
			return false
		}
	}
	for _, f := range u.flows {
		f.touch(now)
	}
	return true
}

// slow visits every layer.
func (pt *Port) slow(p *packet.Packet, k flowKey, env *Env) Result {
	u := &unified{gen: pt.gen, res: Result{Pass: true}}
	cache := true
	for i := range pt.layers {
		l := pt.layers[i]
		if k.dir == In {
			l = pt.layers[len(pt.layers)-1-i]
		}
		o := pt.visit(l, p, k.dir, env)
		if o.rule != nil && o.rule.Type == Decap {
			// The outer tuple does not identify the inner flow.
			cache = false
		}
		if !o.res.Pass || o.res.Hole != "" {
			return o.res
		}
		if o.op != nil {
			u.ops = then(u.ops, *o.op)
		}
		if o.flow != nil {
			u.flows = append(u.flows, o.flow)
		}
		u.res.Hairpin = u.res.Hairpin || o.res.Hairpin
	}
	if cache {
		if pt.uf == nil {
			pt.uf = map[flowKey]*unified{}
		}
		pt.uf[k] = u
	}
	return u.res
}

// outcome is what one layer did.
type outcome struct {
	res  Result
	rule *Rule
	flow *flow
	op   *op
}

var pass = outcome{res: Result{Pass: true}}

// visit sends the packet through one layer.
func (pt *Port) visit(l *Layer, p *packet.Packet, dir Direction, env *Env) outcome {
	h := p.Headers()
	k := flowKey{keyOf(p), dir}
	if l.Stateful {
		if f := pt.flows[l][k]; f != nil {
			if !f.expired(env.Now) {
				f.touch(env.Now)
				return pt.follow(l, f, p, dir, env)
			}
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, dir, l, nil, f.rule, trace.Step{
					Action: trace.ActNote, Text: fmt.Sprintf("a flow was here, idle for longer than %s: forgotten", f.life.ttl),
				}).Cite(factTTL))
			}
			delete(pt.flows[l], k)
		}
	}
	for _, g := range l.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		if r := g.index.find(p, h); r != nil {
			return pt.apply(l, g, r, p, k, env)
		}
	}
	if !l.has(dir, h.IPVersion) {
		if l.Block {
			return pt.blocked(l, nil, nil, p, dir, env)
		}
		return pass
	}
	if l.Block {
		return pt.blocked(l, nil, nil, p, dir, env)
	}
	if env.Rec.On() {
		s := trace.Step{Action: trace.ActNoMatch, Text: "no rule matches", Nearest: nearest(l, p, dir)}
		if h.Proto == packet.ICMP || h.Proto == packet.ICMPv6 {
			s = s.Cite(factICMPKey)
		} else {
			s = s.Cite(factPipeline)
		}
		env.Rec.Add(pt.step(env, dir, l, nil, nil, s))
	}
	return pass
}

// follow applies an existing flow.
func (pt *Port) follow(l *Layer, f *flow, p *packet.Packet, dir Direction, env *Env) outcome {
	before := *p.Headers()
	p.Apply(&f.rewrite)
	if env.Rec.On() {
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
		env.Rec.Add(pt.step(env, dir, l, nil, f.rule, trace.Step{
			Action: action, Text: text, Changes: Diff(&before, p.Headers()),
		}).Cite(factFlow))
	}
	o := outcome{res: Result{Pass: true, Hairpin: f.hairpin}, flow: f}
	if f.rewrite.Set != 0 {
		o.op = &op{rewrite: f.rewrite}
	}
	return o
}

func (pt *Port) blocked(l *Layer, g *Group, r *Rule, p *packet.Packet, dir Direction, env *Env) outcome {
	if env.Rec.On() {
		text := "blocked"
		if r == nil {
			text = "blocked: no rule allows it"
		}
		s := trace.Step{Action: trace.ActDrop, Text: text, Reason: blockReason(r)}
		if r == nil {
			s.Nearest = nearest(l, p, dir)
			s = s.Cite(factPipeline)
		}
		env.Rec.Add(pt.step(env, dir, l, g, r, s))
	}
	return outcome{rule: r, res: Result{Reason: blockReason(r)}}
}

func blockReason(r *Rule) trace.Reason {
	if r != nil && r.Reason != "" {
		return r.Reason
	}
	return trace.ACLBlock
}

// apply does what a rule says.
func (pt *Port) apply(l *Layer, g *Group, r *Rule, p *packet.Packet, k flowKey, env *Env) outcome {
	h := p.Headers()
	if r.Hole != "" {
		if env.Rec.On() {
			env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{Action: trace.ActUnknown, Text: r.Hole, Reason: trace.ModelHole}))
		}
		return outcome{rule: r, res: Result{Pass: true, Hole: r.Hole}}
	}
	stateful := l.Stateful && r.Flags&Stateful != 0
	if stateful && h.Proto == packet.TCP && h.TCPFlags&packet.SYN == 0 && r.Type != Block {
		if env.Rec.On() {
			env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{
				Action: trace.ActDrop, Reason: trace.NoFlow,
				Text: "a TCP segment without SYN, and no flow for its connection",
			}).Cite(factNoFlow))
		}
		return outcome{rule: r, res: Result{Reason: trace.NoFlow}}
	}
	before := *h
	f := &flow{rule: r, hairpin: r.Hairpin, life: &life{ttl: r.TTL}}
	if f.life.ttl == 0 {
		f.life.ttl = DefaultTTL
	}
	f.touch(env.Now)

	var rw packet.Rewrite
	var text string
	action := trace.ActRewrite
	switch r.Type {
	case Block:
		return pt.blocked(l, g, r, p, k.dir, env)
	case Allow:
		action = trace.ActAllow
		text = "allowed"
	case NAT, Transpose:
		rw = r.Set
		text = map[RuleType]string{NAT: "translated", Transpose: "headers set"}[r.Type]
	case DynNAT, LBNAT:
		var reason trace.Reason
		rw, text, reason = pt.translate(l, r, p, f, k, env)
		if reason != "" {
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{Action: trace.ActDrop, Text: text, Reason: reason}))
			}
			return outcome{rule: r, res: Result{Reason: reason}}
		}
	case RouteEncap:
		if err := r.Tunnel.encap(p); err != nil {
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{Action: trace.ActDrop, Reason: trace.BadPacket, Text: err.Error()}))
			}
			return outcome{rule: r, res: Result{Reason: trace.BadPacket}}
		}
		if env.Rec.On() {
			t := r.Tunnel
			env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{
				Action: trace.ActEncap, Packet: p.String(),
				Text: fmt.Sprintf("%s to %s, VNI %d, UDP %d", t.Kind, t.Dst, t.VNI, t.Port),
				Changes: append(Diff(&before, innerOf(p, t)), trace.Change{
					Field: "outer", After: fmt.Sprintf("%s %s -> %s VNI %d", t.Kind, t.Src, t.Dst, t.VNI)}),
			}))
		}
		return outcome{rule: r, res: Result{Pass: true}, op: &op{kind: opEncap, tunnel: r.Tunnel}}
	case Decap:
		outer, err := p.Decap(r.Tunnel.Kind)
		if err != nil {
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{Action: trace.ActDrop, Reason: trace.BadPacket, Text: err.Error()}))
			}
			return outcome{rule: r, res: Result{Reason: trace.BadPacket}}
		}
		if env.Rec.On() {
			env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{
				Action: trace.ActDecap, Packet: p.String(),
				Text:    fmt.Sprintf("%s from %s, VNI %d", r.Tunnel.Kind, outer.Src, outer.VNI),
				Changes: []trace.Change{{Field: "outer", Before: fmt.Sprintf("%s %s -> %s VNI %d", r.Tunnel.Kind, outer.Src, outer.Dst, outer.VNI)}},
			}))
		}
		return outcome{rule: r, res: Result{Pass: true}}
	case PARoute:
		hop, ok := r.Next.NextHop(h.Dst)
		if !ok {
			if env.Rec.On() {
				env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{Action: trace.ActDrop, Reason: hop.Reason,
					Text: "no next hop for " + h.Dst.String() + hop.Via}))
			}
			return outcome{rule: r, res: Result{Reason: hop.Reason}}
		}
		rw = packet.Rewrite{Set: packet.RwEthSrc | packet.RwEthDst, EthSrc: hop.Src, EthDst: hop.Dst}
		action = trace.ActForward
		text = "next hop by the host's route table: " + hop.Via
	}
	if r.Hairpin {
		text += ", sent back into the switch"
	}
	src := h.EthSrc
	p.Apply(&rw)
	if stateful {
		f.rewrite = rw
		pt.remember(l, k, f, p, rw, src)
	} else {
		f = nil
	}
	if env.Rec.On() {
		env.Rec.Add(pt.step(env, k.dir, l, g, r, trace.Step{
			Action: action, Text: text, Changes: Diff(&before, p.Headers()), Packet: p.String(),
		}))
	}
	o := outcome{rule: r, res: Result{Pass: true, Hairpin: r.Hairpin}, flow: f}
	if rw.Set != 0 {
		o.op = &op{rewrite: rw}
	}
	return o
}

// remember keeps the new flow and its reverse. A hairpin's replies come in at
// the same side as its requests, all others at the opposite side.
func (pt *Port) remember(l *Layer, k flowKey, f *flow, p *packet.Packet, rw packet.Rewrite, cameFrom packet.MAC) {
	if pt.flows == nil {
		pt.flows = map[*Layer]map[flowKey]*flow{}
	}
	if pt.flows[l] == nil {
		pt.flows[l] = map[flowKey]*flow{}
	}
	pt.flows[l][k] = f
	back := &flow{rule: f.rule, hairpin: f.hairpin, reverse: true, life: f.life, target: f.target}
	if rw.Set&(packet.RwDst|packet.RwDstPort) != 0 {
		back.rewrite.Set |= packet.RwSrc | packet.RwSrcPort
		back.rewrite.Src, back.rewrite.SrcPort = k.tuple.Dst, k.tuple.DstPort
	}
	if rw.Set&(packet.RwSrc|packet.RwSrcPort) != 0 {
		back.rewrite.Set |= packet.RwDst | packet.RwDstPort
		back.rewrite.Dst, back.rewrite.DstPort = k.tuple.Src, k.tuple.SrcPort
	}
	dir := Out
	if k.dir == Out {
		dir = In
	}
	if f.hairpin {
		dir = k.dir
		back.rewrite.Set |= packet.RwEthDst | packet.RwEthSrc
		back.rewrite.EthDst, back.rewrite.EthSrc = cameFrom, pt.MAC
	}
	rk := flowKey{keyOf(p).Reverse(), dir}
	if rk == k {
		return
	}
	pt.flows[l][rk] = back
}

// translate picks a backend and a source for lbnat and dynnat.
func (pt *Port) translate(l *Layer, r *Rule, p *packet.Packet, f *flow, k flowKey, env *Env) (rw packet.Rewrite, text string, fail trace.Reason) {
	h := p.Headers()
	if r.Type == LBNAT {
		n := len(r.Targets)
		if n == 0 {
			return rw, "the load balancer has no backend here", trace.NoBackend
		}
		def := int(hash(k.tuple, r.BySource) % uint32(n))
		pick := def
		if n > 1 && env.Choose != nil {
			pick = env.Choose(r.ID, n, def, func(i int) string { return r.Targets[i].String() })
		}
		t := r.Targets[pick]
		f.target = t.String()
		if r.KeepDst {
			text = fmt.Sprintf("backend %d of %d is %s, destination kept", pick+1, n, t)
		} else {
			rw.Set |= packet.RwDst | packet.RwDstPort
			rw.Dst, rw.DstPort = t.Addr, t.Port
			text = fmt.Sprintf("backend %d of %d", pick+1, n)
		}
		if !t.MAC.IsZero() {
			rw.Set |= packet.RwEthDst | packet.RwEthSrc
			rw.EthDst, rw.EthSrc = t.MAC, h.EthSrc
			if r.Hairpin {
				rw.EthSrc = pt.MAC
			}
		}
	} else {
		text = "source translated"
	}
	if r.Pool == nil {
		return rw, text, ""
	}
	port, ok := r.Pool.bind(h.Proto, f, env.Now)
	if !ok {
		return rw, "no free port in pool " + r.Pool.Name, trace.NoFreePort
	}
	if pt.sw != nil {
		pt.sw.bindings[binding{r.Pool.Addr, h.Proto, port}] = pt
	}
	rw.Set |= packet.RwSrc | packet.RwSrcPort
	rw.Src, rw.SrcPort = r.Pool.Addr, port
	return rw, text, ""
}

// hash spreads flows over backends. The real hash is not published; winlab
// shows every admissible pick and uses this one where it must take just one.
func hash(t packet.Tuple, bySource bool) uint32 {
	const prime = 16777619
	x := uint32(2166136261)
	mix := func(b []byte) {
		for _, c := range b {
			x = (x ^ uint32(c)) * prime
		}
	}
	src := t.Src.As16()
	mix(src[:])
	if bySource {
		return x
	}
	dst := t.Dst.As16()
	mix(dst[:])
	mix([]byte{byte(t.SrcPort >> 8), byte(t.SrcPort), byte(t.DstPort >> 8), byte(t.DstPort), byte(t.Proto)})
	return x
}

// step fills in where a step happened.
func (pt *Port) step(env *Env, dir Direction, l *Layer, g *Group, r *Rule, s trace.Step) trace.Step {
	s.Place, s.Object, s.Port, s.Dir = env.Place, pt.Label, pt.ID, dir.String()
	if l != nil {
		s.Layer = l.Name
	}
	if r != nil {
		s.Rule, s.RuleType, s.From = r.ID, r.Type.String(), r.Origin
		if g == nil {
			g = groupOf(l, r)
		}
		if s.Evidence == "" {
			s = s.Cite(r.Fact)
		}
	}
	if g != nil {
		s.Group = g.Name
	}
	if s.Evidence == "" {
		s = s.Cite(factPipeline)
	}
	return s
}

func groupOf(l *Layer, r *Rule) *Group {
	for _, g := range l.Groups {
		if slices.Contains(g.Rules, r) {
			return g
		}
	}
	return nil
}

// nearest returns up to three rules of the layer that fail in one predicate only.
func nearest(l *Layer, p *packet.Packet, dir Direction) []trace.Miss {
	var ms []trace.Miss
	h := p.Headers()
	for _, g := range l.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		for _, r := range g.Rules {
			if m := r.Cond.Misses(p, h); len(m) == 1 {
				m[0].Rule, m[0].From = r.ID, r.Origin
				ms = append(ms, m[0])
				if len(ms) == 3 {
					return ms
				}
			}
		}
	}
	return ms
}

// Diff lists the header fields that differ.
func Diff(a, b *packet.Headers) []trace.Change {
	var cs []trace.Change
	add := func(field, before, after string) {
		if before != after {
			cs = append(cs, trace.Change{Field: field, Before: before, After: after})
		}
	}
	add("src MAC", a.EthSrc.String(), b.EthSrc.String())
	add("dst MAC", a.EthDst.String(), b.EthDst.String())
	if a.IPVersion == 0 || b.IPVersion == 0 {
		return cs
	}
	add("src", a.Src.String(), b.Src.String())
	add("src port", fmt.Sprint(a.SrcPort), fmt.Sprint(b.SrcPort))
	add("dst", a.Dst.String(), b.Dst.String())
	add("dst port", fmt.Sprint(a.DstPort), fmt.Sprint(b.DstPort))
	return cs
}

// innerOf returns the inner headers of a packet that was just encapsulated.
func innerOf(p *packet.Packet, t *Tunnel) *packet.Headers {
	h, _, err := p.Inner(t.Kind)
	if err != nil {
		return p.Headers()
	}
	return &h
}
