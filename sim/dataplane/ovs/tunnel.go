package ovs

import (
	"encoding/binary"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
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
func (pl *pipeline) tunnel() {
	x, to := pl.x, pl.out.chassis
	if x.net.o.Encap == "stt" {
		pl.unknown("", trace.Of(inSTT{to.name}), factSTT)
		return
	}
	hop, reason := x.stack.NextHop(to.address)
	if reason != "" {
		pl.drop("", "", reason, trace.Of(noWayToChassis{to.name, hop}), factGeneve)
		return
	}
	if hop.Link != x.uplink {
		pl.drop("", "", trace.NoRoute, trace.Of(notByUplink{to.name, hop.Link.Name}), factGeneve)
		return
	}
	err := pl.p.Encap(packet.Outer{Kind: packet.Geneve, EthSrc: hop.Link.MAC, EthDst: hop.MAC, Src: x.address, Dst: to.address,
		VNI: pl.dp.key, TTL: 64, Options: metadata(pl.in.key, pl.out.key)})
	if err != nil {
		pl.drop("", "", trace.BadPacket, trace.Of(malformed{err}), factGeneve)
		return
	}
	pl.add(trace.Step{Rule: "outport == " + quote(pl.out.name), Action: trace.ActEncap,
		Event:   trace.Of(tunnelled{toChassis(to.name), pl.dp.key, pl.dp.name, pl.in.name, pl.out.name}),
		Changes: []trace.Change{{Field: diff.Outer, After: diff.Tunnel(packet.Geneve, x.address, to.address, pl.dp.key)}}}, factGeneve)
	x.nic.Segment.Send(pl.sim, x.nic, pl.p)
}

// fromTunnel takes a Geneve packet that came to the chassis, and reports
// whether it was one.
func (x *Node) fromTunnel(sim *wire.Simulation, p *packet.Packet) bool {
	h := p.Headers()
	if h.Proto != packet.UDP || h.DstPort != packet.GenevePort || h.Dst != x.address || x.net.o.Encap == "stt" {
		return false
	}
	pl := &pipeline{x: x, sim: sim, p: p}
	src := h.Src
	if x.net.chassis(src) == nil {
		pl.drop("", "", trace.NoTunnelEndpoint, trace.Of(unknownChassis{src}), factTunnelIn)
		return true
	}
	outer, err := p.Decap(packet.Geneve)
	if err != nil {
		pl.drop("", "", trace.BadPacket, trace.Of(malformed{err}), factTunnelIn)
		return true
	}
	pl.dp = x.net.datapath(outer.VNI)
	if pl.dp == nil {
		pl.drop("", "", trace.UnknownVNI, trace.Of(unknownVNI{outer.VNI}), factTunnelIn)
		return true
	}
	in, out, ok := parseMetadata(outer.Options)
	if !ok {
		pl.drop("", "", trace.NoTunnelEndpoint, trace.Note("the packet carries no metadata of OVN"), factTunnelIn)
		return true
	}
	pl.in, pl.out = pl.dp.byKey(in), pl.dp.byKey(out)
	if pl.in == nil || pl.out == nil || pl.out.chassis != x {
		pl.drop("", "", trace.NoTunnelEndpoint, trace.Of(unknownPorts{in, out, pl.dp.name}), factTunnelIn)
		return true
	}
	pl.add(trace.Step{Action: trace.ActDecap, Rule: "outport == " + quote(pl.out.name),
		Event:   trace.Of(tunnelled{fromAddress(outer.Src), outer.VNI, pl.dp.name, pl.in.name, pl.out.name}),
		Changes: []trace.Change{{Field: diff.Outer, Before: diff.Tunnel(packet.Geneve, outer.Src, outer.Dst, outer.VNI)}}}, factTunnelIn)
	pl.egress()
	return true
}
