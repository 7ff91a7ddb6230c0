package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/wine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What names of the programs of a node begin with.
const (
	kubeletOf = "kubelet/"
	proxyOf   = "kube-proxy/"
	runtimeOf = "runtime/"
	hnsOf     = "hns/"
	nodeOf    = "node/"
)

// node starts what a node has: its container runtime, its kubelet, and on Windows
// kube-proxy.exe. It waits until the node is Ready.
func (c *Cluster) node(ctx context.Context, n *kube.Node) error {
	dir := filepath.Join(c.dir, n.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r, err := c.runtime(ctx, Node{Node: n, Net: c.Net, Machine: machine(n), Dir: dir})
	if err != nil {
		return err
	}
	path, kubelet, name := func(s string) string { return s }, c.linuxKubelet, "kubelet"
	if n.Windows != nil {
		path, kubelet, name = wine.Path, c.windowsKubelet, "kubelet.exe"
	}
	config := filepath.Join(dir, "kubelet.yaml")
	if err := c.writeKubeletConfig(config, n, r.Endpoint(), path); err != nil {
		return err
	}
	launch, err := kubelet(ctx, n, config, c.kubeconfig("kubelet-"+n.Name))
	if err != nil {
		return err
	}
	c.say(fmt.Sprintf("starting %s on %s", name, n.Name))
	start := time.Now()
	p, err := c.start(ctx, machine(n), kubeletOf+n.Name, launch, services)
	if err != nil {
		return err
	}
	p.check(c.o.NodesWithin, c.nodeReady(n, p))
	if err := p.well(ctx); err != nil {
		return err
	}
	c.say(fmt.Sprintf("node %s is Ready after %v", n.Name, time.Since(start).Round(100*time.Millisecond)))
	if n.Windows == nil {
		return nil
	}
	return c.proxy(ctx, n)
}

// nodeReady asks whether a kubelet is well and has said itself that its Node is Ready: what
// an earlier one has said stays for a while.
func (c *Cluster) nodeReady(n *kube.Node, kubelet *program) func(context.Context) error {
	healthz := c.get(n, "http://127.0.0.1:10248/healthz")
	return func(ctx context.Context) error {
		if err := healthz(ctx); err != nil {
			return err
		}
		n, err := c.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		since := kubelet.state().Since.Truncate(time.Second) // as the API server has times
		for _, k := range n.Status.Conditions {
			switch {
			case k.Type != corev1.NodeReady:
			case k.LastHeartbeatTime.Time.Before(since):
				return errors.New("it has not reported the status of its Node yet")
			case k.Status == corev1.ConditionTrue:
				return nil
			default:
				return errors.New(k.Message)
			}
		}
		return errors.New("its Node has no condition Ready yet")
	}
}

// runtime starts the container runtime of a node. It is a program of the node like others,
// though a part of this process: what ends with it is that it serves, and its containers
// go on, as those of containerd do.
func (c *Cluster) runtime(ctx context.Context, n Node) (Runtime, error) {
	c.mu.Lock()
	old := c.runtimes[n.Name]
	delete(c.runtimes, n.Name)
	c.mu.Unlock()
	if old != nil { // of a node that did not come up
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	r, err := c.o.Runtime(ctx, n)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.runtimes[n.Name] = r
	c.mu.Unlock()
	first := true
	p := c.program(n.Machine, runtimeOf+n.Name, func(ctx context.Context) (*run, error) {
		s, ok := r.(Server)
		if !first && !ok {
			return nil, errors.New("this container runtime cannot be started again")
		}
		if !first {
			if err := s.Restart(ctx); err != nil {
				return nil, err
			}
		}
		first = false
		done := make(chan struct{})
		stop := sync.OnceFunc(func() { s.Stop(); close(done) })
		return &run{since: time.Now(), done: done, how: "killed", signal: func(bool) error {
			if !ok {
				return errors.New("this container runtime cannot be stopped alone")
			}
			stop()
			return nil
		}}, nil
	}, services)
	return r, p.start(ctx)
}
