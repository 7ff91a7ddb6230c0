package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// dsrClient compiles row 1 of the DSR rules: the client's side.
func (c *Compiler) dsrClient(ls *layers, n *Network) {
	c.frontends(ls, n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
		targets := c.backends(lb, m, nil)
		for i := range targets {
			// The client's port only sets the address; the layers below find the MAC.
			targets[i].MAC = packet.MAC{}
		}
		c.addBalancing(ls, layerLBDSR, "LB_DSR_IPv4_OUT", vfp.Out, &vfp.Rule{
			ID:       ruleID("LB_DSR_", lb, c.named(n, lb), vip, m.ExternalPort, m.InternalPort, m.Protocol),
			Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, TTL: vfp.DefaultTTL,
			Cond: frontendCond(vip, m), Action: vfp.LBNAT{Targets: targets, BySource: c.bySource(m)}, Origin: lb.Origin, Fact: factDSRClient,
		})
	})
}

// named is the address of the node that the names of a load balancer's rules have.
func (c *Compiler) named(n *Network, lb *LoadBalancer) netip.Addr {
	if a := c.managementOf(n, lb.IPv6()); a.IsValid() {
		return a
	}
	return c.management(n)
}

// backendRules compiles rows 2 and 3: translation at the backend's own port.
func (c *Compiler) backendRules(ls *layers, n *Network, self *Endpoint) {
	c.frontends(ls, n, true, func(lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
		mine := c.backends(lb, m, func(b backend) bool { return b.Endpoint != nil && b.ID == self.ID })
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
			Cond: vfp.Cond{Protos: []packet.Proto{packet.Proto(m.Protocol)}, Src: []netip.Prefix{vfp.Host(vip)},
				SrcPorts: []vfp.PortRange{vfp.Port1(m.ExternalPort)}},
			Origin: lb.Origin, Fact: factDSRBackend,
		})
	})
}

// dsrHost compiles rows 4 and 5: the node's own side. own are its addresses of the
// family of the frontend.
func (c *Compiler) dsrHost(ls *layers, n *Network, lb *LoadBalancer, m LBPortMapping, vip netip.Addr, own []netip.Prefix) {
	local := c.backends(lb, m, backend.isLocal)
	all := c.backends(lb, m, nil)
	if len(local) > 0 {
		c.addBalancing(ls, layerHairpin, groupHairpinIn, vfp.In, &vfp.Rule{
			ID:       ruleID("HairPin_", lb, vip, m.ExternalPort, m.ExternalPort, m.Protocol),
			Priority: priorityLB, Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m),
			Action: vfp.LBNAT{Targets: local, KeepDst: true, Hairpin: true, BySource: c.bySource(m)}, Origin: lb.Origin, Fact: factDSRHairpin,
		})
	}
	id := ruleID("LB_HOST_", lb, c.named(n, lb), vip, m.ExternalPort, m.InternalPort, m.Protocol)
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
	if r.Cond.Src = own; len(own) == 0 {
		return
	}
	r.Given = &vfp.Given{Question: questionHostDSR, Answer: "translated"}
	ls.add(layer, group, vfp.Out, r)
}

// ownAddresses are the node's addresses: those of the network and of endpoints in the
// host's own compartment.
func (c *Compiler) ownAddresses(n *Network) []netip.Prefix {
	own := []netip.Prefix{vfp.Host(c.management(n))}
	if a := c.managementOf(n, true); a.IsValid() {
		own = append(own, vfp.Host(a))
	}
	for _, e := range c.local(n) {
		if c.ofHost(e) {
			for _, a := range e.Addresses() {
				own = append(own, vfp.Host(a))
			}
		}
	}
	return own
}
