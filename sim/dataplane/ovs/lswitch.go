package ovs

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// switchIngress is the ingress pipeline of a logical switch.
func (f *flight) switchIngress() {
	if !f.portSecurity() {
		return
	}
	f.first = f.p.Tuple()
	// Router and localnet ports skip connection tracking (ls_in_pre_lb,
	// priority 110): only pods and the node itself are clients here.
	if f.in.kind == vif || f.in.kind == management {
		f.switchLB()
	}
	dst := f.p.Headers().EthDst
	for _, o := range f.dp.ports {
		if o.kind != localnet && o.mac == dst {
			f.lookedUp(o, "eth.dst == "+etherMatch(dst))
			return
		}
	}
	for _, o := range f.dp.ports {
		if o.kind == localnet && o != f.in {
			f.lookedUp(o, "outport == \"none\"")
			return
		}
	}
	f.drop("ls_in_l2_lkup", "1", trace.NoNeighbour, "no port of the switch has the MAC address "+dst.String(), factLookup)
}

func (f *flight) lookedUp(o *port, match string) {
	if o == f.in {
		f.drop("ls_in_l2_lkup", match, trace.NoNeighbour, "the destination is behind the port that the packet came from", factLookup)
		return
	}
	f.step("ls_in_l2_lkup", match, trace.ActForward, "to port "+o.name, factLookup, nil)
	f.output(o)
}

// portSecurity checks the source of what a pod sends.
func (f *flight) portSecurity() bool {
	if f.in.kind != vif {
		return true
	}
	h := f.p.Headers()
	if h.EthSrc != f.in.mac {
		f.drop("ls_in_port_sec_l2", fmt.Sprintf("inport == %s && eth.src == {%s}", quote(f.in.name), etherMatch(f.in.mac)), trace.SpoofedSource, "source MAC "+h.EthSrc.String()+" is not the port's", factPortSec)
		return false
	}
	if h.Src != f.in.addr.Addr() {
		f.drop("ls_in_port_sec_ip", fmt.Sprintf("inport == %s && ip4.src == {%s}", quote(f.in.name), f.in.addr.Addr()), trace.SpoofedSource, "source "+h.Src.String()+" is not the port's", factPortSec)
		return false
	}
	f.step("ls_in_port_sec_l2", fmt.Sprintf("inport == %s && eth.src == {%s}", quote(f.in.name), etherMatch(f.in.mac)), trace.ActAllow, "source is the port's own", factPortSec, nil)
	return true
}

// switchLB is the client side of the cluster's load balancers.
func (f *flight) switchLB() {
	zone := f.in.name
	if e := f.x.ct.lookup(zone, f.p.Tuple()); e != nil {
		before := *f.p.Headers()
		f.p.Apply(&e.rewrite)
		f.step("ls_in_lb", "ct.est && ct_label.natted == 1", trace.ActRewrite, "ct_lb: connection known, same backend", factLB, f.changes(&before))
		return
	}
	if f.balance("ls_in_lb", zone, f.x.net.services) {
		return
	}
	h := f.p.Headers()
	if f.sim.Rec.On() && f.x.net.o.ServiceCIDR.Contains(h.Dst) {
		st := trace.Step{Layer: "ls_in_lb", Action: trace.ActNoMatch, Event: trace.Note(fmt.Sprintf("no load balancer for %s %s: the packet keeps the virtual address", h.Proto, h.Dst))}
		for i := range f.x.net.services {
			if v := &f.x.net.services[i]; v.addr.Addr() == h.Dst {
				m := trace.Miss{Rule: v.match(), From: v.origin, Field: "dst port", Want: fmt.Sprint(v.addr.Port()), Got: fmt.Sprint(h.DstPort)}
				if h.Proto != v.proto {
					m.Field, m.Want, m.Got = "protocol", v.proto.String(), h.Proto.String()
				}
				st.Nearest = append(st.Nearest, m)
			}
		}
		f.add(st, factLB)
	}
}

// switchEgress is the egress pipeline of a logical switch, at the chassis that
// has the output port.
func (f *flight) switchEgress() {
	if f.out.kind == vif || f.out.kind == management {
		if e := f.x.ct.lookup(f.out.name, f.p.Tuple()); e != nil && e.reply {
			before := *f.p.Headers()
			f.p.Apply(&e.rewrite)
			f.step("ls_out_pre_stateful", "reg0[2] == 1", trace.ActRewrite, "ct_lb: reply of a known connection, translation undone", factLB, f.changes(&before))
		}
	}
	if !f.evaluate() {
		return
	}
	switch f.out.kind {
	case vif, management:
		f.deliver()
	case patch:
		f.enter(f.out.peer)
	case localnet:
		f.x.toPhysical(f)
	}
}

// deliver hands the packet to a pod or to the node's own stack.
func (f *flight) deliver() {
	h := f.p.Headers()
	if f.out.kind == vif && h.Src == h.Dst {
		f.drop("ls_out_port_sec_l2", "outport == "+quote(f.out.name), trace.HairpinToSelf, "source and destination are both the pod's own address", factHairpin)
		return
	}
	if f.out.kind == management && !f.x.mgmt.Owns(h.Dst) && f.x.Stack.Owns(h.Dst) && f.x.Stack.Windows {
		switch f.x.net.param(ParamHostReceive) {
		case "strong":
			f.drop("", "", trace.NotMyAddress, fmt.Sprintf("strong host model: %s is not the address of %s", h.Dst, f.x.mgmt.Name), factStrongHost)
			return
		case "weak":
		default:
			f.hole("", fmt.Sprintf("whether Windows takes a packet for %s that comes in by %s is not known; parameter %s: weak or strong decides", h.Dst, f.x.mgmt.Name, ParamHostReceive), factStrongHost)
			return
		}
	}
	if f.sim.Rec.On() {
		f.add(trace.Step{Layer: "ls_out_port_sec_l2", Rule: "outport == " + quote(f.out.name), Action: trace.ActForward,
			Event: trace.Note("output to " + f.out.name), Frame: append([]byte(nil), f.p.Bytes()...)}, factPortSec)
	}
	sim, p, d := f.sim, f.p, f.out.deliver
	sim.Taps.SeePort(f.x.Name, f.out.label, false, p)
	sim.Queue(func() { d(sim, p) })
}

// icmpEcho reports whether a packet is an IPv4 echo request.
func icmpEcho(h *packet.Headers) bool { return h.Proto == packet.ICMP && h.ICMPType == 8 }
