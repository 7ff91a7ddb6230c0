package vfp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
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

func (t RuleType) String() string {
	if int(t) >= len(ruleTypeNames) {
		return "RuleType(" + strconv.Itoa(int(t)) + ")"
	}
	return ruleTypeNames[t]
}

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

// matches reports whether the rule applies to a packet with headers h.
func (r *Rule) matches(p *packet.Packet, h *packet.Headers) bool {
	return r.Cond.Match(p, h) && !(r.translates() && isICMP(h))
}

// misses lists the predicates that a packet fails.
func (r *Rule) misses(p *packet.Packet, h *packet.Headers) []trace.Miss {
	ms := r.Cond.Misses(p, h)
	if r.translates() && isICMP(h) && (len(r.Cond.Protos) == 0 || slices.Contains(r.Cond.Protos, h.Proto)) {
		ms = append(ms, trace.Miss{Field: "protocol", Want: "TCP or UDP", Got: h.Proto.String()})
	}
	return ms
}

// translates reports whether the rule is of a type that never matches ICMP
// (vfp.icmp-flow-key).
func (r *Rule) translates() bool { return r.Type == NAT || r.Type == DynNAT || r.Type == LBNAT }

// keepsFlows reports whether the rule makes flows in a stateful layer. The
// tunnel rules decide for each packet anew, whatever their flags.
func (r *Rule) keepsFlows() bool {
	return r.Flags&Stateful != 0 && r.Type != Block && r.Type != RouteEncap && r.Type != Decap
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
// rule does through the host's route table. A port remembers the answer as part
// of a unified flow: who changes what the Router says calls [Port.Invalidate].
type Router interface {
	// NextHop returns the MAC addresses for a packet to dst and the next hop's
	// address as text, or ok false and the reason when there is none.
	NextHop(dst netip.Addr) (hop Hop, ok bool)
}

// Hop is the answer of a [Router].
type Hop struct {
	Src, Dst packet.MAC
	Via      fmt.Stringer // put into words only for a trace
	Reason   trace.Reason // when there is no way
}

// Via is a way in words.
type Via string

func (v Via) String() string { return string(v) }
