package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/live"
)

// faults is a cluster with a web server on win2, Service "web" before it, and a client on
// each of the other nodes.
type faults struct {
	*testing.T
	c       *Cluster
	web     netip.AddrPort
	clients []string
}

const agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.53"

// TestFaults: what Kubernetes and the network do when programs and nodes of a cluster fail.
// What is expected is from sources: HNS has the load balancers, so Services go on without
// kubelet and kube-proxy (winkernel proxier), and after HNS has restarted
// (hns.restart-keeps-load-balancers), until kube-proxy.exe starts again and deletes them
// all (kubeproxy.start-deletes-load-balancers), which ends the node's connections by Services; a
// container runtime's containers outlive it; a node
// without heartbeats is NotReady after 50 s (nodelifecycle's NodeMonitorGracePeriod), and
// its pods are deleted after their tolerationSeconds.
func TestFaults(t *testing.T) {
	f := &faults{T: t, c: upWithPods(t, "../labs/l2bridge.yaml")}
	f.deploy()
	t.Run("programs", f.programs)
	if !full.Run() {
		return
	}
	t.Run("stopped", f.stopped)
	t.Run("hns", f.hns)
	t.Run("names", f.names)
	t.Run("node", f.node)
}

func (f *faults) deploy() {
	f.Helper()
	ctx := f.Context()
	cordon := func(yes bool) {
		f.Helper()
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes)
		if _, err := f.c.Client.CoreV1().Nodes().Patch(ctx, "win1", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	cordon(true)
	labels, one, second := map[string]string{"app": "web"}, int32(1), int64(1)
	_, err := f.c.Client.AppsV1().Deployments("default").Create(ctx,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
				Tolerations: []corev1.Toleration{
					{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists, TolerationSeconds: &second},
					{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists,
						TolerationSeconds: &second},
				},
				Containers: []corev1.Container{{Name: "main", Image: agnhost, Args: []string{"netexec", "--http-port=8080"}}},
			}}}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.web = f.service("web")
	for _, node := range []string{"linux1", "win1"} {
		p, err := f.c.Net.AddPod(ctx, live.Sandbox{Namespace: "default", Name: "client-" + node, Node: node})
		if err != nil {
			f.Fatal(err)
		}
		f.clients = append(f.clients, p.Machine)
	}
	waitFor(f.T, "a pod of web runs", func() error { _, err := f.pod("win2"); return err })
	cordon(false)
	f.reach(f.T, f.web)
}

// service makes a Service before the web server.
func (f *faults) service(name string) netip.AddrPort {
	f.Helper()
	s, err := f.c.Client.CoreV1().Services("default").Create(f.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}}}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIP), 80)
}

// pod is the pod of web that runs on a node and is not to go.
func (f *faults) pod(node string) (*corev1.Pod, error) {
	l, err := f.c.Client.CoreV1().Pods("default").List(f.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, err
	}
	var have []string
	for _, p := range l.Items {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil && ready {
			return &p, nil
		}
		have = append(have, fmt.Sprintf("%s on %s %s, ready %t, to go %v", p.Name, p.Spec.NodeName, p.Status.Phase, ready, p.DeletionTimestamp))
	}
	return nil, fmt.Errorf("there are %q", have)
}

// ask asks over a connection.
func ask(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "GET /hostname HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r.Body)
	if err == nil && !strings.HasPrefix(string(b), "web-") {
		err = fmt.Errorf("somebody else answers: %q", b)
	}
	return err
}

// dial opens a connection of a client and asks.
func (f *faults) dial(client string, to netip.AddrPort) (net.Conn, error) {
	c, err := f.c.Net.Dial(f.Context(), client, "tcp", to, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return c, ask(c)
}

// reach waits until every client reaches a Service, and returns the connections.
func (f *faults) reach(t *testing.T, to netip.AddrPort) (all []net.Conn) {
	t.Helper()
	for _, client := range f.clients {
		waitFor(t, client+" reaches the Service", func() error {
			c, err := f.dial(client, to)
			if err == nil {
				all = append(all, c)
			}
			return err
		})
	}
	return all
}

// goOn wants every client's connection, and new ones, to work at once.
func (f *faults) goOn(t *testing.T, held []net.Conn) {
	t.Helper()
	for i, client := range f.clients {
		if held != nil {
			if err := ask(held[i]); err != nil {
				t.Errorf("the connection that %s has: %v", client, err)
			}
		}
		c, err := f.dial(client, f.web)
		if err != nil {
			t.Errorf("a new connection of %s: %v", client, err)
			continue
		}
		_ = c.Close()
	}
}

func (f *faults) act(t *testing.T, a Action, names ...string) {
	t.Helper()
	if err := f.c.Act(t.Context(), a, names...); err != nil {
		t.Fatal(err)
	}
}

func (f *faults) state(name string) Program {
	for _, p := range f.c.Programs() {
		if p.Name == name {
			return p
		}
	}
	return Program{Ended: "not there"}
}

// programs are killed, all of them; their service managers start them again. The network
// and containers go on meanwhile.
func (f *faults) programs(t *testing.T) {
	held := f.reach(t, f.web)
	before, err := f.pod("win2")
	if err != nil {
		t.Fatal(err)
	}
	killed := []string{"kubelet/win1", "kubelet/win2", "kube-proxy/win1", "kube-proxy/win2", "runtime/win2", "kubelet/linux1",
		"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}
	f.act(t, Kill, killed...)
	if p := f.state("kubelet/win2"); !strings.Contains(p.Ended, "killed; starts again in") {
		t.Errorf("after it was killed: %+v", p)
	}
	f.goOn(t, held)
	for _, name := range killed {
		waitFor(t, name+" runs again", func() error {
			if p := f.state(name); p.Ended != "" || p.Restarts == 0 {
				return fmt.Errorf("%+v", p)
			}
			p, err := f.c.named(name)
			if err != nil || p.health == nil {
				return err
			}
			return p.health(t.Context())
		})
	}
	if err := ask(held[0]); err != nil {
		t.Errorf("the connection that %s has: %v", f.clients[0], err)
	}
	if err := ask(held[1]); err == nil {
		t.Errorf("%s has a connection by load balancers that kube-proxy.exe has deleted when it started", f.clients[1])
	}
	f.goOn(t, nil)
	after, err := f.pod("win2")
	if err != nil {
		t.Fatal(err)
	}
	if before.UID != after.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod is another: %s, now %s, restarts %d", before.Name, after.Name, after.Status.ContainerStatuses[0].RestartCount)
	}
}

// stopped: what is stopped stays so. Without kube-proxy.exe Services go on as they are, and
// a new one is not there on its node until it runs again.
func (f *faults) stopped(t *testing.T) {
	held := f.reach(t, f.web)
	f.act(t, Stop, "kube-proxy/win1", "kubelet/win1")
	f.goOn(t, held)
	more := f.service("more")
	waitFor(t, "the other node has the new Service", func() error { _, err := f.dial(f.clients[0], more); return err })
	if _, err := f.dial(f.clients[1], more); err == nil {
		t.Error("without kube-proxy.exe its node has the new Service")
	}
	for _, name := range []string{"kube-proxy/win1", "kubelet/win1"} {
		if p := f.state(name); p.Ended != "stopped" {
			t.Errorf("%+v", p)
		}
	}
	f.act(t, Start, "kube-proxy/win1", "kubelet/win1")
	f.reach(t, more)
	f.act(t, Restart, "kube-proxy/win1", "kubelet/win1", "runtime/win1")
	f.reach(t, more)
}

// hns restarts: the load balancers are there again without kube-proxy.
func (f *faults) hns(t *testing.T) {
	f.act(t, Stop, "kube-proxy/win1")
	f.act(t, Restart, "hns/win1")
	f.goOn(t, nil)
	f.act(t, Start, "kube-proxy/win1")
	f.reach(t, f.web)
}

// names: mistakes are said before anything is done.
func (f *faults) names(t *testing.T) {
	pid := f.state("etcd").PID
	for _, c := range []struct {
		a          Action
		name, want string
	}{
		{Kill, "kubelet/win9", "the cluster has no kubelet/win9; it has etcd,"},
		{Stop, "hns/win1", "HNS can be restarted only"},
		{Restart, "hns/linux1", "the cluster has no hns/linux1"},
		{"pause", "etcd", "is not an action"},
	} {
		if err := f.c.Act(t.Context(), c.a, "etcd", c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.a, c.name, err)
		}
	}
	if now := f.state("etcd"); now.PID != pid || now.Ended != "" {
		t.Errorf("etcd was touched: %+v", now)
	}
}

// node loses its power: it does not answer, Kubernetes sees it and moves the pod, and
// the node comes back.
func (f *faults) node(t *testing.T) {
	held := f.reach(t, f.web)
	before, err := f.pod("win2")
	if err != nil {
		t.Fatal(err)
	}
	f.act(t, Kill, "node/win2")
	for i, client := range f.clients {
		var late net.Error
		if err := ask(held[i]); !errors.As(err, &late) || !late.Timeout() {
			t.Errorf("the connection of %s to a node without power: %v, want no answer at all", client, err)
		}
	}
	if err := f.c.Act(t.Context(), Start, "kubelet/win2"); err == nil || !strings.Contains(err.Error(), "node win2 is off") {
		t.Errorf("start of a kubelet of a node that is off: %v", err)
	}
	waitFor(t, "the node is not Ready", func() error {
		n, err := f.c.Client.CoreV1().Nodes().Get(t.Context(), "win2", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown && c.Reason == "NodeStatusUnknown" {
				return nil
			}
		}
		return fmt.Errorf("%+v", n.Status.Conditions)
	})
	waitFor(t, "the other node has a pod of web", func() error { _, err := f.pod("win1"); return err })
	old, err := f.c.Client.CoreV1().Pods("default").Get(t.Context(), before.Name, metav1.GetOptions{})
	if err != nil || old.DeletionTimestamp == nil {
		t.Errorf("the pod of the dead node is to be deleted, and there until its kubelet says more: %v, %v", old.DeletionTimestamp, err)
	}
	f.reach(t, f.web)
	f.act(t, Start, "node/win2")
	waitFor(t, "the old pod is gone", func() error {
		_, err := f.c.Client.CoreV1().Pods("default").Get(t.Context(), before.Name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	f.reach(t, f.web)
}
