package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// This file compares VFP's rules with the objects of HNS that they are made of.

// balanced is what a rule of the layer LB_DSR serves.
type balanced struct {
	vip      netip.Addr
	port     int
	protocol int
}

func (b balanced) String() string {
	return fmt.Sprintf("%s (protocol %d)", netip.AddrPortFrom(b.vip, uint16(b.port)), b.protocol)
}

// dsrName is the id of such a rule: LB_DSR, the node's address, the VIP, the external and
// the internal port, the protocol and the beginning of an id (microsoft/wcnscripts
// scripts/mitigation-scripts/cleanup-orphan-rules.ps1 Get-ExpectedVfpRuleIds). networkhealth.ps1
// of microsoft/SDN has the id behind LB_DSR.
var dsrName = lazyregexp.New(`^LB_DSR_(?:[0-9A-Fa-f]{5}_)?([0-9A-Fa-f.:]+)_([0-9A-Fa-f.:]+)_(\d{1,5})_(\d{1,5})_(\d{1,3})(?:_|$)`)

// dsrRule takes the name of a rule apart.
func dsrRule(r dump.Rule) (balanced, bool) {
	m := dsrName.FindStringSubmatch(r.Name)
	if m == nil {
		return balanced{}, false
	}
	vip, err := netip.ParseAddr(m[2])
	port, err1 := strconv.ParseUint(m[3], 10, 16)
	protocol, err2 := strconv.Atoi(m[5])
	return balanced{vip, int(port), protocol}, err == nil && err1 == nil && err2 == nil
}

// serves reports whether a load balancer of HNS is behind a rule. One without an address
// is of a node port, which the rule has with an address of the node.
func serves(l observed.LoadBalancer, b balanced) bool {
	return (len(l.VIPs) == 0 || slices.Contains(l.VIPs, b.vip)) && slices.ContainsFunc(l.Ports, func(p observed.LBPort) bool {
		return p.External == b.port && p.Protocol == b.protocol
	})
}

const rulesCommand = "vfpctrl /list-vmswitch-port; vfpctrl /port PORT /list-rule"

func vfpRuleStale(x *nodeFacts) look {
	_, endpoints := x.n.Listed(observed.ListEndpoints)
	_, lbs := x.n.Listed(observed.ListLoadBalancers)
	if !slices.ContainsFunc(x.n.Ports, func(p dump.Port) bool { return p.HasRules }) || !endpoints && !lbs {
		return lacks("No rules of VFP, or no list of HNS to compare them with; take them with: " + rulesCommand +
			"; Get-HnsEndpoint and Get-HnsPolicyList | ConvertTo-Json -Depth 20")
	}
	var out look
	seen := 0
	for _, p := range x.n.Ports {
		for _, r := range p.Rules {
			b, ok := dsrRule(r)
			if !ok {
				continue
			}
			seen++
			if lbs && !slices.ContainsFunc(x.n.LoadBalancers, func(l observed.LoadBalancer) bool { return serves(l, b) }) {
				out.hits = append(out.hits, hit{says: fmt.Sprintf("the rule %s serves %s, which no load balancer of HNS has any more", r.Name, b),
					evidence: []observed.Place{r.Place}})
				continue
			}
			for _, b := range r.Backends {
				a := b.Addr()
				if endpoints && !slices.ContainsFunc(x.n.Endpoints, func(e observed.Endpoint) bool { return e.Address == a }) && !x.hasIPv6Only(a) {
					out.hits = append(out.hits, hit{says: fmt.Sprintf("the rule %s sends to %s, and no endpoint of HNS has that address", r.Name, a),
						evidence: []observed.Place{r.Place}})
				}
			}
		}
	}
	if len(out.hits) == 0 && seen > 0 {
		out.healthy = fmt.Sprintf("%d load balancing rules of VFP have their objects in HNS", seen)
	}
	return out
}

// hasIPv6Only reports whether an address is of a family of which the lists of endpoints show
// none: an endpoint keeps its first address only.
func (x *nodeFacts) hasIPv6Only(a netip.Addr) bool {
	return a.Is6() && !slices.ContainsFunc(x.n.Endpoints, func(e observed.Endpoint) bool { return e.Address.Is6() })
}

// portOf is the listing of an endpoint's port.
func (x *nodeFacts) portOf(e observed.Endpoint) *dump.Port {
	for i := range x.n.Ports {
		if p := &x.n.Ports[i]; e.Port != "" && strings.EqualFold(p.Name, e.Port) || p.Friendly != "" && strings.EqualFold(p.Friendly, e.ID) {
			return p
		}
	}
	return nil
}

func vfpRuleMissing(x *nodeFacts) look {
	used := slices.ContainsFunc(x.n.Ports, func(p dump.Port) bool {
		return slices.ContainsFunc(p.Rules, func(r dump.Rule) bool { _, ok := dsrRule(r); return ok })
	})
	if _, listed := x.n.Listed(observed.ListLoadBalancers); !used || !listed {
		return look{} // vfpRuleStale says what to take
	}
	var out look
	for _, e := range x.n.Endpoints {
		p := x.portOf(e)
		if e.Remote || p == nil || !p.HasRules || p.Only != "" && p.Only != "LB_DSR" || !x.ofPods(e) || ofHost(e) {
			continue
		}
		for _, l := range x.n.LoadBalancers {
			if !l.DSR || len(l.VIPs) == 0 || !l.VIPs[0].Is4() || slices.ContainsFunc(p.Rules, func(r dump.Rule) bool {
				b, ok := dsrRule(r)
				return ok && serves(l, b)
			}) {
				continue
			}
			out.hits = append(out.hits,
				hit{says: fmt.Sprintf("the port of the endpoint %s has no rule for the load balancer of %s, which HNS has; other rules are there",
					e.Address, balanced{l.VIPs[0], l.Ports[0].External, l.Ports[0].Protocol}),
					evidence: []observed.Place{l.Place, p.Place, e.Place}})
		}
	}
	return out
}

func vfpPortBlocked(x *nodeFacts) look {
	var out look
	for _, p := range x.n.Ports {
		if p.Blocked != "TRUE" {
			continue
		}
		name := p.Name
		for _, e := range x.n.Endpoints {
			if q := x.portOf(e); q != nil && strings.EqualFold(q.Name, p.Name) {
				name = fmt.Sprintf("%s of the endpoint %s", p.Name, e.Address)
			}
		}
		out.hits = append(out.hits, hit{says: "the port " + name + " is blocked: nothing passes", evidence: []observed.Place{p.Place},
			write: "delete the pod, so that it gets another endpoint"})
	}
	return out
}
