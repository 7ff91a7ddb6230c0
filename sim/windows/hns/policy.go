package hns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// The policy types of HCN v2 (hcsshim hcn/hcnpolicy.go; VLAN, Encryption and
// InterfaceParameters on endpoints: HNS_Schema.md).
const (
	PolicyPortMapping         = "PortMapping"
	PolicyACL                 = "ACL"
	PolicyQOS                 = "QOS"
	PolicyL2Driver            = "L2Driver"
	PolicyOutBoundNAT         = "OutBoundNAT"
	PolicySDNRoute            = "SDNRoute"
	PolicyL4Proxy             = "L4Proxy"
	PolicyL4WFPProxy          = "L4WFPPROXY"
	PolicyPortName            = "PortName"
	PolicyEncapOverhead       = "EncapOverhead"
	PolicyIov                 = "Iov"
	PolicyProviderAddress     = "ProviderAddress"
	PolicyInterfaceConstraint = "InterfaceConstraint"
	PolicyTierAcl             = "TierAcl"
	PolicyEncryption          = "Encryption"
	PolicyInterfaceParameters = "InterfaceParameters"

	PolicySourceMacAddress  = "SourceMacAddress"
	PolicyNetAdapterName    = "NetAdapterName"
	PolicyVSwitchExtension  = "VSwitchExtension"
	PolicyDrMacAddress      = "DrMacAddress"
	PolicyAutomaticDNS      = "AutomaticDNS"
	PolicyRemoteSubnetRoute = "RemoteSubnetRoute"
	PolicyVxlanPort         = "VxlanPort"
	PolicyHostRoute         = "HostRoute"
	PolicySetPolicy         = "SetPolicy"
	PolicyLayerConstraint   = "LayerConstraint"
	PolicyNetworkACL        = "NetworkACL"

	PolicyVLAN = "VLAN"
	PolicyVSID = "VSID"
)

// Policy is one policy of a network, subnet or endpoint in the form of HCN v2.
type Policy struct {
	Type     string          `json:"Type"`
	Settings json.RawMessage `json:"Settings,omitempty"`
	// Origin is the configuration behind the policy; it survives Create and
	// Modify, so that a rule can name it.
	Origin *trace.Origin `json:"-"`
}

// NewPolicy makes a policy from typed settings. It panics when the settings
// cannot be JSON, which only a programming error can cause.
func NewPolicy(typ string, settings any) Policy {
	raw, err := json.Marshal(settings)
	if err != nil {
		panic(fmt.Sprintf("hns: settings of policy %s: %v", typ, err))
	}
	return Policy{Type: typ, Settings: raw}
}

// From returns the policy with its origin set.
func (p Policy) From(o *trace.Origin) Policy {
	p.Origin = o
	return p
}

// Is reports whether the policy has the type, without regard to case: HNS takes
// "OutboundNAT" for "OutBoundNAT".
func (p Policy) Is(typ string) bool { return strings.EqualFold(p.Type, typ) }

// PoliciesOf returns the policies of one type in order.
func PoliciesOf(ps []Policy, typ string) []Policy {
	var found []Policy
	for _, p := range ps {
		if p.Is(typ) {
			found = append(found, p)
		}
	}
	return found
}

// DecodePolicy reads a policy's settings. Unknown fields are ignored, as HNS
// ignores them.
func DecodePolicy[T any](p Policy) (T, error) {
	var v T
	if len(bytes.TrimSpace(p.Settings)) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(p.Settings, &v); err != nil {
		return v, fmt.Errorf("settings of policy %s: %w", p.Type, err)
	}
	return v, nil
}
