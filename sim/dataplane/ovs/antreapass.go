package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Tables have the names of Antrea's pipeline and are in its order, as of commit fc70f2b of
// antrea-io/antrea (pkg/agent/openflow/pipeline.go).

// antreaSource is the port by which a packet came into the bridge.
type antreaSource int

const (
	fromPod antreaSource = iota
	fromGateway
	fromTunnel
	fromUplink
)

// antreaTarget is where the table L3Forwarding sends a packet.
type antreaTarget int

const (
	toPod antreaTarget = iota
	toGateway
	toTunnel
	toUplink
)

// ctMark are the marks of a connection.
type ctMark uint8

const (
	ctService ctMark = 1 << iota
	ctHairpin
	ctSNAT
	ctFromGateway
	// ctReplied: an answer has been seen, so that the connection is established.
	ctReplied
)

// Zones of Antrea's connections.
const (
	antreaZone     = "zone 65520"
	antreaSNATZone = "zone 65521"
)

// antreaPass takes one packet through the tables.
type antreaPass struct {
	x    *AntreaNode
	sim  *wire.Simulation
	p    *packet.Packet
	from antreaSource
	in   *AntreaPort // of fromPod
	// rewriteMAC is the mark of packets whose MAC addresses L3Forwarding writes.
	rewriteMAC bool
	// known: the connection is known; reply and mark are its.
	known, reply, related bool
	mark                  ctMark
	// first is the tuple before the destination was translated. external: the address of
	// a Service was one that is meant for clients outside.
	first    packet.Tuple
	external bool
	to       antreaTarget
	out      *AntreaPort
	peer     *AntreaNode
}

func (a *antreaPass) run() {
	if !a.spoofGuard() || !a.track() || !a.known && !a.preRouting() || !a.egressPolicy() {
		return
	}
	if !a.l3() || !a.sourceNAT() || !a.ingressPolicy() {
		return
	}
	a.commit()
	a.output()
}

func (a *antreaPass) step(table, rule string, act trace.Action, e trace.Event, fact *evidence.Fact, before *packet.Headers) {
	if !a.sim.Rec.On() {
		return
	}
	st := trace.Step{Place: a.x.name, Object: a.x.net.o.Bridge, Layer: table, Rule: rule, Action: act, Event: e,
		Packet: a.sim.Rec.Describe(a.p)}
	if before != nil {
		st.Changes = diff.Headers(a.sim.Rec, before, a.p.Headers(), diff.MAC|diff.Address|diff.ICMPID|diff.TTL)
	}
	a.sim.Rec.Add(st.Cite(fact))
}

func (a *antreaPass) drop(table, rule string, why trace.Reason, e trace.Event, fact *evidence.Fact) bool {
	a.x.drop(a.sim, a.p, table, rule, why, e, fact)
	return false
}

// unknown ends the packet where no source says what happens.
func (a *antreaPass) unknown(table string, e trace.Event, fact *evidence.Fact) bool {
	a.sim.RecordUnknown(fact.Says)
	a.x.drop(a.sim, a.p, table, "", trace.ModelHole, e, fact)
	return false
}

// spoofGuard follows antrea.spoof-guard.
func (a *antreaPass) spoofGuard() bool {
	if a.from != fromPod {
		return true
	}
	h := a.p.Headers()
	switch {
	case h.EthSrc != a.in.link.MAC:
		return a.drop("SpoofGuard", "priority=0", trace.SpoofedSource, trace.Of(foreignMAC{h.EthSrc}), factAntreaSpoofGuard)
	case h.Src != a.in.Address:
		return a.drop("SpoofGuard", "priority=0", trace.SpoofedSource, trace.Of(foreignSource{h.Src}), factAntreaSpoofGuard)
	}
	a.step("SpoofGuard", fmt.Sprintf("ip, in_port=%s, nw_src=%s", a.in.name, a.in.Address), trace.ActAllow,
		trace.Note("source is the port's own"), factAntreaSpoofGuard, nil)
	return true
}

// track looks the packet's connection up (antrea.conntrack).
func (a *antreaPass) track() bool {
	ct := &a.x.ct
	if e := ct.lookup(antreaSNATZone, a.p.Tuple()); e != nil && e.reply {
		before := *a.p.Headers()
		a.p.Apply(&e.rewrite)
		a.step("UnSNAT", "ip, nw_dst="+before.Dst.String(), trace.ActRewrite,
			trace.Note("ct(nat): reply of a known connection, source translation undone"), factAntreaServiceSNAT, &before)
	}
	a.first = a.p.Tuple()
	e := ct.lookup(antreaZone, a.first)
	h := a.p.Headers()
	switch {
	case e != nil:
	case ct.related(antreaZone, a.p):
		// Only of a connection that is not translated is it known what its errors become.
		if q, _ := quoted(a.p); ct.lookup(antreaZone, q.Reverse()).rewrite.Set != 0 {
			return a.unknown("ConntrackZone", trace.Note("an ICMP error about a translated connection: what becomes of it is not known"),
				factAntreaICMPError)
		}
		a.known, a.related = true, true
		return true
	case h.Proto == packet.TCP && h.TCPFlags&(packet.SYN|packet.RST) == 0:
		return a.unknown("ConntrackState",
			trace.Note("a segment in the middle of a connection that the bridge does not know: whether it is invalid is not known"),
			factAntreaMidway)
	default:
		return true
	}
	a.known, a.reply, a.mark = true, e.reply, e.mark
	if a.mark&ctService != 0 {
		a.rewriteMAC = true
	}
	if e.rewrite.Set != 0 {
		before := *h
		a.p.Apply(&e.rewrite)
		event := trace.Note("ct(nat): connection known, same endpoint")
		if a.reply {
			event = trace.Note("ct(nat): reply of a known connection, translation undone")
		}
		a.step("ConntrackZone", "ip", trace.ActRewrite, event, factAntreaConntrack, &before)
	}
	if a.reply && a.mark&ctReplied == 0 {
		a.answered(e)
	}
	return true
}

// answered marks both directions of a connection as established, after its reply e was
// translated back.
func (a *antreaPass) answered(e *ctEntry) {
	a.mark |= ctReplied
	there := a.p.Tuple().Reverse()
	if forth := a.x.ct.lookup(antreaZone, there); forth != nil {
		a.x.ct.put(a.sim.Journal, ctKey{antreaZone, there}, ctEntry{forth.rewrite, false, forth.rule, a.mark})
	}
	a.x.ct.put(a.sim.Journal, ctKey{antreaZone, a.first}, ctEntry{e.rewrite, true, e.rule, a.mark})
}

// established is the state of a connection whose packets meet no policy.
func (a *antreaPass) established() bool { return a.known && (a.related || a.mark&ctReplied != 0) }

// l3 picks where the packet goes and writes its MAC addresses (antrea.l3-forwarding).
func (a *antreaPass) l3() bool {
	x, h := a.x, a.p.Headers()
	before := *h
	rule := ""
	a.to = toGateway
	a.out = x.port(h.Dst)
	ttl := a.from != fromGateway
	switch {
	case h.Dst == x.gatewayIP():
		rule = "nw_dst=" + h.Dst.String()
		a.p.SetEthDst(x.gateway.MAC)
	case a.reply && a.mark&ctFromGateway != 0:
		rule = "ct_state=+rpl, ct_mark=FromGateway"
		a.p.SetEthDst(x.gateway.MAC)
	case a.out != nil && a.rewriteMAC:
		a.to, rule = toPod, "RewriteMAC, nw_dst="+h.Dst.String()
		a.p.SetEthSrc(x.gateway.MAC)
		a.p.SetEthDst(a.out.link.MAC)
	case x.subnet.Contains(h.Dst):
		a.to, rule, ttl = toPod, "nw_dst="+x.subnet.String(), false
	default:
		rule = a.elsewhere(h.Dst)
	}
	if ttl && h.TTL <= 1 {
		return a.drop("L3DecTTL", "ip", trace.TTLExceeded, trace.Note("hop limit used up"), factAntreaTTL)
	}
	if ttl {
		a.p.DecTTL()
	}
	a.step("L3Forwarding", rule, trace.ActForward, trace.Of(antreaTo{a.target()}), factAntreaL3, &before)
	if a.to == toPod && (a.out == nil || a.p.Headers().EthDst != a.out.link.MAC) {
		return a.drop("L2ForwardingCalc", "", trace.NoNeighbour, trace.Of(noPort{a.p.Headers().EthDst}), factAntreaL2)
	}
	return true
}

// elsewhere handles a packet whose destination is not on this node; it returns the rule.
func (a *antreaPass) elsewhere(dst netip.Addr) string {
	x := a.x
	for _, o := range x.net.nodes {
		switch {
		case o == x:
			continue
		case o.subnet.Contains(dst) && x.tunnels(o):
			a.to, a.peer = toTunnel, o
			a.p.SetEthSrc(x.gateway.MAC)
			a.p.SetEthDst(antreaVirtualMAC)
			return "nw_dst=" + o.subnet.String()
		case x.stack.Windows && x.direct(o) && (o.subnet.Contains(dst) || a.reply && dst == o.address):
			// antrea.windows-uplink-direct
			a.to, a.peer = toUplink, o
			a.p.SetEthSrc(x.nic.MAC)
			a.p.SetEthDst(o.nic.MAC)
			return "nw_dst=" + o.subnet.String()
		case o.subnet.Contains(dst):
			a.p.SetEthDst(x.gateway.MAC)
			return "nw_dst=" + o.subnet.String()
		}
	}
	if a.rewriteMAC && a.from == fromGateway && a.mark&ctService != 0 {
		a.p.SetEthDst(x.gateway.MAC)
	}
	return "priority=0"
}

// target names where the packet goes.
func (a *antreaPass) target() string {
	switch a.to {
	case toGateway:
		return a.x.gateway.Name
	case toTunnel:
		return "the tunnel to " + a.peer.name
	case toUplink:
		return "the uplink, to " + a.peer.name
	}
	if a.out == nil {
		return "the switch"
	}
	return a.out.name
}

// sourceNAT follows antrea.service-snat.
func (a *antreaPass) sourceNAT() bool {
	x, h := a.x, a.p.Headers()
	zone, now := antreaSNATZone, a.p.Tuple()
	before := *h
	if a.known {
		if e := x.ct.lookup(zone, now); e != nil && !e.reply && a.mark&ctSNAT != 0 {
			a.p.Apply(&e.rewrite)
			a.step("SNAT", e.rule, trace.ActRewrite, trace.Note("ct(nat): connection known"), factAntreaServiceSNAT, &before)
		}
		return true
	}
	if a.mark&ctService == 0 {
		return true
	}
	rule, src := "", x.gatewayIP()
	switch {
	case a.from == fromGateway && a.to == toGateway:
		a.mark |= ctHairpin | ctSNAT
		rule, src = "FromGateway, ct_mark=Hairpin", antreaVirtualIP
	case a.from == fromPod && h.Src == h.Dst:
		a.mark |= ctHairpin | ctSNAT
		rule = "FromPod, ct_mark=Hairpin"
	case a.from == fromGateway && a.external && (a.to == toTunnel || a.to == toUplink):
		a.mark |= ctSNAT
		rule = "FromGateway, ToExternalAddress"
	default:
		return true
	}
	x.ct.commitMarked(a.sim.Journal, antreaZone, "", a.first, a.p.Tuple(), a.mark)
	t := now
	t.Src = src
	t, ok := x.ct.free(zone, t, x.stack.Windows)
	if !ok {
		return a.drop("SNAT", rule, trace.NoFreePort, trace.Note("no free port or identifier for the translation"), factAntreaServiceSNAT)
	}
	rw := rewriteFromTo(now, t)
	a.p.Apply(&rw)
	x.ct.commitMarked(a.sim.Journal, zone, rule, now, t, a.mark)
	a.step("SNAT", rule, trace.ActRewrite, trace.Of(sourceTranslated{t.Src}), factAntreaServiceSNAT, &before)
	return true
}

// commit keeps a connection that no Service has (antrea.conntrack).
func (a *antreaPass) commit() {
	if a.known || a.mark&ctService != 0 {
		return
	}
	if a.from == fromGateway {
		a.mark |= ctFromGateway
	}
	a.x.ct.commitMarked(a.sim.Journal, antreaZone, "", a.first, a.first, a.mark)
}

// output hands the packet on.
func (a *antreaPass) output() {
	x := a.x
	switch a.to {
	case toTunnel:
		a.tunnel()
		return
	case toUplink:
		a.step("Output", "", trace.ActForward, trace.Of(output{"the uplink"}), factAntreaUplink, nil)
		x.nic.Segment.Send(a.sim, x.nic, a.p)
		return
	case toGateway:
		if a.p.Headers().EthDst != x.gateway.MAC {
			a.drop("L2ForwardingCalc", "", trace.NoNeighbour, trace.Of(noPort{a.p.Headers().EthDst}), factAntreaL2)
			return
		}
		if a.from == fromGateway && a.mark&ctHairpin == 0 {
			a.drop("Output", "in_port="+x.gateway.Name, trace.NoNeighbour,
				trace.Note("the destination is behind the port that the packet came from"), factAntreaL2)
			return
		}
		a.deliver(x.gateway.Name, func(sim *wire.Simulation, p *packet.Packet) { x.stack.Input(sim, x.gateway, p) })
		return
	}
	if a.from == fromPod && a.out == a.in && a.mark&ctHairpin == 0 {
		a.drop("Output", "in_port="+a.out.name, trace.HairpinToSelf, trace.Note("the destination is behind the port that the packet came from"),
			factAntreaL2)
		return
	}
	out := a.out
	a.deliver(out.name, func(sim *wire.Simulation, p *packet.Packet) { out.Stack().Input(sim, out.link, p) })
}

func (a *antreaPass) deliver(port string, d func(*wire.Simulation, *packet.Packet)) {
	if a.sim.Rec.On() {
		a.sim.Rec.Add(trace.Step{Place: a.x.name, Object: a.x.net.o.Bridge, Layer: "Output", Rule: "output:" + port, Action: trace.ActForward,
			Event: trace.Of(output{port}), Packet: a.sim.Rec.Describe(a.p), Frame: append([]byte(nil), a.p.Bytes()...)}.Cite(factAntreaL2))
	}
	sim, p := a.sim, a.p
	sim.Taps.SeePort(a.x.name, "", false, p)
	sim.Queue(func() { d(sim, p) })
}
