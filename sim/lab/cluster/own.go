package cluster

import (
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factOwn = evidence.New("lab.plugin-policy", evidence.Unknown,
	"For policies of Calico's and Antrea's own kinds, winlab reads which pods they may select but not what they do: in a cluster with that plugin, a new connection of such a pod, in a direction that the policy covers, is unknown.",
	"projectcalico/api pkg/apis/projectcalico/v3 NetworkPolicySpec", "antrea-io/antrea docs/antrea-network-policy.md")

// ownPolicies puts gates before the connections of pods that a policy of the plugin's own kind may
// select. They count where the plugin or its agent is in the cluster, and nowhere else.
func (b *builder) ownPolicies() {
	for _, p := range b.owns {
		why := "what it does is not simulated: a connection of a pod that it may select is unknown"
		if !b.enforcesOwn(p.Plugin) {
			why = "nothing in this lab enforces it: its kind belongs to " + p.Plugin
		}
		b.notice(p.Key(), why, p.Origin)
	}
	if len(b.owns) == 0 {
		return
	}
	for _, p := range b.pods {
		m := b.Machine(Ref{PodKind, p.Key()})
		if m == nil || p.HostNetwork {
			continue
		}
		m.Stack().RemoveGates(func(g host.Gate) bool { _, ours := g.Event.Detail.(ownDecision); return ours })
		// What a dumped node enforces is among the ACLs of its dump.
		if b.node(p.Node).Plan.Dump != nil {
			continue
		}
		for _, o := range b.owns {
			if b.enforcesOwn(o.Plugin) && o.MaySelect(p.Namespace, p.Labels, b.namespaces) {
				ownGates(m.Stack(), o)
			}
		}
	}
}

func ownGates(st *host.Stack, o *labfile.OwnPolicy) {
	for _, out := range []bool{false, true} {
		if out && o.Out || !out && o.In {
			st.AddGateFirst(host.Gate{Out: out, Origin: o.Origin, Fact: factOwn, Event: trace.Of(ownDecision{o.Key(), out})})
		}
	}
}

// enforcesOwn reports whether a plugin enforces the policies of its kinds in this cluster: as the
// plugin, or as an agent beside another one.
func (b *builder) enforcesOwn(plugin string) bool {
	n := b.Plan.Network
	return n.Design == plan.CNI && (string(n.CNI.Plugin) == plugin || plugin == string(cni.PluginCalico) && n.PolicyAgent == cni.AgentCalico)
}

// ownDecision is a policy of a plugin's own kind that may decide about a connection.
type ownDecision struct {
	policy string
	out    bool
}

func (e ownDecision) Text() string {
	if e.out {
		return e.policy + " may apply to what this pod sends, and what it does is not simulated"
	}
	return e.policy + " may apply to what this pod receives, and what it does is not simulated"
}
