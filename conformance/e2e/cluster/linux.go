package cluster

import (
	"context"
	"os"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// private gives a kubelet the folders for itself that it has at fixed places: the sockets
// of device plugins are in /var/lib/kubelet, the links to logs in /var/log/containers. The
// mounts are in the mount namespace of the node and go with it.
const private = `mount -t tmpfs -o mode=755 winlab /var/lib && mkdir /var/lib/kubelet && mount -t tmpfs -o mode=755 winlab /var/log && exec "$0" "$@"`

// linuxNode starts the kubelet of a Linux node. It is the real one; what it cannot have
// without root, and does not need, is switched off:
//
//   - Kernel parameters, the kernel's log for OOM events, and its own OOM score are not its
//     to change or to read in a user namespace (feature gate KubeletInUserNamespace).
//   - cgroups are the runtime's concern (cgroupsPerQOS, enforceNodeAllocatable).
//   - The root folder's file system is that of this machine (localStorageCapacityIsolation).
//
// Its root folder is in one that all namespaces share: what it mounts there, such as the
// tmpfs of a Secret, is there for containers, too.
func (c *Cluster) linuxNode(ctx context.Context, n *kube.Node) error {
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
	if err := c.writeKubeletConfig(config, n, r.Endpoint(), func(s string) string { return s }); err != nil {
		return err
	}
	path, err := c.o.Programs.Path("kubelet")
	if err != nil {
		return err
	}
	c.say("starting kubelet on " + n.Name)
	p, err := c.start(ctx, machine(n), "kubelet/"+n.Name, netns.Command{
		Args: append([]string{"sh", "-c", private, path}, c.kubeletFlags(n, config, c.kubeconfig(name), filepath.Join(dir, "kubelet"))...),
	})
	if err != nil {
		return err
	}
	return c.nodeReady(ctx, p, n.Name)
}
