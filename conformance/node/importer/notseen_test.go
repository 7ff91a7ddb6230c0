package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
)

// TestImportNoBalancers: where no file shows a load balancer of a node and the cluster has Services,
// it is unknown whether it has any; the verdict of a flow to a Service is not that of a node without any.
func TestImportNoBalancers(t *testing.T) {
	service := `-- cluster/services.json --
{"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "web", "name": "a"}, "spec": {"clusterIP": "10.96.0.50", "selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": 8080}]}}
`
	kube := strings.Replace(strings.Replace(objects, "20348.2582", "20348.2762", 1), `"name": "a"}, "spec": {"nodeName"`,
		`"name": "a", "labels": {"app": "a"}}, "spec": {"nodeName"`, 1)
	r, c, err := imported(t, node+service+kube)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if got := verdict(t, c, "pod/web/b", "svc/web/a:80"); strings.HasPrefix(got, "dropped ") || strings.HasPrefix(got, "no-reply ") {
		t.Errorf("it is taken for a node without load balancers: %s", got)
	}
	if !strings.Contains(string(r.Lab), "assumed: 'no file shows a load balancer of it") &&
		!strings.Contains(string(r.Lab), "assumed: no file shows a load balancer of it") {
		t.Errorf("%s", r.Lab)
	}
	lb := `-- win1/lb.json --
[{"ID":"44444444-4444-4444-4444-444444444444","HostComputeEndpoints":["22222222-2222-2222-2222-222222222222"],"FrontendVIPs":["10.96.0.51"],"PortMappings":[{"Protocol":6,"InternalPort":8080,"ExternalPort":80}],"SchemaVersion":{"Major":2,"Minor":0}}]
`
	r, _, err = imported(t, node+lb+service+kube)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if strings.Contains(string(r.Lab), "assumed:") {
		t.Errorf("they are listed:\n%s", r.Lab)
	}
}

// TestImportSchema: a node whose files show objects of HCN v2 does not have a Windows before 2019.
func TestImportSchema(t *testing.T) {
	plain := strings.Replace(objects, `"kernelVersion": "10.0.20348.2582", `, "", 1)
	for files, want := range map[string]string{
		node: "build: unknown # nothing in the bundle says it",
		`-- win1/hcn.json --
[{"ID":"11111111-1111-1111-1111-111111111111","Name":"cbr0","Type":"L2Bridge","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24","Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}]}]}],"SchemaVersion":{"Major":2,"Minor":0}}]
[{"ID":"22222222-2222-2222-2222-222222222222","Name":"a","HostComputeNetwork":"11111111-1111-1111-1111-111111111111","IpConfigurations":[{"IpAddress":"10.244.1.7","PrefixLength":24}],"Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}],"MacAddress":"00-15-5D-00-01-07","SchemaVersion":{"Major":2,"Minor":0}}]
`: `['>=10.0.17763']`,
	} {
		r, _, err := imported(t, files+plain)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.Lab)
		}
		if !strings.Contains(string(r.Lab), want) {
			t.Errorf("want %s:\n%s", want, r.Lab)
		}
	}
}

// TestImportPoliciesNotRead: of a node that was not observed, the policies that could not be read are
// unknown too.
func TestImportPoliciesNotRead(t *testing.T) {
	manifest := `-- bundle.json --
{"apiVersion": "winlab.dev/bundle/v1alpha1", "kind": "Bundle", "tool": "winlab", "made": "2026-01-01T00:00:00Z",
 "files": [{"path": "cluster/all.json", "what": "objects", "bytes": 1, "sha256": ""}],
 "steps": [{"name": "networkpolicies", "what": "NetworkPolicies", "error": "forbidden"}]}
`
	r, c, err := imported(t, manifest+strings.Replace(objects, "20348.2582", "20348.2762", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "NetworkPolicies could not be read (forbidden), and what they block there is not known") {
		t.Errorf("%s", r.Lab)
	}
	if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); !strings.HasPrefix(got, "varies ") {
		t.Error(got)
	}
}

// TestAssumedNodesPinned: whoever has looked can say so for all such nodes at once, and who wants to
// know what does not rest on them can take them for unknown.
func TestAssumedNodesPinned(t *testing.T) {
	r, _, err := imported(t, strings.Replace(objects, "20348.2582", "20348.2762", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	for answer, want := range map[string]string{"as-made": "delivered ", "otherwise": "unknown "} {
		dir := t.TempDir()
		for name, data := range r.Extra {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f,
			err := lab.Parse(filepath.Join(dir, "lab.yaml"), []byte(strings.Replace(string(r.Lab), "\nspec:\n",
			"\nspec:\n  params: {assumed-nodes: "+answer+"}\n", 1)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := lab.Build(t.Context(), f, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := c.Trace(t.Context(), lab.Request{From: "pod/web/b", To: "pod/web/a:8080"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(tr.Verdict)+" ", want) || len(tr.Open) != 0 {
			t.Errorf("%s: %s %s (%s), open %+v", answer, tr.Verdict, tr.Reason, tr.Summary, tr.Open)
		}
		if answer == "otherwise" && (tr.Reason != "missing-fact" || !strings.Contains(tr.Summary, "in1 was not observed")) {
			t.Errorf("%s: %s (%s)", answer, tr.Reason, tr.Summary)
		}
	}
}
