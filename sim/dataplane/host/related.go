package host

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// isError reports whether a packet is an ICMP error, which quotes the packet that it
// is about (RFC 792, RFC 4443).
func isError(h *packet.Headers) bool {
	switch h.Proto {
	case packet.ICMP:
		switch h.ICMPType {
		case 3, 4, 5, 11, 12:
			return true
		}
	case packet.ICMPv6:
		return h.ICMPType < 128
	}
	return false
}

// related translates an ICMP error with the connection of the packet that it quotes:
// its own addresses, so that it finds the way, and those in the quote, so that the
// socket knows its packet. An error about no known connection has no connection
// itself, and no rule is asked (Linux net/netfilter/nf_conntrack_proto_icmp.c
// nf_conntrack_inet_error; nf_nat_proto.c nf_nat_icmp_reply_translation).
func (n *NAT) related(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	sent, ok := quoted(p)
	if !ok {
		return
	}
	answer := sent.Reverse()
	e := n.table[answer]
	if e == nil || e.expired(sim.Now()) || e.translated() == answer {
		return
	}
	before := *p.Headers()
	p.Apply(&e.rewrite)
	original := e.translated().Reverse()
	p.SetQuoted(original)
	n.step(s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: e.rule, Event: trace.Of(relatedError{original}),
		Changes: natChanges(sim.Rec, &before, p)})
}
