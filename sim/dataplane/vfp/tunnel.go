package vfp

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// RouteEncap puts the packet into a tunnel.
type RouteEncap struct {
	Tunnel *Tunnel
}

// Tunnel is the outer header that an encapsulation adds.
type Tunnel struct {
	Kind     packet.Tunnel
	Src, Dst netip.Addr // provider addresses
	VNI      uint32
	Port     uint16 // UDP destination port
	// InnerDst is the inner destination MAC that the rule sets ("fixing inner
	// MAC"), InnerSrc likewise; zero leaves them.
	InnerDst, InnerSrc packet.MAC
}

// Type returns "routeencap".
func (RouteEncap) Type() string     { return "routeencap" }
func (RouteEncap) translates() bool { return false }
func (RouteEncap) keepsFlows() bool { return false }

func (a RouteEncap) apply(ps *passage) Result {
	ps.restsOnNoFlow()
	p, t := ps.packet, a.Tunnel
	recording := ps.env.Rec.On()
	var before packet.Headers
	if recording {
		before = *p.Headers()
	}
	rw, srcPort := t.inner(), packet.VXLANSrcPort(p.Tuple())
	p.Apply(&rw)
	ps.unified.addRewrite(&rw)
	if err := t.wrap(p, srcPort); err != nil {
		return ps.drop(trace.BadPacket, badPacket{err}, nil)
	}
	ps.unified.addTunnel(t, srcPort)
	if recording {
		s := encapStep(ps.env.Rec, p, t, &before)
		ps.record(&s, nil)
	}
	return Result{Pass: true}
}

// inner is what the tunnel does to the frame before it wraps it.
func (t *Tunnel) inner() packet.Rewrite {
	rw := packet.Rewrite{EthDst: t.InnerDst, EthSrc: t.InnerSrc}
	if !t.InnerDst.IsZero() {
		rw.Set |= packet.RwEthDst
	}
	if !t.InnerSrc.IsZero() {
		rw.Set |= packet.RwEthSrc
	}
	return rw
}

// wrap encapsulates a packet. The outer MAC addresses are those of the frame; a
// paroute rule sets others.
func (t *Tunnel) wrap(p *packet.Packet, srcPort uint16) error {
	h := p.Headers()
	return p.Encap(packet.Outer{
		Kind: t.Kind, EthSrc: h.EthSrc, EthDst: h.EthDst, Src: t.Src, Dst: t.Dst,
		SrcPort: srcPort, DstPort: t.Port, VNI: t.VNI, TTL: outerTTL,
	})
}

// outerTTL is the time to live of tunnel packets: the default of Windows.
const outerTTL = 128

// Decap takes the packet out of its tunnel.
type Decap struct {
	Kind packet.Tunnel
}

// Type returns "decap".
func (Decap) Type() string     { return "decap" }
func (Decap) translates() bool { return false }
func (Decap) keepsFlows() bool { return false }

func (a Decap) apply(ps *passage) Result {
	ps.unified.inside = true // what comes out of the tunnel is not in the key
	outer, err := ps.packet.Decap(a.Kind)
	if err != nil {
		return ps.drop(trace.BadPacket, badPacket{err}, nil)
	}
	if ps.env.Rec.On() {
		s := decapStep(ps.env.Rec, ps.packet, &outer)
		ps.record(&s, nil)
	}
	return Result{Pass: true}
}
