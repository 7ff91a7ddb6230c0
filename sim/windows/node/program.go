package node

import (
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// program compiles all ports, bindings and host routes.
func (n *Windows) program() {
	n.stack.TunnelPorts = nil
	for _, nw := range n.hns.ListNetworks(nil) {
		if nw.Is(hns.Overlay) {
			n.stack.TunnelPorts = append(n.stack.TunnelPorts, nw.TunnelPort())
		}
	}
	for _, sw := range n.switches {
		sw.KeepLoopback = n.options.KeepLoopback
		if sw.external != nil {
			networks := sw.networks
			n.setLayers(sw.external, func() []*vfp.Layer { return n.broken(ExternalPort, n.compiler.External(networks)) })
			n.setLayers(sw.host, func() []*vfp.Layer { return n.broken(HostPort, n.compiler.Host(networks)) })
		}
		live := map[string]bool{}
		sw.Unbind()
		for _, nw := range sw.networks {
			for _, e := range n.hns.EndpointsOf(nw.ID) {
				id := normal(e.ID)
				if !e.Attached() || n.isHost(e.ID) {
					continue
				}
				live[id] = true
				n.podPort(sw, e, id)
			}
			for _, b := range n.compiler.Bindings(nw) {
				if port := sw.ports[normal(b.Endpoint.ID)]; port != nil {
					sw.Bind(b.Addr, b.Proto, b.Port, port)
				}
			}
		}
		for id, p := range sw.ports {
			if !live[id] {
				sw.RemovePort(p)
				delete(sw.ports, id)
				delete(sw.deliver, p)
			}
		}
	}
	n.hostRoutes()
	n.publish()
}

// publish gives WinNAT the ports of nat networks.
func (n *Windows) publish() {
	if n.stack.NAT == nil {
		return
	}
	var rules []host.NATRule
	for _, sw := range n.switches {
		for _, nw := range sw.networks {
			for _, p := range n.compiler.Published(nw) {
				mapping := host.WinNATMapping(p.Addr, p.Proto, p.Port, p.To, p.Origin)
				rules = append(rules, mapping)
				if n.hns.Build().Has(builds.WinNATLoopback) {
					rules = append(rules, host.WinNATLoopback(mapping, builds.WinNATLoopback.Fact())...)
				}
			}
		}
	}
	n.stack.NAT.Publish(rules)
}

// podPort makes or updates the port of a local endpoint.
func (n *Windows) podPort(sw *vswitch, e *hns.Endpoint, id string) {
	port := sw.ports[id]
	if port == nil {
		port = &vfp.Port{ID: strings.ToUpper(id), MAC: parseMAC(e.MacAddress), Label: "endpoint " + e.Name}
		sw.ports[id] = port
		sw.AddPort(port)
		sw.deliver[port] = func(sim *wire.Simulation, p *packet.Packet) {
			if c := n.compartments[id]; c != nil {
				if !n.severed(sim, c, id, p) {
					c.Stack().Input(sim, c.Stack().Links[0], p)
				}
				return
			}
			if n.options.Dumped {
				sim.RecordUnknown(
					fmt.Sprintf(
						"the dump has the endpoint %s (%s), but the lab has no pod for it; add one: {name: NAME, node: %s, address: %s, listen: [tcp/80]}",
						e.Name, e.Address(false), n.name, e.Address(false)))
			}
			sim.RecordLoss(n.name, port.Label, trace.PortNotReady)
			if sim.Rec.On() {
				sim.Rec.Add(trace.Step{Place: n.name, Object: port.Label, Action: trace.ActDrop, Reason: trace.PortNotReady,
					Event: trace.Of(noCompartment{}), Packet: sim.Rec.Describe(p)}.Cite(hns.FactPort))
			}
		}
	}
	n.setLayers(port, func() []*vfp.Layer {
		layers := n.compiler.Endpoint(e)
		if c := n.compartments[id]; c != nil {
			layers = n.broken(c.Stack().Object, layers)
		}
		return layers
	})
}

// setLayers compiles a port's rules when they are needed: at the first packet, for most
// ports. Faults are injected at once, because their author is told what they meet.
func (n *Windows) setLayers(port *vfp.Port, compile func() []*vfp.Layer) {
	if n.options.Broken != nil {
		port.SetLayers(compile())
		return
	}
	port.SetLayersLater(compile)
}

// broken is what the faults of the node make of the layers of a port.
func (n *Windows) broken(port string, layers []*vfp.Layer) []*vfp.Layer {
	if n.options.Broken == nil {
		return layers
	}
	return n.options.Broken(port, layers)
}

// hostRoutes replaces the routes that HNS gave the host.
func (n *Windows) hostRoutes() {
	var all []host.Route
	for _, sw := range n.switches {
		if sw.adapter == nil {
			continue
		}
		for _, r := range n.compiler.Routes(sw.networks) {
			hr := host.Route{To: r.Prefix, Link: sw.adapter.link, Own: r.Own, Origin: &trace.Origin{What: r.Why}, Fact: factHostRoute}
			if r.Own {
				hr.Fact = factLocalRoute
			}
			all = append(all, hr)
		}
	}
	n.stack.SetRoutes("HNS", all)
}
