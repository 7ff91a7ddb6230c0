package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Chain is where a NAT rule is looked at.
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

	table    map[packet.Tuple]*entry
	nextPort uint16
	nextID   uint16
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
	// NotOutLinks are links the rule does not apply to.
	NotOutLinks []*Link

	// Targets are the backends of a destination translation.
	Targets []netip.AddrPort
	// Mark makes Postrouting translate the source of this connection.
	Mark bool
	// Masquerade translates the source to the outgoing link's address; Source,
	// when valid, to that address.
	Masquerade bool
	Source     netip.Addr
	// Marked matches connections that were marked.
	Marked bool
	// Drop throws the packet away with the reason.
	Drop   trace.Reason
	Origin *trace.Origin
}

// entry is a connection that was seen, translated or not.
type entry struct {
	key     packet.Tuple // the first packet's tuple, as it came
	fwd     *entry       // of a reply: the direction that it answers
	result  packet.Tuple // the tuple after all translation
	rewrite packet.Rewrite
	id      uint16 // ICMP identifier to set, 0 for none
	back    *entry
	marked  bool
	rule    string
	reply   bool
	// srcDone says that the source part was decided for this connection.
	srcDone bool
}

// NewNetfilter returns an empty NAT with netfilter's names.
func NewNetfilter() *NAT { return &NAT{Name: "iptables", Fact: factMasquerade} }

// NewWinNAT returns the NAT of a Windows host for the internal prefix.
func NewWinNAT(internal netip.Prefix, inside *Link, origin *trace.Origin) *NAT {
	return &NAT{Name: "WinNAT", Fact: factWinNAT, Rules: []NATRule{{
		Chain: Postrouting, Name: "New-NetNat " + internal.String(), Src: []netip.Prefix{internal}, NotOutLinks: []*Link{inside},
		Protos: []packet.Proto{packet.TCP, packet.UDP, packet.ICMP}, Masquerade: true, Origin: origin,
	}}}
}

func (n *NAT) reset() {
	clear(n.table)
	n.nextPort, n.nextID = 0, 0
}

func (n *NAT) prerouting(s *Stack, sim *wire.Simulation, p *packet.Packet, _ *Link) bool {
	if n.known(s, sim, p) {
		return true
	}
	return n.dnat(s, sim, p, Prerouting)
}

// Bridged translates a packet that crosses a bridge of the stack, if its
// connection is known (bridge-nf-call-iptables).
func (n *NAT) Bridged(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	if e := n.table[p.Tuple()]; e != nil && e.reply {
		n.known(s, sim, p)
	}
}

func (n *NAT) output(s *Stack, sim *wire.Simulation, p *packet.Packet) bool {
	if n.known(s, sim, p) {
		return true
	}
	return n.dnat(s, sim, p, Output)
}

// input is the last place before a program; nothing is translated there.
func (n *NAT) input(*Stack, *wire.Simulation, *packet.Packet) bool { return true }

// known applies the entry of a connection that was seen before.
func (n *NAT) known(s *Stack, sim *wire.Simulation, p *packet.Packet) bool {
	e := n.table[p.Tuple()]
	if e == nil {
		return false
	}
	before := *p.Headers()
	p.Apply(&e.rewrite)
	if e.id != 0 {
		p.SetICMPID(e.id)
	}
	if e.rewrite.Set != 0 || e.id != 0 {
		text := "connection known: translated as before"
		if e.reply {
			text = "reply of a known connection: translation undone"
		}
		s.step(sim, p, trace.Step{Action: trace.ActRewrite, Rule: e.rule, RuleType: n.Name, Event: trace.Note(text), Changes: diff.Headers(&before, p.Headers(), diff.Address|diff.ICMPID)}, n.Fact)
	}
	return true
}

// dnat picks a new destination for the first packet of a connection.
func (n *NAT) dnat(s *Stack, sim *wire.Simulation, p *packet.Packet, c Chain) bool {
	first := p.Tuple()
	e := &entry{}
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Chain != c || !r.matches(s, p.Headers(), e, nil) {
			continue
		}
		if r.Drop != "" {
			s.step(sim, p, trace.Step{Action: trace.ActDrop, Rule: r.Name, RuleType: n.Name, Reason: r.Drop, Event: trace.Note("dropped"), From: r.Origin}, n.Fact)
			return false
		}
		e.marked = e.marked || r.Mark
		if len(r.Targets) == 0 {
			continue
		}
		pick := 0
		if len(r.Targets) > 1 {
			pick = sim.Choose(r.Name, len(r.Targets), int(first.SrcPort)%len(r.Targets), func(i int) string { return r.Targets[i].String() })
		}
		t := r.Targets[pick]
		before := *p.Headers()
		e.rule = r.Name
		e.rewrite = packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: t.Addr(), DstPort: t.Port()}
		p.Apply(&e.rewrite)
		text := fmt.Sprintf("backend %d of %d", pick+1, len(r.Targets))
		if e.marked {
			text += ", marked for source translation"
		}
		s.step(sim, p, trace.Step{Action: trace.ActRewrite, Rule: r.Name, RuleType: n.Name, Event: trace.Note(text), From: r.Origin, Changes: diff.Headers(&before, p.Headers(), diff.Address|diff.ICMPID)}, n.Fact)
		break
	}
	n.remember(first, p.Tuple(), e)
	return true
}

// postrouting translates the source of a connection's first packet.
func (n *NAT) postrouting(s *Stack, sim *wire.Simulation, p *packet.Packet, out *Link) bool {
	t := p.Tuple()
	e := n.byResult(t)
	if e == nil {
		if n.table[t] != nil || n.isReply(t) {
			return true
		}
		e = &entry{}
	}
	if e.srcDone || e.reply {
		return true
	}
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Chain != Postrouting || !r.matches(s, p.Headers(), e, out) || !r.Masquerade && !r.Source.IsValid() {
			continue
		}
		src := r.Source
		if !src.IsValid() {
			for _, a := range out.Addrs {
				if a.Addr().Is6() == t.Src.Is6() {
					src = a.Addr()
					break
				}
			}
		}
		if !src.IsValid() || src == t.Src {
			return true
		}
		n.translateSource(s, sim, p, e, r, src)
		return true
	}
	return true
}

// firstNATPort is the first port that a translated source gets.
const firstNATPort = 50000

func (n *NAT) translateSource(s *Stack, sim *wire.Simulation, p *packet.Packet, e *entry, r *NATRule, src netip.Addr) {
	before := *p.Headers()
	was := p.Tuple()
	orig := was
	if e.back != nil {
		orig = e.key
	}
	rw := packet.Rewrite{Set: packet.RwSrc, Src: src}
	switch was.Proto {
	case packet.TCP, packet.UDP:
		rw.Set |= packet.RwSrcPort
		rw.SrcPort = firstNATPort + n.nextPort
		n.nextPort = (n.nextPort + 1) % (65535 - firstNATPort + 1)
	case packet.ICMP, packet.ICMPv6:
		n.nextID++
		e.id = 0x4000 + n.nextID
	}
	p.Apply(&rw)
	if e.id != 0 {
		p.SetICMPID(e.id)
	}
	full := e.rewrite.Then(rw)
	e.rewrite, e.srcDone = full, true
	if e.rule == "" {
		e.rule = r.Name
	}
	n.remember(orig, p.Tuple(), e)
	s.step(sim, p, trace.Step{Action: trace.ActRewrite, Rule: r.Name, RuleType: n.Name, Event: trace.Note("source translated"), From: r.Origin, Changes: diff.Headers(&before, p.Headers(), diff.Address|diff.ICMPID)}, n.Fact)
}

// remember keeps a connection and its reply.
func (n *NAT) remember(first, now packet.Tuple, e *entry) {
	if n.table == nil {
		n.table = map[packet.Tuple]*entry{}
	}
	if e.back != nil {
		delete(n.table, e.result.Reverse())
	}
	b := &entry{reply: true, rule: e.rule, srcDone: true, fwd: e}
	if now.Src != first.Src || now.SrcPort != first.SrcPort {
		b.rewrite.Set |= packet.RwDst | packet.RwDstPort
		b.rewrite.Dst, b.rewrite.DstPort = first.Src, first.SrcPort
	}
	if now.Dst != first.Dst || now.DstPort != first.DstPort {
		b.rewrite.Set |= packet.RwSrc | packet.RwSrcPort
		b.rewrite.Src, b.rewrite.SrcPort = first.Dst, first.DstPort
	}
	if e.id != 0 {
		b.id = first.ICMPID
	}
	e.back, e.key, e.result = b, first, now
	n.table[first] = e
	n.table[now.Reverse()] = b
}

// byResult finds the connection whose request looks like this after its
// destination was translated.
func (n *NAT) byResult(t packet.Tuple) *entry {
	if b := n.table[t.Reverse()]; b != nil && b.reply {
		return b.fwd
	}
	return nil
}

// isReply reports whether a tuple is the result of undoing a translation.
func (n *NAT) isReply(t packet.Tuple) bool {
	e := n.table[t.Reverse()]
	return e != nil && !e.reply
}

func (r *NATRule) matches(s *Stack, h *packet.Headers, e *entry, out *Link) bool {
	contains := func(ps []netip.Prefix, a netip.Addr) bool {
		return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	switch {
	case len(r.Protos) != 0 && !slices.Contains(r.Protos, h.Proto),
		len(r.Src) != 0 && !contains(r.Src, h.Src),
		contains(r.NotSrc, h.Src),
		len(r.Dst) != 0 && !contains(r.Dst, h.Dst),
		contains(r.NotDst, h.Dst),
		r.LocalDst && !s.Owns(h.Dst),
		r.DstPort != 0 && r.DstPort != h.DstPort,
		r.OutLink != nil && r.OutLink != out,
		slices.Contains(r.NotOutLinks, out) && out != nil,
		r.Marked && !e.marked:
		return false
	}
	return true
}
