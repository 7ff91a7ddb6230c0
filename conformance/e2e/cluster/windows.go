package cluster

import (
	"context"
	"os"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

// windowsNode starts kubelet.exe and kube-proxy.exe, unmodified, in a node's namespace.
func (c *Cluster) windowsNode(ctx context.Context, n *kube.Node) error {
	dir := filepath.Join(c.dir, n.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r, err := c.runtime(ctx, Node{Node: n, Net: c.Net, Machine: machine(n), Dir: dir})
	if err != nil {
		return err
	}
	name := "kubelet-" + n.Name
	config := filepath.Join(dir, "kubelet.yaml")
	if err := c.writeKubeletConfig(config, n, r.Endpoint(), wine.Path); err != nil {
		return err
	}
	path, err := c.o.Programs.Path("kubelet.exe")
	if err != nil {
		return err
	}
	c.say("starting kubelet.exe on " + n.Name)
	p, err := c.start(ctx, machine(n), "kubelet/"+n.Name, netns.Command{
		Args: append([]string{path}, kubeletFlags(n, wine.Path(config), wine.Path(c.kubeconfig(name)), `C:\var\lib\kubelet`)...),
		Env:  []string{shims.UnixListeners},
	})
	if err != nil {
		return err
	}
	return c.nodeReady(ctx, p, n.Name)
}

// runtime starts the container runtime of a node.
func (c *Cluster) runtime(ctx context.Context, n Node) (Runtime, error) {
	r, err := c.o.Runtime(ctx, n)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runtimes = append(c.runtimes, r)
	return r, nil
}
