package ovs

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// AntreaPolicies are the NetworkPolicies of one pod for one direction.
type AntreaPolicies struct {
	// Restricted: a policy selects the pod for the direction. Names are the policies'.
	Restricted bool
	Names      string
	Rules      []AntreaRule
	Origin     *trace.Origin
}

// AntreaRule admits connections: one conjunction of the tables EgressRule and IngressRule.
type AntreaRule struct {
	Policy string
	// Admits reports whether a packet from or to the peer is one.
	Admits func(peer netip.Addr, h *packet.Headers) bool
	Origin *trace.Origin
}

// SetPolicies replaces the policies of a pod.
func (p *AntreaPort) SetPolicies(in, out AntreaPolicies) { p.in, p.out = in, out }

// egressPolicy lets the policies of the sending pod look at a packet, after the
// destination of a Service was translated (antrea.network-policy).
func (a *antreaPass) egressPolicy() bool {
	if a.from != fromPod {
		return true
	}
	return a.policy(&a.in.out, a.p.Headers().Dst, "EgressRule", "EgressDefaultRule")
}

// ingressPolicy lets those of the receiving pod look. What the host itself sends from its
// gateway address meets none (antrea.local-probe), nor does a pod that calls itself.
func (a *antreaPass) ingressPolicy() bool {
	if a.to != toPod || a.mark&ctHairpin != 0 {
		return true
	}
	x, h := a.x, a.p.Headers()
	if a.out.in.Restricted && !a.reply && h.Src == x.gatewayIP() && a.ofHost() {
		a.step("IngressSecurityClassifier", "ct_state=-rpl, nw_src="+h.Src.String(), trace.ActAllow,
			trace.Note("the node itself is always let in"), factAntreaLocalProbe, nil)
		return true
	}
	return a.policy(&a.out.in, h.Src, "IngressRule", "IngressDefaultRule")
}

// ofHost reports whether a packet from the gateway address is one that the flows take for
// the node's own: on Windows by the address, and with proxyAll only outside Services; on
// Linux by a mark of what the node's programs send.
func (a *antreaPass) ofHost() bool {
	if a.x.stack.Windows {
		return !a.x.proxyAll || a.mark&ctService == 0
	}
	return a.from == fromGateway && a.x.stack.HasSocket(a.first)
}

// policy decides by the policies of one direction, and reports whether the packet passes.
func (a *antreaPass) policy(ps *AntreaPolicies, peer netip.Addr, table, end string) bool {
	if !ps.Restricted {
		return true
	}
	if a.established() {
		a.step(table, "ct_state=-new+est", trace.ActAllow, trace.Note("packet of a connection that was allowed"), factAntreaEstablished, nil)
		return true
	}
	for i := range ps.Rules {
		r := &ps.Rules[i]
		if !r.Admits(peer, a.p.Headers()) {
			continue
		}
		a.decided(table, trace.Step{Rule: r.Policy, Action: trace.ActAllow, Event: trace.Of(aclMatched{r.Policy, true, 200}), From: r.Origin})
		return true
	}
	a.sim.RecordLoss(a.x.name, a.x.net.o.Bridge, trace.ACLBlock)
	a.decided(end, trace.Step{Rule: ps.Names, RuleType: "acl", Action: trace.ActDrop, Reason: trace.ACLBlock,
		Event: trace.Of(aclMatched{ps.Names, false, 200}), From: ps.Origin})
	return false
}

func (a *antreaPass) decided(table string, st trace.Step) {
	if !a.sim.Rec.On() {
		return
	}
	st.Place, st.Object, st.Layer, st.Packet = a.x.name, a.x.net.o.Bridge, table, a.sim.Rec.Describe(a.p)
	a.sim.Rec.Add(st.Cite(factAntreaPolicy))
}
