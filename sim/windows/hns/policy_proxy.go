package hns

// L4ProxySettings redirect connections to a proxy by VFP.
type L4ProxySettings struct {
	IP          string   `json:"IP,omitempty"`
	Port        string   `json:"Port,omitempty"`
	Protocol    uint32   `json:"Protocol,omitempty"`
	Exceptions  []string `json:"Exceptions,omitempty"`
	Destination string   `json:"Destination"`
	OutboundNAT bool     `json:"OutboundNAT,omitempty"`
}

// Type is PolicyL4Proxy.
func (L4ProxySettings) Type() PolicyType { return PolicyL4Proxy }

func (s L4ProxySettings) check(c *policyCheck, at string) { c.prefixes(at, "Exceptions", s.Exceptions) }

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

// Type is PolicyL4WFPProxy.
func (L4WfpProxySettings) Type() PolicyType { return PolicyL4WFPProxy }
