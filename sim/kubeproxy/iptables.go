package kubeproxy

import (
	"github.com/winlab-dev/winlab/sim/host"
	"github.com/winlab-dev/winlab/sim/kube"
)

// Iptables returns the netfilter rules that kube-proxy writes on a Linux node.
func Iptables(c *kube.Cluster, n *kube.Node, services []*kube.Service) []host.NATRule {
	return nil
}
