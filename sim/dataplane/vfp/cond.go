package vfp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// PortRange is an inclusive range of ports.
type PortRange struct{ Lo, Hi uint16 }

// Port1 is the range of one port.
func Port1(p uint16) PortRange { return PortRange{p, p} }

func (r PortRange) String() string {
	if r.Lo == r.Hi {
		return strconv.Itoa(int(r.Lo))
	}
	return fmt.Sprintf("%d-%d", r.Lo, r.Hi)
}

// Cond is the condition of a rule. An empty field matches everything; values
// within a field are alternatives.
type Cond struct {
	Protos             []packet.Proto
	Src, Dst           []netip.Prefix
	SrcPorts, DstPorts []PortRange
	// DstMAC matches the destination MAC address.
	DstMAC packet.MAC
	// VNI and TunnelPort match a tunnel packet: UDP to TunnelPort with VNI.
	TunnelPort uint16
	TunnelKind packet.Tunnel
	VNI        uint32
	// ICMPTypes match messages of ICMP and ICMPv6.
	ICMPTypes []uint8
}

// A condition on a port or an ICMP type is met only by a packet that has one.
// Fragments after the first have neither.

func hasPorts(h *packet.Headers) bool {
	return h.L4 != 0 && (h.Proto == packet.TCP || h.Proto == packet.UDP)
}

func isICMP(h *packet.Headers) bool { return h.Proto == packet.ICMP || h.Proto == packet.ICMPv6 }

// laterFragment reports whether the packet is a fragment that lacks the ports
// or the ICMP type which its first fragment has.
func laterFragment(h *packet.Headers) bool {
	return h.Fragment && h.L4 == 0 && (h.Proto == packet.TCP || h.Proto == packet.UDP || isICMP(h))
}

// match reports whether the packet, whose headers are h, meets every predicate.
func (c *Cond) match(p *packet.Packet, h *packet.Headers) bool {
	return c.matchNetwork(h) && c.matchTransport(p, h)
}

// matchNetwork is the part of match that every fragment of a packet can answer.
// Every rule of a long list is asked it, so the empty fields are skipped here.
func (c *Cond) matchNetwork(h *packet.Headers) bool {
	if len(c.Protos) != 0 && !c.matchProto(h) {
		return false
	}
	if len(c.Dst) != 0 && !matchAddr(c.Dst, h.Dst) {
		return false
	}
	if len(c.Src) != 0 && !matchAddr(c.Src, h.Src) {
		return false
	}
	return c.matchMAC(h)
}

// matchTransport is the part for which a packet must have its ports.
func (c *Cond) matchTransport(p *packet.Packet, h *packet.Headers) bool {
	return matchPort(c.DstPorts, h, h.DstPort) && matchPort(c.SrcPorts, h, h.SrcPort) && c.matchICMP(h) && c.matchTunnel(p, h)
}

// needsTransport reports whether matchTransport asks for anything.
func (c *Cond) needsTransport() bool {
	return len(c.SrcPorts) != 0 || len(c.DstPorts) != 0 || len(c.ICMPTypes) != 0 || c.TunnelPort != 0
}

func (c *Cond) matchProto(h *packet.Headers) bool {
	return len(c.Protos) == 0 || slices.Contains(c.Protos, h.Proto)
}

func matchAddr(want []netip.Prefix, a netip.Addr) bool {
	for i := range want {
		if want[i].Contains(a) {
			return true
		}
	}
	return len(want) == 0
}

func (c *Cond) matchMAC(h *packet.Headers) bool { return c.DstMAC.IsZero() || c.DstMAC == h.EthDst }

func matchPort(want []PortRange, h *packet.Headers, port uint16) bool {
	return len(want) == 0 || hasPorts(h) && containsPort(want, port)
}

func (c *Cond) matchICMP(h *packet.Headers) bool {
	return len(c.ICMPTypes) == 0 || isICMP(h) && h.L4 != 0 && slices.Contains(c.ICMPTypes, h.ICMPType)
}

func (c *Cond) matchTunnel(p *packet.Packet, h *packet.Headers) bool {
	if c.TunnelPort == 0 {
		return true
	}
	if !c.matchTunnelPort(h) {
		return false
	}
	_, vni, err := p.Inner(c.TunnelKind)
	return err == nil && vni == c.VNI
}

func (c *Cond) matchTunnelPort(h *packet.Headers) bool {
	return hasPorts(h) && h.Proto == packet.UDP && h.DstPort == c.TunnelPort
}

// misses lists every predicate that the packet fails, as the nearest-rule
// explanation wants them. A packet of a protocol without ports that the rule
// does not want anyway fails for its protocol alone, not for its ports too.
func (c *Cond) misses(p *packet.Packet, h *packet.Headers) []trace.Miss {
	var ms []trace.Miss
	miss := func(field, want, got string) {
		ms = append(ms, trace.Miss{Field: field, Want: want, Got: got})
	}
	rightProto := c.matchProto(h)
	if !rightProto {
		miss("protocol", join(c.Protos), h.Proto.String())
	}
	if !matchAddr(c.Src, h.Src) {
		miss("source", joinPrefixes(c.Src), h.Src.String())
	}
	if !matchAddr(c.Dst, h.Dst) {
		miss("destination", joinPrefixes(c.Dst), h.Dst.String())
	}
	if rightProto || hasPorts(h) {
		if !matchPort(c.SrcPorts, h, h.SrcPort) {
			miss("source port", join(c.SrcPorts), portText(h, h.SrcPort))
		}
		if !matchPort(c.DstPorts, h, h.DstPort) {
			miss("destination port", join(c.DstPorts), portText(h, h.DstPort))
		}
	}
	if !c.matchMAC(h) {
		miss("destination MAC", c.DstMAC.String(), h.EthDst.String())
	}
	if (rightProto || isICMP(h)) && !c.matchICMP(h) {
		miss("ICMP type", joinTypes(c.ICMPTypes), icmpTypeText(h))
	}
	if !c.matchTunnel(p, h) {
		miss(c.tunnelMiss(p, h))
	}
	return ms
}

// tunnelMiss says what a packet that fails matchTunnel lacks.
func (c *Cond) tunnelMiss(p *packet.Packet, h *packet.Headers) (field, want, got string) {
	if !c.matchTunnelPort(h) {
		return "tunnel port", fmt.Sprintf("UDP %d", c.TunnelPort), fmt.Sprintf("%s %s", h.Proto, portText(h, h.DstPort))
	}
	_, vni, err := p.Inner(c.TunnelKind)
	if err != nil {
		return "tunnel", "a tunnel header", err.Error()
	}
	return "VNI", strconv.Itoa(int(c.VNI)), strconv.Itoa(int(vni))
}

// icmpTypeText says "none" for a packet without an ICMP type.
func icmpTypeText(h *packet.Headers) string {
	if !isICMP(h) || h.L4 == 0 {
		return "none"
	}
	return strconv.Itoa(int(h.ICMPType))
}

// portText says "none" for a packet without ports.
func portText(h *packet.Headers, port uint16) string {
	if !hasPorts(h) {
		return "none"
	}
	return strconv.Itoa(int(port))
}

func joinTypes(types []uint8) string {
	ps := make([]PortRange, len(types)) // for its String
	for i, t := range types {
		ps[i] = Port1(uint16(t))
	}
	return join(ps)
}

func containsPort(rs []PortRange, p uint16) bool {
	for _, r := range rs {
		if p >= r.Lo && p <= r.Hi {
			return true
		}
	}
	return false
}

func join[T fmt.Stringer](vs []T) string {
	s := ""
	for i, v := range vs {
		if i > 0 {
			s += " or "
		}
		if i == 4 && len(vs) > 5 {
			return s + fmt.Sprintf("%d more", len(vs)-i)
		}
		s += v.String()
	}
	return s
}

// joinPrefixes is join with host prefixes written as addresses.
func joinPrefixes(ps []netip.Prefix) string {
	short := make([]prefixText, len(ps))
	for i, p := range ps {
		short[i] = prefixText{p}
	}
	return join(short)
}

type prefixText struct{ netip.Prefix }

func (p prefixText) String() string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Prefix.String()
}

// Host is the prefix that holds only that address.
func Host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
