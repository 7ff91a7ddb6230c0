package cni

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// base is what all plugins share: options, addresses and the making of endpoints.
type base struct {
	o Options
	// release is that of containernetworking/plugins, for win-bridge and win-overlay.
	release  version
	warnings strict.Mistakes
	pools    map[string]*pool // by node
	pools6   map[string]*pool // those of IPv6
	made     map[string]madePod
	reserved map[netip.Addr]bool // o.Reserved
	nodes    nodesAt
}

// nodesAt are the nodes of a cluster by their addresses.
type nodesAt struct {
	of    *kube.Cluster
	count int
	at    map[netip.Addr]string
}

// addressesOfNodes are the names of a cluster's nodes by address: the same map for all nodes.
func (b *base) addressesOfNodes(c *kube.Cluster) map[netip.Addr]string {
	if b.nodes.of != c || b.nodes.count != len(c.Nodes) {
		b.nodes = nodesAt{c, len(c.Nodes), make(map[netip.Addr]string, len(c.Nodes))}
		for _, n := range c.Nodes {
			if b.nodes.at[n.Address] == "" {
				b.nodes.at[n.Address] = n.Name
			}
		}
	}
	return b.nodes.at
}

// madePod is what add has made for a pod.
type madePod struct {
	Result
	conf *Conf
}

func newBase(o Options) *base {
	b := &base{o: o, pools: map[string]*pool{}, pools6: map[string]*pool{}, made: map[string]madePod{}, reserved: map[netip.Addr]bool{}}
	for _, a := range o.Reserved {
		b.reserved[a] = true
	}
	return b
}

func podKey(n *kube.Node, p *kube.Pod) string { return n.Name + "/" + owner(p) }

// addAgain answers an ADD for a pod that has its endpoint (cni.add-again).
func (b *base) addAgain(n *kube.Node, p *kube.Pod, s *hns.Service) (r Result, done bool, err error) {
	m, ok := b.made[podKey(n, p)]
	if !ok || s.Endpoint(m.EndpointID) == nil {
		return Result{}, false, nil
	}
	switch {
	case m.conf.apiVersion == 2:
		err = s.AttachEndpoint(m.EndpointID, m.Namespace)
	case !b.release.atLeast(1, 0, 0): // cni.add-again-attaches
		err = s.AttachContainer(m.EndpointID, owner(p))
	}
	if err != nil || m.conf.apiVersion == 2 {
		b.release4and6(n, p)
		return Result{}, true, wrap(p, err)
	}
	return m.Result, true, nil
}

// Del follows cni.del.
func (b *base) Del(n *kube.Node, p *kube.Pod, s *hns.Service) error {
	b.release4and6(n, p)
	m := b.made[podKey(n, p)]
	delete(b.made, podKey(n, p))
	if s == nil {
		return nil // a Linux node
	}
	if s.Endpoint(m.EndpointID) != nil {
		if err := s.DeleteEndpoint(m.EndpointID); err != nil {
			return wrap(p, err)
		}
	}
	if s.Namespace(m.Namespace) != nil {
		return wrap(p, s.DeleteNamespace(m.Namespace))
	}
	return nil
}

func (b *base) Name() Name      { return b.o.Plugin }
func (b *base) Version() string { return b.o.Version }

func (b *base) Warnings() strict.Mistakes {
	all := append(b.o.Conf.Remarks.Warnings(), b.warnings...)
	if b.o.NetConf != nil {
		all = append(all, b.o.NetConf.Remarks.Warnings()...)
	}
	return all
}

// release4and6 gives a pod's addresses back.
func (b *base) release4and6(n *kube.Node, p *kube.Pod) {
	for _, pools := range []map[string]*pool{b.pools, b.pools6} {
		if pl := pools[n.Name]; pl != nil {
			pl.release(owner(p))
		}
	}
}

// podPrefix6 is the node's IPv6 pod prefix, the zero Prefix for none.
func podPrefix6(n *kube.Node) netip.Prefix {
	for _, p := range n.PodCIDRs {
		if p.Addr().Is6() {
			return p.Masked()
		}
	}
	return netip.Prefix{}
}

// podPrefix is the node's own pod prefix: the node's PodCIDR, which start
// scripts and flannel write into the configuration's ipam, else that of the file.
func podPrefix(n *kube.Node, conf *Conf) (netip.Prefix, error) {
	for _, p := range n.PodCIDRs {
		if p.Addr().Is4() {
			return p.Masked(), nil
		}
	}
	if conf.ipam.subnet.IsValid() {
		return conf.ipam.subnet, nil
	}
	return netip.Prefix{}, fmt.Errorf("node %s has no pod CIDR, and %s has no ipam.subnet", n.Name, conf.file)
}

// nth returns the i-th address of a prefix; 0 is the prefix's own.
func nth(p netip.Prefix, i int) netip.Addr {
	a := p.Masked().Addr()
	for ; i > 0; i-- {
		a = a.Next()
	}
	return a
}

// last returns the highest address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// hostLocal is the pool of a node whose pods have a prefix of their own: .1 is
// the gateway and .2 the node's, or HNS's, address in it.
func (b *base) hostLocal(n *kube.Node, prefix netip.Prefix, gateway netip.Addr) *pool {
	pools := b.pools
	if prefix.Addr().Is6() {
		pools = b.pools6
	}
	if p := pools[n.Name]; p != nil {
		return p
	}
	end := last(prefix)
	if prefix.Bits() < prefix.Addr().BitLen()-1 {
		end = end.Prev()
	}
	p := newPool("node "+n.Name, prefix, nth(prefix, 1), end, gateway)
	p.reserve("the gateway", nth(prefix, 1))
	p.reserve("the node's endpoint", nth(prefix, 2))
	p.reserved = b.reserved
	pools[n.Name] = p
	return p
}

// lease6 gives a pod an address of the node's IPv6 prefix besides the one that it
// has; gateway is its place in the prefix.
func (b *base) lease6(l Lease, n *kube.Node, p *kube.Pod, gateway int, taken func(netip.Addr) bool) (Lease, error) {
	prefix := podPrefix6(n)
	if !prefix.IsValid() {
		return l, nil
	}
	six, err := b.hostLocal(n, prefix, nth(prefix, gateway)).lease(owner(p), netip.Addr{}, taken)
	l.Prefix6, l.Gateway6 = six.Prefix, six.Gateway
	return l, err
}

// owner identifies a pod in the pool.
func owner(p *kube.Pod) string { return namespace(p) + "/" + p.Name }

func namespace(p *kube.Pod) string {
	if p.Namespace == "" {
		return "default"
	}
	return p.Namespace
}

// dns is what a pod's interface gets: cni.plugin-dns for win-bridge, win-overlay and calico,
// cni.one-dns-suffix for the others.
func (b *base) dns(c *kube.Cluster, conf *Conf, p *kube.Pod) hns.DNS {
	if conf.Type == PluginVPCBridge {
		return conf.vpcDNS(p)
	}
	d := hns.DNS{Domain: conf.dns.Domain, Search: slices.Clone(conf.dns.Search), ServerList: slices.Clone(conf.dns.Nameservers),
		Options: slices.Clone(conf.dns.Options)}
	if conf.Type.hasProgram() || conf.Type == PluginCalico || conf.Type == PluginAntrea {
		if k := KubeletDNS(c, p); conf.Capabilities["dns"] && len(k.Nameservers) > 0 {
			d.Search, d.ServerList = k.Search, k.Nameservers
		}
	} else {
		if len(d.Search) == 0 {
			d.Search = []string{"svc." + domain(c)}
		}
		d.Search[0] = namespace(p) + "." + d.Search[0]
		if len(d.ServerList) == 0 && c.DNSIP.IsValid() {
			d.ServerList = []string{c.DNSIP.String()}
		}
		if p.Resolver.None {
			d.Search, d.ServerList = nil, nil
		}
		own := withResolver(DNSConf{Nameservers: d.ServerList, Search: d.Search}, p.Resolver)
		d.Search, d.ServerList = own.Search, own.Nameservers
	}
	if conf.apiVersion != 2 && conf.Type != PluginNAT || !b.release.atLeast(1, 0, 0) {
		d.Domain, d.Options = "", nil // cni.v1-dns, cni.win-bridge-old-v2
	}
	return d
}

// KubeletDNS is what the kubelet wants a pod to have: of the policy ClusterFirst the
// cluster DNS, of None nothing, then its own dnsConfig
// (kubernetes/kubernetes pkg/kubelet/network/dns/dns.go). Without a cluster DNS and
// a dnsConfig it is empty.
func KubeletDNS(c *kube.Cluster, p *kube.Pod) DNSConf {
	var d DNSConf
	if c.DNSIP.IsValid() && !p.Resolver.None {
		svc := "svc." + domain(c)
		d = DNSConf{Nameservers: []string{c.DNSIP.String()}, Search: []string{namespace(p) + "." + svc, svc, domain(c)},
			Options: []string{"ndots:5"}}
	}
	return withResolver(d, p.Resolver)
}

// withResolver adds what a pod asks of its resolver.
func withResolver(d DNSConf, r kube.Resolver) DNSConf {
	for _, a := range r.Servers {
		d.Nameservers = append(d.Nameservers, a.String())
	}
	d.Search = append(d.Search, r.Search...)
	if r.Ndots > 0 {
		d.Options = []string{fmt.Sprintf("ndots:%d", r.Ndots)}
	}
	return d
}

func domain(c *kube.Cluster) string { return cmp.Or(c.Domain, "cluster.local") }

// newEndpoint is an endpoint before it is made.
type newEndpoint struct {
	network  *hns.Network
	suffix   string // of the name: "_cbr0"
	mac      string
	policies []hns.Policy
	lease    Lease
}

// add makes a pod's endpoint and attaches it.
func (b *base) add(c *kube.Cluster, n *kube.Node, conf *Conf, p *kube.Pod, s *hns.Service, e newEndpoint) (Result, error) {
	name := p.Name + e.suffix
	if s.EndpointByName(name) != nil {
		name = namespace(p) + "-" + name
	}
	dns := b.dns(c, conf, p)
	in := hns.Endpoint{
		Name: name, HostComputeNetwork: e.network.ID, MacAddress: e.mac, Policies: e.policies, Dns: dns,
		Routes: []hns.NetRoute{{NextHop: e.lease.Gateway.String(), DestinationPrefix: "0.0.0.0/0"}},
		Origin: cmp.Or(p.Origin, &trace.Origin{What: "endpoint of pod " + owner(p)}),
	}
	for _, a := range e.lease.prefixes() {
		in.IpConfigurations = append(in.IpConfigurations, hns.IpConfig{IpAddress: a.Addr().String(), PrefixLength: uint8(a.Bits())})
	}
	if gw := e.lease.Gateway6; gw.IsValid() {
		in.Routes = append(in.Routes, hns.NetRoute{NextHop: gw.String(), DestinationPrefix: "::/0"})
	}
	made, err := s.CreateEndpoint(in)
	if err != nil {
		return Result{}, fmt.Errorf("pod %s: %w", owner(p), err)
	}
	r := Result{EndpointID: made.ID, Addresses: e.lease.prefixes(), Gateway: e.lease.Gateway, DNS: dns}
	if conf.apiVersion != 2 { // cni.v1-attach
		b.made[podKey(n, p)] = madePod{r, conf}
		return r, wrap(p, s.AttachContainer(made.ID, owner(p)))
	}
	b.made[podKey(n, p)] = madePod{r, conf} // DEL finds it whatever happens next
	ns, err := s.CreateNamespace(hns.Namespace{})
	if err != nil {
		return Result{}, wrap(p, err)
	}
	r.Namespace = ns.ID
	b.made[podKey(n, p)] = madePod{r, conf}
	return r, wrap(p, s.AttachEndpoint(made.ID, ns.ID))
}

func wrap(p *kube.Pod, err error) error {
	if err != nil {
		return fmt.Errorf("pod %s: %w", owner(p), err)
	}
	return nil
}

// taken reports addresses that an endpoint of the network has already.
func taken(s *hns.Service, n *hns.Network) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(s.EndpointsByAddress(a), func(e *hns.Endpoint) bool { return !e.Remote() && e.HostComputeNetwork == n.ID })
	}
}

// findNetwork returns the network that win-bridge and win-overlay look for by
// the configuration's name, with their errors.
func findNetwork(s *hns.Service, name string, types ...hns.NetworkType) (*hns.Network, error) {
	n := s.NetworkByName(name)
	if n == nil {
		var have []string
		for _, other := range s.ListNetworks(nil) {
			have = append(have, other.Name)
		}
		hint := "HNS has no networks"
		if len(have) > 0 {
			hint = "HNS has " + strings.Join(have, ", ")
		}
		return nil, fmt.Errorf("network %s is not found (%s; the name in the CNI configuration must be the network's)", name, hint)
	}
	if !n.Is(types...) {
		return nil, fmt.Errorf("network %s is of unexpected type: %s", name, n.Type)
	}
	return n, nil
}

// hostMAC is the MAC address that HNS is taken to give an endpoint on l2bridge,
// l2tunnel and nat networks: Microsoft's prefix and the end of the address.
func hostMAC(a netip.Addr) string {
	b := a.As16()
	return fmt.Sprintf("00-15-5D-%02X-%02X-%02X", b[13], b[14], b[15])
}

// peers returns the other nodes with their IPv4 pod prefix.
func peers(c *kube.Cluster, n *kube.Node) []peer {
	var all []peer
	for _, other := range c.Nodes {
		if other == n || other.Name == n.Name {
			continue
		}
		for _, p := range other.PodCIDRs {
			if p.Addr().Is4() {
				all = append(all, peer{other, p.Masked()})
			}
		}
	}
	return all
}

type peer struct {
	node   *kube.Node
	prefix netip.Prefix
}
