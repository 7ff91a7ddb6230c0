package spec

import (
	"fmt"
	"net/netip"
)

// Defaults of a cluster, as kubeadm, flannel and the source documents have them.
const (
	DefaultKubernetes  = "1.20"
	DefaultBuild       = "10.0.17763.1432"
	DefaultClusterCIDR = "10.244.0.0/16"
	DefaultServiceCIDR = "10.96.0.0/12"
	DefaultDNSIP       = "10.96.0.10"
	DefaultDomain      = "cluster.local"
)

// defaults fills in what the lab leaves out.
func (s *Spec) defaults(name string) {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	set(&s.Kubernetes, DefaultKubernetes)
	set(&s.Network.Plugin, "flannel")
	set(&s.Network.ClusterCIDR, DefaultClusterCIDR)
	set(&s.Network.ServiceCIDR, DefaultServiceCIDR)
	set(&s.Network.DNSIP, DefaultDNSIP)
	set(&s.DNS.Domain, DefaultDomain)
	if s.Proxy.Mode == "" {
		s.Proxy.Mode = "kernelspace"
		switch s.Network.Plugin {
		case "ovn-kubernetes", "ovs-l3", "nat":
			s.Proxy.Mode = "none"
		case PluginRRAS:
			s.Proxy.Mode = "userspace"
		}
	}
	cluster, _ := netip.ParsePrefix(s.Network.ClusterCIDR)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		set(&n.OS, "windows")
		if n.OS == "windows" {
			set(&n.Build, DefaultBuild)
		}
		set(&n.Address, fmt.Sprintf("192.168.1.%d", 10+i))
		set(&n.Segment, "nodes")
		if s.Network.Plugin != "azure-vnet" && s.Network.Plugin != "nat" && cluster.IsValid() && cluster.Addr().Is4() && cluster.Bits() <= 16 && i < 256 {
			b := cluster.Addr().As4()
			set(&n.PodCIDR, fmt.Sprintf("%d.%d.%d.0/24", b[0], b[1], i))
		}
		if n.OS == "linux" && len(n.Listen) == 0 && i == 0 {
			n.Listen = []string{"tcp/6443"}
		}
	}
	if len(s.Fabric.Segments) == 0 && len(s.Nodes) > 0 {
		s.defaultFabric()
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.Segment == "" {
			h.Segment = "internet"
			a, err := netip.ParseAddr(h.Address)
			for _, seg := range s.Fabric.Segments {
				if p, perr := netip.ParsePrefix(seg.Subnet); err == nil && perr == nil && p.Contains(a) {
					h.Segment = seg.Name
				}
			}
		}
	}
	// A default gateway is the first router on the machine's segment.
	gateway := func(segment string) string {
		for _, r := range s.Fabric.Routers {
			for _, i := range r.Interfaces {
				if p, err := netip.ParsePrefix(i.Address); i.Segment == segment && err == nil {
					return p.Addr().String()
				}
			}
		}
		return ""
	}
	for i := range s.Nodes {
		set(&s.Nodes[i].Gateway, gateway(s.Nodes[i].Segment))
	}
	for i := range s.Hosts {
		set(&s.Hosts[i].Gateway, gateway(s.Hosts[i].Segment))
	}
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
		{Name: "gw", Interfaces: []RouterInterface{{"nodes", gw}, {"uplink", "198.51.100.2/24"}}, Routes: []Route{{To: "0.0.0.0/0", Via: "198.51.100.1"}}},
		{Name: "isp", Interfaces: []RouterInterface{{"uplink", "198.51.100.1/24"}, {"internet", "203.0.113.1/24"}}, Routes: []Route{{To: subnet, Via: "198.51.100.2"}}},
	}
}
