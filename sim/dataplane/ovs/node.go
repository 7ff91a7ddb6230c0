package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// Node is one machine of the network: its stack, its OVS bridges and its
// chassis record.
type Node struct {
	Name  string
	Stack *host.Stack

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
	pods            []*node.Pod
}

func newNode(n *Network, info *kube.Node, windows bool, nicName string, seg *wire.Segment, subnet netip.Prefix) *Node {
	x := &Node{Name: info.Name, net: n, address: info.Address, nodeNet: info.Subnet, subnet: subnet}
	x.Stack = &host.Stack{Place: info.Name, Object: "host stack", Windows: windows, Forwarding: !windows}
	// ovn-kubernetes go-controller/pkg/util/nicstobridge_windows.go and
	// nicstobridge_linux.go name the bridge so.
	x.bridge = "br" + nicName
	if windows {
		x.bridge = "vEthernet (" + nicName + ")"
	}
	x.nic = &wire.NIC{Name: info.Name + " " + nicName, MAC: info.MAC, Owner: x}
	seg.Attach(x.nic)
	x.uplink = &host.Link{Name: x.bridge, MAC: info.MAC, Addrs: []netip.Prefix{netip.PrefixFrom(info.Address, info.Subnet.Bits())}}
	x.uplink.Send = func(sim *wire.Simulation, p *packet.Packet) { x.nic.Segment.Send(sim, x.nic, p) }
	x.uplink.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return x.nic.Segment.Resolve(x.nic, ip) }
	x.Stack.AddLink(x.uplink)
	if info.Gateway.IsValid() {
		x.Stack.Routes = append(x.Stack.Routes, host.Route{To: anywhere, Via: info.Gateway, Link: x.uplink})
	}
	return x
}

// addHost gives the node's own stack its management port.
func (x *Node) addHost() {
	addr := netip.PrefixFrom(nth(x.subnet, 2), x.subnet.Bits())
	gw := nth(x.subnet, 1)
	x.mgmt = &host.Link{Name: "ovn-k8s-mp0", MAC: macOf(addr.Addr()), Addrs: []netip.Prefix{addr}}
	x.plug(&port{name: "k8s-" + x.Name, kind: management, mac: x.mgmt.MAC, addr: addr}, x.mgmt, x.Stack)
	x.Stack.AddLink(x.mgmt)
	if c := x.net.o.ClusterCIDR; c.IsValid() {
		x.Stack.Routes = append(x.Stack.Routes, host.Route{To: c, Via: gw, Link: x.mgmt, Metric: 2, Fact: factManagement})
	}
	if s := x.net.o.ServiceCIDR; s.IsValid() && x.net.param(ParamServiceRoute) != "no" {
		x.Stack.Routes = append(x.Stack.Routes, host.Route{To: s, Via: gw, Link: x.mgmt, Metric: 2, Fact: factServiceRoute})
	}
}

// plug joins a stack's link and a port of the node's switch.
func (x *Node) plug(p *port, l *host.Link, s *host.Stack) {
	p.chassis = x
	p.deliver = func(sim *wire.Simulation, q *packet.Packet) { s.Input(sim, l, q) }
	x.sw.addPort(p)
	l.Send = func(sim *wire.Simulation, q *packet.Packet) {
		sim.Taps.SeePort(x.Name, p.label, true, q)
		pl := &pipeline{x: x, sim: sim, p: q, dp: x.sw}
		if p.kind == management && x.net.o.ServiceCIDR.Contains(q.Headers().Dst) && x.net.param(ParamServiceRoute) == "unknown" {
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

// AttachPod gives a pod an address of the node's subnet and a port of its
// logical switch. A zero p.Address takes the first free one from the third.
func (x *Node) AttachPod(p *kube.Pod) (*node.Pod, netip.Prefix, error) {
	addr, err := x.allocate(p.Address)
	if err != nil {
		return nil, netip.Prefix{}, fmt.Errorf("pod %s/%s on node %s: %w", p.Namespace, p.Name, x.Name, err)
	}
	prefix := netip.PrefixFrom(addr, x.subnet.Bits())
	pod := &node.Pod{Namespace: p.Namespace, Name: p.Name, Address: addr, Node: x.Name}
	pod.Stack = &host.Stack{Place: x.Name, Object: "pod/" + p.Namespace + "/" + p.Name, Windows: x.Stack.Windows}
	name := "eth0"
	if x.Stack.Windows {
		pod.Stack.Refuse = x.net.o.Refuse
		name = "vEthernet (" + p.Namespace + "_" + p.Name + ")"
	}
	l := &host.Link{Name: name, MAC: macOf(addr), Addrs: []netip.Prefix{prefix}}
	x.plug(&port{name: p.Namespace + "_" + p.Name, kind: vif, mac: l.MAC, addr: prefix}, l, pod.Stack)
	pod.Stack.AddLink(l)
	pod.Stack.Routes = append(pod.Stack.Routes, host.Route{To: anywhere, Via: nth(x.subnet, 1), Link: l})
	x.pods = append(x.pods, pod)
	return pod, prefix, nil
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
			return wish, fmt.Errorf("address %s is taken or not one for pods of %s: write one from %s on", wish, x.subnet, nth(x.subnet, 3))
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

// Receive takes a frame from the wire.
func (x *Node) Receive(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) {
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
	x.Stack.Reset()
	x.ct.reset()
	for _, p := range x.pods {
		p.Stack.Reset()
	}
}
