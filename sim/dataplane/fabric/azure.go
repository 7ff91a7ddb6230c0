package fabric

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var (
	factHost = evidence.New("fabric.azure-host", evidence.Stated,
		"On an Azure virtual network every packet goes to the virtualisation host, which routes it by its address; the MAC address that machines see for all others is 12-34-56-78-9a-bc.",
		"Azure documentation, Virtual network traffic routing", "Kubernetes documentation, Intro to Windows support, l2tunnel")
	factSpoof = evidence.New("fabric.azure-source-check", evidence.Stated,
		"A NIC without IP forwarding may only send from, and only gets packets for, the addresses assigned to it.",
		"Azure documentation, Enable or disable IP forwarding for a network interface")
	factRules = evidence.New("fabric.azure-security-rules", evidence.Stated,
		"Security rules are looked at in order, the first that matches decides; replies of an allowed flow pass.",
		"Azure documentation, Network security groups")
	factUDR = evidence.New("fabric.azure-udr", evidence.Stated,
		"A user-defined route sends packets for its prefix to the next hop, which needs IP forwarding.",
		"Azure documentation, Virtual network traffic routing", "MicrosoftDocs Kubernetes on Windows, common problems (flannel host-gw on Azure)")
	// FactEdgeNAT is what edge routers of labs follow.
	FactEdgeNAT = evidence.New("fabric.edge-nat", evidence.Inferred,
		"At the edge of a cloud network only the primary addresses of machines are translated to public ones, for TCP and UDP.")
)

// hostMAC is what Azure answers to every ARP request.
var hostMAC = packet.MAC{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc}

// Rule is one security rule. Zero fields match everything.
type Rule struct {
	Name           string
	Allow          bool
	From, To       netip.Prefix
	Proto          packet.Proto
	PortLo, PortHi uint16
	Origin         *trace.Origin
}

// Route is a user-defined route.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Origin *trace.Origin
}

// Azure is the virtualisation host's side of a virtual network.
type Azure struct {
	Subnet netip.Prefix
	// IPForwarding lets NICs send and receive for other addresses.
	IPForwarding bool
	Rules        []Rule
	Routes       []Route
}

// Attach makes a segment a virtual network.
func (a Azure) Attach(s *wire.Segment) {
	s.AnswersAll = hostMAC
	allowed := map[packet.Tuple]bool{}
	s.Forget = func() { clear(allowed) }
	s.Policy = func(sim *wire.Simulation, from *wire.NIC, p *packet.Packet) bool {
		a.policy(s, allowed, sim, from, p)
		return true
	}
}

func (a *Azure) policy(s *wire.Segment, allowed map[packet.Tuple]bool, sim *wire.Simulation, from *wire.NIC, p *packet.Packet) {
	h := p.Headers()
	if h.IPVersion == 0 {
		return
	}
	step := func(st trace.Step, f *evidence.Fact) {
		if st.Reason != "" {
			sim.RecordLoss("fabric", "Azure host", st.Reason)
		}
		if sim.Rec.On() {
			st.Place, st.Object, st.Packet = "fabric", "Azure host", p.String()
			sim.Rec.Add(st.Cite(f))
		}
	}
	// Only addresses of the virtual network can be assigned to a NIC: those of
	// machines, and those that azure-vnet gives pods. Pods of a cluster network
	// of its own are unknown here, though their node would answer ARP for them.
	owns := func(n *wire.NIC, ip netip.Addr) bool {
		_, ok := n.Owner.ARP(n, ip)
		return ok && a.Subnet.Contains(ip)
	}
	// Routers stand for the virtual network's own gateway: they carry packets
	// of others by nature.
	mine := func(ip netip.Addr) bool {
		if owns(from, ip) {
			return true
		}
		// A floating address: the platform sends its packets to this NIC, so
		// replies may bear it.
		for _, r := range a.Routes {
			if r.To.IsSingleIP() && r.To.Addr() == ip && owns(from, r.Via) {
				return true
			}
		}
		return false
	}
	if !mine(h.Src) && !a.IPForwarding && (a.Subnet.Contains(h.Src) || !isGateway(from)) {
		step(trace.Step{Action: trace.ActDrop, Reason: trace.SpoofedSource,
			Event: trace.Note(fmt.Sprintf("%s is not an address of the sending NIC (%s), and IP forwarding is off", h.Src, from.Name))}, factSpoof)
		return
	}
	t := p.Tuple()
	if !allowed[t.Reverse()] {
		if r := a.match(h); r != nil && !r.Allow {
			step(trace.Step{Action: trace.ActDrop, Reason: trace.FabricPolicy, Rule: r.Name, RuleType: "security rule", Event: trace.Note("denied by security rule " + r.Name), From: r.Origin}, factRules)
			return
		}
		allowed[t] = true
	}
	dst := h.Dst
	text, fact, origin := "to the NIC that has "+dst.String(), factHost, (*trace.Origin)(nil)
	best := -1
	for i, r := range a.Routes {
		if r.To.Contains(dst) && (best < 0 || r.To.Bits() > a.Routes[best].To.Bits()) {
			best = i
		}
	}
	if best >= 0 && !a.Subnet.Contains(dst) {
		dst, fact, origin = a.Routes[best].Via, factUDR, a.Routes[best].Origin
		text = fmt.Sprintf("user-defined route %s via %s", a.Routes[best].To, dst)
	}
	var to *wire.NIC
	for _, n := range s.NICs {
		if owns(n, dst) {
			to = n
			break
		}
	}
	if to == nil && !a.Subnet.Contains(dst) {
		for _, n := range s.NICs {
			if n != from && isGateway(n) {
				to, text = n, "to the virtual network's gateway"
				break
			}
		}
	}
	if to == nil {
		step(trace.Step{Action: trace.ActDrop, Reason: trace.NoRoute, Event: trace.Note("no NIC of the virtual network has " + dst.String())}, factHost)
		return
	}
	if best >= 0 && !a.IPForwarding && !a.Routes[best].To.IsSingleIP() && !isGateway(to) && dst != h.Dst {
		step(trace.Step{Action: trace.ActDrop, Reason: trace.NotForwarding, From: origin,
			Event: trace.Note(fmt.Sprintf("%s: but %s is not an address of that NIC (%s), and IP forwarding is off", text, h.Dst, to.Name))}, factSpoof)
		return
	}
	p.SetEthSrc(hostMAC)
	p.SetEthDst(to.MAC)
	step(trace.Step{Action: trace.ActForward, Event: trace.Note(text), From: origin}, fact)
	sim.Queue(func() { to.Owner.Receive(sim, to, p) })
}

// Gateway is a device that routes for others by nature.
type Gateway interface{ Routes() bool }

func isGateway(n *wire.NIC) bool {
	g, ok := n.Owner.(Gateway)
	return ok && g.Routes()
}

func (a *Azure) match(h *packet.Headers) *Rule {
	for i := range a.Rules {
		r := &a.Rules[i]
		if r.From.IsValid() && !r.From.Contains(h.Src) || r.To.IsValid() && !r.To.Contains(h.Dst) || r.Proto != 0 && r.Proto != h.Proto {
			continue
		}
		if r.PortHi != 0 && (h.DstPort < r.PortLo || h.DstPort > r.PortHi) {
			continue
		}
		return r
	}
	return nil
}
