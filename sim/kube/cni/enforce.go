package cni

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var factNoPolicy = evidence.New("cni.no-network-policy", evidence.Stated,
	"flannel, win-bridge, win-overlay and HNS's plugin for NAT networks do not enforce NetworkPolicies; without a controller that does, a policy has no effect.",
	"Kubernetes documentation, Network Policies, prerequisites", "flannel-io/flannel README.md",
	"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go",
	"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go",
	"coreos/flannel#558")

// EnforcesNoPolicy returns the evidence that a plugin enforces no NetworkPolicy; nil
// where another part of its product may.
func EnforcesNoPolicy(n Name) *evidence.Fact {
	switch n {
	case PluginFlannel, PluginWinBridge, PluginWinOverlay, PluginNAT:
		return factNoPolicy
	}
	return nil
}

// Agent is the name of a program that enforces NetworkPolicies.
type Agent string

// The agents with a model.
const (
	// AgentCalico is Calico's Felix, with Calico's own networking or for policies only
	// beside another plugin.
	AgentCalico Agent = "calico"
	// AgentNPM is Azure NPM, beside azure-vnet.
	AgentNPM Agent = "azure-npm"
)

// Agents lists the agents with a model, sorted.
func Agents() []string { return []string{string(AgentNPM), string(AgentCalico)} }

// PolicyAgent enforces NetworkPolicies. One agent is for all nodes of a cluster; it
// remembers what it has applied, and is not safe for concurrent use.
type PolicyAgent interface {
	// Apply is the agent's work on a Windows node for one pod that has its endpoint: it
	// brings the endpoint's policies in line with what NetworkPolicies mean for the pod, and
	// returns what of them it passes over.
	Apply(s *hns.Service, n *kube.Node, endpoint string, p PodPolicies) ([]Skipped, error)
	// Linux is what is known of the agent on a Linux node, where it does what Kubernetes
	// documents; NodeOut reports whether its rules on what a pod sends are for its own node
	// as well.
	Linux() (fact *evidence.Fact, nodeOut bool)
	// InACLs reports whether all that Apply does is to give the endpoint ACLs in which peers stand
	// by their addresses.
	InACLs() bool
}

// NewPolicyAgent makes the model of an agent, nil for "": then the plugin's own.
func NewPolicyAgent(a Agent, plugin Name) PolicyAgent {
	if a == AgentNPM {
		return newNPM()
	}
	if a == AgentCalico || a == "" && plugin == PluginCalico {
		return newFelix()
	}
	return nil
}

// PodPolicies are what the NetworkPolicies of a cluster mean for one pod, with selectors
// resolved to addresses.
type PodPolicies struct {
	Namespace, Name string
	// RestrictedIn and RestrictedOut say that a policy selects the pod for that direction;
	// otherwise everything is allowed there. In and Out are those policies, by name.
	RestrictedIn, RestrictedOut bool
	In, Out                     []PodPolicy
}

// PodPolicy is one policy of one direction.
type PodPolicy struct {
	Namespace, Name string
	Rules           []PolicyRule
	// Negative: a selector of the policy has NotIn or DoesNotExist.
	Negative bool
	Origin   *trace.Origin
}

// PolicyRule allows connections with one of the peers to one of the ports.
type PolicyRule struct {
	Peers []PolicyPeer // empty: all
	Ports []PolicyPort // empty: all
}

// PolicyPeer is a block of addresses without some, or what a selector picks.
type PolicyPeer struct {
	Block  netip.Prefix // the zero Prefix: a selector
	Except []netip.Prefix
	// Pods are the addresses of the pods that the selector picks, sorted, without pods in
	// the node's network.
	Pods []netip.Addr
	// NegativeNamespaces: its namespaceSelector has NotIn or DoesNotExist.
	NegativeNamespaces bool
}

// PolicyPort is a range of ports or the name of one.
type PolicyPort struct {
	Proto  packet.Proto
	Lo, Hi uint16 // 0: all
	Name   string // "": a range
}

// Skipped is a part of a policy that an agent passes over.
type Skipped struct {
	Policy string // "namespace/name"
	Why    string
	Origin *trace.Origin
}
