package ovs

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// routerIngress is the ingress pipeline of a logical router.
func (f *flight) routerIngress() {
	h := f.p.Headers()
	if f.dp.owns(h.Dst) && icmpEcho(h) {
		f.answerEcho()
		h = f.p.Headers()
	} else if h.TTL <= 1 {
		f.drop("lr_in_ip_input", "ip.ttl == {0, 1}", trace.TTLExceeded, "hop limit used up", factTTL)
		return
	}
	if f.dp.node != nil {
		if f.x.ct.related(f.dp.name+" snat", f.p) {
			f.hole("lr_in_unsnat", "an ICMP error about a translated connection: what becomes of it is not known", factICMPError)
			return
		}
		f.unSNAT()
		f.dnat()
		h = f.p.Headers()
	}
	if f.dp.owns(h.Dst) {
		f.drop("lr_in_ip_input", "ip4.dst == "+h.Dst.String(), trace.NotMyAddress, fmt.Sprintf("%s is the router's own address, and no translation is known for the packet", h.Dst), factInput)
		return
	}
	r, ok := f.dp.lookup(h.Src, h.Dst)
	if !ok {
		text := "no route to " + h.Dst.String()
		fact := factRouting
		if f.x.net.firstGateway() == nil && !f.x.net.o.ClusterCIDR.Contains(h.Dst) {
			text += ": no node has a gateway router"
			fact = factGateways
		}
		f.drop("lr_in_ip_routing", "1", trace.NoRoute, text, fact)
		return
	}
	f.route(r)
}

func (f *flight) route(r route) {
	h := f.p.Headers()
	via := r.via
	if !via.IsValid() {
		via = h.Dst
	}
	before := *h
	f.p.DecTTL()
	f.step("lr_in_ip_routing", r.match(), trace.ActForward, fmt.Sprintf("next hop %s, out of %s", via, r.out.name), f.routeFact(r), f.changes(&before))
	sw := r.out.peer.dp
	mac, ok := sw.neighbour(via)
	if !ok && f.dp.node != nil && r.out.peer.dp == f.x.localnet.dp {
		mac, ok = f.x.nic.Segment.Resolve(f.x.nic, via)
	}
	match := fmt.Sprintf("outport == %s && reg0 == %s", quote(r.out.name), via)
	if !ok {
		f.drop("lr_in_arp_resolve", match, trace.NoNeighbour, fmt.Sprintf("nobody answers for %s", via), factResolve)
		return
	}
	before = *f.p.Headers()
	f.p.SetEthSrc(r.out.mac)
	f.p.SetEthDst(mac)
	f.step("lr_in_arp_resolve", match, trace.ActRewrite, "next hop's MAC address", factResolve, f.changes(&before))
	f.output(r.out)
}

// routeFact says where a route of this packet comes from.
func (f *flight) routeFact(r route) *evidence.Fact {
	switch {
	case f.dp != f.x.net.cluster || !r.via.IsValid():
		return factRouting
	case r.via == r.out.addr.Addr() || joinPrefix.Contains(r.via):
		return factGatewayRoutes
	}
	return factHostRoute
}

// answerEcho turns an echo request to the router into its reply.
func (f *flight) answerEcho() {
	h := f.p.Headers()
	f.sim.Rec.See(trace.Seen{Where: f.dp.name, Src: h.Src.String(), Dst: h.Dst.String()})
	f.sim.Rec.SetLeg(trace.Reply)
	q := packet.Build(packet.Spec{EthSrc: h.EthDst, EthDst: h.EthSrc, Src: h.Dst, Dst: h.Src, Proto: packet.ICMP, TTL: 255,
		ICMPType: 0, ICMPID: h.ICMPID, ICMPSeq: h.ICMPSeq, Payload: append([]byte(nil), f.p.Payload()...)})
	match := fmt.Sprintf("ip4.dst == %s && icmp4.type == 8", h.Dst)
	f.p = q
	f.step("lr_in_ip_input", match, trace.ActAnswer, "the router answers the echo request", factInput, nil)
}

// unSNAT undoes the source translation for a reply.
func (f *flight) unSNAT() {
	e := f.x.ct.lookup(f.dp.name+" snat", f.p.Tuple())
	if e == nil || !e.reply {
		return
	}
	before := *f.p.Headers()
	f.p.Apply(&e.rewrite)
	f.step("lr_in_unsnat", "ip && ip4.dst == "+before.Dst.String(), trace.ActRewrite, "ct_snat: reply of a known connection, source translation undone", factSNAT, f.changes(&before))
}

// dnat is the server side of the load balancers, and undoes it for replies.
func (f *flight) dnat() {
	zone := f.dp.name + " dnat"
	e := f.x.ct.lookup(zone, f.p.Tuple())
	if e == nil {
		f.forceSNAT = f.balance("lr_in_dnat", zone, f.x.net.onGateway(f.x))
		return
	}
	before := *f.p.Headers()
	f.p.Apply(&e.rewrite)
	text := "ct_lb: connection known, same backend"
	if e.reply {
		text = "ct_dnat: reply of a known connection, translation undone"
	}
	f.forceSNAT = !e.reply
	f.step("lr_in_dnat", "ip", trace.ActRewrite, text, factLB, f.changes(&before))
}

// routerEgress is the egress pipeline of a logical router.
func (f *flight) routerEgress() {
	if f.dp.node != nil && !f.snat() {
		return
	}
	f.enter(f.out.peer)
}

// snat translates the source on a gateway router.
func (f *flight) snat() bool {
	zone := f.dp.name + " snat"
	first := f.p.Tuple()
	forced := f.forceSNAT
	f.forceSNAT = false
	before := *f.p.Headers()
	if e := f.x.ct.lookup(zone, first); e != nil {
		if !e.reply {
			f.p.Apply(&e.rewrite)
			f.step("lr_out_snat", e.rule, trace.ActRewrite, "ct_snat: connection known", factSNAT, f.changes(&before))
		}
		return true
	}
	now, match, fact := first, "", factSNAT
	switch {
	case forced:
		now.Src, match, fact = f.x.joinIP, "flags.force_snat_for_lb == 1 && ip", factForceSNAT
	case f.x.net.o.ClusterCIDR.Contains(first.Src):
		now.Src, match = f.x.address, "ip && ip4.src == "+f.x.net.o.ClusterCIDR.String()
	default:
		return true
	}
	now, ok := f.x.ct.free(zone, now, f.x.Stack.Windows)
	if !ok {
		f.drop("lr_out_snat", match, trace.NoFreePort, "no free port or identifier for the translation", factPorts)
		return false
	}
	if first.Proto == packet.ICMP && f.x.Stack.Windows {
		fact = factICMPNAT
	} else if now.SrcPort != first.SrcPort {
		fact = factPorts
	}
	rw := between(first, now)
	f.p.Apply(&rw)
	f.x.ct.commit(zone, match, first, now)
	f.step("lr_out_snat", match, trace.ActRewrite, "ct_snat: source translated to "+now.Src.String(), fact, f.changes(&before))
	return true
}
