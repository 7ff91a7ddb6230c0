package labfile

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
)

// Defaults of a cluster, as kubeadm, flannel and the source documents have them.
const (
	defaultKubernetes  = "1.20"
	defaultBuild       = "10.0.17763.1432"
	defaultClusterCIDR = "10.244.0.0/16"
	defaultServiceCIDR = "10.96.0.0/12"
	defaultDomain      = "cluster.local"
)

// defaults fills in what the lab leaves out.
func (s *Spec) defaults() {
	set(&s.Kubernetes, defaultKubernetes)
	set(&s.Network.Plugin, "flannel")
	set(&s.Network.ClusterCIDR, defaultClusterCIDR)
	set(&s.Network.ServiceCIDR, defaultServiceCIDR)
	set(&s.Network.DNSIP, tenthAddress(s.Network.ServiceCIDR))
	set(&s.DNS.Domain, defaultDomain)
	if s.Proxy.Mode == "" {
		s.Proxy.Mode = defaultMode(s.Network.Plugin)
	}
	for i := range s.Nodes {
		s.defaultNode(i)
	}
	if len(s.Fabric.Segments) == 0 && len(s.Nodes) > 0 {
		s.defaultFabric()
	}
	for i := range s.Hosts {
		set(&s.Hosts[i].Segment, s.segmentOf(s.Hosts[i].Address))
		set(&s.Hosts[i].Gateway, s.firstRouter(s.Hosts[i].Segment))
	}
	for i := range s.Nodes {
		set(&s.Nodes[i].Gateway, s.firstRouter(s.Nodes[i].Segment))
	}
}

// tenthAddress is the address that kubeadm gives to the cluster DNS: the tenth of the service
// range. An invalid range, or one without a tenth address, does not have one; the check of the
// range reports it.
func tenthAddress(cidr string) string {
	r, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	a := r.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	if !r.Contains(a) {
		return ""
	}
	return a.String()
}

// set gives a field that is left out its default.
func set(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// defaultMode is how kube-proxy runs in a design.
func defaultMode(plugin string) kubeproxy.Mode {
	switch plugin {
	case "ovn-kubernetes", "ovs-l3", "nat", "antrea":
		return kubeproxy.ModeNone
	case PluginRRAS:
		return kubeproxy.ModeUserspace
	}
	return kubeproxy.ModeKernelspace
}

// defaultNode fills in node i.
func (s *Spec) defaultNode(i int) {
	n := &s.Nodes[i]
	set(&n.OS, "windows")
	if n.OS == "windows" && len(n.Builds) == 0 {
		set(&n.Build, defaultBuild)
	}
	set(&n.Address, fmt.Sprintf("192.168.1.%d", 10+i))
	set(&n.Segment, "nodes")
	// Pods live in the node's own network there.
	inNodeNetwork := slices.Contains([]string{"azure-vnet", "nat", "vpc-bridge"}, s.Network.Plugin)
	cluster, err := netip.ParsePrefix(s.Network.ClusterCIDR)
	if err == nil && !inNodeNetwork && cluster.Addr().Is4() && cluster.Bits() <= 16 && i < 256 {
		b := cluster.Addr().As4()
		set(&n.PodCIDR, fmt.Sprintf("%d.%d.%d.0/24", b[0], b[1], i))
	}
	if n.OS == "linux" && len(n.Listen) == 0 && i == 0 {
		n.Listen = []string{"tcp/6443"}
	}
}

// segmentOf is the last segment whose network has an address, else the internet.
func (s *Spec) segmentOf(address string) string {
	found := "internet"
	a, err := netip.ParseAddr(address)
	for _, g := range s.Fabric.Segments {
		if p, perr := netip.ParsePrefix(g.Subnet); err == nil && perr == nil && p.Contains(a) {
			found = g.Name
		}
	}
	return found
}

// firstRouter is the default gateway on a segment: the first router there, "" for
// none.
func (s *Spec) firstRouter(segment string) string {
	for _, r := range s.Fabric.Routers {
		for _, i := range r.Interfaces {
			if p, err := netip.ParsePrefix(i.Address); i.Segment == segment && err == nil {
				return p.Addr().String()
			}
		}
	}
	return ""
}

// defaultFabric is one segment for all nodes, a router that leads to a
// provider, and the internet behind it. The provider knows the way to the
// nodes, not to the pods.
func (s *Spec) defaultFabric() {
	subnet := "192.168.1.0/24"
	gw := "192.168.1.1/24"
	if a, err := netip.ParseAddr(s.Nodes[0].Address); err == nil && a.Is4() {
		p, _ := a.Prefix(24)
		subnet = p.String()
		gw = netip.PrefixFrom(p.Addr().Next(), 24).String()
	}
	s.Fabric.Segments = []Segment{
		{Name: "nodes", Subnet: subnet},
		{Name: "uplink", Subnet: "198.51.100.0/24"},
		{Name: "internet", Subnet: "203.0.113.0/24"},
	}
	s.Fabric.Routers = []Router{
		{Name: "gw", Interfaces: []RouterInterface{{Segment: "nodes", Address: gw}, {Segment: "uplink", Address: "198.51.100.2/24"}},
			Routes: []Route{{To: "0.0.0.0/0", Via: "198.51.100.1"}}},
		{Name: "isp", Interfaces: []RouterInterface{{Segment: "uplink", Address: "198.51.100.1/24"},
			{Segment: "internet", Address: "203.0.113.1/24"}}, Routes: []Route{{To: subnet, Via: "198.51.100.2"}}},
	}
}
