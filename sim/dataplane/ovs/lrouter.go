package ovs

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// routerIngress is the ingress pipeline of a logical router.
func (pl *pipeline) routerIngress() {
	h := pl.p.Headers()
	if pl.dp.owns(h.Dst) && icmpEcho(h) {
		pl.answerEcho()
		h = pl.p.Headers()
	} else if h.TTL <= 1 {
		pl.drop("lr_in_ip_input", "ip.ttl == {0, 1}", trace.TTLExceeded, trace.Note("hop limit used up"), factTTL)
		return
	}
	if pl.dp.node != nil {
		if pl.x.ct.related(pl.dp.name+" snat", pl.p) {
			pl.unknown("lr_in_unsnat", trace.Note("an ICMP error about a translated connection: what becomes of it is not known"), factICMPError)
			return
		}
		pl.unSNAT()
		pl.dnat()
		h = pl.p.Headers()
	}
	if pl.dp.owns(h.Dst) {
		pl.drop("lr_in_ip_input", "ip4.dst == "+h.Dst.String(), trace.NotMyAddress, trace.Of(routersOwn{h.Dst}), factInput)
		return
	}
	r, ok := pl.dp.lookup(h.Src, h.Dst)
	if !ok {
		e, fact := noRoute{dst: h.Dst}, factRouting
		if pl.x.net.firstGateway() == nil && !pl.x.net.o.ClusterCIDR.Contains(h.Dst) {
			e.noGateway, fact = true, factGateways
		}
		pl.drop("lr_in_ip_routing", "1", trace.NoRoute, trace.Of(e), fact)
		return
	}
	pl.route(r)
}

func (pl *pipeline) route(r route) {
	h := pl.p.Headers()
	via := r.via
	if !via.IsValid() {
		via = h.Dst
	}
	before := *h
	pl.p.DecTTL()
	pl.add(trace.Step{Layer: "lr_in_ip_routing", Rule: r.match(), Action: trace.ActForward, Event: trace.Of(nextHop{via, r.out.name}),
		Changes: pl.changes(&before)}, pl.routeFact(r))
	sw := r.out.peer.dp
	mac, ok := sw.neighbour(via)
	if !ok && pl.dp.node != nil && r.out.peer.dp == pl.x.localnet.dp {
		mac, ok = pl.x.nic.Segment.Resolve(pl.x.nic, via)
	}
	match := fmt.Sprintf("outport == %s && reg0 == %s", quote(r.out.name), via)
	if !ok {
		pl.drop("lr_in_arp_resolve", match, trace.NoNeighbour, trace.Of(noNeighbour{via}), factResolve)
		return
	}
	before = *pl.p.Headers()
	pl.p.SetEthSrc(r.out.mac)
	pl.p.SetEthDst(mac)
	pl.rewritten("lr_in_arp_resolve", match, trace.Note("next hop's MAC address"), factResolve, &before)
	pl.output(r.out)
}

// routeFact says where a route of this packet comes from.
func (pl *pipeline) routeFact(r route) *evidence.Fact {
	switch {
	case pl.dp != pl.x.net.cluster || !r.via.IsValid():
		return factRouting
	case r.via == r.out.addr.Addr() || joinPrefix.Contains(r.via):
		return factGatewayRoutes
	}
	return factHostRoute
}

// answerEcho turns an echo request to the router into its reply.
func (pl *pipeline) answerEcho() {
	h := pl.p.Headers()
	pl.sim.Rec.See(trace.Seen{Where: pl.dp.name, Src: h.Src.String(), Dst: h.Dst.String()})
	pl.sim.Rec.SetLeg(trace.Reply)
	q := packet.Build(packet.Spec{EthSrc: h.EthDst, EthDst: h.EthSrc, Src: h.Dst, Dst: h.Src, Proto: packet.ICMP, TTL: 255,
		ICMPType: 0, ICMPID: h.ICMPID, ICMPSeq: h.ICMPSeq, Payload: append([]byte(nil), pl.p.Payload()...)})
	match := fmt.Sprintf("ip4.dst == %s && icmp4.type == 8", h.Dst)
	pl.p = q
	pl.add(trace.Step{Layer: "lr_in_ip_input", Rule: match, Action: trace.ActAnswer, Event: trace.Note("the router answers the echo request")},
		factInput)
}

// unSNAT undoes the source translation for a reply.
func (pl *pipeline) unSNAT() {
	e := pl.x.ct.lookup(pl.dp.name+" snat", pl.p.Tuple())
	if e == nil || !e.reply {
		return
	}
	before := *pl.p.Headers()
	pl.p.Apply(&e.rewrite)
	pl.rewritten("lr_in_unsnat", "ip && ip4.dst == "+before.Dst.String(),
		trace.Note("ct_snat: reply of a known connection, source translation undone"), factSNAT, &before)
}

// dnat is the server side of the load balancers, and undoes it for replies.
func (pl *pipeline) dnat() {
	zone := pl.dp.name + " dnat"
	e := pl.x.ct.lookup(zone, pl.p.Tuple())
	if e == nil {
		pl.forceSNAT = pl.balance("lr_in_dnat", zone, pl.x.net.onGateway(pl.x))
		return
	}
	before := *pl.p.Headers()
	pl.p.Apply(&e.rewrite)
	event := trace.Note("ct_lb: connection known, same backend")
	if e.reply {
		event = trace.Note("ct_dnat: reply of a known connection, translation undone")
	}
	pl.forceSNAT = !e.reply
	pl.rewritten("lr_in_dnat", "ip", event, factLB, &before)
}

// routerEgress is the egress pipeline of a logical router.
func (pl *pipeline) routerEgress() {
	if pl.dp.node != nil && !pl.snat() {
		return
	}
	pl.enter(pl.out.peer)
}

// snat translates the source on a gateway router.
func (pl *pipeline) snat() bool {
	zone := pl.dp.name + " snat"
	first := pl.p.Tuple()
	forced := pl.forceSNAT
	pl.forceSNAT = false
	before := *pl.p.Headers()
	if e := pl.x.ct.lookup(zone, first); e != nil {
		if !e.reply {
			pl.p.Apply(&e.rewrite)
			pl.rewritten("lr_out_snat", e.rule, trace.Note("ct_snat: connection known"), factSNAT, &before)
		}
		return true
	}
	now, match, fact := first, "", factSNAT
	switch {
	case forced:
		now.Src, match, fact = pl.x.joinIP, "flags.force_snat_for_lb == 1 && ip", factForceSNAT
	case pl.x.net.o.ClusterCIDR.Contains(first.Src):
		now.Src, match = pl.x.address, "ip && ip4.src == "+pl.x.net.o.ClusterCIDR.String()
	default:
		return true
	}
	now, ok := pl.x.ct.free(zone, now, pl.x.stack.Windows)
	if !ok {
		pl.drop("lr_out_snat", match, trace.NoFreePort, trace.Note("no free port or identifier for the translation"), factPorts)
		return false
	}
	if first.Proto == packet.ICMP && pl.x.stack.Windows {
		fact = factICMPNAT
	} else if now.SrcPort != first.SrcPort {
		fact = factPorts
	}
	rw := rewriteFromTo(first, now)
	pl.p.Apply(&rw)
	pl.x.ct.commit(pl.sim.Journal, zone, match, first, now)
	pl.rewritten("lr_out_snat", match, trace.Of(sourceTranslated{now.Src}), fact, &before)
	return true
}
