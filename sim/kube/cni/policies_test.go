package cni

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// settings returns the settings of all policies of a type of the pod web.
func settings[T hns.Settings](t *testing.T, o Options, azure bool, build string) []T {
	t.Helper()
	s, _, r := setUp(t, mustNew(t, o), cluster(azure, build))
	return slices.Collect(hns.EachSettings[T](s.Endpoint(r.EndpointID).Policies))
}

// An exception that the configuration lacks is added in a second policy, which
// does not change what the first translates.
func TestMasqueradeAddsPolicy(t *testing.T) {
	o := plugins(t)["flannel-host-gw"]
	if got := settings[hns.OutBoundNATSettings](t, o, false, "10.0.17763.1432"); len(got) != 1 {
		t.Errorf("the cluster CIDR is listed, yet there are %d policies", len(got))
	}
	data, err := os.ReadFile(filepath.Join(fixtures, "flannel-host-gw.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.Conf, err = ParseConf("a", []byte(strings.Replace(string(data), `"10.244.0.0/16", `, "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	got := settings[hns.OutBoundNATSettings](t, o, false, "10.0.17763.1432")
	if len(got) != 2 || len(got[1].Exceptions) != 1 || got[1].Exceptions[0] != "10.244.0.0/16" {
		t.Errorf("policies %+v, want a second one with the cluster CIDR", got)
	}

	// Before 1.0.0 the exception was put into the policy that is there.
	o.DelegateVersion = "0.8.7"
	got = settings[hns.OutBoundNATSettings](t, o, false, "10.0.17763.1432")
	if len(got) != 1 || fmt.Sprint(got[0].Exceptions) != "[10.96.0.0/12 192.168.1.0/24 10.244.0.0/16]" {
		t.Errorf("delegate 0.8.7: %+v, want one policy with the cluster CIDR last", got)
	}

	// win-overlay's exception is the node's own prefix, and only with ipMasq.
	off := false
	for _, masq := range []*bool{nil, &off} {
		o = plugins(t)["flannel-vxlan"]
		o.IPMasq = masq
		got = settings[hns.OutBoundNATSettings](t, o, false, "10.0.17763.1432")
		if masq == nil && (len(got) != 2 || got[1].Exceptions[0] != "10.244.1.0/24") || masq != nil && len(got) != 1 {
			t.Errorf("--ip-masq %v: %+v", masq, got)
		}
	}
}

func TestLoopbackDSRNeedsDSR(t *testing.T) {
	for build, want := range map[string]int{"10.0.17763.1432": 2, "10.0.17763.1039": 1} {
		got := settings[hns.OutBoundNATSettings](t, plugins(t)["win-bridge"], false, build)
		if len(got) != want || want == 2 && got[1].Destinations[0] != "10.244.1.3" {
			t.Errorf("%s: %+v, want %d policies", build, got, want)
		}
	}
	// Release 0.9.1 does not ask the build; HNS then takes every free port.
	o := plugins(t)["win-bridge"]
	o.Version = "0.9.1"
	if got := settings[hns.OutBoundNATSettings](t, o, false, "10.0.17763.1039"); len(got) != 2 {
		t.Errorf("win-bridge 0.9.1 made %+v, want two policies", got)
	}
}

func TestHostPorts(t *testing.T) {
	for _, tc := range []struct {
		plugin, version string
		want            []hns.PortMappingSettings
	}{
		{"flannel-host-gw", "", []hns.PortMappingSettings{{Protocol: 6, InternalPort: 80, ExternalPort: 8080}}},
		{"win-bridge", "0.8.5", nil},
		{"win-overlay", "", nil},
		{"azure-l2bridge", "", []hns.PortMappingSettings{{Protocol: 6, InternalPort: 80, ExternalPort: 8080, Flags: 1}}},
		{"azure-l2bridge", "1.4.16", []hns.PortMappingSettings{{Protocol: 6, InternalPort: 80, ExternalPort: 8080}}},
		{"nat", "", []hns.PortMappingSettings{{Protocol: 6, InternalPort: 80, ExternalPort: 8080}}},
	} {
		o := plugins(t)[tc.plugin]
		o.Version = tc.version
		got := settings[hns.PortMappingSettings](t, o, strings.HasPrefix(tc.plugin, "azure"), "10.0.17763.1432")
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s %s: %+v, want %+v", tc.plugin, tc.version, got, tc.want)
		}
	}
	// Without the capability the runtime passes no ports.
	c, err := ParseConf("a", []byte(`{"name": "l2bridge", "type": "win-bridge"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := settings[hns.PortMappingSettings](t, Options{Plugin: PluginWinBridge, Conf: c}, false, "10.0.17763.1432"); len(got) != 0 {
		t.Errorf("without the capability: %+v", got)
	}
}

// hostIP survives apiVersion 2 only.
func TestHostIP(t *testing.T) {
	for version, want := range map[int]string{1: "", 2: "192.168.1.11"} {
		cf,
			err := ParseConf("a",
			fmt.Appendf(nil, `{"name": "l2bridge", "type": "win-bridge", "apiVersion": %d, "capabilities": {"portMappings": true}}`, version))
		if err != nil {
			t.Fatal(err)
		}
		c := cluster(false, "10.0.17763.1432")
		n := c.Node("win1")
		p, s := mustNew(t, Options{Plugin: PluginWinBridge, Conf: cf}), service(n)
		if _, err := p.Prepare(c, n, s); err != nil {
			t.Fatal(err)
		}
		r,
			err := p.Add(c, n,
			&kube.Pod{Name: "web", HostPorts: []kube.HostPort{{Proto: packet.UDP, HostPort: 53, Container: 53, HostIP: n.Address}}}, s)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := hns.SettingsOf[hns.PortMappingSettings](hns.PoliciesOf(s.Endpoint(r.EndpointID).Policies, hns.PolicyPortMapping)[0])
		if !ok || v.VIP != want || v.Protocol != 17 {
			t.Errorf("apiVersion %d: %+v, want VIP %q (%v)", version, v, want, ok)
		}
	}
}

// A policy in the form of v1 under apiVersion 2 loses its exceptions.
func TestV1PolicyUnderV2(t *testing.T) {
	cf, err := ParseConf("a", []byte(`{"name": "l2bridge", "type": "win-bridge", "apiVersion": 2, "policies": [
		{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.244.0.0/16"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := settings[hns.OutBoundNATSettings](t, Options{Plugin: PluginWinBridge, Conf: cf}, false, "10.0.17763.1432")
	if len(got) != 1 || len(got[0].Exceptions) != 0 {
		t.Errorf("%+v, want one policy without exceptions", got)
	}
}

// A Linux node on VNI 1 gets no route from the Windows nodes.
func TestPeerWithSmallVNI(t *testing.T) {
	nc, err := ParseNetConf("net-conf.json", []byte(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, h, _ := setUp(t, mustNew(t, Options{Plugin: PluginFlannel, Conf: conf(t, "flannel-vxlan.conf"), NetConf: nc}),
		cluster(false, "10.0.17763.1432"))
	var to []string
	for v := range hns.EachSettings[hns.RemoteSubnetRouteSettings](s.Network(h.Network).Policies) {
		to = append(to, v.DestinationPrefix)
	}
	if fmt.Sprint(to) != "[10.244.2.0/24]" {
		t.Errorf("routes to %v, want only win2's 10.244.2.0/24", to)
	}
}

// Without the capability dns win-bridge writes the search list unchanged; with it
// the three names of the kubelet.
func TestDNSOfNamespaces(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("win1")
	cf,
		err := ParseConf("a",
		[]byte(
			`{"name": "l2bridge", "type": "win-bridge", "dns": {"Nameservers": ["10.96.0.99"], "Search": ["svc.cluster.local", "cluster.local"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	p, s := mustNew(t, Options{Plugin: PluginWinBridge, Conf: cf}), service(n)
	if _, err := p.Prepare(c, n, s); err != nil {
		t.Fatal(err)
	}
	r, err := p.Add(c, n, &kube.Pod{Namespace: "shop", Name: "web"}, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.DNS.Search, r.DNS.ServerList); got != "[svc.cluster.local cluster.local] [10.96.0.99]" {
		t.Errorf("DNS %s", got)
	}
	cf.Capabilities = map[string]bool{"dns": true}
	passed, err := p.Add(c, n, &kube.Pod{Namespace: "shop", Name: "passed"}, s)
	if got := fmt.Sprint(passed.DNS.Search, passed.DNS.ServerList,
		err); got != "[shop.svc.cluster.local svc.cluster.local cluster.local] [10.96.0.10] <nil>" {
		t.Errorf("with the capability DNS %s", got)
	}
	// Two pods of one name in two namespaces have two endpoints.
	r2, err := p.Add(c, n, &kube.Pod{Namespace: "other", Name: "web"}, s)
	if err != nil || s.Endpoint(r2.EndpointID).Name == s.Endpoint(r.EndpointID).Name {
		t.Errorf("%+v, %v", r2, err)
	}
}
