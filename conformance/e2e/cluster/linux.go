package cluster

import (
	"context"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// private gives a Linux node the folders for itself that its kubelet has at fixed places:
// the sockets of device plugins are in /var/lib/kubelet, the links to logs in
// /var/log/containers. The mounts are in the mount namespace of the node and go with it.
const private = `mount -t tmpfs -o mode=755 winlab /var/lib && mkdir /var/lib/kubelet && mount -t tmpfs -o mode=755 winlab /var/log`

// linuxKubelet is the kubelet of a Linux node. It is the real one; what it cannot have
// without root, and does not need, is switched off:
//
//   - Kernel parameters, the kernel's log for OOM events, and its own OOM score are not its
//     to change or to read in a user namespace (feature gate KubeletInUserNamespace).
//   - cgroups are the runtime's concern (cgroupsPerQOS, enforceNodeAllocatable).
//   - The root folder's file system is that of this machine (localStorageCapacityIsolation).
//
// Its root folder is in one that all namespaces share: what it mounts there, such as the
// tmpfs of a Secret, is there for containers, too.
func (c *Cluster) linuxKubelet(ctx context.Context, n *kube.Node, config, kubeconfig string) (launcher, error) {
	if err := c.run(ctx, machine(n), "sh", "-c", private); err != nil {
		return nil, err
	}
	path, err := c.o.Programs.Path("kubelet")
	root := filepath.Join(filepath.Dir(config), "kubelet")
	return c.process(machine(n), c.logFile(kubeletOf+n.Name), netns.Command{Args: append([]string{path},
		c.kubeletFlags(n, config, kubeconfig, root)...)}, false), err
}
