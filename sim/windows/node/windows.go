package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var (
	factHostRoute = evidence.New("node.host-route", evidence.Stated,
		"The HostRoute policy of an overlay network lets the node reach its own containers, not those of other nodes.", "flannel-io/flannel#1096")
	factLocalRoute = evidence.New("node.local-routed-vip", evidence.Stated,
		"A route to its own address makes the host send packets to its frontends into the virtual switch.", "Azure/azure-container-networking#1863")
)

// Windows is a Windows node.
type Windows struct {
	Name  string
	HNS   *hns.Service
	Stack *host.Stack
	// KeepLoopback is passed on to the node's switches.
	KeepLoopback bool

	compiler *hns.Compiler
	nics     []*adapter
	switches []*vswitch
	pods     map[string]*Pod // by endpoint id
	extra    map[string]*host.Link
	dirty    bool
	// restarted is set when HNS restarted and VFP has lost its flows.
	restarted bool
	cuts      []cut
	// Broken reports whether a rule is missing on a pod's port against what HNS
	// says: an injected fault. Nil breaks nothing.
	Broken func(pod *Pod, rule string) bool
}

// Pod is a container compartment: what a pod's programs see.
type Pod struct {
	Namespace, Name string
	Stack           *host.Stack
	Endpoint        string // HNS endpoint id, "" on Linux
	Address         netip.Addr
	Node            string
}

// adapter is a physical NIC with the host's link on it.
type adapter struct {
	nic  *wire.NIC
	link *host.Link
	sw   *vswitch // nil: the host uses the adapter directly
}

// vswitch is one virtual switch with what is plugged into it.
type vswitch struct {
	*vfp.Switch
	adapter  *adapter // nil for an internal switch
	networks []*hns.Network
	host     *vfp.Port
	external *vfp.Port
	ports    map[string]*vfp.Port // by endpoint id
	deliver  map[*vfp.Port]func(sim *wire.Simulation, p *packet.Packet)

	// env is filled in for every packet and kept, so that a packet costs no
	// allocation; envOf is the simulation that its Choose belongs to.
	env   vfp.Env
	envOf *wire.Simulation
}

// environment is what a packet's passage through the switch needs. It is valid
// until the next call.
func (sw *vswitch) environment(sim *wire.Simulation, place string) *vfp.Env {
	if sw.envOf != sim {
		sw.envOf, sw.env.Choose = sim, sim.Choose
	}
	sw.env.Now, sw.env.Rec, sw.env.Place = sim.Now(), sim.Rec, place
	return &sw.env
}

// NewWindows returns a node with one adapter. The link carries its addresses.
func NewWindows(name string, s *hns.Service, hostDSR string) *Windows {
	n := &Windows{Name: name, HNS: s, pods: map[string]*Pod{}, extra: map[string]*host.Link{}}
	n.Stack = &host.Stack{Place: name, Object: "host stack", Windows: true}
	n.compiler = hns.NewCompiler(s, hns.View{HostMAC: parseMAC(s.HostMAC()), Router: router{n}, HostDSR: hostDSR})
	s.OnChange(n.noteChange)
	return n
}

func parseMAC(s string) packet.MAC {
	m, _ := packet.ParseMAC(s)
	return m
}

// AddAdapter plugs a NIC into a segment and gives the host a link on it.
func (n *Windows) AddAdapter(name string, mac packet.MAC, seg *wire.Segment, addrs ...netip.Prefix) *host.Link {
	a := &adapter{nic: &wire.NIC{Name: n.Name + " " + name, MAC: mac, Owner: n}}
	a.nic.Promiscuous = func(m packet.MAC) bool { return n.bridged(a, m) }
	seg.Attach(a.nic)
	a.link = &host.Link{Name: name, MAC: mac, Addrs: addrs}
	a.link.Send = func(sim *wire.Simulation, p *packet.Packet) { n.sendHost(sim, a, p) }
	a.link.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return n.resolve(a, nil, ip) }
	n.nics = append(n.nics, a)
	n.Stack.AddLink(a.link)
	return a.link
}

// bridged reports whether a container on a transparent network behind the
// adapter has the MAC address.
func (n *Windows) bridged(a *adapter, m packet.MAC) bool {
	if a.sw == nil {
		return false
	}
	for _, nw := range a.sw.networks {
		if !nw.Is(hns.Transparent) {
			continue
		}
		for _, e := range n.HNS.EndpointsOf(nw.ID) {
			if e.Attached() && parseMAC(e.MacAddress) == m {
				return true
			}
		}
	}
	return false
}

// router lets VFP use the host's route table.
type router struct{ n *Windows }

func (r router) NextHop(dst netip.Addr) (vfp.Hop, bool) {
	s := r.n.Stack
	if s.Owns(dst) {
		for _, a := range r.n.nics {
			if a.link.Owns(dst) {
				return vfp.Hop{Src: a.link.MAC, Dst: a.link.MAC, Via: vfp.Via("the host itself")}, true
			}
		}
	}
	hop, reason := s.NextHop(dst)
	if reason != "" {
		return vfp.Hop{Via: hop, Reason: reason}, false
	}
	return vfp.Hop{Src: hop.Link.MAC, Dst: hop.MAC, Via: hop}, true
}

// Receive takes a frame from the wire.
func (n *Windows) Receive(sim *wire.Simulation, nic *wire.NIC, p *packet.Packet) {
	n.Refresh()
	for _, a := range n.nics {
		if a.nic != nic {
			continue
		}
		if a.sw == nil {
			n.Stack.Input(sim, a.link, p)
		} else {
			n.send(sim, a.sw, a.sw.external, p)
		}
		return
	}
}

// ARP answers for the host's addresses and, on bridged networks, for the
// containers': with the host's MAC address on l2bridge and l2tunnel, with
// their own on transparent networks.
func (n *Windows) ARP(nic *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	n.Refresh()
	for _, a := range n.nics {
		if a.nic != nic {
			continue
		}
		if a.link.Owns(ip) {
			return a.link.MAC, true
		}
		if a.sw == nil {
			return packet.MAC{}, false
		}
		for _, l := range n.extra {
			if l.Owns(ip) && n.linkOn(a.sw, l) {
				return l.MAC, true
			}
		}
		for _, nw := range a.sw.networks {
			if e := n.endpoint(nw, ip); e != nil && !nw.Is(hns.Overlay) {
				if nw.Is(hns.Transparent) {
					return parseMAC(e.MacAddress), true
				}
				return a.link.MAC, true
			}
		}
	}
	return packet.MAC{}, false
}

func (n *Windows) linkOn(sw *vswitch, l *host.Link) bool {
	for _, p := range sw.Ports {
		if p.Host && p.MAC == l.MAC {
			return true
		}
	}
	return false
}

// endpoint finds the attached local endpoint of a network with an address.
func (n *Windows) endpoint(nw *hns.Network, ip netip.Addr) *hns.Endpoint {
	for _, e := range n.HNS.EndpointsByAddress(ip) {
		if e.Attached() && strings.EqualFold(e.HostComputeNetwork, nw.ID) {
			return e
		}
	}
	return nil
}

// resolve finds a neighbour for a link of this node: of a container (from is
// its network) or of the host (from is nil).
func (n *Windows) resolve(a *adapter, from *hns.Network, ip netip.Addr) (packet.MAC, bool) {
	n.Refresh()
	var sw *vswitch
	if a != nil {
		if a.link.Owns(ip) {
			return a.link.MAC, true
		}
		sw = a.sw
	}
	if sw == nil && from != nil {
		sw = n.switchOf(from)
	}
	if sw != nil {
		for _, l := range n.extra {
			if l.Owns(ip) && n.linkOn(sw, l) {
				return l.MAC, true
			}
		}
		for _, nw := range sw.networks {
			// On l2tunnel even a neighbour on the node is reached through the
			// virtualisation host.
			if nw.Is(hns.L2Tunnel) {
				continue
			}
			if e := n.endpoint(nw, ip); e != nil && (from == nil || from == nw) {
				return parseMAC(e.MacAddress), true
			}
		}
		if from != nil && from.Is(hns.Overlay) {
			return n.compiler.DrMAC(from), true
		}
	}
	if a == nil {
		return packet.MAC{}, false
	}
	return a.nic.Segment.Resolve(a.nic, ip)
}

// sendHost sends a frame of the host out of an adapter or into its switch.
func (n *Windows) sendHost(sim *wire.Simulation, a *adapter, p *packet.Packet) {
	n.Refresh()
	if a.sw == nil {
		a.nic.Segment.Send(sim, a.nic, p)
		return
	}
	n.send(sim, a.sw, a.sw.host, p)
}

// send takes a packet into a switch and delivers it at the other side.
func (n *Windows) send(sim *wire.Simulation, sw *vswitch, from *vfp.Port, p *packet.Packet) {
	sim.Taps.SeePort(n.Name, from.Label, true, p)
	if p.Headers().EthDst.IsMulticast() {
		for _, to := range sw.Flood(from) {
			q := p.Clone()
			sim.Taps.SeePort(n.Name, to.Label, false, q)
			sim.Queue(func() { sw.deliver[to](sim, q) })
		}
		return
	}
	out := sw.Send(from, p, sw.environment(sim, n.Name))
	switch {
	case out.Unknown != "":
		sim.RecordUnknown(out.Unknown)
	case out.To == nil:
		sim.RecordLoss(n.Name, from.Label, out.Reason)
	default:
		to := out.To
		sim.Taps.SeePort(n.Name, to.Label, false, p)
		sim.Queue(func() { sw.deliver[to](sim, p) })
	}
}

// switchOf finds the switch of a network.
func (n *Windows) switchOf(nw *hns.Network) *vswitch {
	for _, sw := range n.switches {
		if slices.Contains(sw.networks, nw) {
			return sw
		}
	}
	return nil
}

// adapterFor finds the adapter that a network is bound to: the one its
// NetAdapterName policy names, else the first.
func (n *Windows) adapterFor(nw *hns.Network) *adapter {
	for s := range hns.EachSettings[hns.NetAdapterNameSettings](nw.Policies) {
		for _, a := range n.nics {
			if strings.EqualFold(a.link.Name, s.NetworkAdapterName) || strings.EqualFold(a.link.Name, "vEthernet ("+s.NetworkAdapterName+")") {
				return a
			}
		}
	}
	if len(n.nics) == 0 {
		return nil
	}
	return n.nics[0]
}

// Refresh brings the switches in line with HNS. It does nothing when HNS has
// not changed.
func (n *Windows) Refresh() {
	if !n.dirty {
		return
	}
	n.dirty = false
	byAdapter := map[*adapter][]*hns.Network{}
	var internal []*hns.Network
	for _, nw := range n.HNS.ListNetworks(nil) {
		if nw.Is(hns.NAT, hns.Internal, hns.ICS, hns.Private) {
			internal = append(internal, nw)
			continue
		}
		if a := n.adapterFor(nw); a != nil {
			byAdapter[a] = append(byAdapter[a], nw)
		}
	}
	for _, a := range n.nics {
		n.plug(a, byAdapter[a])
	}
	for _, nw := range internal {
		n.internal(nw)
	}
	n.program()
	if n.restarted {
		n.restarted = false
		for _, sw := range n.switches {
			sw.Reset()
		}
	}
}

// plug makes the external switch of an adapter when the first network needs
// it, and takes it away with the last.
func (n *Windows) plug(a *adapter, networks []*hns.Network) {
	if len(networks) == 0 {
		if a.sw != nil {
			n.switches = slices.DeleteFunc(n.switches, func(s *vswitch) bool { return s == a.sw })
			a.sw = nil
			a.link.Name = strings.TrimSuffix(strings.TrimPrefix(a.link.Name, "vEthernet ("), ")")
		}
		return
	}
	if a.sw == nil {
		sw := newSwitch("("+a.link.Name+")", "external")
		sw.adapter = a
		sw.external = &vfp.Port{ID: "External-" + short(a.nic.MAC), Friendly: "ExternalPort", External: true, Label: "external port"}
		sw.host = &vfp.Port{ID: "Host-" + short(a.nic.MAC), Friendly: "Container NIC " + short(a.nic.MAC), MAC: a.link.MAC, Host: true, Label: "host vNIC"}
		sw.AddPort(sw.external)
		sw.AddPort(sw.host)
		sw.deliver[sw.external] = func(sim *wire.Simulation, p *packet.Packet) { a.nic.Segment.Send(sim, a.nic, p) }
		sw.deliver[sw.host] = func(sim *wire.Simulation, p *packet.Packet) { n.Stack.Input(sim, a.link, p) }
		a.link.Name = "vEthernet (" + a.link.Name + ")"
		a.sw = sw
		n.switches = append(n.switches, sw)
	}
	a.sw.networks = networks
}

func newSwitch(name, kind string) *vswitch {
	return &vswitch{Switch: vfp.NewSwitch(name, kind), ports: map[string]*vfp.Port{}, deliver: map[*vfp.Port]func(*wire.Simulation, *packet.Packet){}}
}

func short(m packet.MAC) string { return fmt.Sprintf("%02x%02x%02x", m[3], m[4], m[5]) }

// internal makes the switch of a NAT network with the host's gateway link.
func (n *Windows) internal(nw *hns.Network) {
	if n.switchOf(nw) != nil {
		return
	}
	for _, sw := range n.switches {
		if len(sw.networks) == 1 && sw.networks[0].ID == nw.ID {
			sw.networks[0] = nw
			return
		}
	}
	sw := newSwitch("("+nw.Name+")", "internal")
	sw.networks = []*hns.Network{nw}
	n.switches = append(n.switches, sw)
	for _, s := range nw.Subnets() {
		gw := s.Gateway()
		if !gw.IsValid() {
			continue
		}
		l := &host.Link{Name: "vEthernet (" + nw.Name + ")", MAC: macOf(0x00, gw), Addrs: []netip.Prefix{netip.PrefixFrom(gw, s.Prefix().Bits())}}
		n.plugHost(sw, l, nw.ID)
		if nw.Is(hns.NAT) {
			n.Stack.Forwarding = true
			n.Stack.NAT = host.NewWinNAT(s.Prefix(), l, nw.Origin)
		}
		break
	}
}

// macOf makes a MAC address of Microsoft's range from an IP address.
func macOf(tag byte, ip netip.Addr) packet.MAC {
	b := ip.As16()
	return packet.MAC{0x00, 0x15, 0x5d, b[13] ^ tag, b[14], b[15]}
}

// plugHost gives the host another link on a switch.
func (n *Windows) plugHost(sw *vswitch, l *host.Link, key string) {
	port := &vfp.Port{ID: "Host-" + short(l.MAC), Friendly: l.Name, MAC: l.MAC, Host: true, Label: l.Name}
	sw.AddPort(port)
	sw.deliver[port] = func(sim *wire.Simulation, p *packet.Packet) { n.Stack.Input(sim, l, p) }
	l.Send = func(sim *wire.Simulation, p *packet.Packet) {
		n.Refresh()
		n.send(sim, sw, port, p)
	}
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if sw.adapter != nil {
			return n.resolve(sw.adapter, nil, ip)
		}
		for _, nw := range sw.networks {
			if e := n.endpoint(nw, ip); e != nil {
				return parseMAC(e.MacAddress), true
			}
		}
		return packet.MAC{}, false
	}
	n.extra[key] = l
	n.Stack.AddLink(l)
}

// AttachHost attaches an HNS endpoint to the host's own compartment, as
// flannel does with cbr0_ep.
func (n *Windows) AttachHost(endpointID string) error {
	n.Refresh()
	e := n.HNS.Endpoint(endpointID)
	if e == nil {
		return fmt.Errorf("node %s: no HNS endpoint %s to attach to the host", n.Name, endpointID)
	}
	nw := n.HNS.Network(e.HostComputeNetwork)
	sw := n.switchOf(nw)
	if sw == nil {
		return fmt.Errorf("node %s: network %s has no switch", n.Name, nw.Name)
	}
	l := &host.Link{Name: "vEthernet (" + e.Name + ")", MAC: parseMAC(e.MacAddress)}
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
	nw := n.HNS.NetworkByName(network)
	if nw == nil {
		return fmt.Errorf("node %s: no HNS network %s", n.Name, network)
	}
	sw := n.switchOf(nw)
	if sw == nil {
		return fmt.Errorf("node %s: network %s has no switch", n.Name, nw.Name)
	}
	n.plugHost(sw, &host.Link{Name: "vEthernet (" + network + ")", MAC: macOf(0x80, addr.Addr()), Addrs: []netip.Prefix{addr}}, "vnic "+network)
	n.dirty = true
	n.Refresh()
	return nil
}

// AttachPod makes the compartment of a pod around an HNS endpoint.
func (n *Windows) AttachPod(namespace, name, endpointID string, gateway netip.Addr) (*Pod, error) {
	e := n.HNS.Endpoint(endpointID)
	if e == nil {
		return nil, fmt.Errorf("pod %s/%s: no HNS endpoint %s on node %s", namespace, name, endpointID, n.Name)
	}
	nw := n.HNS.Network(e.HostComputeNetwork)
	if nw == nil {
		return nil, fmt.Errorf("pod %s/%s: endpoint %s is on no network", namespace, name, e.Name)
	}
	l := &host.Link{Name: "vEthernet (" + e.Name + ")", MAC: parseMAC(e.MacAddress)}
	for _, c := range e.IpConfigurations {
		l.Addrs = append(l.Addrs, c.Prefix())
	}
	p := &Pod{Namespace: namespace, Name: name, Endpoint: e.ID, Address: e.Address(false), Node: n.Name}
	p.Stack = &host.Stack{Place: n.Name, Object: "pod/" + namespace + "/" + name, Windows: true}
	l.Send = func(sim *wire.Simulation, q *packet.Packet) { n.sendPod(sim, p, q) }
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		nw := n.HNS.Network(e.HostComputeNetwork)
		sw := n.switchOf(nw)
		if sw == nil {
			return packet.MAC{}, false
		}
		return n.resolve(sw.adapter, nw, ip)
	}
	p.Stack.AddLink(l)
	for _, g := range []netip.Addr{gateway, e.Gateway(true)} {
		if g.IsValid() {
			all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			if g.Is6() {
				all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			}
			p.Stack.Routes = append(p.Stack.Routes, host.Route{To: all, Via: g, Link: l})
		}
	}
	n.pods[normal(e.ID)] = p
	n.dirty = true
	return p, nil
}

func normal(id string) string { return strings.ToLower(strings.Trim(id, "{}")) }

func (n *Windows) sendPod(sim *wire.Simulation, pod *Pod, p *packet.Packet) {
	n.Refresh()
	if n.severed(sim, pod, p) {
		return
	}
	for _, sw := range n.switches {
		if port := sw.ports[normal(pod.Endpoint)]; port != nil {
			n.send(sim, sw, port, p)
			return
		}
	}
	sim.RecordLoss(n.Name, pod.Stack.Object, trace.PortNotReady)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: n.Name, Object: pod.Stack.Object, Action: trace.ActDrop, Reason: trace.PortNotReady,
			Event: trace.Note("the pod has no switch port: its HNS endpoint is gone or not attached"), Packet: p.String()}.Cite(hns.FactPort))
	}
}

// program compiles all ports, bindings and host routes.
func (n *Windows) program() {
	n.Stack.TunnelPorts = nil
	for _, nw := range n.HNS.ListNetworks(nil) {
		if nw.Is(hns.Overlay) {
			n.Stack.TunnelPorts = append(n.Stack.TunnelPorts, nw.TunnelPort())
		}
	}
	for _, sw := range n.switches {
		sw.KeepLoopback = n.KeepLoopback
		if sw.external != nil {
			sw.external.SetLayers(n.compiler.External(sw.networks))
			sw.host.SetLayers(n.compiler.Host(sw.networks))
		}
		live := map[string]bool{}
		sw.Unbind()
		for _, nw := range sw.networks {
			for _, e := range n.HNS.EndpointsOf(nw.ID) {
				id := normal(e.ID)
				if !e.Attached() || n.extra[e.ID] != nil {
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
}

// podPort makes or updates the port of a local endpoint.
func (n *Windows) podPort(sw *vswitch, e *hns.Endpoint, id string) {
	port := sw.ports[id]
	if port == nil {
		port = &vfp.Port{ID: strings.ToUpper(id), Friendly: e.ID, MAC: parseMAC(e.MacAddress), Label: "endpoint " + e.Name}
		sw.ports[id] = port
		sw.AddPort(port)
		sw.deliver[port] = func(sim *wire.Simulation, p *packet.Packet) {
			if pod := n.pods[id]; pod != nil {
				if n.severed(sim, pod, p) {
					return
				}
				pod.Stack.Input(sim, pod.Stack.Links[0], p)
				return
			}
			sim.RecordLoss(n.Name, port.Label, trace.PortNotReady)
			if sim.Rec.On() {
				sim.Rec.Add(trace.Step{Place: n.Name, Object: port.Label, Action: trace.ActDrop, Reason: trace.PortNotReady,
					Event: trace.Note("no compartment is behind the port"), Packet: p.String()}.Cite(hns.FactPort))
			}
		}
	}
	layers := n.compiler.Pod(e)
	if pod := n.pods[id]; pod != nil && n.Broken != nil {
		for _, l := range layers {
			for _, g := range l.Groups {
				g.Rules = slices.DeleteFunc(g.Rules, func(r *vfp.Rule) bool { return n.Broken(pod, r.ID) })
			}
		}
	}
	port.SetLayers(layers)
}

// hostRoutes replaces the routes that HNS gave the host.
func (n *Windows) hostRoutes() {
	n.Stack.Routes = slices.DeleteFunc(n.Stack.Routes, func(r host.Route) bool { return r.Fact == factHostRoute || r.Fact == factLocalRoute })
	for _, sw := range n.switches {
		if sw.adapter == nil {
			continue
		}
		for _, r := range n.compiler.Routes(sw.networks) {
			hr := host.Route{To: r.Prefix, Link: sw.adapter.link, Own: r.Own, Origin: &trace.Origin{What: r.Why}, Fact: factHostRoute}
			if r.Own {
				hr.Fact = factLocalRoute
			}
			n.Stack.Routes = append(n.Stack.Routes, hr)
		}
	}
}

// Switches returns the node's virtual switches.
func (n *Windows) Switches() []*vfp.Switch {
	n.Refresh()
	var all []*vfp.Switch
	for _, sw := range n.switches {
		all = append(all, sw.Switch)
	}
	return all
}

// Port returns the switch and port of a local endpoint, or nil.
func (n *Windows) Port(endpointID string) (*vfp.Switch, *vfp.Port) {
	n.Refresh()
	for _, sw := range n.switches {
		if p := sw.ports[normal(endpointID)]; p != nil {
			return sw.Switch, p
		}
	}
	return nil, nil
}

// Reset forgets all flows, bindings and sockets, not the configuration.
func (n *Windows) Reset() {
	n.Refresh()
	n.cuts = nil
	n.Stack.Reset()
	for _, sw := range n.switches {
		sw.Reset()
	}
	for _, p := range n.pods {
		p.Stack.Reset()
	}
}

// SwitchKind is the kind of the switch below a network, "" when there is none.
func (n *Windows) SwitchKind(networkID string) string {
	n.Refresh()
	for _, sw := range n.switches {
		for _, nw := range sw.networks {
			if strings.EqualFold(nw.ID, networkID) {
				return sw.Kind
			}
		}
	}
	return ""
}
