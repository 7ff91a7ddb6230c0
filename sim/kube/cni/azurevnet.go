package cni

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// azure is azure-vnet: pods have addresses of the node's own subnet.
type azure struct {
	inSubnet
	// hostPortFlags are those of PortMapping policies (cni.azure-host-port).
	hostPortFlags hns.NatFlags
	// hostPort6: a hostPort gets a PortMapping policy for IPv6 as well
	// (cni.azure-host-port-ipv6).
	hostPort6 bool
}

// azureConf reads what azure-vnet reads (azure-container-networking
// cni/netconfig.go).
func (r *reader) azureConf(c *Conf, n *yaml.Node) {
	r.fields(string(PluginAzure), string(PluginAzure), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	c.mode = r.text(n, "mode")
	switch c.mode {
	case "", "bridge", "tunnel", "l2bridge", "l2tunnel":
	default:
		r.errorf(r.get(n, "mode").val, "mode is %q; on Windows it is bridge (l2bridge) or tunnel (l2tunnel)", c.mode)
	}
	c.ipv6Mode = r.text(n, "ipv6Mode")
	if f := r.get(n, "windowsSettings"); f != nil && r.object("windowsSettings", f.val) {
		c.loopbackDSR = isTrue(r.flag(f.val, "enableLoopbackDSR"))
		r.fields("windowsSettings", "azure-vnet.windowsSettings", f.val)
	}
	r.dns(c, n)
	follows := "azure-vnet-ipam"
	if f := r.get(n, "ipam"); f != nil && f.val.Kind == yaml.MappingNode {
		if c.ipam.mode = r.text(f.val, "mode"); c.azureOverlay() {
			follows = "azure-cns" // which is the only one that has the mode
		} else if r.text(f.val, "type") == "azure-cns" && r.text(n, "executionMode") == "v4swift" {
			c.podSubnet, follows = true, "azure-cns"
		}
	}
	mode := c.ipam.mode
	r.ipam(c, n, PluginAzure, follows)
	c.ipam.mode = mode
	if f := r.get(n, "AdditionalArgs"); f != nil {
		// azure-vnet reads policies in the form of v1 and writes them in that of
		// the API that it calls (network/policy/policy_windows.go).
		r.policies(c, f, 1)
	}
}

func newAzure(o Options, b *base) (Plugin, error) {
	v, err := parseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	// cni.azure-dns-both
	if d := o.Conf.dns; (len(d.Search) == 0) != (len(d.Nameservers) == 0) {
		return nil, fmt.Errorf("%s: Wrong DNS configuration: dns must have both nameservers and search, or neither", o.Conf.file)
	}
	a := &azure{inSubnet: inSubnet{b}}
	if v.atLeast(1, 5, 0) {
		a.hostPortFlags = hns.NatFlagLocalRoutedVIP
	}
	a.hostPort6 = v.atLeast(1, 6, 2) || v.atLeast(1, 5, 4) && !v.atLeast(1, 5, 14)
	return a, nil
}

// NetworkType follows cni.azure-mode.
func (a *azure) NetworkType() hns.NetworkType {
	if strings.HasSuffix(a.o.Conf.mode, "tunnel") {
		return hns.L2Tunnel
	}
	return hns.L2Bridge
}

// azureOverlay reports whether pods have addresses of their own range, which the platform
// routes (cni.azure-overlay).
func (c *Conf) azureOverlay() bool {
	return slices.Contains([]string{"overlay", "v4overlay", "dualStackOverlay"}, c.ipam.mode)
}

// overlayRange is the node's range of pods with azureOverlay, and its gateway.
func (a *azure) overlayRange(n *kube.Node) (netip.Prefix, netip.Addr, error) {
	p := podPrefix4(n)
	if !p.IsValid() {
		return p, netip.Addr{}, fmt.Errorf("node %s has no podCIDR; with ipam mode %s azure-vnet gives pods addresses of it", n.Name,
			a.o.Conf.ipam.mode)
	}
	return p, nth(p, 1), nil
}

// subnetOfPods is the subnet that a node's block of addresses is of, its gateway, and the
// block, with podSubnet.
func (a *azure) subnetOfPods(c *kube.Cluster, n *kube.Node) (subnet netip.Prefix, gateway netip.Addr, block netip.Prefix, err error) {
	block = podPrefix4(n)
	for _, p := range c.ClusterCIDRs {
		if block.IsValid() && p.Bits() < block.Bits() && p.Contains(block.Addr()) {
			return p.Masked(), nth(p, 1), block, nil
		}
	}
	return subnet, gateway, block,
		fmt.Errorf(
			"node %s has no podCIDR inside clusterCIDR, which is the subnet of pods; with executionMode v4swift azure-cns gives pods addresses of that subnet", n.Name)
}

// podSubnetLease gives a pod an address of its node's block, whose first two are not for
// pods (cni.azure-pod-subnet-block).
func (a *azure) podSubnetLease(c *kube.Cluster, n *kube.Node, p *kube.Pod, taken func(netip.Addr) bool) (Lease, error) {
	subnet, gateway, block, err := a.subnetOfPods(c, n)
	if err != nil {
		return Lease{}, err
	}
	pl := a.pools[n.Name]
	if pl == nil {
		pl = newPool("node "+n.Name, subnet, nth(block, 2), last(block).Prev(), gateway)
		pl.reserve("the gateway", gateway)
		pl.reserve("the primary address of the block", nth(block, 1))
		pl.reserved = a.reserved
		a.pools[n.Name] = pl
	}
	return pl.lease(owner(p), p.Address, taken)
}

// Prepare makes the network that the plugin itself makes at its first ADD.
func (a *azure) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	subnet, gateway := n.Subnet.Masked(), n.Gateway
	if a.o.Conf.azureOverlay() {
		var err error
		if subnet, gateway, err = a.overlayRange(n); err != nil {
			return Host{}, err
		}
	} else if a.o.Conf.podSubnet {
		var err error
		if subnet, gateway, _, err = a.subnetOfPods(c, n); err != nil {
			return Host{}, err
		}
	} else if err := a.check(n); err != nil {
		return Host{}, err
	}
	name := a.o.Conf.name
	if nw := s.NetworkByName(name); nw != nil {
		return Host{Network: nw.ID}, nil
	}
	ipams := []hns.Ipam{static(subnet, gateway)}
	six := a.prefix6(n)
	if six.IsValid() { // one address space with both subnets
		ipams[0].Subnets = append(ipams[0].Subnets, static(six, nth(six, 1)).Subnets...)
	}
	nw, err := s.CreateNetwork(hns.Network{
		Name: name, Type: a.NetworkType(), Flags: hns.NetworkNonPersistent, ManagementIP: n.Address,
		Ipams: ipams, Origin: a.o.Conf.origin,
	})
	if err != nil {
		return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, name, err)
	}
	h := Host{Network: nw.ID}
	if six.IsValid() {
		h.Links = []netip.Prefix{six} // cni.azure-ipv6-route
	}
	return h, nil
}

// prefix6 is the range of the IPv6 addresses of a node's pods, the zero Prefix for none
// (cni.azure-ipv6-range).
func (a *azure) prefix6(n *kube.Node) netip.Prefix {
	six := podPrefix6(n)
	if a.o.Conf.azureOverlay() || a.o.Conf.podSubnet || a.o.Conf.ipv6Mode == "" || !six.IsValid() || six.Bits() > azureRange6 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(six.Addr(), azureRange6)
}

// azureIPv6NAT is the ipv6Mode in which pods reach what is outside with the node's
// address.
const azureIPv6NAT = "ipv6nat"

// The addresses of the platform that pods of a subnet of their own are translated for.
const (
	azureDNS      = "168.63.129.16"
	azureMetadata = "169.254.169.254"
)

// azureRange6 is the prefix length of a node's IPv6 range.
const azureRange6 = 120

// WhyNoIPv6 says what the configuration lacks.
func (a *azure) WhyNoIPv6() (string, *evidence.Fact) {
	if a.o.Conf.azureOverlay() {
		return "the model of azure-vnet's overlay modes supports only IPv4", factAzureOverlay
	}
	if a.o.Conf.ipv6Mode == "" {
		return "the configuration of azure-vnet has no ipv6Mode", factAzureIPv6
	}
	return "", nil
}

// lease is that of the subnet, with an IPv6 address where the node has a range.
func (a *azure) lease(c *kube.Cluster, n *kube.Node, p *kube.Pod, taken func(netip.Addr) bool) (Lease, error) {
	if a.o.Conf.azureOverlay() {
		prefix, gateway, err := a.overlayRange(n)
		if err != nil {
			return Lease{}, err
		}
		return a.hostLocal(n, prefix, gateway).lease(owner(p), p.Address, taken)
	}
	if a.o.Conf.podSubnet {
		return a.podSubnetLease(c, n, p, taken)
	}
	l, err := a.inSubnet.lease(c, n, p, taken)
	six := a.prefix6(n)
	if err != nil || !six.IsValid() {
		return l, err
	}
	p6, err := a.hostLocal(n, six, nth(six, 1)).lease(owner(p), netip.Addr{}, nil)
	l.Prefix6, l.Gateway6 = p6.Prefix, p6.Gateway
	return l, err
}

func (a *azure) Lease(c *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	return a.lease(c, n, p, nil)
}

func (a *azure) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := a.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.name, hns.L2Bridge, hns.L2Tunnel)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	l, err := a.lease(c, n, p, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, version{})
	dual := l.Prefix6.IsValid()
	if dual && conf.ipv6Mode == azureIPv6NAT { // cni.azure-ipv6-nat
		ps.add(hns.OutBoundNATSettings{Exceptions: []string{l.Prefix6.Masked().String()}}, "ipv6Mode")
	}
	ps.hostIP6 = dual
	ps.ports(p, a.hostPortFlags, true)
	if dual && a.hostPort6 {
		ps.ports6(p, hns.NatFlagIPv6, func(hp kube.HostPort) bool { return !hp.HostIP.IsValid() })
	}
	ps.loopback(s.Build(), l.Prefix.Addr())
	if conf.podSubnet && s.Build().Has(builds.NATDestinations) {
		ps.add(hns.OutBoundNATSettings{VirtualIP: nth(podPrefix4(n), 1).String(), Destinations: []string{azureDNS}}, "executionMode")
		ps.add(hns.OutBoundNATSettings{Destinations: []string{azureMetadata}}, "executionMode")
	}
	r, err := a.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "-eth0", mac: hostMAC(l.Prefix.Addr()), policies: ps.all, lease: l})
	if err != nil {
		a.release4and6(n, p)
	}
	return r, err
}

// Linux follows cni.azure-linux.
func (a *azure) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	var six []netip.Prefix
	if a.prefix6(n).IsValid() {
		for _, p := range append(slices.Clone(c.ClusterCIDRs), n.Subnet6) {
			if p.IsValid() && p.Addr().Is6() {
				six = append(six, p)
			}
		}
	}
	return a.linux(c, n, six...)
}

var factAzureOverlay = evidence.New("cni.azure-overlay", evidence.Code,
	"With ipam mode overlay (v4overlay, dualStackOverlay) azure-vnet takes a pod's address from azure-cns, out of the node's own range, and makes its l2bridge network with that range; without a gateway from azure-cns it takes the range's first address.",
	"Azure/azure-container-networking cni/network/invoker_cns.go configureDefaultAddResult",
	"Azure/azure-container-networking cni/network/network.go addSubnetToEndpointInfo",
	"Azure/azure-container-networking cni/network/network_windows.go getOverlayGateway")

var (
	_ = evidence.New("cni.azure-pod-subnet", evidence.Code,
		"With ipam type azure-cns, executionMode v4swift and no overlay mode azure-vnet takes a pod's address, its prefix length and its gateway from azure-cns, which has them of a subnet for pods, makes its l2bridge network with that subnet, and from Windows version 1903 on adds two OutBoundNAT policies: to the platform's DNS with the primary address of the node's addresses, and to the metadata service.",
		"Azure/azure-container-networking cni/network/invoker_cns.go configureDefaultAddResult",
		"Azure/azure-container-networking cni/network/network_windows.go getNATInfo",
		"Azure/azure-container-networking network/policy/policy_windows.go GetHcnEndpointPolicies")
	_ = evidence.New("cni.azure-pod-subnet-block", evidence.Inferred,
		"The subnet for pods is the cluster's range, and azure-cns has the node's podCIDR of it, with the second address as the primary one. The platform delivers such addresses to the node's adapter, which winlab's lab writes as user-defined routes with IP forwarding.")
)

var _ = evidence.New("cni.azure-overlay-range", evidence.Inferred,
	"The node's range of azure-cns is its podCIDR. The platform routes it to the node, which winlab's lab writes as user-defined routes with IP forwarding.")
