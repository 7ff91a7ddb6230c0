package vfp

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Action is what a rule does to a packet that matches it. There is one type for each
// kind of rule: [Allow], [Block], [NAT], [DynNAT], [LBNAT], [RouteEncap], [Decap],
// [Transpose] and [PARoute], and [NotModelled] for a rule whose effect has not been
// published.
type Action interface {
	// Type is the kind of rule as vfpctrl names it.
	Type() string
	// translates reports whether rules of the kind never match ICMP
	// (vfp.icmp-flow-key).
	translates() bool
	// keepsFlows reports whether a stateful rule of the kind makes flows. The
	// others decide for each packet, whatever their flags.
	keepsFlows() bool
	// apply does to the packet of a passage what the rule says.
	apply(ps *passage) Result
}

// Allow lets the packet pass as it is.
type Allow struct{}

// Type returns "allow".
func (Allow) Type() string     { return "allow" }
func (Allow) translates() bool { return false }
func (Allow) keepsFlows() bool { return true }

func (Allow) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	return ps.rewrite(c, &rewriting{what: trace.ActAllow, detail: allowed{}})
}

// Block drops the packet.
type Block struct {
	// Reason is why; empty means an ACL.
	Reason trace.Reason
}

// Type returns "block".
func (Block) Type() string     { return "block" }
func (Block) translates() bool { return false }
func (Block) keepsFlows() bool { return false }

func (a Block) apply(ps *passage) Result {
	reason := a.Reason
	if reason == "" {
		reason = trace.ACLBlock
	}
	return ps.drop(reason, blocked{}, nil)
}

// Transpose sets header fields to fixed values. Rules have a pointer to it: it is too
// large to be copied for every packet.
type Transpose struct {
	Set packet.Rewrite
}

// Type returns "transposition".
func (*Transpose) Type() string     { return "transposition" }
func (*Transpose) translates() bool { return false }
func (*Transpose) keepsFlows() bool { return true }

func (a *Transpose) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	return ps.rewrite(c, &rewriting{set: a.Set, what: trace.ActRewrite, detail: headersSet{}})
}

// NotModelled is the action of a rule whose effect is not known. A packet that
// matches the rule goes no further, and its verdict is unknown.
type NotModelled struct {
	// Action is what the rule would show as its action. It decides which
	// packets the rule matches.
	Action
	// Why says what is not known.
	Why string
}

func (a NotModelled) apply(ps *passage) Result { return ps.unknown(a.Why, nil) }
