package hns

// VSIDSettings isolate a subnet of an overlay network.
type VSIDSettings struct {
	IsolationId uint32 `json:"IsolationId"`
}

// Type is PolicyVSID.
func (VSIDSettings) Type() PolicyType { return PolicyVSID }

func (s VSIDSettings) check(c *policyCheck, at string) {
	if s.IsolationId == 0 || s.IsolationId >= 1<<24 {
		c.bad(at, "IsolationId is %d; it must be 1 to 16777215", s.IsolationId)
	}
}

// VLANSettings tag a subnet or an endpoint.
type VLANSettings struct {
	IsolationId uint32 `json:"IsolationId"`
}

// Type is PolicyVLAN.
func (VLANSettings) Type() PolicyType { return PolicyVLAN }

func (s VLANSettings) check(c *policyCheck, at string) {
	if s.IsolationId > 4094 {
		c.bad(at, "IsolationId is %d; it must be at most 4094", s.IsolationId)
	}
}

// VxlanPortSettings set the UDP port of the tunnel.
type VxlanPortSettings struct {
	Port uint16 `json:"Port"`
}

// Type is PolicyVxlanPort.
func (VxlanPortSettings) Type() PolicyType { return PolicyVxlanPort }

func (s VxlanPortSettings) check(c *policyCheck, at string) {
	if s.Port == 0 {
		c.bad(at, "Port must be given")
	}
}

// DrMacAddressSettings give the MAC address of the network's distributed router.
type DrMacAddressSettings struct {
	Address string `json:"Address,omitempty"`
}

// Type is PolicyDrMacAddress.
func (DrMacAddressSettings) Type() PolicyType { return PolicyDrMacAddress }

func (s DrMacAddressSettings) check(c *policyCheck, at string) { c.mac(at, "Address", s.Address) }

// SourceMacAddressSettings set the MAC address that a network sends with.
type SourceMacAddressSettings struct {
	SourceMacAddress string `json:"SourceMacAddress,omitempty"`
}

// Type is PolicySourceMacAddress.
func (SourceMacAddressSettings) Type() PolicyType { return PolicySourceMacAddress }

// NetAdapterNameSettings choose the adapter under a network.
type NetAdapterNameSettings struct {
	NetworkAdapterName string `json:"NetworkAdapterName,omitempty"`
}

// Type is PolicyNetAdapterName.
func (NetAdapterNameSettings) Type() PolicyType { return PolicyNetAdapterName }

// VSwitchExtensionSettings turn an extension of the switch on or off.
type VSwitchExtensionSettings struct {
	ExtensionID string `json:"ExtensionID,omitempty"`
	Enable      bool   `json:"Enable,omitempty"`
}

// Type is PolicyVSwitchExtension.
func (VSwitchExtensionSettings) Type() PolicyType { return PolicyVSwitchExtension }

// AutomaticDNSSettings turn HNS's own name service on or off.
type AutomaticDNSSettings struct {
	Enable bool `json:"Enable,omitempty"`
}

// Type is PolicyAutomaticDNS.
func (AutomaticDNSSettings) Type() PolicyType { return PolicyAutomaticDNS }

// LayerConstraintSettings name a VFP layer.
type LayerConstraintSettings struct {
	LayerId string `json:"LayerId,omitempty"`
}

// Type is PolicyLayerConstraint.
func (LayerConstraintSettings) Type() PolicyType { return PolicyLayerConstraint }
