package cni

import (
	"fmt"
	"net/netip"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// bridge is win-bridge, alone or as the delegate of flannel's host-gw.
type bridge struct {
	*base
	// hostEndpoint names the endpoint .2 of the node.
	hostEndpoint string
	// network is the name that the agent gives the network.
	network string
	origin  *trace.Origin
	// peerRoutes: the agent routes to the other nodes' pods.
	peerRoutes bool
	// masquerade is what flannel writes into ipMasqNetwork.
	masquerade netip.Prefix
	dnsServers []string
	// dual: the network has the node's IPv6 prefix as well.
	dual bool
}

// winBridgeConf reads what win-bridge reads.
func (r *reader) winBridgeConf(c *Conf, n *yaml.Node) {
	r.windowsConf(PluginWinBridge, c, n)
	if f := r.get(n, "HcnPolicyArgs"); f != nil {
		r.hcnPolicyArgs(c, f)
	}
}

func newWinBridge(o Options, b *base) (Plugin, error) {
	v, err := parseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	b.release = v
	b.warnPolicies()
	return &bridge{base: b, hostEndpoint: "cbr0", network: o.Conf.name, origin: o.Conf.origin}, nil
}

func (b *bridge) NetworkType() hns.NetworkType { return hns.L2Bridge }

// Prepare makes the network, puts the node's own endpoint into it and turns on
// forwarding. That is flanneld's work (pkg/backend/hostgw/hostgw_windows.go) or
// the start script's (microsoft/SDN Kubernetes/windows/start-kubelet.ps1).
func (b *bridge) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	prefix, err := podPrefix(n, b.o.Conf)
	if err != nil {
		return Host{}, err
	}
	h := Host{Forwarding: true}
	nw := s.NetworkByName(b.network)
	if nw == nil {
		nw, err = s.CreateNetwork(hns.Network{
			Name: b.network, Type: hns.L2Bridge, ManagementIP: n.Address, Dns: hns.DNS{ServerList: b.dnsServers},
			Ipams:  b.ipams(n, prefix),
			Origin: b.origin,
		})
		if err != nil {
			return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, b.network, err)
		}
	}
	h.Network = nw.ID
	e := s.EndpointByName(b.hostEndpoint)
	if e == nil {
		at := nth(prefix, 2)
		in := hns.Endpoint{
			Name: b.hostEndpoint, HostComputeNetwork: nw.ID, MacAddress: hostMAC(at), Origin: b.origin,
			IpConfigurations: []hns.IpConfig{{IpAddress: at.String(), PrefixLength: uint8(prefix.Bits())}},
		}
		if six := podPrefix6(n); b.dual && six.IsValid() {
			in.IpConfigurations = append(in.IpConfigurations, hns.IpConfig{IpAddress: nth(six, 2).String(), PrefixLength: uint8(six.Bits())})
		}
		e, err = s.CreateEndpoint(in)
		if err != nil {
			return Host{}, fmt.Errorf("node %s: host endpoint %s: %w", n.Name, b.hostEndpoint, err)
		}
		if err := s.AttachEndpoint(e.ID, s.HostNamespace().ID); err != nil {
			return Host{}, fmt.Errorf("node %s: host endpoint %s: %w", n.Name, b.hostEndpoint, err)
		}
	}
	h.HostEndpoints = []string{e.ID}
	if b.peerRoutes {
		h.Routes = func() []HostRoute { return b.routes(c, n) }
	}
	return h, nil
}

// ipams are the address spaces of the network.
func (b *bridge) ipams(n *kube.Node, prefix netip.Prefix) []hns.Ipam {
	all := []hns.Ipam{static(prefix, nth(prefix, 1))}
	if six := podPrefix6(n); b.dual && six.IsValid() {
		all = append(all, static(six, nth(six, 1)))
	}
	return all
}

// WhyNoIPv6 follows cni.win-bridge-one-address.
func (b *bridge) WhyNoIPv6() (string, *evidence.Fact) {
	if b.peerRoutes {
		return "flanneld on Windows uses only the IPv4 subnet of its lease, and win-bridge only the first address that the IPAM returns",
			factOneAddress
	}
	return "win-bridge uses only the first address that the IPAM returns; sdnbridge and azure-vnet support both families", factOneAddress
}

func (b *bridge) routes(c *kube.Cluster, n *kube.Node) []HostRoute {
	var rs []HostRoute
	for _, p := range peers(c, n) {
		rs = append(rs, HostRoute{To: p.prefix, Via: p.node.Address, Origin: b.origin})
	}
	return rs
}

// static is an address space with one subnet and its default route.
func static(prefix netip.Prefix, gateway netip.Addr, policies ...hns.Policy) hns.Ipam {
	all := "0.0.0.0/0"
	if prefix.Addr().Is6() {
		all = "::/0"
	}
	return hns.Ipam{Type: "Static", Subnets: []hns.Subnet{{
		IpAddressPrefix: prefix.String(), Policies: policies,
		Routes: []hns.NetRoute{{NextHop: gateway.String(), DestinationPrefix: all}},
	}}}
}

func (b *bridge) pool(n *kube.Node) (*pool, error) {
	prefix, err := podPrefix(n, b.o.Conf)
	if err != nil {
		return nil, err
	}
	gateway := nth(prefix, 2) // cni.win-bridge-gateway
	if n.Windows == nil {
		gateway = nth(prefix, 1) // cni0
	}
	return b.hostLocal(n, prefix, gateway), nil
}

func (b *bridge) Lease(_ *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	pl, err := b.pool(n)
	if err != nil {
		return Lease{}, err
	}
	return pl.lease(owner(p), p.Address, nil)
}

func (b *bridge) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := b.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.name, hns.L2Bridge, hns.L2Tunnel)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	if r, done, err := b.addAgain(n, p, s); done {
		return r, err
	}
	pl, err := b.pool(n)
	if err != nil {
		return Result{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, b.release)
	if b.masquerade.IsValid() { // flannel overwrites what the delegate has
		ps.masquerade(b.masquerade, "ipMasqNetwork, set by flannel")
	} else {
		ps.masquerade(conf.ipMasqNetwork, "ipMasqNetwork")
	}
	ps.ports(p, 0, conf.apiVersion == 2)
	ps.loopback(s.Build(), l.Prefix.Addr())
	r, err := b.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: hostMAC(l.Prefix.Addr()), policies: ps.all,
		lease: l})
	if err != nil {
		pl.release(owner(p))
	}
	return r, err
}

func (b *bridge) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	l := linuxBridge(c, n)
	if b.peerRoutes {
		l.Routes = b.routes(c, n)
	}
	return l
}

// linuxBridge is the node with cni0 and masquerading of what leaves the cluster.
func linuxBridge(c *kube.Cluster, n *kube.Node) LinuxSetup {
	l := LinuxSetup{Forwarding: true, MasqueradeNot: notMasqueraded(c.ClusterCIDRs)}
	for _, p := range n.PodCIDRs {
		if p.Addr().Is4() {
			l.Bridge = netip.PrefixFrom(nth(p, 1), p.Bits())
			break
		}
	}
	return l
}

// multicast is never masqueraded (cni.linux-masquerade).
var multicast = netip.MustParsePrefix("224.0.0.0/4")

func notMasqueraded(prefixes []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4() {
			all = append(all, p)
		}
	}
	return append(all, multicast)
}
