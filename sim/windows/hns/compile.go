package hns

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// The layers of a port and their order on the way out. The names are those
// that scripts and dumps of container hosts show; names in parentheses are
// winlab's own, where no source gives one. The order is inferred
// (hns.layer-order).
const (
	layerL2        = "INTERNAL_L2_REWRITE_LAYER"
	layerACL       = "ACL_ENDPOINT_LAYER"
	layerLBDSR     = "LB_DSR"
	layerNAT       = "SLB_NAT_LAYER"
	layerHostLB    = "LB"
	layerSLB       = "SLB_LB_LAYER"
	layerHairpin   = "SLB_HAIRPIN_LAYER"
	layerSDNRoute  = "(SDN_ROUTE)"
	layerEncap     = "VNET_ENCAP_LAYER"
	layerDecap     = "DECAP_IN"
	layerPARoute   = "VNET_PA_ROUTE_LAYER"
	layerL4Proxy   = "(L4_PROXY)"
	groupNATOut    = "SLB_GROUP_NAT_IPv4_OUT"
	groupNATIn     = "SLB_GROUP_NAT_IPv4_IN"
	groupPARoute   = "VNET_GROUP_PA_ROUTE_IPV4_OUT"
	groupHairpinIn = "SLB_GROUP_HAIRPIN_IPv4_IN"
	groupSLBOut    = "SLB_GROUP_LB_IPv4_OUT"
	groupHostLBOut = "LB_OUT"
)

var layerOrder = map[string]uint16{
	layerACL: 100, layerL4Proxy: 150, layerLBDSR: 200, layerHostLB: 210, layerSLB: 220, layerHairpin: 230, layerNAT: 300,
	layerSDNRoute: 400, layerL2: 450, layerEncap: 500, layerPARoute: 600, layerDecap: 900,
}

// Default priorities inside the layers. Those of load balancing (500), remote
// subnet routes (10) and PA_ROUTE (45535) are from listings; the rest are
// winlab's.
const (
	priorityEncap   = 10
	priorityAllow   = 100
	priorityLB      = 500
	prioritySNAT    = 1000
	priorityPARoute = 45535
)

// DefaultVXLANPort is the UDP port of overlay networks without a VxlanPort policy.
const DefaultVXLANPort = 4789

// LayerACL is the layer of access lists.
const LayerACL = layerACL

// View is what the compiler must know of the node around its HNS.
type View struct {
	// HostMAC is the MAC address of the host's vNIC (and of the adapter).
	HostMAC packet.MAC
	// Router is the host's route table, for VFP's paroute rules.
	Router vfp.Router
	// HostDSR says what a DSR load balancer does for packets of the host itself
	// (parameter host-to-dsr-service): "unknown", "translated" or "untranslated".
	HostDSR string
}

// Compiler turns the objects of one HNS into VFP rules. Pools live as long as
// the compiler, so that a change elsewhere does not cut translated connections.
type Compiler struct {
	s     *Service
	v     View
	pools map[string]*vfp.Pool
}

// NewCompiler returns a compiler for a service.
func NewCompiler(s *Service, v View) *Compiler {
	return &Compiler{s: s, v: v, pools: map[string]*vfp.Pool{}}
}

// layers collects rules by layer and group.
type layers struct {
	all []*vfp.Layer
}

func (ls *layers) layer(name string) *vfp.Layer {
	for _, l := range ls.all {
		if l.Name == name {
			return l
		}
	}
	l := &vfp.Layer{Name: name, Priority: layerOrder[name], Stateful: name != layerL2 && name != layerEncap && name != layerPARoute && name != layerDecap && name != layerSDNRoute}
	ls.all = append(ls.all, l)
	return l
}

func (ls *layers) add(layer, group string, dir vfp.Direction, r *vfp.Rule) {
	family := uint8(4)
	if len(r.Cond.Dst) > 0 && r.Cond.Dst[0].Addr().Is6() || len(r.Cond.Src) > 0 && r.Cond.Src[0].Addr().Is6() {
		family = 6
	}
	if len(r.Cond.Dst) == 0 && len(r.Cond.Src) == 0 {
		family = 0
	}
	if family == 6 {
		group = strings.ReplaceAll(group, "IPv4", "IPv6")
	}
	g := ls.layer(layer).Group(group, dir, family)
	g.Rules = append(g.Rules, r)
}

// management is the node's address on a network.
func (c *Compiler) management(n *Network) netip.Addr {
	if n != nil && n.ManagementIP.IsValid() {
		return n.ManagementIP
	}
	return c.s.ManagementIP()
}

// mac parses an endpoint's MAC address; the zero MAC when it has none.
func mac(text string) packet.MAC {
	m, _ := packet.ParseMAC(text)
	return m
}

// local returns the attached local endpoints of a network.
func (c *Compiler) local(n *Network) []*Endpoint {
	var es []*Endpoint
	for _, e := range c.s.EndpointsOf(n.ID) {
		if e.Attached() {
			es = append(es, e)
		}
	}
	return es
}

// DrMAC is the MAC address of the distributed router of an overlay network:
// the gateway that its containers see. Networks without the policy get one
// from their identifier.
func (c *Compiler) DrMAC(n *Network) packet.MAC {
	if m := mac(n.DrMacAddress()); !m.IsZero() {
		return m
	}
	var id [3]byte
	for i, ch := range []byte(n.ID) {
		id[i%3] = id[i%3]*31 + ch
	}
	return packet.MAC{0x00, 0x15, 0x5d, id[0], id[1], id[2]}
}

// TunnelPort is the UDP port of an overlay network.
func (n *Network) TunnelPort() uint16 { return tunnelPort(n) }

// tunnelPort is the UDP port of an overlay network.
func tunnelPort(n *Network) uint16 {
	if p := n.VxlanPort(); p != 0 {
		return p
	}
	return DefaultVXLANPort
}

// Pod compiles the rules of a local endpoint's port.
func (c *Compiler) Pod(e *Endpoint) []*vfp.Layer {
	n := c.s.Network(e.HostComputeNetwork)
	if n == nil {
		return nil
	}
	ls := &layers{}
	if n.Is(Transparent, NAT) {
		// Only the Windows firewall applies there, not VFP.
		return nil
	}
	c.acls(ls, e)
	c.l4proxy(ls, e)
	c.dsrClient(ls, n)
	c.backendRules(ls, n, e)
	c.portMappings(ls, n, e)
	c.outboundNAT(ls, n, e)
	c.sdnRoutes(ls, n, e)
	c.localMACs(ls, n)
	if n.Is(Overlay) {
		c.encap(ls, n, false)
		c.paRoute(ls, n, c.DrMAC(n))
	}
	return ls.all
}

// Host compiles the rules of the host vNIC's port on a switch with these networks.
func (c *Compiler) Host(networks []*Network) []*vfp.Layer {
	ls := &layers{}
	for _, n := range networks {
		if n.Is(Transparent, NAT) {
			continue
		}
		if n.Is(Overlay) {
			if len(c.local(n)) > 0 {
				c.encap(ls, n, true)
			}
		}
	}
	if len(networks) > 0 && !networks[0].Is(Transparent, NAT) {
		c.hostLoadBalancers(ls, networks)
		c.paRoute(ls, networks[0], c.v.HostMAC)
	}
	return ls.all
}

// External compiles the rules of the port to the wire.
func (c *Compiler) External(networks []*Network) []*vfp.Layer {
	ls := &layers{}
	for _, n := range networks {
		switch {
		case n.Is(Overlay):
			c.decap(ls, n)
		case n.Is(L2Bridge, L2Tunnel):
			c.hostMACs(ls, n)
		}
	}
	return ls.all
}

// Binding is an address and port of the node that belongs to an endpoint.
type Binding struct {
	Addr     netip.Addr
	Proto    packet.Proto
	Port     uint16
	Endpoint *Endpoint
}

// HostRoute is a route that HNS puts into the host's table.
type HostRoute struct {
	Prefix  netip.Prefix
	Network *Network
	// Own makes the host send packets to its own address to the switch.
	Own bool
	// Why names the policy.
	Why string
}

// Routes returns the routes that HNS gives the host for these networks.
func (c *Compiler) Routes(networks []*Network) []HostRoute {
	var rs []HostRoute
	for _, n := range networks {
		if n.Is(Overlay) && len(PoliciesOf(n.Policies, PolicyHostRoute)) > 0 && c.s.Build().Has(builds.HostRoute) {
			for _, s := range n.Subnets() {
				rs = append(rs, HostRoute{Prefix: s.Prefix(), Network: n, Why: "HostRoute policy of network " + n.Name})
			}
		}
		if why := c.localRouted(n); why != "" {
			m := c.management(n)
			rs = append(rs, HostRoute{Prefix: vfp.Host(m), Network: n, Own: true, Why: why})
		}
	}
	return rs
}

// localRouted says why the host routes packets to its own address into the
// switch, "" when it does not.
func (c *Compiler) localRouted(n *Network) string {
	if c.s.Build().Has(builds.LocalRoutedVIP) {
		for _, lb := range c.s.ListLoadBalancers(nil) {
			for _, m := range lb.PortMappings {
				if m.Flags&PortFlagLocalRoutedVIP != 0 {
					return fmt.Sprintf("LocalRoutedVIP of load balancer %s", lbName(lb, m))
				}
			}
		}
	}
	if c.s.Build().Has(builds.LocalRoutedHostPort) {
		for _, e := range c.local(n) {
			for _, m := range eachValue[portMapping](e.Policies) {
				if m.localRouted {
					return "LocalRoutedVip of a port mapping of endpoint " + e.Name
				}
			}
		}
	}
	return ""
}
