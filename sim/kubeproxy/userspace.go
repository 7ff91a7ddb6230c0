package kubeproxy

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/host"
	"github.com/winlab-dev/winlab/sim/kube"
)

// UserspaceSetup is what the userspace proxy puts on a Windows node.
type UserspaceSetup struct {
	// Addresses are added to the interface that INTERFACE_TO_ADD_SERVICE_IP
	// names, one for each frontend address, without duplicates.
	Addresses []netip.Addr
	// Listeners are the proxy's sockets.
	Listeners []*host.Listener
	// Report says what was made and what was left out.
	Report Report
}

// Userspace returns what kube-proxy in userspace mode sets up on a Windows node.
func Userspace(c Config, cl *kube.Cluster, n *kube.Node, services []*kube.Service) (UserspaceSetup, error) {
	return UserspaceSetup{}, nil
}
