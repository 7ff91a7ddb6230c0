package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

// windowsKubelet is kubelet.exe, unmodified, for a node's namespace.
func (c *Cluster) windowsKubelet(ctx context.Context, n *kube.Node, config, kubeconfig string) (launcher, error) {
	// Some paths of kubelet.exe have no drive (/var/log/pods): as for a service of Windows,
	// the drive it is on must be C.
	drive, err := c.Net.NodePath(ctx, machine(n), `C:\`)
	if err != nil {
		return nil, err
	}
	// Wine takes a path that begins with a slash (/var/log/containers) for one of this machine
	// (RtlGetFullPathName_U); in this namespace that is drive C, too.
	logs := filepath.Join(drive, "var", "log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	if err := c.run(ctx, machine(n), "mount", "--bind", logs, "/var/log"); err != nil {
		return nil, err
	}
	memory := filepath.Join(filepath.Dir(config), "memory")
	if err := c.memory(memory, n); err != nil {
		return nil, err
	}
	// Where log queries look for what a service has written (kubelet_server_journal.go,
	// heuristicsCopyFileLogs).
	if err := linkLog(c.logFile(kubeletOf+n.Name), filepath.Join(logs, "kubelet.log")); err != nil {
		c.say(fmt.Sprintf("the log of kubelet.exe on %s cannot be asked for: %v", n.Name, err))
	}
	path, err := c.o.Programs.Path("kubelet.exe")
	if err != nil {
		return nil, err
	}
	start := c.process(machine(n), c.logFile(kubeletOf+n.Name), netns.Command{
		Dir:  drive,
		Args: append([]string{path}, c.kubeletFlags(n, wine.Path(config), wine.Path(kubeconfig), `C:\var\lib\kubelet`)...),
		Env:  []string{shims.UnixListeners, shims.Symlinks, shims.Memory + "=" + wine.Path(memory)},
	}, true)
	socket := filepath.Join(drive, "var", "lib", "kubelet", "device-plugins", "kubelet.sock")
	return func(ctx context.Context) (*run, error) {
		// kubelet.exe removes the socket that an earlier one has left, if the file is one
		// (pkg/kubelet/cm/devicemanager CleanupPluginDirectory). Wine has no reparse points,
		// which say so on Windows.
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return start(ctx)
	}, nil
}

// proxy starts kube-proxy.exe with the lab's flags for it. It is the only one that programs
// load balancers of the node's HNS.
func (c *Cluster) proxy(ctx context.Context, n *kube.Node) error {
	var flags []string
	network := ""
	err := c.Net.Do(func(l *lab.Cluster) error {
		p := l.Plan.Node(n.Name)
		if p.Proxy.Mode != kubeproxy.ModeKernelspace {
			c.say(fmt.Sprintf("no kube-proxy.exe on %s: proxy.mode of the lab is %s", n.Name, p.Proxy.Mode))
			return nil
		}
		flags, network = append([]string{"--proxy-mode=kernelspace"}, p.ProxyFlags...), p.Proxy.NetworkName
		h := l.HNS(n.Name)
		if network != "" || h == nil {
			return nil
		}
		// What a start script puts into KUBE_NETWORK.
		all := h.ListNetworks(nil)
		if len(all) != 1 {
			return fmt.Errorf("kube-proxy on %s: the node has %d HNS networks; write --network-name in proxy.flags of the lab", n.Name, len(all))
		}
		network = all[0].Name
		return nil
	})
	if err != nil || flags == nil {
		return err
	}
	path, err := c.o.Programs.Path("kube-proxy.exe")
	if err != nil {
		return err
	}
	c.say("starting kube-proxy.exe on " + n.Name)
	p, err := c.start(ctx, machine(n), proxyOf+n.Name, c.process(machine(n), c.logFile(proxyOf+n.Name), netns.Command{
		Args: append([]string{path, "--kubeconfig=" + wine.Path(c.kubeconfig("kube-proxy")), "--hostname-override=" + n.Name, "--v=2"}, flags...),
		Env:  []string{"KUBE_NETWORK=" + network},
	}, true), services)
	if err != nil {
		return err
	}
	p.check(upWithin, c.get(n, "http://127.0.0.1:10256/livez"))
	return p.well(ctx)
}

// linkLog gives a log, which is made if it is missing, another name.
func linkLog(log, name string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(log, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
