package vfp

import (
	"maps"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Switch is one virtual switch.
type Switch struct {
	Name string
	// Kind is external, internal or private.
	Kind  string
	Ports []*Port
	// KeepLoopback delivers packets that come back to a container's port with
	// equal source and destination. The default drops them.
	KeepLoopback bool

	object   string            // how steps name it
	bindings map[binding]*Port // by the flows of NAT pools
	static   map[binding]*Port // by Bind
	byMAC    map[packet.MAC]*Port
	used     []*Port // those that packets came to since the last Reset

	// changes counts changes of ports and of bindings that are taken away or fixed, bound
	// for each bucket of bindings those that flows made; see path.Record.
	changes uint32
	bound   [boundBuckets]uint32
	ways    *path.Ways
}

// binding is a source address and port that some port's NAT pool has taken.
type binding struct {
	addr  netip.Addr
	proto packet.Proto
	port  uint16
}

// boundBuckets is how many buckets there are for bindings. A path that rests on there
// being none looks at one of them.
const boundBuckets = 1 << 8

func (b *binding) bucket() int {
	a := b.addr.As16()
	return int(uint16(a[14])<<8|uint16(a[15])^b.port^uint16(b.proto)) % boundBuckets
}

// bind hands packets to a port that a flow of one of its NAT pools has bound.
func (s *Switch) bind(b binding, to *Port, undo *journal.Journal) {
	s.ways.Changed()
	journal.KeepKey(undo, s.bindings, b)
	if s.bindings[b] != to {
		n := &s.bound[b.bucket()]
		journal.Keep(undo, n)
		*n++
	}
	s.bindings[b] = to
}

// NewSwitch returns a switch without ports.
func NewSwitch(name, kind string) *Switch {
	return &Switch{Name: name, Kind: kind, object: "vSwitch " + name, bindings: map[binding]*Port{}, static: map[binding]*Port{},
		byMAC: map[packet.MAC]*Port{}}
}

// AddPort plugs a port in.
func (s *Switch) AddPort(p *Port) {
	p.sw = s
	if p.used {
		s.used = append(s.used, p)
	}
	s.ways.Changed()
	s.changes++
	s.Ports = append(s.Ports, p)
	if !p.External {
		s.byMAC[p.MAC] = p
	}
}

// RemovePort unplugs a port and forgets its flows and what its pools had bound.
func (s *Switch) RemovePort(p *Port) {
	s.ways.Changed()
	s.changes++
	p.changes++
	for i, q := range s.Ports {
		if q == p {
			s.Ports = append(s.Ports[:i:i], s.Ports[i+1:]...)
			break
		}
	}
	if s.byMAC[p.MAC] == p {
		delete(s.byMAC, p.MAC)
		for _, q := range s.Ports {
			if !q.External && q.MAC == p.MAC {
				s.byMAC[q.MAC] = q
			}
		}
	}
	bound := func(_ binding, q *Port) bool { return q == p }
	maps.DeleteFunc(s.bindings, bound)
	maps.DeleteFunc(s.static, bound)
	p.Reset()
	p.sw = nil
}

// Bind hands packets to an address and port to a port of the switch, as a NAT
// rule of that port needs it.
func (s *Switch) Bind(addr netip.Addr, proto packet.Proto, port uint16, to *Port) {
	s.ways.Changed()
	s.changes++
	s.static[binding{addr, proto, port}] = to
}

// Unbind forgets all that Bind set.
func (s *Switch) Unbind() {
	s.ways.Changed()
	s.changes++
	clear(s.static)
}

// external returns the port to the physical NIC, or nil.
func (s *Switch) external() *Port {
	for _, p := range s.Ports {
		if p.External {
			return p
		}
	}
	return nil
}

// Reset forgets all flows and bindings.
func (s *Switch) Reset() {
	s.ways.Changed()
	s.changes++
	clear(s.bindings)
	for _, p := range s.used {
		p.Reset()
	}
	clear(s.used)
	s.used = s.used[:0]
}

// Outcome is what became of a packet in the switch.
type Outcome struct {
	// To is the port that it leaves through, nil when it goes no further.
	To *Port
	Result
}

// enter and leave name the directions in which a packet enters and leaves the
// switch through a port.
func (p *Port) enter() Direction {
	if p.External {
		return In
	}
	return Out
}

func (p *Port) leave() Direction {
	if p.External {
		return Out
	}
	return In
}

// maxHairpins bounds how often one packet may be sent back into the switch.
const maxHairpins = 4

// Send takes a packet in at a port, forwards it and processes it at the port
// that it leaves through. The packet is then the caller's to deliver. Frames to
// a group address are not for Send; see Flood.
func (s *Switch) Send(from *Port, p *packet.Packet, env *Env) Outcome {
	env.Path.Rests(&s.changes, &s.ways)
	for range maxHairpins {
		r := from.Process(p, from.enter(), env)
		if !r.Pass {
			return Outcome{Result: r}
		}
		to, reason := s.forward(from, p, env)
		if to == nil {
			return Outcome{Result: drop(reason)}
		}
		r = to.Process(p, to.leave(), env)
		if !r.Pass {
			return Outcome{Result: r}
		}
		if !r.Hairpin {
			return Outcome{To: to, Result: r}
		}
		from = to
	}
	if env.Rec.On() {
		s.record(env, nil, &trace.Step{Action: trace.ActDrop, Event: trace.Of(hairpinLimit{}), Reason: trace.TTLExceeded}, factBridge)
	}
	return Outcome{Result: drop(trace.TTLExceeded)}
}

// Flood returns the ports that a frame to a group address leaves through.
func (s *Switch) Flood(from *Port) []*Port {
	var to []*Port
	for _, p := range s.Ports {
		if p != from {
			to = append(to, p)
		}
	}
	return to
}

// forward finds the port that a packet leaves through; nil and the reason when
// there is none.
func (s *Switch) forward(from *Port, p *packet.Packet, env *Env) (*Port, trace.Reason) {
	if to := s.steer(from, p, env); to != nil {
		return to, ""
	}
	h := p.Headers()
	if to := s.byMAC[h.EthDst]; to != nil {
		return s.bridge(from, to, p, env)
	}
	if ext := s.external(); ext != nil && ext != from {
		if env.Rec.On() {
			s.record(env, p, &trace.Step{Action: trace.ActForward, Event: trace.Of(toExternal{})}, factBridge)
		}
		return ext, ""
	}
	if env.Rec.On() {
		s.record(env, p, &trace.Step{Action: trace.ActDrop, Reason: trace.NoNeighbour, Event: trace.Of(noSuchMAC{h.EthDst})}, factBridge)
	}
	return nil, trace.NoNeighbour
}

// steer hands a packet to the port that has bound its destination address and
// port, or returns nil. The frame carries the host's MAC address, so it gets
// that of the port, whose owner must accept it.
func (s *Switch) steer(from *Port, p *packet.Packet, env *Env) *Port {
	h := p.Headers()
	if h.Proto != packet.TCP && h.Proto != packet.UDP {
		return nil
	}
	b := binding{h.Dst, h.Proto, h.DstPort}
	env.Path.Rests(&s.bound[b.bucket()], &s.ways)
	to := s.bindings[b]
	if to == nil {
		to = s.static[b]
	}
	if to == nil || to == from && to.Host {
		return nil
	}
	p.SetEthDst(to.MAC)
	if env.Rec.On() {
		s.record(env, p, &trace.Step{Action: trace.ActForward, Event: trace.Of(steered{to.name(), netip.AddrPortFrom(h.Dst, h.DstPort)})},
			factSteer)
	}
	return to
}

// bridge hands a packet to the port that has its MAC address, unless it is a
// container's own packet coming back to it.
func (s *Switch) bridge(from, to *Port, p *packet.Packet, env *Env) (*Port, trace.Reason) {
	h := p.Headers()
	if to == from && !to.Host && h.Src == h.Dst && !s.KeepLoopback {
		if env.Rec.On() {
			s.record(env, p, &trace.Step{Action: trace.ActDrop, Reason: trace.HairpinToSelf, Event: trace.Of(loopbackDropped{to.name(), h.Src})},
				factLoopback)
		}
		return nil, trace.HairpinToSelf
	}
	if env.Rec.On() {
		s.record(env, p, &trace.Step{Action: trace.ActForward, Event: to.bridgedTo()}, factBridge)
	}
	return to, ""
}

func (p *Port) name() string {
	if p.Label != "" {
		return p.Label
	}
	return p.ID
}

// record adds a step of the switch; p is nil when the step shows no packet.
func (s *Switch) record(env *Env, p *packet.Packet, step *trace.Step, fact *evidence.Fact) {
	step.Place, step.Object = env.Place, s.object
	if p != nil {
		step.Packet = env.Rec.Describe(p)
	}
	step.Rest(fact)
	env.Rec.Put(step)
}

// bridgedTo is the event of a packet that is bridged to the port. It is the same for
// all of them, and kept.
func (p *Port) bridgedTo() trace.Event {
	if e, ok := p.bridged.Detail.(bridged); !ok || e.to != p.name() {
		p.bridged = trace.Of(bridged{p.name()})
	}
	return p.bridged
}
