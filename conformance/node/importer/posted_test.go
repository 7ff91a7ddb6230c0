package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/node/importer"
)

// wide is what kubectl prints of the cluster of [node].
const wide = `-- nodes.txt --
$ kubectl get nodes -o wide
NAME     STATUS   ROLES           AGE   VERSION   INTERNAL-IP    EXTERNAL-IP   OS-IMAGE                         KERNEL-VERSION    CONTAINER-RUNTIME
master   Ready    control-plane   9d    v1.30.4   192.168.1.10   <none>        Ubuntu 22.04.4 LTS               5.15.0-100        containerd://1.7.1
win1     Ready    <none>          9d    v1.30.4   192.168.1.11   <none>        Windows Server 2022 Datacenter   10.0.20348.2762   containerd://1.7.1
what     Ready    <none>          9d    v1.30.4   192.168.1.13   <none>        <unknown>                        <unknown>         <unknown>
-- pods.txt --
NAMESPACE   NAME   READY   STATUS      RESTARTS      AGE   IP           NODE     NOMINATED NODE   READINESS GATES
web         a      1/1     Running     3 (2d ago)    9d    10.244.1.7   win1     <none>           <none>
web         b      0/1     Running     0             9d    10.244.1.8   win1     <none>           <none>
web         old    0/1     Completed   0             9d    10.244.1.9   win1     <none>           <none>
`

// TestStatusOfTables: the column STATUS decides whether a pod is in the lab and has to have an endpoint.
// A pod with a status that says neither is left out by name, and is not a difference; nor is one that has
// its node's own address.
func TestStatusOfTables(t *testing.T) {
	for status, want := range map[string]string{
		"Running": "lab", "CrashLoopBackOff": "lab", "Init:0/1": "lab", "Terminating": "terminating",
		"Succeeded": "", "Evicted": "", "Failed": "",
		"Completed": "left out", "Error": "left out", "OOMKilled": "left out", "Unknown": "left out", "ExitCode:3221225477": "left out",
	} {
		nodes, _, _ := strings.Cut(wide, "-- pods.txt --")
		pods := "-- pods.txt --\n"
		for _, row := range [][]any{{"NAMESPACE", "NAME", "READY", "STATUS", "IP", "NODE"}, {"web", "a", "1/1", "Running", "10.244.1.7", "win1"},
			{"web", "b", "0/1", status, "10.244.1.8", "win1"}, {"web", "host", "1/1", "Running", "192.168.1.11", "win1"}} {
			pods += fmt.Sprintf("%-12s%-8s%-8s%-20s%-14s%s\n", row...)
		}
		r, _, err := imported(t, node+nodes+pods)
		if err != nil {
			t.Fatalf("%s: %v\n%s", status, err, r.Lab)
		}
		lab, out := string(r.Lab), strings.Join(r.LeftOut, "\n")
		if got := strings.Contains(lab, "name: b # "); got != (want == "lab" || want == "terminating") {
			t.Errorf("%s: in the lab: %v\n%s", status, got, lab)
		}
		if got := strings.Contains(lab, "terminating: true"); got != (want == "terminating") {
			t.Errorf("%s: terminating: %v", status, got)
		}
		if got := strings.Contains(out, "pod web/b: a pod with the status "+status+" may have its address or not"); got != (want == "left out") {
			t.Errorf("%s: left out: %s", status, out)
		}
		for _, d := range r.Drift {
			if want != "" || d.ID != importer.LeftOver || !strings.HasPrefix(d.HNS, "endpoint b_") {
				t.Errorf("%s: drift: %+v", status, d)
			}
		}
		if want == "" && len(r.Drift) != 1 {
			t.Errorf("%s: its endpoint is left over: %+v", status, r.Drift)
		}
	}
}

// TestImportTables: nodes and pods are taken from the tables of kubectl get -o wide; what a table
// does not show (ports, labels, ranges) is not guessed.
func TestImportTables(t *testing.T) {
	service := `-- services.yaml --
apiVersion: v1
kind: Service
metadata: {namespace: web, name: a}
spec: {clusterIP: 10.96.0.50, selector: {app: a}, ports: [{port: 80}]}
`
	r, c, err := imported(t, node+wide+service)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	got := string(r.Lab)
	for _, want := range []string{"name: win1 # ", "nodes.txt:4", "os: linux", "build: 10.0.20348.2762", "name: a # ", "pods.txt:2",
		"is known from a table, which shows no ports", "tcp/6443"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, gone := range []string{"name: old", "name: what"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q in\n%s", gone, got)
		}
	}
	if all := strings.Join(r.LeftOut, "\n"); !strings.Contains(all,
		"Service web/a: which pods are behind it is not known: the table of pods at") {
		t.Errorf("left out: %s", all)
	}
	for _, d := range r.Drift {
		t.Errorf("drift: %+v", d)
	}
	if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); !strings.HasPrefix(got, "unknown ") {
		t.Error(got)
	}
	// With their labels the pods behind a Service are known, and an object counts more than a table.
	labelled := strings.NewReplacer("READINESS GATES", "READINESS GATES   LABELS", "<none>           <none>\nweb",
		"<none>           <none>            app=a\nweb").Replace(wide)
	r, _, err = imported(t, node+labelled+service+strings.Replace(objects, "20348.2582", "20348.2700", 1))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "build: 10.0.20348.2700") || strings.Contains(string(r.Lab), "which shows no ports") {
		t.Errorf("the table counts more than the objects:\n%s", r.Lab)
	}
}

// TestEndingPod: a pod that ends and has no endpoint any more is a difference that its end explains; one
// that runs has no such excuse.
func TestEndingPod(t *testing.T) {
	for ending, want := range map[string]string{"": "", `, "deletionTimestamp": "2026-11-23T22:03:31Z"`: "pod web/lost ends ("} {
		pods := strings.Replace(objects, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "b"}`,
			`{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "lost"`+ending+
				`}, "spec": {"nodeName": "win1", "containers": [{"name": "c"}]},
  "status": {"phase": "Running", "podIP": "10.244.1.99"}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web", "name": "b"}`, 1)
		r, _, err := imported(t, node+pods)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.Lab)
		}
		if len(r.Drift) != 1 || r.Drift[0].ID != importer.NoEndpoint || (r.Drift[0].Moving == "") != (want == "") ||
			!strings.HasPrefix(r.Drift[0].Moving, want) {
			t.Errorf("%q: %+v", ending, r.Drift)
		}
	}
}

// TestNamedPorts: a Service may ask for a port by its name, which containers give. Objects show the names;
// a table does not, and then the Service is left out by name.
func TestNamedPorts(t *testing.T) {
	service := `-- services.yaml --
apiVersion: v1
kind: Service
metadata: {namespace: web, name: a}
spec: {clusterIP: 10.96.0.50, selector: {app: a}, ports: [{port: 80, targetPort: http}]}
`
	named := strings.NewReplacer(`"name": "a"}`, `"name": "a", "labels": {"app": "a"}}`, `{"containerPort": 8080}`,
		`{"name": "http", "containerPort": 8080}`).Replace(objects)
	r, c, err := imported(t, node+named+service)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "http: 8080") {
		t.Errorf("no name of a port in\n%s", r.Lab)
	}
	for _, n := range c.NotModelled {
		t.Errorf("%s: %s", n.What, n.Why)
	}
	nodes, _, _ := strings.Cut(wide, "-- pods.txt --")
	r, _, err = imported(t, node+nodes+`-- pods.txt --
NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE   IP           NODE   NOMINATED NODE   READINESS GATES   LABELS
web         a      1/1     Running   0          9d    10.244.1.7   win1   <none>           <none>            app=a
`+service)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if all := strings.Join(r.LeftOut, "\n"); !strings.Contains(all, "Service web/a: its targetPort is http, and the table of pods at") {
		t.Errorf("left out: %s", all)
	}
}

// TestImportThere: of a bundle that is too little for a lab it is said what is there, and what each
// file lacks.
func TestImportThere(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"names": {"-- hnsdiag.txt --\nNetworks:\nName             ID\nnat              FD741616-F4D9-40F2-8090-D280C3B15D69\n",
			"shown without their fields; collect it again with: hnsdiag list all -d"},
		"conf": {
			"-- 10-flannel.conflist --\n{\"cniVersion\": \"0.3.0\", \"name\": \"cbr0\", \"plugins\": [{\"type\": \"flannel\", \"delegate\": {\"type\": \"win-bridge\"}}]}\n", "10-flannel.conflist is the configuration of flannel, which delegates to win-bridge; what it made is not there"},
		"objects": {
			"-- pods.txt --\nNAMESPACE   NAME   READY   STATUS\nweb         a      1/1     Running\n-- s.yaml --\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "s.yaml has objects of Kubernetes, and no node among them; nothing that a lab has was found in "},
		"endpoint": {"-- e.json --\n" + strings.ReplaceAll(node[strings.Index(node, "[{\"ID\":\"2222"):strings.Index(node, "-- win1/routes")],
			"10.244.1.2", "10.244.1.1"), "e.json has endpoints of HNS and not their networks; add the output of: Get-HnsNetwork"},
	} {
		_, _, err := imported(t, c.files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestImportConfAlone: a configuration that belongs to no node with HNS says which plugin the
// cluster has; flannel of which nothing says the backend makes a lab that can be built.
func TestImportConfAlone(t *testing.T) {
	kube := strings.Replace(objects, "20348.2582", "20348.2762", 1)
	r, c,
		err := imported(t,
		"-- notes/cni.conf --\n{\"cniVersion\": \"0.3.0\", \"name\": \"cbr0\", \"type\": \"flannel\", \"delegate\": {\"type\": \"win-bridge\"}}\n"+kube)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "plugin: flannel") || !strings.Contains(string(r.Extra["net-conf.json"]), "host-gw") {
		t.Errorf("%s\n%s", r.Extra["net-conf.json"], r.Lab)
	}
	if got := verdict(t, c, "pod/web/b", "pod/web/a:8080"); !strings.HasPrefix(got, "varies ") {
		t.Error(got)
	}
	unknown := "-- win1/cni.conf --\n{\"cniVersion\": \"0.3.0\", \"name\": \"cbr0\", \"type\": \"flannel\"}\n"
	r, _, err = imported(t, unknown+node+kube)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "plugin: win-bridge # concluded: network cbr0 of win1 is of type L2Bridge") {
		t.Errorf("%s", r.Lab)
	}
	r, _, err = imported(t, unknown+kube)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if !strings.Contains(string(r.Lab), "flannel is there, and nothing says its backend: assuming win-bridge") {
		t.Errorf("%s", r.Lab)
	}
}

// TestImportPackedFolder: the nodes of a folder that was packed with its name are found as in the folder.
func TestImportPackedFolder(t *testing.T) {
	second := strings.NewReplacer("-- win1/", "-- win2/", "192.168.1.11", "192.168.1.12", "10.244.1.", "10.244.2.", "1111-1111-1111",
		"1111-1111-2222", "2222-2222-2222", "2222-2222-9999", "3333-3333-3333", "3333-3333-9999").Replace(node)
	packed := strings.ReplaceAll(node+second+objects, "-- ", "-- prod/")
	both := strings.Replace(packed, `"items": [`, `"items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2"}, "spec": {"podCIDR": "10.244.2.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.12"}], "nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.20348.2762"}}},`, 1)
	r, _, err := imported(t, both)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range r.Nodes {
		names = append(names, n.Name+" "+n.Folder+" "+n.Why)
	}
	if got := strings.Join(names, "; "); got != "win1 prod/win1 ; win2 prod/win2 " {
		t.Errorf("%q", got)
	}
}
