package cni

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var update = flag.Bool("update", false, "write the golden files")

const fixtures = "../../../fixtures/cni"

func conf(t *testing.T, name string) *Conf {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConf("fixtures/cni/"+name, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func netConf(t *testing.T, name string) *NetConf {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseNetConf("fixtures/cni/"+name, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// clusterFor is the cluster that a case of plugins is tried in.
func clusterFor(name string) *kube.Cluster {
	build := "10.0.17763.1432"
	if strings.HasSuffix(name, "-dual") || strings.HasSuffix(name, "-pod-subnet") {
		build = "10.0.20348.2762"
	}
	c := cluster(strings.HasPrefix(name, "azure"), build)
	if !strings.HasSuffix(name, "-dual") {
		return c
	}
	for i, n := range c.Nodes {
		a := prefix("fd00:192:168:1::/64").Addr().As16()
		a[15] = byte(10 + i)
		n.Address6, n.Subnet6 = netip.AddrFrom16(a), prefix("fd00:192:168:1::/64")
		p := prefix("fd00:10:244::/64").Addr().As16()
		p[7] = byte(i)
		n.PodCIDRs = append(n.PodCIDRs, netip.PrefixFrom(netip.AddrFrom16(p), 64))
	}
	return c
}

// cluster has linux1, win1 and win2, on a network of its own or in Azure.
func cluster(azure bool, build string) *kube.Cluster {
	b := builds.MustLookup(build)
	mac := func(i byte) packet.MAC { return packet.MAC{0x02, 0, 0, 0, 0, i} }
	c := &kube.Cluster{
		Version: kube.Minor(20), ServiceCIDRs: []netip.Prefix{prefix("10.96.0.0/12")},
		DNSIP: addr("10.96.0.10"), Domain: "cluster.local",
		Nodes: []*kube.Node{
			{Name: "linux1", Address: addr("192.168.1.10"), VtepMAC: mac(1)},
			{Name: "win1", Address: addr("192.168.1.11"), VtepMAC: mac(2), Windows: b},
			{Name: "win2", Address: addr("192.168.1.12"), VtepMAC: mac(3), Windows: b},
		},
	}
	if azure {
		for i, a := range []string{"10.240.0.4", "10.240.0.10", "10.240.0.40"} {
			c.Nodes[i].Address, c.Nodes[i].Subnet, c.Nodes[i].Gateway = addr(a), prefix("10.240.0.0/16"), addr("10.240.0.1")
		}
		return c
	}
	c.ClusterCIDRs = []netip.Prefix{prefix("10.244.0.0/16")}
	for i, n := range c.Nodes {
		n.Subnet, n.Gateway = prefix("192.168.1.0/24"), addr("192.168.1.1")
		n.PodCIDRs = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24)}
	}
	return c
}

func service(n *kube.Node) *hns.Service {
	return hns.NewService(n.Windows, hns.Options{Node: n.Name, Seed: "test", ManagementIP: n.Address, ManagementIP6: n.Address6,
		HostMAC: "00-15-5D-00-00-01"})
}

// plugins are all plugins with the fixtures that they read.
func plugins(t *testing.T) map[string]Options {
	t.Helper()
	return map[string]Options{
		"flannel-host-gw":          {Plugin: PluginFlannel, Conf: conf(t, "flannel-host-gw.conf"), NetConf: netConf(t, "net-conf-host-gw.json")},
		"flannel-vxlan":            {Plugin: PluginFlannel, Conf: conf(t, "flannel-vxlan.conf"), NetConf: netConf(t, "net-conf-vxlan.json")},
		"win-bridge":               {Plugin: PluginWinBridge, Conf: conf(t, "win-bridge.conf")},
		"win-overlay":              {Plugin: PluginWinOverlay, Conf: conf(t, "win-overlay.conf")},
		"azure-l2bridge":           {Plugin: PluginAzure, Conf: conf(t, "azure-vnet.conflist")},
		"azure-l2tunnel":           {Plugin: PluginAzure, Conf: conf(t, "azure-vnet-l2tunnel.conflist")},
		"nat":                      {Plugin: PluginNAT, Conf: conf(t, "nat.conf")},
		"sdnbridge-dual":           {Plugin: PluginSDNBridge, Conf: conf(t, "sdnbridge.conf")},
		"vpc-bridge":               {Plugin: PluginVPCBridge, Conf: conf(t, "vpc-bridge.conf")},
		"antrea":                   {Plugin: PluginAntrea, Conf: conf(t, "antrea.conflist")},
		"calico-vxlan":             {Plugin: PluginCalico, Conf: conf(t, "calico-vxlan.conf")},
		"calico-bgp":               {Plugin: PluginCalico, Conf: conf(t, "calico-bgp.conf")},
		"overlay-azure":            {Plugin: PluginAzure, Conf: conf(t, "azure-vnet-overlay.conflist")},
		"overlay-azure-pod-subnet": {Plugin: PluginAzure, Conf: conf(t, "azure-vnet-pod-subnet.conflist")},
		"azure-dual":               {Plugin: PluginAzure, Conf: conf(t, "azure-vnet-dual-stack.conflist")},
	}
}

func mustNew(t *testing.T, o Options) Plugin {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// setUp prepares win1 and adds the pod web with a hostPort.
func setUp(t *testing.T, p Plugin, c *kube.Cluster) (*hns.Service, Host, Result) {
	t.Helper()
	n := c.Node("win1")
	s := service(n)
	h, err := p.Prepare(c, n, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Add(c, n, &kube.Pod{Namespace: "default", Name: "web",
		HostPorts: []kube.HostPort{{Proto: packet.TCP, HostPort: 8080, Container: 80}}}, s)
	if err != nil {
		t.Fatal(err)
	}
	return s, h, r
}

// The HNS objects that each plugin makes on one of two Windows nodes.
func TestObjects(t *testing.T) {
	for name, o := range plugins(t) {
		t.Run(name, func(t *testing.T) {
			s, _, _ := setUp(t, mustNew(t, o), clusterFor(name))
			got, err := s.Export()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("objects differ from %s (-want +got); run with -update if that is meant:\n%s", file, d)
			}
		})
	}
}

// rules compiles the objects and lists layer/rule of the pod's port.
func rules(s *hns.Service, endpointID string) []string {
	c := hns.NewCompiler(s, hns.View{})
	var all []string
	for _, l := range c.Endpoint(s.Endpoint(endpointID)) {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				all = append(all, l.Name+" "+ruleText(r))
			}
		}
	}
	return all
}

func ruleText(r *vfp.Rule) string { return r.ID }

func TestCompiledRules(t *testing.T) {
	for _, tc := range []struct {
		plugin string
		want   []string
		not    string
	}{
		{"flannel-host-gw", []string{
			"SLB_NAT_LAYER SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", "SLB_NAT_LAYER (exception 10.244.0.0/16)",
			"SLB_NAT_LAYER (exception 192.168.1.0/24)",
			"(SDN_ROUTE) (route 10.96.0.0/12)", "(SDN_ROUTE) (route 192.168.1.11/32)", "SLB_NAT_LAYER (port mapping 1 192.168.1.11:8080)",
		}, "remote subnet"},
		{"flannel-vxlan", []string{
			"SLB_NAT_LAYER SNAT_UDP_OUTBOUNDNAT_1_192.168.1.11", "VNET_ENCAP_LAYER (remote subnet 10.244.0.0/24)",
			"VNET_ENCAP_LAYER (remote subnet 10.244.2.0/24)", "(SDN_ROUTE) (route 10.96.0.0/12)",
		}, "port mapping"},
		{"win-overlay", []string{"VNET_ENCAP_LAYER (remote subnet 10.244.2.0/24)", "SLB_NAT_LAYER SNAT_TCP_OUTBOUNDNAT_2_192.168.1.11"},
			"port mapping"},
		{"win-bridge", []string{"SLB_NAT_LAYER SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", "SLB_NAT_LAYER SNAT_TCP_OUTBOUNDNAT_2_192.168.1.11"},
			"remote subnet"},
		{"azure-l2bridge", []string{"SLB_NAT_LAYER SNAT_TCP_OUTBOUNDNAT_1_10.240.0.10", "SLB_NAT_LAYER (port mapping 1 10.240.0.10:8080)"},
			"192.168"},
	} {
		t.Run(tc.plugin, func(t *testing.T) {
			p := mustNew(t, plugins(t)[tc.plugin])
			s, _, r := setUp(t, p, cluster(strings.HasPrefix(tc.plugin, "azure"), "10.0.17763.1432"))
			got := rules(s, r.EndpointID)
			for _, w := range tc.want {
				if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
					t.Errorf("no rule %q in\n%s", w, strings.Join(got, "\n"))
				}
			}
			if i := slices.IndexFunc(got, func(g string) bool { return strings.Contains(g, tc.not) }); i >= 0 {
				t.Errorf("rule %q should not be there", got[i])
			}
		})
	}
}

func TestResult(t *testing.T) {
	for _, tc := range []struct {
		plugin, address, gateway, name, mac string
		network                             hns.NetworkType
	}{
		{"flannel-host-gw", "10.244.1.3/24", "10.244.1.2", "web_cbr0", "00-15-5D-F4-01-03", hns.L2Bridge},
		{"flannel-vxlan", "10.244.1.3/24", "10.244.1.1", "web_flannel.4096", "0E-2A-0A-F4-01-03", hns.Overlay},
		{"win-bridge", "10.244.1.3/24", "10.244.1.2", "web_l2bridge", "00-15-5D-F4-01-03", hns.L2Bridge},
		{"win-overlay", "10.244.1.3/24", "10.244.1.1", "web_vxlan0", "0E-2A-0A-F4-01-03", hns.Overlay},
		{"azure-l2bridge", "10.240.0.11/16", "10.240.0.1", "web-eth0", "00-15-5D-F0-00-0B", hns.L2Bridge},
		{"azure-l2tunnel", "10.240.0.11/16", "10.240.0.1", "web-eth0", "00-15-5D-F0-00-0B", hns.L2Tunnel},
		{"nat", "172.20.2.3/24", "172.20.2.1", "web_nat", "00-15-5D-14-02-03", hns.NAT},
	} {
		t.Run(tc.plugin, func(t *testing.T) {
			p := mustNew(t, plugins(t)[tc.plugin])
			s, _, r := setUp(t, p, cluster(strings.HasPrefix(tc.plugin, "azure"), "10.0.17763.1432"))
			e := s.Endpoint(r.EndpointID)
			if r.Addresses[0] != prefix(tc.address) || r.Gateway != addr(tc.gateway) {
				t.Errorf("address %s via %s, want %s via %s", r.Addresses[0], r.Gateway, tc.address, tc.gateway)
			}
			if e.Name != tc.name || e.MacAddress != tc.mac {
				t.Errorf("endpoint %s %s, want %s %s", e.Name, e.MacAddress, tc.name, tc.mac)
			}
			v2 := plugins(t)[tc.plugin].Conf.apiVersion == 2 // cni.v1-attach
			if e.State != hns.StateAttachedSharing || e.HostComputeNamespace != r.Namespace || v2 != (r.Namespace != "") ||
				v2 == (len(e.SharedContainers) == 1) {
				t.Errorf("endpoint is in state %d, namespace %q, containers %q; the pod's namespace is %q", e.State, e.HostComputeNamespace,
					e.SharedContainers, r.Namespace)
			}
			if p.NetworkType() != tc.network || s.Network(e.HostComputeNetwork).Type != tc.network {
				t.Errorf("network type %s, want %s", p.NetworkType(), tc.network)
			}
			search := []string{"default.svc.cluster.local"}
			if p.Name().hasProgram() {
				search = append(search, "svc.cluster.local", "cluster.local")
			}
			if !slices.Equal(r.DNS.Search, search) || r.DNS.ServerList[0] != "10.96.0.10" {
				t.Errorf("DNS %+v", r.DNS)
			}
		})
	}
}

func TestHost(t *testing.T) {
	for _, tc := range []struct {
		plugin, endpoint string
		forwarding       bool
		routes           []string
	}{
		{"flannel-host-gw", "cbr0_ep", true, []string{"10.244.0.0/24 192.168.1.10", "10.244.2.0/24 192.168.1.12"}},
		{"win-bridge", "cbr0", true, nil},
		{"flannel-vxlan", "", false, nil},
		{"nat", "", false, nil},
	} {
		t.Run(tc.plugin, func(t *testing.T) {
			p := mustNew(t, plugins(t)[tc.plugin])
			c := cluster(false, "10.0.17763.1432")
			s, h, _ := setUp(t, p, c)
			var routes []string
			if h.Routes != nil {
				for _, r := range h.Routes() {
					routes = append(routes, r.To.String()+" "+r.Via.String())
				}
			}
			if h.Forwarding != tc.forwarding || !slices.Equal(routes, tc.routes) {
				t.Errorf("forwarding %v, routes %v; want %v, %v", h.Forwarding, routes, tc.forwarding, tc.routes)
			}
			if tc.endpoint != "" {
				e := s.Endpoint(h.HostEndpoints[0])
				if e.Name != tc.endpoint || e.Address(false) != addr("10.244.1.2") || e.HostComputeNamespace != s.HostNamespace().ID {
					t.Errorf("host endpoint %s %s in %s", e.Name, e.Address(false), e.HostComputeNamespace)
				}
			} else if len(h.HostEndpoints) > 0 {
				t.Errorf("host endpoints %v", h.HostEndpoints)
			}
			again, err := p.Prepare(c, c.Node("win1"), s)
			if err != nil || again.Network != h.Network || len(s.ListNetworks(nil)) != 1 {
				t.Errorf("a second Prepare: %v, %d networks", err, len(s.ListNetworks(nil)))
			}
		})
	}
}

// A node that joins later gets its route at the next Prepare, and only once.
func TestPeerJoins(t *testing.T) {
	p := mustNew(t, plugins(t)["flannel-vxlan"])
	c := cluster(false, "10.0.17763.1432")
	late := c.Nodes[2]
	c.Nodes = c.Nodes[:2]
	n := c.Node("win1")
	s := service(n)
	for i := range 3 {
		if i == 1 {
			c.Nodes = append(c.Nodes, late)
		}
		h, err := p.Prepare(c, n, s)
		if err != nil {
			t.Fatal(err)
		}
		got := len(hns.PoliciesOf(s.Network(h.Network).Policies, hns.PolicyRemoteSubnetRoute))
		if want := []int{1, 2, 2}[i]; got != want {
			t.Errorf("Prepare %d: %d remote subnet routes, want %d", i, got, want)
		}
	}
}

func TestHostRouteByFlannelVersion(t *testing.T) {
	for _, tc := range []struct {
		version, build string
		want           int
	}{{"0.11.0", "10.0.17763.1432", 0}, {"0.12.0", "10.0.17763.1432", 1}, {"v0.21.5", "10.0.20348.2000", 1}, {"", "10.0.20348.2000", 1}} {
		o := plugins(t)["flannel-vxlan"]
		o.Version = tc.version
		s, h, _ := setUp(t, mustNew(t, o), cluster(false, tc.build))
		if got := len(hns.PoliciesOf(s.Network(h.Network).Policies, hns.PolicyHostRoute)); got != tc.want {
			t.Errorf("flannel %q on %s: %d HostRoute policies, want %d", tc.version, tc.build, got, tc.want)
		}
	}
}

func TestLinux(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("linux1")
	hostgw := mustNew(t, plugins(t)["flannel-host-gw"]).Linux(c, n)
	if hostgw.Bridge != prefix("10.244.0.1/24") || len(hostgw.Routes) != 2 || hostgw.VXLAN != nil ||
		!slices.Contains(hostgw.MasqueradeNot, prefix("10.244.0.0/16")) {
		t.Errorf("host-gw: %+v", hostgw)
	}
	vx := mustNew(t, plugins(t)["flannel-vxlan"]).Linux(c, n)
	want := &LinuxVXLAN{VNI: 4096, Port: 4789, Local: addr("192.168.1.10"), Address: prefix("10.244.0.0/32"),
		MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Peers: []VXLANPeer{
			{prefix("10.244.1.0/24"), addr("192.168.1.11"), packet.MAC{2, 0, 0, 0, 0, 2}},
			{prefix("10.244.2.0/24"), addr("192.168.1.12"), packet.MAC{2, 0, 0, 0, 0, 3}}}}
	if d := cmp.Diff(want, vx.VXLAN, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Error(d)
	}
	azure := mustNew(t, plugins(t)["azure-l2bridge"]).Linux(cluster(true, "10.0.17763.1432"), cluster(true, "10.0.17763.1432").Nodes[0])
	if !azure.PodsInNodeSubnet || azure.Bridge.IsValid() || !slices.Contains(azure.MasqueradeNot, prefix("10.240.0.0/16")) {
		t.Errorf("azure: %+v", azure)
	}
}

// A net-conf.json without VNI and port means other values on Linux.
func TestVXLANDefaultsDiffer(t *testing.T) {
	nc, err := ParseNetConf("net-conf.json", []byte(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := mustNew(t, Options{Plugin: PluginFlannel, Conf: conf(t, "flannel-vxlan.conf"), NetConf: nc})
	c := cluster(false, "10.0.17763.1432")
	s, h, _ := setUp(t, p, c)
	vsid, _ := s.Network(h.Network).VSID()
	l := p.Linux(c, c.Nodes[0]).VXLAN
	if vsid != 4096 || l.VNI != 1 || l.Port != 8472 {
		t.Errorf("Windows VNI %d, Linux VNI %d port %d; want 4096, 1, 8472", vsid, l.VNI, l.Port)
	}
}
