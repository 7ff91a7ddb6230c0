package ovs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// ACL is one rule of a NetworkPolicy as OVN sees it.
type ACL struct {
	Name string
	// Pods are the addresses that the policy selects. Ingress rules are about
	// packets to them, egress rules (Egress) about packets from them.
	Pods   []netip.Prefix
	Egress bool
	// Peers are the addresses on the other side; empty is everybody.
	Peers []netip.Prefix
	// Allow passes the packet, else it is dropped.
	Allow bool
	// Priority decides; the highest that matches wins. 0 is OVN
	// Kubernetes' own: 1001 for allow and 1000 for drop.
	Priority int
	// Proto 0 is every protocol; Ports empty is every port.
	Proto  packet.Proto
	Ports  []uint16
	Origin *trace.Origin
}

// SetPolicies replaces the ACLs. What no ACL matches passes.
func (n *Network) SetPolicies(acls []ACL) {
	n.acls = slices.Clone(acls)
	for i := range n.acls {
		a := &n.acls[i]
		if a.Priority == 0 {
			a.Priority = 1000
			if a.Allow {
				a.Priority = 1001
			}
		}
	}
	slices.SortStableFunc(n.acls, func(a, b ACL) int { return b.Priority - a.Priority })
}

func contains(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}

// matches reports whether the rule is about the packet between the ports.
func (a *ACL) matches(h *packet.Headers, in, out *port) bool {
	own, peer := out, h.Src
	if a.Egress {
		own, peer = in, h.Dst
	}
	return own.kind == vif && contains(a.Pods, own.addr.Addr()) &&
		(len(a.Peers) == 0 || contains(a.Peers, peer)) &&
		(a.Proto == 0 || a.Proto == h.Proto) &&
		(len(a.Ports) == 0 || slices.Contains(a.Ports, h.DstPort))
}

func (a *ACL) match() string {
	port, peer := "outport", "ip4.src"
	if a.Egress {
		port, peer = "inport", "ip4.dst"
	}
	m := []string{fmt.Sprintf("%s == @%s", port, a.Name)}
	if len(a.Peers) != 0 {
		var ps []string
		for _, p := range a.Peers {
			ps = append(ps, p.String())
		}
		m = append(m, fmt.Sprintf("%s == {%s}", peer, strings.Join(ps, ", ")))
	}
	if a.Proto != 0 && len(a.Ports) == 0 {
		m = append(m, strings.ToLower(a.Proto.String()))
	}
	if len(a.Ports) != 0 {
		var ps []string
		for _, p := range a.Ports {
			ps = append(ps, fmt.Sprint(p))
		}
		proto := "tcp"
		if a.Proto != 0 {
			proto = protoName(a.Proto)
		}
		m = append(m, fmt.Sprintf("%s.dst == {%s}", proto, strings.Join(ps, ", ")))
	}
	return strings.Join(m, " && ")
}

// evaluate applies the policies to a packet that leaves a switch, and reports
// whether it passes. Ingress and egress rules are both to-lport ACLs
// (ovn-kubernetes policy.go), so both see the packet after load balancing.
func (pl *pipeline) evaluate() bool {
	acls := pl.x.net.acls
	if len(acls) == 0 {
		return true
	}
	h := pl.p.Headers()
	t := pl.p.Tuple()
	ok := pl.decide(acls, &pl.x.ct, h, t, true) && pl.decide(acls, &pl.x.ct, h, t, false)
	if ok {
		for _, p := range []*port{pl.in, pl.out} {
			if p.kind == vif {
				pl.x.ct.allow(pl.sim.Journal, p.name, t)
				if pl.first.IsValid() {
					pl.x.ct.allow(pl.sim.Journal, p.name, pl.first)
				}
			}
		}
	}
	return ok
}

// decide looks at the rules of one direction.
func (pl *pipeline) decide(acls []ACL, ct *conntrack, h *packet.Headers, t packet.Tuple, egress bool) bool {
	own := pl.out
	if egress {
		own = pl.in
	}
	if own.kind != vif || !slices.ContainsFunc(acls, func(a ACL) bool { return a.Egress == egress && contains(a.Pods, own.addr.Addr()) }) {
		return true
	}
	if ct.established(own.name, t) {
		pl.allowed("ct.est && !ct.new", trace.Note("packet of a connection that was allowed"), factACL, nil)
		return true
	}
	if !egress && h.Src == nth(pl.x.subnet, 2) {
		pl.allowed("ip4.src == "+h.Src.String(), trace.Note("from the node's management port"), factNodeACL, nil)
		return true
	}
	for i := range acls {
		a := &acls[i]
		if a.Egress != egress || !a.matches(h, pl.in, pl.out) {
			continue
		}
		e := trace.Of(aclMatched{a.Name, a.Allow, a.Priority})
		if a.Allow {
			pl.allowed(a.match(), e, factACL, a.Origin)
			return true
		}
		pl.add(trace.Step{Layer: "ls_out_acl_eval", Rule: a.match(), RuleType: "acl", Action: trace.ActDrop, Reason: trace.ACLBlock, Event: e,
			From: a.Origin}, factACL)
		return false
	}
	return true
}

func (pl *pipeline) allowed(rule string, e trace.Event, fact *evidence.Fact, from *trace.Origin) {
	pl.add(trace.Step{Layer: "ls_out_acl_eval", Rule: rule, Action: trace.ActAllow, Event: e, From: from}, fact)
}
