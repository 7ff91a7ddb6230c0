package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/sim/lab"
)

// imported makes a lab of files, and builds it.
func imported(t testing.TB, files string) (*importer.Result, *lab.Cluster, error) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		at := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
	if err != nil {
		return nil, nil, err
	}
	r, err := importer.Import(t.Context(), b, "imported", b.File, func(s string) string { return s })
	if err != nil {
		return nil, nil, err
	}
	for name, data := range r.Extra {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := lab.Parse(filepath.Join(out, "lab.yaml"), r.Lab)
	if err != nil {
		return r, nil, err
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	return r, c, err
}

// node is a Windows node on l2bridge with two endpoints.
const node = `-- win1/hns.json --
[{"ID":"11111111-1111-1111-1111-111111111111","Name":"cbr0","Type":"L2Bridge","ManagementIP":"192.168.1.11",
  "Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}]
[{"ID":"22222222-2222-2222-2222-222222222222","Name":"a_cbr0","IPAddress":"10.244.1.7","PrefixLength":24,"GatewayAddress":"10.244.1.2","MacAddress":"00-15-5D-00-01-07","State":3,"VirtualNetwork":"11111111-1111-1111-1111-111111111111"},
 {"ID":"33333333-3333-3333-3333-333333333333","Name":"b_cbr0","IPAddress":"10.244.1.8","PrefixLength":24,"GatewayAddress":"10.244.1.2","MacAddress":"00-15-5D-00-01-08","State":3,"VirtualNetwork":"11111111-1111-1111-1111-111111111111"}]
-- win1/routes.txt --
PS C:\> Get-NetRoute

ifIndex DestinationPrefix                              NextHop                                  RouteMetric ifMetric PolicyStore
------- -----------------                              -------                                  ----------- -------- -----------
2       0.0.0.0/0                                      192.168.1.1                                      256 25       ActiveStore
`

const objects = `-- cluster/all.json --
{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win1", "labels": {"kubernetes.io/os": "windows"}},
  "spec": {"podCIDR": "10.244.1.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.11"}],
  "nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.20348.2582", "kubeletVersion": "v1.30.4"}}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "a"}, "spec": {"nodeName": "win1", "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
  "status": {"phase": "Running", "podIP": "10.244.1.7", "conditions": [{"type": "Ready", "status": "True"}]}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "b"}, "spec": {"nodeName": "win1", "containers": [{"name": "c"}]},
  "status": {"phase": "Running", "podIP": "10.244.1.8", "conditions": [{"type": "Ready", "status": "True"}]}}
]}
`

func verdict(t *testing.T, c *lab.Cluster, from, to string) string {
	t.Helper()
	tr, err := c.Trace(t.Context(), lab.Request{From: from, To: to})
	if err != nil {
		return err.Error()
	}
	text := string(tr.Verdict) + " " + tr.Summary
	for _, p := range tr.Paths {
		text += " " + p.Summary
	}
	return text
}

// TestImport: values have their places, what is not said is unknown and says what is missing.
func TestImport(t *testing.T) {
	r, c, err := imported(t, node+objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`address: 192.168.1.11 # `, `all.json:2`, `build: 10.0.20348.2582 # `, `kubernetes: "1.30" # `, `all.json:5`, `name: b # `, `all.json:7`,
		`conf: cni.conf`,
	} {
		if !strings.Contains(string(r.Lab), want) {
			t.Errorf("the lab has no %q:\n%s", want, r.Lab)
		}
	}
	for _, f := range []struct{ from, to, want string }{
		{"pod/web/b", "pod/web/a:8080", "delivered "},
		{"pod/web/b", "pod/web/a:81",
			"pod web/a declares the ports tcp/8080; other listening ports are unknown; find out with: kubectl exec -n web a -- netstat -an"},
		{"pod/web/b", "192.168.1.12:80", "unknown "},
	} {
		if got := verdict(t, c, f.from, f.to); !strings.Contains(strings.ToLower(got), strings.ToLower(f.want)) {
			t.Errorf("%s > %s: %s, want %s", f.from, f.to, got, f.want)
		}
	}
	var missing []string
	for _, m := range r.Missing {
		missing = append(missing, m.What)
	}
	if got := strings.Join(missing,
		"; "); got != "whether node win1 forwards between its interfaces; the configuration of the network plugin; --cluster-cidr of kube-proxy; the network around the nodes: routes and rules of their gateways; Services" {
		t.Errorf("missing: %s", got)
	}
}

// TestBuild: what is known of a node's build is in the lab, and no default is.
func TestBuild(t *testing.T) {
	for _, tt := range []struct{ kernel, label, image, want, missing string }{
		{"10.0.20348.2582", "10.0.17763", "Windows Server 2019 Datacenter", "build: 10.0.20348.2582 # ", ""},
		{"10.0.20348", "10.0.17763", "", "builds: [10.0.20348]", "the revision of the build of Windows of node win1"},
		{"", "10.0.17763", "", "builds: [10.0.17763]", "the revision of the build of Windows of node win1"},
		{"", "", "Windows Server 2019 Datacenter", "builds: [10.0.17763]", "the revision of the build of Windows of node win1"},
		{"", "", "Windows Server Datacenter", "build: unknown # nothing", "the build of Windows of node win1"},
		{"", "", "", "build: unknown # nothing", "the build of Windows of node win1"},
		{"10.0.25398.1", "10.0.25398", "", "build: unknown # nothing",
			`the build of Windows of node win1 ("10.0.25398.1" is not known to winlab)`},
	} {
		r, c,
			err := imported(t, node+strings.Replace(strings.Replace(objects, `"kernelVersion": "10.0.20348.2582"`, `"kernelVersion": "`+tt.kernel+
			`", "osImage": "`+tt.image+`"`, 1),
			`"labels": {`, `"labels": {"node.kubernetes.io/windows-build": "`+tt.label+`", `, 1))
		if err != nil {
			t.Fatal(err)
		}
		missing := ""
		for _, m := range r.Missing {
			if strings.Contains(m.What, "build of Windows") {
				missing = m.What
			}
		}
		if lab := strings.ReplaceAll(string(r.Lab), "\n      builds:", " builds:"); !strings.Contains(lab, tt.want) &&
			!strings.Contains(strings.ReplaceAll(lab, `"`, ""), tt.want) || missing != tt.missing {
			t.Errorf("%+v: missing %q\n%s", tt, missing, r.Lab)
		}
		want := "unknown "
		if missing == "" || strings.Contains(tt.want, "17763") {
			want = "delivered " // on every revision of that
		}
		if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); !strings.HasPrefix(got, want) && !strings.HasPrefix(got, "varies ") {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// TestDrift: where Kubernetes and HNS differ, both are quoted with their places.
func TestDrift(t *testing.T) {
	balancers := `-- win1/lb.json --
[{"ID":"44444444-4444-4444-4444-444444444444","HostComputeEndpoints":["22222222-2222-2222-2222-222222222222","99999999-9999-9999-9999-999999999999"],"FrontendVIPs":["10.96.0.50"],"PortMappings":[{"Protocol":6,"InternalPort":8080,"ExternalPort":80}],"SchemaVersion":{"Major":2,"Minor":0}}]
`
	services := `-- cluster/services.json --
{"apiVersion": "v1", "kind": "ServiceList", "items": [
 {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "a", "labels": {}}, "spec": {"clusterIP": "10.96.0.50", "selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": 8080}]}},
 {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "b"}, "spec": {"clusterIP": "10.96.0.51", "selector": {"app": "a"}, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}},
 {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "empty"}, "spec": {"clusterIP": "10.96.0.52", "selector": {"app": "none"}, "ports": [{"port": 80}]}}
]}
`
	of := func(pods string) string {
		r, _, err := imported(t, node+balancers+services+pods)
		if err != nil {
			t.Logf("%v", err) // a load balancer without its backend
		}
		var all []string
		for _, d := range r.Drift {
			all = append(all, d.Kubernetes+" / "+d.HNS)
		}
		return strings.Join(all, "\n")
	}
	labelled := strings.Replace(objects, `"name": "a"}, "spec": {"nodeName"`, `"name": "a", "labels": {"app": "a"}}, "spec": {"nodeName"`, 1)
	got := of(strings.Replace(labelled, `"podIP": "10.244.1.8"`, `"podIP": "10.244.1.9"`, 1))
	for _, want := range []string{
		"pod web/b has 10.244.1.9 on win1 (", "/ no endpoint has 10.244.1.9", "no pod that runs has 10.244.1.8 / endpoint b_cbr0 has it (",
		"Service web/a port 80 has the backends 10.244.1.7 (",
		"/ load balancer 44444444-4444-4444-4444-444444444444 has the backends 10.244.1.7, and endpoints that are not there: 99999999-9999-9999-9999-999999999999",
		"Service web/b port 80 has the backends 10.244.1.7 (", "/ no load balancer has 10.96.0.51 port 80",
		"no load balancer has 10.96.0.51 port 53",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 5 {
		t.Errorf("%d:\n%s", n, got)
	}

	balancers = strings.Replace(balancers, `,"99999999-9999-9999-9999-999999999999"`, "", 1)
	services = strings.Replace(services, `"clusterIP": "10.96.0.51", "selector": {"app": "a"}`, `"clusterIP": "10.96.0.51"`, 1)
	if got := of(labelled); got != "" {
		t.Errorf("nothing differs: %s", got)
	}
}

// TestImportAlone: without Kubernetes, endpoints stand for pods.
func TestImportAlone(t *testing.T) {
	r, c, err := imported(t, node)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if got := verdict(t, c, "pod/a-cbr0", "pod/b-cbr0:80"); !strings.HasPrefix(got, "unknown ") ||
		!strings.Contains(got, "b_cbr0 of win1: listening ports unknown") {
		t.Error(got)
	}
}

// TestImportPart: of a node whose files cannot be read whole nothing is imported, and what is
// wrong has its place; what is cut in the objects of Kubernetes is said, and the others count.
func TestImportPart(t *testing.T) {
	half := strings.Replace(node, `"State":3,"VirtualNetwork":"11111111-1111-1111-1111-111111111111"}]`, "", 1)
	r, _, err := imported(t, half+objects)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(r.Lab), "hnsDump") {
		t.Errorf("half of a node was imported:\n%s", r.Lab)
	}
	if all := strings.Join(r.LeftOut, "\n"); !strings.Contains(all, "hns.json:") {
		t.Errorf("left out: %s", all)
	}
	if len(r.Missing) == 0 || !strings.HasPrefix(r.Missing[0].What, "HNS of node win1") {
		t.Errorf("missing: %+v", r.Missing)
	}

	r, _, err = imported(t, node+strings.Replace(objects, `"conditions": [{"type": "Ready", "status": "True"}]}}
]}`, "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(r.LeftOut, "\n"); !strings.Contains(all, "all.json:9:1: the file ends in the middle") ||
		!strings.Contains(string(r.Lab), "name: a #") || strings.Contains(string(r.Lab), "name: b #") {
		t.Errorf("left out: %s\n%s", all, r.Lab)
	}

	_, _, err = imported(t, "-- readme.txt --\nnothing\n")
	if err == nil || !strings.Contains(err.Error(), "winlab.exe collect") {
		t.Errorf("nothing: %v", err)
	}
}

// TestImportFailedStep: of a node whose collector could not list HNS whole, nothing is taken as
// all that it has.
func TestImportFailedStep(t *testing.T) {
	manifest := `-- win1/bundle.json --
{"apiVersion": "winlab.dev/bundle/v1alpha1", "kind": "Bundle", "tool": "winlab", "made": "2026-01-01T00:00:00Z",
 "files": [{"path": "hns.json", "node": "win1", "what": "HNS", "bytes": 1, "sha256": ""}, {"path": "routes.txt", "node": "win1", "what": "routes", "bytes": 1, "sha256": ""}],
 "steps": [{"name": "STEP", "what": "objects", "node": "win1", "files": ["hns.json"], "error": "HcnQuery 22222222: 0x803b0001"}]}
`
	for step, whole := range map[string]bool{"hns-v1": false, "hns-v2": false, "vfp": true, "host-network": true} {
		r, c, err := imported(t, strings.Replace(manifest, "STEP", step, 1)+node+strings.Replace(objects, "20348.2582", "20348.2762", 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(r.Lab), "hnsDump"); got != whole {
			t.Errorf("step %s failed, and the node's HNS is imported: %v\n%s%v", step, got, r.Lab, r.LeftOut)
		}
		if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); strings.HasPrefix(got, "delivered ") != whole || !whole &&
			!strings.Contains(got, "step "+step+" of the collector failed there (HcnQuery") {
			t.Errorf("step %s: %s", step, got)
		}
	}
}

// TestImportNotSeen: a verdict that rests on a node that was not observed says so, and one
// that does not is as before.
func TestImportNotSeen(t *testing.T) {
	more := strings.Replace(objects, `"items": [`, `"items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2"}, "spec": {"podCIDR": "10.244.2.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.12"}],
  "nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.20348.2762", "kubeletVersion": "v1.30.4"}}},
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lin1", "labels": {"kubernetes.io/os": "linux"}}, "spec": {"podCIDR": "10.244.3.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.13"}]}},
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "what1"}, "spec": {"podCIDR": "10.244.4.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.14"}]}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "far"}, "spec": {"nodeName": "win2", "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
  "status": {"phase": "Running", "podIP": "10.244.2.7", "conditions": [{"type": "Ready", "status": "True"}]}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "lost"}, "spec": {"nodeName": "what1", "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
  "status": {"phase": "Running", "podIP": "10.244.4.7", "conditions": [{"type": "Ready", "status": "True"}]}},`, 1)
	r, c, err := imported(t, node+strings.Replace(more, "20348.2582", "20348.2762", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	for flow, want := range map[string]string{
		"pod/web/b -> pod/web/a:8080":  "delivered ok; ",
		"node/win1 -> node/lin1:10250": "varies missing-fact; lin1 is as win-bridge and kube-proxy configure it",
		"node/lin1 -> node/win2:10250": "varies missing-fact; lin1, win2 are as win-bridge and kube-proxy configure them",
		"pod/web/b -> 192.168.1.14:80": "unknown model-hole; ", // whether it has Windows is unknown
	} {
		from, to, _ := strings.Cut(flow, " -> ")
		tr, err := c.Trace(t.Context(), lab.Request{From: from, To: to})
		if err != nil {
			t.Errorf("%s: %v", flow, err)
			continue
		}
		got := string(tr.Verdict) + " " + string(tr.Reason) + "; "
		for _, o := range tr.Open {
			if o.Param == "assumed-nodes" {
				got += o.Means[0]
			}
		}
		if got != want {
			t.Errorf("%s: %s (%s), want %s", flow, got, tr.Summary, want)
		}
		if strings.Contains(want, "missing-fact") && !strings.Contains(tr.Summary, "unknown if not") {
			t.Errorf("%s: %s", flow, tr.Summary)
		}
	}
	if strings.Contains(string(r.Lab), "name: what1") {
		t.Errorf("a node without an operating system has one:\n%s", r.Lab)
	}
	if all := strings.Join(r.LeftOut, "\n"); !strings.Contains(all, "node what1: nothing says which operating system it has") ||
		!strings.Contains(all, "pod web/lost is on node what1, which is not in the lab") {
		t.Errorf("left out: %s", all)
	}
}

// FuzzImport: no file of a bundle makes the import panic or write a lab that is not YAML.
func FuzzImport(f *testing.F) {
	f.Add("cluster/all.json", objects[strings.Index(objects, "\n")+1:])
	f.Add("nodes/win1/hns.json", node[strings.Index(node, "\n")+1:strings.Index(node, "-- win1/routes")])
	f.Add("a.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: \"a\\nb\"}\n---\n- x\n")
	f.Add("a.yaml", "apiVersion: v1\nkind: PodList\nitems: [{kind: Pod, apiVersion: v1, metadata: {name: 7}}]\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "\x00\n") || len(name) > 100 || strings.Contains(text, "\n-- ") ||
			strings.HasPrefix(text, "-- ") {
			t.Skip()
		}
		dir := t.TempDir()
		at := filepath.Join(dir, name)
		if os.MkdirAll(filepath.Dir(at), 0o755) != nil || os.WriteFile(at, []byte(text), 0o600) != nil {
			t.Skip()
		}
		b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
		if err != nil {
			return
		}
		r, err := importer.Import(t.Context(), b, "fuzz", b.File, func(s string) string { return s })
		if err != nil {
			return
		}
		for extra, data := range r.Extra {
			if err := os.WriteFile(filepath.Join(dir, extra), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lab.Parse(filepath.Join(dir, "lab.yaml"), r.Lab); err != nil && strings.Contains(err.Error(), "yaml:") {
			t.Errorf("%v\n%s", err, r.Lab)
		}
	})
}

// TestImportPlugin: which plugin a cluster has is seen by what it leaves in objects; else
// verdicts that rest on it say that it is a guess.
func TestImportPlugin(t *testing.T) {
	with := func(annotation string) string {
		return strings.Replace(strings.Replace(objects, "20348.2582", "20348.2762", 1), `"metadata": {"name": "win1", `,
			`"metadata": {"name": "win1", "annotations": {`+annotation+`}, `, 1)
	}
	for _, c := range []struct{ name, files, plugin, guess, means string }{
		{"nothing", with(""), "win-bridge", "nothing in the bundle says which network plugin the cluster has: assuming win-bridge",
			"win1 is as win-bridge and kube-proxy configure it"},
		{"host-gw", with(`"flannel.alpha.coreos.com/backend-type": "host-gw"`), "flannel", "assuming one without policies",
			"win1 is as flannel and kube-proxy configure it"},
		{"vxlan", with(`"flannel.alpha.coreos.com/backend-type": "vxlan"`), "flannel", "assuming one without policies",
			"win1 is as flannel and kube-proxy configure it"},
		{"Calico", with(`"projectcalico.org/IPv4Address": "192.168.1.11/24"`), "win-bridge",
			"Calico is there (annotation projectcalico.org/IPv4Address of node win1), and nothing in the bundle says what it makes on Windows nodes: assuming win-bridge", "win1 is as win-bridge and kube-proxy configure it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, lab1, err := imported(t, c.files)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Lab)
			}
			if !strings.Contains(string(r.Lab), "plugin: "+c.plugin) || !strings.Contains(string(r.Lab), c.guess) {
				t.Errorf("not %s, %q:\n%s", c.plugin, c.guess, r.Lab)
			}
			tr, err := lab1.Trace(t.Context(), lab.Request{From: "pod/web/b", To: "pod/web/a:8080"})
			if err != nil {
				t.Fatal(err)
			}
			if tr.Verdict != "varies" || len(tr.Open) != 1 || tr.Open[0].Means[0] != c.means {
				t.Errorf("%s %+v", tr.Verdict, tr.Open)
			}
		})
	}
}

// TestImportDelegate: without net-conf.json the backend of flannel follows from the plugin that
// its CNI plugin delegates to, and the lab can be built.
func TestImportDelegate(t *testing.T) {
	conf := `-- win1/cni.conf --
{"cniVersion": "0.2.0", "name": "cbr0", "type": "flannel", "delegate": {"type": "win-bridge"}}
`
	r, c, err := imported(t, conf+node+strings.Replace(objects, "20348.2582", "20348.2762", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if got := string(r.Extra["net-conf.json"]); !strings.Contains(got, `"host-gw"`) || !strings.Contains(string(r.Lab), "plugin: flannel") {
		t.Errorf("%s\n%s", got, r.Lab)
	}
	if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); !strings.HasPrefix(got, "delivered ") {
		t.Error(got)
	}
}
