package cluster

import (
	"fmt"
	"maps"
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

var (
	factAdmin = evidence.NewParam(labfile.ParamAdminPolicy, "lab.admin-network-policy", evidence.Unknown,
		"AdminNetworkPolicies, BaselineAdminNetworkPolicies and ClusterNetworkPolicies are enforced where the network plugin's release has them and, with Antrea, where a feature gate of its controller is on. No source says how their rules are implemented on Windows nodes. Where they are enforced, winlab follows the API's documentation; a connection that also meets an ACL of another program is unknown.",
		"kubernetes-sigs/network-policy-api apis/v1alpha1, apis/v1alpha2 (commit 0eec1b0)",
		"antrea-io/antrea docs/feature-gates.md AdminNetworkPolicy",
		"projectcalico/calico libcalico-go lib/backend/k8s/conversion (AdminNetworkPolicy)")
	questionAdmin = evidence.NewQuestion(labfile.ParamAdminPolicy, factAdmin,
		evidence.Answer{Value: adminEnforced, Means: "this cluster enforces AdminNetworkPolicies"},
		evidence.Answer{Value: "ignored", Means: "it does not enforce AdminNetworkPolicies"})
)

const adminEnforced = "enforced"

// adminPolicies puts gates before the connections of pods that a policy of whoever administers the
// cluster selects. No rules are made from the policy: whether such policies are enforced at all is
// an open question about the cluster, and where they are, the API defines what happens to a
// connection.
func (b *builder) adminPolicies() {
	if len(b.admins) == 0 {
		return
	}
	var nobody *evidence.Fact
	if b.antrea == nil && b.agent == nil && b.Plan.Network.Design == plan.CNI {
		nobody = cni.EnforcesNoPolicy(b.Plan.Network.CNI.Plugin)
	}
	for _, p := range b.admins {
		why := "whether it is enforced depends on the plugin's release and on its controller's feature gates; flows that it affects are followed with both answers"
		if nobody != nil {
			why = "nothing in this lab enforces it: " + b.Plan.Network.Plugin + " does not"
		}
		b.notice(p.Key(), why, p.Origin)
	}
	match := b.matching()
	var rules [2][]*adminRule
	for _, p := range b.adminOrder() {
		for out, list := range [][]labfile.AdminRule{p.In, p.Out} {
			for i := range list {
				// What of a rule holds is found as what of a NetworkPolicy admits.
				one := &labfile.Policy{Name: p.Name, Origin: p.Origin}
				if !list[i].Nobody {
					one.In, one.Out = []labfile.PolicyRule{list[i].PolicyRule}, []labfile.PolicyRule{list[i].PolicyRule}
				}
				rules[out] = append(rules[out], &adminRule{of: p, number: i + 1, AdminRule: &list[i], as: one})
			}
		}
	}
	overriding := map[*adminRule]map[netip.Addr]*decider{}
	senders := map[*pod]*decider{}
	for _, p := range b.pods {
		m := b.Machine(Ref{PodKind, p.Key()})
		if m == nil || p.HostNetwork {
			continue
		}
		m.Stack().RemoveGates(func(g host.Gate) bool { _, ours := g.Event.Detail.(adminDecision); return ours })
		// What a dumped node enforces is among the ACLs of its dump.
		if b.node(p.Node).Plan.Dump != nil {
			continue
		}
		for out := range rules {
			d := b.decider(match, p, rules[out], out == 1)
			d.gates(m.Stack(), nobody)
			if d.out {
				senders[p] = d
			}
			for _, r := range d.overriding() {
				if overriding[r] == nil {
					overriding[r] = map[netip.Addr]*decider{}
				}
				for _, a := range []netip.Addr{p.given, p.given6} {
					overriding[r][a] = d
				}
			}
		}
	}
	if nobody == nil {
		b.overrides(rules[0], overriding, senders)
	}
}

// overrides puts gates before what pods send to pods that a rule allows them to reach and
// NetworkPolicies do not. The ACLs of a NetworkPolicy are met before the pod's stack is; the peers
// of an ingress rule are pods, so their stacks can say that it is not known which of the two wins.
func (b *builder) overrides(rules []*adminRule, all map[*adminRule]map[netip.Addr]*decider, senders map[*pod]*decider) {
	for _, r := range rules {
		to := all[r]
		if to == nil {
			continue
		}
		for _, p := range b.pods {
			m := b.Machine(Ref{PodKind, p.Key()})
			if m == nil || p.HostNetwork {
				continue
			}
			own := senders[p] // nil on a node of a dump
			m.Stack().AddGate(host.Gate{Out: true, Origin: r.of.Origin, Fact: factAdmin, Question: questionAdmin, OfCluster: true,
				Answer: adminEnforced,
				Event:  trace.Of(adminDecision{r.of.Key(), r.name(), false, adminOverrides}),
				Passes: func(h *packet.Headers) bool {
					if own != nil && own.restricted && !own.admits(h) {
						return true // it does not get as far
					}
					if d := to[h.Dst]; d != nil {
						by, end := d.decide(h)
						return by != r || end != adminOverrides
					}
					// A backend of the Service may be such a pod, and none has been picked yet.
					return !b.toService(h) || !slices.ContainsFunc(slices.Collect(maps.Values(to)), func(d *decider) bool {
						by, end := d.decide(h)
						return by == r && end == adminOverrides
					})
				}})
		}
	}
}

func (b *builder) toService(h *packet.Headers) bool {
	return slices.ContainsFunc(b.Plan.ServiceCIDRs, func(p netip.Prefix) bool { return p.Contains(h.Dst) })
}

// adminOrder are the policies in the order in which they are asked.
func (b *builder) adminOrder() []*labfile.AdminPolicy {
	all := slices.Clone(b.admins)
	slices.SortStableFunc(all, func(x, y *labfile.AdminPolicy) int {
		if x.Baseline != y.Baseline {
			if y.Baseline {
				return -1
			}
			return 1
		}
		if x.Priority != y.Priority {
			return int(x.Priority - y.Priority)
		}
		return strings.Compare(x.Key(), y.Key())
	})
	return all
}

// adminRule is a rule with its policy; as is a NetworkPolicy that admits what the rule holds.
type adminRule struct {
	of     *labfile.AdminPolicy
	number int
	*labfile.AdminRule
	as *labfile.Policy
}

func (r *adminRule) name() string {
	if r.Name != "" {
		return fmt.Sprintf("%q", r.Name)
	}
	return fmt.Sprint(r.number)
}

// adminCase is a rule for one pod.
type adminCase struct {
	*adminRule
	holds []admission
}

// decider holds what the policies say about one pod in one direction.
func (b *builder) decider(match *matching, p *pod, rules []*adminRule, out bool) *decider {
	var admins, baseline []adminCase
	for _, r := range rules {
		if !r.of.Selects(p.Namespace, p.Labels, b.namespaces) {
			continue
		}
		c := adminCase{r, match.admissions(p, []*labfile.Policy{r.as}, out)}
		if r.of.Baseline {
			baseline = append(baseline, c)
		} else {
			admins = append(admins, c)
		}
	}
	var restricting []*labfile.Policy
	for _, np := range match.policiesFor(p) {
		if !out && np.RestrictsIn || out && np.RestrictsOut {
			restricting = append(restricting, np)
		}
	}
	return &decider{b: b, admins: admins, baseline: baseline, out: out, restricted: len(restricting) > 0,
		admitted: match.admissions(p, restricting, out)}
}

// overriding are the ingress rules that may allow what NetworkPolicies do not admit.
func (d *decider) overriding() (all []*adminRule) {
	for _, c := range d.admins {
		if !d.out && d.restricted && c.Action == labfile.ActionAllow {
			all = append(all, c.adminRule)
		}
	}
	return all
}

// gates adds the gates of the pod's stack.
func (d *decider) gates(st *host.Stack, nobody *evidence.Fact) {
	for _, end := range []adminEnd{adminDenies, adminOverrides, adminOpen} {
		for _, c := range slices.Concat(d.admins, d.baseline) {
			g := host.Gate{Out: d.out, Origin: c.of.Origin, Fact: factAdmin, Question: questionAdmin, OfCluster: true, Answer: adminEnforced,
				Closed: end == adminDenies,
				Event:  trace.Of(adminDecision{c.of.Key(), c.name(), d.out, end}),
				Passes: func(h *packet.Headers) bool {
					by, is := d.decide(h)
					return is != end || by != c.adminRule
				}}
			if nobody != nil {
				g.Fact, g.Question, g.Closed, g.Open = nobody, nil, false, true
				g.Event = trace.Of(adminDecision{c.of.Key(), c.name(), d.out, adminIgnored})
			}
			st.AddGateFirst(g)
		}
	}
}

// decider says what the policies decide about connections of a pod in one direction.
type decider struct {
	b                *builder
	admins, baseline []adminCase
	out              bool
	// restricted says that NetworkPolicies select the pod; admitted is what they admit.
	restricted bool
	admitted   []admission
}

// adminEnd is what happens to a connection.
type adminEnd int

const (
	adminNothing adminEnd = iota // NetworkPolicies decide as they do without
	adminDenies
	adminOverrides // it is allowed, and NetworkPolicies do not admit it
	adminOpen      // the API leaves it open, or a peer cannot be resolved here
	adminIgnored   // nothing enforces it
)

// decide finds the rule that decides about a packet, and what happens to the packet.
func (d *decider) decide(h *packet.Headers) (*adminRule, adminEnd) {
	by, action, open := d.first(d.admins, h)
	if by != nil && open {
		return by, adminOpen
	}
	switch {
	case by != nil && action == labfile.ActionDeny:
		return by, adminDenies
	case by != nil && action == labfile.ActionAllow:
		if d.restricted && !d.admits(h) {
			return by, adminOverrides
		}
		return nil, adminNothing
	case d.restricted: // none holds, or one passes it on: NetworkPolicies decide
		return nil, adminNothing
	}
	switch by, action, open = d.first(d.baseline, h); {
	case by != nil && open:
		return by, adminOpen
	case by != nil && action == labfile.ActionDeny:
		return by, adminDenies
	}
	return nil, adminNothing
}

func (d *decider) peer(h *packet.Headers) netip.Addr {
	if d.out {
		return h.Dst
	}
	return h.Src
}

func (d *decider) admits(h *packet.Headers) bool {
	return slices.ContainsFunc(d.admitted, func(a admission) bool { return a.holds(d.peer(h), h) })
}

// first is the first rule that holds. It is open which it is where a rule before it may hold as well,
// or where another policy of the same priority does something else: the API leaves that to whoever
// implements it.
func (d *decider) first(list []adminCase, h *packet.Headers) (by *adminRule, action labfile.Action, open bool) {
	for _, c := range list {
		if by != nil && c.of == by.of {
			continue // an earlier rule of this policy holds
		}
		if by != nil && (c.of.Baseline || c.of.Priority != by.of.Priority) {
			break
		}
		holds := slices.ContainsFunc(c.holds, func(a admission) bool { return a.holds(d.peer(h), h) })
		may := !holds && d.may(&c, h)
		switch {
		case !holds && !may:
		case by == nil && may:
			return c.adminRule, c.Action, true
		case by == nil:
			by, action = c.adminRule, c.Action
		case c.Action != action:
			return by, action, true
		}
	}
	return by, action, false
}

// may reports whether a rule that cannot be decided here may hold: its peer is nodes by their
// labels or names of machines, or the packet goes to a Service whose backend has not been picked
// yet.
func (d *decider) may(c *adminCase, h *packet.Headers) bool {
	if !d.out {
		return false
	}
	if d.b.toService(h) {
		return true
	}
	if !c.Nodes && !c.Domains {
		return false
	}
	ports := c.PolicyRule.Ports
	if len(ports) > 0 && !slices.ContainsFunc(ports, func(p labfile.PolicyPort) bool {
		return (p.Proto == 0 || p.Proto == h.Proto) && (p.Lo == 0 || h.DstPort >= p.Lo && h.DstPort <= p.Hi)
	}) {
		return false
	}
	node := slices.ContainsFunc(d.b.Nodes, func(n *Node) bool { return n.Address == h.Dst || n.Address6 == h.Dst })
	return c.Nodes && node || c.Domains && !node
}

// adminDecision is what a rule of such a policy does to a connection.
type adminDecision struct {
	policy, rule string
	out          bool
	end          adminEnd
}

func (e adminDecision) Text() string {
	way := "ingress"
	if e.out {
		way = "egress"
	}
	s := fmt.Sprintf("%s rule %s of %s ", way, e.rule, e.policy)
	switch e.end {
	case adminOverrides:
		return s + "allows it and NetworkPolicies do not: which of the two comes first on a node is not modelled"
	case adminOpen:
		return s + "may apply to it: the API leaves open which rule applies, or the rule's peer cannot be resolved here"
	case adminIgnored:
		return s + "applies to it, but nothing enforces it"
	}
	return s + "denies it, and the node drops it"
}
