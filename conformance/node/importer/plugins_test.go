//go:build linux

package importer_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// pluginLabs are labs of each plugin that winlab models.
var pluginLabs = map[cni.Name][]string{
	cni.PluginFlannel:    {"labs/l2bridge-flannel-host-gw", "labs/overlay-flannel-vxlan"},
	cni.PluginWinBridge:  {"labs/l2bridge-win-bridge-udr"},
	cni.PluginWinOverlay: {"labs/overlay-win-overlay"},
	cni.PluginAzure:      {"labs/l2bridge-azure-cni"},
	cni.PluginSDNBridge:  {"labs/l2bridge-sdnbridge"},
	cni.PluginNAT:        {"labs/nat-winnat"},
	cni.PluginVPCBridge:  {"plugins/l2bridge-vpc-bridge"},
	cni.PluginCalico:     {"plugins/overlay-calico-vxlan", "plugins/l2bridge-calico-bgp"},
	cni.PluginAntrea:     {"plugins/transparent-antrea"},
}

// inObjects are what objects of Kubernetes say of a plugin without a file of any node, as they are in a
// real cluster: the rest of a bundle that has nothing but them. A plugin without any is in notInObjects.
var inObjects = map[cni.Name]func(items []map[string]any) []map[string]any{
	cni.PluginFlannel: func(items []map[string]any) []map[string]any {
		return annotated(items, "Node", func(map[string]any) map[string]any {
			return map[string]any{"flannel.alpha.coreos.com/backend-type": "host-gw"}
		})
	},
	cni.PluginVPCBridge: func(items []map[string]any) []map[string]any {
		items = annotated(items, "Pod", func(o map[string]any) map[string]any {
			return map[string]any{"vpc.amazonaws.com/PrivateIPv4Address": o["status"].(map[string]any)["podIP"].(string) + "/24"}
		})
		return append(items, configMap("kube-system", "amazon-vpc-cni",
			map[string]any{"enable-windows-ipam": "true", "enable-windows-prefix-delegation": "false"}))
	},
	cni.PluginCalico: func(items []map[string]any) []map[string]any {
		return append(items, configMap("calico-system", "calico-windows-config",
			map[string]any{"CALICO_NETWORKING_BACKEND": "vxlan", "K8S_SERVICE_CIDR": "10.96.0.0/12", "DNS_NAME_SERVERS": "10.96.0.10"}))
	},
	cni.PluginAntrea: func(items []map[string]any) []map[string]any { return items }, // antrea-windows-config
}

// notInObjects says of plugins why objects of Kubernetes do not show them.
var notInObjects = map[cni.Name]string{
	cni.PluginWinBridge:  "a file on each node and nothing else",
	cni.PluginWinOverlay: "a file on each node and nothing else",
	cni.PluginSDNBridge:  "a file on each node and nothing else",
	cni.PluginNAT:        "a file on each node and nothing else",
	cni.PluginAzure:      "AKS keeps its settings in the VM's own files",
}

func configMap(namespace, name string, data map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name},
		"data": data}
}

func annotated(items []map[string]any, kind string, of func(map[string]any) map[string]any) []map[string]any {
	for _, o := range items {
		if o["kind"] == kind {
			o["metadata"].(map[string]any)["annotations"] = of(o)
		}
	}
	return items
}

// change rewrites the objects of a folder.
func change(t *testing.T, dir string, how func([]map[string]any) []map[string]any) {
	t.Helper()
	at := filepath.Join(dir, "cluster.json")
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	list.Items = how(list.Items)
	if data, err = json.MarshalIndent(list, "", "    "); err == nil {
		err = os.WriteFile(at, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pluginBundle is what the nodes of a lab print, with the plugin's configuration, and the objects of
// Kubernetes.
func pluginBundle(t *testing.T, at string) (orig *lab.Cluster, f *lab.File, dir string) {
	t.Helper()
	f, err := lab.Load("../../../fixtures/" + at + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if orig, err = lab.Build(t.Context(), f, lab.Options{}); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	objectsOf(t, orig, f, dir)
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
		conf, err := os.ReadFile(f.PathOf(f.Lab.Spec.Network.Conf))
		if err != nil {
			t.Fatal(err)
		}
		// As scripts write it.
		files["10-cni.conf"] = []byte(strings.ReplaceAll(string(conf), cni.ManagementIPToken, m.Node.Address.String()))
		put(t, filepath.Join(dir, m.Node.Name), files)
	}
	change(t, dir, func(items []map[string]any) []map[string]any {
		for _, o := range items {
			if o["kind"] == "Node" {
				name := o["metadata"].(map[string]any)["name"].(string)
				if n := orig.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: name}); n.Node.Plan.Windows() {
					o["status"].(map[string]any)["nodeInfo"].(map[string]any)["kernelVersion"] = n.Node.Plan.Build
				}
			}
		}
		return items
	})
	return orig, f, dir
}

var anyAssumed = regexp.MustCompile(`(?m)^ *assumed: .*\n`)

// importAs imports a folder, and builds its lab, with nodes that were not observed taken to be as they
// are made where asMade is set.
func importAs(t *testing.T, dir string, asMade bool) (*importer.Result, *lab.Cluster) {
	t.Helper()
	b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := importer.Import(t.Context(), b, "imported", b.File, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	put(t, out, r.Extra)
	text := r.Lab
	if asMade {
		text = anyAssumed.ReplaceAll(text, nil)
	}
	f, err := lab.Parse(filepath.Join(out, "lab.yaml"), text)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatalf("%v\n%s\n%v", err, r.Lab, r.LeftOut)
	}
	return r, c
}

// TestEveryPluginIsImported: the lab of a bundle has the plugin of the cluster that it was taken from,
// whichever of those that winlab models it is, from the files of nodes and from objects of Kubernetes
// alone; and flows have the verdicts of that cluster.
func TestEveryPluginIsImported(t *testing.T) {
	if have := slices.Sorted(maps.Keys(pluginLabs)); len(have) != len(cni.Names()) {
		t.Errorf("there are labs of %v, and plugins %v", have, cni.Names())
	}
	for _, name := range cni.Names() {
		plugin := cni.Name(name)
		if len(pluginLabs[plugin]) == 0 {
			t.Errorf("%s: no lab of it is imported; add one to pluginLabs", name)
		}
		if (inObjects[plugin] == nil) == (notInObjects[plugin] == "") {
			t.Errorf("%s: either objects of Kubernetes show it, and inObjects says how, or notInObjects says why not", name)
		}
		for _, at := range pluginLabs[plugin] {
			t.Run(filepath.Base(at), func(t *testing.T) {
				orig, f, dir := pluginBundle(t, at)
				if string(plugin) != f.Lab.Spec.Network.Plugin {
					t.Fatalf("the lab is of %s", f.Lab.Spec.Network.Plugin)
				}
				r, c := importAs(t, dir, true)
				if c.Plan.Network.Plugin != name {
					t.Fatalf("it is imported as %s:\n%s\n%s", c.Plan.Network.Plugin, r.Lab, strings.Join(r.LeftOut, "\n"))
				}
				if len(r.Drift) > 0 {
					t.Errorf("a cluster in which nothing is wrong differs: %+v", r.Drift)
				}
				if same, bad := compare(t, orig, c); bad > 0 || same < 40 {
					t.Errorf("%d flows differ, %d are the same\n%s", bad, same, r.Lab)
				}
			})
		}
		if how := inObjects[plugin]; how != nil {
			t.Run(name+" in objects", func(t *testing.T) {
				_, _, dir := pluginBundle(t, pluginLabs[plugin][0])
				for _, n := range []string{"win1", "win2"} {
					if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
						t.Fatal(err)
					}
				}
				change(t, dir, func(items []map[string]any) []map[string]any {
					items = slices.DeleteFunc(items, func(o map[string]any) bool {
						return o["kind"] == "ConfigMap" && o["metadata"].(map[string]any)["name"] == "kube-flannel-cfg"
					})
					return how(items)
				})
				r, c := importAs(t, dir, false)
				if c.Plan.Network.Plugin != name {
					t.Fatalf("it is imported as %s:\n%s\n%s", c.Plan.Network.Plugin, r.Lab, strings.Join(r.LeftOut, "\n"))
				}
				for _, q := range []lab.Request{{From: "pod/client", To: "pod/peer:80"}, {From: "pod/client", To: "pod/linux-client:80"},
					{From: "pod/linux-client", To: "pod/client:80"}} {
					tr, err := c.Trace(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					// The nodes were not observed: delivered if they are as their plugin makes them.
					if tr.Verdict != trace.Varies || tr.Reason != trace.MissingFact || tr.Paths[0].Verdict != trace.Delivered {
						t.Errorf("%s > %s: %s %s (%s)\n%s", q.From, q.To, tr.Verdict, tr.Reason, tr.Summary, r.Lab)
					}
				}
			})
		}
	}
}
