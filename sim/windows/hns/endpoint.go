package hns

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// EndpointFlags are the flags of an endpoint (hcsshim hcn/hcnendpoint.go).
type EndpointFlags uint32

// EndpointRemote is the flag of an endpoint that lives on another node.
const EndpointRemote EndpointFlags = 1

// EndpointState is where an endpoint is in its life (HNS v1).
type EndpointState uint16

// The endpoint states (hcsshim internal/hns/hnsendpoint.go). A container's
// endpoint that works is in state 3.
const (
	StateUninitialized EndpointState = iota
	StateCreated
	StateAttached
	StateAttachedSharing
	StateDetached
	StateDegraded
	StateDestroyed
)

// IpConfig is one address of an endpoint.
type IpConfig struct {
	IpAddress    string `json:"IpAddress,omitempty"`
	PrefixLength uint8  `json:"PrefixLength,omitempty"`
}

// Prefix returns the address with its prefix length, not masked, or the zero
// Prefix when it is malformed.
func (c IpConfig) Prefix() netip.Prefix {
	a, err := netip.ParseAddr(c.IpAddress)
	if err != nil {
		return netip.Prefix{}
	}
	bits := int(c.PrefixLength)
	if bits == 0 || bits > a.BitLen() {
		bits = a.BitLen()
	}
	return netip.PrefixFrom(a, bits)
}

// Endpoint is a HostComputeEndpoint: the vNIC of a container, of the host, or
// with the flag [EndpointRemote] an address on another node.
type Endpoint struct {
	ID                   string        `json:"ID,omitempty"`
	Name                 string        `json:"Name,omitempty"`
	HostComputeNetwork   string        `json:"HostComputeNetwork,omitempty"`
	HostComputeNamespace string        `json:"HostComputeNamespace,omitempty"`
	Policies             []Policy      `json:"Policies,omitempty"`
	IpConfigurations     []IpConfig    `json:"IpConfigurations,omitempty"`
	Dns                  DNS           `json:"Dns,omitzero"`
	Routes               []NetRoute    `json:"Routes,omitempty"`
	MacAddress           string        `json:"MacAddress,omitempty"`
	Flags                EndpointFlags `json:"Flags,omitempty"`
	Health               Health        `json:"Health,omitzero"`
	SchemaVersion        SchemaVersion `json:"SchemaVersion,omitzero"`

	// Compartment is the compartment that a dump says the endpoint's port is in;
	// 0 where it does not say.
	Compartment uint32 `json:"-"`
	// NotShown names the fields that a dump does not show because they were cut off.
	NotShown []string `json:"-"`
	// Stated is set when a dump shows the State; HCN v2 does not.
	Stated bool `json:"-"`
	// State, SharedContainers and the two switches are fields of HNS v1.
	State             EndpointState `json:"-"`
	SharedContainers  []string      `json:"-"`
	EnableInternalDNS bool          `json:"-"`
	DisableICC        bool          `json:"-"`
	// Origin is the configuration behind the endpoint.
	Origin *trace.Origin `json:"-"`
}

// Remote reports whether the endpoint lives on another node.
func (e *Endpoint) Remote() bool { return e.Flags&EndpointRemote != 0 }

// Attached reports whether the endpoint has a working switch port: it is local
// and in one of the attached states.
func (e *Endpoint) Attached() bool {
	return !e.Remote() && (e.State == StateAttached || e.State == StateAttachedSharing)
}

// Addresses returns the well-formed addresses of the endpoint in order.
func (e *Endpoint) Addresses() []netip.Addr {
	var all []netip.Addr
	for _, c := range e.IpConfigurations {
		if p := c.Prefix(); p.IsValid() {
			all = append(all, p.Addr())
		}
	}
	return all
}

// Address returns the first address of the family, IPv4 or IPv6, or the zero Addr.
func (e *Endpoint) Address(v6 bool) netip.Addr {
	for _, a := range e.Addresses() {
		if a.Is4() != v6 {
			return a
		}
	}
	return netip.Addr{}
}

// Gateway returns the next hop of the endpoint's default route for the family.
func (e *Endpoint) Gateway(v6 bool) netip.Addr {
	for _, r := range e.Routes {
		p, err := netip.ParsePrefix(r.DestinationPrefix)
		if err == nil && p.Bits() != 0 {
			continue
		}
		if a, err := netip.ParseAddr(r.NextHop); err == nil && a.Is4() != v6 {
			return a
		}
	}
	return netip.Addr{}
}

// ProviderAddress returns the address of the node that carries the endpoint on
// the underlay, or the zero Addr when no policy names one.
func (e *Endpoint) ProviderAddress() netip.Addr {
	for _, p := range eachValue[provider](e.Policies) {
		return p.address
	}
	return netip.Addr{}
}

func (e Endpoint) clone() *Endpoint {
	e.Policies = slices.Clone(e.Policies)
	e.IpConfigurations = slices.Clone(e.IpConfigurations)
	e.Routes = slices.Clone(e.Routes)
	e.SharedContainers = slices.Clone(e.SharedContainers)
	e.Dns = e.Dns.clone()
	return &e
}
