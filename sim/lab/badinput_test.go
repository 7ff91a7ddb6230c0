package lab

import (
	"path/filepath"
	"strings"
	"testing"
)

const head = "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n"

// A lab that is right, to which each case adds one mistake.
const right = head + `  network: {plugin: ovn-kubernetes}
  nodes:
    - {name: linux1, os: linux}
    - {name: win1}
  pods:
    - {name: client, node: win1}
  hosts:
    - {name: lan, address: 192.168.1.50}
`

func TestARightLabIsRight(t *testing.T) {
	f, err := Parse("x.yaml", []byte(right))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), f, Options{}); err != nil {
		t.Fatal(err)
	}
}

// said fails unless the error names each text; the folder is cut away.
func said(t *testing.T, file string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; wanted %q", want)
	}
	text := strings.ReplaceAll(err.Error(), filepath.Dir(file)+string(filepath.Separator), "")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("\ngot  %s\nwant %s", text, w)
		}
	}
}

func TestManifestsAndConfigurations(t *testing.T) {
	const two = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: win1}\n---\n"
	for _, c := range []struct {
		name, manifest string
		want           string
	}{
		{"unknown field", two + "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  port: 80\n", `m.yaml:6:1: service s: `},
		{"wrong type", two + "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  ports: 80\n", "m.yaml:6:1: service s: "},
		{"not YAML", two + "kind: [Pod\n", "m.yaml:6:1: not a Kubernetes object"},
		{"selector", two +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}\n", "m.yaml:6:1: deployment d: the selector does not match the template's labels"},
		{"node", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: win7}\n", `pod default/a: there is no node "win7"`},
		{"system", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeSelector: {kubernetes.io/os: beos}}\n",
			"pod default/a: no node runs beos"},
		{"bytes", "\x00\x01\x02", "m.yaml:1:1: "},
		{"replicas", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2000000000}\n",
			"m.yaml:1:1: deployment d: 2000000000 replicas; write 0 to 1000"},
		{"negative replicas", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: -1}\n",
			"m.yaml:1:1: deployment d: -1 replicas"},
		{"port", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 70000}]}\n", "m.yaml:1:1: service s: port 70000"},
	} {
		t.Run("manifest: "+c.name, func(t *testing.T) {
			file := write(t, "lab.yaml", right+"  manifests: [m.yaml]\n", "m.yaml", c.manifest)
			f, err := Load(file)
			if err == nil {
				_, err = Build(t.Context(), f, Options{})
			}
			said(t, file, err, c.want)
		})
	}
	const flannel = head + "  network: {plugin: flannel, conf: c.conf, netConf: n.json}\n  nodes: [{name: win1}]\n"
	const conf = `{"name": "cbr0", "type": "flannel", "delegate": {"type": "win-bridge"}}`
	const netConf = `{"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw"}}`
	for _, c := range []struct{ name, conf, netConf, want string }{
		{"not JSON", "{\n  \"name\": \"cbr0\",\n}", netConf, "c.conf:2:17: not JSON: a comma before }"},
		{"wrong type", "{\"name\": 3, \"type\": \"flannel\"}", netConf, "c.conf:1:10: name is"},
		{"empty", "", netConf, "c.conf:1:1: "},
		{"bytes", "\x00\x01", netConf, "c.conf:1:1: "},
		{"net-conf", conf, `{"Network": "here", "Backend": {"Type": "host-gw"}}`, "n.json:1:13: "},
		{"no net-conf", conf, "", "n.json:1:1: "},
	} {
		t.Run("conf: "+c.name, func(t *testing.T) {
			file := write(t, "lab.yaml", flannel, "c.conf", c.conf, "n.json", c.netConf)
			f, err := Load(file)
			if err == nil {
				_, err = Build(t.Context(), f, Options{})
			}
			said(t, file, err, c.want)
		})
	}
	// A plugin without its configuration.
	f, err := Parse("x.yaml", []byte(head+"  nodes: [{name: win1}]\n"))
	if err == nil {
		_, err = Build(t.Context(), f, Options{})
	}
	said(t, "x/y", err, "plugin flannel needs its configuration")
}

// A file that is not a dump is an error with its place too.
func TestDumps(t *testing.T) {
	for _, c := range []struct{ name, dump, want string }{
		{"not JSON", "{", "d.json"},
		{"bytes", "\x00", "d.json"},
		{"a number", "3", "d.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf, err := filepath.Abs("../../fixtures/cni/flannel-host-gw.conf")
			if err != nil {
				t.Fatal(err)
			}
			net := strings.Replace(conf, "flannel-host-gw.conf", "net-conf-host-gw.json", 1)
			file := write(t, "lab.yaml", head+"  network: {plugin: flannel, conf: "+conf+", netConf: "+net+
				"}\n  nodes: [{name: win1, hnsDump: [d.json]}]\n", "d.json", c.dump)
			f, err := Load(file)
			if err == nil {
				_, err = Build(t.Context(), f, Options{})
			}
			said(t, file, err, c.want)
		})
	}
}
