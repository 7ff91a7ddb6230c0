package hns

import (
	"reflect"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// scope is the kind of object that has a policy.
type scope string

const (
	onNetwork  scope = "network"
	onSubnet   scope = "subnet"
	onEndpoint scope = "endpoint"
)

// policyKind is all that depends on the type of a policy before its rules are made.
type policyKind struct {
	typ PolicyType
	on  []scope
	// needs is the feature of a build that the type needs, "" for none.
	needs builds.Feature
	// decode reads the settings; nil for a type that this package has no settings for.
	decode decoder
	// v1 is the type's name in HNS v1 where it has another one, and v1Fields maps the
	// names of v1's fields to those of v2.
	v1       string
	v1Fields map[string]string
}

// policyKinds has a row for each type, with the objects on which it exists (hcsshim
// hcn/hcnpolicy.go; VLAN, Encryption and InterfaceParameters on endpoints: HNS_Schema.md)
// and its name in v1 (hcsshim internal/hns/hnspolicy.go). A type that is not here is
// refused. Types with rules have those in the files rules_*.go.
var policyKinds = []policyKind{
	{
		typ: PolicyPortMapping, on: []scope{onEndpoint}, decode: decode[PortMappingSettings],
		// A NAT policy has the fields of a PortMapping, but is not the same: Policy keeps which
		// it was (hns.nat-policy-v1).
		v1: natV1,
	},
	{
		typ: PolicyACL, on: []scope{onEndpoint}, decode: decode[ACLSettings],
		v1Fields: map[string]string{"Protocol": "Protocols", "LocalPort": "LocalPorts", "RemotePort": "RemotePorts",
			"InternalPort": "LocalPorts"},
	},
	{typ: PolicyQOS, on: []scope{onEndpoint}, decode: decode[QOSSettings]},
	{typ: PolicyL2Driver, on: []scope{onEndpoint}},
	{
		typ: PolicyOutBoundNAT, on: []scope{onEndpoint}, decode: decode[OutBoundNATSettings],
		v1Fields: map[string]string{"VIP": "VirtualIP", "ExceptionList": "Exceptions"},
	},
	{typ: PolicySDNRoute, on: []scope{onEndpoint}, decode: decode[SDNRouteSettings], v1: "ROUTE"},
	{typ: PolicySourceMacAddress, on: []scope{onNetwork}, decode: decode[SourceMacAddressSettings]},
	{typ: PolicyNetAdapterName, on: []scope{onNetwork}, decode: decode[NetAdapterNameSettings]},
	{typ: PolicyVSwitchExtension, on: []scope{onNetwork}, decode: decode[VSwitchExtensionSettings]},
	{typ: PolicyDrMacAddress, on: []scope{onNetwork}, decode: decode[DrMacAddressSettings]},
	{typ: PolicyAutomaticDNS, on: []scope{onNetwork}, decode: decode[AutomaticDNSSettings]},
	{
		typ: PolicyL4Proxy, on: []scope{onEndpoint, onNetwork}, needs: builds.L4Proxy, decode: decode[L4ProxySettings],
		v1: "PROXY", v1Fields: map[string]string{"ExceptionList": "Exceptions", "OutboundNat": "OutboundNAT"},
	},
	{typ: PolicyL4WFPProxy, on: []scope{onEndpoint}, needs: builds.L4WfpProxy, decode: decode[L4WfpProxySettings]},
	{typ: PolicyPortName, on: []scope{onEndpoint}, decode: decode[PortNameSettings]},
	{typ: PolicyEncapOverhead, on: []scope{onEndpoint}, decode: decode[EncapOverheadSettings]},
	{typ: PolicyIov, on: []scope{onEndpoint}, decode: decode[IovSettings]},
	{
		typ: PolicyProviderAddress, on: []scope{onEndpoint, onNetwork}, decode: decode[ProviderAddressSettings],
		v1: "PA", v1Fields: map[string]string{"PA": "ProviderAddress"},
	},
	{typ: PolicyInterfaceConstraint, on: []scope{onEndpoint, onNetwork}, decode: decode[InterfaceConstraintSettings]},
	{typ: PolicyTierAcl, on: []scope{onEndpoint}, needs: builds.TierAcl, decode: decode[TierAclSettings]},
	{
		typ: PolicyVLAN, on: []scope{onEndpoint, onSubnet}, decode: decode[VLANSettings],
		v1Fields: map[string]string{"VLAN": "IsolationId"},
	},
	{typ: PolicyVSID, on: []scope{onSubnet}, decode: decode[VSIDSettings], v1Fields: map[string]string{"VSID": "IsolationId"}},
	{typ: PolicyEncryption, on: []scope{onEndpoint}},
	{typ: PolicyInterfaceParameters, on: []scope{onEndpoint}},
	{typ: PolicyRemoteSubnetRoute, on: []scope{onNetwork}, needs: builds.RemoteSubnet, decode: decode[RemoteSubnetRouteSettings]},
	{typ: PolicyVxlanPort, on: []scope{onNetwork}, needs: builds.VxlanPort, decode: decode[VxlanPortSettings]},
	{typ: PolicyHostRoute, on: []scope{onNetwork}, needs: builds.HostRoute, decode: decode[HostRouteSettings]},
	{typ: PolicySetPolicy, on: []scope{onNetwork}, needs: builds.SetPolicy, decode: decode[SetPolicySettings]},
	{typ: PolicyLayerConstraint, on: []scope{onNetwork}, decode: decode[LayerConstraintSettings]},
	{typ: PolicyNetworkACL, on: []scope{onNetwork}, needs: builds.NetworkACL, decode: decode[NetworkACLSettings]},
}

var (
	kindsByType = map[string]*policyKind{} // in lower case
	kindsByV1   = map[string]*policyKind{} // in upper case
)

func init() {
	for i := range policyKinds {
		k := &policyKinds[i]
		kindsByType[strings.ToLower(string(k.typ))] = k
		if k.v1 != "" {
			kindsByV1[k.v1] = k
		}
	}
}

// policyKindOf returns the row of a type, without regard to case: nil for a type that is not
// in HCN v2.
func policyKindOf(typ PolicyType) *policyKind { return kindsByType[strings.ToLower(string(typ))] }

// hasSettings reports whether this package has settings for a type.
func hasSettings(typ PolicyType) bool {
	k := policyKindOf(typ)
	return k != nil && k.decode != nil
}

// Fields are the fields that the settings of a type have, in the order of hcsshim's types; nil for a
// type that this package has no settings for. HNS ignores others.
func (typ PolicyType) Fields() (names []string) {
	if !hasSettings(typ) {
		return nil
	}
	s, _ := policyKindOf(typ).decode(nil)
	for f := range reflect.TypeOf(s).Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// PolicyTypes are the types that have settings.
func PolicyTypes() (all []PolicyType) {
	for i := range policyKinds {
		if policyKinds[i].decode != nil {
			all = append(all, policyKinds[i].typ)
		}
	}
	return all
}

// typesOn returns the types that exist on an object.
func typesOn(s scope) (types []PolicyType) {
	for i := range policyKinds {
		if slices.Contains(policyKinds[i].on, s) {
			types = append(types, policyKinds[i].typ)
		}
	}
	return types
}
