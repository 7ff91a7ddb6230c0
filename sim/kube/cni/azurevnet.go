package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// azureMaxPods is how many addresses a node holds for pods (AKS's default of
// 30 pods for each node with Azure CNI).
const azureMaxPods = 30

// azure is azure-vnet: pods have addresses of the node's own subnet.
type azure struct {
	*base
	// hostPortFlags are those of PortMapping policies (cni.azure-host-port).
	hostPortFlags hns.NatFlags
	// hostPort6: a hostPort gets a PortMapping policy for IPv6 as well
	// (cni.azure-host-port-ipv6).
	hostPort6 bool
}

// azureConf reads what azure-vnet reads (azure-container-networking
// cni/netconfig.go).
func (r *reader) azureConf(c *Conf, n *node) {
	r.fields(string(PluginAzure), string(PluginAzure), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	c.mode = r.text(n, "mode")
	switch c.mode {
	case "", "bridge", "tunnel", "l2bridge", "l2tunnel":
	default:
		r.errorf(n.get("mode").val.begin, "mode is %q; on Windows it is bridge (l2bridge) or tunnel (l2tunnel)", c.mode)
	}
	c.ipv6Mode = r.text(n, "ipv6Mode")
	if f := n.get("windowsSettings"); f != nil && r.object("windowsSettings", f.val) {
		c.loopbackDSR = isTrue(r.flag(f.val, "enableLoopbackDSR"))
		r.fields("windowsSettings", "azure-vnet.windowsSettings", f.val)
	}
	r.dns(c, n)
	r.ipam(c, n, PluginAzure, "azure-vnet-ipam")
	if f := n.get("AdditionalArgs"); f != nil {
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
	a := &azure{base: b}
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

// Prepare makes the network that the plugin itself makes at its first ADD.
func (a *azure) Prepare(_ *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	if err := azureNode(n); err != nil {
		return Host{}, err
	}
	name := a.o.Conf.name
	if nw := s.NetworkByName(name); nw != nil {
		return Host{Network: nw.ID}, nil
	}
	ipams := []hns.Ipam{static(n.Subnet.Masked(), n.Gateway)}
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
	if a.o.Conf.ipv6Mode == "" || !six.IsValid() || six.Bits() > azureRange6 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(six.Addr(), azureRange6)
}

// azureIPv6NAT is the ipv6Mode in which pods reach what is outside with the node's
// address.
const azureIPv6NAT = "ipv6nat"

// azureRange6 is the prefix length of a node's IPv6 range.
const azureRange6 = 120

// WhyNoIPv6 says what the configuration lacks.
func (a *azure) WhyNoIPv6() (string, *evidence.Fact) {
	if a.o.Conf.ipv6Mode == "" {
		return "the configuration of azure-vnet has no ipv6Mode", factAzureIPv6
	}
	return "", nil
}

func azureNode(n *kube.Node) error {
	switch {
	case !n.Subnet.IsValid() || !n.Subnet.Contains(n.Address):
		return fmt.Errorf("node %s: its address %s must be in a subnet; azure-vnet gives pods addresses of it", n.Name, n.Address)
	case !n.Gateway.IsValid():
		return fmt.Errorf("node %s has no gateway; azure-vnet gives it to pods", n.Name)
	}
	return nil
}

// pool is the block of addresses after the node's own, without those of other nodes
// (cni.azure-addresses). Blocks may overlap; lease gives no address twice.
func (a *azure) pool(c *kube.Cluster, n *kube.Node) (*pool, error) {
	if p := a.pools[n.Name]; p != nil {
		return p, nil
	}
	if err := azureNode(n); err != nil {
		return nil, err
	}
	others := map[netip.Addr]bool{}
	for _, other := range c.Nodes {
		others[other.Address] = true
	}
	end := last(n.Subnet)
	first, to := n.Address.Next(), netip.Addr{}
	for a, i := first, 0; i < azureMaxPods && a != end && n.Subnet.Contains(a); a = a.Next() {
		if !others[a] {
			to = a
			i++
		}
	}
	if !to.IsValid() {
		return nil, errors.New("node " + n.Name + ": its subnet has no address after its own that no other node has, so it has none for pods")
	}
	p := newPool("node "+n.Name, netip.PrefixFrom(n.Subnet.Addr(), n.Subnet.Bits()), first, to, n.Gateway)
	p.reserve("the gateway", n.Gateway)
	for _, other := range c.Nodes {
		p.reserve("node "+other.Name, other.Address)
	}
	p.reserve("reserved", a.o.Reserved...)
	a.pools[n.Name] = p
	return p, nil
}

// lease refuses an address that another node gave out already.
func (a *azure) lease(c *kube.Cluster, n *kube.Node, p *kube.Pod, taken func(netip.Addr) bool) (Lease, error) {
	pl, err := a.pool(c, n)
	if err != nil {
		return Lease{}, err
	}
	elsewhere := func(addr netip.Addr) string {
		for _, other := range c.Nodes {
			if q := a.pools[other.Name]; q != nil && q != pl && q.used[addr] != "" {
				return q.used[addr]
			}
		}
		return ""
	}
	if p.Address.IsValid() {
		if by := elsewhere(p.Address); by != "" {
			return Lease{}, fmt.Errorf("pod %s: requested IP address %s is not available: it is taken by %s", owner(p), p.Address, by)
		}
	}
	l, err := pl.lease(owner(p), p.Address, func(addr netip.Addr) bool {
		return elsewhere(addr) != "" || taken != nil && taken(addr)
	})
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
	r, err := a.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "-eth0", mac: hostMAC(l.Prefix.Addr()), policies: ps.all, lease: l})
	if err != nil {
		a.release4and6(n, p)
	}
	return r, err
}

// Linux follows cni.azure-linux.
func (a *azure) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	not := notMasqueraded(c.ClusterCIDRs)
	if n.Subnet.IsValid() {
		not = append([]netip.Prefix{n.Subnet.Masked()}, not...)
	}
	if a.prefix6(n).IsValid() {
		for _, p := range append(slices.Clone(c.ClusterCIDRs), n.Subnet6) {
			if p.IsValid() && p.Addr().Is6() {
				not = append(not, p)
			}
		}
	}
	return LinuxSetup{Forwarding: true, PodsInNodeSubnet: true, MasqueradeNot: dedupe(not)}
}

func dedupe(ps []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range ps {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
