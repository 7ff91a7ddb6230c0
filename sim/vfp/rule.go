package vfp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/winlab-dev/winlab/sim/evidence"
	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Direction is the way a packet goes through a port, as VFP sees it: Out is
// from the endpoint into the switch, In is from the switch to the endpoint. On
// the external port Out is towards the wire and In is from the wire.
type Direction uint8

// The directions.
const (
	Out Direction = iota
	In
)

func (d Direction) String() string {
	if d == Out {
		return "out"
	}
	return "in"
}

// RuleType is what a rule does. The names are those of vfpctrl.
type RuleType uint8

// The rule types that are modelled.
const (
	Allow RuleType = iota
	Block
	NAT
	DynNAT
	LBNAT
	RouteEncap
	Decap
	Transpose
	PARoute
)

var ruleTypeNames = [...]string{"allow", "block", "nat", "dynnat", "lbnat", "routeencap", "decap", "transposition", "paroute"}

func (t RuleType) String() string { return ruleTypeNames[t] }

// Flags are the rule flags of vfpctrl's /add-rule.
type Flags uint16

// The rule flags that matter here.
const (
	Terminating Flags = 1
	Stateful    Flags = 2
)

func (f Flags) String() string {
	s := strconv.Itoa(int(f))
	if f&Terminating != 0 {
		s += " terminating"
	}
	if f&Stateful != 0 {
		s += " stateful"
	}
	return s
}

// DefaultTTL is how long an idle flow lives. The value is the TTL that real
// listings of container hosts show for ACL and load balancing rules.
const DefaultTTL = 240 * time.Second

// Rule is one rule of a group.
type Rule struct {
	// ID is the rule's name. A name in parentheses is winlab's own.
	ID       string
	Priority uint16 // lower is earlier
	Type     RuleType
	Flags    Flags
	Cond     Cond
	TTL      time.Duration // of the flows it makes; 0 means DefaultTTL

	// Set is the fixed header rewrite of a NAT or transposition rule.
	Set packet.Rewrite
	// Targets are the backends of an lbnat rule; one is picked per flow.
	Targets []Target
	// KeepDst leaves the destination address alone: the packet is only sent
	// on to the target's MAC address (preserve-destination, hairpin rules).
	KeepDst bool
	// BySource makes lbnat pick by source address only (session affinity).
	BySource bool
	// Pool is where dynnat, and lbnat when set, take the new source from.
	Pool *Pool
	// Tunnel is the outer header of a routeencap rule, or what a decap rule opens.
	Tunnel *Tunnel
	// Next finds the next hop of a paroute rule.
	Next Router
	// Hairpin sends the packet back into the switch from this port.
	Hairpin bool
	// Reason is why a block rule blocks; empty means an ACL.
	Reason trace.Reason
	// Hole says what the model does not know here. A packet that matches ends
	// with the verdict unknown.
	Hole string

	Origin *trace.Origin
	Fact   *evidence.Fact
}

// Target is one backend of an lbnat rule.
type Target struct {
	Addr netip.Addr
	Port uint16
	// MAC is where the frame goes next, zero to leave that alone.
	MAC packet.MAC
	// Note names the endpoint for the trace.
	Note string
}

func (t Target) String() string { return netip.AddrPortFrom(t.Addr, t.Port).String() }

// Tunnel describes encapsulation.
type Tunnel struct {
	Kind     packet.Tunnel
	Src, Dst netip.Addr // provider addresses
	VNI      uint32
	Port     uint16 // UDP destination port
	// InnerDst is the inner destination MAC that the rule sets ("fixing inner
	// MAC"), InnerSrc likewise; zero leaves them.
	InnerDst, InnerSrc packet.MAC
}

// Router finds the next hop of a packet that VFP routes itself, as the paroute
// rule does through the host's route table.
type Router interface {
	// NextHop returns the MAC addresses for a packet to dst and the next hop's
	// address as text, or false and the reason when there is none.
	NextHop(dst netip.Addr) (hop Hop, ok bool)
}

// Hop is the answer of a [Router].
type Hop struct {
	Src, Dst packet.MAC
	Via      string
	Reason   trace.Reason // when there is no way
}

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
	// ICMPTypes match ICMP and ICMPv6.
	ICMPTypes []uint8
}

// Match reports whether the packet meets every predicate.
func (c *Cond) Match(p *packet.Packet, h *packet.Headers) bool {
	if len(c.Protos) != 0 && !slices.Contains(c.Protos, h.Proto) {
		return false
	}
	if len(c.Dst) != 0 && !containsAddr(c.Dst, h.Dst) {
		return false
	}
	if len(c.DstPorts) != 0 && !containsPort(c.DstPorts, h.DstPort) {
		return false
	}
	if len(c.Src) != 0 && !containsAddr(c.Src, h.Src) {
		return false
	}
	if len(c.SrcPorts) != 0 && !containsPort(c.SrcPorts, h.SrcPort) {
		return false
	}
	if !c.DstMAC.IsZero() && c.DstMAC != h.EthDst {
		return false
	}
	if len(c.ICMPTypes) != 0 && !slices.Contains(c.ICMPTypes, h.ICMPType) {
		return false
	}
	if c.TunnelPort != 0 {
		if h.Proto != packet.UDP || h.DstPort != c.TunnelPort {
			return false
		}
		if _, vni, err := p.Inner(c.TunnelKind); err != nil || vni != c.VNI {
			return false
		}
	}
	return true
}

// Misses lists every predicate that the packet fails, as the nearest-rule
// explanation wants them.
func (c *Cond) Misses(p *packet.Packet, h *packet.Headers) []trace.Miss {
	var ms []trace.Miss
	miss := func(field, want, got string) {
		ms = append(ms, trace.Miss{Field: field, Want: want, Got: got})
	}
	if len(c.Protos) != 0 && !slices.Contains(c.Protos, h.Proto) {
		miss("protocol", join(c.Protos), h.Proto.String())
	}
	if len(c.Src) != 0 && !containsAddr(c.Src, h.Src) {
		miss("source", joinPrefixes(c.Src), h.Src.String())
	}
	if len(c.Dst) != 0 && !containsAddr(c.Dst, h.Dst) {
		miss("destination", joinPrefixes(c.Dst), h.Dst.String())
	}
	if len(c.SrcPorts) != 0 && !containsPort(c.SrcPorts, h.SrcPort) {
		miss("source port", join(c.SrcPorts), portText(h.Proto, h.SrcPort))
	}
	if len(c.DstPorts) != 0 && !containsPort(c.DstPorts, h.DstPort) {
		miss("destination port", join(c.DstPorts), portText(h.Proto, h.DstPort))
	}
	if !c.DstMAC.IsZero() && c.DstMAC != h.EthDst {
		miss("destination MAC", c.DstMAC.String(), h.EthDst.String())
	}
	if c.TunnelPort != 0 && (h.Proto != packet.UDP || h.DstPort != c.TunnelPort) {
		miss("tunnel port", fmt.Sprintf("UDP %d", c.TunnelPort), fmt.Sprintf("%s %d", h.Proto, h.DstPort))
	} else if c.TunnelPort != 0 {
		if _, vni, err := p.Inner(c.TunnelKind); err != nil {
			miss("tunnel", "a tunnel header", err.Error())
		} else if vni != c.VNI {
			miss("VNI", strconv.Itoa(int(c.VNI)), strconv.Itoa(int(vni)))
		}
	}
	return ms
}

// portText says "none" for protocols without ports.
func portText(proto packet.Proto, port uint16) string {
	if proto != packet.TCP && proto != packet.UDP {
		return "none"
	}
	return strconv.Itoa(int(port))
}

func containsAddr(ps []netip.Prefix, a netip.Addr) bool {
	for i := range ps {
		if ps[i].Contains(a) {
			return true
		}
	}
	return false
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
