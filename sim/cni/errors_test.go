package cni

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// wantAll checks that an error says all of these things.
func wantAll(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not say %q:\n%v", w, err)
		}
	}
}

func TestParseConfErrors(t *testing.T) {
	for _, tc := range []struct {
		name, data string
		want       []string
	}{
		{"empty", "", []string{"a.conf:1:1", "empty"}},
		{"byte order mark", "\xef\xbb\xbf{}", []string{"a.conf:1:1", "without BOM"}},
		// The conflist that Azure shipped for Windows once lacked this comma.
		{"missing comma", "{\n  \"name\": \"azure\",\n  \"plugins\": [\n    {}\n    {}\n  ]\n}", []string{"a.conf:5:5", "after array element"}},
		{"trailing comma", "{\n  \"name\": \"x\",\n}", []string{"a.conf:3:1"}},
		{"cut off", "{\n  \"name\": \"x\"", []string{"a.conf:2:", "ends in the middle"}},
		{"two objects", "{\"name\": \"x\", \"type\": \"nat\"}\n{}", []string{"a.conf:2:", "more text after the end"}},
		{"not an object", "[1]", []string{"a.conf:1:1", "it must be an object"}},
		{"no name, other type", "{\n  \"type\": \"calico\"\n}", []string{"a.conf:2:11", "winlab models flannel", "has no name"}},
		{"token", `{"name": "{{nodeName}}"}`, []string{"a.conf:1:11", "{{managementIP}}"}},
		{"several mistakes at once", `{
  "name": "x", "type": "win-bridge",
  "dns": {"nameservers": ["dns"]},
  "apiVersion": 3,
  "loopbackDSR": "true",
  "policies": [
    {"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.0.0.0/33"]}},
    {"name": "EndpointPolicy", "value": {"Type": "Route"}},
    {"name": "EndpointPolicy", "value": {"Type": "Nonsense"}},
    {"name": "EndpointPolicy"}
  ]
}`, []string{"a.conf:3:26", `"dns", which is no address`, "a.conf:4:17", "apiVersion is 3", "a.conf:5:18", "must be true or false",
			`a.conf:7:83: ExceptionList holds "10.0.0.0/33"`, "a.conf:8:41: the route has no DestinationPrefix",
			`a.conf:9:50: there is no endpoint policy "Nonsense"`, "a.conf:10:5: the policy has no value"}},
		{"delegate with ipam", `{"name": "cbr0", "type": "flannel", "delegate": {"ipam": {}}}`, []string{"must not have 'ipam' field"}},
		{"delegate of Linux", `{"name": "cbr0", "type": "flannel", "delegate": {"type": "bridge"}}`, []string{"win-bridge or win-overlay"}},
		{"MAC prefix", `{"name": "x", "type": "win-overlay", "endpointMacPrefix": "0E2A"}`, []string{"value must be of the format xx-xx"}},
		{"settings under v1", `{"name": "x", "type": "win-bridge", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "Settings": {}}}]}`, []string{"set apiVersion to 2"}},
		{"azure mode", `{"name": "azure", "plugins": [{"type": "azure-vnet", "mode": "transparent"}]}`, []string{"mode is \"transparent\""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseConf("a.conf", []byte(tc.data))
			wantAll(t, err, tc.want...)
		})
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct{ name, data, want string }{
		{"misspelt key", "{\"name\": \"x\", \"type\": \"win-bridge\",\n \"polices\": []}", `a.conf:2:2: win-bridge ignores "polices"`},
		{"v1 fields under v2", `{"name": "x", "type": "win-bridge", "apiVersion": 2, "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": []}}]}`, `apiVersion 2 its fields belong there`},
		{"host bits", `{"name": "x", "type": "win-bridge", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["172.17.0.1/16"]}}]}`, "write 172.17.0.0/16"},
		{"another name", `{"name": "x", "type": "win-bridge", "policies": [{"name": "NetworkPolicy", "value": {}}]}`, "only EndpointPolicy is read"},
		{"capabilities in the delegate", `{"name": "x", "type": "flannel", "delegate": {"capabilities": {"portMappings": true}}}`, "not in the delegate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := ParseConf("a.conf", []byte(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(c.Warnings, "\n"), tc.want) {
				t.Errorf("warnings %q, want %q", c.Warnings, tc.want)
			}
		})
	}
	for name, o := range plugins(t) {
		if w := mustNew(t, o).Warnings(); len(w) > 0 {
			t.Errorf("%s: warnings for our own fixture: %q", name, w)
		}
	}
}

func TestOrigins(t *testing.T) {
	c := conf(t, "flannel-host-gw.conf")
	want := []trace.Origin{
		{What: "OutBoundNAT of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 18},
		{What: "ROUTE of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 25},
		{What: "ROUTE of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 33},
	}
	for i, p := range c.Policies {
		if *p.Origin != want[i] {
			t.Errorf("policy %d comes from %s, want %s", i, p.Origin, &want[i])
		}
	}
	// HNS keeps them, so that a rule can name its line.
	s, _, r := setUp(t, mustNew(t, plugins(t)["flannel-host-gw"]), cluster(false, "10.0.17763.1432"))
	if o := s.Endpoint(r.EndpointID).Policies[0].Origin; o == nil || *o != want[0] {
		t.Errorf("endpoint's policy comes from %s", o)
	}
}

func TestManagementIPToken(t *testing.T) {
	c := conf(t, "flannel-host-gw.conf")
	for _, node := range []string{"192.168.1.11", "192.168.1.12"} {
		got, err := c.For(addr(node))
		if err != nil {
			t.Fatal(err)
		}
		v, err := hns.DecodePolicy[hns.SDNRouteSettings](got.Policies[2].Policy)
		if err != nil || v.DestinationPrefix != node+"/32" {
			t.Errorf("route to %s, want %s/32 (%v)", v.DestinationPrefix, node, err)
		}
	}
}

func TestNewErrors(t *testing.T) {
	vxlan := conf(t, "flannel-vxlan.conf")
	backend := func(s string) *NetConf {
		nc, err := ParseNetConf("net-conf.json", []byte("{\n  \"Network\": \"10.244.0.0/16\",\n  \"Backend\": "+s+"\n}"))
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	for _, tc := range []struct {
		name string
		o    Options
		want []string
	}{
		{"VNI and port of Linux", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: backend(`{"Type": "vxlan", "VNI": 1, "Port": 8472}`)}, []string{
			"net-conf.json:3:39: invalid VXLAN backend config. VNI [1] must be greater than or equal to 4096 on Windows",
			"net-conf.json:3:50: invalid VXLAN backend config. Port [8472] is not supported on Windows. Omit the setting to default to port 4789"}},
		{"direct routing", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: backend(`{"Type": "vxlan", "DirectRouting": true, "GBP": true}`)}, []string{"DirectRouting is not supported on Windows", "GBP is not supported on Windows"}},
		{"delegate of the other backend", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: netConf(t, "net-conf-host-gw.json")}, []string{"needs the delegate win-bridge", "has win-overlay"}},
		{"no net-conf.json", Options{Plugin: PluginFlannel, Conf: vxlan}, []string{"net-conf.json"}},
		{"no conf", Options{Plugin: PluginNAT}, []string{"needs its CNI configuration"}},
		{"conf of another plugin", Options{Plugin: PluginWinBridge, Conf: vxlan}, []string{"flannel-vxlan.conf:3", `type is "flannel"`}},
		{"unknown plugin", Options{Plugin: "calico"}, []string{"azure-vnet, flannel, nat, win-bridge, win-overlay"}},
		{"version", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: netConf(t, "net-conf-vxlan.json"), Version: "new"}, []string{`version "new"`}},
		{"VNI of win-overlay", Options{Plugin: PluginWinOverlay, Conf: conf(t, "win-overlay.conf"), VNI: 5}, []string{"VNI 5"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(tc.o)
			wantAll(t, err, tc.want...)
		})
	}
	azure, err := ParseConf("a", []byte(`{"name": "azure", "plugins": [{"type": "azure-vnet", "dns": {"nameservers": ["10.0.0.10"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Plugin: PluginAzure, Conf: azure})
	wantAll(t, err, "Wrong DNS configuration")
}

func TestNetConfErrors(t *testing.T) {
	for _, tc := range []struct {
		data string
		want []string
	}{
		{"{\n \"Network\": \"10.244.0.0\",\n \"Backend\": {\"Type\": \"ipip\"}\n}", []string{"n.json:2:13", "no prefix", "n.json:3:22", "host-gw and vxlan"}},
		{`{"Backend": {"Type": "vxlan", "VNI": "4096"}}`, []string{"Network is missing", "VNI is the string"}},
		{`{"Network": "10.244.0.0/16"}`, []string{"Backend is missing"}},
		{"{\n\"Network\" \"10.244.0.0/16\"}", []string{"n.json:2:11"}},
	} {
		_, err := ParseNetConf("n.json", []byte(tc.data))
		wantAll(t, err, tc.want...)
	}
}

// The network is found by name, and must be of the plugin's type.
func TestMissingNetwork(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("win1")
	p := mustNew(t, plugins(t)["win-bridge"])
	s := service(n)
	_, err := p.Add(c, n, &kube.Pod{Name: "web"}, s)
	wantAll(t, err, "default/web", "network l2bridge is not found", "HNS has no networks")
	if _, err := s.CreateNetwork(hns.Network{Name: "l2bridge", Type: hns.Transparent}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Add(c, n, &kube.Pod{Name: "web"}, s)
	wantAll(t, err, "unexpected type: Transparent")

	// flannel made vxlan0, the CNI configuration says flannel.4096.
	o := plugins(t)["flannel-vxlan"]
	nc := *o.NetConf
	nc.Backend.Name = "vxlan0"
	o.NetConf = &nc
	p = mustNew(t, o)
	s = service(n)
	if _, err := p.Prepare(c, n, s); err != nil {
		t.Fatal(err)
	}
	_, err = p.Add(c, n, &kube.Pod{Name: "web"}, s)
	wantAll(t, err, "network flannel.4096 is not found", "HNS has vxlan0")
}

func TestOldBuildHasNoOverlay(t *testing.T) {
	c := cluster(false, "10.0.16299.15")
	n := c.Node("win1")
	_, err := mustNew(t, plugins(t)["flannel-vxlan"]).Prepare(c, n, service(n))
	wantAll(t, err, "does not support Remote Subnet policy", "16299")
}

func TestAddresses(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("win1")
	for _, name := range []string{"flannel-host-gw", "flannel-vxlan"} {
		t.Run(name, func(t *testing.T) {
			o := plugins(t)[name]
			o.Reserved = []netip.Addr{addr("10.244.1.4")}
			p := mustNew(t, o)
			s := service(n)
			if _, err := p.Prepare(c, n, s); err != nil {
				t.Fatal(err)
			}
			add := func(name, want string) (string, error) {
				pod := &kube.Pod{Namespace: "test", Name: name}
				if want != "" {
					pod.Address = addr(want)
				}
				r, err := p.Add(c, n, pod, s)
				if err != nil {
					return "", err
				}
				return r.Addresses[0].Addr().String(), nil
			}
			for _, tc := range []struct{ pod, want, got string }{
				{"a", "", "10.244.1.3"}, {"b", "10.244.1.6", "10.244.1.6"}, {"c", "", "10.244.1.5"}, {"d", "", "10.244.1.7"},
			} {
				if got, err := add(tc.pod, tc.want); got != tc.got {
					t.Errorf("pod %s has %s, want %s (%v)", tc.pod, got, tc.got, err)
				}
			}
			for addr, want := range map[string]string{
				"10.244.1.3": "taken by test/a", "10.244.1.1": "the gateway", "10.244.1.2": "the node's endpoint", "10.244.1.4": "reserved",
				"10.244.2.9": "not available in range set 10.244.1.1-10.244.1.254", "10.244.1.255": "first or last",
			} {
				_, err := add("x", addr)
				wantAll(t, err, "test/x", addr, want)
			}
			for i := 8; i <= 254; i++ {
				if _, err := add(fmt.Sprint("p", i), ""); err != nil {
					t.Fatal(err)
				}
			}
			_, err := add("last", "")
			wantAll(t, err, "no IP addresses available in range set: 10.244.1.1-10.244.1.254", "win1")
		})
	}
}

func TestAzureAddresses(t *testing.T) {
	c := cluster(true, "10.0.17763.1432")
	p := mustNew(t, plugins(t)["azure-l2bridge"])
	lease := func(node, pod, want string) (string, error) {
		kp := &kube.Pod{Name: pod}
		if want != "" {
			kp.Address = addr(want)
		}
		l, err := p.Lease(c, c.Node(node), kp)
		return l.Prefix.Addr().String(), err
	}
	for _, tc := range []struct{ node, pod, want, got string }{
		{"linux1", "a", "", "10.240.0.5"}, {"win1", "b", "", "10.240.0.11"}, {"win2", "c", "", "10.240.0.41"},
		{"win1", "b", "", "10.240.0.11"}, {"win1", "d", "10.240.3.9", "10.240.3.9"},
	} {
		if got, err := lease(tc.node, tc.pod, tc.want); got != tc.got {
			t.Errorf("pod %s on %s has %s, want %s (%v)", tc.pod, tc.node, got, tc.got, err)
		}
	}
	for a, want := range map[string]string{"10.240.3.9": "default/d", "10.240.0.1": "the gateway", "10.240.0.4": "node linux1"} {
		_, err := lease("win2", "e", a)
		wantAll(t, err, want)
	}
	// linux1's block ends before win1's own address.
	for i := range 4 {
		if got, err := lease("linux1", fmt.Sprint("f", i), ""); err != nil || got != fmt.Sprintf("10.240.0.%d", 6+i) {
			t.Errorf("%s, %v", got, err)
		}
	}
	_, err := lease("linux1", "g", "")
	wantAll(t, err, "10.240.0.5-10.240.0.9")
}

// settings returns the settings of all policies of a type of the pod web.
func settings[T any](t *testing.T, o Options, typ string, azure bool, build string) []T {
	t.Helper()
	s, _, r := setUp(t, mustNew(t, o), cluster(azure, build))
	var all []T
	for _, p := range hns.PoliciesOf(s.Endpoint(r.EndpointID).Policies, typ) {
		v, err := hns.DecodePolicy[T](p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// An exception that the configuration lacks comes in a second policy, which is
// no help to the first.
func TestMasqueradeAddsPolicy(t *testing.T) {
	o := plugins(t)["flannel-host-gw"]
	if got := settings[hns.OutBoundNATSettings](t, o, hns.PolicyOutBoundNAT, false, "10.0.17763.1432"); len(got) != 1 {
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
	got := settings[hns.OutBoundNATSettings](t, o, hns.PolicyOutBoundNAT, false, "10.0.17763.1432")
	if len(got) != 2 || len(got[1].Exceptions) != 1 || got[1].Exceptions[0] != "10.244.0.0/16" {
		t.Errorf("policies %+v, want a second one with the cluster CIDR", got)
	}

	// Before 1.0.0 the exception was put into the policy that is there.
	o.DelegateVersion = "0.8.7"
	got = settings[hns.OutBoundNATSettings](t, o, hns.PolicyOutBoundNAT, false, "10.0.17763.1432")
	if len(got) != 1 || fmt.Sprint(got[0].Exceptions) != "[10.96.0.0/12 192.168.1.0/24 10.244.0.0/16]" {
		t.Errorf("delegate 0.8.7: %+v, want one policy with the cluster CIDR last", got)
	}

	// win-overlay's exception is the node's own prefix, and only with ipMasq.
	off := false
	for _, masq := range []*bool{nil, &off} {
		o = plugins(t)["flannel-vxlan"]
		o.IPMasq = masq
		got = settings[hns.OutBoundNATSettings](t, o, hns.PolicyOutBoundNAT, false, "10.0.17763.1432")
		if masq == nil && (len(got) != 2 || got[1].Exceptions[0] != "10.244.1.0/24") || masq != nil && len(got) != 1 {
			t.Errorf("--ip-masq %v: %+v", masq, got)
		}
	}
}

func TestLoopbackDSRNeedsDSR(t *testing.T) {
	for build, want := range map[string]int{"10.0.17763.1432": 2, "10.0.17763.1039": 1} {
		got := settings[hns.OutBoundNATSettings](t, plugins(t)["win-bridge"], hns.PolicyOutBoundNAT, false, build)
		if len(got) != want || want == 2 && got[1].Destinations[0] != "10.244.1.3" {
			t.Errorf("%s: %+v, want %d policies", build, got, want)
		}
	}
	// Release 0.9.1 does not ask the build; HNS then takes every free port.
	o := plugins(t)["win-bridge"]
	o.Version = "0.9.1"
	if got := settings[hns.OutBoundNATSettings](t, o, hns.PolicyOutBoundNAT, false, "10.0.17763.1039"); len(got) != 2 {
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
		got := settings[hns.PortMappingSettings](t, o, hns.PolicyPortMapping, strings.HasPrefix(tc.plugin, "azure"), "10.0.17763.1432")
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s %s: %+v, want %+v", tc.plugin, tc.version, got, tc.want)
		}
	}
	// Without the capability the runtime passes no ports.
	c, err := ParseConf("a", []byte(`{"name": "l2bridge", "type": "win-bridge"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := settings[hns.PortMappingSettings](t, Options{Plugin: PluginWinBridge, Conf: c}, hns.PolicyPortMapping, false, "10.0.17763.1432"); len(got) != 0 {
		t.Errorf("without the capability: %+v", got)
	}
}

// hostIP survives apiVersion 2 only.
func TestHostIP(t *testing.T) {
	for version, want := range map[int]string{1: "", 2: "192.168.1.11"} {
		cf, err := ParseConf("a", fmt.Appendf(nil, `{"name": "l2bridge", "type": "win-bridge", "apiVersion": %d, "capabilities": {"portMappings": true}}`, version))
		if err != nil {
			t.Fatal(err)
		}
		c := cluster(false, "10.0.17763.1432")
		n := c.Node("win1")
		p, s := mustNew(t, Options{Plugin: PluginWinBridge, Conf: cf}), service(n)
		if _, err := p.Prepare(c, n, s); err != nil {
			t.Fatal(err)
		}
		r, err := p.Add(c, n, &kube.Pod{Name: "web", HostPorts: []kube.HostPort{{Proto: packet.UDP, HostPort: 53, Container: 53, HostIP: n.Address}}}, s)
		if err != nil {
			t.Fatal(err)
		}
		v, err := hns.DecodePolicy[hns.PortMappingSettings](hns.PoliciesOf(s.Endpoint(r.EndpointID).Policies, hns.PolicyPortMapping)[0])
		if err != nil || v.VIP != want || v.Protocol != 17 {
			t.Errorf("apiVersion %d: %+v, want VIP %q (%v)", version, v, want, err)
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
	got := settings[hns.OutBoundNATSettings](t, Options{Plugin: PluginWinBridge, Conf: cf}, hns.PolicyOutBoundNAT, false, "10.0.17763.1432")
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
	s, h, _ := setUp(t, mustNew(t, Options{Plugin: PluginFlannel, Conf: conf(t, "flannel-vxlan.conf"), NetConf: nc}), cluster(false, "10.0.17763.1432"))
	var to []string
	for _, p := range hns.PoliciesOf(s.Network(h.Network).Policies, hns.PolicyRemoteSubnetRoute) {
		v, _ := hns.DecodePolicy[hns.RemoteSubnetRouteSettings](p)
		to = append(to, v.DestinationPrefix)
	}
	if fmt.Sprint(to) != "[10.244.2.0/24]" {
		t.Errorf("routes to %v, want only win2's 10.244.2.0/24", to)
	}
}

// Only the first search name belongs to the namespace.
func TestDNSOfNamespaces(t *testing.T) {
	c := cluster(false, "10.0.17763.1432")
	n := c.Node("win1")
	cf, err := ParseConf("a", []byte(`{"name": "l2bridge", "type": "win-bridge", "dns": {"Nameservers": ["10.96.0.99"], "Search": ["svc.cluster.local", "cluster.local"]}}`))
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
	if got := fmt.Sprint(r.DNS.Search, r.DNS.ServerList); got != "[shop.svc.cluster.local cluster.local] [10.96.0.99]" {
		t.Errorf("DNS %s", got)
	}
	// Two pods of one name in two namespaces have two endpoints.
	r2, err := p.Add(c, n, &kube.Pod{Namespace: "other", Name: "web"}, s)
	if err != nil || s.Endpoint(r2.EndpointID).Name == s.Endpoint(r.EndpointID).Name {
		t.Errorf("%+v, %v", r2, err)
	}
}

func FuzzParseConf(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(fixtures, "*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"name":"x","type":"win-bridge","policies":[{"name":"EndpointPolicy","value":{"Type":"NAT","Protocol":"TCP","InternalPort":80}}]}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ParseNetConf("n.json", data); err != nil && !strings.Contains(err.Error(), "n.json:") {
			t.Errorf("error without a place: %v", err)
		}
		c, err := ParseConf("a.conf", data)
		if err != nil {
			if !strings.Contains(err.Error(), "a.conf:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		again, err := c.For(anyNode)
		if err != nil || len(again.Policies) != len(c.Policies) {
			t.Errorf("For: %v", err)
		}
		for _, p := range c.Policies {
			if p.Origin == nil || p.Origin.Line < 1 || p.Type == "" {
				t.Errorf("policy %+v", p)
			}
		}
	})
}
