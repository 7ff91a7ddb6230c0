package hns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// lbName names a load balancer in texts: "10.96.0.50:80/TCP".
func lbName(lb *LoadBalancer, m LBPortMapping) string {
	vip := strings.Join(lb.FrontendVIPs, ",")
	if vip == "" {
		vip = "node"
	}
	return fmt.Sprintf("%s:%d/%s", vip, m.ExternalPort, packet.Proto(m.Protocol))
}

// backends are the targets of a load balancer that keep says yes to; nil keeps all.
// Local ones carry their MAC address.
func (c *Compiler) backends(lb *LoadBalancer, m LBPortMapping, keep func(backend) bool) []vfp.Target {
	var ts []vfp.Target
	for _, id := range lb.HostComputeEndpoints {
		b, ok := c.s.backend(id)
		if !ok {
			continue
		}
		if keep != nil && !keep(b) {
			continue
		}
		if b.Endpoint == nil {
			ts = append(ts, unseenTarget(id, m.InternalPort))
			continue
		}
		a := b.Address(lb.IPv6())
		if !a.IsValid() {
			continue
		}
		t := vfp.Target{Addr: a, Port: m.InternalPort}
		if n := c.s.Network(b.HostComputeNetwork); b.isLocal() && n != nil && !n.Is(L2Tunnel) {
			t.MAC = c.macOf(t, b)
		}
		if b.deleted {
			t = c.staleTarget(t, b)
		}
		ts = append(ts, t)
	}
	return ts
}

// frontends calls f for each address and port that a load balancer serves. Rules
// that f adds for one that a dump shows as not ready are not modelled.
func (c *Compiler) frontends(ls *layers, n *Network, dsr bool, f func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr)) {
	for _, lb := range c.s.ListLoadBalancers(func(lb *LoadBalancer) bool { return lb.DSR() == dsr }) {
		if !c.serves(lb, n) {
			continue
		}
		for _, vip := range lb.vips(c.managementOf(n, lb.IPv6())) {
			if vip.Is6() != lb.IPv6() {
				continue
			}
			ls.doubt = lb.NotReady
			for _, m := range lb.PortMappings {
				f(lb, m, vip)
			}
			ls.doubt = ""
		}
	}
}

// serves reports whether a load balancer has an endpoint on the network, or none at
// all. One whose endpoints are all unknown could be on any.
func (c *Compiler) serves(lb *LoadBalancer, n *Network) bool {
	known, unseen := false, false
	for _, id := range lb.HostComputeEndpoints {
		b, ok := c.s.backend(id)
		switch {
		case ok && b.Endpoint == nil:
			unseen = true
		case ok && b.HostComputeNetwork == n.ID:
			return true
		case ok:
			known = true
		}
	}
	return len(lb.HostComputeEndpoints) == 0 || unseen && !known
}

// ruleID is the name that VFP gives a load balancing rule; the tag replaces the
// part that HNS generates.
func ruleID(prefix string, lb *LoadBalancer, parts ...any) string {
	tag := strings.ToUpper(strings.ReplaceAll(lb.ID, "-", ""))
	if len(tag) > 5 {
		tag = tag[:5]
	}
	s := prefix + tag
	for _, p := range parts {
		s += fmt.Sprintf("_%v", p)
	}
	return s
}

func frontendCond(vip netip.Addr, m LBPortMapping) vfp.Cond {
	return vfp.Cond{Protos: []packet.Proto{packet.Proto(m.Protocol)}, Dst: []netip.Prefix{vfp.Host(vip)},
		DstPorts: []vfp.PortRange{vfp.Port1(m.ExternalPort)}}
}

// bySource reports whether a mapping's distribution keeps a client on one
// backend, which builds before session affinity ignore.
func (c *Compiler) bySource(m LBPortMapping) bool {
	return m.DistributionType != DistributionNone && c.s.Build().Has(builds.SessionAffinity)
}

// keepsVIP reports whether the packet is delivered with the frontend address.
func (c *Compiler) keepsVIP(m LBPortMapping) bool {
	const both = PortFlagUseMux | PortFlagPreserveDIP
	return m.Flags&both == both && c.s.Build().Has(builds.PreserveDestination)
}

// hostLoadBalancers compiles the rules of the host's port: all of non-DSR,
// rows 4 and 5 of DSR.
func (c *Compiler) hostLoadBalancers(ls *layers, networks []*Network) {
	seen := map[*LoadBalancer]bool{}
	for _, n := range networks {
		c.twoEndpoints(ls, n)
		own := c.ownAddresses(n)
		c.frontends(ls, n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
			c.dsrHost(ls, n, lb, m, vip, ofFamily(own, vip.Is6()))
		})
		c.frontends(ls, n, false, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
			if len(lb.FrontendVIPs) == 0 && !c.hasContainer(networks) {
				return
			}
			if len(lb.HostComputeEndpoints) == 0 && seen[lb] {
				return
			}
			seen[lb] = true
			c.nonDSR(ls, n, lb, m, vip)
		})
	}
}

// hasContainer reports whether a container is attached to one of the networks; the
// node's own endpoints do not count.
func (c *Compiler) hasContainer(networks []*Network) bool {
	return slices.ContainsFunc(networks, func(n *Network) bool {
		return slices.ContainsFunc(c.local(n), func(e *Endpoint) bool { return !c.ofHost(e) })
	})
}

// ofHost reports whether an endpoint is in the node's own compartment.
func (c *Compiler) ofHost(e *Endpoint) bool {
	ns := c.s.Namespace(e.HostComputeNamespace)
	return ns != nil && ns.Type == NamespaceHostDefault
}
