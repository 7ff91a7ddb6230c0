package vfp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// refPort is the slow and obvious form of a Port: every packet tries every
// flow and every rule in order. It shares the rules' data types with the
// package and none of its look-ups.
type refPort struct {
	mac    packet.MAC
	layers []*Layer
	flows  []*refFlow
	pools  map[*Pool]*refPool
}

type refFlow struct {
	layer    string
	dir      Direction
	tuple    packet.Tuple
	rule     string
	rewrites packet.Rewrite
	hairpin  bool
	life     *refLife
}

type refLife struct {
	until, ttl time.Duration
	dead       bool
}

func (l *refLife) over(now time.Duration) bool { return l.dead || now >= l.until }

type refPool struct {
	next  int
	inUse []refUse
}

type refUse struct {
	proto packet.Proto
	port  uint16
	life  *refLife
}

func (r *refPort) setLayers(layers []*Layer) {
	slices.SortStableFunc(layers, func(a, b *Layer) int { return int(a.Priority) - int(b.Priority) })
	for _, l := range layers {
		slices.SortStableFunc(l.Groups, func(a, b *Group) int { return int(a.Priority) - int(b.Priority) })
		for _, g := range l.Groups {
			slices.SortStableFunc(g.Rules, func(a, b *Rule) int { return int(a.Priority) - int(b.Priority) })
		}
	}
	r.layers = layers
	r.drop(func(f *refFlow) bool {
		for _, l := range layers {
			for _, g := range l.Groups {
				for _, rule := range g.Rules {
					if l.Name == f.layer && rule.ID == f.rule {
						return false
					}
				}
			}
		}
		return true
	})
}

func (r *refPort) flush(layer string) {
	r.drop(func(f *refFlow) bool { return f.layer == layer })
}

func (r *refPort) reset() {
	r.drop(func(*refFlow) bool { return true })
	for _, l := range r.layers {
		for _, g := range l.Groups {
			for _, rule := range g.Rules {
				// Only this port has the pool, so nobody uses it now.
				delete(r.pools, poolOf(rule.Action))
			}
		}
	}
}

func (r *refPort) drop(when func(*refFlow) bool) {
	r.flows = slices.DeleteFunc(r.flows, func(f *refFlow) bool {
		if when(f) {
			f.life.dead = true
			return true
		}
		return false
	})
}

func (r *refPort) process(p *packet.Packet, dir Direction, now time.Duration) Result {
	h := p.Headers()
	if len(r.layers) == 0 {
		return Result{Pass: true}
	}
	if h.IPVersion == 0 {
		if h.EtherType == packet.EtherIPv4 || h.EtherType == packet.EtherIPv6 {
			return Result{Reason: trace.BadPacket}
		}
		return Result{Pass: true}
	}
	layers := slices.Clone(r.layers)
	if dir == In {
		slices.Reverse(layers)
	}
	whole := Result{Pass: true}
	for _, l := range layers {
		if p.Headers().IPVersion == 0 {
			break
		}
		res := r.layer(l, p, dir, now)
		if !res.Pass {
			return res
		}
		whole.Hairpin = whole.Hairpin || res.Hairpin
	}
	return whole
}

func refTuple(p *packet.Packet) packet.Tuple {
	t := p.Tuple()
	t.ICMPID = 0
	return t
}

func (r *refPort) layer(l *Layer, p *packet.Packet, dir Direction, now time.Duration) Result {
	h := p.Headers()
	later := h.Fragment && h.L4 == 0 && slices.Contains([]packet.Proto{packet.TCP, packet.UDP, packet.ICMP, packet.ICMPv6}, h.Proto)
	if l.Stateful && !later {
		if f := r.flow(l, p, dir, now); f != nil {
			f.life.until = now + f.life.ttl
			p.Apply(&f.rewrites)
			return Result{Pass: true, Hairpin: f.hairpin}
		}
	}
	for _, g := range l.Groups {
		if g.Dir != dir || g.Family != 0 && g.Family != h.IPVersion {
			continue
		}
		for _, rule := range g.Rules {
			switch refMatch(rule, p, l.Stateful && later) {
			case yes:
				return r.apply(l, rule, p, dir, now)
			case unsure:
				return Result{Unknown: "fragment"}
			}
		}
	}
	if l.Block {
		return Result{Reason: trace.ACLBlock}
	}
	return Result{Pass: true}
}

func (r *refPort) flow(l *Layer, p *packet.Packet, dir Direction, now time.Duration) *refFlow {
	for _, f := range r.flows {
		if f.layer == l.Name && f.dir == dir && f.tuple == refTuple(p) && !f.life.over(now) {
			return f
		}
	}
	return nil
}

type answer int

const (
	no answer = iota
	yes
	unsure
)

// refMatch says whether a rule matches; unsure for a fragment without ports in
// a stateful layer when the rule asks for ports or would make a flow.
func refMatch(rule *Rule, p *packet.Packet, later bool) answer {
	h, c, kind := p.Headers(), rule.Cond, rule.Action.Type()
	if !refMatchNetwork(c, h) || refICMP(h) && slices.Contains([]string{"nat", "dynnat", "lbnat"}, kind) {
		return no
	}
	if later {
		if rule.Flags&Stateful != 0 && !slices.Contains(flowless, kind) || len(c.SrcPorts)+len(c.DstPorts)+len(c.ICMPTypes) > 0 ||
			c.Tunnel.Port != 0 {
			return unsure
		}
		return yes
	}
	if refMatchTransport(c, p) {
		return yes
	}
	return no
}

func refICMP(h *packet.Headers) bool { return h.Proto == packet.ICMP || h.Proto == packet.ICMPv6 }

func refMatchNetwork(c Cond, h *packet.Headers) bool {
	return refIn(c.Protos, func(want packet.Proto) bool { return want == h.Proto }) &&
		refIn(c.Src, func(want netip.Prefix) bool { return want.Contains(h.Src) }) &&
		refIn(c.Dst, func(want netip.Prefix) bool { return want.Contains(h.Dst) }) &&
		(c.DstMAC == (packet.MAC{}) || c.DstMAC == h.EthDst)
}

func refMatchTransport(c Cond, p *packet.Packet) bool {
	h := p.Headers()
	ports := (h.Proto == packet.TCP || h.Proto == packet.UDP) && h.L4 != 0
	return refIn(c.SrcPorts, func(want PortRange) bool { return ports && want.Lo <= h.SrcPort && h.SrcPort <= want.Hi }) &&
		refIn(c.DstPorts, func(want PortRange) bool { return ports && want.Lo <= h.DstPort && h.DstPort <= want.Hi }) &&
		refIn(c.ICMPTypes, func(want uint8) bool { return refICMP(h) && h.L4 != 0 && want == h.ICMPType }) &&
		(c.Tunnel.Port == 0 || ports && refMatchTunnel(c, p))
}

func refMatchTunnel(c Cond, p *packet.Packet) bool {
	h := p.Headers()
	_, vni, err := p.Inner(c.Tunnel.Kind)
	return h.Proto == packet.UDP && h.DstPort == c.Tunnel.Port && err == nil && vni == c.Tunnel.VNI
}

// refIn reports whether one of the alternatives is met; none means anything.
func refIn[T any](alternatives []T, met func(T) bool) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, met)
}

// flowless are the kinds of rule that make no flows.
var flowless = []string{"block", "routeencap", "decap"}

func (r *refPort) apply(l *Layer, rule *Rule, p *packet.Packet, dir Direction, now time.Duration) Result {
	h := *p.Headers()
	switch a := rule.Action.(type) {
	case NotModelled:
		return Result{Unknown: a.Why}
	case Block:
		return Result{Reason: cmp.Or(a.Reason, trace.ACLBlock)}
	case RouteEncap:
		return refEncap(a.Tunnel, p)
	case Decap:
		if _, err := p.Decap(a.Kind); err != nil {
			return Result{Reason: trace.BadPacket}
		}
		return Result{Pass: true}
	}
	stateful := l.Stateful && rule.Flags&Stateful != 0
	if stateful && h.Proto == packet.TCP && h.TCPFlags&packet.SYN == 0 {
		return Result{Reason: trace.NoFlow}
	}
	ttl := cmp.Or(rule.TTL, 240*time.Second)
	life := &refLife{ttl: ttl, until: now + ttl, dead: !stateful}
	rw, pool, failure := r.rewrite(rule.Action, &h)
	if failure != "" {
		return Result{Reason: failure}
	}
	if pool != nil {
		port, ok := r.bind(pool, h.Proto, life, now)
		if !ok {
			return Result{Reason: trace.NoFreePort}
		}
		rw.Set |= packet.RwSrc | packet.RwSrcPort
		rw.Src, rw.SrcPort = pool.Addr, port
	}
	lb, _ := rule.Action.(LBNAT)
	before := refTuple(p)
	p.Apply(&rw)
	if stateful {
		r.connect(l, rule, dir, before, refTuple(p), rw, lb.Hairpin, h.EthSrc, life)
	}
	return Result{Pass: true, Hairpin: lb.Hairpin}
}

func refEncap(t *Tunnel, p *packet.Packet) Result {
	src := packet.VXLANSrcPort(p.Tuple())
	if !t.InnerDst.IsZero() {
		p.SetEthDst(t.InnerDst)
	}
	if !t.InnerSrc.IsZero() {
		p.SetEthSrc(t.InnerSrc)
	}
	if p.Encap(packet.Outer{Kind: t.Kind, EthSrc: p.Headers().EthSrc, EthDst: p.Headers().EthDst, Src: t.Src, Dst: t.Dst, SrcPort: src,
		DstPort: t.Port, VNI: t.VNI, TTL: 128}) != nil {
		return Result{Reason: trace.BadPacket}
	}
	return Result{Pass: true}
}

// rewrite says what an action sets, the pool that the source is taken from, and
// why the packet fails.
func (r *refPort) rewrite(action Action, h *packet.Headers) (rw packet.Rewrite, pool *Pool, failure trace.Reason) {
	switch a := action.(type) {
	case NAT:
		return a.Set, nil, ""
	case *Transpose:
		return a.Set, nil, ""
	case DynNAT:
		return rw, a.Pool, ""
	case PARoute:
		hop, ok := a.Next.NextHop(h.Dst)
		if !ok {
			return rw, nil, hop.Reason
		}
		return packet.Rewrite{Set: packet.RwEthSrc | packet.RwEthDst, EthSrc: hop.Src, EthDst: hop.Dst}, nil, ""
	case LBNAT:
		if len(a.Targets) == 0 {
			return rw, nil, trace.NoBackend
		}
		t := a.Targets[hash(h, a.BySource)%uint32(len(a.Targets))]
		if !a.KeepDst {
			rw.Set, rw.Dst, rw.DstPort = packet.RwDst|packet.RwDstPort, t.Addr, t.Port
		}
		if !t.MAC.IsZero() {
			rw.Set, rw.EthDst = rw.Set|packet.RwEthDst, t.MAC
			if a.Hairpin {
				rw.Set, rw.EthSrc = rw.Set|packet.RwEthSrc, r.mac
			}
		}
		return rw, a.Pool, ""
	}
	return rw, nil, "" // allow
}

// connect keeps the flow of a packet and that of the replies.
func (r *refPort) connect(l *Layer, rule *Rule, dir Direction, before, after packet.Tuple, rw packet.Rewrite, hairpin bool,
	cameFrom packet.MAC, life *refLife) {
	after = after.Reverse()
	var reverse packet.Rewrite
	if rw.Set&(packet.RwDst|packet.RwDstPort) != 0 {
		reverse.Set |= packet.RwSrc | packet.RwSrcPort
		reverse.Src, reverse.SrcPort = before.Dst, before.DstPort
	}
	if rw.Set&(packet.RwSrc|packet.RwSrcPort) != 0 {
		reverse.Set |= packet.RwDst | packet.RwDstPort
		reverse.Dst, reverse.DstPort = before.Src, before.SrcPort
	}
	reverseDir := 1 - dir
	if hairpin {
		reverseDir = dir
		reverse.Set |= packet.RwEthDst | packet.RwEthSrc
		reverse.EthDst, reverse.EthSrc = cameFrom, r.mac
	}
	r.put(&refFlow{l.Name, dir, before, rule.ID, rw, hairpin, life})
	if reverseDir != dir || after != before {
		r.put(&refFlow{l.Name, reverseDir, after, rule.ID, reverse, hairpin, life})
	}
}

func (r *refPort) put(f *refFlow) {
	r.flows = slices.DeleteFunc(r.flows, func(o *refFlow) bool { return o.layer == f.layer && o.dir == f.dir && o.tuple == f.tuple })
	r.flows = append(r.flows, f)
}

func (r *refPort) bind(pool *Pool, proto packet.Proto, life *refLife, now time.Duration) (uint16, bool) {
	if r.pools == nil {
		r.pools = map[*Pool]*refPool{}
	}
	rp := r.pools[pool]
	if rp == nil {
		rp = &refPool{}
		r.pools[pool] = rp
	}
	rp.inUse = slices.DeleteFunc(rp.inUse, func(u refUse) bool { return u.life.over(now) })
	for {
		var ports []uint16
		for _, first := range pool.Blocks {
			for i := range 64 {
				ports = append(ports, first+uint16(i))
			}
		}
		for range ports {
			port := ports[rp.next%len(ports)]
			rp.next++
			if !slices.ContainsFunc(rp.inUse, func(u refUse) bool { return u.proto == proto && u.port == port }) {
				rp.inUse = append(rp.inUse, refUse{proto, port, life})
				return port, true
			}
		}
		if pool.More == nil {
			return 0, false
		}
		first, ok := pool.More()
		if !ok {
			return 0, false
		}
		rp.next = len(ports)
		pool.Blocks = append(pool.Blocks, first)
	}
}
