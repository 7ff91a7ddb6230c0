package ovs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// AntreaService is one port of a Service, as AntreaProxy serves it.
type AntreaService struct {
	Service
	// On are the nodes of the backends, in their order; "" for none of the cluster.
	On []string
	// InternalLocal and ExternalLocal: only backends on the node itself, for addresses
	// inside the cluster and for those outside.
	InternalLocal, ExternalLocal bool
}

// antreaVIP is one address and port of a Service.
type antreaVIP struct {
	*AntreaService
	addr     netip.Addr // the zero Addr: a node port
	port     uint16
	external bool
}

// SetServices replaces the Services (antrea.service-lb). AntreaProxy serves IPv4 here.
func (n *Antrea) SetServices(services []AntreaService) {
	n.vips = nil
	var ports []AntreaService
	var external []netip.Addr
	for i := range services {
		s := &services[i]
		for _, a := range s.Addresses {
			if a.Is4() {
				n.vips = append(n.vips, antreaVIP{s, a, s.Port, false})
			}
		}
		for _, a := range s.External {
			if a.Is4() {
				n.vips = append(n.vips, antreaVIP{s, a, s.Port, true})
				external = append(external, a)
			}
		}
		if s.NodePort != 0 {
			n.vips = append(n.vips, antreaVIP{s, netip.Addr{}, s.NodePort, true})
			ports = append(ports, *s)
		}
	}
	for _, x := range n.nodes {
		if x.proxyAll && x.stack.Windows {
			x.publish(ports, external)
		}
	}
}

// publish gives a Windows node's stack what leads clients outside into the bridge
// (antrea.node-port-windows), and what is not known of its own programs.
func (x *AntreaNode) publish(services []AntreaService, external []netip.Addr) {
	var rules []host.NATRule
	open := map[packet.Proto]map[uint16]bool{}
	for _, s := range services {
		r := host.WinNATMapping(netip.Addr{}, s.Proto, s.NodePort, netip.AddrPortFrom(antreaNodePortIP, s.NodePort), s.Origin)
		r.Fact = factAntreaNodePort
		rules = append(rules, r)
		if open[s.Proto] == nil {
			open[s.Proto] = map[uint16]bool{}
		}
		open[s.Proto][s.NodePort] = true
	}
	x.stack.NAT.Publish(rules)
	var routes []host.Route
	slices.SortFunc(external, netip.Addr.Compare)
	for _, a := range slices.Compact(external) {
		routes = append(routes, host.Route{To: netip.PrefixFrom(a, 32), Via: antreaVirtualIP, Link: x.gateway, Fact: factAntreaServiceRoutes})
	}
	x.stack.SetRoutes(antreaServicePort, routes)
	x.stack.RemoveGates(func(g host.Gate) bool { _, ours := g.Event.Detail.(ownNodePort); return ours })
	if len(open) > 0 {
		x.stack.AddGate(host.Gate{Out: true, Fact: factAntreaOwnNodePort, Event: trace.Of(ownNodePort{}),
			Passes: func(h *packet.Headers) bool { return !x.stack.Owns(h.Dst) || !open[h.Proto][h.DstPort] }})
	}
}

// preRouting picks an endpoint for the first packet to a Service, and reports whether
// the packet goes on.
func (a *antreaPass) preRouting() bool {
	x, h := a.x, a.p.Headers()
	nodePort := x.proxyAll && (h.Dst == antreaNodePortIP || h.Dst == x.address || h.Dst == x.gatewayIP())
	for i := range x.net.vips {
		v := &x.net.vips[i]
		if h.Proto != v.Proto || h.DstPort != v.port || v.addr != h.Dst && (v.addr.IsValid() || !nodePort) {
			continue
		}
		return a.toEndpoint(v)
	}
	if a.sim.Rec.On() && slices.ContainsFunc(x.net.o.ServiceCIDRs, func(p netip.Prefix) bool { return p.Contains(h.Dst) }) {
		a.step("ServiceLB", "", trace.ActNoMatch, trace.Of(noLoadBalancer{h.Proto, h.Dst}), factAntreaServiceLB, nil)
	}
	return true
}

// toEndpoint translates the destination to an endpoint of a Service.
func (a *antreaPass) toEndpoint(v *antreaVIP) bool {
	x, h := a.x, a.p.Headers()
	rule := fmt.Sprintf("%s, nw_dst=%s, tp_dst=%d", protoName(v.Proto), h.Dst, v.port)
	inside := a.from == fromPod || a.from == fromGateway && h.Src == x.gatewayIP()
	local := v.InternalLocal && !v.external || v.ExternalLocal && v.external && !inside
	var to []netip.AddrPort
	for i, b := range v.Backends {
		if b.Addr().Is4() && (!local || v.On[i] == x.name) {
			to = append(to, b)
		}
	}
	if len(to) == 0 {
		return a.drop("EndpointDNAT", rule, trace.NoBackend, trace.Of(rejectedByAgent{v.Name}), factAntreaNoEndpoint)
	}
	pick := 0
	if len(to) > 1 {
		pick = a.sim.Choose("AntreaProxy "+v.Name+" "+netip.AddrPortFrom(h.Dst, v.port).String(), len(to), int(a.first.Hash()%uint32(len(to))),
			func(i int) string { return to[i].String() })
	}
	before := *h
	a.p.Apply(&packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: to[pick].Addr(), DstPort: to[pick].Port()})
	a.rewriteMAC, a.external = true, v.external
	a.mark |= ctService
	if a.from == fromGateway {
		a.mark |= ctFromGateway
	}
	x.ct.commitMarked(a.sim.Journal, antreaZone, rule, a.first, a.p.Tuple(), a.mark)
	if a.sim.Rec.On() {
		a.sim.Rec.Add(trace.Step{Place: x.name, Object: x.net.o.Bridge, Layer: "ServiceLB", Rule: rule, Action: trace.ActRewrite,
			Event: trace.Of(endpointChosen{pick, len(to), v.Name}),
			From:  v.Origin, Packet: a.sim.Rec.Describe(a.p), Changes: (&pipeline{sim: a.sim, p: a.p}).changes(&before)}.Cite(factAntreaServiceLB))
	}
	return true
}
