package vfp

import (
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

func (d Direction) opposite() Direction {
	if d == Out {
		return In
	}
	return Out
}

// Flags are the rule flags of vfpctrl's /add-rule.
type Flags uint16

// The rule flags that matter here.
const (
	// Terminating ends the search in the rule's layer. In this model every rule
	// does that, with or without the flag.
	Terminating Flags = 1
	// Stateful lets the rule make flows, in a stateful layer.
	Stateful Flags = 2
)

// DefaultTTL is how long an idle flow lives. The value is the TTL that real
// listings of container hosts show for ACL and load balancing rules.
const DefaultTTL = 240 * time.Second

// Rule is one rule of a group: what packets it is for, and what it does to them.
type Rule struct {
	// ID is the rule's name. A name in parentheses is winlab's own.
	ID       string
	Priority uint16 // lower is earlier
	Flags    Flags
	Cond     Cond
	Action   Action        // never nil
	TTL      time.Duration // of the flows it makes; 0 means DefaultTTL

	// Given, when set, is what must hold for the rule to be there: an answer to a
	// question that no source decides. A packet that the rule is for asks it.
	Given *Given

	// Origin is the configuration behind the rule, Fact what it rests on.
	Origin *trace.Origin
	Fact   *evidence.Fact

	counts Counts
	group  *Group // where it is, at position at, since the group was sealed
	at     int
	set    fields // those of Cond that say something, since then
}

// Given is one answer to a question.
type Given struct {
	Question *evidence.Question
	// About names what the question is about, "" for the whole lab.
	About string
	// Answer is the value with which the rule is there.
	Answer string
}

// matches reports whether the rule, which is sealed, applies to a packet with headers h.
func (r *Rule) matches(p *packet.Packet, h *packet.Headers) bool {
	return r.Cond.matches(r.set, p, h) && !r.ignoresICMP(h)
}

// matchesNetwork reports whether the rule can apply to a packet of which only the first
// fragment has what the transport fields ask for.
func (r *Rule) matchesNetwork(p *packet.Packet, h *packet.Headers) bool {
	return r.Cond.matches(r.set&^transportFields, p, h) && !r.ignoresICMP(h)
}

// ignoresICMP reports whether the packet is ICMP and the rule's action never
// matches that.
func (r *Rule) ignoresICMP(h *packet.Headers) bool { return isICMP(h) && r.Action.translates() }

// misses lists the predicates that a packet fails.
func (r *Rule) misses(p *packet.Packet, h *packet.Headers) (ms []trace.Miss) {
	missed := r.Cond.missed(r.set, p, h)
	for left := missed; left != 0; left &= left - 1 {
		ms = append(ms, condFields[left.first()].miss(&r.Cond, p, h))
	}
	if r.wantsNoICMP(missed, h) {
		ms = append(ms, trace.Miss{Field: "protocol", Want: "TCP or UDP", Got: h.Proto.String()})
	}
	return ms
}

// wantsNoICMP reports whether a packet fails because of the rule's action, where it is
// not its condition that wants another protocol.
func (r *Rule) wantsNoICMP(missed fields, h *packet.Headers) bool {
	return r.ignoresICMP(h) && missed&byProtocol == 0
}

// keepsFlows reports whether the rule makes flows in a stateful layer.
func (r *Rule) keepsFlows() bool { return r.Flags&Stateful != 0 && r.Action.keepsFlows() }

// ttl is how long a flow of the rule lives without a packet.
func (r *Rule) ttl() time.Duration {
	if r.TTL == 0 {
		return DefaultTTL
	}
	return r.TTL
}
