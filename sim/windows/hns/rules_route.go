package hns

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// sdnRoutes compiles route policies that hand packets to the host.
func (c *Compiler) sdnRoutes(ls *layers, n *Network, e *Endpoint) {
	add := func(r toHost, o *trace.Origin) {
		p := r.prefix
		rule := &vfp.Rule{
			ID: "(route " + p.String() + ")", Priority: uint16(200 - p.Bits()), Flags: vfp.Terminating,
			Cond:   vfp.Cond{Dst: []netip.Prefix{p.Prefix}},
			Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: c.v.HostMAC}},
			Origin: o, Fact: factSDNRoute,
		}
		oddDestination(rule, p)
		ls.add(layerSDNRoute, "(SDN_ROUTE_OUT)", vfp.Out, rule)
	}
	for p, r := range eachValue[toHost](e.Policies) {
		add(r, p.Origin)
	}
	for _, r := range c.s.ListRoutes(func(r *Route) bool { return slices.Contains(r.HostComputeEndpoints, e.ID) }) {
		for _, t := range r.toHost {
			add(t, r.Origin)
		}
	}
}

// oddDestination leaves open what a route does whose DestinationPrefix is not a plain prefix.
func oddDestination(r *vfp.Rule, p prefix) {
	switch {
	case p.bare:
		notModelled(r, "the DestinationPrefix is the address "+p.Addr().String()+
			" without a length, and what HNS does with it is not documented; write "+p.String(), factOddPrefix)
	case p.hostBits:
		notModelled(r, "the DestinationPrefix has host bits, and what HNS does with it is not documented; write "+p.String(), factOddPrefix)
	}
}

// HostRoute is a route that HNS puts into the host's table.
type HostRoute struct {
	Prefix  netip.Prefix
	Network *Network
	// Own makes the host send packets to its own address to the switch.
	Own bool
	// Why names the policy.
	Why string
}

// Routes returns the routes that HNS gives the host for these networks.
func (c *Compiler) Routes(networks []*Network) []HostRoute {
	var rs []HostRoute
	for _, n := range networks {
		if n.Is(Overlay) && len(PoliciesOf(n.Policies, PolicyHostRoute)) > 0 && c.s.Build().Has(builds.HostRoute) {
			for _, s := range n.Subnets() {
				rs = append(rs, HostRoute{Prefix: s.Prefix(), Network: n, Why: "HostRoute policy of network " + n.Name})
			}
		}
		for _, v6 := range []bool{false, true} {
			if why, m := c.localRouted(n, v6), c.managementOf(n, v6); why != "" && m.IsValid() {
				rs = append(rs, HostRoute{Prefix: vfp.Host(m), Network: n, Own: true, Why: why})
			}
		}
	}
	return rs
}

// localRouted says why the host routes packets to its own address of a family into
// the switch, "" when it does not (hns.local-route-is-for-the-address).
func (c *Compiler) localRouted(n *Network, v6 bool) string {
	if c.s.Build().Has(builds.LocalRoutedVIP) {
		for _, lb := range c.s.ListLoadBalancers(func(lb *LoadBalancer) bool { return lb.IPv6() == v6 }) {
			for _, m := range lb.PortMappings {
				if m.Flags&PortFlagLocalRoutedVIP != 0 {
					return fmt.Sprintf("LocalRoutedVIP of load balancer %s", lbName(lb, m))
				}
			}
		}
	}
	if c.s.Build().Has(builds.LocalRoutedHostPort) {
		for _, e := range c.local(n) {
			for _, m := range mappings(e) {
				if m.localRouted && m.v6 == v6 {
					return "LocalRoutedVip of a port mapping of endpoint " + e.Name
				}
			}
		}
	}
	return ""
}
