package ovs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Node is one machine of the network: its stack, its OVS bridges and its
// chassis record.
type Node struct {
	name  string
	stack *host.Stack

	net             *Network
	address         netip.Addr
	nodeNet, subnet netip.Prefix
	nic             *wire.NIC
	bridge          string // name of the bridge that has the adapter
	uplink, mgmt    *host.Link
	sw              *datapath // the node's logical switch
	toSwitch        *port     // the cluster router's port to it
	gr              *datapath // the gateway router, nil for none
	joinIP          netip.Addr
	localnet        *port
	ct              conntrack
	compartments    []*machine.Compartment
}

// NodeOptions describe a machine of a network.
type NodeOptions struct {
	Name string
	// Windows machines do not forward, and have other names for their interfaces.
	Windows bool
	// NIC is the name of the adapter, MAC its address.
	NIC string
	MAC packet.MAC
	// Address is the machine's in Subnet, Gateway its default gateway.
	Address netip.Addr
	Subnet  netip.Prefix
	Gateway netip.Addr
	// Compartments is the prefix of its logical switch.
	Compartments netip.Prefix
}

func newNode(n *Network, o NodeOptions, seg *wire.Segment, subnet netip.Prefix) *Node {
	x := &Node{name: o.Name, net: n, address: o.Address, nodeNet: o.Subnet, subnet: subnet}
	x.stack = &host.Stack{Place: o.Name, Object: "host stack", Windows: o.Windows, Forwarding: !o.Windows}
	// ovn-kubernetes go-controller/pkg/util/nicstobridge_windows.go and
	// nicstobridge_linux.go name the bridge so.
	x.bridge = "br" + o.NIC
	if o.Windows {
		x.bridge = "vEthernet (" + o.NIC + ")"
	}
	x.nic = &wire.NIC{Name: o.Name + " " + o.NIC, MAC: o.MAC, Owner: x}
	seg.Attach(x.nic)
	x.uplink = &host.Link{Name: x.bridge, MAC: o.MAC, Addrs: []netip.Prefix{netip.PrefixFrom(o.Address, o.Subnet.Bits())}}
	x.uplink.Send = func(sim *wire.Simulation, p *packet.Packet) { x.nic.Segment.Send(sim, x.nic, p) }
	x.uplink.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return x.nic.Segment.Resolve(x.nic, ip) }
	x.stack.AddLink(x.uplink)
	if o.Gateway.IsValid() {
		x.stack.AppendRoutes(host.Route{To: anywhere, Via: o.Gateway, Link: x.uplink})
	}
	return x
}

// Stack is the stack of the machine itself.
func (x *Node) Stack() *host.Stack { return x.stack }

// addHost gives the node's own stack its management port.
func (x *Node) addHost() {
	addr := netip.PrefixFrom(nth(x.subnet, 2), x.subnet.Bits())
	gw := nth(x.subnet, 1)
	x.mgmt = &host.Link{Name: "ovn-k8s-mp0", MAC: macOf(addr.Addr()), Addrs: []netip.Prefix{addr}, MTU: tunnelMTU}
	x.plug(&port{name: "k8s-" + x.name, kind: management, mac: x.mgmt.MAC, addr: addr}, x.mgmt, x.stack)
	x.stack.AddLink(x.mgmt)
	if c := x.net.o.ClusterCIDR; c.IsValid() {
		x.stack.AppendRoutes(host.Route{To: c, Via: gw, Link: x.mgmt, Metric: 2, Fact: factManagement})
	}
	if s := x.net.o.ServiceCIDR; s.IsValid() && x.net.param(paramServiceRoute) != "no" {
		x.stack.AppendRoutes(host.Route{To: s, Via: gw, Link: x.mgmt, Metric: 2, Fact: factServiceRoute})
	}
}

// plug joins a stack's link and a port of the node's switch.
func (x *Node) plug(p *port, l *host.Link, s *host.Stack) {
	p.chassis = x
	p.deliver = func(sim *wire.Simulation, q *packet.Packet) { s.Input(sim, l, q) }
	x.sw.addPort(p)
	l.Send = func(sim *wire.Simulation, q *packet.Packet) {
		sim.Taps.SeePort(x.name, p.label, true, q)
		if x.losesFragments(sim, q) {
			return
		}
		sim.Path.Rests(&x.ct.changes, &x.ct.ways)
		pl := &pipeline{x: x, sim: sim, p: q, dp: x.sw}
		if p.kind == management && x.net.o.ServiceCIDR.Contains(q.Headers().Dst) && x.net.param(paramServiceRoute) == "unknown" {
			pl.unknown("", trace.Note("whether this node's own packets to a Service address reach OVN is not known"), factServiceRoute)
			return
		}
		if q.Headers().IPVersion != 0 {
			pl.enter(p)
		}
	}
	// ls_in_arp_rsp answers for every address that the switch knows.
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return x.sw.neighbour(ip) }
}

// Attach makes a compartment with an address of the node's subnet and a port of
// its logical switch. Object is what traces call it, portName the name of the
// logical port. The zero wish takes the first free address, from the third of
// the subnet on.
func (x *Node) Attach(object, portName string, wish netip.Addr) (*machine.Compartment, error) {
	addr, err := x.allocate(wish)
	if err != nil {
		return nil, err
	}
	st := &host.Stack{Place: x.name, Object: object, Windows: x.stack.Windows}
	link := "eth0"
	if x.stack.Windows {
		link = "vEthernet (" + portName + ")"
	}
	prefix := netip.PrefixFrom(addr, x.subnet.Bits())
	l := &host.Link{Name: link, MAC: macOf(addr), Addrs: []netip.Prefix{prefix}, MTU: tunnelMTU}
	x.plug(&port{name: portName, kind: vif, mac: l.MAC, addr: prefix}, l, st)
	st.AddLink(l)
	st.AppendRoutes(host.Route{To: anywhere, Via: nth(x.subnet, 1), Link: l})
	c := machine.NewCompartment(st, addr)
	x.compartments = append(x.compartments, c)
	return c, nil
}

// Detach takes a compartment and its logical port away; its address is free again.
func (x *Node) Detach(c *machine.Compartment) {
	x.sw.ports = slices.DeleteFunc(x.sw.ports, func(p *port) bool { return p.kind == vif && p.addr.Addr() == c.Address })
	x.compartments = slices.DeleteFunc(x.compartments, func(o *machine.Compartment) bool { return o == c })
}

// allocate is OVN's IPAM for one switch: the first address is the router's, the
// second the management port's, the last the broadcast address.
func (x *Node) allocate(wish netip.Addr) (netip.Addr, error) {
	last := lastOf(x.subnet)
	usable := func(a netip.Addr) bool {
		_, taken := x.sw.neighbour(a)
		return x.subnet.Contains(a) && a != x.subnet.Addr() && a != last && !taken
	}
	if wish.IsValid() {
		if !usable(wish) {
			return wish, fmt.Errorf("address %s is taken or not one for containers of %s: write one from %s on", wish, x.subnet, nth(x.subnet, 3))
		}
		return wish, nil
	}
	for a := nth(x.subnet, 3); x.subnet.Contains(a); a = a.Next() {
		if usable(a) {
			return a, nil
		}
	}
	return wish, fmt.Errorf("no address is free in %s", x.subnet)
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// losesFragments notes what is not known about Open vSwitch on Windows. On Linux its
// connection tracking puts fragments together (ovs-actions(7), ct).
func (x *Node) losesFragments(sim *wire.Simulation, p *packet.Packet) bool {
	if x.stack.Windows && p.Fragmented() {
		sim.RecordUnknown("what Open vSwitch on Windows does with IP fragments is not known; antrea-io/antrea#2981 describes a bug")
		return true
	}
	return false
}

// Receive takes a frame from the wire.
func (x *Node) Receive(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) {
	sim.Path.Rests(&x.ct.changes, &x.ct.ways)
	if x.losesFragments(sim, p) {
		return
	}
	if p.Headers().EthDst == x.nic.MAC && x.fromTunnel(sim, p) {
		return
	}
	x.fromPhysical(sim, p)
}

// ARP answers for the node's address, and for external addresses of Services
// on the first gateway.
func (x *Node) ARP(_ *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	if ip == x.address {
		return x.nic.MAC, true
	}
	if x.net.firstGateway() == x {
		for _, v := range x.net.external {
			if v.addr.Addr() == ip {
				return x.nic.MAC, true
			}
		}
	}
	return packet.MAC{}, false
}

// Reset forgets connections and sockets, not the configuration.
func (x *Node) Reset() {
	x.stack.Reset()
	x.ct.reset()
	for _, c := range x.compartments {
		c.Reset()
	}
}
