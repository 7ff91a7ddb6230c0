package hns

import (
	"encoding/json"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// NetworkType is the type of a network. HNS compares types without regard to case:
// Get-HnsNetwork prints "l2bridge", hcsshim sends "L2Bridge".
type NetworkType string

// The network types of HCN v2.
const (
	NAT            NetworkType = "NAT"
	Transparent    NetworkType = "Transparent"
	L2Bridge       NetworkType = "L2Bridge"
	L2Tunnel       NetworkType = "L2Tunnel"
	ICS            NetworkType = "ICS"
	Private        NetworkType = "Private"
	Overlay        NetworkType = "Overlay"
	Internal       NetworkType = "Internal"
	Mirrored       NetworkType = "Mirrored"
	ConstrainedICS NetworkType = "ConstrainedICS"
)

var networkTypes = []NetworkType{NAT, Transparent, L2Bridge, L2Tunnel, ICS, Private, Overlay, Internal, Mirrored, ConstrainedICS}

// NetworkFlags are the flags of a network (hcsshim hcn/hcnnetwork.go).
type NetworkFlags uint32

// The flags of a network.
const (
	NetworkNonPersistent   NetworkFlags = 8
	NetworkDisableHostPort NetworkFlags = 1024
	NetworkEnableIov       NetworkFlags = 8192
)

// SubnetDoNotReserveGateway is the subnet flag that lets the gateway address be
// the management address.
const SubnetDoNotReserveGateway uint32 = 1

// SchemaVersion is the version of the JSON schema that an object was written in.
type SchemaVersion struct {
	Major int `json:"Major"`
	Minor int `json:"Minor"`
}

// Health is what HNS says about an object. Extra holds whatever it adds.
type Health struct {
	Data  json.RawMessage `json:"Data,omitempty"`
	Extra json.RawMessage `json:"Extra,omitempty"`
}

// MacRange is a range of MAC addresses, "00-15-5D-AB-C0-00".
type MacRange struct {
	StartMacAddress string `json:"StartMacAddress,omitempty"`
	EndMacAddress   string `json:"EndMacAddress,omitempty"`
}

// MacPool is where a network takes the MAC addresses of its endpoints from.
type MacPool struct {
	Ranges []MacRange `json:"Ranges,omitempty"`
}

// DNS is the resolver configuration of a network or endpoint.
type DNS struct {
	Domain     string   `json:"Domain,omitempty"`
	Search     []string `json:"Search,omitempty"`
	ServerList []string `json:"ServerList,omitempty"`
	Options    []string `json:"Options,omitempty"`
}

// NetRoute is a route of a subnet or endpoint. (hcsshim calls it Route; the
// object of the same name is [Route].)
type NetRoute struct {
	NextHop           string `json:"NextHop,omitempty"`
	DestinationPrefix string `json:"DestinationPrefix,omitempty"`
	Metric            uint16 `json:"Metric,omitempty"`
}

// Subnet is one prefix of a network.
type Subnet struct {
	IpAddressPrefix string     `json:"IpAddressPrefix,omitempty"`
	Policies        []Policy   `json:"Policies,omitempty"`
	Routes          []NetRoute `json:"Routes,omitempty"`
	Flags           uint32     `json:"Flags,omitempty"`
}

// Prefix returns the subnet's prefix, or the zero Prefix when it is malformed.
func (s Subnet) Prefix() netip.Prefix {
	p, err := netip.ParsePrefix(s.IpAddressPrefix)
	if err != nil {
		return netip.Prefix{}
	}
	return p.Masked()
}

// Gateway returns the next hop of the subnet's default route.
func (s Subnet) Gateway() netip.Addr {
	for _, r := range s.Routes {
		if p, err := netip.ParsePrefix(r.DestinationPrefix); err == nil && p.Bits() != 0 {
			continue
		}
		if a, err := netip.ParseAddr(r.NextHop); err == nil {
			return a
		}
	}
	return netip.Addr{}
}

// Ipam is one address space of a network; Type is "Static" or "DHCP".
type Ipam struct {
	Type    string   `json:"Type,omitempty"`
	Subnets []Subnet `json:"Subnets,omitempty"`
}

// Network is a HostComputeNetwork.
type Network struct {
	ID            string        `json:"ID,omitempty"`
	Name          string        `json:"Name,omitempty"`
	Type          NetworkType   `json:"Type,omitempty"`
	Policies      []Policy      `json:"Policies,omitempty"`
	MacPool       MacPool       `json:"MacPool,omitzero"`
	Dns           DNS           `json:"Dns,omitzero"`
	Ipams         []Ipam        `json:"Ipams,omitempty"`
	Flags         NetworkFlags  `json:"Flags,omitempty"`
	Health        Health        `json:"Health,omitzero"`
	SchemaVersion SchemaVersion `json:"SchemaVersion,omitzero"`

	// ManagementIP is the node's address on this network's adapter. HNS v1
	// shows it; HCN v2 does not. It is the VIP of NodePort load balancers, of
	// OutBoundNAT without one, and the default SourceVIP.
	ManagementIP netip.Addr `json:"-"`
	// NotShown names the fields that a dump does not show because they were cut off.
	NotShown []string `json:"-"`
	// Extensions are those of the network's switch. Only HNS v1 shows them.
	Extensions []SwitchExtension `json:"-"`
	// DNSServerCompartment is a field of HNS v1.
	DNSServerCompartment uint32 `json:"-"`
	// Origin is the configuration behind the network.
	Origin *trace.Origin `json:"-"`
}

// Is reports whether the network has one of the types, without regard to case.
func (n *Network) Is(types ...NetworkType) bool {
	return slices.ContainsFunc(types, func(t NetworkType) bool { return strings.EqualFold(string(t), string(n.Type)) })
}

// Subnets returns the subnets of all address spaces in order.
func (n *Network) Subnets() []Subnet {
	var all []Subnet
	for _, i := range n.Ipams {
		all = append(all, i.Subnets...)
	}
	return all
}

// VSID returns the virtual network identifier of the first subnet that has one.
func (n *Network) VSID() (uint32, bool) {
	for _, s := range n.Subnets() {
		for v := range EachSettings[VSIDSettings](s.Policies) {
			return v.IsolationId, true
		}
	}
	return 0, false
}

// RemoteSubnets yields the network's RemoteSubnetRoute policies in order.
func (n *Network) RemoteSubnets() iter.Seq[RemoteSubnet] {
	return func(yield func(RemoteSubnet) bool) {
		for _, r := range eachValue[RemoteSubnet](n.Policies) {
			if !yield(r) {
				return
			}
		}
	}
}

// drMacAddress returns the MAC address of the network's distributed router, or
// "" when it has none.
func (n *Network) drMacAddress() string {
	for v := range EachSettings[DrMacAddressSettings](n.Policies) {
		return v.Address
	}
	return ""
}

// vxlanPort returns the UDP port that the network's VxlanPort policy sets, or 0.
func (n *Network) vxlanPort() uint16 {
	for v := range EachSettings[VxlanPortSettings](n.Policies) {
		return v.Port
	}
	return 0
}

func (n Network) clone() *Network {
	n.Policies = slices.Clone(n.Policies)
	n.MacPool.Ranges = slices.Clone(n.MacPool.Ranges)
	n.Extensions = slices.Clone(n.Extensions)
	n.Dns = n.Dns.clone()
	n.Ipams = slices.Clone(n.Ipams)
	for i := range n.Ipams {
		subnets := slices.Clone(n.Ipams[i].Subnets)
		for j := range subnets {
			subnets[j].Policies = slices.Clone(subnets[j].Policies)
			subnets[j].Routes = slices.Clone(subnets[j].Routes)
		}
		n.Ipams[i].Subnets = subnets
	}
	return &n
}

func (d DNS) clone() DNS {
	d.Search, d.ServerList, d.Options = slices.Clone(d.Search), slices.Clone(d.ServerList), slices.Clone(d.Options)
	return d
}
