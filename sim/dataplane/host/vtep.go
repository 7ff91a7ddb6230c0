package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factVTEP = evidence.New("host.vtep", evidence.Stated,
	"A Linux VXLAN device puts packets for a peer's prefix into UDP to the peer and opens those that carry its own VNI.",
	"Linux kernel documentation, vxlan", "flannel-io/flannel Documentation/backends.md")

// VTEP is a tunnel device of a stack: packets routed to its link leave in a
// tunnel, tunnel packets to its port arrive on the link.
type VTEP struct {
	Link  *Link
	Kind  packet.Tunnel
	VNI   uint32
	Port  uint16
	Local netip.Addr
	Peers []Peer
	stack *Stack
}

// Peer is the far end for a prefix.
type Peer struct {
	Prefix netip.Prefix
	Addr   netip.Addr
	MAC    packet.MAC
}

// AddVTEP adds a tunnel device with its link and the routes to its peers.
func (s *Stack) AddVTEP(v *VTEP) {
	v.stack = s
	v.Link.Send = v.send
	v.Link.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if p := v.peer(ip); p != nil {
			return p.MAC, true
		}
		return packet.MAC{}, false
	}
	s.AddLink(v.Link)
	for _, p := range v.Peers {
		s.Routes = append(s.Routes, Route{To: p.Prefix, Link: v.Link})
	}
	s.VTEPs = append(s.VTEPs, v)
}

func (v *VTEP) peer(ip netip.Addr) *Peer {
	for i := range v.Peers {
		if v.Peers[i].Prefix.Contains(ip) {
			return &v.Peers[i]
		}
	}
	return nil
}

func (v *VTEP) send(sim *wire.Simulation, p *packet.Packet) {
	s := v.stack
	peer := v.peer(p.Headers().Dst)
	if peer == nil {
		s.drop(sim, p, trace.NoTunnelEndpoint, "no peer of "+v.Link.Name+" has "+p.Headers().Dst.String(), factVTEP)
		return
	}
	err := p.Encap(packet.Outer{Kind: v.Kind, Src: v.Local, Dst: peer.Addr, SrcPort: packet.VXLANSrcPort(p.Tuple()), DstPort: v.Port, VNI: v.VNI, TTL: 64})
	if err != nil {
		s.drop(sim, p, trace.BadPacket, err.Error(), factVTEP)
		return
	}
	s.step(sim, p, trace.Step{Action: trace.ActEncap, Event: trace.Note(fmt.Sprintf("%s to %s, VNI %d, UDP %d by %s", v.Kind, peer.Addr, v.VNI, v.Port, v.Link.Name)),
		Changes: []trace.Change{{Field: "outer", After: fmt.Sprintf("%s %s -> %s VNI %d", v.Kind, v.Local, peer.Addr, v.VNI)}}}, factVTEP)
	s.route(sim, p, "sent")
}

// tunnelPorts are the UDP ports that tunnels use by default; a packet to one
// of them that no device takes was meant for a tunnel.
var tunnelPorts = map[uint16]packet.Tunnel{4789: packet.VXLAN, 8472: packet.VXLAN, 6081: packet.Geneve}

// tunnelled hands a tunnel packet to the device that it is for, and reports
// whether it was one.
func (s *Stack) tunnelled(sim *wire.Simulation, p *packet.Packet) bool {
	h := p.Headers()
	for _, v := range s.VTEPs {
		if v.Port != h.DstPort {
			continue
		}
		_, vni, err := p.Inner(v.Kind)
		if err != nil {
			continue
		}
		if vni != v.VNI {
			s.drop(sim, p, trace.UnknownVNI, fmt.Sprintf("VNI %d, but %s has %d", vni, v.Link.Name, v.VNI), factVTEP)
			return true
		}
		outer, err := p.Decap(v.Kind)
		if err != nil {
			s.drop(sim, p, trace.BadPacket, err.Error(), factVTEP)
			return true
		}
		p.SetEthDst(v.Link.MAC)
		s.step(sim, p, trace.Step{Action: trace.ActDecap, Event: trace.Note(fmt.Sprintf("%s from %s, VNI %d, by %s", v.Kind, outer.Src, vni, v.Link.Name)),
			Changes: []trace.Change{{Field: "outer", Before: fmt.Sprintf("%s %s -> %s VNI %d", v.Kind, outer.Src, outer.Dst, outer.VNI)}}}, factVTEP)
		sim.Queue(func() { s.Input(sim, v.Link, p) })
		return true
	}
	if kind, ok := tunnelPorts[h.DstPort]; ok {
		if _, vni, err := p.Inner(kind); err == nil {
			reason, text := trace.TunnelPort, "no tunnel device here has that port"
			if slices.Contains(s.TunnelPorts, h.DstPort) {
				reason, text = trace.NotDecapsulated, "the virtual switch did not open it"
			}
			s.drop(sim, p, reason, fmt.Sprintf("a %s packet (VNI %d) to UDP port %d, and %s", kind, vni, h.DstPort, text), factVTEP)
			return true
		}
	}
	return false
}
