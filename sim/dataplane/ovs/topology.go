package ovs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// datapath is a logical switch or router.
type datapath struct {
	name string
	// key is the tunnel key, the VNI of packets that leave a chassis in this
	// datapath.
	key    uint32
	router bool
	ports  []*port
	// routes are a router's; node is where a gateway router lives.
	routes []route
	node   *Node
}

// portKind says what is behind a logical port.
type portKind int

const (
	vif        portKind = iota // a pod
	management                 // the node's own stack
	patch                      // a router or switch, see peer
	localnet                   // the physical network
)

// port is a logical port.
type port struct {
	name string
	key  uint16
	dp   *datapath
	kind portKind
	mac  packet.MAC
	// addr has the host bits: address and prefix length.
	addr netip.Prefix
	peer *port
	// chassis is where the port is; nil is everywhere.
	chassis *Node
	// label is how taps name the port.
	label   string
	deliver func(sim *wire.Simulation, p *packet.Packet)
}

// route is a static or connected route of a logical router.
type route struct {
	to netip.Prefix
	// bySource matches the source address.
	bySource bool
	via      netip.Addr
	out      *port
}

// priority is OVN's: the prefix length twice, plus one by destination.
func (r route) priority() int {
	if r.bySource {
		return r.to.Bits() * 2
	}
	return r.to.Bits()*2 + 1
}

func (r route) match() string {
	if r.bySource {
		return "ip4.src == " + r.to.String()
	}
	return "ip4.dst == " + r.to.String()
}

// lookup finds the route for a packet.
func (d *datapath) lookup(src, dst netip.Addr) (route, bool) {
	var best route
	found := false
	for _, r := range d.routes {
		a := dst
		if r.bySource {
			a = src
		}
		if r.to.Contains(a) && (!found || r.priority() > best.priority()) {
			best, found = r, true
		}
	}
	return best, found
}

// owns reports whether an address is one of a router's own.
func (d *datapath) owns(a netip.Addr) bool {
	return slices.ContainsFunc(d.ports, func(p *port) bool { return p.addr.IsValid() && p.addr.Addr() == a })
}

func (d *datapath) byKey(key uint16) *port {
	i := slices.IndexFunc(d.ports, func(p *port) bool { return p.key == key })
	if i < 0 {
		return nil
	}
	return d.ports[i]
}

// neighbour finds the MAC address that a switch knows for an address: of its
// pods, the management port and the routers on it.
func (d *datapath) neighbour(a netip.Addr) (packet.MAC, bool) {
	for _, p := range d.ports {
		q := p
		if p.kind == patch {
			q = p.peer
		}
		if q.addr.IsValid() && q.addr.Addr() == a {
			return q.mac, true
		}
	}
	return packet.MAC{}, false
}

// addDatapath makes a datapath with the next tunnel key.
func (n *Network) addDatapath(name string, router bool) *datapath {
	d := &datapath{name: name, key: uint32(len(n.datapaths) + 1), router: router}
	n.datapaths = append(n.datapaths, d)
	return d
}

// addPort adds a port with the next key of its datapath.
func (d *datapath) addPort(p *port) *port {
	p.dp, p.key, p.label = d, 1, "logical port "+p.name
	if n := len(d.ports); n > 0 {
		p.key = d.ports[n-1].key + 1
	}
	d.ports = append(d.ports, p)
	return p
}

// connect joins a router and a switch: the router's port has the address.
func connect(router *datapath, rname string, mac packet.MAC, addr netip.Prefix, sw *datapath, sname string,
	chassis *Node) (onRouter *port) {
	r := router.addPort(&port{name: rname, kind: patch, mac: mac, addr: addr, chassis: chassis})
	s := sw.addPort(&port{name: sname, kind: patch, mac: mac, chassis: chassis})
	r.peer, s.peer = s, r
	router.routes = append(router.routes, route{to: addr.Masked(), out: r})
	return r
}

// macOf is the MAC address that OVN Kubernetes makes from an IPv4 address.
func macOf(a netip.Addr) packet.MAC {
	b := a.As4()
	return packet.MAC{0x0a, 0x58, b[0], b[1], b[2], b[3]}
}

// nth is the i-th address of a prefix; 0 is the first.
func nth(p netip.Prefix, i int) netip.Addr {
	a := p.Masked().Addr()
	for ; i > 0; i-- {
		a = a.Next()
	}
	return a
}

// etherMatch writes a MAC address as OVN's matches have it, with colons.
func etherMatch(m packet.MAC) string { return strings.ReplaceAll(m.String(), "-", ":") }

func quote(s string) string { return fmt.Sprintf("%q", s) }
