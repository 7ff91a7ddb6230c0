package hns

// QOSSettings cap the endpoint's sending rate.
type QOSSettings struct {
	MaximumOutgoingBandwidthInBytes uint64 `json:"MaximumOutgoingBandwidthInBytes"`
}

// Type is PolicyQOS.
func (QOSSettings) Type() PolicyType { return PolicyQOS }

// check refuses nothing: any number is valid.
func (QOSSettings) check(*policyCheck, string) {}

// EncapOverheadSettings reserve bytes of the MTU for the tunnel header.
type EncapOverheadSettings struct {
	Overhead uint16 `json:"Overhead,omitempty"`
}

// Type is PolicyEncapOverhead.
func (EncapOverheadSettings) Type() PolicyType { return PolicyEncapOverhead }

// check refuses nothing: any number will do.
func (EncapOverheadSettings) check(*policyCheck, string) {}

// PortNameSettings name the endpoint's switch port.
type PortNameSettings struct {
	Name string `json:"Name,omitempty"`
}

// Type is PolicyPortName.
func (PortNameSettings) Type() PolicyType { return PolicyPortName }

// IovSettings ask for a virtual function of the NIC.
type IovSettings struct {
	IovOffloadWeight    uint32 `json:"IovOffloadWeight,omitempty"`
	QueuePairsRequested uint32 `json:"QueuePairsRequested,omitempty"`
	InterruptModeration uint32 `json:"InterruptModeration,omitempty"`
}

// Type is PolicyIov.
func (IovSettings) Type() PolicyType { return PolicyIov }

// InterfaceConstraintSettings tie a network or endpoint to an adapter.
type InterfaceConstraintSettings struct {
	InterfaceGuid        string `json:"InterfaceGuid,omitempty"`
	InterfaceLuid        uint64 `json:"InterfaceLuid,omitempty"`
	InterfaceIndex       uint32 `json:"InterfaceIndex,omitempty"`
	InterfaceMediaType   uint32 `json:"InterfaceMediaType,omitempty"`
	InterfaceAlias       string `json:"InterfaceAlias,omitempty"`
	InterfaceDescription string `json:"InterfaceDescription,omitempty"`
}

// Type is PolicyInterfaceConstraint.
func (InterfaceConstraintSettings) Type() PolicyType { return PolicyInterfaceConstraint }
