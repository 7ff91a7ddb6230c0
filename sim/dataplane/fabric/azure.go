package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// hostsOwnPort is a UDP port that the virtualisation host keeps to itself.
const hostsOwnPort = 65330

// hostMAC is what Azure answers to every ARP request.
var hostMAC = packet.MAC{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc}

// Route is a user-defined route.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Origin *trace.Origin
}

// Azure describes a virtual network.
type Azure struct {
	// Subnets are its address ranges: IPv4, and IPv6 in a dual-stack network.
	Subnets []netip.Prefix
	// IPForwarding lets NICs send and receive for other addresses.
	IPForwarding bool
	Rules        []Rule
	Routes       []Route
}

// Attach makes a segment a virtual network.
func (a Azure) Attach(s *wire.Segment) {
	n := &virtualNetwork{Azure: a, segment: s, allowed: map[packet.Tuple]bool{}}
	s.AnswersAll = hostMAC
	s.Cut = func(sim *wire.Simulation, p *packet.Packet) bool { return cut(sim, p, s.MTU) }
	s.Forget = func() {
		n.ways.Changed()
		n.forgotten++
		clear(n.allowed)
	}
	s.Policy = func(sim *wire.Simulation, from *wire.NIC, p *packet.Packet) bool {
		if p.Headers().IPVersion != 0 {
			n.send(sim, from, p)
		}
		return true
	}
}

// cut makes fragments of a packet that is larger than the network carries.
func cut(sim *wire.Simulation, p *packet.Packet, mtu int) bool {
	if p.DontFragment() {
		sim.RecordUnknown(
			fmt.Sprintf(
				"what the virtual network does with a packet of %d bytes that must not be cut into fragments, where it carries %d, is not known",
				p.Size(), mtu))
		return false
	}
	record(sim, "Azure host", p, trace.Step{Action: trace.ActNote, Event: trace.Of(fragments{p.Size(), mtu})}.Cite(factFragments))
	p.Fragment(mtu)
	return true
}

// virtualNetwork is the virtualisation host's side of a segment: every packet
// goes to it, and it decides.
type virtualNetwork struct {
	Azure
	segment *wire.Segment
	allowed map[packet.Tuple]bool // flows that the security rules let through
	// forgotten counts when these were forgotten; otherwise there are only ever more.
	forgotten uint32
	ways      *path.Ways
}

// send checks a packet's source, then the security rules, and routes it by its
// address.
func (n *virtualNetwork) send(sim *wire.Simulation, from *wire.NIC, p *packet.Packet) {
	h := p.Headers()
	if !n.maySend(from, h.Src) {
		n.drop(sim, p, trace.Step{Reason: trace.SpoofedSource, Event: trace.Of(foreignSource{h.Src, from.Name})}, factSpoof)
		return
	}
	if r := n.denied(sim, h); r != nil {
		n.drop(sim, p, trace.Step{Reason: trace.FabricPolicy, Rule: r.Name, RuleType: "security rule",
			Event: trace.Of(deniedByRule{"security rule", r.Name}), From: r.Origin}, factRules)
		return
	}
	if h.Proto == packet.UDP && h.DstPort == hostsOwnPort {
		n.drop(sim, p,
			trace.Step{Reason: trace.FabricPolicy, Event: trace.Note("UDP port 65330 is reserved for the host: nothing is delivered to it")},
			factHostsPort)
		return
	}
	udr := n.userRoute(h.Dst)
	w, to := n.wayTo(from, h.Dst, udr)
	if to == nil {
		if n.segment.Unknown != "" {
			sim.RecordUnknown(n.segment.Unknown)
		}
		n.drop(sim, p, trace.Step{Reason: trace.NoRoute, Event: trace.Of(unassigned{w.dst})}, factHost)
		return
	}
	fact, origin := factHost, (*trace.Origin)(nil)
	if udr != nil {
		fact, origin = factUDR, udr.Origin
	}
	if udr != nil && w.dst != h.Dst && !n.mayReceive(to, udr) {
		n.drop(sim, p, trace.Step{Reason: trace.NotForwarding, Event: trace.Of(foreignDestination{w, h.Dst, to.Name}), From: origin}, factSpoof)
		return
	}
	p.SetEthSrc(hostMAC)
	p.SetEthDst(to.MAC)
	record(sim, "Azure host", p, trace.Step{Action: trace.ActForward, Event: trace.Of(w), From: origin}.Cite(fact))
	to.Hand(sim, p)
}

func (n *virtualNetwork) drop(sim *wire.Simulation, p *packet.Packet, st trace.Step, f *evidence.Fact) {
	st.Action = trace.ActDrop
	record(sim, "Azure host", p, st.Cite(f))
}

// contains reports whether an address is one of the network itself.
func (n *virtualNetwork) contains(a netip.Addr) bool {
	return slices.ContainsFunc(n.Subnets, func(p netip.Prefix) bool { return p.Contains(a) })
}

// owns reports whether an address is assigned to a NIC. Only addresses of the
// virtual network can be: those of machines, and those that azure-vnet gives
// pods. Pods of a cluster network of its own are unknown here, though their node
// would answer ARP for them.
func (n *virtualNetwork) owns(nic *wire.NIC, a netip.Addr) bool {
	_, ok := nic.Owner.ARP(nic, a)
	return ok && n.contains(a)
}

// maySend reports whether a NIC may send from a source. The gateway forwards
// packets of others, but may not send with an address of the network itself.
func (n *virtualNetwork) maySend(from *wire.NIC, src netip.Addr) bool {
	return n.IPForwarding || n.owns(from, src) || n.isFloating(from, src) || isGateway(from) && !n.contains(src)
}

// isFloating reports whether an address is a floating one of a NIC: the
// platform sends its packets there by a route, so replies may have it as their
// source.
func (n *virtualNetwork) isFloating(nic *wire.NIC, a netip.Addr) bool {
	return slices.ContainsFunc(n.Routes, func(r Route) bool {
		return r.To.IsSingleIP() && r.To.Addr() == a && n.owns(nic, r.Via)
	})
}

// denied returns the security rule that denies a packet, or nil. The replies of
// a flow that was let through pass.
func (n *virtualNetwork) denied(sim *wire.Simulation, h *packet.Headers) *Rule {
	t := h.Tuple()
	sim.Path.Rests(&n.forgotten, &n.ways)
	if n.allowed[t.Reverse()] {
		return nil
	}
	if r := denying(sim, n.Rules, h); r != nil {
		sim.Path.GiveUp() // the next one may be the reply of a flow that passes
		return r
	}
	journal.KeepKey(sim.Journal, n.allowed, t)
	n.allowed[t] = true
	return nil
}

// userRoute is the user-defined route for an address: the one with the longest
// prefix, of equal ones the first; nil for none. Addresses of the network itself
// need none.
func (n *virtualNetwork) userRoute(dst netip.Addr) *Route {
	if n.contains(dst) {
		return nil
	}
	var best *Route
	for i := range n.Routes {
		r := &n.Routes[i]
		if r.To.Contains(dst) && (best == nil || r.To.Bits() > best.To.Bits()) {
			best = r
		}
	}
	return best
}

// wayTo finds the NIC that a packet goes to: the one that has the address or the
// route's next hop, else the gateway. It is nil when no NIC has it.
func (n *virtualNetwork) wayTo(from *wire.NIC, dst netip.Addr, udr *Route) (way, *wire.NIC) {
	w := way{dst: dst}
	if udr != nil {
		w.dst, w.route = udr.Via, udr.To
	}
	if n.contains(w.dst) {
		return w, n.segment.Owner(w.dst) // see owns
	}
	for _, nic := range n.segment.NICs {
		if nic != from && isGateway(nic) {
			w.gateway = true
			return w, nic
		}
	}
	return w, nil
}

// mayReceive reports whether a NIC gets packets for an address that a route
// sends to it, though the address is not its own.
func (n *virtualNetwork) mayReceive(to *wire.NIC, r *Route) bool {
	return n.IPForwarding || r.To.IsSingleIP() || isGateway(to)
}

// gateway is a device that can say that it is a router.
type gateway interface{ Routes() bool }

func isGateway(n *wire.NIC) bool {
	g, ok := n.Owner.(gateway)
	return ok && g.Routes()
}
