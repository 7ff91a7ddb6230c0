package ovs

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// switchIngress is the ingress pipeline of a logical switch.
func (pl *pipeline) switchIngress() {
	if !pl.portSecurity() {
		return
	}
	pl.first = pl.p.Tuple()
	// Router and localnet ports skip connection tracking (ls_in_pre_lb,
	// priority 110): only pods and the node itself are clients here.
	if pl.in.kind == vif || pl.in.kind == management {
		pl.switchLB()
	}
	dst := pl.p.Headers().EthDst
	for _, o := range pl.dp.ports {
		if o.kind != localnet && o.mac == dst {
			pl.lookedUp(o, "eth.dst == "+etherMatch(dst))
			return
		}
	}
	for _, o := range pl.dp.ports {
		if o.kind == localnet && o != pl.in {
			pl.lookedUp(o, "outport == \"none\"")
			return
		}
	}
	pl.drop("ls_in_l2_lkup", "1", trace.NoNeighbour, trace.Of(noPort{dst}), factLookup)
}

func (pl *pipeline) lookedUp(o *port, match string) {
	if o == pl.in {
		pl.drop("ls_in_l2_lkup", match, trace.NoNeighbour, trace.Note("the destination is behind the port that the packet came from"), factLookup)
		return
	}
	pl.add(trace.Step{Layer: "ls_in_l2_lkup", Rule: match, Action: trace.ActForward, Event: trace.Of(toPort{o.name})}, factLookup)
	pl.output(o)
}

// portSecurity checks the source of what a pod sends.
func (pl *pipeline) portSecurity() bool {
	if pl.in.kind != vif {
		return true
	}
	h := pl.p.Headers()
	l2 := fmt.Sprintf("inport == %s && eth.src == {%s}", quote(pl.in.name), etherMatch(pl.in.mac))
	if h.EthSrc != pl.in.mac {
		pl.drop("ls_in_port_sec_l2", l2, trace.SpoofedSource, trace.Of(foreignMAC{h.EthSrc}), factPortSec)
		return false
	}
	if h.Src != pl.in.addr.Addr() {
		pl.drop("ls_in_port_sec_ip", fmt.Sprintf("inport == %s && ip4.src == {%s}", quote(pl.in.name), pl.in.addr.Addr()), trace.SpoofedSource,
			trace.Of(foreignSource{h.Src}), factPortSec)
		return false
	}
	pl.add(trace.Step{Layer: "ls_in_port_sec_l2", Rule: l2, Action: trace.ActAllow, Event: trace.Note("source is the port's own")},
		factPortSec)
	return true
}

// switchLB is the client side of the cluster's load balancers.
func (pl *pipeline) switchLB() {
	zone := pl.in.name
	if e := pl.x.ct.lookup(zone, pl.p.Tuple()); e != nil {
		before := *pl.p.Headers()
		pl.p.Apply(&e.rewrite)
		pl.rewritten("ls_in_lb", "ct.est && ct_label.natted == 1", trace.Note("ct_lb: connection known, same backend"), factLB, &before)
		return
	}
	if pl.balance("ls_in_lb", zone, pl.x.net.services) {
		return
	}
	if h := pl.p.Headers(); pl.sim.Rec.On() && pl.x.net.o.ServiceCIDR.Contains(h.Dst) {
		pl.add(trace.Step{Layer: "ls_in_lb", Action: trace.ActNoMatch, Event: trace.Of(noLoadBalancer{h.Proto, h.Dst}),
			Nearest: pl.x.net.nearestServices(h)}, factLB)
	}
}

// nearestServices lists the load balancers that miss a packet to their address
// by its protocol or port only.
func (n *Network) nearestServices(h *packet.Headers) []trace.Miss {
	var misses []trace.Miss
	for i := range n.services {
		v := &n.services[i]
		if v.addr.Addr() != h.Dst {
			continue
		}
		m := trace.Miss{Rule: v.match(), From: v.origin, Field: "dst port", Want: fmt.Sprint(v.addr.Port()), Got: fmt.Sprint(h.DstPort)}
		if h.Proto != v.proto {
			m.Field, m.Want, m.Got = "protocol", v.proto.String(), h.Proto.String()
		}
		misses = append(misses, m)
	}
	return misses
}

// switchEgress is the egress pipeline of a logical switch, at the chassis that
// has the output port.
func (pl *pipeline) switchEgress() {
	if pl.out.kind == vif || pl.out.kind == management {
		if e := pl.x.ct.lookup(pl.out.name, pl.p.Tuple()); e != nil && e.reply {
			before := *pl.p.Headers()
			pl.p.Apply(&e.rewrite)
			pl.rewritten("ls_out_pre_stateful", "reg0[2] == 1", trace.Note("ct_lb: reply of a known connection, translation undone"), factLB,
				&before)
		}
	}
	if !pl.evaluate() {
		return
	}
	switch pl.out.kind {
	case vif, management:
		pl.deliver()
	case patch:
		pl.enter(pl.out.peer)
	case localnet:
		pl.x.toPhysical(pl)
	}
}

// deliver hands the packet to a pod or to the node's own stack.
func (pl *pipeline) deliver() {
	h := pl.p.Headers()
	if pl.out.kind == vif && h.Src == h.Dst {
		pl.drop("ls_out_port_sec_l2", "outport == "+quote(pl.out.name), trace.HairpinToSelf,
			trace.Note("source and destination are both the pod's own address"), factHairpin)
		return
	}
	if pl.out.kind == management && !pl.hostReceives() {
		return
	}
	if pl.sim.Rec.On() {
		pl.add(trace.Step{Layer: "ls_out_port_sec_l2", Rule: "outport == " + quote(pl.out.name), Action: trace.ActForward,
			Event: trace.Of(output{pl.out.name}), Frame: append([]byte(nil), pl.p.Bytes()...)}, factPortSec)
	}
	sim, p, d := pl.sim, pl.p, pl.out.deliver
	sim.Taps.SeePort(pl.x.name, pl.out.label, false, p)
	sim.Queue(func() { d(sim, p) })
}

// hostReceives reports whether the node takes a packet from its management port.
// For an address of another of its links that depends on Windows' host model.
func (pl *pipeline) hostReceives() bool {
	x, dst := pl.x, pl.p.Headers().Dst
	if !x.stack.Windows || x.mgmt.Owns(dst) || !x.stack.Owns(dst) {
		return true
	}
	model := x.net.param(paramHostReceive)
	if model == "" {
		model = pl.sim.Ask(questionHostReceive, x.name)
	}
	if model == "weak" {
		return true
	}
	pl.drop("", "", trace.NotMyAddress, trace.Of(hostReceive{dst, x.mgmt.Name}), factStrongHost)
	return false
}

// icmpEcho reports whether a packet is an IPv4 echo request.
func icmpEcho(h *packet.Headers) bool { return h.Proto == packet.ICMP && h.ICMPType == 8 }
