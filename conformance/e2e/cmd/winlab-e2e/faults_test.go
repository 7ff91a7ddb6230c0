package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/internal/testcluster"
	"github.com/winlab-dev/winlab/reports/result"
)

var allFaults = flag.Bool("faults", false, "let parts of a cluster fail while specs run")

// TestFaults: parts of a cluster fail while specs run. Each spec has one result, none is
// taken for a claim that does not hold, nothing hangs, and the exit code says what came out.
func TestFaults(t *testing.T) {
	if !*allFaults {
		t.Skip("seven minutes: make cluster-faults runs it")
	}
	c := testcluster.Up(t, "../../cluster/testdata/lab.yaml", "")
	f := &faulty{T: t, c: c}
	t.Run("programs", f.programs)
	t.Run("images that do not exist", f.images)
	t.Run("no node takes a pod", f.unscheduled)
	t.Run("containers that never become ready", f.unready)
	t.Run("a node without power", f.nodeOff)
	t.Run("the Linux node without power", f.linuxOff)
}

func (f *faulty) programs(t *testing.T) {
	// All come back after some seconds: the run is as it would be without.
	code, out, doc := f.run(t, "controller-replicaset,controller-job,flow-pod-pod-same-node,kubectl-exec,configmaps-and-secrets", "3m",
		func() {
			for _, name := range []string{"kube-apiserver", "etcd", "kubelet/win1", "runtime/win1", "kube-proxy/win1"} {
				f.act(t, cluster.Kill, name)
				time.Sleep(2 * time.Second) // so that more than one spec meets them
			}
			f.act(t, cluster.Restart, "hns/win1")
		})
	for _, k := range checks(doc) {
		if k.Got != "works" && k.Got != "delivered" {
			t.Errorf("%s is %s: %s", k.What, k.Got, k.Summary)
		}
	}
	if code != allPassed || len(checks(doc)) != 5 {
		t.Errorf("exit code %d, %d results:\n%s", code, len(checks(doc)), out)
	}
}

func (f *faulty) images(t *testing.T) {
	mirrors := filepath.Join(t.TempDir(), "mirrors.yaml")
	if err := os.WriteFile(mirrors, []byte("promoterE2eRegistry: nobody.invalid/e2e-test-images\ngcRegistry: nobody.invalid\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	code, out, doc := f.run(t, "configmaps-and-secrets,controller-statefulset", "3m", nil, "--image-repo-list", mirrors)
	not := doc.Settings[0].Cluster.NotTried
	if code != allSkipped || len(checks(doc)) > 0 || len(not) != 2 {
		t.Errorf("exit code %d, %+v, %+v:\n%s", code, checks(doc), not, out)
	}
	for _, n := range not {
		if !strings.Contains(n.Why, "the image cannot be pulled: nobody.invalid/") {
			t.Errorf("%s: %s", n.What, n.Why)
		}
	}
}

func (f *faulty) unscheduled(t *testing.T) {
	f.taints(t, `[{"key":"winlab.dev/somebody-elses","effect":"NoSchedule"}]`)
	defer f.taints(t, `[]`)
	code, out, doc := f.run(t, "configmaps-and-secrets,controller-statefulset,flow-pod-pod-same-node", "15s", nil, "--skip-preflight")
	if all := checks(doc); code != failures || len(all) != 3 {
		t.Errorf("exit code %d, %+v:\n%s", code, all, out)
	}
	for _, k := range checks(doc) {
		if k.Got != "error" || !strings.Contains(k.Summary, "no node takes the pod: 0/2 nodes are available") {
			t.Errorf("%s is %s: %s", k.What, k.Got, k.Summary)
		}
	}
}

func (f *faulty) unready(t *testing.T) {
	defer f.neverReady(t)()
	code, out, doc := f.run(t, "configmaps-and-secrets,controller-statefulset", "20s", nil)
	if all := checks(doc); code != failures || len(all) != 2 {
		t.Errorf("exit code %d, %+v:\n%s", code, all, out)
	}
	for _, k := range checks(doc) {
		if k.Got != claims.Fails || !strings.Contains(k.Summary, "container main runs and is not ready") ||
			!strings.Contains(k.Summary, "Readiness probe failed") {
			t.Errorf("%s is %s: %s", k.What, k.Got, k.Summary)
		}
	}
}

func (f *faulty) nodeOff(t *testing.T) {
	code, out, doc := f.run(t, "controller-job", "90s", func() { f.act(t, cluster.Kill, "node/win1") })
	if all := checks(doc); code != failures || len(all) != 1 || all[0].Got != "error" ||
		!strings.Contains(all[0].Summary, "node win1 is not Ready") {
		t.Errorf("exit code %d, %+v:\n%s", code, all, out)
	}
	f.act(t, cluster.Start, "node/win1")
}

func (f *faulty) linuxOff(t *testing.T) {
	// The control plane is there. It stays away for longer than anybody waits.
	code, out, doc := f.run(t, "controller-job,configmaps-and-secrets", "30s", func() { f.act(t, cluster.Kill, "node/linux1") })
	if all := checks(doc); code != failures || len(all) == 0 {
		t.Errorf("exit code %d, %+v:\n%s", code, all, out)
	}
	for _, k := range checks(doc) {
		if k.Got != "error" || !strings.Contains(k.Summary, "the API server does not answer") {
			t.Errorf("%s is %s: %s", k.What, k.Got, k.Summary)
		}
	}
	f.act(t, cluster.Start, "node/linux1")
	if code, out, _ := f.run(t, "controller-job", "3m", nil); code != allPassed {
		t.Errorf("after it is back: exit code %d:\n%s", code, out)
	}
}

// taints gives win1 taints, or takes all away.
func (f *faulty) taints(t *testing.T, list string) {
	t.Helper()
	patch := []byte(`{"spec":{"taints":` + list + `}}`)
	if _, err := f.c.Client.CoreV1().Nodes().Patch(f.Context(), "win1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// neverReady gives the first container of each new pod of a run a probe that never succeeds,
// until the function that it returns is called.
func (f *faulty) neverReady(t *testing.T) (end func()) {
	t.Helper()
	const name, policy = "never-ready", `{
  "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "never-ready"},
  "spec": {
    "matchConstraints": {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]},
      "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
    "reinvocationPolicy": "Never", "failurePolicy": "Fail",
    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
      "[JSONPatch{op: \"add\", path: \"/spec/containers/0/readinessProbe\", value: Object.spec.containers.readinessProbe{periodSeconds: 1, exec: Object.spec.containers.readinessProbe.exec{command: [\"cmd.exe\", \"/c\", \"exit 1\"]}}}]"}}]}}`
	const binding = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "never-ready"}, "spec": {"policyName": "never-ready"}}`
	api := f.c.Client.AdmissionregistrationV1()
	var p admission.MutatingAdmissionPolicy
	var b admission.MutatingAdmissionPolicyBinding
	if err := errors.Join(json.Unmarshal([]byte(policy), &p), json.Unmarshal([]byte(binding), &b)); err != nil {
		t.Fatal(err)
	}
	_, err1 := api.MutatingAdmissionPolicies().Create(t.Context(), &p, metav1.CreateOptions{})
	_, err2 := api.MutatingAdmissionPolicyBindings().Create(t.Context(), &b, metav1.CreateOptions{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	// The API server reads policies a moment later.
	probed := func() bool {
		p, err := f.c.Client.CoreV1().Pods("default").Create(t.Context(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && p.Spec.Containers[0].ReadinessProbe != nil
	}
	for !probed() {
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return func() {
		if err := errors.Join(api.MutatingAdmissionPolicyBindings().Delete(f.Context(), name, metav1.DeleteOptions{}),
			api.MutatingAdmissionPolicies().Delete(f.Context(), name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
		for probed() {
			select {
			case <-f.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

type faulty struct {
	*testing.T
	c *cluster.Cluster
}

func (f *faulty) act(t *testing.T, a cluster.Action, name string) {
	if err := f.c.Act(f.Context(), a, name); err != nil {
		t.Errorf("%s %s: %v", a, name, err)
	}
}

// run runs specs of claims, calls faults when they begin, and returns the exit code, what
// was said and the results.
func (f *faulty) run(t *testing.T, claims, podStart string, faults func(), more ...string) (code int, out string, doc *result.Document) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"--kubeconfig", f.c.Kubeconfig(), "--claims", claims, "--pod-start",
		podStart, "--out", dir}, more...)...)
	cmd.Env = append(os.Environ(), "WINLAB_E2E_PROGRAM=1", "KUBECONFIG=")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); _ = w.Close() }()
	var text strings.Builder
	begun, done := false, make(chan struct{})
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !begun && strings.Contains(lines.Text(), "Will run") {
			begun = true
			go func() {
				defer close(done)
				if faults != nil {
					faults()
				}
			}()
		}
	}
	if !begun {
		t.Fatalf("nothing was tried:\n%s", text.String())
	}
	<-done
	return cmd.ProcessState.ExitCode(), text.String(), results(t, dir)
}

// checks are those of all claims.
func checks(doc *result.Document) (all []result.Check) {
	for _, c := range doc.Cells {
		all = append(all, c.Checks...)
	}
	return all
}
