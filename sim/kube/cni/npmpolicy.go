package cni

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// npm is Azure NPM on Windows nodes (Azure/azure-container-networking npm): every
// NetworkPolicy adds its ACLs to the endpoints of the pods that it selects, and peers are
// sets of addresses of the network.
type npm struct {
	// applied are the policies that an endpoint has of it, by the endpoint's id, and sets
	// what it has written into the sets of a network, by both ids.
	applied map[string]npmApplied
	sets    map[[2]string]string
}

type npmApplied struct {
	text     string
	policies []hns.Policy
}

func newNPM() *npm { return &npm{map[string]npmApplied{}, map[[2]string]string{}} }

// Priorities of NPM's rules (cni.npm-rules).
const (
	npmHostPriority  = 201
	npmAllowPriority = 222
	npmBlockPriority = 3000
)

// npmNetwork is the network that NPM works on beside azure-vnet.
const npmNetwork = "azure"

// Linux follows cni.npm-linux.
func (*npm) Linux() (*evidence.Fact, bool) { return factNPMLinux, false }

// InACLs follows cni.npm-sets: the addresses are in sets of the network.
func (*npm) InACLs() bool { return false }

// Apply follows cni.npm-rules.
func (m *npm) Apply(s *hns.Service, n *kube.Node, endpoint string, p PodPolicies) ([]Skipped, error) {
	nw := s.NetworkByName(npmNetwork)
	if nw == nil {
		return nil, fmt.Errorf("node %s: Azure NPM: there is no network %q, and Azure NPM beside other plugins is not modelled (cni.npm-network)",
			n.Name, npmNetwork)
	}
	e := s.Endpoint(endpoint)
	if e == nil {
		return nil, fmt.Errorf("node %s: Azure NPM: pod %s/%s has no endpoint %s", n.Name, p.Namespace, p.Name, endpoint)
	}
	if key := npmOpposite(p); key != "" {
		return nil,
			fmt.Errorf(
				"node %s: Azure NPM: NetworkPolicy %s has an egress rule with a namespaceSelector of NotIn or DoesNotExist, which NPM on Windows inverts (cni.npm-negative-namespaces); that is not modelled", n.Name, key)
	}
	refused := npmRefused(p)
	var skipped []Skipped
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		skipped = append(skipped, refused[key])
	}
	w := &npmWriter{npm: m, service: s, network: nw.ID}
	host := map[string]bool{}
	for _, in := range []bool{true, false} {
		list := p.Out
		if in {
			list = p.In
		}
		for _, np := range list {
			key := np.Namespace + "/" + np.Name
			if _, bad := refused[key]; bad {
				continue
			}
			w.policy(np, in)
			if !host[key] {
				host[key] = true
				w.acl(np, hns.ACLSettings{Action: hns.ACLAllow, Direction: hns.ACLIn, RemoteAddresses: n.Address.String(), Priority: npmHostPriority})
			}
		}
	}
	if w.err != nil {
		return skipped, fmt.Errorf("node %s: Azure NPM: the sets of pod %s/%s: %w", n.Name, p.Namespace, p.Name, w.err)
	}
	have := m.applied[endpoint]
	if have.text == w.text.String() {
		return skipped, nil
	}
	if len(have.policies) > 0 {
		if err := s.RemoveEndpointPolicies(endpoint, have.policies...); err != nil {
			return skipped, err
		}
	}
	m.applied[endpoint] = npmApplied{w.text.String(), w.policies}
	if len(w.policies) == 0 {
		return skipped, nil
	}
	if err := s.AddEndpointPolicies(endpoint, w.policies...); err != nil {
		delete(m.applied, endpoint)
		return skipped, fmt.Errorf("node %s: Azure NPM: the rules of pod %s/%s: %w", n.Name, p.Namespace, p.Name, err)
	}
	return skipped, nil
}

// npmRefused are the policies that NPM does not translate on Windows, by their names
// (cni.npm-refuses).
func npmRefused(p PodPolicies) map[string]Skipped {
	all := map[string]Skipped{}
	for _, np := range slices.Concat(p.In, p.Out) {
		what := ""
		if np.Negative {
			what = "a selector with NotIn or DoesNotExist"
		}
		for _, r := range np.Rules {
			for _, port := range r.Ports {
				if port.Name != "" {
					what = cmp.Or(what, "a named port")
				}
			}
			for _, peer := range r.Peers {
				switch {
				case len(peer.Except) > 0:
					what = cmp.Or(what, "a block with except")
				case peer.Block.IsValid() && peer.Block.Addr().Is6():
					what = cmp.Or(what, "an IPv6 block")
				}
			}
		}
		if key := np.Namespace + "/" + np.Name; what != "" {
			all[key] = Skipped{key, "Azure NPM on Windows does not translate a policy with " + what + ", so none of the policy is enforced there",
				np.Origin}
		}
	}
	return all
}

// npmOpposite is the first policy that cni.npm-negative-namespaces is about, "" for none.
func npmOpposite(p PodPolicies) string {
	for _, np := range p.Out {
		for _, r := range np.Rules {
			if slices.ContainsFunc(r.Peers, func(q PolicyPeer) bool { return q.NegativeNamespaces }) {
				return np.Namespace + "/" + np.Name
			}
		}
	}
	return ""
}

// npmWriter collects what one endpoint gets.
type npmWriter struct {
	*npm
	service  *hns.Service
	network  string
	policies []hns.Policy
	text     strings.Builder
	err      error
}

// acl adds one rule of a policy.
func (w *npmWriter) acl(np PodPolicy, a hns.ACLSettings) {
	a.Id, a.RuleType = "azure-acl-"+np.Namespace+"-"+np.Name, hns.ACLRuleSwitch
	origin := np.Origin
	if origin == nil {
		origin = &trace.Origin{What: "Azure NPM"}
	}
	w.policies = append(w.policies, hns.NewPolicy(a).From(origin))
	fmt.Fprintf(&w.text, "%+v\n", a)
}

// policy makes the ACLs of one direction of a policy: what it allows, then the end that
// blocks. One whose rules have one that admits everybody everywhere is that rule alone.
func (w *npmWriter) policy(np PodPolicy, in bool) {
	direction := hns.ACLOut
	if in {
		direction = hns.ACLIn
	}
	allow := hns.ACLSettings{Action: hns.ACLAllow, Direction: direction, Priority: npmAllowPriority}
	if slices.ContainsFunc(np.Rules, func(r PolicyRule) bool { return len(r.Peers) == 0 && len(r.Ports) == 0 }) {
		w.acl(np, allow)
		return
	}
	for i, r := range np.Rules {
		if len(r.Peers) == 0 {
			w.ports(np, allow, r.Ports, in)
		}
		for j, peer := range r.Peers {
			with := allow
			if set := w.set(fmt.Sprintf("%s/%s-%s-%d-%d", np.Namespace, np.Name, direction, i, j), peer); in {
				with.LocalAddresses = set // sets are of source and destination (hns.acl-address-set)
			} else {
				with.RemoteAddresses = set
			}
			w.ports(np, with, r.Ports, in)
		}
	}
	w.acl(np, hns.ACLSettings{Action: hns.ACLBlock, Direction: direction, Priority: npmBlockPriority})
}

// ports makes one ACL for each port of a rule.
func (w *npmWriter) ports(np PodPolicy, a hns.ACLSettings, ports []PolicyPort, in bool) {
	if len(ports) == 0 {
		w.acl(np, a)
	}
	for _, port := range ports {
		with := a
		with.Protocols = strconv.Itoa(int(port.Proto))
		var list []string
		for n := int(port.Lo); n != 0 && n <= int(port.Hi); n++ {
			list = append(list, strconv.Itoa(n))
		}
		if in {
			with.LocalPorts = strings.Join(list, ",")
		} else {
			with.RemotePorts = strings.Join(list, ",")
		}
		w.acl(np, with)
	}
}

// set keeps the addresses of a peer in a set of the network and returns its id
// (cni.npm-sets).
func (w *npmWriter) set(name string, peer PolicyPeer) string {
	var values []string
	switch {
	case peer.Block.IsValid() && peer.Block.Bits() == 0:
		values = []string{"0.0.0.0/1", "128.0.0.0/1"}
	case peer.Block.IsValid():
		values = []string{peer.Block.Masked().String()}
	default:
		for _, a := range peer.Pods {
			if a.Is4() {
				values = append(values, a.String())
			}
		}
	}
	sum := sha256.Sum256([]byte(name))
	id := "azure-npm-" + hex.EncodeToString(sum[:10])
	key, text := [2]string{w.network, id}, strings.Join(values, ",")
	have, there := w.sets[key]
	if w.err != nil || there && have == text {
		return id
	}
	if there {
		w.err = w.service.RemoveNetworkPolicies(w.network, hns.NewPolicy(hns.SetPolicySettings{Id: id, Name: name, PolicyType: hns.SetOfAddresses,
			Values: have}))
	}
	if w.err == nil {
		w.err = w.service.AddNetworkPolicies(w.network, hns.NewPolicy(hns.SetPolicySettings{Id: id, Name: name, PolicyType: hns.SetOfAddresses,
			Values: text}).From(&trace.Origin{What: "Azure NPM"}))
	}
	if w.err == nil {
		w.sets[key] = text
	}
	return id
}

var factNPMLinux = evidence.New("cni.npm-linux", evidence.Stated,
	"On Linux nodes Azure NPM enforces NetworkPolicies as Kubernetes documents them, on what the node forwards; they do not apply to traffic to or from the node itself.",
	"Azure/azure-container-networking npm/pkg/dataplane/policies/chain-management_linux.go", "Kubernetes documentation, Network Policies")

// What this package holds true about Azure NPM on Windows, by the commit cbd7560 of
// Azure/azure-container-networking.
var (
	_ = evidence.New("cni.npm-rules", evidence.Code,
		"Each NetworkPolicy adds to the endpoints of its pods: allowing ACLs of priority 222, one for each peer and port, a blocking one of priority 3000 for each direction, and one of priority 201 that lets the node in; a direction with a rule that admits everything gets just one allowing ACL. Pods without policies have no ACLs.",
		"Azure/azure-container-networking npm/pkg/dataplane/policies/policy_windows.go convertToAclSettings",
		"Azure/azure-container-networking npm/pkg/dataplane/policies/policymanager_windows.go getSettingsFromACL",
		"Azure/azure-container-networking npm/pkg/controlplane/translation/translatePolicy.go ingressPolicy")
	_ = evidence.New("cni.npm-refuses", evidence.Code,
		"On Windows NPM ignores a whole NetworkPolicy, with a warning in its log, if it has a named port, except, SCTP, or a selector with NotIn or DoesNotExist; one with an IPv6 block is not translated either.",
		"Azure/azure-container-networking npm/pkg/controlplane/controllers/v2/networkPolicyController.go isUnsupportedWindowsTranslationErr",
		"Azure/azure-container-networking npm/pkg/controlplane/translation/translatePolicy.go")
	_ = evidence.New("cni.npm-negative-namespaces", evidence.Code,
		"For a namespaceSelector with NotIn or DoesNotExist, NPM on Windows refuses only the ACL of an ingress rule; the ACL of an egress rule names the set of namespaces that the selector leaves out.",
		"Azure/azure-container-networking npm/pkg/dataplane/policies/policy_windows.go convertToAclSettings",
		"Azure/azure-container-networking npm/pkg/controlplane/translation/parseSelector.go parseNSSelector")
	_ = evidence.New("cni.npm-sets", evidence.Inferred,
		"NPM has a set of the network for each namespace and label, and an ACL names several that mean what is in all of them; winlab writes one set with those addresses for each peer. A set that is no longer needed stays.",
		"Azure/azure-container-networking npm/pkg/dataplane/ipsets/ipsetmanager_windows.go")
	_ = evidence.New("cni.npm-network", evidence.Code,
		"NPM on Windows works only on the HNS network azure or on Calico's.",
		"Azure/azure-container-networking npm/pkg/dataplane/ipsets/ipsetmanager_windows.go getHCnNetwork")
	_ = evidence.New("cni.npm-build", evidence.Code,
		"NPM needs sets of the network, which HNS of Windows Server 2019 does not have.",
		"microsoft/hcsshim hcn/hcnglobals.go SetPolicyVersion")
)
