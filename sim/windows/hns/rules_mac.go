package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// localMACs gives translated packets for local endpoints those endpoints' MAC
// addresses.
func (c *Compiler) localMACs(ls *layers, n *Network) {
	if n.Is(L2Tunnel) {
		// Every packet goes to the virtualisation host.
		return
	}
	for _, e := range c.local(n) {
		for _, a := range e.Addresses() {
			ls.add(layerL2, "(LOCAL_ENDPOINTS_OUT)", vfp.Out, &vfp.Rule{
				ID: "(to " + e.Name + ")", Priority: 1, Flags: vfp.Terminating, Fact: factLocalMAC,
				Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}},
				Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: mac(e.MacAddress)}},
			})
		}
	}
	if !n.Is(Overlay) {
		return
	}
	// Replies to a load balancer's source address go back to the host's port.
	seen := map[netip.Addr]bool{}
	c.frontends(ls, n, false, func(lb *LoadBalancer, _ LBPortMapping, _ netip.Addr) {
		a, err := netip.ParseAddr(lb.SourceVIP)
		if err != nil || seen[a] || a == c.management(n) {
			return
		}
		seen[a] = true
		ls.add(layerL2, "(LOCAL_ENDPOINTS_OUT)", vfp.Out, &vfp.Rule{
			ID: "(to source VIP " + a.String() + ")", Priority: 1, Flags: vfp.Terminating, Fact: factSourceVIPHost,
			Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}},
			Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: c.v.HostMAC}}, Origin: lb.Origin,
		})
	})
}

// hostMACs replaces the containers' MAC addresses by the host's on the way to the wire.
func (c *Compiler) hostMACs(ls *layers, n *Network) {
	ls.add(layerL2, "(L2_REWRITE_OUT)", vfp.Out, &vfp.Rule{
		ID: "(source MAC of " + n.Name + ")", Priority: 1, Flags: vfp.Terminating, Fact: factL2Rewrite,
		Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthSrc, EthSrc: c.v.HostMAC}}, Origin: n.Origin,
	})
	c.toEndpoints(ls, n, factL2Rewrite)
}

// toEndpoints gives packets from the wire the MAC address of the endpoint that
// has their destination address.
func (c *Compiler) toEndpoints(ls *layers, n *Network, f *evidence.Fact) {
	for _, e := range c.local(n) {
		for _, a := range e.Addresses() {
			ls.add(layerL2, "(L2_REWRITE_IN)", vfp.In, &vfp.Rule{
				ID: "(to " + e.Name + ")", Priority: 1, Flags: vfp.Terminating, Fact: f,
				Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}},
				Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: mac(e.MacAddress)}},
			})
		}
	}
}
