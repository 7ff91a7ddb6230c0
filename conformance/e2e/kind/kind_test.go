package kind

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// TestConfig: what kind gets, as it would be written in a file, with kind's own defaults.
func TestConfig(t *testing.T) {
	const head = "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\nname: e2e-1\nnetworking:\n  podSubnet: 10.246.0.0/16\n  serviceSubnet: 10.98.0.0/16\nnodes:\n"
	for _, c := range []struct{ kubernetes, want, err string }{
		{"", head + "- role: control-plane\n- role: worker\n", ""},
		{"1.33.13", head + "- image: kindest/node:v1.33.13\n  role: control-plane\n- image: kindest/node:v1.33.13\n  role: worker\n", ""},
		{"v1.37.0", head + "- image: kindest/node:v1.37.0\n  role: control-plane\n- image: kindest/node:v1.37.0\n  role: worker\n", ""},
		{"1.37", "", "write it as 1.37.0"},
		{"latest", "", "write it as 1.37.0"},
	} {
		got, err := Config(Options{Name: "e2e-1", Kubernetes: c.kubernetes})
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.kubernetes, err, c.err)
			}
			continue
		}
		text, err := yaml.Marshal(got)
		if err != nil || string(text) != c.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", c.kubernetes, err, text, c.want)
		}
		v1alpha4.SetDefaultsCluster(got)
		if got.Networking.IPFamily != v1alpha4.IPv4Family || got.Networking.KubeProxyMode == "" {
			t.Errorf("%q: %+v", c.kubernetes, got.Networking)
		}
		for _, n := range got.Nodes {
			if _, tag, _ := strings.Cut(n.Image, ":"); tag == "" || tag == "latest" {
				t.Errorf("%q: the image %q has no version", c.kubernetes, n.Image)
			}
		}
	}
}

// TestSubnets: the cluster's networks differ from those of the labs.
func TestSubnets(t *testing.T) {
	for _, of := range []string{podSubnet, serviceSubnet} {
		p := netip.MustParsePrefix(of)
		for _, lab := range []string{"10.244.0.0/16", "10.96.0.0/16", "192.168.1.0/24", "203.0.113.0/24", "198.51.100.0/24"} {
			if p.Overlaps(netip.MustParsePrefix(lab)) {
				t.Errorf("%s overlaps %s", of, lab)
			}
		}
	}
}

// TestUp makes a cluster where that can be done.
func TestUp(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster of kind needs its images from a registry")
	}
	c, err := Up(t.Context(), Options{Name: "winlab-kind-test", Log: t.Output()})
	if errors.Is(err, ErrNoRuntime) {
		t.Skip("no Docker, podman or nerdctl answers on this machine")
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil || len(config.Clusters) != 1 {
		t.Errorf("%v %v", config, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if names, err := c.provider.List(); err != nil || len(names) > 0 && strings.Contains(strings.Join(names, " "), "winlab-kind-test") {
		t.Errorf("left: %v %v", names, err)
	}
}
