package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// AttachHost attaches an HNS endpoint to the host's own compartment, as
// flannel does with cbr0_ep.
func (n *Windows) AttachHost(endpointID string) error {
	n.Refresh()
	e := n.hns.Endpoint(endpointID)
	if e == nil {
		return fmt.Errorf("node %s: no HNS endpoint %s to attach to the host", n.name, endpointID)
	}
	nw := n.hns.Network(e.HostComputeNetwork)
	sw := n.switchOf(nw)
	if sw == nil {
		return fmt.Errorf("node %s: network %s has no switch", n.name, nw.Name)
	}
	l := &host.Link{Name: "vEthernet (" + e.Name + ")", MAC: parseMAC(e.MacAddress)}
	if nw.Is(hns.Overlay) {
		l.MTU, l.MTUFact = overlayMTU, factOverlayMTU
	}
	for _, c := range e.IpConfigurations {
		l.Addrs = append(l.Addrs, c.Prefix())
	}
	if p := sw.ports[e.ID]; p != nil {
		sw.RemovePort(p)
		delete(sw.ports, e.ID)
	}
	n.plugHost(sw, l, e.ID)
	n.dirty = true
	n.Refresh()
	return nil
}

// AddHostVNIC gives the host a link with an address on the switch of a
// network, as `New-VMSwitch -AllowManagementOS` leaves one.
func (n *Windows) AddHostVNIC(network string, addr netip.Prefix) error {
	n.Refresh()
	nw := n.hns.NetworkByName(network)
	if nw == nil {
		return fmt.Errorf("node %s: no HNS network %s", n.name, network)
	}
	sw := n.switchOf(nw)
	if sw == nil {
		return fmt.Errorf("node %s: network %s has no switch", n.name, nw.Name)
	}
	n.plugHost(sw, &host.Link{Name: "vEthernet (" + network + ")", MAC: macOf(0x80, addr.Addr()), Addrs: []netip.Prefix{addr}}, "")
	n.dirty = true
	n.Refresh()
	return nil
}

// overlayMTU follows node.overlay-mtu, in bytes.
const overlayMTU = host.EthernetMTU - host.VXLANOverhead

// factOverlayMTU is about the adapters of containers on overlay networks.
var factOverlayMTU = evidence.New("node.overlay-mtu", evidence.Inferred,
	"The adapter of a container on an overlay network has the MTU 1450: HNS sets it by design, and a larger one would lose every large packet on a network that carries 1500.",
	"Azure/AKS#2873", "microsoft/SDN#517", "flannel-io/flannel pkg/backend/vxlan encapOverhead")

// Attach makes a compartment around an HNS endpoint. Object is what traces call
// it, gateway the IPv4 next hop that the runtime sets.
func (n *Windows) Attach(object, endpointID string, gateway netip.Addr) (*machine.Compartment, error) {
	e := n.hns.Endpoint(endpointID)
	if e == nil {
		return nil, fmt.Errorf("node %s has no HNS endpoint %s for %s", n.name, endpointID, object)
	}
	if n.hns.Network(e.HostComputeNetwork) == nil {
		return nil, fmt.Errorf("endpoint %s of %s is on no network", e.Name, object)
	}
	l := &host.Link{Name: "vEthernet (" + e.Name + ")", MAC: parseMAC(e.MacAddress)}
	if n.hns.Network(e.HostComputeNetwork).Is(hns.Overlay) {
		l.MTU, l.MTUFact = overlayMTU, factOverlayMTU
	}
	for _, c := range e.IpConfigurations {
		l.Addrs = append(l.Addrs, c.Prefix())
	}
	id := normal(e.ID)
	c := machine.NewCompartment(&host.Stack{Place: n.name, Object: object, Windows: true, In: &n.used}, e.Address(false))
	l.Send = func(sim *wire.Simulation, p *packet.Packet) { n.sendFrom(sim, c, id, p) }
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		n.Refresh()
		nw := n.hns.Network(e.HostComputeNetwork)
		sw := n.switchOf(nw)
		if sw == nil {
			return packet.MAC{}, false
		}
		return n.resolve(sw.adapter, nw, ip)
	}
	c.Stack().AddLink(l)
	for _, g := range []netip.Addr{gateway, e.Gateway(true)} {
		if g.IsValid() {
			c.Stack().AppendRoutes(host.Route{To: host.Everywhere(g), Via: g, Link: l})
		}
	}
	n.compartments[id] = c
	n.dirty = true
	return c, nil
}

// Detach forgets the compartment of an endpoint. The endpoint itself is deleted by
// a call to HNS.
func (n *Windows) Detach(endpointID string) {
	delete(n.compartments, normal(endpointID))
	n.dirty = true
}

// DetachHost takes the host's links on HNS endpoints away, as a machine does that
// starts again: an agent attaches them anew.
func (n *Windows) DetachHost() {
	n.Refresh()
	for _, v := range n.vnics {
		if v.endpoint == "" {
			continue
		}
		n.stack.Links = slices.DeleteFunc(n.stack.Links, func(l *host.Link) bool { return l == v.link })
		n.stack.DeleteRoutes(func(r host.Route) bool { return r.Link == v.link })
		for _, sw := range n.switches {
			for _, p := range slices.Clone(sw.Ports) {
				if p.Host && p.MAC == v.link.MAC && p.Label == v.link.Name {
					sw.RemovePort(p)
					delete(sw.deliver, p)
				}
			}
		}
	}
	n.vnics = slices.DeleteFunc(n.vnics, func(v vnic) bool { return v.endpoint != "" })
	n.dirty = true
}

func normal(id string) string { return strings.ToLower(strings.Trim(id, "{}")) }

// sendFrom takes a packet of a compartment into the switch of its endpoint.
func (n *Windows) sendFrom(sim *wire.Simulation, c *machine.Compartment, id string, p *packet.Packet) {
	n.Refresh()
	if n.severed(sim, c, id, p) {
		return
	}
	for _, sw := range n.switches {
		if port := sw.ports[id]; port != nil {
			n.send(sim, sw, port, p)
			return
		}
	}
	object := c.Stack().Object
	sim.RecordLoss(n.name, object, trace.PortNotReady)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: n.name, Object: object, Action: trace.ActDrop, Reason: trace.PortNotReady,
			Event: trace.Of(noPort{}), Packet: sim.Rec.Describe(p)}.Cite(hns.FactPort))
	}
}
