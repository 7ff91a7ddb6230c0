package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factPolicy = evidence.New("lab.network-policy-enforcement", evidence.Unknown,
	"What enforces NetworkPolicies in this cluster, and how, is not modelled; a connection that a policy admits passes in any case.",
	"Kubernetes documentation, Network Policies, prerequisites")

// policies lets the agent that enforces NetworkPolicies do its work: on Windows nodes an agent
// with a model programs HNS. Elsewhere every pod that policies select gets a gate before its
// connections: those that the policies admit pass, for all others it matters who enforces
// them.
func (b *builder) policies(context.Context) error {
	defer b.ownPolicies()
	defer b.adminPolicies()
	if b.antrea != nil {
		b.antreaPolicies()
		return nil
	}
	if b.agent != nil {
		return b.enforced()
	}
	fact := factPolicy
	if b.Plan.Network.Design == plan.CNI {
		if f := cni.EnforcesNoPolicy(b.Plan.Network.CNI.Plugin); f != nil {
			fact = f
		}
	}
	for _, p := range b.admit {
		why := "who enforces it is not modelled: a connection that it does not admit is unknown"
		switch {
		case fact != factPolicy && b.Options.Objects == Outside:
			why = "nothing in this cluster enforces it: " + b.Plan.Network.Plugin + " does not; " + b.selected(p)
		case fact != factPolicy:
			why = "nothing in this lab enforces it: " + b.Plan.Network.Plugin +
				" does not; where another controller does (Calico, for example), add the ACLs that it creates with hns: addPolicy"
		case b.Options.Objects == Outside:
			why += ", and its packets do not pass; " + b.selected(p)
		}
		b.notice("NetworkPolicy "+p.Key(), why, p.Origin)
	}
	match := b.matching()
	for _, p := range b.pods {
		if b.Machine(Ref{PodKind, p.Key()}) == nil || p.HostNetwork {
			continue // its network comes or goes, or is the node's
		}
		b.ungated(p)
		// What a dumped node enforces is among the ACLs of its dump.
		if b.node(p.Node).Plan.Dump == nil {
			b.gates(match, p, enforcement{fact: fact, open: fact != factPolicy})
		}
	}
	return nil
}

// ungated takes the gates of a pod away.
func (b *builder) ungated(p *pod) {
	b.Machine(Ref{PodKind, p.Key()}).Stack().RemoveGates(func(g host.Gate) bool { _, ours := g.Event.Detail.(notAdmitted); return ours })
}

// enforced lets the cluster's agent enforce the policies on every node.
func (b *builder) enforced() error {
	var errs []error
	fact, nodeOut := b.agent.Linux()
	match := b.matching()
	for _, p := range b.pods {
		n := b.node(p.Node)
		m := b.Machine(Ref{PodKind, p.Key()})
		if m == nil || p.HostNetwork || n.Plan.Dump != nil {
			continue
		}
		if n.HNS == nil {
			b.ungated(p)
			b.gates(match, p, enforcement{fact: fact, closed: true, nodeIn: true, nodeOut: nodeOut})
			continue
		}
		skipped, err := b.agent.Apply(n.HNS, n.Node, m.Endpoint, match.meaning(p))
		errs = append(errs, err)
		for _, s := range skipped {
			b.notice("NetworkPolicy "+s.Policy, s.Why, s.Origin)
		}
	}
	return errors.Join(errs...)
}

// PoliciesInACLs reports whether NetworkPolicies act on a pod by the ACLs of its endpoint in HNS
// and by nothing else, and other pods stand in these by their addresses.
func (c *Cluster) PoliciesInACLs(pod Ref) bool {
	m := c.Machine(pod)
	if c.agent == nil || !c.agent.InACLs() || m == nil || m.Endpoint == "" || m.Node == nil {
		return false
	}
	return m.Node.HNS != nil && m.Node.Plan.Dump == nil && m.Stack() != m.Node.Stack() && !m.Stack().HasGates()
}

// meaning is what the policies mean for a pod.
func (m *matching) meaning(p *pod) cni.PodPolicies {
	all := cni.PodPolicies{Namespace: p.Namespace, Name: p.Name}
	for _, np := range byName(m.policiesFor(p)) {
		if np.RestrictsIn {
			all.RestrictedIn = true
			all.In = append(all.In, m.resolved(np, false, np.In))
		}
		if np.RestrictsOut {
			all.RestrictedOut = true
			all.Out = append(all.Out, m.resolved(np, true, np.Out))
		}
	}
	return all
}

// resolved is one direction of a policy with its selectors as addresses.
func (m *matching) resolved(np *labfile.Policy, outbound bool, rules []labfile.PolicyRule) cni.PodPolicy {
	out := cni.PodPolicy{Namespace: np.Namespace, Name: np.Name, Origin: np.Origin, Negative: np.Negative()}
	for i, r := range rules {
		var nr cni.PolicyRule
		for _, port := range r.Ports {
			nr.Ports = append(nr.Ports, cni.PolicyPort(port))
		}
		for j, peer := range r.Peers {
			to := cni.PolicyPeer{Block: peer.Block, Except: peer.Except, NegativeNamespaces: labfile.Negative(peer.Namespaces)}
			if !peer.Block.IsValid() {
				for _, q := range m.picked(peerKey{np, outbound, i, j}, &r.Peers[j]) {
					if !q.HostNetwork && q.given.IsValid() {
						to.Pods = append(to.Pods, q.given)
					}
				}
			}
			slices.SortFunc(to.Pods, netip.Addr.Compare)
			nr.Peers = append(nr.Peers, to)
		}
		out.Rules = append(out.Rules, nr)
	}
	return out
}

// enforcement is what the gates of a pod do to connections that no policy admits: they
// pass with a remark (open), are dropped (closed), or are unknown.
type enforcement struct {
	fact         *evidence.Fact
	open, closed bool
	// nodeIn: what comes from the pod's own node passes; nodeOut: what goes there meets the
	// policies as well.
	nodeIn, nodeOut bool
}

// named bounds the pods that a notice names.
const named = 5

// selected says which pods a policy selects.
func (b *builder) selected(np *labfile.Policy) string {
	var all []string
	for _, p := range b.pods {
		if !p.HostNetwork && np.Selects(p.Namespace, p.Labels) {
			all = append(all, p.object())
		}
	}
	slices.Sort(all) // pods of a runtime are in the order in which they came
	switch n := len(all); {
	case n == 0:
		return "it selects no pod"
	case n > named:
		return fmt.Sprintf("it selects %s and %d more", strings.Join(all[:named], ", "), n-named)
	}
	return "it selects " + strings.Join(all, ", ")
}

// gates adds the gates of one pod.
func (b *builder) gates(match *matching, p *pod, how enforcement) {
	var in, out []*labfile.Policy
	for _, np := range match.policiesFor(p) {
		if np.RestrictsIn {
			in = append(in, np)
		}
		if np.RestrictsOut {
			out = append(out, np)
		}
	}
	m := b.Machine(Ref{PodKind, p.Key()})
	add := func(list []*labfile.Policy, outbound bool, admitted []admission) {
		if len(list) == 0 {
			return
		}
		n := m.Node
		passes := func(h *packet.Headers) bool {
			peer := h.Src
			own := func() bool { return peer == n.Address || peer == n.Address6 || n.machine.Stack().Owns(peer) }
			if outbound {
				// "Traffic to and from the node where a Pod is running is always
				// allowed" (Kubernetes documentation, Network Policies). What comes
				// with the node's address may have been translated to it on the way.
				if peer = h.Dst; !how.nodeOut && own() {
					return true
				}
			} else if how.nodeIn && own() {
				return true
			}
			return slices.ContainsFunc(admitted, func(a admission) bool { return a.holds(peer, h) })
		}
		g := host.Gate{Out: outbound, Passes: passes, Origin: list[0].Origin, Fact: how.fact, Open: how.open, Closed: how.closed}
		if how.closed && outbound {
			// The node translates addresses of Services before its rules look.
			toService := func(h *packet.Headers) bool {
				return slices.ContainsFunc(b.Plan.ServiceCIDRs, func(p netip.Prefix) bool { return p.Contains(h.Dst) })
			}
			behind := g
			behind.Closed, behind.Fact, behind.Event = false, factPolicy, trace.Of(notAdmitted{policyNames(list), outbound, ""})
			behind.Passes = func(h *packet.Headers) bool { return !toService(h) || passes(h) }
			m.Stack().AddGate(behind)
			g.Passes = func(h *packet.Headers) bool { return toService(h) || passes(h) }
		}
		g.Event = trace.Of(notAdmitted{policyNames(list), outbound, how.word()})
		m.Stack().AddGate(g)
	}
	add(in, false, match.admissions(p, in, false))
	add(out, true, match.admissions(p, out, true))
}

func policyNames(list []*labfile.Policy) string {
	var names []string
	for _, np := range list {
		names = append(names, np.Key())
	}
	return strings.Join(names, ", ")
}

// What happens to a connection that no policy admits.
const (
	isIgnored = "ignored"
	isDropped = "dropped"
)

func (e enforcement) word() string {
	switch {
	case e.open:
		return isIgnored
	case e.closed:
		return isDropped
	}
	return ""
}

// notAdmitted is a connection that no policy of a pod admits; end is what happens to it, "" where
// that is not known.
type notAdmitted struct {
	policies string
	out      bool
	end      string
}

func (e notAdmitted) Text() string {
	way := "from this peer"
	if e.out {
		way = "to this peer"
	}
	s := fmt.Sprintf("NetworkPolicy %s admits no such connection %s", e.policies, way)
	switch e.end {
	case isIgnored:
		return s + ", and nothing enforces it"
	case isDropped:
		return s + ", and the node drops it"
	}
	return s + ", and who enforces it is not modelled"
}
