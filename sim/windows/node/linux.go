package node

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// Linux is a Linux machine: a node, a router or a host outside the cluster.
type Linux struct {
	Name  string
	Stack *host.Stack
	nics  []*adapter
	pods  []*Pod

	// Router marks a machine that carries packets of others by nature.
	Router bool

	bridge     *wire.Segment
	bridgeLink *host.Link
	proxyARP   []netip.Addr
}

// NewLinux returns a machine without adapters.
func NewLinux(name, place string) *Linux {
	return &Linux{Name: name, Stack: &host.Stack{Place: place, Object: "host stack"}}
}

// AddAdapter plugs a NIC into a segment.
func (n *Linux) AddAdapter(name string, mac packet.MAC, seg *wire.Segment, addrs ...netip.Prefix) *host.Link {
	a := &adapter{nic: &wire.NIC{Name: n.Name + " " + name, MAC: mac, Owner: n}}
	seg.Attach(a.nic)
	a.link = &host.Link{Name: name, MAC: mac, Addrs: addrs}
	a.link.Send = func(sim *wire.Simulation, p *packet.Packet) { a.nic.Segment.Send(sim, a.nic, p) }
	a.link.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return a.nic.Segment.Resolve(a.nic, ip) }
	n.nics = append(n.nics, a)
	n.Stack.AddLink(a.link)
	return a.link
}

// Routes reports whether the machine is a router of the fabric.
func (n *Linux) Routes() bool { return n.Router }

// Receive takes a frame from the wire.
func (n *Linux) Receive(sim *wire.Simulation, nic *wire.NIC, p *packet.Packet) {
	for _, a := range n.nics {
		if a.nic == nic {
			n.Stack.Input(sim, a.link, p)
			return
		}
	}
}

// ARP answers for the machine's addresses on that adapter, and for those of
// pods that live in the node's own subnet.
func (n *Linux) ARP(nic *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	for i, a := range n.nics {
		if a.nic != nic {
			continue
		}
		if a.link.Owns(ip) {
			return a.link.MAC, true
		}
		for _, p := range n.proxyARP {
			if i == 0 && p == ip {
				return a.link.MAC, true
			}
		}
	}
	return packet.MAC{}, false
}

// AddBridge makes the bridge that pods are plugged into, with the node's
// address on it. Without an address pods are reached by host routes.
func (n *Linux) AddBridge(name string, addr netip.Prefix) {
	n.bridge = &wire.Segment{Name: "bridge " + name, Place: n.Name}
	n.bridge.Policy = func(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) bool {
		// br_netfilter: bridged packets of known connections are translated
		// too, so replies between pods of one node keep the Service's address.
		if n.Stack.NAT != nil && n.bridgeLink != nil && p.Headers().EthDst != n.bridgeLink.MAC {
			n.Stack.NAT.Bridged(n.Stack, sim, p)
		}
		return false
	}
	mac := packet.MAC{0x0a, 0x58, 0, 0, 0, 1}
	if addr.IsValid() {
		b := addr.Addr().As16()
		mac = packet.MAC{0x0a, 0x58, b[12], b[13], b[14], b[15]}
		n.bridgeLink = n.AddAdapter(name, mac, n.bridge, addr)
	} else {
		n.bridgeLink = n.AddAdapter(name, mac, n.bridge)
	}
}

// podDevice is the adapter of a Linux pod.
type podDevice struct{ p *Pod }

func (d podDevice) Receive(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) {
	d.p.Stack.Input(sim, d.p.Stack.Links[0], p)
}

func (d podDevice) ARP(_ *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	if l := d.p.Stack.Links[0]; l.Owns(ip) {
		return l.MAC, true
	}
	return packet.MAC{}, false
}

// AttachPod plugs a pod into the node's bridge. inNodeSubnet says that the
// pod's address is one of the node's own network.
func (n *Linux) AttachPod(namespace, name string, addr netip.Prefix, gateway netip.Addr, inNodeSubnet bool) (*Pod, error) {
	if n.bridge == nil {
		return nil, fmt.Errorf("pod %s/%s: node %s has no pod network", namespace, name, n.Name)
	}
	b := addr.Addr().As16()
	mac := packet.MAC{0x0a, 0x58, b[12], b[13], b[14], b[15]}
	p := &Pod{Namespace: namespace, Name: name, Address: addr.Addr(), Node: n.Name}
	p.Stack = &host.Stack{Place: n.Name, Object: "pod/" + namespace + "/" + name}
	nic := &wire.NIC{Name: name, MAC: mac, Owner: podDevice{p}}
	n.bridge.Attach(nic)
	l := &host.Link{Name: "eth0", MAC: mac, Addrs: []netip.Prefix{addr}}
	l.Send = func(sim *wire.Simulation, q *packet.Packet) { n.bridge.Send(sim, nic, q) }
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if inNodeSubnet {
			// The node answers for everything (azure-vnet's transparent mode).
			return n.bridgeLink.MAC, true
		}
		return n.bridge.Resolve(nic, ip)
	}
	p.Stack.AddLink(l)
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if addr.Addr().Is6() {
		all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	p.Stack.Routes = append(p.Stack.Routes, host.Route{To: all, Via: gateway, Link: l})
	if inNodeSubnet {
		n.proxyARP = append(n.proxyARP, addr.Addr())
		n.Stack.Routes = append(n.Stack.Routes, host.Route{To: netip.PrefixFrom(addr.Addr(), addr.Addr().BitLen()), Link: n.bridgeLink})
	}
	n.pods = append(n.pods, p)
	return p, nil
}

// Reset forgets all sockets and translations.
func (n *Linux) Reset() {
	n.Stack.Reset()
	for _, p := range n.pods {
		p.Stack.Reset()
	}
}
