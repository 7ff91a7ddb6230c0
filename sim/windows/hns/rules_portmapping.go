package hns

import (
	"fmt"
	"iter"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// mappings yields the port mappings of an endpoint, in order. Each of them acts in three
// places: as a rule at the endpoint's port (portMappings), as an address and port of the
// node that the switch delivers to the endpoint (Bindings) and, with the flag
// LocalRoutedVIP, as a route of the host (localRouted in rules_route.go).
func mappings(e *Endpoint) iter.Seq2[Policy, portMapping] { return eachValue[portMapping](e.Policies) }

// Binding is an address and port of the node that belongs to an endpoint.
type Binding struct {
	Addr     netip.Addr
	Proto    packet.Proto
	Port     uint16
	Endpoint *Endpoint
}

// Publishes reports whether a policy of the endpoint publishes a port on the node.
func (e *Endpoint) Publishes(proto packet.Proto, port uint16) bool {
	for _, m := range mappings(e) {
		if m.proto == proto && m.external == port {
			return true
		}
	}
	return false
}

// portMappings compiles hostPort mappings of an endpoint.
func (c *Compiler) portMappings(ls *layers, n *Network, e *Endpoint) {
	i := 0
	for p, m := range mappings(e) {
		i++
		dst, vip := e.Address(m.v6), c.mappingVIP(n, m)
		if !dst.IsValid() || !vip.IsValid() {
			continue
		}
		r := &vfp.Rule{
			ID: fmt.Sprintf("(port mapping %d %s:%d)", i, vip, m.external), Priority: priorityAllow, Flags: vfp.Terminating | vfp.Stateful,
			Cond:   vfp.Cond{Protos: []packet.Proto{m.proto}, Dst: []netip.Prefix{vfp.Host(vip)}, DstPorts: []vfp.PortRange{vfp.Port1(m.external)}},
			Action: vfp.NAT{Set: packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: dst, DstPort: m.internal}}, Origin: p.Origin,
			Fact: factPortMapping,
		}
		if m.v1 {
			notModelled(r,
				"the policy is a NAT policy of HNS v1, and sources disagree on whether HNS publishes the port on this network; a PortMapping policy of HCN v2 does", factNATPolicyV1)
		} else if m.anyAddress != "" {
			notModelled(r, "the port mapping is for the address "+m.anyAddress+
				", and what HNS does with that is not documented; without a hostIP the mapping would be for the node's own address", factAnyHostIP)
		}
		if vip.Is6() != m.v6 {
			notModelled(r, "the flag IPv6 of the port mapping and its address "+vip.String()+
				" do not match, and what HNS does with that is not documented", factMapping6Open)
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
	return c.managementOf(n, m.v6)
}

// Bindings returns the addresses and ports of the node that port mappings give
// to endpoints of a network.
func (c *Compiler) Bindings(n *Network) []Binding {
	var bs []Binding
	if n.Is(Transparent, NAT) {
		return nil
	}
	for _, e := range c.local(n) {
		for _, m := range mappings(e) {
			if vip := c.mappingVIP(n, m); vip.IsValid() && e.Address(m.v6).IsValid() {
				bs = append(bs, Binding{vip, m.proto, m.external, e})
			}
		}
	}
	return bs
}
