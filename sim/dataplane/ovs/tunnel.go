package ovs

import (
	"encoding/binary"
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// OVN's Geneve option: ovn-architecture(7), Tunnel Encapsulations.
const (
	optionClass = 0x0102
	optionType  = 0x80
)

// metadata encodes the logical ports: one reserved bit, 15 bits of ingress
// port, 16 bits of egress port.
func metadata(in, out uint16) []byte {
	b := []byte{0, 0, optionType, 1, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(b, optionClass)
	binary.BigEndian.PutUint32(b[4:], uint32(in&0x7fff)<<16|uint32(out))
	return b
}

// parseMetadata finds OVN's option among a packet's.
func parseMetadata(b []byte) (in, out uint16, ok bool) {
	for len(b) >= 4 {
		n := 4 + int(b[3]&31)*4
		if n > len(b) {
			return 0, 0, false
		}
		if binary.BigEndian.Uint16(b) == optionClass && b[2] == optionType && n == 8 {
			v := binary.BigEndian.Uint32(b[4:])
			return uint16(v>>16) & 0x7fff, uint16(v), true
		}
		b = b[n:]
	}
	return 0, 0, false
}

// tunnel sends the packet to the chassis that has the output port.
func (f *flight) tunnel() {
	x, to := f.x, f.out.chassis
	if x.net.o.Encap == "stt" {
		f.hole("", fmt.Sprintf("the packet goes to %s in STT, which is not modelled", to.Name), factSTT)
		return
	}
	hop, reason := x.Stack.NextHop(to.address)
	if reason != "" {
		f.drop("", "", reason, "tunnel to "+to.Name+": "+hop.String(), factGeneve)
		return
	}
	if hop.Link != x.uplink {
		f.drop("", "", trace.NoRoute, fmt.Sprintf("tunnel to %s: the route leads to %s, not to the uplink", to.Name, hop.Link.Name), factGeneve)
		return
	}
	err := f.p.Encap(packet.Outer{Kind: packet.Geneve, EthSrc: hop.Link.MAC, EthDst: hop.MAC, Src: x.address, Dst: to.address,
		VNI: f.dp.key, TTL: 64, Options: metadata(f.in.key, f.out.key)})
	if err != nil {
		f.drop("", "", trace.BadPacket, err.Error(), factGeneve)
		return
	}
	f.add(trace.Step{Rule: "outport == " + quote(f.out.name), Action: trace.ActEncap,
		Event:   trace.Note(fmt.Sprintf("Geneve to chassis %s: VNI %d is %s, metadata %s to %s", to.Name, f.dp.key, f.dp.name, f.in.name, f.out.name)),
		Changes: []trace.Change{{Field: "outer", After: fmt.Sprintf("Geneve %s -> %s VNI %d", x.address, to.address, f.dp.key)}}}, factGeneve)
	x.nic.Segment.Send(f.sim, x.nic, f.p)
}

// fromTunnel takes a Geneve packet that came to the chassis, and reports
// whether it was one.
func (x *Node) fromTunnel(sim *wire.Simulation, p *packet.Packet) bool {
	h := p.Headers()
	if h.Proto != packet.UDP || h.DstPort != packet.GenevePort || h.Dst != x.address || x.net.o.Encap == "stt" {
		return false
	}
	f := &flight{x: x, sim: sim, p: p}
	src := h.Src
	if x.net.chassis(src) == nil {
		f.drop("", "", trace.NoTunnelEndpoint, fmt.Sprintf("a Geneve packet from %s, which is no chassis of the network", src), factTunnelIn)
		return true
	}
	outer, err := p.Decap(packet.Geneve)
	if err != nil {
		f.drop("", "", trace.BadPacket, err.Error(), factTunnelIn)
		return true
	}
	f.dp = x.net.datapath(outer.VNI)
	if f.dp == nil {
		f.drop("", "", trace.UnknownVNI, fmt.Sprintf("VNI %d is no logical datapath here", outer.VNI), factTunnelIn)
		return true
	}
	in, out, ok := parseMetadata(outer.Options)
	if !ok {
		f.drop("", "", trace.NoTunnelEndpoint, "the packet carries no metadata of OVN", factTunnelIn)
		return true
	}
	f.in, f.out = f.dp.byKey(in), f.dp.byKey(out)
	if f.in == nil || f.out == nil || f.out.chassis != x {
		f.drop("", "", trace.NoTunnelEndpoint, fmt.Sprintf("the metadata names ports %d and %d of %s, and the second is not on this chassis", in, out, f.dp.name), factTunnelIn)
		return true
	}
	f.add(trace.Step{Action: trace.ActDecap, Rule: "outport == " + quote(f.out.name),
		Event:   trace.Note(fmt.Sprintf("Geneve from %s: VNI %d is %s, metadata %s to %s", outer.Src, outer.VNI, f.dp.name, f.in.name, f.out.name)),
		Changes: []trace.Change{{Field: "outer", Before: fmt.Sprintf("Geneve %s -> %s VNI %d", outer.Src, outer.Dst, outer.VNI)}}}, factTunnelIn)
	f.egress()
	return true
}
