package importer_test

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
)

// more are two Linux nodes with a pod each, beside the Windows node of the others.
const more = `"items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lin1", "labels": {"kubernetes.io/os": "linux"}}, "spec": {"podCIDR": "10.244.3.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.13"}]}},
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lin2", "labels": {"kubernetes.io/os": "linux"}}, "spec": {"podCIDR": "10.244.4.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.14"}]}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "l1"}, "spec": {"nodeName": "lin1", "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
  "status": {"phase": "Running", "podIP": "10.244.3.7", "conditions": [{"type": "Ready", "status": "True"}]}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "l2"}, "spec": {"nodeName": "lin2", "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
  "status": {"phase": "Running", "podIP": "10.244.4.7", "conditions": [{"type": "Ready", "status": "True"}]}},`

// TestImportWays: of a Linux node to whose pods a Windows node routes by its address it is concluded that
// it routes so, too; what another one does with packets for pods elsewhere is unknown, and not dropped
// for want of a route.
func TestImportWays(t *testing.T) {
	kube := strings.Replace(strings.Replace(objects, "20348.2582", "20348.2762", 1), `"items": [`, more, 1)
	routes := node +
		"2       10.244.3.0/24                                  192.168.1.13                                     256 25       ActiveStore\n"
	_, c, err := imported(t, routes+kube)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ from, to, want string }{
		{"node/lin1", "pod/web/a:8080", "unknown model-hole"}, // the way back from win1
		{"node/lin1", "pod/web/l2:8080", "varies missing-fact delivered"},
		{"node/lin2", "pod/web/a:8080", "unknown "},
		{"pod/web/l2", "pod/web/a:8080", "unknown "},
		{"node/lin2", "node/lin1:10250", "varies missing-fact delivered"},
	} {
		tr, err := c.Trace(t.Context(), lab.Request{From: f.from, To: f.to})
		if err != nil {
			t.Error(err)
			continue
		}
		got := string(tr.Verdict) + " " + string(tr.Reason) + " " + string(tr.Paths[0].Verdict)
		if !strings.HasPrefix(got, f.want) || f.want == "unknown " &&
			!strings.Contains(tr.Paths[0].Summary+tr.Summary, "he bundle does not say what routes lin2 has to the pods of other nodes") {
			t.Errorf("%s > %s: %s, want %s: %s %s", f.from, f.to, got, f.want, tr.Summary, tr.Paths[0].Summary)
		}
	}
	r, _, err := imported(t, routes+kube)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(r.Lab), "routes: # concluded: win1 has the route to its pods 10.244.3.0/24 by its address (") &&
		!strings.Contains(string(r.Lab), "# concluded: win1 has the route to its pods 10.244.3.0/24 by its address (") {
		t.Errorf("%s", r.Lab)
	}
}

// TestImportTunnels: the virtual network and the MAC addresses at the ends of tunnels are those that HNS
// of a node has.
func TestImportTunnels(t *testing.T) {
	overlay := strings.NewReplacer(`"Type":"L2Bridge"`,
		`"Type":"Overlay","DrMacAddress":"00-15-5D-AA-BB-01","Policies":[{"Type":"RemoteSubnetRoute","DestinationPrefix":"10.244.3.0/24","IsolationId":5001,"ProviderAddress":"192.168.1.13","DistributedRouterMacAddress":"02:11:22:33:44:55"}]`,
		`"GatewayAddress":"10.244.1.1"}]}`, `"GatewayAddress":"10.244.1.1","Policies":[{"Type":"VSID","VSID":5001}]}]}`).Replace(node)
	r, c, err := imported(t, overlay+strings.Replace(strings.Replace(objects, "20348.2582", "20348.2762", 1), `"items": [`, more, 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	for _, want := range []string{"plugin: win-overlay", `winlab-vni: "5001" # `, "vtepMAC: 00-15-5D-AA-BB-01 # ",
		"vtepMAC: 02-11-22-33-44-55 # "} {
		if !strings.Contains(string(r.Lab), want) {
			t.Errorf("no %q:\n%s", want, r.Lab)
		}
	}
	for _, f := range []struct{ from, to, want string }{{"pod/web/a", "pod/web/l1:8080", "varies "},
		{"pod/web/l1", "pod/web/a:8080", "varies "}} {
		tr, err := c.Trace(t.Context(), lab.Request{From: f.from, To: f.to})
		if err != nil || !strings.HasPrefix(string(tr.Verdict)+" ", f.want) || tr.Paths[0].Verdict != "delivered" {
			t.Errorf("%s > %s: %v %+v", f.from, f.to, err, tr)
		}
	}
}

// TestImportOpenVSwitch: on a node of Antrea HNS decides nothing where the extension of Open vSwitch is
// enabled or not shown; where it is off, HNS does. With another plugin it is unknown.
func TestImportOpenVSwitch(t *testing.T) {
	antrea := `-- cluster/antrea.json --
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "antrea-windows-config"}, "data": {"antrea-agent.conf": "antreaProxy:\n  proxyAll: true\n"}}
`
	transparent := strings.Replace(node, `"Type":"L2Bridge"`, `"Type":"Transparent"EXTENSIONS`, 1)
	ovs := func(on string) string {
		return `,"Extensions":[{"Id":"583CC151-73EC-4A6A-8B47-578297AD7623","IsEnabled":` + on + `,"Name":"Open vSwitch Extension"}]`
	}
	kube := strings.Replace(objects, "20348.2582", "20348.2762", 1)
	for _, c := range []struct{ extensions, config, plugin, want, says string }{
		{ovs("true"), antrea, "antrea", "varies missing-fact", "the extension of Open vSwitch is enabled on the switch of its network cbr0"},
		{"", antrea, "antrea", "varies missing-fact", "no file shows the extensions, and Antrea enables that of Open vSwitch"},
		{ovs("false"), antrea, "win-bridge", "delivered ok",
			"the extension of Open vSwitch is not enabled on the switch of network cbr0 of win1, though the cluster has Antrea"},
		{ovs("true"), "", "win-bridge", "unknown model-hole", "he extension Open vSwitch Extension is enabled on the switch of network cbr0"},
		{ovs("false"), "", "win-bridge", "delivered ok", ""},
	} {
		r, l, err := imported(t, strings.Replace(transparent, "EXTENSIONS", c.extensions, 1)+kube+c.config)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		tr, err := l.Trace(t.Context(), lab.Request{From: "pod/web/b", To: "pod/web/a:8080"})
		if err != nil {
			t.Fatal(err)
		}
		text := string(r.Lab) + tr.Summary + strings.Join(r.LeftOut, "")
		for _, x := range r.Concluded {
			text += x.Because
		}
		for _, p := range tr.Paths {
			text += p.Summary
		}
		if got := string(tr.Verdict) + " " + string(tr.Reason); got != c.want || l.Plan.Network.Plugin != c.plugin ||
			!strings.Contains(text, c.says) {
			t.Errorf("%+v: %s %s\n%s\n%s", c, l.Plan.Network.Plugin, got, text, r.LeftOut)
		}
	}
}
