//go:build linux

package importer_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/internal/utf"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// notState are files that the scripts leave beside what a node's network is made of, with the
// names and the kinds of content that they have (microsoft/SDN Kubernetes/windows/debug/
// collectlogs.ps1, Azure/AgentBaker staging/cse/windows/debug/collect-windows-logs.ps1).
func notState(stale string) map[string]string {
	return map[string]string{
		"nvspinfo.txt": "Port Name : a\n", "scqueryex.txt": "SERVICE_NAME: hns\r\n        TYPE               : 30  WIN32\r\n",
		"winver.txt":         "Microsoft Windows NT 10.0.17763.0\r\n",
		"tcpconnections.txt": "MIB-II TCP Connection Entry\n", "winevt/System.evtx": "ElfFile\x00\x00\x00\x01",
		"logs/NetSetup/setupact.log":                "2026-01-01 00:00:00, Info\n",
		"20260101-101010_services.csv":              "#TYPE Selected\n\"TimeCreated\",\"Id\"\n",
		"20260101-101010-containerd-containers.txt": "CONTAINER    IMAGE    RUNTIME\n",
		"20260101-101010-cri-containerd-pods.txt":   "POD ID              CREATED             STATE\n", "shimdiag.txt": "k8s.io-abc\n",
		"disk-usage.txt":                  "Size(GB) Free Space(GB)\n",
		"kubeclusterconfig.json":          `{"Cri":{"Name":"containerd"},"Cni":{"Name":"azure"},"Kubernetes":{"Network":{"ClusterCidr":"10.244.0.0/16"}}}`,
		"WER-20260101-101010.zip":         "PK\x03\x04nothing",
		"collect-windows-logs-output.log": "Transcript started\n",
		// An endpoint that was there when the log was written, and has gone.
		"kubeproxy.log": "I0101 10:00:00.000001    1 proxier.go:1] start\nI0101 10:00:00.000002    1 hns.go:1] \"Hns Endpoint resource\" endpoint={\"ID\":\"99999999-9999-9999-9999-999999999999\",\"Name\":\"gone\",\"VirtualNetwork\":\"" + stale + "\",\"IPAddress\":\"10.244.1.99\"}\n",
	}
}

// TestForeign makes labs of what others' scripts leave: collectlogs.ps1 on each node, the .zip of
// AKS, and kubectl cluster-info dump. Flows have the verdicts of the cluster that they were taken
// from, and what was not read is named.
func TestForeign(t *testing.T) {
	for _, c := range []struct{ design, form string }{
		{"l2bridge-flannel-host-gw", "folders"}, {"l2bridge-flannel-host-gw", "one zip"}, {"l2bridge-flannel-host-gw", "zips"},
		{"overlay-flannel-vxlan", "zips"}, {"l2bridge-azure-cni", "one zip"},
	} {
		t.Run(c.design+" "+c.form, func(t *testing.T) { foreign(t, c.design, c.form) })
	}
}

func foreign(t *testing.T, design, form string) {
	f, err := lab.Load(labs + design + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	orig, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	objectsOf(t, orig, f, dir)
	infoDump(t, dir, orig)
	for _, m := range orig.Machines(cluster.NodeKind) {
		if !m.Node.Plan.Windows() {
			continue
		}
		s, err := m.Node.State()
		if err != nil {
			t.Fatal(err)
		}
		files, err := dump.Write("collectlogs", s)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range notState("88888888-8888-8888-8888-888888888888") {
			files[name] = []byte(text)
		}
		// As > of Windows PowerShell writes it.
		files["winver.txt"] = utf.Encode16("Microsoft Windows NT 10.0.17763.0\r\n")
		conf, err := os.ReadFile(f.PathOf(f.Lab.Spec.Network.Conf))
		if err != nil {
			t.Fatal(err)
		}
		files["10-cni.conflist"] = conf
		name := "AKS" + strings.ToUpper(m.Node.Name) + "-20260101-101010_logs"
		if form != "zips" {
			put(t, filepath.Join(dir, name), files)
			continue
		}
		at := t.TempDir()
		put(t, at, files)
		data, err := os.ReadFile(zipOf(t, at))
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string][]byte{name + ".zip": data})
	}
	at := dir
	if form == "one zip" {
		at = zipOf(t, dir)
	}
	b, err := bundle.Open(t.Context(), at, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	out := t.TempDir()
	r, err := importer.Import(t.Context(), b, f.Lab.Metadata.Name, b.File, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	left := strings.Join(r.LeftOut, "\n")
	for name := range notState("") {
		if !strings.Contains(left, filepath.Base(name)) {
			t.Errorf("%s is not read, and that is not reported:\n%s", name, left)
		}
	}
	if strings.Contains(string(r.Lab), "kubeproxy.log") {
		t.Error("a log counts as the state of a node")
	}
	put(t, out, r.Extra)
	again, err := lab.Parse(filepath.Join(out, "lab.yaml"), assumedLine.ReplaceAll(r.Lab, nil))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	c, err := lab.Build(t.Context(), again, lab.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	if same, bad := compare(t, orig, c); bad > 0 || same < 40 {
		t.Errorf("%d flows differ, %d are the same\n%s\n%s", bad, same, r.Lab, left)
	}
}

// infoDump writes the objects as kubectl cluster-info dump --output-directory does: typed lists
// whose items do not say what they are, a file for each kind, in a folder for each namespace
// (kubernetes/kubectl pkg/cmd/clusterinfo/clusterinfo_dump.go). Slices, policies and ConfigMaps are
// not in it: the ConfigMaps stay beside it.
func infoDump(t *testing.T, dir string, c *lab.Cluster) {
	t.Helper()
	at := filepath.Join(dir, "cluster.json")
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	typed := map[string][]any{}
	var others []any
	for _, o := range list.Items {
		kind, _ := o["kind"].(string)
		file := map[string]string{"Node": "nodes.json", "Pod": "pods.json", "Service": "services.json"}[kind]
		if file == "" {
			others = append(others, o)
			continue
		}
		if m, _ := o["metadata"].(map[string]any); m["namespace"] != nil {
			file = m["namespace"].(string) + "/" + file
		}
		if status, _ := o["status"].(map[string]any); kind == "Node" {
			m, _ := o["metadata"].(map[string]any)
			if n := c.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: m["name"].(string)}); n.Node.Plan.Windows() {
				status["nodeInfo"].(map[string]any)["kernelVersion"] = n.Node.Plan.Build
			}
		}
		delete(o, "kind")
		delete(o, "apiVersion")
		typed[kind+" "+file] = append(typed[kind+" "+file], o)
	}
	write := func(name, kind string, items []any) {
		// In the order of the fields of a Go type.
		text, err := json.MarshalIndent(struct {
			Kind       string         `json:"kind"`
			APIVersion string         `json:"apiVersion"`
			Metadata   map[string]any `json:"metadata"`
			Items      []any          `json:"items"`
		}{kind, "v1", map[string]any{"resourceVersion": "1"}, items}, "", "    ")
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	for key, items := range typed {
		kind, file, _ := strings.Cut(key, " ")
		write(file, kind+"List", items)
	}
	files["default/web-0/logs.txt"] = []byte("==== START logs for container c of pod default/web-0 ====\n")
	put(t, filepath.Join(dir, "cluster-info"), files)
	files = map[string][]byte{}
	write("cluster.json", "List", others)
	put(t, dir, files)
}

func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// zipOf puts a folder into a .zip with backslashes, as Compress-Archive of Windows PowerShell 5 does.
func zipOf(t *testing.T, dir string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "all.zip")
	f, err := os.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		w, err := z.Create(strings.ReplaceAll(rel, "/", `\`))
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err == nil {
			_, err = io.Copy(w, strings.NewReader(string(data)))
		}
		return err
	})
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}
