package hns

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// prefixes parses a list of addresses and CIDRs; bad entries were refused when
// the policy was accepted.
func prefixes(list []string) []netip.Prefix {
	var ps []netip.Prefix
	for _, t := range list {
		t = strings.TrimSpace(t)
		if a, err := netip.ParseAddr(t); err == nil {
			ps = append(ps, vfp.Host(a))
		} else if p, err := netip.ParsePrefix(t); err == nil {
			ps = append(ps, p.Masked())
		}
	}
	return ps
}

// sameFamily keeps the prefixes of an address's family.
func sameFamily(ps []netip.Prefix, a netip.Addr) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(ps), func(p netip.Prefix) bool { return p.Addr().Is6() != a.Is6() })
}

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
	for i, p := range PoliciesOf(e.Policies, PolicyOutBoundNAT) {
		set, err := DecodePolicy[OutBoundNATSettings](p)
		if err != nil {
			continue
		}
		vip, err := netip.ParseAddr(set.VirtualIP)
		if err != nil {
			vip = c.management(n)
		}
		// Several policies are independent; a policy with Destinations is
		// the more specific one and comes first.
		base := uint16(prioritySNAT + 100*i)
		if len(set.Destinations) > 0 {
			base = priorityAllow + uint16(i)
		} else {
			exceptions := sameFamily(prefixes(set.Exceptions), src)
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
		if len(set.Destinations) > 0 {
			fact = factDestinations
		}
		for _, t := range tcpUDP {
			ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
				ID:       fmt.Sprintf("SNAT_%s_OUTBOUNDNAT_%d_%s", t.name, i+1, vip),
				Priority: base + 90, Flags: vfp.Terminating | vfp.Stateful,
				Cond:   vfp.Cond{Protos: []packet.Proto{t.proto}, Src: []netip.Prefix{vfp.Host(src)}, Dst: sameFamily(prefixes(set.Destinations), src)},
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
	add := func(s SDNRouteSettings, o *trace.Origin) {
		p, err := netip.ParsePrefix(s.DestinationPrefix)
		if err != nil || !s.NeedEncap {
			return
		}
		ls.add(layerSDNRoute, "(SDN_ROUTE_OUT)", vfp.Out, &vfp.Rule{
			ID: "(route " + p.Masked().String() + ")", Priority: uint16(200 - p.Bits()), Flags: vfp.Terminating,
			Cond:   vfp.Cond{Dst: []netip.Prefix{p.Masked()}},
			Action: vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: c.v.HostMAC}},
			Origin: o, Fact: factSDNRoute,
		})
	}
	for _, p := range PoliciesOf(e.Policies, PolicySDNRoute) {
		if s, err := DecodePolicy[SDNRouteSettings](p); err == nil {
			add(s, p.Origin)
		}
	}
	for _, r := range c.s.ListRoutes(func(r *Route) bool { return slices.Contains(r.HostComputeEndpoints, e.ID) }) {
		for _, s := range r.Setting {
			add(s, r.Origin)
		}
	}
}

// acls compiles the access list of an endpoint.
func (c *Compiler) acls(ls *layers, e *Endpoint) {
	for i, p := range PoliciesOf(e.Policies, PolicyACL) {
		a, err := DecodePolicy[ACLSettings](p)
		if err != nil || strings.EqualFold(a.RuleType, ACLRuleHost) {
			continue
		}
		r := &vfp.Rule{ID: a.Id, Priority: a.Priority, Action: vfp.Block{}, Flags: vfp.Terminating, Origin: p.Origin, Fact: factACL}
		if r.ID == "" {
			r.ID = fmt.Sprintf("(acl %d %s %s %d)", i+1, a.Action, a.Direction, a.Priority)
		}
		if strings.EqualFold(a.Action, ACLAllow) {
			r.Action, r.Flags = vfp.Allow{}, vfp.Terminating|vfp.Stateful
		}
		if strings.EqualFold(a.Action, ACLPass) {
			notModelled(r, "the ACL action Pass leads to the next tier of rules, which winlab does not model", factTierACL)
		}
		in := strings.EqualFold(a.Direction, ACLIn)
		var okL, okR bool
		local, okL := aclAddresses(a.LocalAddresses)
		remote, okR := aclAddresses(a.RemoteAddresses)
		if !okL || !okR {
			notModelled(r, "the ACL names an address set, which winlab does not model", factSetPolicy)
		}
		lp, rp := portList(a.LocalPorts), portList(a.RemotePorts)
		r.Cond.Protos = protoList(a.Protocols)
		dir, group := vfp.Out, "ACL_ENDPOINT_GROUP_IPV4_OUT"
		if in {
			dir, group = vfp.In, "ACL_ENDPOINT_GROUP_IPV4_IN"
			r.Cond.Src, r.Cond.Dst, r.Cond.SrcPorts, r.Cond.DstPorts = remote, local, rp, lp
		} else {
			r.Cond.Src, r.Cond.Dst, r.Cond.SrcPorts, r.Cond.DstPorts = local, remote, lp, rp
		}
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
	for _, typ := range []string{PolicyL4Proxy, PolicyL4WFPProxy} {
		for _, p := range PoliciesOf(e.Policies, typ) {
			r := &vfp.Rule{ID: "(" + typ + ")", Origin: p.Origin, Fact: factL4Proxy,
				Cond:   vfp.Cond{Protos: []packet.Proto{packet.TCP}},
				Action: vfp.NotModelled{Action: vfp.Allow{}, Why: "the endpoint has an " + typ + " policy, and what it does to TCP is not public"}}
			if s, err := DecodePolicy[L4ProxySettings](p); err == nil && s.Protocol == uint32(packet.UDP) {
				r.Cond.Protos[0] = packet.UDP
			}
			ls.add(layerL4Proxy, "(L4_PROXY_OUT)", vfp.Out, r)
		}
	}
}

// portMappings compiles hostPort mappings of an endpoint.
func (c *Compiler) portMappings(ls *layers, n *Network, e *Endpoint) {
	dst := e.Address(false)
	for i, p := range PoliciesOf(e.Policies, PolicyPortMapping) {
		m, err := DecodePolicy[PortMappingSettings](p)
		if err != nil || !dst.IsValid() {
			continue
		}
		vip, any := c.mappingVIP(n, m)
		r := &vfp.Rule{
			ID: fmt.Sprintf("(port mapping %d %s:%d)", i+1, vip, m.ExternalPort), Priority: priorityAllow, Flags: vfp.Terminating | vfp.Stateful,
			Cond:   vfp.Cond{Protos: []packet.Proto{packet.Proto(m.Protocol)}, Dst: []netip.Prefix{vfp.Host(vip)}, DstPorts: []vfp.PortRange{vfp.Port1(m.ExternalPort)}},
			Action: vfp.NAT{Set: packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: dst, DstPort: m.InternalPort}}, Origin: p.Origin, Fact: factPortMapping,
		}
		if any {
			notModelled(r, "the port mapping is for the address "+m.VIP+", and what HNS makes of that is not public; without a hostIP it would be for the node's own address", factAnyHostIP)
		}
		ls.add(layerNAT, groupNATIn, vfp.In, r)
	}
}

// mappingVIP is the address of a port mapping. any is set for 0.0.0.0: then it is the
// address that a packet would have if HNS took that for any.
func (c *Compiler) mappingVIP(n *Network, m PortMappingSettings) (vip netip.Addr, any bool) {
	if a, err := netip.ParseAddr(m.VIP); err == nil && !a.IsUnspecified() {
		return a, false
	}
	return c.management(n), m.VIP != ""
}

// Bindings returns the addresses and ports of the node that port mappings give
// to endpoints of a network.
func (c *Compiler) Bindings(n *Network) []Binding {
	var bs []Binding
	if n.Is(Transparent, NAT) {
		return nil
	}
	for _, e := range c.local(n) {
		for _, p := range PoliciesOf(e.Policies, PolicyPortMapping) {
			if m, err := DecodePolicy[PortMappingSettings](p); err == nil {
				vip, _ := c.mappingVIP(n, m)
				bs = append(bs, Binding{vip, packet.Proto(m.Protocol), m.ExternalPort, e})
			}
		}
	}
	return bs
}

// aclAddresses parses an address list of an ACL; ok is false when it names a set.
func aclAddresses(list string) (ps []netip.Prefix, ok bool) {
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	fields := strings.Split(list, ",")
	ps = prefixes(fields)
	return ps, len(ps) == len(fields)
}

// anyProtocol is how an ACL writes "all protocols".
const anyProtocol = 256

func protoList(list string) []packet.Proto {
	var ps []packet.Proto
	for f := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n == anyProtocol {
			continue
		}
		ps = append(ps, packet.Proto(n))
	}
	return ps
}

func portList(list string) []vfp.PortRange {
	var rs []vfp.PortRange
	for f := range strings.SplitSeq(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(f), "-")
		a, err := strconv.ParseUint(lo, 10, 16)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.ParseUint(hi, 10, 16); err != nil {
				continue
			}
		}
		rs = append(rs, vfp.PortRange{Lo: uint16(a), Hi: uint16(b)})
	}
	return rs
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
