package inject

import (
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Ports are the places where programs outside the simulation are plugged into a
// cluster: each pod, node and host has its own TCP/IP stack outside, with the
// addresses that it has in the lab. Routers stay inside.
//
// What is put in goes the same way as the packets of a trace. It is not safe for
// concurrent use, nor together with another use of the cluster.
type Ports struct{ j *Injector }

// ports is the state of an Injector with programs outside.
type ports struct {
	entries map[*host.Stack]*Entry
	arrived []Arrival
	entry   *Entry         // where the last packet was put in
	sent    *packet.Packet // the one that was put in
	wires   Wires          // nil for links without time
	held    int            // packets that links hold up since the last Put or Resume
	// acks are the last acknowledgements that programs sent, by their tuple.
	acks map[packet.Tuple]uint32
	// rec is used again for each packet that is recorded.
	rec *trace.Recorder
}

// Arrival is a packet for the programs at an entry. It is valid until the next
// packet is put in.
type Arrival struct {
	To     *Entry
	Packet *packet.Packet
	// Sent says that it is the packet that was put in, and not one that the
	// simulation made of it or in answer to it.
	Sent bool
}

// Wires supply time and randomness for links that are slow or lossy.
type Wires interface {
	// Now is the time of the links.
	Now() time.Duration
	// Hold keeps a packet, for Ports.Resume at a time. It reports false when it
	// keeps too many.
	Hold(until time.Duration, h *Held) bool
	// Random is a random number from 0 on, less than 1.
	Random() float64
}

// Held is a packet on its way over a slow link.
type Held struct {
	entry  *Entry
	packet *packet.Packet
	sent   bool
	on     func(*packet.Packet)
	rec    *trace.Recorder
}

// Len is the length of the frame in bytes.
func (h *Held) Len() int { return h.packet.Len() }

// pace is the simulation's view of wires.
type pace struct{ j *Injector }

func (w pace) Now() time.Duration { return w.j.live.wires.Now() }

func (w pace) Random() float64 { return w.j.live.wires.Random() }

func (w pace) Hold(until time.Duration, p *packet.Packet, on func(*packet.Packet)) bool {
	l := w.j.live
	// The frame's buffer is that of the next one.
	h := &Held{entry: l.entry, packet: p.Clone(), sent: p == l.sent, on: on, rec: w.j.sim.Rec}
	if !l.wires.Hold(until, h) {
		return false
	}
	if l.rec == h.rec {
		l.rec = nil // it goes on with the packet
	}
	l.held++
	return true
}

// Open forgets all flows of a cluster and plugs its pods, nodes and hosts to
// programs outside. Hop may be nil; without wires links take no time and lose nothing
// by chance.
func Open(c *cluster.Cluster, hop Hop, wires Wires) *Ports {
	j := New(c, hop, false)
	j.live = &ports{entries: map[*host.Stack]*Entry{}, acks: map[packet.Tuple]uint32{}, wires: wires}
	if wires != nil {
		j.sim.Pace = pace{j}
	}
	p := &Ports{j}
	p.Refresh()
	return p
}

// Listening reports whether a program outside listens at an entry: on an address and
// port of TCP or UDP.
type Listening func(e *Entry, proto packet.Proto, at netip.AddrPort) bool

// Listen lets the simulated stacks answer for programs outside, where listens says that one
// is there, until stop is called. It is for packets that are sent inside the simulation.
func (p *Ports) Listen(listens Listening) (stop func()) {
	for st, e := range p.j.live.entries {
		st.Outside = func(proto packet.Proto, at netip.AddrPort) bool { return listens(e, proto, at) }
	}
	return func() {
		for st := range p.j.live.entries {
			st.Outside = nil
		}
	}
}

// Now is the time of the last packet, since the ports were opened.
func (p *Ports) Now() time.Duration { return p.j.sim.Now() }

// Refresh follows pods that have come or gone.
func (p *Ports) Refresh() {
	j := p.j
	for name, e := range j.ports {
		if e.stack != nil {
			delete(j.ports, name)
		}
	}
	clear(j.stacks)
	clear(j.byMAC)
	clear(j.byAddr)
	clear(j.live.entries)
	j.findEntries()
	// Pods in the node's own network are the node.
	for _, kind := range []cluster.Kind{cluster.PodKind, cluster.HostKind, cluster.NodeKind} {
		for _, m := range j.c.Machines(kind) {
			if e := j.ports[m.Ref.String()]; e != nil {
				j.live.entries[e.stack] = e
			}
		}
	}
}

// Add makes the place of a machine that has come, without a look at all others, and
// returns it: that of the node for a pod in the network of its node.
func (p *Ports) Add(m *cluster.Machine) *Entry {
	j := p.j
	if e := j.live.entries[m.Stack()]; e != nil {
		return e
	}
	name := m.Ref.String()
	j.entry(name, m.Stack(), m.HasOwnNetwork())
	e := j.ports[name]
	if e != nil {
		j.live.entries[e.stack] = e
	}
	return e
}

// Remove forgets the place of a machine that has gone.
func (p *Ports) Remove(e *Entry) {
	j := p.j
	if j.ports[e.Name] == e {
		delete(j.ports, e.Name)
	}
	delete(j.live.entries, e.stack)
	delete(j.stacks, [2]string{e.stack.Place, e.stack.Object})
	for _, l := range e.stack.Links {
		if j.byMAC[l.MAC] == e {
			delete(j.byMAC, l.MAC)
		}
		for _, a := range l.Addrs {
			if j.byAddr[a.Addr()] == e {
				delete(j.byAddr, a.Addr())
			}
		}
	}
}

// Entries are the places with a stack of their own, by name: "pod/default/client",
// "node/win1", "host/internet".
func (p *Ports) Entries() map[string]*Entry {
	all := map[string]*Entry{}
	for _, e := range p.j.live.entries {
		all[e.Name] = e
	}
	return all
}

// Entry finds the place of a machine; pods in the network of their node are at the
// node's. Nil for none.
func (p *Ports) Entry(m *cluster.Machine) *Entry { return p.j.live.entries[m.Stack()] }

// Stack is the simulated stack at the place.
func (e *Entry) Stack() *host.Stack { return e.stack }

// take keeps what arrives for a stack with programs outside.
func (l *ports) take(s *host.Stack, p *packet.Packet) bool {
	e := l.entries[s]
	if e == nil {
		return false
	}
	if h := p.Headers(); p != l.sent && h.Proto == packet.TCP && h.TCPFlags&packet.RST != 0 {
		// A reset that the simulation made: a TCP stack takes it only in sequence
		// (RFC 9293 section 3.5.3).
		p.SetSeq(l.acks[p.Tuple().Reverse()])
	}
	l.arrived = append(l.arrived, Arrival{e, p, p == l.sent})
	return true
}

// Parts say what a frame stands for that goes as several on the wire.
type Parts struct {
	// Segments is the payload of the segments into which the sender's device cuts it, in
	// bytes; Fragments is the length of the IP packets of the fragments that it was put
	// together from. 0 for none.
	Segments, Fragments int
}

// Put puts a frame of the programs at an entry in and follows it to its end. What
// arrived somewhere is valid until the next call; nothing arrives of a packet that
// met what is not modelled, and that of one that a link holds up comes with Resume.
// Record keeps the steps, for Steps. The time is that
// since the cluster's ports were opened.
//
// The error is a *packet.ParseError of a frame that was not put in.
func (p *Ports) Put(e *Entry, frame []byte, parts Parts, now time.Duration, record bool) (Outcome, []Arrival, error) {
	j := p.j
	if err := j.p.Load(frame); err != nil {
		return Outcome{Verdict: trace.Dropped, Reason: trace.BadPacket, Place: e.Name}, nil, err
	}
	switch h := j.p.Headers(); {
	case parts.Fragments > 0:
		j.p.Fragment(parts.Fragments)
	case parts.Segments > 0 && h.L4 > 0:
		j.p.Segment(h.Payload - h.L3 + parts.Segments)
	}
	if j.sim.Rec = nil; record {
		if j.live.rec == nil {
			j.live.rec = &trace.Recorder{}
		}
		j.sim.Rec = j.live.rec
	}
	j.begin(e, now)
	j.live.begin(e, &j.p)
	j.live.note(&j.p)
	if h := j.p.Headers(); h.IPVersion == 0 || h.EthDst.IsMulticast() {
		e.link.Send(&j.sim, &j.p)
	} else {
		e.stack.Emit(&j.sim, &j.p)
	}
	f, arrived := p.follow()
	return f, arrived, nil
}

// begin prepares for a packet that was put in at an entry.
func (l *ports) begin(e *Entry, sent *packet.Packet) {
	l.arrived, l.held, l.entry, l.sent = l.arrived[:0], 0, e, sent
}

// follow lets happen what is to happen.
func (p *Ports) follow() (Outcome, []Arrival) {
	j := p.j
	f := j.outcome(j.sim.Run())
	if f.Verdict == trace.Unknown {
		return f, nil
	}
	return f, j.live.arrived
}

// Resume lets a packet go on that Wires has held, as Put does.
func (p *Ports) Resume(h *Held, now time.Duration) (Outcome, []Arrival) {
	j, sim := p.j, &p.j.sim
	sim.AdvanceTo(now)
	sim.Losses, sim.Made, sim.Rec = wire.Losses{}, sim.Made[:0], h.rec
	j.sunk, j.to = 0, nil
	j.live.begin(h.entry, nil)
	if h.sent {
		j.live.sent = h.packet
	}
	h.on(h.packet)
	return p.follow()
}

// maxAcks bounds the connections whose acknowledgements are known.
const maxAcks = 1 << 17

// note keeps what a connection has acknowledged, until it ends.
func (l *ports) note(p *packet.Packet) {
	h := p.Headers()
	if h.Proto != packet.TCP || h.TCPFlags&packet.ACK == 0 {
		return
	}
	t := p.Tuple()
	if h.TCPFlags&packet.RST != 0 {
		delete(l.acks, t)
		return
	}
	if len(l.acks) >= maxAcks {
		for k := range l.acks { // any one
			delete(l.acks, k)
			break
		}
	}
	l.acks[t] = h.Ack
}

// Cut ends the connections that a change of HNS cuts, and returns the resets for
// programs. It is for after each change of the cluster.
func (p *Ports) Cut(now time.Duration) []Arrival {
	j := p.j
	j.sim.Rec = nil
	j.sim.AdvanceTo(now)
	j.sim.Losses, j.sim.Made = wire.Losses{}, j.sim.Made[:0]
	j.sunk, j.to = 0, nil
	j.live.begin(nil, nil)
	j.c.Cut(&j.sim)
	_ = j.sim.Run() // a reset that travels in circles arrives nowhere
	return j.live.arrived
}

// Steps are those of the last packet that was put in with record.
func (p *Ports) Steps() []trace.Step {
	if p.j.sim.Rec == nil {
		return nil
	}
	return p.j.sim.Rec.Steps()
}

// Answers are the answers to open questions that the packet rested on.
func (p *Ports) Answers() []trace.Choice {
	var all []trace.Choice
	for _, c := range p.j.sim.Made {
		if c.Param != "" {
			all = append(all, c)
		}
	}
	return all
}
