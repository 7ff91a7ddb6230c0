package hns

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var tcpUDP = []struct {
	proto packet.Proto
	name  string
}{{packet.TCP, "TCP"}, {packet.UDP, "UDP"}}

// outboundNAT compiles the OutBoundNAT policies of an endpoint.
func (c *Compiler) outboundNAT(ls *layers, n *Network, e *Endpoint) {
	src := e.Address(false)
	if !src.IsValid() {
		return
	}
	i := -1
	for p, set := range eachValue[outboundNAT](e.Policies) {
		i++
		vip := set.vip
		if !vip.IsValid() {
			vip = c.management(n)
		}
		// Several policies are independent; a policy with Destinations is
		// the more specific one and comes first.
		base := uint16(prioritySNAT + 100*i)
		if set.only {
			base = priorityAllow + uint16(i)
		} else {
			exceptions := sameFamily(set.exceptions, src)
			if c.s.Build().Quirk("duplicate-base-exception-ignored") {
				exceptions = firstOfBase(exceptions)
			}
			for j, ex := range exceptions {
				ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
					ID: fmt.Sprintf("(exception %s)", ex), Priority: base + uint16(min(j, 80)), Action: vfp.Allow{}, Flags: vfp.Terminating,
					Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(src)}, Dst: []netip.Prefix{ex}},
					Origin: p.Origin, Fact: factExceptions,
				})
			}
			if vip.IsValid() {
				ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
					ID: fmt.Sprintf("(not to %s)", vip), Priority: base + 81, Action: vfp.Allow{}, Flags: vfp.Terminating,
					Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(src)}, Dst: []netip.Prefix{vfp.Host(vip)}},
					Origin: p.Origin, Fact: factNotToVIP,
				})
			}
		}
		fact := factOutboundNAT
		if set.only {
			fact = factDestinations
		}
		for _, t := range tcpUDP {
			ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
				ID:       fmt.Sprintf("SNAT_%s_OUTBOUNDNAT_%d_%s", t.name, i+1, vip),
				Priority: base + 90, Flags: vfp.Terminating | vfp.Stateful,
				Cond:   vfp.Cond{Protos: []packet.Proto{t.proto}, Src: []netip.Prefix{vfp.Host(src)}, Dst: sameFamily(set.destinations, src)},
				Action: vfp.DynNAT{Pool: c.pool(fmt.Sprintf("SLB_NATPOOL_IPV4_%s_%s%s", t.name, src, vip), e.ID, vip)}, Origin: p.Origin, Fact: fact,
			})
		}
	}
}

// firstOfBase keeps only the first of several prefixes with the same base
// address (Azure/application-gateway-kubernetes-ingress#535).
func firstOfBase(ps []netip.Prefix) []netip.Prefix {
	seen := map[netip.Addr]bool{}
	return slices.DeleteFunc(ps, func(p netip.Prefix) bool {
		dup := seen[p.Addr()]
		seen[p.Addr()] = true
		return dup
	})
}

// pool returns the NAT pool with that name, whose blocks come from the node's
// port range.
func (c *Compiler) pool(name, owner string, addr netip.Addr) *vfp.Pool {
	if p := c.pools[name]; p != nil {
		return p
	}
	p := &vfp.Pool{Name: name, Addr: addr}
	p.More = func() (uint16, bool) {
		b, err := c.s.ReservePorts(owner + " " + name + " " + strconv.Itoa(len(p.Blocks)))
		return b.First, err == nil
	}
	c.pools[name] = p
	return p
}

// sdnRoutes compiles route policies that hand packets to the host.
func (c *Compiler) sdnRoutes(ls *layers, n *Network, e *Endpoint) {
	add := func(r toHost, o *trace.Origin) {
		p := r.prefix
		ls.add(layerSDNRoute, "(SDN_ROUTE_OUT)", vfp.Out, &vfp.Rule{
			ID: "(route " + p.String() + ")", Priority: uint16(200 - p.Bits()), Flags: vfp.Terminating,
			Cond:   vfp.Cond{Dst: []netip.Prefix{p}},
			Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: c.v.HostMAC}},
			Origin: o, Fact: factSDNRoute,
		})
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

// acls compiles the access list of an endpoint.
func (c *Compiler) acls(ls *layers, e *Endpoint) {
	for i, p := range PoliciesOf(e.Policies, PolicyACL) {
		a, ok := p.value.(acl)
		if !ok {
			continue
		}
		r := &vfp.Rule{ID: a.id, Priority: a.priority, Action: vfp.Block{}, Flags: vfp.Terminating, Origin: p.Origin, Fact: factACL}
		if r.ID == "" {
			r.ID = fmt.Sprintf("(acl %d %s %s %d)", i+1, a.action, a.direction, a.priority)
		}
		if a.allow {
			r.Action, r.Flags = vfp.Allow{}, vfp.Terminating|vfp.Stateful
		}
		if a.pass {
			notModelled(r, "the ACL action Pass leads to the next tier of rules, which winlab does not model", factTierACL)
		}
		if a.namesSet {
			notModelled(r, "the ACL names an address set, which winlab does not model", factSetPolicy)
		}
		r.Cond.Protos = a.protos
		dir, group, src, dst := vfp.Out, "ACL_ENDPOINT_GROUP_IPV4_OUT", a.local, a.remote
		if a.in {
			dir, group, src, dst = vfp.In, "ACL_ENDPOINT_GROUP_IPV4_IN", a.remote, a.local
		}
		r.Cond.Src, r.Cond.SrcPorts, r.Cond.Dst, r.Cond.DstPorts = src.addresses, src.ports, dst.addresses, dst.ports
		ls.add(layerACL, group, dir, r)
	}
	if len(PoliciesOf(e.Policies, PolicyTierAcl)) > 0 {
		for _, d := range []vfp.Direction{vfp.Out, vfp.In} {
			ls.add(layerACL, "(TIER_ACL)", d, &vfp.Rule{ID: "(tier acl)", Fact: factTierACL,
				Action: vfp.NotModelled{Action: vfp.Block{}, Why: "the endpoint has TierAcl policies, which winlab does not model"}, Origin: PoliciesOf(e.Policies, PolicyTierAcl)[0].Origin})
		}
	}
}

// notModelled keeps what a rule matches and takes away what it does: why says
// what is not known about it.
func notModelled(r *vfp.Rule, why string, fact *evidence.Fact) {
	r.Action, r.Fact = vfp.NotModelled{Action: r.Action, Why: why}, fact
}

// l4proxy ends the way of packets that would meet a proxy: what it does to them
// is not known.
func (c *Compiler) l4proxy(ls *layers, e *Endpoint) {
	for _, typ := range []PolicyType{PolicyL4Proxy, PolicyL4WFPProxy} {
		for _, p := range PoliciesOf(e.Policies, typ) {
			r := &vfp.Rule{ID: "(" + string(typ) + ")", Origin: p.Origin, Fact: factL4Proxy,
				Cond:   vfp.Cond{Protos: []packet.Proto{packet.TCP}},
				Action: vfp.NotModelled{Action: vfp.Allow{}, Why: "the endpoint has an " + string(typ) + " policy, and what it does to TCP is not public"}}
			if s, ok := SettingsOf[L4ProxySettings](p); ok && s.Protocol == uint32(packet.UDP) {
				r.Cond.Protos[0] = packet.UDP
			}
			ls.add(layerL4Proxy, "(L4_PROXY_OUT)", vfp.Out, r)
		}
	}
}

// portMappings compiles hostPort mappings of an endpoint.
func (c *Compiler) portMappings(ls *layers, n *Network, e *Endpoint) {
	dst := e.Address(false)
	if !dst.IsValid() {
		return
	}
	i := 0
	for p, m := range eachValue[portMapping](e.Policies) {
		i++
		vip := c.mappingVIP(n, m)
		r := &vfp.Rule{
			ID: fmt.Sprintf("(port mapping %d %s:%d)", i, vip, m.external), Priority: priorityAllow, Flags: vfp.Terminating | vfp.Stateful,
			Cond:   vfp.Cond{Protos: []packet.Proto{m.proto}, Dst: []netip.Prefix{vfp.Host(vip)}, DstPorts: []vfp.PortRange{vfp.Port1(m.external)}},
			Action: vfp.NAT{Set: packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: dst, DstPort: m.internal}}, Origin: p.Origin, Fact: factPortMapping,
		}
		if m.anyAddress != "" {
			notModelled(r, "the port mapping is for the address "+m.anyAddress+", and what HNS makes of that is not public; without a hostIP it would be for the node's own address", factAnyHostIP)
		}
		ls.add(layerNAT, groupNATIn, vfp.In, r)
	}
}

// mappingVIP is the address of a port mapping. For one with the VIP 0.0.0.0 it is the
// address that a packet would have if HNS took that for any.
func (c *Compiler) mappingVIP(n *Network, m portMapping) netip.Addr {
	if m.vip.IsValid() {
		return m.vip
	}
	return c.management(n)
}

// Bindings returns the addresses and ports of the node that port mappings give
// to endpoints of a network.
func (c *Compiler) Bindings(n *Network) []Binding {
	var bs []Binding
	if n.Is(Transparent, NAT) {
		return nil
	}
	for _, e := range c.local(n) {
		for _, m := range eachValue[portMapping](e.Policies) {
			bs = append(bs, Binding{c.mappingVIP(n, m), m.proto, m.external, e})
		}
	}
	return bs
}

// paRoute lets VFP route what leaves the node by itself: tunnel packets, and
// frames that are still addressed to the given MAC address.
func (c *Compiler) paRoute(ls *layers, n *Network, own packet.MAC) {
	if n.Is(Overlay) {
		ls.add(layerPARoute, groupPARoute, vfp.Out, &vfp.Rule{
			ID: "PA_ROUTE", Priority: priorityPARoute, Action: vfp.PARoute{Next: c.v.Router}, Flags: vfp.Terminating, Fact: factPARoute,
			Cond: vfp.Cond{Protos: []packet.Proto{packet.UDP}, DstPorts: []vfp.PortRange{vfp.Port1(tunnelPort(n))}, Src: []netip.Prefix{vfp.Host(c.management(n))}},
		})
	}
	ls.add(layerPARoute, "(PA_ROUTE_OUT)", vfp.Out, &vfp.Rule{
		ID: "PA_ROUTE", Priority: priorityPARoute, Action: vfp.PARoute{Next: c.v.Router}, Flags: vfp.Terminating, Fact: factPARoute,
		Cond: vfp.Cond{DstMAC: own},
	})
}

// localMACs sends translated packets for local endpoints straight to them.
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
				Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: mac(e.MacAddress)}},
			})
		}
	}
	if !n.Is(Overlay) {
		return
	}
	// Replies to a load balancer's source address go back to the host's port.
	seen := map[netip.Addr]bool{}
	c.frontends(n, false, func(lb *LoadBalancer, _ LBPortMapping, _ netip.Addr) {
		a, err := netip.ParseAddr(lb.SourceVIP)
		if err != nil || seen[a] || a == c.management(n) {
			return
		}
		seen[a] = true
		ls.add(layerL2, "(LOCAL_ENDPOINTS_OUT)", vfp.Out, &vfp.Rule{
			ID: "(to source VIP " + a.String() + ")", Priority: 1, Flags: vfp.Terminating, Fact: factSourceVIPHost,
			Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}},
			Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: c.v.HostMAC}}, Origin: lb.Origin,
		})
	})
}

// hostMACs hides the containers' MAC addresses from the wire.
func (c *Compiler) hostMACs(ls *layers, n *Network) {
	ls.add(layerL2, "(L2_REWRITE_OUT)", vfp.Out, &vfp.Rule{
		ID: "(source MAC of " + n.Name + ")", Priority: 1, Flags: vfp.Terminating, Fact: factL2Rewrite,
		Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthSrc, EthSrc: c.v.HostMAC}}, Origin: n.Origin,
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
				Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: mac(e.MacAddress)}},
			})
		}
	}
}
