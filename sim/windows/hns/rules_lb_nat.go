package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

func (c *Compiler) nonDSR(ls *layers, n *Network, lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
	if a, err := netip.ParseAddr(lb.SourceVIP); err == nil {
		c.nonDSRFrom(ls, lb, m, vip, a, factNonDSR, nil)
		return
	}
	c.withQuirk(builds.EmptySourceVIPUsesVIP, func(has bool, given *vfp.Given) {
		if has {
			c.nonDSRFrom(ls, lb, m, vip, vip, builds.EmptySourceVIPUsesVIP.Fact(), given)
		} else {
			c.nonDSRFrom(ls, lb, m, vip, c.managementOf(n, lb.IPv6()), factSourceVIP, given)
		}
	})
}

// nonDSRFrom adds the rules of a load balancer that translates to a source.
func (c *Compiler) nonDSRFrom(ls *layers, lb *LoadBalancer, m LBPortMapping, vip, source netip.Addr, fact *evidence.Fact,
	given *vfp.Given) {
	if !source.IsValid() || lb.IPv6() && source.Is4() {
		c.noSource(ls, lb, m, vip)
		return
	}
	name := "LB " + lb.ID
	if given != nil {
		name += " from " + source.String()
	}
	pool := c.pool(name, lb.ID, source)
	if len(pool.Blocks) == 0 && !lb.Ports.IsZero() {
		pool.Blocks = []uint16{lb.Ports.First}
	}
	balance := vfp.LBNAT{Targets: c.backends(lb, m, nil), Pool: pool, KeepDst: c.keepsVIP(m), BySource: c.bySource(m), Hairpin: true}
	r := &vfp.Rule{
		ID: "(" + ruleID("LB_", lb, vip, m.ExternalPort, m.InternalPort, m.Protocol) + ")", Priority: priorityLB,
		Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m), Action: balance, Origin: lb.Origin, Fact: fact, Given: given,
	}
	if len(lb.FrontendVIPs) == 0 && c.s.excluded(m.ExternalPort) {
		r.Given = &vfp.Given{Question: questionExcludedPort, Answer: "served"}
	}
	c.nodePortBroken(ls, layerSLB, "(SLB_GROUP_LB_IPv4_IN)", vfp.In, r, lb)
	c.addBalancing(ls, layerSLB, "(SLB_GROUP_LB_IPv4_IN)", vfp.In, r)
	if m.Flags&PortFlagLocalRoutedVIP != 0 && c.s.Build().Has(builds.LocalRoutedVIP) {
		own := *r
		balance.Hairpin = false
		own.Action, own.Fact = balance, factLocalRouted
		own.ID = "(" + ruleID("LB_", lb, vip, m.ExternalPort, m.InternalPort, m.Protocol) + "_host)"
		ls.add(layerHostLB, "("+groupHostLBOut+")", vfp.Out, &own)
	}
}

// noSource leaves open what a load balancer for IPv6 without DSR does that has no IPv6
// address to translate sources to.
func (c *Compiler) noSource(ls *layers, lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
	r := &vfp.Rule{ID: "(" + ruleID("LB_", lb, vip, m.ExternalPort, m.InternalPort, m.Protocol) + ")", Priority: priorityLB,
		Flags: vfp.Terminating | vfp.Stateful, Cond: frontendCond(vip, m), Action: vfp.Allow{}, Origin: lb.Origin}
	notModelled(r, "the load balancer is for IPv6 and translates source addresses, but the node has no IPv6 address to translate them to",
		factOpenNAT6)
	c.addBalancing(ls, layerSLB, "(SLB_GROUP_LB_IPv4_IN)", vfp.In, r)
}
