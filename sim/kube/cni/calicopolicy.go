package cni

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// felix is Calico's agent on Windows nodes (projectcalico/calico felix/dataplane/windows):
// the policies of a pod become one list of ACLs of its endpoint.
type felix struct {
	// applied are the ACLs that an endpoint has, by its id (cni.felix-unchanged).
	applied map[string][]hns.ACLSettings
}

func newFelix() *felix { return &felix{map[string][]hns.ACLSettings{}} }

// Priorities of Felix's rules, and how many addresses or ports one rule has at most.
const (
	felixNodePriority = 900
	felixBasePriority = 1000
	felixMaxPriority  = 65000
	felixPerRule      = 4000
)

// Linux follows cni.felix-linux.
func (f *felix) Linux() (*evidence.Fact, bool) { return factFelixLinux, true }

// InACLs follows cni.felix-conversion.
func (*felix) InACLs() bool { return true }

// Apply follows cni.felix-rules.
func (f *felix) Apply(s *hns.Service, n *kube.Node, endpoint string, p PodPolicies) ([]Skipped, error) {
	in, skippedIn := f.direction(true, p.RestrictedIn, p.In, p)
	out, skippedOut := f.direction(false, p.RestrictedOut, p.Out, p)
	list := []felixRule{{acl: hns.ACLSettings{
		Id: "allow-host-to-endpoint", Protocols: anyProtocol, Action: hns.ACLAllow, Direction: hns.ACLIn,
		RemoteAddresses: strings.Join(nodeAddresses(s, n), ","),
		RuleType:        hns.ACLRuleSwitch, Priority: felixNodePriority,
	}}}
	list = append(append(list, in...), out...)
	var ps []hns.Policy
	var acls []hns.ACLSettings
	for _, r := range list {
		origin := r.origin
		if origin == nil {
			origin = &trace.Origin{What: "Felix on " + n.Name}
		}
		ps = append(ps, hns.NewPolicy(r.acl).From(origin))
		acls = append(acls, r.acl)
	}
	skipped := append(skippedIn, skippedOut...)
	e := s.Endpoint(endpoint)
	if e == nil {
		return skipped, fmt.Errorf("node %s: Felix: pod %s/%s has no endpoint %s", n.Name, p.Namespace, p.Name, endpoint)
	}
	// An endpoint that was made again has the list of its plugin only.
	if slices.Equal(f.applied[endpoint], acls) && len(hns.PoliciesOf(e.Policies, hns.PolicyACL)) == len(ps) {
		return skipped, nil
	}
	if err := s.UpdateEndpointPolicies(endpoint, ps...); err != nil {
		return skipped, fmt.Errorf("node %s: Felix: the rules of pod %s/%s: %w", n.Name, p.Namespace, p.Name, err)
	}
	f.applied[endpoint] = acls
	return skipped, nil
}

// nodeAddresses are those of the node's own interfaces, sorted as text.
func nodeAddresses(s *hns.Service, n *kube.Node) []string {
	all := []string{n.Address.String() + "/32"}
	for _, id := range s.HostNamespace().Endpoints() {
		e := s.Endpoint(id)
		if e == nil || e.Remote() {
			continue
		}
		if a := e.Address(false); a.IsValid() {
			all = append(all, a.String()+"/32")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// felixRule is an ACL and the policy that it is for.
type felixRule struct {
	acl    hns.ACLSettings
	origin *trace.Origin
}

// direction makes the rules of one direction: what the policies allow, or where none
// restricts the pod what the profile of its namespace does, then the end that blocks, with
// ascending priorities; last the rule for the firewall of the host.
func (f *felix) direction(in, restricted bool, policies []PodPolicy, p PodPolicies) (all []felixRule, skipped []Skipped) {
	direction := hns.ACLOut
	if in {
		direction = hns.ACLIn
	}
	rule := hns.ACLSettings{Protocols: anyProtocol, Action: hns.ACLAllow, Direction: direction, RuleType: hns.ACLRuleSwitch}
	if !restricted {
		r := rule
		r.Id = "profile-kns." + p.Namespace + "-0"
		all = append(all, felixRule{acl: r})
	}
	for _, np := range policies {
		for i, nr := range np.Rules {
			rules, why := felixRules(rule, np, i, nr, in)
			for _, r := range rules {
				all = append(all, felixRule{r, np.Origin})
			}
			for _, w := range why {
				skipped = append(skipped, Skipped{np.Namespace + "/" + np.Name, w, np.Origin})
			}
		}
	}
	end := rule
	end.Action = hns.ACLBlock
	var origin *trace.Origin
	if len(policies) > 0 {
		origin = policies[0].Origin
	}
	all = append(all, felixRule{end, origin})
	priority := uint16(felixBasePriority)
	always := len(all) < felixMaxPriority-felixBasePriority
	for i := range all {
		if i > 0 && (always || all[i-1].acl.Action != all[i].acl.Action) {
			priority++
		}
		all[i].acl.Priority = priority
	}
	host := rule
	host.RuleType = hns.ACLRuleHost
	return append(all, felixRule{acl: host}), skipped
}

// felixRules makes the ACLs of one rule of a policy: one for each protocol and peer
// (cni.felix-conversion), without those that Felix passes over (cni.felix-skips).
func felixRules(rule hns.ACLSettings, np PodPolicy, number int, nr PolicyRule, in bool) (all []hns.ACLSettings, why []string) {
	ports := byProtocol(nr.Ports)
	names := slices.SortedFunc(maps.Keys(ports), func(a, b packet.Proto) int { return cmp.Compare(a.String(), b.String()) })
	peers := nr.Peers
	if len(peers) == 0 {
		peers = []PolicyPeer{{Block: everywhere}}
	}
	parts := 0
	for _, proto := range names {
		list := ports[proto]
		for _, peer := range peers {
			if slices.ContainsFunc(list, func(p PolicyPort) bool { return p.Name != "" }) {
				why = append(why, fmt.Sprintf("Felix on Windows ignores a rule with a named port (rule %d), so the rule allows nothing", number+1))
				continue
			}
			if len(peer.Except) > 0 {
				why = append(why, fmt.Sprintf("Felix on Windows ignores a peer with except (%s in rule %d), so the peer allows nothing", peer.Block,
					number+1))
				continue
			}
			addresses, some := felixAddresses(peer, len(nr.Peers) == 0)
			if !some {
				continue
			}
			for _, chunk := range chunks(addresses) {
				for _, some := range chunks(portTexts(list)) {
					r := rule
					r.Id = fmt.Sprintf("policy-KubernetesNetworkPolicy/%s/%s-%d-%d", np.Namespace, np.Name, number, parts)
					parts++
					if proto != 0 {
						r.Protocols = strconv.Itoa(int(proto))
					}
					r.RemoteAddresses = strings.Join(chunk, ",")
					if in {
						r.LocalPorts = strings.Join(some, ",")
					} else {
						r.RemotePorts = strings.Join(some, ",")
					}
					all = append(all, r)
				}
			}
		}
	}
	return all, why
}

var everywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// felixAddresses are the remote addresses of a peer, none for everybody; some is false where
// the rule is left out: a selector that picks no pod, an IPv6 block.
func felixAddresses(p PolicyPeer, anyone bool) (list []string, some bool) {
	switch {
	case anyone:
		return nil, true
	case p.Block.IsValid():
		return []string{p.Block.Masked().String()}, p.Block.Addr().Is4()
	}
	for _, a := range p.Pods {
		if a.Is4() {
			list = append(list, a.String()+"/32")
		}
	}
	return list, len(list) > 0
}

// byProtocol sorts the ports of a rule by protocol; one without a number stands for all of
// its protocol. Without any port all protocols are meant.
func byProtocol(list []PolicyPort) map[packet.Proto][]PolicyPort {
	all := map[packet.Proto][]PolicyPort{}
	whole := map[packet.Proto]bool{}
	for _, p := range list {
		if p.Lo == 0 && p.Name == "" {
			whole[p.Proto] = true
			all[p.Proto] = nil
		} else if !whole[p.Proto] {
			all[p.Proto] = append(all[p.Proto], p)
		}
	}
	if len(list) == 0 {
		all[0] = nil
	}
	return all
}

// portTexts are ranges of ports as an ACL has them, sorted, with those that touch as one.
func portTexts(list []PolicyPort) []string {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b PolicyPort) int { return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi)) })
	var ranges [][2]int
	for _, p := range list {
		lo, hi := int(p.Lo), int(p.Hi)
		if n := len(ranges); n > 0 && lo <= ranges[n-1][1]+1 {
			ranges[n-1][1] = max(ranges[n-1][1], hi)
			continue
		}
		ranges = append(ranges, [2]int{lo, hi})
	}
	var all []string
	for _, r := range ranges {
		if r[0] == r[1] {
			all = append(all, strconv.Itoa(r[0]))
			continue
		}
		all = append(all, fmt.Sprintf("%d-%d", r[0], r[1]))
	}
	return all
}

// chunks cuts a list into parts of felixPerRule; an empty list is one empty part.
func chunks(list []string) [][]string {
	if len(list) == 0 {
		return [][]string{nil}
	}
	return slices.Collect(slices.Chunk(list, felixPerRule))
}

var factFelixLinux = evidence.New("cni.felix-linux", evidence.Stated,
	"On Linux nodes Felix enforces NetworkPolicies as Kubernetes documents them. They also apply to what a pod sends to its own node, but not to what its own node sends to it.",
	"projectcalico/calico felix/rules/static.go (filterWorkloadToHostChain, filterOutputChain)", "Kubernetes documentation, Network Policies")

// What this package holds true about Felix on Windows, by the commit 87c1590 of
// projectcalico/calico.
var (
	_ = evidence.New("cni.felix-rules", evidence.Code,
		"Felix replaces the ACLs of an endpoint by: one of priority 900 that allows what the node's own addresses send; for each direction, from priority 1000 on and each one higher, what the policies of the pod allow, or without policies all, and a last one that blocks; and for each direction one of type Host that allows all.",
		"projectcalico/calico felix/dataplane/windows/endpoint_mgr.go CompleteDeferredWork",
		"projectcalico/calico felix/dataplane/windows/policysets/policysets.go GetPolicySetRules",
		"projectcalico/calico felix/dataplane/windows/flattener.go rewritePriorities")
	_ = evidence.New("cni.felix-acls-replaced", evidence.Inferred,
		"HNS replaces the ACLs of the endpoint and leaves its other policies alone, because Felix's request contains only ACLs.",
		"projectcalico/calico felix/dataplane/windows/endpoint_mgr.go applyRules")
	_ = evidence.New("cni.felix-conversion", evidence.Code,
		"A rule of a NetworkPolicy becomes one ACL for each protocol, sorted by name, and peer, with all ports of that protocol; a selector becomes the addresses of its pods, and one that picks none allows nothing.",
		"projectcalico/calico libcalico-go/lib/backend/k8s/conversion/conversion.go k8sRuleToCalico",
		"projectcalico/calico felix/dataplane/windows/policysets/policysets.go protoRuleToHnsRules",
		"projectcalico/calico felix/dataplane/windows/ipsets/ipsets.go GetIPSetMembers")
	_ = evidence.New("cni.felix-skips", evidence.Code,
		"Felix on Windows logs and leaves out rules with negative matches (except of an ipBlock), with named ports, with types of ICMP, and for IPv6.",
		"projectcalico/calico felix/dataplane/windows/policysets/policysets.go protoRuleToHnsRules")
	_ = evidence.New("cni.felix-unchanged", evidence.Code,
		"Felix does not reapply a list of rules that has not changed.",
		"projectcalico/calico felix/dataplane/windows/endpoint_mgr.go CompleteDeferredWork", "projectcalico/calico PR 10437")
	_ = evidence.New("cni.felix-rule-names", evidence.Inferred,
		"The middle of a rule's id is a hash in Felix; winlab writes the number of the policy's rule there.",
		"projectcalico/calico felix/dataplane/windows/policysets/policysets.go protoRuleToHnsRules")
)
