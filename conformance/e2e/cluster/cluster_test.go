package cluster

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func up(t *testing.T) *Cluster {
	t.Helper()
	p := need(t)
	f, err := lab.Load("testdata/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Up(t.Context(), Options{Lab: f, Programs: p, Runtime: stubRuntime, Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the files of the cluster are left: %v", err)
		}
	})
	return c
}

// TestUp: the nodes are what the lab says, as the real kubelets report them, and the API
// server reaches these at their lab addresses.
func TestUp(t *testing.T) {
	c := up(t)
	for name, want := range map[string]struct{ address, ranges, image, kernel, build string }{
		"linux1": {"192.168.1.10", "10.244.0.0/24", "", "", ""},
		"win1":   {"192.168.1.11", "10.244.1.0/24", "Windows Server 2022 Datacenter", "10.0.20348.2762", "10.0.20348"},
	} {
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		address := ""
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				address = a.Address
			}
		}
		i := n.Status.NodeInfo
		if address != want.address || strings.Join(n.Spec.PodCIDRs, ",") != want.ranges || i.KubeletVersion != "v1.37.0" {
			t.Errorf("%s: address %q, pod ranges %v, kubelet %s", name, address, n.Spec.PodCIDRs, i.KubeletVersion)
		}
		if want.build != "" && (i.OSImage != want.image || i.KernelVersion != want.kernel || n.Labels[corev1.LabelWindowsBuild] != want.build) {
			t.Errorf("%s: image %q, kernel %s, label %s", name, i.OSImage, i.KernelVersion, n.Labels[corev1.LabelWindowsBuild])
		}
		for path, says := range map[string]string{"healthz": "ok", "configz": `"kubeletconfig"`, "metrics": "kubelet_node_name"} {
			b, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", name, "proxy", path).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(b), says) {
				t.Errorf("%s of %s: error %v, no %q", path, name, err, says)
			}
		}
	}
	for _, p := range c.Programs() {
		if p.Ended != "" {
			t.Errorf("%+v", p)
		}
	}
}
