package hns

// Typed settings of the policies, with the JSON of hcsshim hcn/hcnpolicy.go and,
// where hcsshim lacks a field, of HNS_Schema.md. Addresses and prefixes stay
// strings here: a dump must survive a round trip as it is.

// NatFlags of PortMapping and OutBoundNAT.
const (
	NatFlagLocalRoutedVIP uint32 = 1
	NatFlagIPv6           uint32 = 2
)

// PortMappingSettings publish a port of the endpoint on the node (hostPort).
type PortMappingSettings struct {
	Protocol     uint32 `json:"Protocol,omitempty"`
	InternalPort uint16 `json:"InternalPort,omitempty"`
	ExternalPort uint16 `json:"ExternalPort,omitempty"`
	VIP          string `json:"VIP,omitempty"`
	Flags        uint32 `json:"Flags,omitempty"`
}

// OutBoundNATSettings translate the source of what leaves the endpoint.
// VirtualIP left empty means the management address. A destination in
// Exceptions is not translated; with Destinations only those are.
type OutBoundNATSettings struct {
	VirtualIP        string   `json:"VirtualIP,omitempty"`
	Exceptions       []string `json:"Exceptions,omitempty"`
	Destinations     []string `json:"Destinations,omitempty"`
	Flags            uint32   `json:"Flags,omitempty"`
	MaxPortPoolUsage uint16   `json:"MaxPortPoolUsage,omitempty"`
}

// SDNRouteSettings push traffic for a prefix to the host.
type SDNRouteSettings struct {
	DestinationPrefix        string `json:"DestinationPrefix,omitempty"`
	NextHop                  string `json:"NextHop,omitempty"`
	NeedEncap                bool   `json:"NeedEncap,omitempty"`
	AutomaticEndpointMonitor bool   `json:"AutomaticEndpointMonitor,omitempty"`
}

// Values of ACLSettings.
const (
	ACLAllow = "Allow"
	ACLBlock = "Block"
	ACLPass  = "Pass"

	ACLIn  = "In"
	ACLOut = "Out"

	ACLRuleHost   = "Host"
	ACLRuleSwitch = "Switch"
)

// ACLSettings are one rule of an endpoint's or network's access list. Protocols,
// addresses and ports are comma separated lists; empty means any, and so does
// protocol 256. A lower Priority comes first.
type ACLSettings struct {
	Protocols       string `json:"Protocols,omitempty"`
	Action          string `json:"Action"`
	Direction       string `json:"Direction"`
	LocalAddresses  string `json:"LocalAddresses,omitempty"`
	RemoteAddresses string `json:"RemoteAddresses,omitempty"`
	LocalPorts      string `json:"LocalPorts,omitempty"`
	RemotePorts     string `json:"RemotePorts,omitempty"`
	RuleType        string `json:"RuleType,omitempty"`
	Priority        uint16 `json:"Priority,omitempty"`
	Id              string `json:"Id,omitempty"`
}

// TierAclSettings are an ordered tier of rules.
type TierAclSettings struct {
	Name         string        `json:"Name"`
	Direction    string        `json:"Direction"`
	Order        uint16        `json:"Order"`
	TierAclRules []TierAclRule `json:"TierAclRules,omitempty"`
}

// TierAclRule is one rule of a tier.
type TierAclRule struct {
	Id                string `json:"Id,omitempty"`
	Protocols         string `json:"Protocols,omitempty"`
	TierAclRuleAction string `json:"TierAclRuleAction"`
	LocalAddresses    string `json:"LocalAddresses,omitempty"`
	RemoteAddresses   string `json:"RemoteAddresses,omitempty"`
	LocalPorts        string `json:"LocalPorts,omitempty"`
	RemotePorts       string `json:"RemotePorts,omitempty"`
	Priority          uint16 `json:"Priority,omitempty"`
}

// ProviderAddressSettings name the node that carries an endpoint on the underlay.
type ProviderAddressSettings struct {
	ProviderAddress string `json:"ProviderAddress,omitempty"`
}

// RemoteSubnetRouteSettings lead a prefix through the tunnel to another node.
type RemoteSubnetRouteSettings struct {
	DestinationPrefix           string `json:"DestinationPrefix"`
	IsolationId                 uint16 `json:"IsolationId"`
	ProviderAddress             string `json:"ProviderAddress"`
	DistributedRouterMacAddress string `json:"DistributedRouterMacAddress"`
}

// VxlanPortSettings set the UDP port of the tunnel.
type VxlanPortSettings struct {
	Port uint16 `json:"Port"`
}

// VSIDSettings and VLANSettings isolate a subnet.
type VSIDSettings struct {
	IsolationId uint32 `json:"IsolationId"`
}

// VLANSettings tag a subnet.
type VLANSettings struct {
	IsolationId uint32 `json:"IsolationId"`
}

// DrMacAddressSettings give the MAC address of the network's distributed router.
type DrMacAddressSettings struct {
	Address string `json:"Address,omitempty"`
}

// HostRouteSettings have no field: the policy's presence is what counts.
type HostRouteSettings struct{}

// L4ProxySettings redirect connections to a proxy by VFP.
type L4ProxySettings struct {
	IP          string   `json:"IP,omitempty"`
	Port        string   `json:"Port,omitempty"`
	Protocol    uint32   `json:"Protocol,omitempty"`
	Exceptions  []string `json:"Exceptions,omitempty"`
	Destination string   `json:"Destination"`
	OutboundNAT bool     `json:"OutboundNAT,omitempty"`
}

// L4WfpProxySettings redirect connections to a proxy by WFP.
type L4WfpProxySettings struct {
	InboundProxyPort   string          `json:"InboundProxyPort,omitempty"`
	OutboundProxyPort  string          `json:"OutboundProxyPort,omitempty"`
	FilterTuple        FiveTuple       `json:"FilterTuple,omitzero"`
	UserSID            string          `json:"UserSID,omitempty"`
	InboundExceptions  ProxyExceptions `json:"InboundExceptions,omitzero"`
	OutboundExceptions ProxyExceptions `json:"OutboundExceptions,omitzero"`
}

// FiveTuple selects what an L4WfpProxy redirects.
type FiveTuple struct {
	Protocols       string `json:"Protocols,omitempty"`
	LocalAddresses  string `json:"LocalAddresses,omitempty"`
	RemoteAddresses string `json:"RemoteAddresses,omitempty"`
	LocalPorts      string `json:"LocalPorts,omitempty"`
	RemotePorts     string `json:"RemotePorts,omitempty"`
	Priority        uint16 `json:"Priority,omitempty"`
}

// ProxyExceptions are not redirected.
type ProxyExceptions struct {
	IpAddressExceptions []string `json:"IpAddressExceptions,omitempty"`
	PortExceptions      []string `json:"PortExceptions,omitempty"`
}

// QOSSettings cap the endpoint's sending rate.
type QOSSettings struct {
	MaximumOutgoingBandwidthInBytes uint64 `json:"MaximumOutgoingBandwidthInBytes"`
}

// EncapOverheadSettings reserve bytes of the MTU for the tunnel header.
type EncapOverheadSettings struct {
	Overhead uint16 `json:"Overhead,omitempty"`
}

// PortNameSettings name the endpoint's switch port.
type PortNameSettings struct {
	Name string `json:"Name,omitempty"`
}

// IovSettings ask for a virtual function of the NIC.
type IovSettings struct {
	IovOffloadWeight    uint32 `json:"IovOffloadWeight,omitempty"`
	QueuePairsRequested uint32 `json:"QueuePairsRequested,omitempty"`
	InterruptModeration uint32 `json:"InterruptModeration,omitempty"`
}

// InterfaceConstraintSettings tie a network or endpoint to an adapter.
type InterfaceConstraintSettings struct {
	InterfaceGuid        string `json:"InterfaceGuid,omitempty"`
	InterfaceLuid        uint64 `json:"InterfaceLuid,omitempty"`
	InterfaceIndex       uint32 `json:"InterfaceIndex,omitempty"`
	InterfaceMediaType   uint32 `json:"InterfaceMediaType,omitempty"`
	InterfaceAlias       string `json:"InterfaceAlias,omitempty"`
	InterfaceDescription string `json:"InterfaceDescription,omitempty"`
}

// SourceMacAddressSettings set the MAC address that a network sends with.
type SourceMacAddressSettings struct {
	SourceMacAddress string `json:"SourceMacAddress,omitempty"`
}

// NetAdapterNameSettings choose the adapter under a network.
type NetAdapterNameSettings struct {
	NetworkAdapterName string `json:"NetworkAdapterName,omitempty"`
}

// VSwitchExtensionSettings turn an extension of the switch on or off.
type VSwitchExtensionSettings struct {
	ExtensionID string `json:"ExtensionID,omitempty"`
	Enable      bool   `json:"Enable,omitempty"`
}

// AutomaticDNSSettings turn HNS's own name service on or off.
type AutomaticDNSSettings struct {
	Enable bool `json:"Enable,omitempty"`
}

// SetPolicySettings are a named set of addresses that ACLs refer to.
type SetPolicySettings struct {
	Id         string `json:"Id"`
	Name       string `json:"Name"`
	PolicyType string `json:"PolicyType"`
	Values     string `json:"Values"`
}

// LayerConstraintSettings name a VFP layer.
type LayerConstraintSettings struct {
	LayerId string `json:"LayerId,omitempty"`
}
