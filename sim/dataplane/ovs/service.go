package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// vip is one virtual address of a load balancer.
type vip struct {
	proto    packet.Proto
	addr     netip.AddrPort
	backends []netip.AddrPort
	service  string
	origin   *trace.Origin
}

// nodePort is a vip whose address is that of each gateway's node.
type nodePort struct {
	port uint16
	vip  vip
}

// Service is one port of a service that load balancers are made for.
type Service struct {
	// Name is what choices and steps call it: "default/web".
	Name  string
	Proto packet.Proto
	Port  uint16
	// Addresses are served on the nodes' switches, External on the first gateway
	// router; NodePort, when it is not 0, on every gateway router's own address.
	Addresses, External []netip.Addr
	NodePort            uint16
	Backends            []netip.AddrPort
	Origin              *trace.Origin
}

// SetServices replaces the load balancers: addresses on the nodes' switches,
// node ports on every gateway router, external addresses on the first. One
// without backends gets none, as in ovn-kubernetes' endpoints.go. Session
// affinity and traffic policies are not honoured: the load balancers of that
// time knew neither. They were for IPv4, TCP and UDP.
func (n *Network) SetServices(services []Service) {
	n.services, n.external, n.nodePorts = nil, nil, nil
	for _, s := range services {
		if s.Proto != packet.TCP && s.Proto != packet.UDP {
			continue
		}
		v := vip{proto: s.Proto, service: s.Name, origin: s.Origin}
		for _, b := range s.Backends {
			if b.Addr().Is4() {
				v.backends = append(v.backends, b)
			}
		}
		if len(v.backends) == 0 {
			continue
		}
		for _, a := range s.Addresses {
			if a.Is4() {
				v.addr = netip.AddrPortFrom(a, s.Port)
				n.services = append(n.services, v)
			}
		}
		for _, a := range s.External {
			v.addr = netip.AddrPortFrom(a, s.Port)
			n.external = append(n.external, v)
		}
		if s.NodePort != 0 {
			n.nodePorts = append(n.nodePorts, nodePort{s.NodePort, v})
		}
	}
}

// onGateway lists the virtual addresses of a gateway router.
func (n *Network) onGateway(x *Node) []vip {
	var all []vip
	for _, np := range n.nodePorts {
		v := np.vip
		v.addr = netip.AddrPortFrom(x.address, np.port)
		all = append(all, v)
	}
	if n.firstGateway() == x {
		all = append(all, n.external...)
	}
	return all
}

func (v *vip) matches(h *packet.Headers) bool {
	return h.Proto == v.proto && h.Dst == v.addr.Addr() && h.DstPort == v.addr.Port()
}

func (v *vip) match() string {
	return fmt.Sprintf("ct.new && ip4.dst == %s && %s.dst == %d", v.addr.Addr(), protoName(v.proto), v.addr.Port())
}

func protoName(p packet.Proto) string {
	if p == packet.UDP {
		return "udp"
	}
	return "tcp"
}

// balance translates the first packet to one of the vips, and reports whether
// there was one. The connection is kept in the zone.
func (pl *pipeline) balance(table, zone string, vips []vip) bool {
	for i := range vips {
		v := &vips[i]
		if !v.matches(pl.p.Headers()) {
			continue
		}
		first := pl.p.Tuple()
		pick := 0
		if len(v.backends) > 1 {
			pick = pl.sim.Choose("load balancer "+v.service+" "+v.addr.String(), len(v.backends), int(first.Hash()%uint32(len(v.backends))),
				func(i int) string { return v.backends[i].String() })
		}
		b := v.backends[pick]
		before := *pl.p.Headers()
		pl.p.Apply(&packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: b.Addr(), DstPort: b.Port()})
		pl.x.ct.commit(pl.sim.Journal, zone, v.match(), first, pl.p.Tuple())
		pl.add(trace.Step{Layer: table, Rule: v.match(), Action: trace.ActRewrite,
			Event:   trace.Of(backendChosen{pick, len(v.backends), v.service}),
			Changes: pl.changes(&before), From: v.origin}, factLB)
		return true
	}
	return false
}
