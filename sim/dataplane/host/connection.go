package host

import (
	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// connection is one direction of a connection that was seen, translated or not.
type connection struct {
	first   packet.Tuple   // of its first packet, as it came
	result  packet.Tuple   // the same after all translation
	rewrite packet.Rewrite // from one to the other
	icmpID  uint16         // ICMP identifier to set, 0 for none
	rule    string
	marked  bool
	// sourceDone says that the source part was decided for this connection.
	sourceDone bool
	// reply is set on the direction that answers, and forward is its other one.
	reply   bool
	forward *connection
}

// translated is what a packet of this direction is after all translation.
func (e *connection) translated() packet.Tuple {
	if e.reply {
		return e.forward.first.Reverse()
	}
	return e.result
}

func (n *NAT) reset() {
	clear(n.table)
	n.nextPort, n.nextID = 0, 0
	clear(n.sticky)
}

// Bridged translates a packet that crosses a bridge of the stack, if it is a
// reply of a known connection (bridge-nf-call-iptables).
func (n *NAT) Bridged(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	if n.Related && isError(p.Headers()) {
		n.related(s, sim, p)
	} else if e := n.table[p.Tuple()]; e != nil && e.reply {
		n.translateKnown(s, sim, p)
	}
}

// translateKnown translates a packet of a connection that was seen before, and
// reports whether it was one.
func (n *NAT) translateKnown(s *Stack, sim *wire.Simulation, p *packet.Packet) bool {
	e := n.table[p.Tuple()]
	if e == nil {
		return false
	}
	before := *p.Headers()
	p.Apply(&e.rewrite)
	if e.icmpID != 0 {
		p.SetICMPID(e.icmpID)
	}
	if sim.Rec.On() && (e.rewrite.Set != 0 || e.icmpID != 0) {
		n.step(s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: e.rule, Event: trace.Of(knownConnection{e.reply}), Changes: natChanges(&before, p)})
	}
	return true
}

// remember keeps a connection whose first packet came as first and leaves as
// now, and its reverse direction.
func (n *NAT) remember(first, now packet.Tuple, e *connection, undo *journal.Journal) {
	if n.table == nil {
		n.table = map[packet.Tuple]*connection{}
	}
	journal.KeepKey(undo, n.table, e.result.Reverse())
	delete(n.table, e.result.Reverse()) // as it was before more of it was translated
	b := &connection{reply: true, rule: e.rule, forward: e}
	if now.Src != first.Src || now.SrcPort != first.SrcPort {
		b.rewrite.Set |= packet.RwDst | packet.RwDstPort
		b.rewrite.Dst, b.rewrite.DstPort = first.Src, first.SrcPort
	}
	if now.Dst != first.Dst || now.DstPort != first.DstPort {
		b.rewrite.Set |= packet.RwSrc | packet.RwSrcPort
		b.rewrite.Src, b.rewrite.SrcPort = first.Dst, first.DstPort
	}
	if e.icmpID != 0 {
		b.icmpID = first.ICMPID
	}
	e.first, e.result = first, now
	journal.KeepKey(undo, n.table, first)
	journal.KeepKey(undo, n.table, now.Reverse())
	n.table[first] = e
	n.table[now.Reverse()] = b
}

// byResult finds the connection whose first packet looks like this after its
// destination was translated.
func (n *NAT) byResult(t packet.Tuple) *connection {
	if b := n.table[t.Reverse()]; b != nil {
		return b.forward // nil when it is no reply
	}
	return nil
}
