package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// defaultVXLANPort is the UDP port of overlay networks without a VxlanPort policy.
const defaultVXLANPort = 4789

// View is what the compiler must know of the node around its HNS.
type View struct {
	// HostMAC is the MAC address of the host's vNIC (and of the adapter).
	HostMAC packet.MAC
	// Router is the host's route table, for VFP's paroute rules.
	Router vfp.Router
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

// management is the node's address on a network.
func (c *Compiler) management(n *Network) netip.Addr {
	if n != nil && n.ManagementIP.IsValid() {
		return n.ManagementIP
	}
	return c.s.ManagementIP()
}

// managementOf is the node's address of a family on a network, the zero Addr for none.
// HNS keeps one address of each (hns.management-ipv6).
func (c *Compiler) managementOf(n *Network, v6 bool) netip.Addr {
	if v6 {
		return c.s.ManagementIP6()
	}
	return c.management(n)
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
	if m := mac(n.drMacAddress()); !m.IsZero() {
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
	if p := n.vxlanPort(); p != 0 {
		return p
	}
	return defaultVXLANPort
}

// Endpoint compiles the rules of a local endpoint's port.
func (c *Compiler) Endpoint(e *Endpoint) []*vfp.Layer {
	n := c.s.Network(e.HostComputeNetwork)
	if n == nil {
		return nil
	}
	ls := &layers{}
	if extended(ls, n) {
		return ls.all
	}
	if !n.Is(L2Bridge, L2Tunnel, Overlay) {
		c.withoutPolicies(ls, n, e)
		return ls.all
	}
	c.acls(ls, n, e)
	c.dsrBreaksPods(ls, n, e)
	c.l4proxy(ls, n, e)
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
	if extended(ls, networks...) {
		return ls.all
	}
	for _, n := range networks {
		if n.Is(Overlay) && len(c.local(n)) > 0 {
			c.encap(ls, n, true)
		}
	}
	switch {
	case len(networks) > 0 && networks[0].Is(L2Bridge, L2Tunnel, Overlay):
		c.hostLoadBalancers(ls, networks)
		c.paRoute(ls, networks[0], c.v.HostMAC)
	case len(networks) > 0:
		c.openOn(ls, networks[0], func(open *layers) { c.hostLoadBalancers(open, networks) })
	}
	return ls.all
}

// External compiles the rules of the port to the wire.
func (c *Compiler) External(networks []*Network) []*vfp.Layer {
	ls := &layers{}
	for _, n := range networks {
		c.vlans(ls, n)
		switch {
		case n.Is(Overlay):
			c.decap(ls, n)
		case n.Is(L2Bridge, L2Tunnel):
			c.hostMACs(ls, n)
		}
	}
	return ls.all
}

// withQuirk compiles what a bug of builds changes: with the bug, without it, or,
// where no source says whether this build has it, both, each with the answer with
// which its rules are there.
func (c *Compiler) withQuirk(q builds.Quirk, compile func(has bool, given *vfp.Given)) {
	b := c.s.Build()
	question := b.May(q)
	if question == nil {
		compile(b.Quirk(q), nil)
		return
	}
	compile(false, &vfp.Given{Question: question, About: c.s.Node(), Answer: builds.QuirkAbsent})
	compile(true, &vfp.Given{Question: question, About: c.s.Node(), Answer: builds.QuirkPresent})
}
