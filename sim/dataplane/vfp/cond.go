package vfp

import (
	"fmt"
	"net/netip"
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
// within a field are alternatives. All that the package does with a field is in
// its row of [condFields].
type Cond struct {
	Protos             []packet.Proto
	Src, Dst           []netip.Prefix
	SrcPorts, DstPorts []PortRange
	// DstMAC matches the destination MAC address.
	DstMAC packet.MAC
	// ICMPTypes match messages of ICMP and ICMPv6.
	ICMPTypes []uint8
	// Tunnel matches a tunnel packet.
	Tunnel TunnelCond
}

// TunnelCond matches packets to a UDP port that carry a tunnel header of a kind
// with that VNI. Without a port it matches everything.
type TunnelCond struct {
	Port uint16
	Kind packet.Tunnel
	VNI  uint32
}

// A condition on a port or an ICMP type is met only by a packet that has one.
// Fragments after the first have neither.

func hasPorts(h *packet.Headers) bool {
	return h.L4 != 0 && (h.Proto == packet.TCP || h.Proto == packet.UDP)
}

func lacksPorts(h *packet.Headers) bool { return !hasPorts(h) }

func isICMP(h *packet.Headers) bool { return h.Proto.IsICMP() }

func isNotICMP(h *packet.Headers) bool { return !isICMP(h) }

// laterFragment reports whether the packet is a fragment that lacks the ports
// or the ICMP type which its first fragment has.
func laterFragment(h *packet.Headers) bool {
	return h.Fragment && h.L4 == 0 && (h.Proto == packet.TCP || h.Proto == packet.UDP || isICMP(h))
}

func containsAddr(want []netip.Prefix, a netip.Addr) bool {
	for i := range want {
		if want[i].Contains(a) {
			return true
		}
	}
	return false
}

func containsPort(want []PortRange, h *packet.Headers, port uint16) bool {
	if !hasPorts(h) {
		return false
	}
	for _, r := range want {
		if port >= r.Lo && port <= r.Hi {
			return true
		}
	}
	return false
}

func (t *TunnelCond) matchesPort(h *packet.Headers) bool {
	return hasPorts(h) && h.Proto == packet.UDP && h.DstPort == t.Port
}

func (t *TunnelCond) matches(p *packet.Packet, h *packet.Headers) bool {
	if !t.matchesPort(h) {
		return false
	}
	_, vni, err := p.Inner(t.Kind)
	return err == nil && vni == t.VNI
}

// miss says what a packet that does not match lacks.
func (t *TunnelCond) miss(p *packet.Packet, h *packet.Headers) trace.Miss {
	if !t.matchesPort(h) {
		return trace.Miss{Field: "tunnel port", Want: fmt.Sprintf("UDP %d", t.Port), Got: fmt.Sprintf("%s %s", h.Proto, portText(h, h.DstPort))}
	}
	_, vni, err := p.Inner(t.Kind)
	if err != nil {
		return trace.Miss{Field: "tunnel", Want: "a tunnel header", Got: err.Error()}
	}
	return trace.Miss{Field: "VNI", Want: strconv.Itoa(int(t.VNI)), Got: strconv.Itoa(int(vni))}
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
