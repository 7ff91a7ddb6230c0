package ovs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// How Antrea takes packets between nodes (trafficEncapMode).
const (
	AntreaEncap   = "encap"
	AntreaNoEncap = "noEncap"
	AntreaHybrid  = "hybrid"
)

// AntreaOptions describe a network whose bridges Antrea's agents program.
type AntreaOptions struct {
	// Encap is one of the modes; Tunnel is the kind of its tunnels, and Port their UDP
	// port, 0 for that of the kind.
	Encap  string
	Tunnel packet.Tunnel
	Port   uint16
	// MTU is that of pods and gateway ports, in bytes; 0 is that of the adapter without
	// the tunnel's headers.
	MTU int
	// Bridge and Gateway are the names of the bridge and of the host's port of it.
	Bridge, Gateway string
	// NoSNAT: packets of pods leave the cluster with their own address.
	NoSNAT       bool
	ClusterCIDR  []netip.Prefix
	ServiceCIDRs []netip.Prefix
	Origin       *trace.Origin // of the configuration
}

// Antrea is a cluster's bridges as Antrea programs them: one flat pipeline of tables on
// each machine. It is not OVN: a bridge knows no logical switch.
type Antrea struct {
	o     AntreaOptions
	nodes []*AntreaNode
	vips  []antreaVIP
}

// NewAntrea returns a network without nodes.
func NewAntrea(o AntreaOptions) *Antrea { return &Antrea{o: o} }

// Addresses and the MAC address that Antrea makes up (antrea.virtual-addresses).
var (
	antreaVirtualIP   = netip.MustParseAddr("169.254.0.253")
	antreaNodePortIP  = netip.MustParseAddr("169.254.0.252")
	antreaVirtualMAC  = packet.MAC{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	antreaServicePort = "antrea services"
)

// antreaOverhead is what a tunnel takes of the adapter's MTU: 50 bytes for Geneve and
// VXLAN over IPv4 (antrea.mtu).
const antreaOverhead = 50

// AntreaNode is one machine: its stack, the bridge and the ports of the bridge.
type AntreaNode struct {
	name    string
	net     *Antrea
	stack   *host.Stack
	address netip.Addr
	nodeNet netip.Prefix
	subnet  netip.Prefix // of its pods
	nic     *wire.NIC
	// uplink is the link with the node's address: the bridge's own port on Windows, the
	// adapter on Linux. gateway is the host's port of the bridge.
	uplink, gateway *host.Link
	// proxyAll: the bridge serves Services for the host and for node ports, too.
	proxyAll bool
	ports    []*AntreaPort
	ct       conntrack
}

// AntreaPort is the port of one pod.
type AntreaPort struct {
	*machine.Compartment
	name string
	link *host.Link
	// in and out are the policies of the pod.
	in, out AntreaPolicies
}

// AntreaNodeOptions are those of a node that other designs have, and what the agent's
// configuration says for this one.
type AntreaNodeOptions struct {
	NodeOptions
	ProxyAll bool
}

// AddNode adds a machine with one adapter on seg.
func (a *Antrea) AddNode(o AntreaNodeOptions, seg *wire.Segment) (*AntreaNode, error) {
	subnet := o.Compartments.Masked()
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 29 {
		return nil, fmt.Errorf("antrea: node %s needs an IPv4 pod prefix of /29 or larger, as in podCIDR: 10.244.1.0/24", o.Name)
	}
	x := &AntreaNode{name: o.Name, net: a, address: o.Address, nodeNet: o.Subnet, subnet: subnet, proxyAll: o.ProxyAll}
	x.stack = &host.Stack{Place: o.Name, Object: "host stack", Windows: o.Windows, Forwarding: true, ReversePathOpen: !o.Windows}
	x.nic = &wire.NIC{Name: o.Name + " " + o.NIC, MAC: o.MAC, Owner: x}
	seg.Attach(x.nic)
	x.uplink = &host.Link{Name: o.NIC, MAC: o.MAC, Addrs: []netip.Prefix{netip.PrefixFrom(o.Address, o.Subnet.Bits())}}
	x.uplink.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return x.nic.Segment.Resolve(x.nic, ip) }
	x.uplink.Send = func(sim *wire.Simulation, p *packet.Packet) { x.nic.Segment.Send(sim, x.nic, p) }
	if o.Windows {
		x.uplink.Name = a.o.Bridge
		x.uplink.Send = func(sim *wire.Simulation, p *packet.Packet) {
			x.step(sim, p, "Classifier", "in_port=LOCAL", trace.ActForward, trace.Of(output{"the uplink"}), factAntreaUplink)
			x.nic.Segment.Send(sim, x.nic, p)
		}
	}
	x.stack.AddLink(x.uplink)
	x.addGateway()
	for _, other := range a.nodes {
		x.meet(other)
		other.meet(x)
	}
	a.nodes = append(a.nodes, x)
	x.translate()
	return x, nil
}

// gatewayIP is the host's address in the network of its pods.
func (x *AntreaNode) gatewayIP() netip.Addr { return nth(x.subnet, 1) }

// addGateway joins the host's stack and the bridge (antrea.gateway).
func (x *AntreaNode) addGateway() {
	l := &host.Link{Name: x.net.o.Gateway, MAC: macOf(x.gatewayIP()), Addrs: []netip.Prefix{netip.PrefixFrom(x.gatewayIP(), x.subnet.Bits())},
		MTU: x.mtu(), MTUFact: factAntreaMTU}
	l.Send = func(sim *wire.Simulation, p *packet.Packet) {
		x.enter(sim, &antreaPass{x: x, sim: sim, p: p, from: fromGateway})
	}
	l.Resolve = x.resolve
	x.gateway = l
	x.stack.AddLink(l)
	if !x.proxyAll {
		return
	}
	// antrea.service-routes
	x.stack.AppendRoutes(host.Route{To: netip.PrefixFrom(antreaVirtualIP, 32), Link: l, Fact: factAntreaServiceRoutes},
		host.Route{To: netip.PrefixFrom(antreaNodePortIP, 32), Via: antreaVirtualIP, Link: l, Fact: factAntreaServiceRoutes})
	for _, p := range x.net.o.ServiceCIDRs {
		if p.Addr().Is4() {
			x.stack.AppendRoutes(host.Route{To: p, Via: antreaVirtualIP, Link: l, Fact: factAntreaServiceRoutes})
		}
	}
}

// resolve answers for what is behind the bridge: pods, the host's port, and the gateways
// of other nodes and made-up addresses with the made-up MAC address.
func (x *AntreaNode) resolve(ip netip.Addr) (packet.MAC, bool) {
	if ip == x.gatewayIP() {
		return x.gateway.MAC, true
	}
	for _, p := range x.ports {
		if p.Address == ip {
			return p.link.MAC, true
		}
	}
	if ip == antreaVirtualIP || slices.ContainsFunc(x.net.nodes, func(o *AntreaNode) bool { return o != x && o.gatewayIP() == ip }) {
		return antreaVirtualMAC, true
	}
	return packet.MAC{}, false
}

// mtu follows antrea.mtu.
func (x *AntreaNode) mtu() int {
	if x.net.o.MTU != 0 {
		return x.net.o.MTU
	}
	if x.net.o.Encap == AntreaNoEncap {
		return host.EthernetMTU
	}
	return host.EthernetMTU - antreaOverhead
}

// meet gives the host its way to the pods of another node (antrea.node-routes).
func (x *AntreaNode) meet(o *AntreaNode) {
	r := host.Route{To: o.subnet, Via: o.gatewayIP(), Link: x.gateway, Fact: factAntreaNodeRoutes}
	switch {
	case x.direct(o):
		r.Via, r.Link = o.address, x.uplink
	case !x.tunnels(o):
		return // the network between the nodes has the way
	}
	x.stack.AppendRoutes(r)
}

// tunnels reports whether packets to another node's pods are encapsulated, direct whether
// they go to that node as they are.
func (x *AntreaNode) tunnels(o *AntreaNode) bool {
	return x.net.o.Encap == AntreaEncap || x.net.o.Encap == AntreaHybrid && !x.sameNet(o)
}
func (x *AntreaNode) direct(o *AntreaNode) bool  { return x.net.o.Encap != AntreaEncap && x.sameNet(o) }
func (x *AntreaNode) sameNet(o *AntreaNode) bool { return x.nodeNet.Contains(o.address) }

// translate sets up what gives packets that leave the cluster the node's address
// (antrea.snat-windows, antrea.snat-linux).
func (x *AntreaNode) translate() {
	origin := cmp.Or(x.net.o.Origin, &trace.Origin{What: "antrea-agent"})
	if !x.stack.Windows {
		x.stack.NAT = host.NewNetfilter()
		if !x.net.o.NoSNAT {
			x.stack.NAT.Rules = append(x.stack.NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "ANTREA-POSTROUTING",
				Src:    []netip.Prefix{x.subnet},
				NotSrc: []netip.Prefix{netip.PrefixFrom(x.gatewayIP(), 32)}, NotDst: x.net.o.ClusterCIDR, OutLink: x.uplink, Masquerade: true,
				Origin: origin, Fact: factAntreaLinuxSNAT})
		}
		return
	}
	nat := host.NewWinNAT(x.subnet, x.gateway, origin)
	nat.Rules[0].Name, nat.Rules[0].Fact = "NetNat antrea-nat "+x.subnet.String(), factAntreaNetNat
	virtual := nat.Rules[0]
	virtual.Name, virtual.Src, virtual.Fact = "NetNat for "+antreaVirtualIP.String(), []netip.Prefix{netip.PrefixFrom(antreaVirtualIP, 32)},
		factAntreaHostEndpoint
	if x.net.o.NoSNAT {
		nat.Rules = nil
	}
	if x.proxyAll {
		nat.Rules = append(nat.Rules, virtual)
	}
	x.stack.NAT = nat
}

// Stack is the stack of the machine itself.
func (x *AntreaNode) Stack() *host.Stack { return x.stack }

// Attach makes a compartment with a port of the bridge. Object is what traces call it; the
// zero MAC address is one that the model makes up.
func (x *AntreaNode) Attach(object, name string, addr netip.Addr, mac packet.MAC) *AntreaPort {
	st := &host.Stack{Place: x.name, Object: object, Windows: x.stack.Windows}
	if mac == (packet.MAC{}) {
		mac = macOf(addr)
	}
	link := "eth0"
	if x.stack.Windows {
		link = "vEthernet (" + name + ")"
	}
	l := &host.Link{Name: link, MAC: mac, Addrs: []netip.Prefix{netip.PrefixFrom(addr, x.subnet.Bits())}, MTU: x.mtu(), MTUFact: factAntreaMTU}
	p := &AntreaPort{Compartment: machine.NewCompartment(st, addr), name: name, link: l}
	l.Send = func(sim *wire.Simulation, q *packet.Packet) {
		sim.Taps.SeePort(x.name, "", true, q)
		x.enter(sim, &antreaPass{x: x, sim: sim, p: q, from: fromPod, in: p})
	}
	l.Resolve = x.resolve
	st.AddLink(l)
	st.AppendRoutes(host.Route{To: anywhere, Via: x.gatewayIP(), Link: l})
	x.ports = append(x.ports, p)
	return p
}

// Detach takes a port away.
func (x *AntreaNode) Detach(c *machine.Compartment) {
	x.ports = slices.DeleteFunc(x.ports, func(p *AntreaPort) bool { return p.Compartment == c })
}

// Port is the port of a compartment, nil for none.
func (x *AntreaNode) Port(c *machine.Compartment) *AntreaPort {
	for _, p := range x.ports {
		if p.Compartment == c {
			return p
		}
	}
	return nil
}

// port finds the pod that has an address.
func (x *AntreaNode) port(a netip.Addr) *AntreaPort {
	for _, p := range x.ports {
		if p.Address == a {
			return p
		}
	}
	return nil
}

// Receive takes a frame from the wire: a tunnel's, one for pods, or one for the host.
func (x *AntreaNode) Receive(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) {
	h := p.Headers()
	if h.EthDst == x.nic.MAC && x.fromTunnel(sim, p) {
		return
	}
	if !x.stack.Windows || h.IPVersion == 0 {
		x.stack.Input(sim, x.uplink, p)
		return
	}
	switch {
	case x.net.o.Encap != AntreaEncap && x.subnet.Contains(h.Dst):
		x.enter(sim, &antreaPass{x: x, sim: sim, p: p, from: fromUplink, rewriteMAC: true})
	case h.Dst == x.address:
		x.step(sim, p, "Classifier", "ip, in_port=uplink, nw_dst="+x.address.String(), trace.ActForward, trace.Of(output{x.uplink.Name}),
			factAntreaUplink)
		x.stack.Input(sim, x.uplink, p)
	default:
		x.drop(sim, p, "Classifier", "priority=0", trace.NotMyAddress, trace.Of(notForUplink{h.Dst}), factAntreaUplink)
	}
}

// ARP answers for the node's address.
func (x *AntreaNode) ARP(_ *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	return x.nic.MAC, ip == x.address
}

// Reset forgets connections and sockets, not the configuration.
func (x *AntreaNode) Reset() {
	x.stack.Reset()
	x.ct.reset()
	for _, p := range x.ports {
		p.Reset()
	}
}

// enter takes a packet into the bridge's pipeline.
func (x *AntreaNode) enter(sim *wire.Simulation, a *antreaPass) {
	sim.Path.Rests(&x.ct.changes, &x.ct.ways)
	h := a.p.Headers()
	switch {
	case h.IPVersion == 0:
		return // resolve answers ARP
	case h.IPVersion == 6:
		x.drop(sim, a.p, "PipelineRootClassifier", "priority=0", trace.FamilyNotSupported, trace.Note("the pipeline of this node is for IPv4"),
			factAntreaIPv4)
		return
	case x.stack.Windows && a.p.Fragmented():
		sim.RecordUnknown("what Open vSwitch on Windows does with IP fragments is not known; antrea-io/antrea#2981 describes a bug")
		return
	}
	a.run()
}

// step records what a table did, drop how the packet ended.
func (x *AntreaNode) step(sim *wire.Simulation, p *packet.Packet, table, rule string, act trace.Action, e trace.Event,
	fact *evidence.Fact) {
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: x.name, Object: x.net.o.Bridge, Layer: table, Rule: rule, Action: act, Event: e,
			Packet: sim.Rec.Describe(p)}.Cite(fact))
	}
}

func (x *AntreaNode) drop(sim *wire.Simulation, p *packet.Packet, table, rule string, why trace.Reason, e trace.Event,
	fact *evidence.Fact) {
	sim.RecordLoss(x.name, x.net.o.Bridge, why)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: x.name, Object: x.net.o.Bridge, Layer: table, Rule: rule, Action: trace.ActDrop, Reason: why, Event: e,
			Packet: sim.Rec.Describe(p)}.Cite(fact))
	}
}

// fromTunnel takes a packet that came through a tunnel, and reports whether it was one.
func (x *AntreaNode) fromTunnel(sim *wire.Simulation, p *packet.Packet) bool {
	h := p.Headers()
	if x.net.o.Encap == AntreaNoEncap || h.Proto != packet.UDP || h.DstPort != x.net.port() || h.Dst != x.address {
		return false
	}
	outer, err := p.Decap(x.net.o.Tunnel)
	if err != nil {
		x.drop(sim, p, "", "", trace.BadPacket, trace.Of(malformed{err}), factAntreaTunnel)
		return true
	}
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: x.name, Object: x.net.o.Bridge, Action: trace.ActDecap, Rule: "tun0",
			Event: trace.Of(throughTunnel{x.net.kind(), fromAddress(outer.Src)}), Packet: sim.Rec.Describe(p),
			Changes: []trace.Change{{Field: diff.Outer, Before: diff.Tunnel(x.net.o.Tunnel, outer.Src, outer.Dst, outer.VNI)}}}.Cite(
			factAntreaTunnel))
	}
	x.enter(sim, &antreaPass{x: x, sim: sim, p: p, from: fromTunnel, rewriteMAC: true})
	return true
}

// port is the UDP port of the tunnels, kind the name of their protocol.
func (a *Antrea) port() uint16 {
	return cmp.Or(a.o.Port, a.o.Tunnel.Port())
}

func (a *Antrea) kind() string { return a.o.Tunnel.String() }

// tunnel sends the packet to another node in a tunnel.
func (a *antreaPass) tunnel() {
	x, to := a.x, a.peer
	hop, reason := x.stack.NextHop(to.address)
	if reason == "" && hop.Link != x.uplink {
		reason = trace.NoRoute
	}
	if reason != "" {
		x.drop(a.sim, a.p, "Output", "", reason, trace.Of(noWayToChassis{to.name, hop}), factAntreaTunnel)
		return
	}
	err := a.p.Encap(packet.Outer{Kind: x.net.o.Tunnel, EthSrc: hop.Link.MAC, EthDst: hop.MAC, Src: x.address, Dst: to.address,
		DstPort: x.net.port(), TTL: 64})
	if err != nil {
		x.drop(a.sim, a.p, "Output", "", trace.BadPacket, trace.Of(malformed{err}), factAntreaTunnel)
		return
	}
	if a.sim.Rec.On() {
		a.sim.Rec.Add(trace.Step{Place: x.name, Object: x.net.o.Bridge, Layer: "Output", Rule: "tun_dst=" + to.address.String(),
			Action: trace.ActEncap,
			Event:  trace.Of(throughTunnel{x.net.kind(), toNode(to.name)}), Packet: a.sim.Rec.Describe(a.p),
			Changes: []trace.Change{{Field: diff.Outer, After: diff.Tunnel(x.net.o.Tunnel, x.address, to.address, 0)}}}.Cite(factAntreaTunnel))
	}
	x.nic.Segment.Send(a.sim, x.nic, a.p)
}
