package lab

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// The Kubernetes 1.5 design without a plugin: two adapters, a transparent
// container network on the second, RRAS between them, static routes to the
// other nodes' pods by the first. It lives here because no program does it:
// an administrator does, by the guide.
var factRRAS = evidence.New("lab.rras-design", evidence.Stated,
	"Each Windows node has two adapters, a transparent container network on one of them, RRAS between them and routes to the other nodes' pods by the routable one.",
	"Kubernetes 1.5 guide for Windows by L3 routing")

const rrasNetwork = "kube"

func (b *builder) rrasNode(n Node, k *kube.Node, w *node.Windows) error {
	if len(k.PodCIDRs) == 0 {
		return fmt.Errorf("node %s: the rras design needs a podCIDR", n.Name)
	}
	w.AddAdapter("Ethernet 2", b.mac(), b.segments[n.Segment])
	cidr := k.PodCIDRs[0]
	gw := cidr.Addr().Next()
	origin := &trace.Origin{What: "docker network create -d transparent " + rrasNetwork}
	_, err := b.hns[n.Name].CreateNetwork(hns.Network{
		Name: rrasNetwork, Type: hns.Transparent, ManagementIP: k.Address, Origin: origin,
		Ipams:    []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: cidr.String(), Routes: []hns.NetRoute{{NextHop: gw.String(), DestinationPrefix: "0.0.0.0/0"}}}}}},
		Policies: []hns.Policy{hns.NewPolicy(hns.NetAdapterNameSettings{NetworkAdapterName: "Ethernet 2"})},
	})
	if err != nil {
		return err
	}
	if err := w.AddHostVNIC(rrasNetwork, netip.PrefixFrom(gw, cidr.Bits())); err != nil {
		return err
	}
	w.Stack().Forwarding = n.RRAS == nil || *n.RRAS
	return b.rrasRoutes(k, w.Stack())
}

// rrasRoutes are the static routes to the pods of all other nodes.
func (b *builder) rrasRoutes(k *kube.Node, st *host.Stack) error {
	for _, peer := range b.Kube.Nodes {
		if peer == k || len(peer.PodCIDRs) == 0 {
			continue
		}
		if err := st.AddRoute(host.Route{To: peer.PodCIDRs[0], Via: peer.Address, Origin: &trace.Origin{What: "static route to the pods of " + peer.Name}, Fact: factRRAS}); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) rrasLinux(n Node, k *kube.Node, l *machine.Linux) error {
	if len(k.PodCIDRs) == 0 {
		return fmt.Errorf("node %s: the rras design needs a podCIDR", n.Name)
	}
	cidr := k.PodCIDRs[0]
	l.AddBridge("cbr0", netip.PrefixFrom(cidr.Addr().Next(), cidr.Bits()))
	l.Stack().Forwarding = true
	return b.rrasRoutes(k, l.Stack())
}

// rrasPod attaches a container as Docker does on the transparent network.
func (b *builder) rrasPod(object string, kp *kube.Pod, k *kube.Node) (attached, error) {
	cidr := k.PodCIDRs[0]
	gw := cidr.Addr().Next()
	addr := kp.Address
	if !addr.IsValid() {
		b.leases[k.Name]++
		addr = nth(cidr.Addr(), 3+b.leases[k.Name])
	}
	if k.Windows == nil {
		c, err := b.linux[k.Name].Attach(object, netip.PrefixFrom(addr, cidr.Bits()), gw, false)
		return attached{Compartment: c}, err
	}
	svc := b.hns[k.Name]
	e, err := svc.CreateEndpoint(hns.Endpoint{
		Name: kp.Name + "_" + rrasNetwork, HostComputeNetwork: svc.NetworkByName(rrasNetwork).ID, Origin: kp.Origin,
		IpConfigurations: []hns.IpConfig{{IpAddress: addr.String(), PrefixLength: uint8(cidr.Bits())}},
		Routes:           []hns.NetRoute{{NextHop: gw.String(), DestinationPrefix: "0.0.0.0/0"}},
	})
	if err != nil {
		return attached{}, err
	}
	if err := svc.AttachContainer(e.ID, kp.Namespace+"/"+kp.Name); err != nil {
		return attached{}, err
	}
	c, err := b.windows[k.Name].Attach(object, e.ID, gw)
	return attached{c, e.ID}, err
}
