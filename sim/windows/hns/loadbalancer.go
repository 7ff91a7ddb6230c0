package hns

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Flags of a load balancer (hcsshim hcn/hcnloadbalancer.go).
const (
	LBFlagDSR  uint32 = 1
	LBFlagIPv6 uint32 = 2
)

// Flags of a load balancer's port mapping. VipExternalIP is declared by
// kube-proxy (pkg/proxy/winkernel/hns.go), not by hcsshim.
const (
	PortFlagILB            uint32 = 1
	PortFlagLocalRoutedVIP uint32 = 2
	PortFlagUseMux         uint32 = 4
	PortFlagPreserveDIP    uint32 = 8
	PortFlagVipExternalIP  uint32 = 16
)

// Distribution types of a port mapping: by 5-tuple, by source address and
// protocol, by source address.
const (
	DistributionNone             uint32 = 0
	DistributionSourceIPProtocol uint32 = 1
	DistributionSourceIP         uint32 = 2
)

// LBPortMapping maps the frontend's port to the backends' port. Protocol is the
// IP protocol number.
type LBPortMapping struct {
	Protocol         uint32 `json:"Protocol,omitempty"`
	InternalPort     uint16 `json:"InternalPort,omitempty"`
	ExternalPort     uint16 `json:"ExternalPort,omitempty"`
	DistributionType uint32 `json:"DistributionType,omitempty"`
	Flags            uint32 `json:"Flags,omitempty"`
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
	Flags         uint32          `json:"Flags,omitempty"`

	// Ports is the block of node ports that the load balancer translates
	// sources with; zero for DSR.
	Ports PortBlock `json:"-"`
	// Origin is the configuration behind the load balancer.
	Origin *trace.Origin `json:"-"`
}

// DSR reports whether replies go directly to the client.
func (l *LoadBalancer) DSR() bool { return l.Flags&LBFlagDSR != 0 }

// IPv6 reports whether the load balancer serves IPv6.
func (l *LoadBalancer) IPv6() bool { return l.Flags&LBFlagIPv6 != 0 }

// VIPs returns the frontend addresses; management stands in for an empty list.
func (l *LoadBalancer) VIPs(management netip.Addr) []netip.Addr {
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

// Namespace is a HostComputeNamespace: a network compartment and what is in it.
type Namespace struct {
	ID string `json:"ID,omitempty"`
	// NamespaceId is the number of the compartment.
	NamespaceId   uint32              `json:"NamespaceId,omitempty"`
	NamespaceGuid string              `json:"NamespaceGuid,omitempty"`
	Type          string              `json:"Type,omitempty"`
	Resources     []NamespaceResource `json:"Resources,omitempty"`
	SchemaVersion SchemaVersion       `json:"SchemaVersion,omitzero"`
}

// The namespace types.
const (
	NamespaceHost         = "Host"
	NamespaceHostDefault  = "HostDefault"
	NamespaceGuest        = "Guest"
	NamespaceGuestDefault = "GuestDefault"
)

// NamespaceResource is a container or endpoint in a namespace; Type is
// "Container" or "Endpoint", Data is {"Id": ...}.
type NamespaceResource struct {
	Type string                `json:"Type"`
	Data NamespaceResourceData `json:"Data"`
}

// NamespaceResourceData identifies the resource.
type NamespaceResourceData struct {
	Id string `json:"Id"`
}

// Endpoints returns the ids of the endpoints in the namespace.
func (n *Namespace) Endpoints() []string {
	var ids []string
	for _, r := range n.Resources {
		if strings.EqualFold(r.Type, "Endpoint") {
			ids = append(ids, r.Data.Id)
		}
	}
	return ids
}

func (n Namespace) clone() *Namespace {
	n.Resources = slices.Clone(n.Resources)
	return &n
}

// Route is a HostComputeRoute: SDN routes for a set of endpoints.
type Route struct {
	ID                   string             `json:"ID,omitempty"`
	HostComputeEndpoints []string           `json:"HostComputeEndpoints,omitempty"`
	Setting              []SDNRouteSettings `json:"Setting,omitempty"`
	SchemaVersion        SchemaVersion      `json:"SchemaVersion,omitzero"`

	// Origin is the configuration behind the route.
	Origin *trace.Origin `json:"-"`

	toHost []toHost // Setting, parsed when HNS admits the route
}

// parse is what the compiler needs of Setting.
func (r *Route) parse() {
	r.toHost = nil
	for _, s := range r.Setting {
		if t, ok := s.toHost(); ok {
			r.toHost = append(r.toHost, t)
		}
	}
}

func (r Route) clone() *Route {
	r.HostComputeEndpoints = slices.Clone(r.HostComputeEndpoints)
	r.Setting = slices.Clone(r.Setting)
	return &r
}

// ModifyRequest is the body of a Modify call. ResourceType is "Policy", "DNS",
// "Port", "Endpoint" or "Container"; RequestType is "Add", "Remove", "Update"
// or "Refresh".
type ModifyRequest struct {
	ResourceType string          `json:"ResourceType,omitempty"`
	RequestType  string          `json:"RequestType,omitempty"`
	Settings     json.RawMessage `json:"Settings,omitempty"`
}
