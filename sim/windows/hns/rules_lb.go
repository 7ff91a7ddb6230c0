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

// backends splits the endpoints of a load balancer into targets. Local ones
// carry their MAC address.
func (c *Compiler) backends(lb *LoadBalancer, m LBPortMapping, keep func(*Endpoint) bool) []vfp.Target {
	var ts []vfp.Target
	for _, id := range lb.HostComputeEndpoints {
		e := c.s.Endpoint(id)
		if e == nil || keep != nil && !keep(e) {
			continue
		}
		a := e.Address(lb.IPv6())
		if !a.IsValid() {
			continue
		}
		t := vfp.Target{Addr: a, Port: m.InternalPort}
		if e.Attached() && !c.s.Network(e.HostComputeNetwork).Is(L2Tunnel) {
			t.MAC = mac(e.MacAddress)
		}
		ts = append(ts, t)
	}
	return ts
}

func isLocal(e *Endpoint) bool { return e.Attached() }

// frontends calls f for each address and port that a load balancer serves.
func (c *Compiler) frontends(n *Network, dsr bool, f func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr)) {
	for _, lb := range c.s.ListLoadBalancers(func(lb *LoadBalancer) bool { return lb.DSR() == dsr }) {
		if !c.serves(lb, n) {
			continue
		}
		for _, vip := range lb.VIPs(c.management(n)) {
			if vip.Is6() != lb.IPv6() {
				continue
			}
			for _, m := range lb.PortMappings {
				f(lb, m, vip)
			}
		}
	}
}

// serves reports whether a load balancer has an endpoint on the network, or none at all.
func (c *Compiler) serves(lb *LoadBalancer, n *Network) bool {
	for _, id := range lb.HostComputeEndpoints {
		if e := c.s.Endpoint(id); e != nil && e.HostComputeNetwork == n.ID {
			return true
		}
	}
	return len(lb.HostComputeEndpoints) == 0
}

// ruleID is the name that VFP gives a load balancing rule; tag stands for the
// part that HNS makes up.
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
	return vfp.Cond{Protos: []packet.Proto{packet.Proto(m.Protocol)}, Dst: []netip.Prefix{vfp.Host(vip)}, DstPorts: []vfp.PortRange{vfp.Port1(m.ExternalPort)}}
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

// dsrClient compiles row 1 of the DSR rules: the client's side.
func (c *Compiler) dsrClient(ls *layers, n *Network) {
	mgmt := c.management(n)
	c.frontends(n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
		targets := c.backends(lb, m, nil)
		for i := range targets {
			// The client's port sends on by address; the layers below find the MAC.
			targets[i].MAC = packet.MAC{}
		}
		ls.add(layerLBDSR, "LB_DSR_IPv4_OUT", vfp.Out, &vfp.Rule{
			ID:       ruleID("LB_DSR_", lb, mgmt, vip, m.ExternalPort, m.InternalPort, m.Protocol),
			Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, TTL: vfp.DefaultTTL,
			Cond: frontendCond(vip, m), Action: vfp.LBNAT{Targets: targets, BySource: c.bySource(m)}, Origin: lb.Origin, Fact: factDSRClient,
		})
	})
}

// backendRules compiles rows 2 and 3: translation at the backend's own port.
func (c *Compiler) backendRules(ls *layers, n *Network, self *Endpoint) {
	c.frontends(n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
		mine := c.backends(lb, m, func(e *Endpoint) bool { return e.ID == self.ID })
		if len(mine) == 0 || c.keepsVIP(m) {
			return
		}
		ls.add(layerNAT, groupNATIn, vfp.In, &vfp.Rule{
			ID:       ruleID("NAT_", lb, vip, m.ExternalPort, m.Protocol),
			Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m),
			Action: vfp.NAT{Set: packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: mine[0].Addr, DstPort: mine[0].Port}},
			Origin: lb.Origin, Fact: factDSRBackend,
		})
		ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
			ID:       ruleID("ALLOW_NAT_", lb, vip, m.ExternalPort, m.Protocol),
			Priority: priorityAllow, Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Protos: []packet.Proto{packet.Proto(m.Protocol)}, Src: []netip.Prefix{vfp.Host(vip)}, SrcPorts: []vfp.PortRange{vfp.Port1(m.ExternalPort)}},
			Origin: lb.Origin, Fact: factDSRBackend,
		})
	})
}

// hostLoadBalancers compiles the rules of the host's port: all of non-DSR,
// rows 4 and 5 of DSR.
func (c *Compiler) hostLoadBalancers(ls *layers, networks []*Network) {
	seen := map[*LoadBalancer]bool{}
	for _, n := range networks {
		c.frontends(n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) { c.dsrHost(ls, n, lb, m, vip) })
		c.frontends(n, false, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
			if len(lb.FrontendVIPs) == 0 && !c.hasPod(networks) {
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

func (c *Compiler) dsrHost(ls *layers, n *Network, lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
	local := c.backends(lb, m, isLocal)
	all := c.backends(lb, m, nil)
	if len(local) > 0 {
		ls.add(layerHairpin, groupHairpinIn, vfp.In, &vfp.Rule{
			ID:       ruleID("HairPin_", lb, vip, m.ExternalPort, m.ExternalPort, m.Protocol),
			Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m),
			Action: vfp.LBNAT{Targets: local, KeepDst: true, Hairpin: true, BySource: c.bySource(m)}, Origin: lb.Origin, Fact: factDSRHairpin,
		})
	}
	id := ruleID("LB_HOST_", lb, c.management(n), vip, m.ExternalPort, m.InternalPort, m.Protocol)
	layer, group := layerHostLB, groupHostLBOut
	if len(local) == len(all) {
		id = ruleID("LB_", lb, vip, m.ExternalPort, m.ExternalPort, m.Protocol)
		layer, group = layerSLB, groupSLBOut
	}
	r := &vfp.Rule{
		ID: id, Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m),
		Action: vfp.LBNAT{Targets: all}, Origin: lb.Origin, Fact: factDSRClient,
	}
	// The rule is for what the node itself sends: a packet from elsewhere that
	// the hairpin rule sends back passes the port on its way out too.
	if r.Cond.Src = c.ownAddresses(n, vip); len(r.Cond.Src) == 0 {
		return
	}
	switch c.v.HostDSR {
	case "untranslated":
		return
	case "translated":
	default:
		notModelled(r, "a packet of the node itself meets the load balancer rule of a DSR Service; whether this build translates it is not public (parameter host-to-dsr-service)", factHostDSR)
	}
	ls.add(layer, group, vfp.Out, r)
}

// hasPod reports whether a container is attached to one of the networks; the
// node's own endpoints do not count.
func (c *Compiler) hasPod(networks []*Network) bool {
	return slices.ContainsFunc(networks, func(n *Network) bool {
		return slices.ContainsFunc(c.local(n), func(e *Endpoint) bool { return !c.ofHost(e) })
	})
}

// ofHost reports whether an endpoint is in the node's own compartment.
func (c *Compiler) ofHost(e *Endpoint) bool {
	ns := c.s.Namespace(e.HostComputeNamespace)
	return ns != nil && ns.Type == NamespaceHostDefault
}

// ownAddresses are the node's addresses of the family of another: that of the
// network and those of endpoints in the host's own compartment.
func (c *Compiler) ownAddresses(n *Network, like netip.Addr) []netip.Prefix {
	own := []netip.Prefix{vfp.Host(c.management(n))}
	for _, e := range c.local(n) {
		if c.ofHost(e) {
			for _, a := range e.Addresses() {
				own = append(own, vfp.Host(a))
			}
		}
	}
	return sameFamily(own, like)
}

func (c *Compiler) nonDSR(ls *layers, n *Network, lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
	source, fact := c.management(n), factSourceVIP
	if a, err := netip.ParseAddr(lb.SourceVIP); err == nil {
		source, fact = a, factNonDSR
	} else if c.s.Build().Quirk("empty-source-vip-uses-vip") {
		source = vip
	}
	if lb.IPv6() && source.Is4() {
		return
	}
	pool := c.pool("LB "+lb.ID, lb.ID, source)
	if len(pool.Blocks) == 0 && !lb.Ports.IsZero() {
		pool.Blocks = []uint16{lb.Ports.First}
	}
	balance := vfp.LBNAT{Targets: c.backends(lb, m, nil), Pool: pool, KeepDst: c.keepsVIP(m), BySource: c.bySource(m), Hairpin: true}
	r := &vfp.Rule{
		ID: "(" + ruleID("LB_", lb, vip, m.ExternalPort, m.InternalPort, m.Protocol) + ")", Priority: priorityLB,
		Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m), Action: balance, Origin: lb.Origin, Fact: fact,
	}
	ls.add(layerSLB, "(SLB_GROUP_LB_IPv4_IN)", vfp.In, r)
	if m.Flags&PortFlagLocalRoutedVIP != 0 && c.s.Build().Has(builds.LocalRoutedVIP) {
		own := *r
		balance.Hairpin = false
		own.Action, own.Fact = balance, factLocalRouted
		own.ID = "(" + ruleID("LB_", lb, vip, m.ExternalPort, m.InternalPort, m.Protocol) + "_host)"
		ls.add(layerHostLB, "("+groupHostLBOut+")", vfp.Out, &own)
	}
}
