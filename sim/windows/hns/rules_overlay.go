package hns

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// encap compiles the routes to other nodes of an overlay network. On the
// host's port they are limited to packets with an address of the overlay.
func (c *Compiler) encap(ls *layers, n *Network, host bool) {
	var src []netip.Prefix
	fact := factEncap
	if host {
		fact = factHostEncap
		for _, s := range n.Subnets() {
			if p := s.Prefix(); p.IsValid() {
				src = append(src, p)
			}
		}
		if len(src) == 0 {
			return // no address of the overlay that a packet could come from
		}
	}
	pa := c.management(n)
	add := func(id string, to netip.Prefix, remote netip.Addr, vni uint32, inner packet.MAC, f *evidence.Fact, o *trace.Origin) *vfp.Rule {
		if host {
			f = factHostEncap
		}
		r := &vfp.Rule{
			ID: id, Priority: priorityEncap + uint16(32-min(to.Bits(), 32)), Flags: vfp.Terminating,
			Cond: vfp.Cond{Src: src, Dst: []netip.Prefix{to}},
			Action: vfp.RouteEncap{Tunnel: &vfp.Tunnel{Kind: packet.VXLAN, Src: pa, Dst: remote, VNI: vni, Port: tunnelPort(n), InnerDst: inner,
				InnerSrc: c.DrMAC(n)}},
			Origin: o, Fact: f,
		}
		ls.add(layerEncap, "(ENCAP_OUT)", vfp.Out, r)
		return r
	}
	for p, r := range eachValue[RemoteSubnet](n.Policies) {
		oddDestination(add(fmt.Sprintf("(remote subnet %s)", r.Prefix), r.Prefix, r.Provider, r.vni, r.router, fact, p.Origin), r.odd)
	}
	vsid, _ := n.VSID()
	for _, e := range c.s.EndpointsOf(n.ID) {
		remote := e.ProviderAddress()
		if !e.Remote() || !remote.IsValid() || remote == pa {
			continue
		}
		for _, a := range e.Addresses() {
			if a == remote {
				// A node's own address: it is on the underlay.
				continue
			}
			r := add(fmt.Sprintf("(remote endpoint %s)", a), vfp.Host(a), remote, vsid, n.routerFor(a, remote, mac(e.MacAddress)),
				factRemoteEndpoint, e.Origin)
			if c.localAt(a) != nil {
				r.Given = &vfp.Given{Question: questionTwoEndpoints, Answer: "remote"}
			}
		}
	}
}

// routerFor is the MAC address that the inner frame to an address behind another node is
// for: that of the route to its prefix by the same node, else the remote endpoint's own
// (hns.remote-endpoint-router).
func (n *Network) routerFor(a, provider netip.Addr, own packet.MAC) packet.MAC {
	for _, r := range eachValue[RemoteSubnet](n.Policies) {
		if r.Prefix.Contains(a) && r.Provider == provider && !r.router.IsZero() {
			return r.router
		}
	}
	return own
}

// decap compiles the opening of tunnel packets. No endpoint, no rule
// (projectcalico/calico#8569).
func (c *Compiler) decap(ls *layers, n *Network) {
	if len(c.local(n)) == 0 {
		return
	}
	if c.s.restarts == 0 {
		c.decapRules(ls, n, nil)
	} else {
		c.withQuirk(builds.RestartLosesDecap, func(has bool, given *vfp.Given) {
			if !has {
				c.decapRules(ls, n, given)
			}
		})
	}
	if _, ok := n.VSID(); !ok || c.s.restarts > 0 && c.s.Build().Quirk(builds.RestartLosesDecap) {
		return
	}
	c.toEndpoints(ls, n, factInnerL2)
}

// decapRules open the tunnels of a network on the external port.
func (c *Compiler) decapRules(ls *layers, n *Network, given *vfp.Given) {
	vsid, ok := n.VSID()
	if !ok {
		return
	}
	pa := c.management(n)
	port := tunnelPort(n)
	ls.add(layerDecap, "(DECAP_IPv4_IN)", vfp.In, &vfp.Rule{
		ID: fmt.Sprintf("(decap VNI %d)", vsid), Priority: priorityAllow, Flags: vfp.Terminating, Given: given,
		Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(pa)}, Tunnel: vfp.TunnelCond{Port: port, Kind: packet.VXLAN, VNI: vsid}},
		Action: vfp.Decap{Kind: packet.VXLAN}, Origin: n.Origin, Fact: factDecap,
	})
	ls.add(layerDecap, "(DECAP_IPv4_IN)", vfp.In, &vfp.Rule{
		ID: "(unknown VNI)", Priority: prioritySNAT, Action: vfp.Block{Reason: trace.UnknownVNI}, Flags: vfp.Terminating, Given: given,
		Cond:   vfp.Cond{Protos: []packet.Proto{packet.UDP}, Dst: []netip.Prefix{vfp.Host(pa)}, DstPorts: []vfp.PortRange{vfp.Port1(port)}},
		Origin: n.Origin, Fact: factDecap,
	})
}

// paRoute lets VFP route what leaves the node by itself: tunnel packets, and
// frames that are still addressed to the given MAC address.
func (c *Compiler) paRoute(ls *layers, n *Network, own packet.MAC) {
	if n.Is(Overlay) {
		ls.add(layerPARoute, groupPARoute, vfp.Out, &vfp.Rule{
			ID: "PA_ROUTE", Priority: priorityPARoute, Action: vfp.PARoute{Next: c.v.Router}, Flags: vfp.Terminating, Fact: factPARoute,
			Cond: vfp.Cond{Protos: []packet.Proto{packet.UDP}, DstPorts: []vfp.PortRange{vfp.Port1(tunnelPort(n))},
				Src: []netip.Prefix{vfp.Host(c.management(n))}},
		})
	}
	ls.add(layerPARoute, "(PA_ROUTE_OUT)", vfp.Out, &vfp.Rule{
		ID: "PA_ROUTE", Priority: priorityPARoute, Action: vfp.PARoute{Next: c.v.Router}, Flags: vfp.Terminating, Fact: factPARoute,
		Cond: vfp.Cond{DstMAC: own},
	})
}
