package host

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Link is one interface of a stack.
type Link struct {
	Name  string
	MAC   packet.MAC
	Addrs []netip.Prefix // with host bits: address and prefix length
	// Send hands a finished frame on; Resolve finds the MAC address of a
	// neighbour. The machine that has the link sets both.
	Send    func(sim *wire.Simulation, p *packet.Packet)
	Resolve func(ip netip.Addr) (packet.MAC, bool)
	// MTU is the largest IP packet in bytes that leaves by the link; 0 is that of
	// Ethernet, and open on Windows.
	MTU int
	// MTUFact is what that rests on, nil for the lab or a standard.
	MTUFact *evidence.Fact
	// Down links neither send nor receive.
	Down bool
}

// Owns reports whether the link has the address.
func (l *Link) Owns(a netip.Addr) bool {
	for _, p := range l.Addrs { // every machine of a segment is asked for a neighbour
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// address returns the first address of the family, the zero Addr for none.
func (l *Link) address(v6 bool) netip.Addr {
	for _, p := range l.Addrs {
		if p.Addr().Is6() == v6 {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// Stack is one IP stack.
type Stack struct {
	// Place and Object name the stack in traces: "win1", "host stack".
	Place, Object string
	// Windows says whose behaviour it has.
	Windows    bool
	Forwarding bool
	// ForwardingUnknown says why it is not known whether the stack forwards; a
	// packet that it would have to pass on is then unknown. "" with Forwarding off
	// is known to be off.
	ForwardingUnknown string
	// PortsUnknown says why it is not known who listens, besides those that are known: what
	// becomes of a packet to another port is unknown. "" where all are known.
	PortsUnknown string
	// RoutesUnknown says why the routes of the stack are not all known; a packet that
	// would leave by the default route, or has no route, is then unknown.
	RoutesUnknown string
	// ReversePathOpen says that the machine has a reverse path filter (Linux,
	// rp_filter) and it is not known whether it is strict. A packet whose source the
	// stack would not reach by the link that it came in on asks.
	ReversePathOpen bool
	Links           []*Link
	// Refuse lists protocols that programs on this stack cannot use.
	Refuse []Refusal
	// Firewall, when set, decides about the packets that the stack passes on for
	// others.
	Firewall Firewall
	// NAT is the translation that the stack does itself, nil for none.
	NAT *NAT
	// TunnelPorts are the UDP ports on which the machine takes tunnel packets
	// before its stack sees them (a virtual switch does).
	TunnelPorts []uint16

	// Outside, when set, reports whether a program outside the simulation listens; then
	// the simulated ones answer in its place. Without such a program the port is closed.
	Outside func(proto packet.Proto, at netip.AddrPort) bool

	// OnUse, when set, is called when a program of the stack sends, or a packet comes to
	// it, for the first time since the last Reset: then there may be something to forget.
	OnUse func()
	// In, when set, is told of the same, besides.
	In *Used

	routes    []Route
	table     *table // of routes, nil until it is needed
	used      bool   // since the last Reset; set even where it is not read
	touched   bool
	in        bool // In has it
	vteps     []*VTEP
	gates     []Gate
	listeners []*Listener
	sockets   map[packet.Tuple]*Socket
	talked    map[packet.Tuple]bool // see Emit
	opened    int                   // sockets since the last Reset
	nextPort  uint16
	outside   bool // the packet on its way out is one of programs outside
}

// Refusal is a protocol that a stack cannot do, with the reason.
type Refusal struct {
	Proto packet.Proto
	Text  string
	Fact  *evidence.Fact
}

// Owns reports whether an address is one of the stack's own.
func (s *Stack) Owns(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(s.Links, func(l *Link) bool { return l.Owns(a) })
}

// Address returns the first address of the family that the stack has.
func (s *Stack) Address(v6 bool) netip.Addr {
	for _, l := range s.Links {
		if a := l.address(v6); a.IsValid() {
			return a
		}
	}
	return netip.Addr{}
}

// AddLink adds an interface and the routes to the networks on it.
func (s *Stack) AddLink(l *Link) {
	s.Links = append(s.Links, l)
	for _, p := range l.Addrs {
		if !p.IsSingleIP() {
			s.AppendRoutes(Route{To: p.Masked(), Link: l})
		}
	}
}

// Use notes that the stack, or what its machine does besides it, changes now.
func (s *Stack) Use() {
	s.touched = true
	if s.In != nil && !s.in {
		s.in, s.In.stacks = true, append(s.In.stacks, s)
	}
	if s.used || s.OnUse == nil {
		return
	}
	s.used = true
	s.OnUse()
}

// Used are the stacks of a machine's compartments that were used since the last Reset: of a hundred
// pods on a node few are.
type Used struct{ stacks []*Stack }

// Reset resets them.
func (u *Used) Reset() {
	for _, s := range u.stacks {
		s.Reset()
		s.in = false
	}
	clear(u.stacks)
	u.stacks = u.stacks[:0]
}

// output sends a packet that a program of this stack made. The MAC addresses
// are filled in here.
func (s *Stack) output(sim *wire.Simulation, p *packet.Packet) {
	s.Use()
	if r := s.refused(p.Headers().Proto); r != nil {
		s.drop(sim, p, trace.ProtocolNotSupported, trace.Note(r.Text), r.Fact)
		return
	}
	if s.NAT != nil && !s.NAT.destination(s, sim, p, Output) {
		return
	}
	if s.keepsInside(p.Headers().Dst) {
		s.inside(sim, p)
		return
	}
	s.route(sim, p, sentVerb)
}

// keepsInside reports whether packets to an address do not leave the stack: it
// is one of its own, and no route of its own sends them out.
func (s *Stack) keepsInside(dst netip.Addr) bool {
	if !s.Owns(dst) {
		return false
	}
	r, ok := s.lookup(dst)
	return !ok || !r.Own || !r.To.IsSingleIP()
}

// inside handles a packet to the stack's own address.
func (s *Stack) inside(sim *wire.Simulation, p *packet.Packet) {
	f := factOwn
	if !s.Windows {
		f = factOwnLinux
	}
	s.step(sim, p, trace.Step{Action: trace.ActNote, Event: trace.Of(ownAddress{p.Headers().Dst})}, f)
	sim.Queue(func() { s.local(sim, p, true) })
}

// route sends a packet on by the route table.
func (s *Stack) route(sim *wire.Simulation, p *packet.Packet, verb string) {
	hop, reason := s.NextHop(p.Headers().Dst)
	if why := s.UnknownWay(hop); why != "" {
		sim.RecordUnknown(why)
	}
	if reason != "" {
		s.drop(sim, p, reason, trace.Of(noWay{hop}), factRoute)
		return
	}
	if s.NAT != nil && !s.NAT.source(s, sim, p, hop.Link) {
		return
	}
	before := *p.Headers()
	p.SetEthSrc(hop.Link.MAC)
	p.SetEthDst(hop.MAC)
	if sim.Rec.On() {
		f := hop.route.Fact
		if f == nil {
			f = factRoute
		}
		s.step(sim, p, trace.Step{Action: trace.ActForward, Event: trace.Of(routed{verb, hop}), From: hop.route.Origin,
			Changes: diff.Headers(sim.Rec, &before, p.Headers(), diff.MAC)}, f)
	}
	if s.fits(sim, hop.Link, p, verb != sentVerb) {
		hop.Link.Send(sim, p)
	}
}

// sentVerb is how route calls what the stack itself sends.
const sentVerb = "sent"

// Firewall is a packet filter of a stack that forwards.
type Firewall interface {
	// Pass reports whether a packet may go on; it records why not.
	Pass(sim *wire.Simulation, p *packet.Packet) bool
	// Forget makes it forget the connections that it has seen.
	Forget()
}

// Input takes a frame that arrived on a link.
func (s *Stack) Input(sim *wire.Simulation, l *Link, p *packet.Packet) {
	s.Use()
	h := p.Headers()
	if h.EtherType == packet.EtherARP {
		s.arp(sim, l, p)
		return
	}
	if h.IPVersion == 0 || l.Down || h.EthDst != l.MAC && !h.EthDst.IsMulticast() {
		return
	}
	if sim.Rec.On() {
		sim.Rec.Arrive(s.Place, s.Object, p)
	}
	// A reply's source is translated back after routing (nf_nat_packet: the source
	// is that of POSTROUTING and LOCAL_IN), so the filter sees the one on the wire.
	src := h.Src
	if s.NAT != nil && !s.NAT.destination(s, sim, p, Prerouting) {
		return
	}
	if s.ReversePathOpen && !s.reachedBy(src, l) && sim.Ask(questionReversePath, s.Place) == "strict" {
		s.drop(sim, p, trace.SpoofedSource, trace.Of(wrongLink{src, l.Name}), factReversePath)
		return
	}
	if s.Owns(h.Dst) || h.Dst.IsMulticast() {
		s.local(sim, p, false)
		return
	}
	s.forward(sim, p)
}

// reachedBy reports whether the stack reaches an address by a link, or has it
// itself.
func (s *Stack) reachedBy(a netip.Addr, l *Link) bool {
	if s.Owns(a) {
		return true
	}
	r, ok := s.lookup(a)
	return ok && r.Link == l
}

// forward passes a packet on for others.
func (s *Stack) forward(sim *wire.Simulation, p *packet.Packet) {
	if !s.Forwarding && s.ForwardingUnknown != "" {
		sim.RecordUnknown(s.ForwardingUnknown)
	}
	if !s.Forwarding {
		s.drop(sim, p, trace.NotForwarding, trace.Of(forwardingOff{p.Headers().Dst}), factForward)
		return
	}
	if s.Firewall != nil && !s.Firewall.Pass(sim, p) {
		return
	}
	if left := p.DecTTL(); left == 0 {
		s.drop(sim, p, trace.TTLExceeded, trace.Note("hop limit used up"), factForward)
		return
	}
	s.route(sim, p, "forwarded")
}

// arp answers for the link's own addresses.
func (s *Stack) arp(sim *wire.Simulation, l *Link, p *packet.Packet) {
	h := p.Headers()
	if sim.Sink != nil && l.Owns(h.ARPTarget) && sim.Sink(s.Place, s.Object, p) {
		return
	}
	if h.ARPOp == 1 && l.Owns(h.ARPTarget) {
		l.Send(sim, packet.BuildARP(2, l.MAC, h.ARPSenderMAC, h.ARPTarget, h.ARPSender))
	}
}

func (s *Stack) refused(proto packet.Proto) *Refusal {
	for i := range s.Refuse {
		if s.Refuse[i].Proto == proto {
			return &s.Refuse[i]
		}
	}
	return nil
}

// step records one step of this stack.
func (s *Stack) step(sim *wire.Simulation, p *packet.Packet, st trace.Step, f *evidence.Fact) {
	if st.Reason != "" {
		sim.RecordLoss(s.Place, s.Object, st.Reason)
	}
	if !sim.Rec.On() {
		return
	}
	st.Place, st.Object = s.Place, s.Object
	if p != nil {
		st.Packet = sim.Rec.Describe(p)
	}
	st.Rest(f)
	sim.Rec.Put(&st)
}

func (s *Stack) drop(sim *wire.Simulation, p *packet.Packet, reason trace.Reason, e trace.Event, f *evidence.Fact) {
	s.step(sim, p, trace.Step{Action: trace.ActDrop, Reason: reason, Event: e}, f)
}
