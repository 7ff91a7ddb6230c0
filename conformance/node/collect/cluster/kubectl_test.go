package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// apiServer answers kubectl as an API server does, with what a test needs of it.
func apiServer(t *testing.T, special map[string]http.HandlerFunc) (kubeconfig string) {
	t.Helper()
	resources := map[string][]string{
		"/api/v1": {"Node nodes false", "Namespace namespaces false", "Service services true", "Pod pods true", "ConfigMap configmaps true",
			"Event events true", "ReplicationController replicationcontrollers true"},
		"/apis/discovery.k8s.io/v1":  {"EndpointSlice endpointslices true"},
		"/apis/networking.k8s.io/v1": {"NetworkPolicy networkpolicies true"}, "/apis/node.k8s.io/v1": {"RuntimeClass runtimeclasses false"},
		"/apis/apps/v1": {"DaemonSet daemonsets true", "Deployment deployments true", "ReplicaSet replicasets true"},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if h := special[path]; h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case path == "/version":
			_, _ = io.WriteString(w, `{"major": "1", "minor": "32", "gitVersion": "v1.32.4"}`)
		case path == "/api":
			_, _ = io.WriteString(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case path == "/apis":
			var groups []string
			for p := range resources {
				if group, ok := strings.CutPrefix(p, "/apis/"); ok {
					name, version, _ := strings.Cut(group, "/")
					v := fmt.Sprintf(`{"groupVersion": %q, "version": %q}`, group, version)
					groups = append(groups, fmt.Sprintf(`{"name": %q, "versions": [%s], "preferredVersion": %s}`, name, v, v))
				}
			}
			fmt.Fprintf(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [%s]}`, strings.Join(groups, ","))
		case resources[path] != nil:
			var all []string
			for _, x := range resources[path] {
				f := strings.Fields(x)
				all = append(all, fmt.Sprintf(`{"name": %q, "kind": %q, "namespaced": %s, "verbs": ["get", "list"]}`, f[1], f[0], f[2]))
			}
			fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [%s]}`,
				strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), strings.Join(all, ","))
		default:
			group, rest := "", ""
			kind := ""
			for p, list := range resources {
				if below, ok := strings.CutPrefix(path, p+"/"); ok {
					group, rest = strings.TrimPrefix(strings.TrimPrefix(p, "/apis/"), "/api/"), below
					for _, x := range list {
						if f := strings.Fields(x); rest == f[1] || strings.HasSuffix(rest, "/"+f[1]) {
							kind = f[0]
						}
					}
				}
			}
			if kind == "" {
				status(w, http.StatusNotFound, "NotFound", path+" not found")
				return
			}
			fmt.Fprintf(w,
				`{"kind": "%sList", "apiVersion": %q, "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a", "labels": {"b": "c"}}}]}`, kind, group)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	at := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", s.URL)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": %q, "reason": %q, "code": %d}`, message, reason,
		code)
}

// TestKubectl takes a bundle with the real kubectl from a server that forbids, fails and hangs.
func TestKubectl(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not here; make cluster-binaries makes bin/kubectl")
	}
	t.Setenv("HOME", t.TempDir()) // its cache
	end := make(chan struct{})
	defer close(end)
	kubeconfig := apiServer(t, map[string]http.HandlerFunc{
		"/apis/networking.k8s.io/v1/networkpolicies": func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusForbidden, "Forbidden", "networkpolicies is forbidden")
		},
		"/api/v1/services": func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusInternalServerError, "InternalError", "etcd is away")
		},
		"/api/v1/events": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-end:
			case <-r.Context().Done():
			}
		},
		"/api/v1/namespaces/kube-system/configmaps/coredns": func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusForbidden, "Forbidden", "coredns is forbidden")
		},
		"/api/v1/namespaces/kube-system/configmaps/kube-proxy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_,
				_ = io.WriteString(w,
				`{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "kube-proxy"}, "data": {"config.conf": "token: abcdef\n"}}`)
		},
	})
	at := filepath.Join(t.TempDir(), "b")
	w, err := bundle.Create(at, "test", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bundle.Step{}
	o := Options{Client: Client{Kubeconfig: kubeconfig, Context: "x"}, Timeout: 20 * time.Second,
		Progress: func(s bundle.Step) { said[s.Name] = s }}
	if err := errors.Join(Take(t.Context(), w, o), w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"networkpolicies": "(Forbidden)", "services": "etcd is away", "events": "no answer after 20s", "nodes": "", "pods": "",
		"endpointslices": "", "runtimeclasses": "", "configmaps": "coredns is forbidden", "version": "",
	} {
		if s, ok := said[name]; !ok || want == "" && (s.Error != "" || len(s.Files) != 1) || !strings.Contains(s.Error, want) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	data, err := os.ReadFile(filepath.Join(at, "cluster/nodes.json"))
	if err != nil || !strings.Contains(string(data), `"kind": "Node"`) {
		t.Errorf("%v\n%s", err, data)
	}
	// One of the ConfigMaps may not be read; the other was.
	if data, err := os.ReadFile(filepath.Join(at, "cluster/configmaps/kube-system.json")); err != nil ||
		strings.Contains(string(data), "abcdef") || !strings.Contains(string(data), "config.conf") {
		t.Errorf("%v\n%s", err, data)
	}
}

// TestClusterInfoDump: the form of kubectl cluster-info dump is as the importer takes it: typed
// lists, whose items do not say what they are.
func TestClusterInfoDump(t *testing.T) {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not here; make cluster-binaries makes bin/kubectl")
	}
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), path, "--kubeconfig", apiServer(t, nil), "cluster-info", "dump", "--namespaces", "a",
		"--output-directory", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]string{"nodes.json": `"kind": "NodeList"`, "a/services.json": `"kind": "ServiceList"`,
		"a/pods.json": `"kind": "PodList"`} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		text := string(data)
		if kind, items := strings.Index(text, want), strings.Index(text, `"items"`); err != nil || kind < 0 || items < kind ||
			strings.Count(text, `"kind"`) != 1 {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
