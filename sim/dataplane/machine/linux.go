package machine

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// Linux is a Linux machine: a node, a router or a host.
type Linux struct {
	name   string
	stack  *host.Stack
	nics   []adapter
	used   host.Used // of its compartments
	router bool

	bridge     *wire.Segment
	bridgeLink *host.Link
	proxyARP   []netip.Addr
}

// adapter is a NIC with the machine's link on it.
type adapter struct {
	nic  *wire.NIC
	link *host.Link
}

// NewLinux returns a machine without adapters. Place is where traces say it is.
func NewLinux(name, place string) *Linux {
	return &Linux{name: name, stack: &host.Stack{Place: place, Object: "host stack"}}
}

// Stack is the machine's own IP stack.
func (n *Linux) Stack() *host.Stack { return n.stack }

// NewRouter returns a machine without adapters that forwards for others. The
// network of a cloud treats it as its gateway.
func NewRouter(name, place string) *Linux {
	n := NewLinux(name, place)
	n.stack.Object, n.stack.Forwarding, n.router = "router "+name, true, true
	return n
}

// Routes reports whether the machine was made as a router.
func (n *Linux) Routes() bool { return n.router }

// AddAdapter plugs a NIC into a segment.
func (n *Linux) AddAdapter(name string, mac packet.MAC, seg *wire.Segment, addrs ...netip.Prefix) *host.Link {
	a := adapter{nic: &wire.NIC{Name: n.name + " " + name, MAC: mac, Owner: n}}
	seg.Attach(a.nic)
	a.link = &host.Link{Name: name, MAC: mac, Addrs: addrs}
	a.link.Send = func(sim *wire.Simulation, p *packet.Packet) { a.nic.Segment.Send(sim, a.nic, p) }
	a.link.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return a.nic.Segment.Resolve(a.nic, ip) }
	n.nics = append(n.nics, a)
	n.stack.AddLink(a.link)
	return a.link
}

// Receive takes a frame from the wire.
func (n *Linux) Receive(sim *wire.Simulation, nic *wire.NIC, p *packet.Packet) {
	for _, a := range n.nics {
		if a.nic == nic {
			n.stack.Input(sim, a.link, p)
			return
		}
	}
}

// ARP answers for the machine's addresses on that adapter, and on the first one
// for those of compartments in the machine's own network.
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

// AddBridge makes the bridge that compartments are plugged into, with an address
// of the machine on it. Without an address they are reached by host routes.
func (n *Linux) AddBridge(name string, addr netip.Prefix, more ...netip.Prefix) {
	n.bridge = &wire.Segment{Name: "bridge " + name, Place: n.name}
	n.bridge.Policy = func(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) bool {
		// br_netfilter: bridged packets of known connections are translated
		// too, so replies inside one machine keep the translated address.
		if n.stack.NAT != nil && n.bridgeLink != nil && p.Headers().EthDst != n.bridgeLink.MAC {
			n.stack.Use()
			n.stack.NAT.Bridged(n.stack, sim, p)
		}
		return false
	}
	if addr.IsValid() {
		n.bridgeLink = n.AddAdapter(name, bridgeMAC(addr.Addr()), n.bridge, append([]netip.Prefix{addr}, more...)...)
	} else {
		n.bridgeLink = n.AddAdapter(name, packet.MAC{0x0a, 0x58, 0, 0, 0, 1}, n.bridge)
	}
}

// port is the interface of a compartment.
type port struct{ c *Compartment }

func (d port) Receive(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) {
	d.c.stack.Input(sim, d.c.stack.Links[0], p)
}

func (d port) ARP(_ *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	if l := d.c.stack.Links[0]; l.Owns(ip) {
		return l.MAC, true
	}
	return packet.MAC{}, false
}

// Attach plugs a compartment into the machine's bridge; object is what traces
// call it. inSubnet says that its address is one of the machine's own network.
func (n *Linux) Attach(object string, addr netip.Prefix, gateway netip.Addr, inSubnet bool) (*Compartment, error) {
	if n.bridge == nil {
		return nil, fmt.Errorf("%s has no bridge for %s", n.name, object)
	}
	mac := bridgeMAC(addr.Addr())
	c := NewCompartment(&host.Stack{Place: n.name, Object: object, In: &n.used}, addr.Addr())
	nic := &wire.NIC{Name: object, MAC: mac, Owner: port{c}}
	n.bridge.Attach(nic)
	l := &host.Link{Name: "eth0", MAC: mac, Addrs: []netip.Prefix{addr}}
	l.Send = func(sim *wire.Simulation, q *packet.Packet) { n.bridge.Send(sim, nic, q) }
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if inSubnet {
			// The machine answers for everything (azure-vnet's transparent mode).
			return n.bridgeLink.MAC, true
		}
		return n.bridge.Resolve(nic, ip)
	}
	c.stack.AddLink(l)
	c.stack.AppendRoutes(host.Route{To: host.Everywhere(addr.Addr()), Via: gateway, Link: l})
	if inSubnet {
		n.proxyARP = append(n.proxyARP, addr.Addr())
		n.stack.AppendRoutes(host.Route{To: netip.PrefixFrom(addr.Addr(), addr.Addr().BitLen()), Link: n.bridgeLink})
	}
	return c, nil
}

// AddAddress gives a compartment of the machine's bridge another address, of the other
// family. When no address of the bridge is in its network, the machine gets a route to it.
func (n *Linux) AddAddress(c *Compartment, addr netip.Prefix, gateway netip.Addr) {
	l := c.stack.Links[0]
	if !slices.ContainsFunc(n.bridgeLink.Addrs, func(p netip.Prefix) bool { return p.Masked() == addr.Masked() }) {
		n.stack.AppendRoutes(host.Route{To: netip.PrefixFrom(addr.Addr(), addr.Addr().BitLen()), Link: n.bridgeLink})
	}
	l.Addrs = append(l.Addrs, addr)
	c.stack.AppendRoutes(host.Route{To: addr.Masked(), Link: l}, host.Route{To: host.Everywhere(addr.Addr()), Via: gateway, Link: l})
}

// Detach takes a compartment off the machine's bridge.
func (n *Linux) Detach(c *Compartment) {
	if n.bridge == nil {
		return
	}
	n.bridge.Detach(func(nic *wire.NIC) bool { return nic.Owner == wire.Device(port{c}) })
	n.proxyARP = slices.DeleteFunc(n.proxyARP, func(a netip.Addr) bool { return a == c.Address })
	n.stack.DeleteRoutes(func(r host.Route) bool {
		return r.Link == n.bridgeLink && r.To.IsSingleIP() && c.stack.Owns(r.To.Addr())
	})
}

// bridgeMAC is the address that Linux's CNI plugins make from an IP address
// (containernetworking/plugins pkg/utils/hwaddr).
func bridgeMAC(a netip.Addr) packet.MAC {
	b := a.As16()
	return packet.MAC{0x0a, 0x58, b[12], b[13], b[14], b[15]}
}

// Reset forgets all sockets and translations.
func (n *Linux) Reset() {
	n.stack.Reset()
	n.used.Reset()
}
