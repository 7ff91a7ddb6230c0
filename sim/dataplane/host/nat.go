package host

import (
	"net/netip"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Chain says when a NAT rule applies.
type Chain string

// The chains of a host's NAT.
const (
	Prerouting  Chain = "PREROUTING"  // from a link, before routing
	Output      Chain = "OUTPUT"      // from the host's own programs
	Postrouting Chain = "POSTROUTING" // on the way out of a link
)

// NAT is the address translation of a stack: rules for the first packet of a
// connection, a table for all others. It serves Linux netfilter and WinNAT,
// which differ in their rules and names only.
type NAT struct {
	// Name is "iptables" or "WinNAT".
	Name  string
	Rules []NATRule
	Fact  *evidence.Fact
	// Related says that ICMP errors are translated with the connection that they are
	// about; without it they are packets like others.
	Related bool
	// Loose says that a TCP segment in the middle of a connection that is not known begins one
	// (nf_conntrack_tcp_loose); without it, what happens to the segment is not known.
	Loose bool
	// Timeouts are when connections are forgotten, TimeoutFact is what they rest on.
	Timeouts    Timeouts
	TimeoutFact *evidence.Fact

	sweepAt int // directions in table
	table   map[packet.Tuple]*connection
	// sticky are the targets that clients of sticky rules have been sent to.
	sticky   map[stuck]int
	nextPort uint16
	nextID   uint16

	// changes counts when all connections were forgotten, added for each bucket of tuples
	// those that came; see path.Record.
	changes uint32
	added   [natBuckets]uint32
	ways    *path.Ways
}

// NATRule is one rule. Empty conditions match everything.
type NATRule struct {
	Chain  Chain
	Name   string // "KUBE-SERVICES/KUBE-SVC-WEB"
	Protos []packet.Proto
	Src    []netip.Prefix
	NotSrc []netip.Prefix
	Dst    []netip.Prefix
	NotDst []netip.Prefix
	// LocalDst matches addresses of the stack itself (--dst-type LOCAL).
	LocalDst bool
	DstPort  uint16
	// OutLink matches the link a packet leaves by (Postrouting only).
	OutLink *Link
	// notOutLinks are links that it does not apply to.
	notOutLinks []*Link

	// Targets are the backends of a destination translation. Which one a connection
	// gets is chance; with Sticky (the recent module) all connections of one client
	// address get the same.
	Targets []netip.AddrPort
	Sticky  bool
	// Mark marks the connection for rules with Marked.
	Mark bool
	// Masquerade translates the source to the outgoing link's address
	// (Postrouting only).
	Masquerade bool
	// Marked matches connections that were marked.
	Marked bool
	// Drop throws the packet away with the reason.
	Drop   trace.Reason
	Origin *trace.Origin
	// Fact is what the rule rests on; nil means that of the NAT.
	Fact *evidence.Fact
}

// NewNetfilter returns an empty NAT with netfilter's names and the kernel's timeouts.
func NewNetfilter() *NAT {
	return &NAT{Name: "iptables", Fact: factMasquerade, Related: true, Loose: true, TimeoutFact: factConntrackTimeouts, Timeouts: Timeouts{
		Open: 5 * 24 * time.Hour, Opening: 2 * time.Minute, Closing: 2 * time.Minute, Half: time.Minute, Last: 30 * time.Second,
		Aborted: 10 * time.Second,
		UDP:     30 * time.Second, Answered: 2 * time.Minute, ICMP: 30 * time.Second}}
}

// NewRouterNAT returns an empty NAT of a router that is not described further.
func NewRouterNAT(f *evidence.Fact) *NAT {
	return &NAT{Name: "router NAT", Fact: f, TimeoutFact: factRouterTimeouts, Timeouts: Timeouts{
		Opening: 4 * time.Minute, Closing: 4 * time.Minute, Aborted: 4 * time.Minute, UDP: 5 * time.Minute, Answered: 5 * time.Minute,
		ICMP:  time.Minute,
		Doubt: 4 * time.Minute}}
}

// NewWinNAT returns the NAT of a Windows host for the internal prefix.
func NewWinNAT(internal netip.Prefix, inside *Link, origin *trace.Origin) *NAT {
	return &NAT{Name: "WinNAT", Fact: factWinNAT, TimeoutFact: factWinNATTimeouts, Timeouts: Timeouts{
		Open: 30 * time.Minute, Opening: 2 * time.Minute, Closing: 2 * time.Minute, Aborted: 2 * time.Minute,
		UDP: 2 * time.Minute, Answered: 2 * time.Minute, ICMP: 30 * time.Second}, Rules: []NATRule{{
		Chain: Postrouting, Name: "New-NetNat " + internal.String(), Src: []netip.Prefix{internal}, notOutLinks: []*Link{inside},
		Protos: []packet.Proto{packet.TCP, packet.UDP, packet.ICMP}, Masquerade: true, Origin: origin,
	}}}
}

// WinNATMapping is the rule of a published port: packets from elsewhere to that port
// of the node go to a container. An invalid address means each of the node's.
func WinNATMapping(addr netip.Addr, proto packet.Proto, port uint16, to netip.AddrPort, origin *trace.Origin) NATRule {
	r := NATRule{Chain: Prerouting, Name: "Add-NetNatStaticMapping " + to.String(), Protos: []packet.Proto{proto}, DstPort: port,
		LocalDst: true, Targets: []netip.AddrPort{to}, Origin: origin}
	if addr.IsValid() {
		r.Dst = []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
	}
	return r
}

// WinNATLoopback are the rules by which the host's own programs reach a published port
// at the node's addresses and at localhost. A container could not answer localhost, so
// that such packets get the host's address on the container's network.
func WinNATLoopback(mapping NATRule, fact *evidence.Fact) []NATRule {
	mapping.Chain, mapping.Mark, mapping.Fact = Output, true, fact
	return []NATRule{mapping, {Chain: Postrouting, Name: mapping.Name, Protos: mapping.Protos, Marked: true, Masquerade: true,
		Src: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Origin: mapping.Origin, Fact: fact}}
}

// Publish replaces the rules for published ports.
func (n *NAT) Publish(rules []NATRule) {
	n.Rules = slices.DeleteFunc(slices.Clone(n.Rules), func(r NATRule) bool { return r.Chain != Postrouting || r.Marked })
	n.Rules = append(n.Rules, rules...)
}

// destination translates the destination of a packet that enters the chain:
// by its connection when that is known, else by the rules. It reports whether
// the packet goes on.
func (n *NAT) destination(s *Stack, sim *wire.Simulation, p *packet.Packet, c Chain) bool {
	if n.Related && isError(p.Headers()) {
		n.related(s, sim, p)
		return true
	}
	return n.translateKnown(s, sim, p) || n.firstPacket(s, sim, p, c)
}

// firstPacket applies the rules of a chain to the first packet of a connection.
func (n *NAT) firstPacket(s *Stack, sim *wire.Simulation, p *packet.Packet, c Chain) bool {
	sim.Path.GiveUp() // the next packet goes another way, by what this one leaves
	first := p.Tuple()
	e := &connection{}
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Chain != c || !r.matches(s, p.Headers(), e, nil) {
			continue
		}
		if r.Drop != "" {
			n.stepOf(r, s, sim, p, trace.Step{Action: trace.ActDrop, Rule: r.Name, Reason: r.Drop, Event: trace.Note("dropped"), From: r.Origin})
			return false
		}
		e.marked = e.marked || r.Mark
		if len(r.Targets) != 0 {
			n.pickTarget(s, sim, p, e, r)
			break
		}
	}
	n.remember(sim, first, p, e)
	return true
}

// stuck is a client of a sticky rule.
type stuck struct {
	rule   string
	client netip.Addr
}

func (n *NAT) stick(client stuck, pick int) {
	if n.sticky == nil {
		n.sticky = map[stuck]int{}
	}
	n.sticky[client] = pick
}

// pickTarget sends the first packet of a connection to one of a rule's targets.
func (n *NAT) pickTarget(s *Stack, sim *wire.Simulation, p *packet.Packet, e *connection, r *NATRule) {
	pick := 0
	if of := len(r.Targets); of > 1 {
		client := stuck{r.Name, p.Headers().Src}
		before, known := n.sticky[client]
		if pick = before; !known || !r.Sticky {
			pick = sim.Choose(r.Name, of, int(p.Tuple().Hash()%uint32(of)), func(i int) string { return r.Targets[i].String() })
		}
		if r.Sticky {
			journal.Keep(sim.Journal, &n.sticky)
			journal.KeepKey(sim.Journal, n.sticky, client)
			n.stick(client, pick)
		}
	}
	n.midway(s, sim, p)
	t := r.Targets[pick]
	before := *p.Headers()
	e.rule = r.Name
	e.rewrite = packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: t.Addr(), DstPort: t.Port()}
	p.Apply(&e.rewrite)
	if sim.Rec.On() {
		n.stepOf(r, s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: r.Name, Event: trace.Of(backendChosen{pick, len(r.Targets), e.marked}),
			From: r.Origin, Changes: natChanges(sim.Rec, &before, p)})
	}
}

// source translates the source of a connection's first packet as it leaves by a
// link. Later packets were translated with their destination. It reports whether the
// packet goes on.
func (n *NAT) source(s *Stack, sim *wire.Simulation, p *packet.Packet, out *Link) bool {
	t := p.Tuple()
	e := n.byResult(t)
	if e == nil || e.sourceDone {
		n.passedBy(sim.Path, t.Reverse(), n.table[t.Reverse()], true)
		return true
	}
	sim.Path.GiveUp()
	journal.Keep(sim.Journal, e)
	e.sourceDone = true
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Chain == Postrouting && r.Masquerade && r.matches(s, p.Headers(), e, out) {
			if src := out.address(t.Src.Is6()); src.IsValid() && src != t.Src {
				return n.translateSource(s, sim, p, e, r, src)
			}
			break
		}
	}
	return true
}

// midway notes that a segment is translated as the first packet of a connection, which it
// is not: the NAT does not know its connection, or does not know it any more.
func (n *NAT) midway(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	if h := p.Headers(); !n.Loose && h.Proto == packet.TCP && h.TCPFlags&(packet.SYN|packet.ACK) != packet.SYN {
		sim.RecordUnknown(s.Place + ": what " + n.Name + " does with a segment in the middle of a connection that it does not know")
	}
}

// The ports, and the identifiers of echo requests, that translated sources get.
const (
	firstNATPort = 50000
	natPorts     = 65535 - firstNATPort + 1
	firstNATID   = 0x4001
	natIDs       = 65535 - firstNATID + 1
)

// translateSource gives a connection another source. It reports whether the packet goes
// on: without a free port it does not.
func (n *NAT) translateSource(s *Stack, sim *wire.Simulation, p *packet.Packet, e *connection, r *NATRule, src netip.Addr) bool {
	n.midway(s, sim, p)
	journal.Keep(sim.Journal, &n.nextPort)
	journal.Keep(sim.Journal, &n.nextID)
	before := *p.Headers()
	rw := packet.Rewrite{Set: packet.RwSrc, Src: src}
	free := p.Tuple()
	free.Src = src
	switch before.Proto {
	case packet.TCP, packet.UDP:
		if !n.free(&free, &free.SrcPort, firstNATPort, &n.nextPort, natPorts, sim.Now()) {
			n.stepOf(r, s, sim, p, trace.Step{Action: trace.ActDrop, Rule: r.Name, Reason: trace.NoFreePort,
				Event: trace.Note("every port for translated sources is in use"), From: r.Origin})
			return false
		}
		rw.Set |= packet.RwSrcPort
		rw.SrcPort = free.SrcPort
	case packet.ICMP, packet.ICMPv6:
		if !n.free(&free, &free.ICMPID, firstNATID, &n.nextID, natIDs, sim.Now()) {
			n.stepOf(r, s, sim, p, trace.Step{Action: trace.ActDrop, Rule: r.Name, Reason: trace.NoFreePort,
				Event: trace.Note("every identifier for translated echo requests is in use"), From: r.Origin})
			return false
		}
		e.icmpID = free.ICMPID
	}
	p.Apply(&rw)
	if e.icmpID != 0 {
		p.SetICMPID(e.icmpID)
	}
	e.rewrite = e.rewrite.Then(rw)
	if e.rule == "" {
		e.rule = r.Name
	}
	n.remember(sim, e.first, p, e)
	if sim.Rec.On() {
		n.stepOf(r, s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: r.Name, Event: trace.Note("source translated"), From: r.Origin,
			Changes: natChanges(sim.Rec, &before, p)})
	}
	return true
}

// free sets a number of a tuple to the next one with which no connection has that tuple;
// false when all of them are in use.
func (n *NAT) free(t *packet.Tuple, number *uint16, first uint16, next *uint16, of int, now time.Duration) bool {
	for range of {
		*number = first + *next
		*next = uint16((int(*next) + 1) % of)
		if !n.taken(*t, now) {
			return true
		}
	}
	return false
}

// step records a step of the translation.
func (n *NAT) step(s *Stack, sim *wire.Simulation, p *packet.Packet, st trace.Step) {
	st.RuleType = n.Name
	s.step(sim, p, st, n.Fact)
}

// stepOf records a step of a rule.
func (n *NAT) stepOf(r *NATRule, s *Stack, sim *wire.Simulation, p *packet.Packet, st trace.Step) {
	if r.Fact == nil {
		n.step(s, sim, p, st)
		return
	}
	st.RuleType = n.Name
	s.step(sim, p, st, r.Fact)
}

// natChanges lists the fields that a translation changed.
func natChanges(rec *trace.Recorder, before *packet.Headers, p *packet.Packet) []trace.Change {
	return diff.Headers(rec, before, p.Headers(), diff.Address|diff.ICMPID)
}

// matches reports whether a rule is about a packet. Out is the link that it
// leaves by, nil before that is known.
func (r *NATRule) matches(s *Stack, h *packet.Headers, e *connection, out *Link) bool {
	return r.matchesPacket(h) && r.matchesLink(out) &&
		(!r.LocalDst || s.Owns(h.Dst)) && (!r.Marked || e.marked)
}

func (r *NATRule) matchesPacket(h *packet.Headers) bool {
	return (len(r.Protos) == 0 || slices.Contains(r.Protos, h.Proto)) &&
		(len(r.Src) == 0 || contains(r.Src, h.Src)) && !contains(r.NotSrc, h.Src) &&
		(len(r.Dst) == 0 || contains(r.Dst, h.Dst)) && !contains(r.NotDst, h.Dst) &&
		(r.DstPort == 0 || r.DstPort == h.DstPort)
}

func (r *NATRule) matchesLink(out *Link) bool {
	return (r.OutLink == nil || r.OutLink == out) && (out == nil || !slices.Contains(r.notOutLinks, out))
}

func contains(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}
