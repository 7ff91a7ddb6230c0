package cni

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
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
		{"byte order mark", "\xef\xbb\xbf{}", []string{"a.conf:1:1", "without a byte order mark"}},
		// The conflist that Azure shipped for Windows once lacked this comma.
		{"missing comma", "{\n  \"name\": \"azure\",\n  \"plugins\": [\n    {}\n    {}\n  ]\n}", []string{"a.conf:5:5", "a comma or ] should be here"}},
		{"trailing comma", "{\n  \"name\": \"x\",\n}", []string{"a.conf:2:14", "a comma before }"}},
		{"cut off", "{\n  \"name\": \"x\"", []string{"a.conf:2:14", "what begins on line 1 has no end }"}},
		{"two objects", "{\"name\": \"x\", \"type\": \"nat\"}\n{}", []string{"a.conf:2:", "more text after the end"}},
		{"not an object", "[1]", []string{"a.conf:1:1", "it must be an object"}},
		{"no name, other type", "{\n  \"type\": \"cilium\"\n}", []string{"a.conf:2:11", "winlab models flannel", "has no name"}},
		{"token", `{"name": "{{nodeName}}"}`, []string{"a.conf:1:10", "{{managementIP}}"}},
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
}`, []string{"a.conf:3:26", `"dns", which is not an address`, "a.conf:4:17", "apiVersion is 3", "a.conf:5:18", "must be true or false",
			`a.conf:7:83: ExceptionList holds "10.0.0.0/33"`, "a.conf:8:41: the route has no DestinationPrefix",
			`a.conf:9:50: there is no endpoint policy "Nonsense"`, "a.conf:10:5: the policy has no value"}},
		{"delegate with ipam", `{"name": "cbr0", "type": "flannel", "delegate": {"ipam": {}}}`, []string{"must not have 'ipam' field"}},
		{"delegate of Linux", `{"name": "cbr0", "type": "flannel", "delegate": {"type": "bridge"}}`, []string{"win-bridge or win-overlay"}},
		{"MAC prefix", `{"name": "x", "type": "win-overlay", "endpointMacPrefix": "0E2A"}`, []string{"value must be of the format xx-xx"}},
		{"settings under v1",
			`{"name": "x", "type": "win-bridge", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "Settings": {}}}]}`,
			[]string{"set apiVersion to 2"}},
		{"sdnbridge does not pass ranges on",
			"{\"name\": \"x\", \"type\": \"sdnbridge\", \"ipam\": {\n \"ranges\": [[{\"subnet\": \"10.244.1.0/24\"}]]}}",
			[]string{"a.conf:2:2: sdnbridge does not pass ranges to the IPAM program", "no IP ranges specified", "enableDualStack"}},
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
		{"v1 fields under v2",
			`{"name": "x", "type": "win-bridge", "apiVersion": 2, "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": []}}]}`, `apiVersion 2 its fields belong there`},
		{"host bits",
			`{"name": "x", "type": "win-bridge", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["172.17.0.1/16"]}}]}`, "write 172.17.0.0/16"},
		{"another name", `{"name": "x", "type": "win-bridge", "policies": [{"name": "NetworkPolicy", "value": {}}]}`,
			"only EndpointPolicy is read"},
		{"capabilities in the delegate", `{"name": "x", "type": "flannel", "delegate": {"capabilities": {"portMappings": true}}}`,
			"not in the delegate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := ParseConf("a.conf", []byte(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(c.Remarks.Warnings().Error(), tc.want) {
				t.Errorf("warnings %q, want %q", c.Remarks.Warnings(), tc.want)
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
		{What: "OutBoundNAT of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 19},
		{What: "ROUTE of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 26},
		{What: "ROUTE of cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 34},
	}
	for i, p := range c.policies {
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
		got, err := c.forNode(&kube.Node{Address: addr(node)})
		if err != nil {
			t.Fatal(err)
		}
		v, ok := hns.SettingsOf[hns.SDNRouteSettings](got.policies[2].Policy)
		if !ok || v.DestinationPrefix != node+"/32" {
			t.Errorf("route to %s, want %s/32 (%v)", v.DestinationPrefix, node, ok)
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
		{"VNI and port of Linux", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: backend(`{"Type": "vxlan", "VNI": 1, "Port": 8472}`)},
			[]string{
				"net-conf.json:3:39: invalid VXLAN backend config. VNI [1] must be greater than or equal to 4096 on Windows",
				"net-conf.json:3:50: invalid VXLAN backend config. Port [8472] is not supported on Windows. Omit the setting to default to port 4789"}},
		{"direct routing", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: backend(`{"Type": "vxlan", "DirectRouting": true, "GBP": true}`)},
			[]string{"DirectRouting is not supported on Windows", "GBP is not supported on Windows"}},
		{"delegate of the other backend", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: netConf(t, "net-conf-host-gw.json")},
			[]string{"needs the delegate win-bridge", "has win-overlay"}},
		{"no net-conf.json", Options{Plugin: PluginFlannel, Conf: vxlan}, []string{"net-conf.json"}},
		{"no conf", Options{Plugin: PluginNAT}, []string{"needs its CNI configuration"}},
		{"conf of another plugin", Options{Plugin: PluginWinBridge, Conf: vxlan}, []string{"flannel-vxlan.conf:3", `type is "flannel"`}},
		{"unknown plugin", Options{Plugin: "cilium"},
			[]string{"azure-vnet, calico, flannel, nat, sdnbridge, vpc-bridge, win-bridge, win-overlay"}},
		{"version", Options{Plugin: PluginFlannel, Conf: vxlan, NetConf: netConf(t, "net-conf-vxlan.json"), Version: "new"},
			[]string{`version "new"`}},
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
		{"{\n \"Network\": \"10.244.0.0\",\n \"Backend\": {\"Type\": \"ipip\"}\n}",
			[]string{"n.json:2:13", "not a prefix", "n.json:3:22", "host-gw and vxlan"}},
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
