package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// fake answers as kubectl does, by the beginning of its arguments.
type fake struct {
	mu    sync.Mutex
	asked []string
	say   func(ctx context.Context, in io.Reader, out io.Writer, words string) error
}

func (f *fake) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	words := strings.Join(args, " ")
	if ctx.Err() != nil {
		return ctx.Err() // no program is started
	}
	f.mu.Lock()
	f.asked = append(f.asked, words)
	f.mu.Unlock()
	return f.say(ctx, in, out, words)
}

func (f *fake) has(beginning string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if strings.HasPrefix(a, beginning) {
			n++
		}
	}
	return n
}

const empty = `{"apiVersion": "v1", "items": [], "kind": "List"}`

const twoNodes = `{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win1"}, "status": {"nodeInfo": {"operatingSystem": "windows"}}},
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2", "labels": {"kubernetes.io/os": "windows"}}},
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "linux1"}, "status": {"nodeInfo": {"operatingSystem": "linux"}}}]}`

// small is a cluster that answers everything.
func small(_ context.Context, _ io.Reader, out io.Writer, words string) error {
	text := empty
	switch {
	case words == "get nodes -o json":
		text = twoNodes
	case strings.HasPrefix(words, "get configmaps --namespace kube-system kube-proxy "):
		text = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy"}, "data": {"config.conf": "clusterCIDR: 10.244.0.0/16\ntoken: abcdef\n"}}`
	case strings.HasPrefix(words, "get configmaps "):
		text = ""
	case strings.HasPrefix(words, "get ippools.crd.projectcalico.org "):
		return answer{`error: the server doesn't have a resource type "ippools"`, errors.New("exit status 1")}
	case strings.Contains(words, "networkpolicies.") || strings.Contains(words, ".policy.networking.k8s.io "):
		return answer{`error: the server doesn't have a resource type`, errors.New("exit status 1")}
	}
	_, err := io.WriteString(out, text)
	return err
}

// taken is what is in a bundle: files, and steps with what came of them.
func takenFrom(t *testing.T, f *fake, ctx context.Context, o Options) (*bundle.Bundle, []string, error) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "b.zip")
	w, err := bundle.Create(at, "test", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	takeErr := TakeBy(ctx, w, f.run, o)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), at, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if len(b.Notices) > 0 {
		t.Errorf("%v", b.Notices)
	}
	var steps []string
	for _, s := range b.Manifest.Steps {
		steps = append(steps, strings.TrimSpace(s.Node+" "+s.Name+": "+strings.Join(s.Files, " ")+s.Absent+s.Error))
	}
	return b, steps, takeErr
}

// TestTake: what may not be read, does not answer or answers nonsense is a step that failed, and
// the others go on.
func TestTake(t *testing.T) {
	f := &fake{}
	f.say = func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
		switch {
		case strings.HasPrefix(words, "get networkpolicies "):
			return answer{"Error from server (Forbidden): networkpolicies is forbidden", errors.New("exit status 1")}
		case strings.HasPrefix(words, "get pods"):
			<-ctx.Done()
			return ctx.Err()
		case strings.HasPrefix(words, "get services"):
			_, _ = io.WriteString(out, `{"items": [{"kind": "Service"`)
			return nil
		}
		return small(ctx, in, out, words)
	}
	b, steps, err := takenFrom(t, f, t.Context(), Options{Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"version: cluster/version.json", "nodes: cluster/nodes.json", "namespaces: cluster/namespaces.json",
		"services: the answer is not an object: the answer ends in the middle",
		"endpointslices: cluster/endpointslices.json", "pods: no answer after 50ms",
		"networkpolicies: kubectl get networkpolicies --all-namespaces -o json: Error from server (Forbidden): networkpolicies is forbidden",
		"runtimeclasses: cluster/runtimeclasses.json", "events: cluster/events.json", "calico: the cluster has no objects of Calico",
		"otherpolicies: the cluster has no kinds of policies beside NetworkPolicy", "configmaps: cluster/configmaps/kube-system.json",
	}
	for i := range steps {
		steps[i] = strings.ReplaceAll(steps[i], "unexpected EOF", "EOF")
	}
	if d := cmp.Diff(want, steps); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	m, _ := b.Manifest.Find("cluster/configmaps/kube-system.json")
	data, err := b.Read(m.Path)
	if err != nil || m.Redacted != 1 || strings.Contains(string(data), "abcdef") ||
		!strings.Contains(string(data), `clusterCIDR: 10.244.0.0/16\n`) {
		t.Errorf("%+v %v\n%s", m, err, data)
	}
	if n := f.has("get secret"); n > 0 {
		t.Error("it asks for Secrets")
	}
	for _, s := range Steps(Options{}) {
		if strings.Contains(strings.ToLower(s.Name+strings.Join(s.How, " ")), "secret") {
			t.Errorf("%s reads Secrets", s.Name)
		}
	}
}

// TestTakeUnreachable: nobody waits for each question when the first one shows that there is no way
// to the API server; a server that refuses it is there.
func TestTakeUnreachable(t *testing.T) {
	for _, c := range []struct {
		text  string
		asked int
	}{{"Unable to connect to the server: dial tcp 127.0.0.1:1: connect: connection refused", 1}, {"Error from server (Forbidden): no", 14}} {
		f := &fake{say: func(context.Context, io.Reader, io.Writer, string) error { return answer{c.text, errors.New("1")} }}
		_, steps, err := takenFrom(t, f, t.Context(), Options{})
		if err != nil || len(steps) != len(Steps(Options{})) || len(f.asked) != c.asked {
			t.Errorf("%s: %v, %d questions\n%s", c.text, err, len(f.asked), strings.Join(steps, "\n"))
		}
		for _, s := range steps {
			if !strings.Contains(s, c.text) {
				t.Errorf("%s does not say why", s)
			}
		}
	}
}

// TestTakeCalico: the objects of Calico are taken where the cluster has them, with its operator or
// without.
func TestTakeCalico(t *testing.T) {
	f := &fake{}
	f.say = func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
		switch {
		case strings.HasPrefix(words, "get installations.operator.tigera.io "):
			return answer{`error: the server doesn't have a resource type "installations"`, errors.New("exit status 1")}
		case strings.Contains(words, ".crd.projectcalico.org "):
			_, err := io.WriteString(out, empty)
			return err
		}
		return small(ctx, in, out, words)
	}
	_, steps, err := takenFrom(t, f, t.Context(), Options{})
	if want := "calico: cluster/calico/ippools.json cluster/calico/blockaffinities.json cluster/calico/felixconfigurations.json"; err != nil ||
		!slices.Contains(steps, want) {
		t.Errorf("%v\n%s", err, strings.Join(steps, "\n"))
	}
}

// TestTakeOtherPolicies: of the kinds of policies for whole clusters those are taken that there are.
func TestTakeOtherPolicies(t *testing.T) {
	f := &fake{}
	f.say = func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
		if strings.HasPrefix(words, "get clusternetworkpolicies.policy.networking.k8s.io ") {
			_, err := io.WriteString(out, empty)
			return err
		}
		return small(ctx, in, out, words)
	}
	_, steps, err := takenFrom(t, f, t.Context(), Options{})
	if want := "otherpolicies: cluster/otherpolicies/clusternetworkpolicies.policy.networking.k8s.io.json"; err != nil ||
		!slices.Contains(steps, want) {
		t.Errorf("%v\n%s", err, strings.Join(steps, "\n"))
	}
}

// TestTakeInterrupted: what was read before stays a bundle.
func TestTakeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{say: func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
		if strings.HasPrefix(words, "get services") {
			cancel()
			return ctx.Err()
		}
		return small(ctx, in, out, words)
	}}
	b, _, err := takenFrom(t, f, ctx, Options{})
	if !errors.Is(err, context.Canceled) || !slices.Equal(b.Files,
		[]string{"cluster/namespaces.json", "cluster/nodes.json", "cluster/version.json"}) {
		t.Errorf("%v %q", err, b.Files)
	}
}

// nodeBundle is what winlab.exe writes on a node.
func nodeBundle(t *testing.T, out io.Writer, files ...bundle.File) {
	w := bundle.Stream(out, "test", time.Unix(0, 0))
	for _, f := range files {
		if err := w.Add(f, []byte("[]")); err != nil {
			t.Error(err)
		}
	}
	w.Step(bundle.Step{Name: "hns-v1", What: "objects"})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

type sayFunc = func(context.Context, io.Reader, io.Writer, string) error

// nodeFile is a file of a node.
func nodeFile(node string) bundle.File {
	return bundle.File{Path: "nodes/" + node + "/hns/networks.json", What: "networks", Node: node}
}

// twoPods is a cluster in whose pods winlab.exe runs; win1 is what it does on that node.
func twoPods(t *testing.T, win1 func(out io.Writer) error) sayFunc {
	return func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
		switch {
		case strings.HasPrefix(words, "create"):
			data, _ := io.ReadAll(in)
			for _, node := range []string{"win1", "win2"} {
				if strings.Contains(string(data), fmt.Sprintf("\"nodeName\": %q", node)) {
					fmt.Fprintf(out, "pod/winlab-collect-%s\n", node)
				}
			}
			return nil
		case strings.HasPrefix(words, "exec -i "):
			r := tar.NewReader(in)
			h, err := r.Next()
			if err != nil || h.Name != "winlab.exe" || h.Size != 2000 {
				t.Errorf("%v %+v", err, h)
			}
			_, err = io.Copy(io.Discard, in)
			return err
		case strings.HasPrefix(words, "exec ") && strings.Contains(words, "pod/winlab-collect-win1 "):
			return win1(out)
		case strings.HasPrefix(words, "exec "):
			nodeBundle(t, out, nodeFile("win2"))
			return answer{"1 of 12 steps failed", errors.New("exit status 1")}
		case strings.HasPrefix(words, "get --namespace"):
			_,
				err := io.WriteString(out,
				`{"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no route"}}}]}}`)
			return err
		case strings.HasPrefix(words, "wait"), strings.HasPrefix(words, "delete"):
			return nil
		}
		return small(ctx, in, out, words)
	}
}

// TestNodes: each node has a pod, into which winlab.exe is copied, and what that writes is in the
// bundle. What fails on a node, or is not of it, is noted. The pods are removed, whatever happens.
func TestNodes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "winlab.exe")
	if err := os.WriteFile(program, bytes.Repeat([]byte("MZ"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	good := func(win1 func(out io.Writer) error) sayFunc { return twoPods(t, win1) }
	for name, c := range map[string]struct {
		win1 func(out io.Writer) error
		want string // of win1
	}{
		"good": {func(out io.Writer) error { nodeBundle(t, out, nodeFile("win1")); return nil }, "win1 hns-v1:"},
		"text": {func(out io.Writer) error { _, err := io.WriteString(out, "no zip"); return err },
			"win1 node: winlab.exe wrote no bundle that can be read: "},
		"others": {func(out io.Writer) error { nodeBundle(t, out, nodeFile("win2")); return nil },
			`win1 node: its bundle has "nodes/win2/hns/networks.json", which is not a file of this node`},
		"api": {func(out io.Writer) error { nodeBundle(t, out, bundle.File{Path: "cluster/pods.json"}); return nil },
			`win1 node: its bundle has "cluster/pods.json", which is not a file of this node`},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{say: good(c.win1)}
			b, steps, err := takenFrom(t, f, t.Context(), Options{Nodes: &Nodes{Program: program, Arguments: []string{"--log-bytes=7"}}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, c.want) }) || !slices.Contains(steps, "win2 hns-v1:") {
				t.Errorf("%s", strings.Join(steps, "\n"))
			}
			if _, ok := b.Manifest.Find("nodes/win2/hns/networks.json"); !ok {
				t.Errorf("%q", b.Files)
			}
			if _, ok := b.Manifest.Find("nodes/win1/hns/networks.json"); ok != (name == "good") {
				t.Errorf("%q", b.Files)
			}
			if f.has("create") != 2 || f.has("delete pods --namespace kube-system --selector winlab.dev/collect=") != 1 ||
				f.has(
					`exec --namespace kube-system pod/winlab-collect-win1 -- %CONTAINER_SANDBOX_MOUNT_POINT%\winlab.exe collect --node win1 --log-bytes=7 -`) != 1 {
				t.Errorf("%s", strings.Join(f.asked, "\n"))
			}
		})
	}
}

// TestNodesFail: a pod that does not start is a step that failed, with what it waits for; pods are
// removed also after an interruption; a node that is not there has none.
func TestNodesFail(t *testing.T) {
	t.Run("no pod", func(t *testing.T) {
		f := &fake{}
		ok := twoPods(t, nil)
		f.say = func(ctx context.Context, in io.Reader, out io.Writer, words string) error {
			if strings.HasPrefix(words, "wait") {
				return answer{"timed out waiting", errors.New("1")}
			}
			return ok(ctx, in, out, words)
		}
		_, steps, err := takenFrom(t, f, t.Context(), Options{Nodes: &Nodes{Names: []string{"win2"}}})
		if err != nil || !slices.Contains(steps, "win2 node: the pod did not start in 5m0s: timed out waiting; ErrImagePull: no route") ||
			f.has("create") != 1 || f.has("delete") != 1 {
			t.Errorf("%v\n%s", err, strings.Join(steps, "\n"))
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{say: twoPods(t, func(io.Writer) error { cancel(); return context.Canceled })}
		_, _, err := takenFrom(t, f, ctx, Options{Nodes: &Nodes{}})
		if !errors.Is(err, context.Canceled) || f.has("delete") != 1 {
			t.Errorf("%v\n%s", err, strings.Join(f.asked, "\n"))
		}
	})
	t.Run("a node that is not there", func(t *testing.T) {
		f := &fake{say: small}
		_, steps, err := takenFrom(t, f, t.Context(), Options{Nodes: &Nodes{Names: []string{"linux1"}}})
		if err != nil || !slices.Contains(steps, `pods: "linux1" is not a Windows node of this cluster; there are: win1, win2`) ||
			f.has("create") != 0 {
			t.Errorf("%v\n%s", err, strings.Join(steps, "\n"))
		}
	})
}

// TestClient runs a program: what it says on standard error is the error, and a program that does
// not end is ended.
func TestClient(t *testing.T) {
	at := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(at,
		[]byte(
			"#!/bin/sh\ncase \"$*\" in\n*late) exec sleep 600;;\n*refused) echo 'Error from server (Forbidden): no' >&2; exit 1;;\nesac\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := Client{Program: at, Kubeconfig: "/x y", Context: "c"}
	k, err := c.Find()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := k.output(t.Context(), "get", "nodes"); err != nil || string(out) != "--kubeconfig /x y --context c get nodes\n" {
		t.Errorf("%q %v", out, err)
	}
	if _, err := k.output(t.Context(), "refused"); err == nil || err.Error() != "Error from server (Forbidden): no" || !answered(err) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.output(ctx, "late"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if got := c.Shown("get", "x"); got != at+" --kubeconfig '/x y' --context c get x" {
		t.Errorf("%q", got)
	}
	if _, err := (Client{Program: "no-such-kubectl"}).Find(); err == nil {
		t.Error("a program that is not there is found")
	}
}
