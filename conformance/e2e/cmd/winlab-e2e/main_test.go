package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/e2e/internal/testapi"
	"github.com/winlab-dev/winlab/reports/result"
)

// TestMain runs the program itself when a test asks for it: Ginkgo runs one suite in a
// process.
func TestMain(m *testing.M) {
	if os.Getenv("WINLAB_E2E_PROGRAM") == "1" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, os.Args[1:])
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// program runs winlab-e2e and returns its exit code and output.
func program(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "WINLAB_E2E_PROGRAM=1", "KUBECONFIG=", "HOME="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &b, &b
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), b.String()
}

func expect(t *testing.T, wantCode int, wantOut []string, args ...string) string {
	t.Helper()
	code, out := program(t, args...)
	if code != wantCode {
		t.Errorf("winlab-e2e %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, wantCode, out)
	}
	for _, want := range wantOut {
		if !strings.Contains(out, want) {
			t.Errorf("winlab-e2e %s: no %q in:\n%s", strings.Join(args, " "), want, out)
		}
	}
	return out
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		args []string
		want string
	}{
		{"a provider that does not exist", notRun, []string{"--provider", "docker"}, "write simulated, kind or kubeconfig"},
		{"a kubeconfig and a provider", notRun, []string{"--provider", "simulated", "--kubeconfig", "x"},
			"for the one of --kubeconfig leave --provider out"},
		{"a name for a cluster that is there", notRun, []string{"--name", "x"}, "write --provider simulated or kind"},
		{"a build for a cluster that is there", notRun, []string{"--windows", "10.0.20348"}, "write --provider simulated"},
		{"a lab of kind", notRun, []string{"--provider", "kind", "--lab", "x.yaml"}, "has no lab"},
		{"a lab that does not exist", notRun, []string{"--provider", "simulated", "--lab", "no-such.yaml", "--out", t.TempDir()}, "no-such.yaml"},
		{"a version that is not pinned", notRun, []string{"--provider", "simulated", "--lab", "../../labs/l2bridge.yaml", "--kubernetes", "1.5",
			"--out", t.TempDir()}, "1.37.0"},
		{"an unknown claim that may go untried", notRun, []string{"--may-skip", "flow-udb=x"}, "did you mean \"flow-udp\"?"},
		{"no reason", notRun, []string{"--may-skip", "flow-udp"}, "flow-udp has no reason"},
		{"known things that do not exist", notRun, []string{"--known", "nowhere.yaml"}, "nowhere.yaml"},
		{"a claim that does not exist", notRun, []string{"--list", "--claims", "no-such-*"}, "no claim with a spec"},
		{"an area that does not exist", notRun, []string{"--list", "--areas", "flow"}, `did you mean "flows"?`},
		{"a shard that does not exist", notRun, []string{"--list", "--shard", "4/4"}, "i from 0 and below n"},
		{"no cluster", notRun, []string{}, "--kubeconfig"},
		{"an argument", notRun, []string{"flows"}, "unknown command"},
		{"mirrors that do not exist", notRun, []string{"--list", "--image-repo-list", "nowhere.yaml"}, "nowhere.yaml"},
		{"nothing in common", nothingSelected, []string{"--list", "--areas", "dns", "--claims", "flow-udp"}, "nothing is selected"},
		{"merge of nothing", notRun, []string{"merge", "nowhere"}, "nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, c.code, []string{c.want}, c.args...) })
	}
}

// node makes a node without a kubelet.
func node(t *testing.T, s *testapi.Server, n *v1.Node) {
	t.Helper()
	made, err := s.Client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = n.Status
	if _, err := s.Client.CoreV1().Nodes().UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func windowsNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelOSStable: "windows", v1.LabelWindowsBuild: "10.0.20348",
			v1.LabelHostname: name}},
		Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			NodeInfo: v1.NodeSystemInfo{OperatingSystem: "windows", KernelVersion: "10.0.20348.2340", KubeletVersion: "v1.37.0",
				ContainerRuntimeVersion: "containerd://1.7.20", OSImage: "Windows Server 2022 Datacenter"},
		},
	}
}

func results(t *testing.T, dir string) *result.Document {
	t.Helper()
	doc, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestAgainstAnAPIServer runs the program against a real API server: what needs no node
// is tried, what needs one says what is missing.
func TestAgainstAnAPIServer(t *testing.T) {
	s := testapi.Start(t)
	admin := []string{"--kubeconfig", s.Kubeconfig(t, "admin")}
	t.Run("no Windows node", func(t *testing.T) {
		expect(t, notRun, []string{"no Windows node among 0 nodes"}, append(admin, "--out", t.TempDir())...)
	})
	t.Run("no rights", func(t *testing.T) {
		expect(t, notRun, []string{"nodes cannot be listed"}, "--kubeconfig", s.Kubeconfig(t, "guest"), "--out", t.TempDir())
	})
	t.Run("refused fields", func(t *testing.T) {
		out := t.TempDir()
		expect(t, allSkipped, []string{"36 checks tried, 0 failed, 3 could not be tried", "pod-os-stop-signals, runtimeclass-carries-scheduling"},
			append(admin, "--kinds", "rule", "--out", out, "--sonobuoy")...)
		// What may go untried is said; a claim that was tried after all is not among it.
		skips := append(admin, "--kinds", "rule", "--out", t.TempDir(), "--may-skip", "pod-os-stop-signals=the gate is off", "--may-skip",
			"runtimeclass-carries-scheduling=two objects")
		known := expect(t, allPassed, []string{"36 checks tried, 0 failed, 3 could not be tried"}, skips...)
		if strings.Contains(known, "not so") {
			t.Error(known)
		}
		expect(t, failures, []string{"known, but no longer so: --may-skip: pod-os-forbidden-fields may go untried, and"},
			append(skips, "--may-skip", "pod-os-forbidden-fields=x")...)
		doc := results(t, out)
		if doc.Summary.Outcomes[result.Agrees] < 9 || !doc.Summary.AsExpected || doc.Settings[0].Cluster == nil ||
			doc.Settings[0].Cluster.Simulated {
			t.Errorf("%+v of %+v", doc.Summary, doc.Settings)
		}
		for _, name := range []string{"junit.xml", "sonobuoy_results.yaml", "done"} {
			if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("killed half-way", func(t *testing.T) { killed(t, admin) })
	t.Run("the sample manifests", func(t *testing.T) { samples(t, s) })
	node(t, s, windowsNode("win-a"))
	tainted := windowsNode("win-b")
	tainted.Spec.Taints = []v1.Taint{{Key: "team", Value: "a", Effect: v1.TaintEffectNoSchedule}}
	node(t, s, tainted)
	hollow := windowsNode("hollow1")
	hollow.Labels["winlab.dev/hollow"] = "true"
	node(t, s, hollow)
	t.Run("a taint and a hollow node", func(t *testing.T) {
		expect(t, notRun, []string{"node win-b has the taint team=a:NoSchedule", "1 of the nodes are hollow (kwok)"},
			append(admin, "--out", t.TempDir())...)
	})
	t.Run("what applies", func(t *testing.T) {
		out := expect(t, allPassed, []string{"10.0.20348.2340", "flow-pod-pod-same-node", "note: the network mode is not visible"},
			append(admin, "--dry-run", "--areas", "flows")...)
		if strings.Contains(out, "simulated") {
			t.Error("the cluster is not simulated")
		}
	})
	t.Run("claimed, and nothing could be tried", func(t *testing.T) {
		out := t.TempDir()
		expect(t, allSkipped, []string{"flow-external-load-balancer"},
			append(admin, "--skip-preflight", "--network", "l2bridge", "--claims", "flow-external-load-balancer", "--pod-start", "1s", "--out",
				out)...)
	})
}

// killed kills a run after its first result: what was finished is valid.
func killed(t *testing.T, admin []string) {
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(admin, "--kinds", "rule", "--out", out)...)
	cmd.Env = append(os.Environ(), "WINLAB_E2E_PROGRAM=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ended:
			t.Fatal("the run ended before it was killed")
		case <-time.After(5 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(out, "results.json")); err == nil && len(results(t, out).Cells) > 0 {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if doc := results(t, out); len(doc.Cells) == 0 || len(doc.Cells) >= 9 {
		t.Errorf("%d cells", len(doc.Cells))
	}
	if _, err := os.Stat(filepath.Join(out, "junit.xml")); err != nil {
		t.Error(err)
	}
}

// samples sends the manifests of deploy to the API server, which is asked to change
// nothing; what needs a namespace gets it first.
func samples(t *testing.T, s *testapi.Server) {
	text, err := os.ReadFile("../../deploy/indexed-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(s.Client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, part := range strings.Split(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		m, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if u.GetKind() == "Namespace" {
			options.DryRun = nil
		}
		if _, err := client.Resource(m.Resource).Namespace(u.GetNamespace()).Create(t.Context(), u, options); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d objects", n)
	}
	// A plugin of Sonobuoy is not an object of the API: its pod and container are parts of one.
	text, err = os.ReadFile("../../deploy/sonobuoy-plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		PodSpec v1.PodSpec   `json:"podSpec"`
		Spec    v1.Container `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil {
		t.Fatal(err)
	}
	plugin.PodSpec.Containers = []v1.Container{plugin.Spec}
	plugin.PodSpec.Volumes = []v1.Volume{{Name: "results", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plugin"}, Spec: plugin.PodSpec}
	if _, err := s.Client.CoreV1().Pods("default").Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Error(err)
	}
}
