package components

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
)

// programs makes a folder with pinned programs, without anything to build in them.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(dir, "fixtures", "windows-binaries", n), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "fixtures", "windows-binaries", n, "binaries.yaml"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A lab's version without a patch means the newest patch that is pinned, one with a patch
// that patch.
func TestPinnedVersions(t *testing.T) {
	dir := programs(t, "kube-proxy-1.9.9", "kube-proxy-1.20.4", "kube-proxy-1.20.15", "kube-proxy-1.36.3", "cni-plugins-0.8.6",
		"cni-plugins-1.9.1", "cni-plugins-1.10.0")
	p, err := FindPrograms(filepath.Join(dir, "fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Versions("kube-proxy")); got != "[1.9.9 1.20.4 1.20.15 1.36.3]" {
		t.Error(got)
	}
	for version, want := range map[string]string{"1.20": "1.20.15", "1.20.4": "1.20.4", "1.20.5": "", "1.36": "1.36.3", "1.36.2": "",
		"1.21": "", "1.3": ""} {
		v, err := kube.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.kubeProxy(v); got != want || p.HasKubeProxy(v) != (want != "") {
			t.Errorf("kube-proxy %s is %q", version, got)
		}
	}
	for version, want := range map[string]string{"": "1.10.0", "0.8.6": "0.8.6", "0.8.5": ""} {
		if got := p.plugins(version); got != want {
			t.Errorf("plugins %q are %q", version, got)
		}
	}
	v, _ := kube.ParseVersion("1.18")
	if _, err := p.KubeProxy(t.Context(), v); !errors.Is(err, errNotPinned) ||
		!strings.Contains(err.Error(), "1.9.9, 1.20.4, 1.20.15, 1.36.3") {
		t.Errorf("no kube-proxy 1.18: %v", err)
	}
	if _, err := p.Plugins(t.Context(), "0.8.5"); !errors.Is(err, errNotPinned) || !strings.Contains(err.Error(), "0.8.6, 1.9.1, 1.10.0") {
		t.Errorf("no plugins 0.8.5: %v", err)
	}
}

// Where there is no folder with programs, the error says what would name one.
func TestNoPrograms(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	if _, err := FindPrograms(here); err == nil || !strings.Contains(err.Error(), "WINLAB_BINARIES") {
		t.Errorf("error %v", err)
	}
	t.Setenv("WINLAB_BINARIES", filepath.Join(here, "none"))
	if _, err := FindPrograms(here); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v", err)
	}
	t.Setenv("WINLAB_BINARIES", here)
	if _, err := FindPrograms(here); err == nil || !strings.Contains(err.Error(), "no program is pinned") {
		t.Errorf("error %v", err)
	}
	t.Setenv("WINLAB_BINARIES", filepath.Join(programs(t, "kube-proxy-1.36.3"), "fixtures", "windows-binaries"))
	if p, err := FindPrograms(here); err != nil || len(p.Versions("kube-proxy")) != 1 {
		t.Errorf("%v, %v", p, err)
	}
}

// Plugins answer in the form of the configuration's version.
func TestResultOfADD(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"0.2.0": {`{"cniVersion":"0.2.0","ip4":{"ip":"10.244.1.3/24","gateway":"10.244.1.2"},"dns":{}}`, "[10.244.1.3/24] 10.244.1.2"},
		"1.0.0": {`{"cniVersion":"1.0.0","ips":[{"address":"10.244.1.3/24","gateway":"10.244.1.2"}]}`, "[10.244.1.3/24] 10.244.1.2"},
		"two families": {`{"ips":[{"address":"10.244.1.3/24","gateway":"10.244.1.2"},{"address":"fd00::3/64","gateway":"fd00::2"}]}`,
			"[10.244.1.3/24 fd00::3/64] 10.244.1.2"},
	} {
		var a Attached
		if err := a.read([]byte(c.text)); err != nil || fmt.Sprint(a.Addresses, " ", a.Gateway) != c.want {
			t.Errorf("%s: %v %v, %v", name, a.Addresses, a.Gateway, err)
		}
	}
	for _, text := range []string{"", "{", `{"ips":[]}`, `{"ips":[{"address":"x"}]}`} {
		var a Attached
		if err := a.read([]byte(text)); err == nil {
			t.Errorf("%q is not an error: %+v", text, a)
		}
	}
}

// What a runtime adds to the configuration follows from its capabilities.
func TestRuntimeConfig(t *testing.T) {
	n := &Node{dir: "/node"}
	pod := &kube.Pod{Namespace: "shop", Name: "web", HostPorts: []kube.HostPort{{Proto: 6, HostPort: 8080, Container: 80}}}
	conf := map[string]any{"type": "win-bridge", "ipam": map[string]any{"type": "host-local"}}
	dns := DNS{Servers: []string{"10.96.0.10"}, Searches: []string{"shop.svc.cluster.local"}}
	for _, c := range []struct {
		capabilities map[string]bool
		want, not    string
	}{
		{map[string]bool{"portMappings": true}, `"portMappings":[{"containerPort":80,"hostIP":"","hostPort":8080,"protocol":"tcp"}]`, `"dns"`},
		{map[string]bool{"dns": true}, `"dns":{"options":null,"searches":["shop.svc.cluster.local"],"servers":["10.96.0.10"]}`, "portMappings"},
		{nil, `"dataDir":"Z:\\node\\networks"`, "runtimeConfig"},
	} {
		text, err := n.runtimeConfig(NetConf{Config: conf, Capabilities: c.capabilities}, pod, dns)
		if err != nil || !strings.Contains(string(text), c.want) || strings.Contains(string(text), c.not) {
			t.Errorf("%v: %s, %v", c.capabilities, text, err)
		}
	}
	if _, changed := conf["ipam"].(map[string]any)["dataDir"]; changed || conf["runtimeConfig"] != nil {
		t.Errorf("the node's configuration was changed: %v", conf)
	}
	pod.Address = netip.MustParseAddr("10.244.1.9")
	if got := args(pod); got != "IgnoreUnknown=1;IP=10.244.1.9;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web" {
		t.Error(got)
	}
}
