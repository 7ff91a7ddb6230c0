package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// bed is a cluster with real kubelets on the runtime of this package.
type bed struct {
	*testing.T
	c   *cluster.Cluster
	ctx context.Context
}

const (
	agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"
	nonroot = "registry.k8s.io/e2e-test-images/nonroot:1.5"
)

func up(t *testing.T) *bed {
	t.Helper()
	winetest.Need(t)
	p, err := cluster.CachedPrograms(t.Context(), ".", "")
	switch {
	case err != nil:
		t.Fatal(err)
	case p == nil:
		t.Skip("the programs of a cluster are not built")
	}
	f, err := lab.Load("../../cluster/testdata/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before := machineLogs()
	programs := func(_ context.Context, name string) (string, error) { return p.Path(name) }
	c, err := cluster.Up(t.Context(), cluster.Options{Lab: f, Programs: p, Log: func(s string) { t.Log(s) },
		Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
			return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir, Programs: programs,
				Log: func(s string) { t.Log(n.Name + ": " + s) }})
		}})
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
		if after := machineLogs(); len(after) > len(before) {
			t.Errorf("a kubelet has written outside of its node: %v before, %v now", before, after)
		}
	})
	b := &bed{T: t, c: c, ctx: t.Context()}
	for b.ctx.Err() == nil { // the controller makes the account
		if _, err := c.Client.CoreV1().ServiceAccounts("default").Get(b.ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return b
}

// machineLogs are logs of pods that lie where those of this machine would.
func machineLogs() []string {
	all, _ := filepath.Glob("/var/log/pods/*")
	return all
}

// pod is one container that runs once on a node.
func pod(name, on, image string, command ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: on, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: image, Command: command}},
	}}
}

func (b *bed) create(p *corev1.Pod) {
	b.Helper()
	if _, err := b.c.Client.CoreV1().Pods("default").Create(b.ctx, p, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// wait waits until a pod is as wanted, and tells what it is like if it does not become so.
func (b *bed) wait(name string, is func(*corev1.Pod) bool) *corev1.Pod {
	b.Helper()
	end := time.Now().Add(3 * time.Minute)
	for {
		p, err := b.c.Client.CoreV1().Pods("default").Get(b.ctx, name, metav1.GetOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if is(p) {
			return p
		}
		if b.ctx.Err() != nil || time.Now().After(end) {
			b.Fatalf("pod %s: %s %+v\n%s", name, p.Status.Phase, p.Status.ContainerStatuses, b.events(name))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (b *bed) events(name string) string {
	l, err := b.c.Client.CoreV1().Events("default").List(b.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return err.Error()
	}
	var s strings.Builder
	for _, e := range l.Items {
		fmt.Fprintf(&s, "%s: %s\n", e.Reason, e.Message)
	}
	return s.String()
}

func (b *bed) log(name, container string) string {
	b.Helper()
	text, err := b.c.Client.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{Container: container}).DoRaw(b.ctx)
	if err != nil {
		b.Error(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// exec runs a command as kubectl does: by the API server, the kubelet and its runtime.
func (b *bed) exec(name string, command ...string) (string, int) {
	b.Helper()
	q := b.c.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	u, c := q.URL(), b.reachable()
	u.Host = strings.TrimPrefix(c.Host, "https://")
	x, err := remotecommand.NewSPDYExecutor(c, "POST", u)
	if err != nil {
		b.Fatal(err)
	}
	var out, errOut bytes.Buffer
	err = x.StreamWithContext(b.ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
	var code exec.CodeExitError
	switch {
	case errors.As(err, &code):
	case err != nil:
		b.Errorf("exec in %s: %v", name, err)
	}
	return strings.ReplaceAll(out.String()+errOut.String(), "\r\n", "\n"), code.Code
}

// gone deletes a pod and waits until it is gone.
func (b *bed) gone(name string) {
	b.Helper()
	if err := b.c.Client.CoreV1().Pods("default").Delete(b.ctx, name, metav1.DeleteOptions{}); err != nil {
		b.Error(err)
	}
	end := time.Now().Add(2 * time.Minute)
	for b.ctx.Err() == nil && time.Now().Before(end) {
		if _, err := b.c.Client.CoreV1().Pods("default").Get(b.ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Errorf("pod %s is still there\n%s", name, b.events(name))
}

// reachable is the administrator's configuration for clients that dial by themselves, as
// those of streams do: a door on this machine to the API server.
func (b *bed) reachable() *rest.Config {
	b.Helper()
	c := b.c.Config()
	dial := c.Dial
	u, err := url.Parse(c.Host)
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := dial(b.ctx, "tcp", u.Host)
				if err != nil {
					return
				}
				defer func() { _ = out.Close() }()
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	c.TLSClientConfig.ServerName = u.Hostname()
	c.Host, c.Dial = "https://"+l.Addr().String(), nil
	return c
}
