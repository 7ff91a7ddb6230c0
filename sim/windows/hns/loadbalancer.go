package hns

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// LBFlags are the flags of a load balancer (hcsshim hcn/hcnloadbalancer.go).
type LBFlags uint32

// The flags of a load balancer.
const (
	LBFlagDSR  LBFlags = 1
	LBFlagIPv6 LBFlags = 2
)

// PortFlags are the flags of a load balancer's port mapping.
type PortFlags uint32

// The flags of a port mapping. VipExternalIP is declared by kube-proxy
// (pkg/proxy/winkernel/hns.go), not by hcsshim.
const (
	PortFlagILB            PortFlags = 1
	PortFlagLocalRoutedVIP PortFlags = 2
	PortFlagUseMux         PortFlags = 4
	PortFlagPreserveDIP    PortFlags = 8
	PortFlagVipExternalIP  PortFlags = 16
)

// Distribution says how a load balancer picks a backend.
type Distribution uint32

// The distributions: by 5-tuple, by source address and protocol, by source
// address.
const (
	DistributionNone             Distribution = 0
	DistributionSourceIPProtocol Distribution = 1
	DistributionSourceIP         Distribution = 2
)

// LBPortMapping maps the frontend's port to the backends' port. Protocol is the
// IP protocol number.
type LBPortMapping struct {
	Protocol         uint32       `json:"Protocol,omitempty"`
	InternalPort     uint16       `json:"InternalPort,omitempty"`
	ExternalPort     uint16       `json:"ExternalPort,omitempty"`
	DistributionType Distribution `json:"DistributionType,omitempty"`
	Flags            PortFlags    `json:"Flags,omitempty"`
}

// LoadBalancer is a HostComputeLoadBalancer.
type LoadBalancer struct {
	ID string `json:"ID,omitempty"`
	// HostComputeEndpoints are the ids of the backends.
	HostComputeEndpoints []string `json:"HostComputeEndpoints,omitempty"`
	SourceVIP            string   `json:"SourceVIP,omitempty"`
	// FrontendVIPs left empty means the node's management address.
	FrontendVIPs  []string        `json:"FrontendVIPs,omitempty"`
	PortMappings  []LBPortMapping `json:"PortMappings,omitempty"`
	SchemaVersion SchemaVersion   `json:"SchemaVersion,omitzero"`
	Flags         LBFlags         `json:"Flags,omitempty"`

	// Ports is the block of node ports that the load balancer translates
	// sources with; zero for DSR.
	Ports PortBlock `json:"-"`
	// NotReady is what a dump says of a load balancer that is not in force as it
	// should be, "" for one that is.
	NotReady string `json:"-"`
	// Origin is the configuration behind the load balancer.
	Origin *trace.Origin `json:"-"`
}

// DSR reports whether replies go directly to the client.
func (l *LoadBalancer) DSR() bool { return l.Flags&LBFlagDSR != 0 }

// IPv6 reports whether the load balancer serves IPv6.
func (l *LoadBalancer) IPv6() bool { return l.Flags&LBFlagIPv6 != 0 }

// vips returns the frontend addresses; an empty list means the management address.
func (l *LoadBalancer) vips(management netip.Addr) []netip.Addr {
	var all []netip.Addr
	for _, v := range l.FrontendVIPs {
		if a, err := netip.ParseAddr(v); err == nil {
			all = append(all, a)
		}
	}
	if len(l.FrontendVIPs) == 0 && management.IsValid() {
		all = append(all, management)
	}
	return all
}

func (l LoadBalancer) clone() *LoadBalancer {
	l.HostComputeEndpoints = slices.Clone(l.HostComputeEndpoints)
	l.FrontendVIPs = slices.Clone(l.FrontendVIPs)
	l.PortMappings = slices.Clone(l.PortMappings)
	return &l
}
