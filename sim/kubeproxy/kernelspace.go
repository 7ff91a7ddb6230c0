package kubeproxy

import (
	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/kube"
)

// Kernelspace is kube-proxy in kernelspace mode on one Windows node.
type Kernelspace struct {
	cfg  Config
	node *kube.Node
	hns  *hns.Service
}

// NewKernelspace starts kube-proxy on a node whose networks exist.
func NewKernelspace(c Config, n *kube.Node, s *hns.Service) (*Kernelspace, error) {
	return &Kernelspace{cfg: c, node: n, hns: s}, nil
}

// Sync brings HNS in line with the Services.
func (k *Kernelspace) Sync(services []*kube.Service) (Report, error) {
	return Report{}, nil
}
