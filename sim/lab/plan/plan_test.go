package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// planned is the plan of a design lab.
func planned(t *testing.T, name, variant string, set *labfile.Setting) *Plan {
	t.Helper()
	f, err := labfile.Load("../../../fixtures/labs/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(f, variant, set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// What a lab leaves out is decided: addresses, networks, gateways, MAC addresses.
func TestWhatALabLeavesOut(t *testing.T) {
	t.Parallel()
	f, err := labfile.New("small", labfile.Spec{Network: labfile.Network{Plugin: "ovn-kubernetes"},
		Nodes: []labfile.Node{{Name: "linux1", OS: "linux"}, {Name: "win1"}},
		Hosts: []labfile.Host{{Name: "lan", Address: "192.168.1.50"}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(f, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := p.Node("win1")
	if n == nil || !n.Windows() || n.Kube.Address != addr("192.168.1.11") || n.Kube.Subnet != prefix("192.168.1.0/24") ||
		n.Kube.Gateway != addr("192.168.1.1") {
		t.Errorf("win1: %+v", n)
	}
	if n.Kube.MAC == n.Kube.VtepMAC || n.Kube.MAC != (packet.MAC{0x00, 0x15, 0x5d, 0, 0, 3}) || p.Hosts[0].MAC == n.Kube.MAC {
		t.Errorf("MAC addresses %s, %s, host %s", n.Kube.MAC, n.Kube.VtepMAC, p.Hosts[0].MAC)
	}
	if !slices.Equal(n.Kube.PodCIDRs, []netip.Prefix{prefix("10.244.1.0/24")}) || p.Node("linux1").Windows() {
		t.Errorf("pod ranges %v", n.Kube.PodCIDRs)
	}
	if p.Hosts[0].Segment != "nodes" || p.Hosts[0].Address != prefix("192.168.1.50/24") {
		t.Errorf("host %+v", p.Hosts[0])
	}
	if p.Network.Design != OVS || n.Proxy.Mode != kubeproxy.ModeNone || p.Network.Type != "transparent" {
		t.Errorf("network %+v, proxy %s", p.Network, n.Proxy)
	}
	if len(p.Pods) != 1 || !p.Pods[0].ServesDNS() || p.Pods[0].Node != "linux1" {
		t.Errorf("pods %v", p.Pods)
	}
}

// Services get addresses that are free, and node ports from 30000 on.
func TestServicesGetAddresses(t *testing.T) {
	t.Parallel()
	p := planned(t, "l2bridge-flannel-host-gw", "", nil)
	seen := map[netip.Addr]string{p.DNSIP: "the cluster DNS"}
	for _, s := range p.Services {
		for _, ip := range s.ClusterIPs {
			if other, ok := seen[ip]; ok {
				t.Errorf("%s has the address %s of %s", s.Key(), ip, other)
			}
			seen[ip] = s.Key()
		}
		if s.Type != "ExternalName" && !s.Headless && len(s.ClusterIPs) == 0 {
			t.Errorf("%s has no address", s.Key())
		}
		for _, port := range s.Ports {
			if wants := s.Type == "NodePort" || s.Type == "LoadBalancer"; wants != (port.NodePort >= firstNodePort) {
				t.Errorf("%s of type %s has the node port %d", s.Key(), s.Type, port.NodePort)
			}
		}
	}
	for _, pod := range p.Pods {
		if p.Node(pod.Node) == nil || pod.os != "" && (pod.os == "windows") != p.Node(pod.Node).Windows() {
			t.Errorf("pod %s for %q is on %s", pod.Key(), pod.os, pod.Node)
		}
	}
}

// A setting replaces the versions on all nodes, and the proxy's flags are those of
// each node.
func TestSettingReplacesVersions(t *testing.T) {
	t.Parallel()
	set := &labfile.Setting{Kubernetes: "1.30", Build: "10.0.20348.2762",
		Proxy: &labfile.Proxy{Flags: []string{"--source-vip={{sourceVIP}}", "--hostname-override={{nodeName}}"}}}
	p := planned(t, "overlay-flannel-vxlan", "", set)
	for _, n := range p.Nodes {
		if n.Kube.Version.String() != "1.30" || n.Windows() && n.Build != set.Build {
			t.Errorf("%s: Kubernetes %s, build %s", n.Kube.Name, n.Kube.Version, n.Build)
		}
		if vip := Nth(n.Kube.PodCIDRs[0].Addr(), 2); n.Windows() && (n.Proxy.SourceVIP != vip || !slices.Contains(p.Network.CNI.Reserved, vip)) {
			t.Errorf("%s: source VIP %s, want %s, which no pod may get", n.Kube.Name, n.Proxy.SourceVIP, vip)
		}
	}
	if p.Network.Type != "overlay" || p.Network.CNI.Conf == nil || p.Network.CNI.NetConf == nil {
		t.Errorf("network %+v", p.Network)
	}
}

// Building from a plan does not change it.
func TestKubeIsNewEachTime(t *testing.T) {
	t.Parallel()
	p := planned(t, "l2bridge-flannel-host-gw", "", nil)
	a := p.Kube()
	a.Nodes[0].Name, a.Nodes[0].PodCIDRs[0] = "changed", prefix("10.0.0.0/8")
	if b := p.Kube(); b.Nodes[0].Name == "changed" || b.Nodes[0].PodCIDRs[0] == prefix("10.0.0.0/8") {
		t.Error("the second cluster has what was changed in the first")
	}
}

// Bad input that no check of a file has seen is an error, all of it at once.
func TestBadInputIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  labfile.Setting
		want []string
	}{
		{"version", labfile.Setting{Kubernetes: "new"}, []string{`Kubernetes version "new"`}},
		{"build", labfile.Setting{Kubernetes: "1.30", Build: "9.9"}, []string{"node win1"}},
		{"flag", labfile.Setting{Kubernetes: "1.10", Proxy: &labfile.Proxy{Flags: []string{"--enable-dsr=true"}}},
			[]string{"kube-proxy on win1", "1.14 introduced it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := labfile.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(f, "", &c.set)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range append(c.want, f.Path) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: it does not say %q", err, w)
				}
			}
		})
	}
	var r reader
	r.addr("here")
	r.prefix("there/8")
	r.listen([]string{"tcp"})
	if n := strings.Count(r.err().Error(), "\n"); n != 2 {
		t.Errorf("%d messages for three mistakes: %v", n+1, r.err())
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	calls, err := Calls([]labfile.HNSCall{
		{Node: "win1", RemovePolicy: &labfile.HNSPolicyCall{HNSSelector: labfile.HNSSelector{Kind: "endpoint", Pod: "web"}, Type: "ACL"}},
		{Node: "win1", Create: &labfile.HNSCreate{Kind: "network"}, Error: "0x803b0013"},
		{Node: "win1", Delete: &labfile.HNSSelector{Kind: "endpoint", Address: "10.244.1.4"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := calls[0].Policy; p == nil || p.Change != RemovePolicies || p.Pod != "default/web" || p.Type != hns.PolicyACL ||
		calls[0].What != "remove policy ACL" {
		t.Errorf("%+v", calls[0])
	}
	if c := calls[1]; c.Create == nil || c.Create.Kind != hns.KindNetwork || c.Create.Count != 1 || c.Code != 0x803b0013 {
		t.Errorf("%+v", c)
	}
	if d := calls[2].Delete; d == nil || d.Address != addr("10.244.1.4") {
		t.Errorf("%+v", calls[2])
	}
	for _, bad := range []labfile.HNSCall{{Node: "win1"}, {Node: "win1", Restart: true, Error: "E_FAIL"},
		{Node: "win1", Delete: &labfile.HNSSelector{Address: "here"}}} {
		if _, err := Calls([]labfile.HNSCall{bad}); err == nil || !strings.Contains(err.Error(), "HNS call 1: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A plan with one of the builds that a node may have finds that node, and has none open.
func TestBuildsOfAPlanAreFound(t *testing.T) {
	t.Parallel()
	f, err := labfile.New("small", labfile.Spec{Network: labfile.Network{Plugin: "ovn-kubernetes"},
		Nodes: []labfile.Node{{Name: "linux1", OS: "linux", Assumed: "not observed"}, {Name: "win1", Builds: []string{"10.0.17763"}},
			{Name: "win2"}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(f, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := p.WithBuilds(map[string]int{"win1": 1})
	if open := p.OpenBuilds(); len(open) != 1 || open[0] != p.Node("win1") || len(open[0].Candidates) < 2 {
		t.Errorf("open: %v", open)
	}
	if len(w.OpenBuilds()) != 0 || len(w.Node("win1").Candidates) != 0 || w.Node("win1").Build == p.Node("win1").Build &&
		p.Node("win1") == w.Node("win1") {
		t.Errorf("%d are open, and win1 is %s", len(w.OpenBuilds()), w.Node("win1").Build)
	}
	for _, x := range []*Plan{p, w} {
		for _, n := range x.Nodes {
			if x.Node(n.Kube.Name) != n {
				t.Errorf("%s is another node", n.Kube.Name)
			}
		}
		if a := x.AssumedNodes(); len(a) != 1 || a[0] != x.Node("linux1") {
			t.Errorf("assumed: %v", a)
		}
	}
	if p.Node("win9") != nil {
		t.Error("a node that is not there")
	}
}
