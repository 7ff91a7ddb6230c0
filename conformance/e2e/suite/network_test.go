package suite

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winlab-dev/winlab/reports/result"
)

// TestPlugin: network and plugin are found by what a plugin leaves in a cluster.
func TestPlugin(t *testing.T) {
	node := func(annotations map[string]string) runtime.Object {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win1", Annotations: annotations},
			Status: v1.NodeStatus{NodeInfo: v1.NodeSystemInfo{OperatingSystem: "windows"}}}
	}
	calico := func(backend string) runtime.Object {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "calico-system", Name: "calico-node-windows"},
			Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "node", Env: []v1.EnvVar{{Name: "CALICO_NETWORKING_BACKEND", Value: backend}}}}}}}}
	}
	for _, c := range []struct {
		name, plugin, network string
		has                   runtime.Object
	}{
		{"nothing", "", "", node(nil)},
		{"flannel on a node", "flannel", "overlay", node(map[string]string{flannelBackend: "vxlan"})},
		{"flannel without tunnels", "flannel", "l2bridge", node(map[string]string{flannelBackend: "host-gw"})},
		{"flannel's ConfigMap", "flannel", "overlay", &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-flannel",
			Name: "kube-flannel-cfg"}, Data: map[string]string{"net-conf.json": `{"Backend": {"Type": "vxlan"}}`}}},
		{"Calico, VXLAN", "calico", "overlay", calico("vxlan")},
		{"Calico, BGP", "calico", "l2bridge", calico("windows-bgp")},
		{"Calico, something else", "calico", "", calico("none")},
		{"Amazon", "amazon-vpc-cni", "l2bridge", &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "amazon-vpc-cni"},
			Data: map[string]string{"enable-windows-ipam": "true"}}},
		{"Amazon without Windows", "", "", &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "amazon-vpc-cni"},
			Data: map[string]string{"enable-windows-ipam": "false"}}},
	} {
		d, err := Discover(t.Context(), fake.NewClientset(c.has), "kubeconfig", Given{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Plugin != c.plugin || d.Network != c.network {
			t.Errorf("%s: plugin %q, network %q; want %q, %q", c.name, d.Plugin, d.Network, c.plugin, c.network)
		}
	}
}

// TestLeaveOut: of claims about some networks nothing is tried on an unknown network.
func TestLeaveOut(t *testing.T) {
	all := specs(t)
	on := func(network, plugin string) (*Cluster, []Spec) {
		c := &Cluster{Network: network, Plugin: plugin}
		c.Nodes = []result.ClusterNode{{Name: "win1", OS: "windows", Build: "10.0.20348.2762", Kubelet: "v1.36.0", Runtime: "containerd://1.7.0"}}
		_, apply, err := Select(all, Selection{}, c.Targets())
		if err != nil {
			t.Fatal(err)
		}
		return c, apply
	}
	has := func(specs []Spec, claim string) bool {
		return slices.ContainsFunc(specs, func(s Spec) bool { return s.Claim.ID == claim })
	}
	c, apply := on("", "")
	sure, note := c.LeaveOut(apply)
	// docs/cluster.md has these figures.
	page, err := os.ReadFile("../../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d of %d checks when nothing is known", len(apply)-len(sure),
		len(apply)); !strings.Contains(strings.ReplaceAll(string(page), "\n", " "), want) {
		t.Errorf("docs/cluster.md lacks %q", want)
	}
	// One is about overlay networks, the other about all.
	if !has(apply, overlayOnly) || has(sure, overlayOnly) || !strings.Contains(note, overlayOnly) || !slices.Contains(c.Notes, note) {
		t.Errorf("%s is not left out: %s", overlayOnly, note)
	}
	if !has(sure, "flow-pod-pod-same-node") || !has(sure, "controller-job") || strings.Contains(note, "flow-pod-pod-same-node") {
		t.Errorf("what is about all networks is left out: %s", note)
	}
	for _, known := range [][2]string{{"overlay", "flannel"}, {"l2bridge", "azure-vnet"}} {
		c, apply := on(known[0], known[1])
		if sure, note := c.LeaveOut(apply); len(sure) != len(apply) || note != "" {
			t.Errorf("%v: %s", known, note)
		}
		if has(apply, overlayOnly) != (known[0] == "overlay") {
			t.Errorf("%v: %s applies: %v", known, overlayOnly, has(apply, overlayOnly))
		}
	}
}

const overlayOnly = "flannel-vxlan-port"
