package hns

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// PolicyType is the type of a policy, in the spelling of HCN v2 once HNS has
// admitted it.
type PolicyType string

// The policy types of HCN v2 (hcsshim hcn/hcnpolicy.go; VLAN, Encryption and
// InterfaceParameters on endpoints: HNS_Schema.md).
const (
	PolicyPortMapping         PolicyType = "PortMapping"
	PolicyACL                 PolicyType = "ACL"
	PolicyQOS                 PolicyType = "QOS"
	PolicyL2Driver            PolicyType = "L2Driver"
	PolicyOutBoundNAT         PolicyType = "OutBoundNAT"
	PolicySDNRoute            PolicyType = "SDNRoute"
	PolicyL4Proxy             PolicyType = "L4Proxy"
	PolicyL4WFPProxy          PolicyType = "L4WFPPROXY"
	PolicyPortName            PolicyType = "PortName"
	PolicyEncapOverhead       PolicyType = "EncapOverhead"
	PolicyIov                 PolicyType = "Iov"
	PolicyProviderAddress     PolicyType = "ProviderAddress"
	PolicyInterfaceConstraint PolicyType = "InterfaceConstraint"
	PolicyTierAcl             PolicyType = "TierAcl"
	PolicyEncryption          PolicyType = "Encryption"
	PolicyInterfaceParameters PolicyType = "InterfaceParameters"

	PolicySourceMacAddress  PolicyType = "SourceMacAddress"
	PolicyNetAdapterName    PolicyType = "NetAdapterName"
	PolicyVSwitchExtension  PolicyType = "VSwitchExtension"
	PolicyDrMacAddress      PolicyType = "DrMacAddress"
	PolicyAutomaticDNS      PolicyType = "AutomaticDNS"
	PolicyRemoteSubnetRoute PolicyType = "RemoteSubnetRoute"
	PolicyVxlanPort         PolicyType = "VxlanPort"
	PolicyHostRoute         PolicyType = "HostRoute"
	PolicySetPolicy         PolicyType = "SetPolicy"
	PolicyLayerConstraint   PolicyType = "LayerConstraint"
	PolicyNetworkACL        PolicyType = "NetworkACL"

	PolicyVLAN PolicyType = "VLAN"
	PolicyVSID PolicyType = "VSID"
)

// Policy is one policy of a network, subnet or endpoint in the form of HCN v2.
// Its settings are decoded once, when it is made: by [NewPolicy], by
// [ParsePolicy] or out of the JSON of an object that holds it.
type Policy struct {
	// Origin is the configuration behind the policy; it survives Create and
	// Modify, so that a rule can name it.
	Origin *trace.Origin
	// NotShown names the settings that a dump does not show because they were cut
	// off; what they decide is not known.
	NotShown []string

	typ PolicyType
	// settings are what HNS's JSON says; nil for a type that this package has no
	// settings for, and for settings that do not fit the type.
	settings Settings
	// value is what the compiler works with: the settings, or what their parse
	// made of them. It is nil when there is nothing to compile.
	value any
	// text are the settings as they were written. They are written out again as
	// they came in, unknown fields included.
	text json.RawMessage
	// v1NAT is set for a policy of type NAT of HNS v1.
	v1NAT bool
	// malformed is why HNS refuses the settings before it looks at their values.
	malformed error
}

// Settings are the settings of a policy in HNS's own words: addresses, prefixes
// and lists are text. There is one Go type for each policy type.
type Settings interface {
	Type() PolicyType
}

// checker is implemented by settings whose values HNS checks. What is wrong goes
// to c; at is the policy's place in the request.
type checker interface {
	check(c *policyCheck, at string)
}

// parser is implemented by settings with addresses, prefixes or lists in text.
// The value holds them parsed. Parts that are malformed are left out, and ok is
// false when nothing is left: HNS refuses such a policy, but a dump may hold it.
type parser interface {
	parse() (value any, ok bool)
}

// NewPolicy makes a policy from its settings.
func NewPolicy(s Settings) Policy {
	p := Policy{typ: s.Type()}
	p.text, p.malformed = json.Marshal(s)
	p.setSettings(s)
	return p
}

// ParsePolicy makes a policy from JSON. Settings that do not fit the type are
// not an error here: HNS refuses the policy when it is used.
func ParsePolicy(typ PolicyType, settings json.RawMessage) Policy {
	p := Policy{typ: typ, text: settings}
	s, err := decodeSettings(typ, settings)
	if err != nil {
		p.malformed = err
	} else if s != nil {
		p.setSettings(s)
	}
	return p
}

// setSettings keeps decoded settings and parses them.
func (p *Policy) setSettings(s Settings) {
	p.settings, p.value = s, s
	if s, ok := s.(parser); ok {
		if p.value, ok = s.parse(); !ok {
			p.value = nil
		}
	}
}

// Type is the policy's type, as it was written until HNS has admitted it.
func (p Policy) Type() PolicyType { return p.typ }

// From returns the policy with its origin set.
func (p Policy) From(o *trace.Origin) Policy {
	p.Origin = o
	return p
}

// Is reports whether the policy has the type, without regard to case: HNS takes
// "OutboundNAT" for "OutBoundNAT".
func (p Policy) Is(typ PolicyType) bool { return strings.EqualFold(string(p.typ), string(typ)) }

// PoliciesOf returns the policies of one type in order.
func PoliciesOf(ps []Policy, typ PolicyType) []Policy {
	var found []Policy
	for _, p := range ps {
		if p.Is(typ) {
			found = append(found, p)
		}
	}
	return found
}

// SettingsOf returns the settings of a policy if they are T's.
func SettingsOf[T Settings](p Policy) (T, bool) {
	s, ok := p.settings.(T)
	return s, ok
}

// EachSettings yields the settings of the policies that T belongs to, in order.
func EachSettings[T Settings](ps []Policy) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, p := range ps {
			if s, ok := p.settings.(T); ok && !yield(s) {
				return
			}
		}
	}
}

// eachValue yields the policies with a value of type T, in order.
func eachValue[T any](ps []Policy) iter.Seq2[Policy, T] {
	return func(yield func(Policy, T) bool) {
		for _, p := range ps {
			if v, ok := p.value.(T); ok && !yield(p, v) {
				return
			}
		}
	}
}
