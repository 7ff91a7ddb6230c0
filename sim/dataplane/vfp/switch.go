package vfp

import (
	"fmt"
	"maps"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
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

	bindings map[binding]*Port // by the flows of NAT pools
	static   map[binding]*Port // by Bind
	byMAC    map[packet.MAC]*Port
}

// binding is a source address and port that some port's NAT pool has taken.
type binding struct {
	addr  netip.Addr
	proto packet.Proto
	port  uint16
}

// NewSwitch returns a switch without ports.
func NewSwitch(name, kind string) *Switch {
	return &Switch{Name: name, Kind: kind, bindings: map[binding]*Port{}, static: map[binding]*Port{}, byMAC: map[packet.MAC]*Port{}}
}

// AddPort plugs a port in.
func (s *Switch) AddPort(p *Port) {
	p.sw = s
	s.Ports = append(s.Ports, p)
	if !p.External {
		s.byMAC[p.MAC] = p
	}
}

// RemovePort unplugs a port and forgets its flows and what its pools had bound.
func (s *Switch) RemovePort(p *Port) {
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
	s.static[binding{addr, proto, port}] = to
}

// Unbind forgets all that Bind set.
func (s *Switch) Unbind() { clear(s.static) }

// External returns the port to the physical NIC, or nil.
func (s *Switch) External() *Port {
	for _, p := range s.Ports {
		if p.External {
			return p
		}
	}
	return nil
}

// Reset forgets all flows and bindings.
func (s *Switch) Reset() {
	clear(s.bindings)
	for _, p := range s.Ports {
		p.Reset()
	}
}

// Fate is what became of a packet in the switch.
type Fate struct {
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
// that it leaves through. It does not call Deliver: the caller does, so that
// it can schedule. Frames to a group address are not for Send; see Flood.
func (s *Switch) Send(from *Port, p *packet.Packet, env *Env) Fate {
	for range maxHairpins {
		r := from.Process(p, from.enter(), env)
		if !r.Pass || r.Hole != "" {
			return Fate{Result: r}
		}
		to, reason := s.forward(from, p, env)
		if to == nil {
			return Fate{Result: Result{Reason: reason}}
		}
		r = to.Process(p, to.leave(), env)
		if !r.Pass || r.Hole != "" || !r.Hairpin {
			if r.Pass && r.Hole == "" {
				return Fate{To: to, Result: r}
			}
			return Fate{Result: r}
		}
		from = to
	}
	if env.Rec.On() {
		env.Rec.Add(trace.Step{Place: env.Place, Object: "vSwitch " + s.Name, Action: trace.ActDrop,
			Event: trace.Note("sent back into the switch again and again"), Reason: trace.TTLExceeded}.Cite(factBridge))
	}
	return Fate{Result: Result{Reason: trace.TTLExceeded}}
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

// forward finds the port that a packet leaves through.
func (s *Switch) forward(from *Port, p *packet.Packet, env *Env) (*Port, trace.Reason) {
	h := p.Headers()
	if h.Proto == packet.TCP || h.Proto == packet.UDP {
		b := binding{h.Dst, h.Proto, h.DstPort}
		to := s.bindings[b]
		if to == nil {
			to = s.static[b]
		}
		if to != nil && (to != from || !to.Host) {
			// The frame carries the host's MAC address; the owner of the port
			// must accept it.
			p.SetEthDst(to.MAC)
			if env.Rec.On() {
				s.record(env, fmt.Sprintf("to port %s: its NAT pool has bound %s", to.name(), netip.AddrPortFrom(h.Dst, h.DstPort)), p, factSteer)
			}
			return to, ""
		}
	}
	if to := s.byMAC[h.EthDst]; to != nil {
		if to == from && !to.Host && h.Src == h.Dst && !s.KeepLoopback {
			if env.Rec.On() {
				env.Rec.Add(trace.Step{Place: env.Place, Object: "vSwitch " + s.Name, Action: trace.ActDrop, Reason: trace.HairpinToSelf,
					Event: trace.Note(fmt.Sprintf("back to port %s with source and destination both %s: dropped", to.name(), h.Src)), Packet: env.Rec.Describe(p)}.Cite(factLoopback))
			}
			return nil, trace.HairpinToSelf
		}
		if env.Rec.On() {
			s.record(env, "bridged to port "+to.name(), p, factBridge)
		}
		return to, ""
	}
	if ext := s.External(); ext != nil && ext != from {
		if env.Rec.On() {
			s.record(env, "to the external port", p, factBridge)
		}
		return ext, ""
	}
	if env.Rec.On() {
		env.Rec.Add(trace.Step{Place: env.Place, Object: "vSwitch " + s.Name, Action: trace.ActDrop, Reason: trace.NoNeighbour,
			Event: trace.Note("no port has the MAC address " + h.EthDst.String()), Packet: env.Rec.Describe(p)}.Cite(factBridge))
	}
	return nil, trace.NoNeighbour
}

func (p *Port) name() string {
	if p.Label != "" {
		return p.Label
	}
	return p.ID
}

func (s *Switch) record(env *Env, text string, p *packet.Packet, f *evidence.Fact) {
	env.Rec.Add(trace.Step{Place: env.Place, Object: "vSwitch " + s.Name, Action: trace.ActForward, Event: trace.Note(text), Packet: env.Rec.Describe(p)}.Cite(f))
}
