package host

import (
	"cmp"
	"time"

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
	*life
	// reply is set on the direction that answers, and forward is its other one.
	reply   bool
	forward *connection
	// gone says that the table has it no more under the tuple of its packets.
	gone bool
}

// translated is what a packet of this direction is after all translation.
func (e *connection) translated() packet.Tuple {
	if e.reply {
		return e.forward.first.Reverse()
	}
	return e.result
}

// life is what the two directions of a connection have in common.
type life struct {
	until    time.Duration // on the virtual clock; 0 is for ever
	last     time.Duration // of its last packet
	state    state
	answered bool
}

// state is how far a TCP connection has come.
type state uint8

const (
	opening state = iota // a SYN, and no more than that
	open
	closing // one end has sent FIN
	half    // and the other has acknowledged it
	last    // both have sent FIN
	waiting // and the last one is acknowledged
	aborted // one end has sent RST
)

// Timeouts are how long a NAT keeps a connection on which nothing is sent; 0 is for ever.
type Timeouts struct {
	// Open is for a TCP connection that stands, Opening for one that is not answered,
	// Closing for one that an end has closed, Aborted for one that an end has reset.
	Open, Opening, Closing, Aborted time.Duration
	// Half is for one that an end has closed when the other has acknowledged that, and
	// may go on sending (CLOSE_WAIT of netfilter); Last for one that both have closed
	// (LAST_ACK). 0 is Closing.
	Half, Last time.Duration
	// UDP is for a conversation in which one end has spoken, Answered for one in which
	// both have; other protocols but ICMP are like UDP.
	UDP, Answered, ICMP time.Duration
	// Doubt is after how long it is not known whether an established TCP connection is
	// still known; 0 is never.
	Doubt time.Duration
}

// touch notes a packet of a connection. Those that took the same way as others are told
// of later, and not in the order in which they came.
func (t *Timeouts) touch(l *life, now time.Duration, proto packet.Proto, flags uint8, reply bool) {
	l.last, l.answered = max(l.last, now), l.answered || reply
	keep := t.UDP
	switch proto {
	case packet.TCP:
		switch {
		case flags&packet.RST != 0:
			l.state = aborted
		case flags&packet.FIN != 0:
			switch {
			case l.state < closing:
				l.state = closing
			case l.state < waiting:
				l.state = last // as netfilter has it, also where it is the same FIN again
			}
		case flags&(packet.SYN|packet.ACK) == packet.SYN:
			l.state = opening
		case l.state == closing:
			l.state = half
		case l.state == last:
			l.state = waiting
		case l.state == opening && (reply || flags&packet.SYN == 0):
			l.state = open
		}
		keep = [...]time.Duration{opening: t.Opening, open: t.Open, closing: t.Closing, half: cmp.Or(t.Half, t.Closing),
			last: cmp.Or(t.Last, t.Closing), waiting: t.Closing, aborted: t.Aborted}[l.state]
	case packet.ICMP, packet.ICMPv6:
		keep = t.ICMP
	default:
		if l.answered {
			keep = t.Answered
		}
	}
	if l.until = 0; keep != 0 {
		l.until = l.last + keep
	}
}

func (l *life) expired(now time.Duration) bool { return l.until != 0 && now >= l.until }

func (n *NAT) reset() {
	n.ways.Changed()
	n.changes++
	clear(n.table)
	n.nextPort, n.nextID, n.sweepAt = 0, 0, firstSweep
	clear(n.sticky)
}

// known finds the connection of a packet; one that was idle for too long is forgotten.
func (n *NAT) known(s *Stack, sim *wire.Simulation, p *packet.Packet) *connection {
	e := n.table[p.Tuple()]
	if e == nil || !e.expired(sim.Now()) {
		return e
	}
	n.forget(e, sim.Journal)
	if sim.Rec.On() {
		s.step(sim, p, trace.Step{Action: trace.ActNote, RuleType: n.Name, Event: trace.Of(idleTooLong{e.until - e.last})}, n.TimeoutFact)
	}
	return nil
}

// forget takes both directions of a connection away, where others have not taken their
// place.
func (n *NAT) forget(e *connection, undo *journal.Journal) {
	if e.reply {
		e = e.forward
	}
	for _, t := range []packet.Tuple{e.first, e.result.Reverse()} {
		if k := n.table[t]; k != nil && k.life == e.life {
			n.put(t, nil, undo)
		}
	}
}

// firstSweep is how many directions there must be before those that have expired are
// looked for; later it is twice as many as there were.
const firstSweep = 1024

// sweep forgets what has expired. A simulation that will be undone leaves it alone.
func (n *NAT) sweep(sim *wire.Simulation) {
	if len(n.table) < max(n.sweepAt, firstSweep) || sim.Journal.On() {
		return
	}
	for t, e := range n.table {
		if e.expired(sim.Now()) {
			n.put(t, nil, nil)
		}
	}
	n.sweepAt = 2 * len(n.table)
}

// taken reports whether the answers to a packet would be those of a connection.
func (n *NAT) taken(t packet.Tuple, now time.Duration) bool {
	e := n.table[t.Reverse()]
	return e != nil && !e.expired(now)
}

// Bridged translates a packet that crosses a bridge of the stack, if it is a
// reply of a known connection (bridge-nf-call-iptables).
func (n *NAT) Bridged(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	if n.Related && isError(p.Headers()) {
		n.related(s, sim, p)
	} else if e := n.known(s, sim, p); e != nil && e.reply {
		n.translateKnown(s, sim, p)
	} else {
		n.passedBy(sim.Path, p.Tuple(), e, false)
	}
}

// translateKnown translates a packet of a connection that was seen before, and
// reports whether it was one.
func (n *NAT) translateKnown(s *Stack, sim *wire.Simulation, p *packet.Packet) bool {
	e := n.known(s, sim, p)
	if e == nil {
		return false
	}
	if sim.Path.On() {
		sim.Path.Follows(&followed{nat: n, e: e, changes: n.changes, tunnelled: sim.Path.Edits.InTunnel()}, &n.ways)
	}
	before := *p.Headers()
	if n.doubts(e, sim.Now()) {
		sim.RecordUnknown(s.Place + ": whether a NAT still knows a connection that was idle for so long")
	}
	journal.Keep(sim.Journal, e.life)
	if n.touch(e, sim.Now(), before.Proto, before.TCPFlags) {
		n.ways.Changed()
	}
	p.Apply(&e.rewrite)
	if e.icmpID != 0 {
		p.SetICMPID(e.icmpID)
	}
	if sim.Rec.On() && (e.rewrite.Set != 0 || e.icmpID != 0) {
		n.step(s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: e.rule, Event: trace.Of(knownConnection{e.reply}),
			Changes: natChanges(sim.Rec, &before, p)})
	}
	return true
}

// touch notes a packet of a connection, and reports whether more has changed than how long
// it is kept: then it may be kept less long than before.
func (n *NAT) touch(e *connection, now time.Duration, proto packet.Proto, flags uint8) bool {
	before := *e.life
	n.Timeouts.touch(e.life, now, proto, flags, e.reply)
	return e.state != before.state || e.answered != before.answered
}

// remember keeps a connection whose first packet came as first and leaves as p is
// now, and its reverse direction.
func (n *NAT) remember(sim *wire.Simulation, first packet.Tuple, p *packet.Packet, e *connection) {
	if n.table == nil {
		n.table = map[packet.Tuple]*connection{}
	}
	n.sweep(sim)
	n.put(e.result.Reverse(), nil, sim.Journal) // as it was before more of it was translated
	if e.life == nil {
		e.life = &life{}
		h := p.Headers()
		n.Timeouts.touch(e.life, sim.Now(), h.Proto, h.TCPFlags, false)
	}
	now := p.Tuple()
	b := &connection{reply: true, rule: e.rule, forward: e, life: e.life}
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
	n.put(first, e, sim.Journal)
	n.put(now.Reverse(), b, sim.Journal)
}

// put keeps a direction of a connection under a tuple, nil none.
func (n *NAT) put(t packet.Tuple, e *connection, undo *journal.Journal) {
	n.ways.Changed()
	journal.KeepKey(undo, n.table, t)
	old := n.table[t]
	if old != nil && old != e {
		journal.Keep(undo, &old.gone)
		old.gone = true
	}
	if e == nil {
		delete(n.table, t)
		return
	}
	if old == nil {
		c := &n.added[natBucket(&t)]
		journal.Keep(undo, c)
		*c++
	}
	e.gone = false
	n.table[t] = e
}

// byResult finds the connection whose first packet looks like this after its
// destination was translated.
func (n *NAT) byResult(t packet.Tuple) *connection {
	if b := n.table[t.Reverse()]; b != nil {
		return b.forward // nil when it is not a reply
	}
	return nil
}
