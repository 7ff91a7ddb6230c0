package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// What the logical network does, as data.

// routersOwn is a packet to a router that nothing translates.
type routersOwn struct{ dst netip.Addr }

func (e routersOwn) Text() string {
	return fmt.Sprintf("%s is the router's own address, and no translation is known for the packet", e.dst)
}

type noRoute struct {
	dst netip.Addr
	// noGateway: the way out of the cluster is missing on all nodes.
	noGateway bool
}

func (e noRoute) Text() string {
	if e.noGateway {
		return fmt.Sprintf("no route to %s: no node has a gateway router", e.dst)
	}
	return "no route to " + e.dst.String()
}

type nextHop struct {
	via netip.Addr
	out string
}

func (e nextHop) Text() string { return fmt.Sprintf("next hop %s, out of %s", e.via, e.out) }

type noNeighbour struct{ via netip.Addr }

func (e noNeighbour) Text() string { return fmt.Sprintf("no machine answers for %s", e.via) }

type sourceTranslated struct{ to netip.Addr }

func (e sourceTranslated) Text() string { return "ct_snat: source translated to " + e.to.String() }

type toPort struct{ name string }

func (e toPort) Text() string { return "to port " + e.name }

type output struct{ port string }

func (e output) Text() string { return "output to " + e.port }

type noPort struct{ dst packet.MAC }

func (e noPort) Text() string { return "no port of the switch has the MAC address " + e.dst.String() }

// foreignMAC and foreignSource are packets that port security drops.
type (
	foreignMAC    struct{ src packet.MAC }
	foreignSource struct{ src netip.Addr }
)

func (e foreignMAC) Text() string    { return fmt.Sprintf("source MAC %s is not the port's", e.src) }
func (e foreignSource) Text() string { return fmt.Sprintf("source %s is not the port's", e.src) }

type noLoadBalancer struct {
	proto packet.Proto
	dst   netip.Addr
}

func (e noLoadBalancer) Text() string {
	return fmt.Sprintf("no load balancer for %s %s: the packet keeps the virtual address", e.proto, e.dst)
}

type backendChosen struct {
	pick, of int // pick counts from 0
	service  string
}

func (e backendChosen) Text() string {
	return fmt.Sprintf("ct_lb: backend %d of %d of %s", e.pick+1, e.of, e.service)
}

// aclMatched is an ACL that decided.
type aclMatched struct {
	name     string
	allow    bool
	priority int
}

func (e aclMatched) Text() string {
	verdict := "drop"
	if e.allow {
		verdict = "allow-related"
	}
	return fmt.Sprintf("%s: %s, priority %d", e.name, verdict, e.priority)
}

// hostReceive is a packet for the node that came in by its management port.
type hostReceive struct {
	dst  netip.Addr
	link string
}

func (e hostReceive) Text() string {
	return fmt.Sprintf("strong host model: %s is not the address of %s", e.dst, e.link)
}

type inSTT struct{ chassis string }

func (e inSTT) Text() string {
	return fmt.Sprintf("the packet goes to %s in STT, which is not modelled", e.chassis)
}

type noWayToChassis struct {
	chassis string
	hop     host.Hop
}

func (e noWayToChassis) Text() string { return fmt.Sprintf("tunnel to %s: %s", e.chassis, e.hop) }

type notByUplink struct{ chassis, link string }

func (e notByUplink) Text() string {
	return fmt.Sprintf("tunnel to %s: the route leads to %s, not to the uplink", e.chassis, e.link)
}

// malformed is a packet that could not be changed as it had to be.
type malformed struct{ err error }

func (e malformed) Text() string { return e.err.Error() }

// tunnelled is a packet that enters or leaves a tunnel.
type tunnelled struct {
	// peer is "to chassis NAME" or "from ADDRESS".
	peer     fmt.Stringer
	vni      uint32
	datapath string
	in, out  string // logical ports
}

func (e tunnelled) Text() string {
	return fmt.Sprintf("Geneve %s: VNI %d is %s, metadata %s to %s", e.peer, e.vni, e.datapath, e.in, e.out)
}

// toChassis and fromAddress are the other end of a tunnel.
type (
	toChassis   string
	fromAddress netip.Addr
)

func (c toChassis) String() string   { return "to chassis " + string(c) }
func (a fromAddress) String() string { return "from " + netip.Addr(a).String() }

type unknownChassis struct{ src netip.Addr }

func (e unknownChassis) Text() string {
	return fmt.Sprintf("a Geneve packet from %s, which is not a chassis of the network", e.src)
}

type unknownVNI struct{ vni uint32 }

func (e unknownVNI) Text() string { return fmt.Sprintf("VNI %d is not a logical datapath here", e.vni) }

// unknownPorts is a tunnel packet whose ports are not here.
type unknownPorts struct {
	in, out  uint16
	datapath string
}

func (e unknownPorts) Text() string {
	return fmt.Sprintf("the metadata names ports %d and %d of %s, and the second is not on this chassis", e.in, e.out, e.datapath)
}
