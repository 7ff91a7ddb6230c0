package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

func (c *Compiler) nonDSR(ls *layers, n *Network, lb *LoadBalancer, m LBPortMapping, vip netip.Addr) {
	source, fact := c.management(n), factSourceVIP
	if a, err := netip.ParseAddr(lb.SourceVIP); err == nil {
		source, fact = a, factNonDSR
	} else if c.s.Build().Quirk(builds.EmptySourceVIPUsesVIP) {
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
