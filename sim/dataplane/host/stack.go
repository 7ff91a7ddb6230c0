package host

import (
	"fmt"
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
	// neighbour. Both are set by whoever plugs the link in.
	Send    func(sim *wire.Simulation, p *packet.Packet)
	Resolve func(ip netip.Addr) (packet.MAC, bool)
	// Down links neither send nor receive.
	Down bool
}

// Owns reports whether the link has the address.
func (l *Link) Owns(a netip.Addr) bool {
	return slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
}

// Route is one entry of the route table.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr // the zero Addr: on the link
	Link   *Link
	Metric int
	// Own makes the route win for an address of the stack's own: the packet
	// leaves through the link in place of being handled inside.
	Own    bool
	Origin *trace.Origin
	Fact   *evidence.Fact
}

// Stack is one IP stack.
type Stack struct {
	// Place and Object name the stack in traces: "win1", "host stack".
	Place, Object string
	// Windows says whose behaviour it has.
	Windows    bool
	Forwarding bool
	// StrictReversePath drops a packet whose source the stack would not reach by
	// the link that it came in on (Linux, rp_filter 1).
	StrictReversePath bool
	Links             []*Link
	Routes            []Route
	// Refuse lists protocols that programs on this stack cannot use.
	Refuse []Refusal
	// NAT is the translation that the stack does itself, nil for none.
	NAT *NAT
	// VTEPs are tunnel devices of the stack's own (Linux flannel.1).
	VTEPs []*VTEP
	// TunnelPorts are the UDP ports on which the machine takes tunnel packets
	// before its stack sees them (a virtual switch does).
	TunnelPorts []uint16

	listeners []*Listener
	sockets   map[packet.Tuple]*Socket
	nextPort  uint16
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
		for _, p := range l.Addrs {
			if p.Addr().Is6() == v6 {
				return p.Addr()
			}
		}
	}
	return netip.Addr{}
}

// AddLink adds an interface and the routes to the networks on it.
func (s *Stack) AddLink(l *Link) {
	s.Links = append(s.Links, l)
	for _, p := range l.Addrs {
		if !p.IsSingleIP() {
			s.Routes = append(s.Routes, Route{To: p.Masked(), Link: l})
		}
	}
}

// AddRoute adds a route; when Link is nil it is the one on which Via lies.
func (s *Stack) AddRoute(r Route) error {
	if r.Link == nil {
		for _, l := range s.Links {
			if slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Masked().Contains(r.Via) }) {
				r.Link = l
				break
			}
		}
	}
	if r.Link == nil {
		return fmt.Errorf("route to %s via %s: no interface of %s is on the next hop's network", r.To, r.Via, s.Place)
	}
	s.Routes = append(s.Routes, r)
	return nil
}

// Lookup returns the route for an address.
func (s *Stack) Lookup(dst netip.Addr) (Route, bool) {
	best := -1
	for i, r := range s.Routes {
		if !r.To.Contains(dst) || r.Link.Down {
			continue
		}
		if best < 0 || r.To.Bits() > s.Routes[best].To.Bits() ||
			r.To.Bits() == s.Routes[best].To.Bits() && r.Metric < s.Routes[best].Metric {
			best = i
		}
	}
	if best < 0 {
		return Route{}, false
	}
	return s.Routes[best], true
}

// Hop is a resolved next hop.
type Hop struct {
	Link  *Link
	MAC   packet.MAC
	Route Route
	dst   netip.Addr
	mute  bool // nobody answers for the next hop
}

// String says how the way was found: "0.0.0.0/0 via 192.168.1.1". It is put
// into words only when somebody reads it.
func (h Hop) String() string {
	if h.Link == nil {
		return "no route to " + h.dst.String()
	}
	via, s := h.Route.Via, ""
	if via.IsValid() {
		s = fmt.Sprintf("%s via %s", h.Route.To, via)
	} else {
		via = h.dst
		s = fmt.Sprintf("%s on link %s", h.Route.To, h.Link.Name)
	}
	if h.mute {
		s += fmt.Sprintf(": nobody answers for %s", via)
	}
	return s
}

// NextHop finds the way to an address: route and neighbour. The reason is set
// when there is none.
func (s *Stack) NextHop(dst netip.Addr) (Hop, trace.Reason) {
	r, ok := s.Lookup(dst)
	if !ok {
		return Hop{dst: dst}, trace.NoRoute
	}
	hop := Hop{Link: r.Link, Route: r, dst: dst}
	via := r.Via
	if !via.IsValid() {
		via = dst
	}
	mac, ok := r.Link.Resolve(via)
	if !ok {
		hop.mute = true
		return hop, trace.NoNeighbour
	}
	hop.MAC = mac
	return hop, ""
}

// Source picks the source address for a destination: the first of the family
// on the outgoing link, else the first of the stack.
func (s *Stack) Source(dst netip.Addr) netip.Addr {
	if s.Owns(dst) {
		return dst
	}
	if r, ok := s.Lookup(dst); ok {
		for _, p := range r.Link.Addrs {
			if p.Addr().Is6() == dst.Is6() {
				return p.Addr()
			}
		}
	}
	return s.Address(dst.Is6())
}

// Output sends a packet that a program of this stack made. The MAC addresses
// are filled in here.
func (s *Stack) Output(sim *wire.Simulation, p *packet.Packet) {
	if r := s.refused(p.Headers().Proto); r != nil {
		s.drop(sim, p, trace.ProtocolNotSupported, r.Text, r.Fact)
		return
	}
	if s.NAT != nil && !s.NAT.output(s, sim, p) {
		return
	}
	h := p.Headers()
	if s.Owns(h.Dst) {
		if r, ok := s.Lookup(h.Dst); !ok || !r.Own || !r.To.IsSingleIP() {
			s.inside(sim, p)
			return
		}
	}
	s.route(sim, p, "sent")
}

// inside handles a packet to the stack's own address.
func (s *Stack) inside(sim *wire.Simulation, p *packet.Packet) {
	f := factOwn
	if !s.Windows {
		f = factOwnLinux
	}
	h := p.Headers()
	s.step(sim, p, trace.Step{Action: trace.ActNote, Event: trace.Note(fmt.Sprintf("%s is its own address: handled inside the stack", h.Dst))}, f)
	sim.Queue(func() { s.local(sim, p, true) })
}

// route sends a packet on by the route table.
func (s *Stack) route(sim *wire.Simulation, p *packet.Packet, verb string) {
	hop, reason := s.NextHop(p.Headers().Dst)
	if reason != "" {
		s.drop(sim, p, reason, hop.String(), factRoute)
		return
	}
	if s.NAT != nil && !s.NAT.postrouting(s, sim, p, hop.Link) {
		return
	}
	before := *p.Headers()
	p.SetEthSrc(hop.Link.MAC)
	p.SetEthDst(hop.MAC)
	if sim.Rec.On() {
		st := trace.Step{Action: trace.ActForward, Event: trace.Note(fmt.Sprintf("%s by %s, out of %s", verb, hop, hop.Link.Name)), From: hop.Route.Origin, Changes: diff.Headers(&before, p.Headers(), diff.MAC)}
		f := hop.Route.Fact
		if f == nil {
			f = factRoute
		}
		s.step(sim, p, st, f)
	}
	hop.Link.Send(sim, p)
}

// Input takes a frame that arrived on a link.
func (s *Stack) Input(sim *wire.Simulation, l *Link, p *packet.Packet) {
	h := p.Headers()
	if h.EtherType == packet.EtherARP {
		if sim.Sink != nil && l.Owns(h.ARPTarget) {
			sim.Sink(s.Place, s.Object, p)
			return
		}
		s.answerARP(sim, l, p)
		return
	}
	if h.IPVersion == 0 || l.Down || h.EthDst != l.MAC && !h.EthDst.IsMulticast() {
		return
	}
	if s.NAT != nil && !s.NAT.prerouting(s, sim, p, l) {
		return
	}
	h = p.Headers()
	if back, ok := s.Lookup(h.Src); s.StrictReversePath && !s.Owns(h.Src) && (!ok || back.Link != l) {
		s.drop(sim, p, trace.SpoofedSource, fmt.Sprintf("%s came in on %s, but the way back to it is another one: the strict reverse path filter drops it", h.Src, l.Name), factReversePath)
		return
	}
	if s.Owns(h.Dst) || h.Dst.IsMulticast() {
		s.local(sim, p, false)
		return
	}
	if !s.Forwarding {
		reason := trace.NotForwarding
		s.drop(sim, p, reason, fmt.Sprintf("%s is not its address and forwarding is off", h.Dst), factForward)
		return
	}
	if left := p.DecTTL(); left == 0 {
		s.drop(sim, p, trace.TTLExceeded, "hop limit used up", factForward)
		return
	}
	s.route(sim, p, "forwarded")
}

func (s *Stack) answerARP(sim *wire.Simulation, l *Link, p *packet.Packet) {
	h := p.Headers()
	if h.ARPOp != 1 || !l.Owns(h.ARPTarget) {
		return
	}
	l.Send(sim, packet.BuildARP(2, l.MAC, h.ARPSenderMAC, h.ARPTarget, h.ARPSender))
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
	if p != nil && st.Packet == "" {
		st.Packet = sim.Rec.Describe(p)
	}
	sim.Rec.Add(st.Cite(f))
}

func (s *Stack) drop(sim *wire.Simulation, p *packet.Packet, reason trace.Reason, text string, f *evidence.Fact) {
	s.step(sim, p, trace.Step{Action: trace.ActDrop, Reason: reason, Event: trace.Note(text)}, f)
}
