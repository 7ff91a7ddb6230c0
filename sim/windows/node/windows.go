package node

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var (
	factFragments = evidence.New("node.tunnel-fragments", evidence.Stated,
		"A Windows node loses tunnel packets that arrive in IP fragments.",
		"kubernetes-sigs/cluster-api-provider-azure#1335", "moby/moby#33596", "kubernetes/kubernetes#83739")
	factHostRoute = evidence.New("node.host-route", evidence.Stated,
		"The HostRoute policy of an overlay network lets the node reach its own containers but not those of other nodes.",
		"flannel-io/flannel#1096")
	factLocalRoute = evidence.New("node.local-routed-vip", evidence.Stated,
		"A route to its own address makes the host send packets for its frontends into the virtual switch.",
		"Azure/azure-container-networking#1863")
)

// Windows is a Windows node.
type Windows struct {
	options Options
	name    string
	hns     *hns.Service
	stack   *host.Stack
	gated   map[builds.Quirk]bool // see hostGates

	compiler *hns.Compiler
	nics     []*adapter
	switches []*vswitch
	// compartments are the containers' by endpoint id, vnics the host's own
	// links on switches in the order in which they were plugged in.
	compartments map[string]*machine.Compartment
	used         host.Used // of them
	vnics        []vnic
	// dirty is set when HNS has changed since the switches were programmed,
	// restarted when HNS restarted, so that VFP has lost its flows.
	dirty, restarted bool
	cuts             []cut
}

// The ports of the node itself, for Options.Broken.
const (
	HostPort     = "host port"
	ExternalPort = "external port"
)

// Options are what can be chosen about a node.
type Options struct {
	// KeepLoopback lets a switch deliver a packet that comes back to its own
	// port with equal source and destination.
	KeepLoopback bool
	// Broken, when set, changes the layers that HNS asks for on a port, which is that of
	// a compartment, [HostPort] or [ExternalPort]: injected faults.
	Broken func(port string, layers []*vfp.Layer) []*vfp.Layer
	// Dumped is set for a node whose HNS is that of a real one: which programs are
	// behind its endpoints is known only for those that have a compartment.
	Dumped bool
}

// vnic is a link of the host on a virtual switch.
type vnic struct {
	link *host.Link
	// endpoint is the id of the HNS endpoint that it belongs to, "" for none.
	endpoint string
}

// adapter is a physical NIC with the host's link on it.
type adapter struct {
	nic  *wire.NIC
	link *host.Link
	sw   *vswitch // nil: the host uses the adapter directly
}

// NewWindows returns a node without adapters whose switches follow an HNS.
func NewWindows(name string, s *hns.Service, o Options) *Windows {
	n := &Windows{options: o, name: name, hns: s, compartments: map[string]*machine.Compartment{}, gated: map[builds.Quirk]bool{}}
	n.stack = &host.Stack{Place: name, Object: "host stack", Windows: true}
	n.compiler = hns.NewCompiler(s, hns.View{HostMAC: parseMAC(s.HostMAC()), Router: router{n}})
	s.OnChange(n.noteChange)
	return n
}

// Stack is the stack of the host itself.
func (n *Windows) Stack() *host.Stack { return n.stack }

func parseMAC(s string) packet.MAC {
	m, _ := packet.ParseMAC(s)
	return m
}

// AddAdapter plugs a NIC into a segment and gives the host a link on it.
func (n *Windows) AddAdapter(name string, mac packet.MAC, seg *wire.Segment, addrs ...netip.Prefix) *host.Link {
	a := &adapter{nic: &wire.NIC{Name: n.name + " " + name, MAC: mac, Owner: n}}
	a.nic.Promiscuous = func(m packet.MAC) bool { return n.bridged(a, m) }
	seg.Attach(a.nic)
	a.link = &host.Link{Name: name, MAC: mac, Addrs: addrs}
	a.link.Send = func(sim *wire.Simulation, p *packet.Packet) { n.sendHost(sim, a, p) }
	a.link.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return n.resolve(a, nil, ip) }
	n.nics = append(n.nics, a)
	n.stack.AddLink(a.link)
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
		for _, e := range n.hns.EndpointsOf(nw.ID) {
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
	s := r.n.stack
	if s.Owns(dst) {
		for _, a := range r.n.nics {
			if a.link.Owns(dst) {
				return vfp.Hop{Src: a.link.MAC, Dst: a.link.MAC, Via: vfp.Via("the host itself")}, true
			}
		}
	}
	hop, reason := s.NextHop(dst)
	if why := s.UnknownWay(hop); why != "" {
		return vfp.Hop{Unknown: why}, false
	}
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
			n.stack.Input(sim, a.link, p)
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
	if !n.mayAnswer(ip) {
		return packet.MAC{}, false
	}
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
		if l := n.hostLink(a.sw, ip); l != nil {
			return l.MAC, true
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

// mayAnswer is false where no link of the host and no endpoint has an address. Whoever
// asks for a neighbour asks every node; those that do not have it need no rules. What
// waits in HNS attaches no endpoint.
func (n *Windows) mayAnswer(ip netip.Addr) bool {
	for _, l := range n.stack.Links {
		if l.Owns(ip) {
			return true
		}
	}
	return n.hns.Has(ip)
}

// hostLink is the host's virtual NIC on a switch that has an address, or nil.
func (n *Windows) hostLink(sw *vswitch, ip netip.Addr) *host.Link {
	for _, v := range n.vnics {
		if v.link.Owns(ip) && slices.ContainsFunc(sw.Ports, func(p *vfp.Port) bool { return p.Host && p.MAC == v.link.MAC }) {
			return v.link
		}
	}
	return nil
}

// isHost reports whether an endpoint is attached to the host's own compartment.
func (n *Windows) isHost(endpoint string) bool {
	return slices.ContainsFunc(n.vnics, func(v vnic) bool { return v.endpoint != "" && v.endpoint == endpoint })
}

// endpoint finds the attached local endpoint of a network with an address.
func (n *Windows) endpoint(nw *hns.Network, ip netip.Addr) *hns.Endpoint {
	return n.hns.AttachedAt(nw.ID, ip)
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
		if mac, ok := n.onSwitch(sw, from, ip); ok {
			return mac, true
		}
	}
	if a == nil {
		return packet.MAC{}, false
	}
	return a.nic.Segment.Resolve(a.nic, ip)
}

// onSwitch finds a neighbour on a switch: a link of the host, a container, the
// distributed router of an overlay network.
func (n *Windows) onSwitch(sw *vswitch, from *hns.Network, ip netip.Addr) (packet.MAC, bool) {
	if l := n.hostLink(sw, ip); l != nil {
		return l.MAC, true
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
	return packet.MAC{}, false
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

// Ports are the ports of all switches, in the order in which they were made.
func (n *Windows) Ports() []*vfp.Port {
	n.Refresh()
	var all []*vfp.Port
	for _, sw := range n.switches {
		all = append(all, sw.Ports...)
	}
	return all
}

// Reset forgets all flows, bindings and sockets, not the configuration.
func (n *Windows) Reset() {
	n.Refresh()
	n.cuts = nil
	n.stack.Reset()
	for _, sw := range n.switches {
		sw.Reset()
	}
	n.used.Reset()
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
