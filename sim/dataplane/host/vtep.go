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

var factVTEP = evidence.New("host.vtep", evidence.Stated,
	"A Linux VXLAN device puts packets for a peer's prefix into UDP to the peer and opens those that carry its own VNI.",
	"Linux kernel documentation, vxlan", "flannel-io/flannel Documentation/backends.md")

var factInnerMAC = evidence.New("host.vtep-inner-mac", evidence.Code,
	"A Linux VXLAN device takes a frame out of a tunnel as any device takes one: the IP stack drops it when it is for another MAC address than the device's.",
	"Linux kernel drivers/net/vxlan/vxlan_core.c (vxlan_set_mac, eth_type_trans)",
	"Linux kernel net/ipv4/ip_input.c (ip_rcv_core, PACKET_OTHERHOST)", "flannel-io/flannel#1155", "flannel-io/flannel#1330")

// VTEP is a tunnel device of a stack: packets routed to its link leave in a
// tunnel, tunnel packets to its port arrive on the link.
type VTEP struct {
	Link  *Link
	Kind  packet.Tunnel
	VNI   uint32
	Port  uint16
	Local netip.Addr
	Peers []Peer
	// SpoilsChecksums is a NIC that leaves wrong transport checksums in what it
	// sends through this device.
	SpoilsChecksums bool
	stack           *Stack
	// arrives takes what comes out of a tunnel.
	arrives func(*wire.Simulation, *packet.Packet)
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
	v.arrives = func(sim *wire.Simulation, p *packet.Packet) { s.Input(sim, v.Link, p) }
	v.Link.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if p := v.peer(ip); p != nil {
			return p.MAC, true
		}
		return packet.MAC{}, false
	}
	s.AddLink(v.Link)
	for _, p := range v.Peers {
		s.AppendRoutes(Route{To: p.Prefix, Link: v.Link})
	}
	s.vteps = append(s.vteps, v)
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
	dst := p.Headers().Dst
	peer := v.peer(dst)
	if peer == nil {
		s.drop(sim, p, trace.NoTunnelEndpoint, trace.Of(noPeer{v.Link.Name, dst}), factVTEP)
		return
	}
	if v.SpoilsChecksums {
		p.SpoilChecksum()
		sim.CheckChecksums = true
	}
	err := p.Encap(packet.Outer{Kind: v.Kind, Src: v.Local, Dst: peer.Addr, DstPort: v.Port, VNI: v.VNI, MayFragment: true})
	if err != nil {
		s.drop(sim, p, trace.BadPacket, trace.Of(malformed{err}), factVTEP)
		return
	}
	if sim.Rec.On() {
		s.step(sim, p, trace.Step{Action: trace.ActEncap, Event: trace.Of(encapsulated{v.event(), peer.Addr, v.Port}),
			Changes: []trace.Change{{Field: diff.Outer, After: diff.Tunnel(v.Kind, v.Local, peer.Addr, v.VNI)}}}, factVTEP)
	}
	s.output(sim, p) // Linux: iptunnel_xmit, ip_local_out
}

func (v *VTEP) event() tunnelEvent { return tunnelEvent{v.Link.Name, v.Kind, v.VNI} }

// fromTunnel takes a tunnel packet and reports whether it was one: it hands it
// to the device that it is for, or drops it.
func (s *Stack) fromTunnel(sim *wire.Simulation, p *packet.Packet) bool {
	for _, v := range s.vteps {
		if v.Port != p.Headers().DstPort {
			continue
		}
		if _, vni, err := p.Inner(v.Kind); err == nil {
			v.receive(sim, p, vni)
			return true
		}
	}
	return s.missedTunnel(sim, p)
}

// receive opens a tunnel packet to the device's port.
func (v *VTEP) receive(sim *wire.Simulation, p *packet.Packet, vni uint32) {
	s := v.stack
	if vni != v.VNI {
		s.drop(sim, p, trace.UnknownVNI, trace.Of(wrongVNI{v.event(), vni}), factVTEP)
		return
	}
	outer, err := p.Decap(v.Kind)
	if err != nil {
		s.drop(sim, p, trace.BadPacket, trace.Of(malformed{err}), factVTEP)
		return
	}
	if sim.Rec.On() {
		s.step(sim, p, trace.Step{Action: trace.ActDecap, Event: trace.Of(decapsulated{v.event(), outer.Src}),
			Changes: []trace.Change{{Field: diff.Outer, Before: diff.Tunnel(v.Kind, outer.Src, outer.Dst, outer.VNI)}}}, factVTEP)
	}
	if to := p.Headers().EthDst; to != v.Link.MAC && !to.IsMulticast() {
		s.drop(sim, p, trace.TunnelMAC, trace.Of(forOther{to, v.Link.Name, v.Link.MAC}), factInnerMAC)
		return
	}
	sim.Arrives(v.arrives, p)
}

// tunnelPorts are the UDP ports that tunnels use by default; a packet to one
// of them that no device takes was meant for a tunnel.
var tunnelPorts = map[uint16]packet.Tunnel{4789: packet.VXLAN, 8472: packet.VXLAN, 6081: packet.Geneve}

// missedTunnel drops a tunnel packet that no device is for, and reports whether
// it was one.
func (s *Stack) missedTunnel(sim *wire.Simulation, p *packet.Packet) bool {
	port := p.Headers().DstPort
	kind, ok := tunnelPorts[port]
	if !ok {
		return false
	}
	_, vni, err := p.Inner(kind)
	if err != nil {
		return false
	}
	reason, bySwitch := trace.TunnelPort, slices.Contains(s.TunnelPorts, port)
	if bySwitch {
		reason = trace.NotDecapsulated
	}
	s.drop(sim, p, reason, trace.Of(notDecapsulated{kind, vni, port, bySwitch}), factVTEP)
	return true
}
