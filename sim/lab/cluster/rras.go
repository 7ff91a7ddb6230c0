package cluster

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// The Kubernetes 1.5 design without a plugin: two adapters, a transparent
// container network on the second, RRAS between them, static routes to the
// other nodes' pods by the first. It is in this package because no program sets
// it up: an administrator does, by the guide.
var factRRAS = evidence.New("lab.rras-design", evidence.Stated,
	"Each Windows node has two adapters, a transparent container network on one of them, RRAS between them, and routes to the other nodes' pods through the routable adapter.",
	"Kubernetes 1.5 guide for Windows by L3 routing")

const rrasNetwork = "kube"

// rrasWindows makes the container network of a Windows node.
func (b *builder) rrasWindows(n *Node) error {
	n.windows.AddAdapter("Ethernet 2", n.Plan.PodNIC, b.Segment(n.Plan.Segment))
	cidr := n.PodCIDRs[0]
	gw := cidr.Addr().Next()
	if n.Plan.Dump != nil {
		return b.rrasDump(n, netip.PrefixFrom(gw, cidr.Bits()))
	}
	origin := &trace.Origin{What: "docker network create -d transparent " + rrasNetwork}
	_, err := n.HNS.CreateNetwork(hns.Network{
		Name: rrasNetwork, Type: hns.Transparent, ManagementIP: n.Address, Origin: origin,
		Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: cidr.String(),
			Routes: []hns.NetRoute{{NextHop: gw.String(), DestinationPrefix: "0.0.0.0/0"}}}}}},
		Policies: []hns.Policy{hns.NewPolicy(hns.NetAdapterNameSettings{NetworkAdapterName: "Ethernet 2"})},
	})
	if err != nil {
		return err
	}
	if err := n.windows.AddHostVNIC(rrasNetwork, netip.PrefixFrom(gw, cidr.Bits())); err != nil {
		return err
	}
	n.windows.Stack().Forwarding = n.Plan.Forwarding
	return b.rrasRoutes(n)
}

// rrasDump takes the container network of a Windows node from a dump. The host's address on its
// switch is not an HNS object: the design sets it.
func (b *builder) rrasDump(n *Node, gateway netip.Prefix) error {
	n.attach = n.attachFromDump
	if err := b.loadDump(n); err != nil {
		return err
	}
	for _, nw := range n.HNS.ListNetworks(func(nw *hns.Network) bool { return nw.Is(hns.Transparent) }) {
		if err := n.windows.AddHostVNIC(nw.Name, gateway); err != nil {
			return err
		}
	}
	n.windows.Stack().Forwarding, n.windows.Stack().ForwardingUnknown = n.Plan.Forwarding, ""
	return b.rrasRoutes(n)
}

// rrasLinux makes the bridge of a Linux node.
func (b *builder) rrasLinux(n *Node) error {
	cidr := n.PodCIDRs[0]
	n.linux.AddBridge("cbr0", netip.PrefixFrom(cidr.Addr().Next(), cidr.Bits()))
	n.linux.Stack().Forwarding = true
	return b.rrasRoutes(n)
}

// rrasRoutes are the static routes to the pods of all other nodes.
func (b *builder) rrasRoutes(n *Node) error {
	for _, peer := range b.Kube.Nodes {
		if peer == n.Node {
			continue
		}
		r := host.Route{To: peer.PodCIDRs[0], Via: peer.Address, Origin: &trace.Origin{What: "static route to the pods of " + peer.Name},
			Fact: factRRAS}
		if err := n.machine.Stack().AddRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress is the address that a pod pins or the node's next one.
func (n *Node) freeAddress(p *pod) netip.Addr {
	if p.Address.IsValid() {
		return p.Address
	}
	n.leases++
	return plan.Nth(n.PodCIDRs[0].Addr(), 3+n.leases)
}

// attachToBridge attaches a pod to the bridge of a Linux node.
func (n *Node) attachToBridge(p *pod) (attached, error) {
	cidr := n.PodCIDRs[0]
	c, err := n.linux.Attach(p.object(), netip.PrefixFrom(n.freeAddress(p), cidr.Bits()), cidr.Addr().Next(), false)
	return attached{Compartment: c}, err
}

// attachTransparent attaches a container as Docker does on the transparent
// network.
func (n *Node) attachTransparent(p *pod) (attached, error) {
	cidr := n.PodCIDRs[0]
	gw := cidr.Addr().Next()
	e, err := n.HNS.CreateEndpoint(hns.Endpoint{
		Name: p.Name + "_" + rrasNetwork, HostComputeNetwork: n.HNS.NetworkByName(rrasNetwork).ID, Origin: p.Origin,
		IpConfigurations: []hns.IpConfig{{IpAddress: n.freeAddress(p).String(), PrefixLength: uint8(cidr.Bits())}},
		Routes:           []hns.NetRoute{{NextHop: gw.String(), DestinationPrefix: "0.0.0.0/0"}},
	})
	if err != nil {
		return attached{}, err
	}
	if err := n.HNS.AttachContainer(e.ID, p.Key()); err != nil {
		return attached{}, err
	}
	c, err := n.windows.Attach(p.object(), e.ID, gw)
	return attached{Compartment: c, endpoint: e.ID}, err
}
