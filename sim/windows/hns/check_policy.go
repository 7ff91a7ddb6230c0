package hns

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// scope is where a policy sits.
type scope string

const (
	onNetwork  scope = "network"
	onSubnet   scope = "subnet"
	onEndpoint scope = "endpoint"
)

// policyTypes lists the types that exist in each place (hcsshim
// hcn/hcnpolicy.go; VLAN, Encryption and InterfaceParameters on endpoints:
// HNS_Schema.md). A type that is not here is refused.
var policyTypes = map[scope][]string{
	onEndpoint: {
		PolicyPortMapping, PolicyACL, PolicyQOS, PolicyL2Driver, PolicyOutBoundNAT, PolicySDNRoute, PolicyL4Proxy,
		PolicyL4WFPProxy, PolicyPortName, PolicyEncapOverhead, PolicyIov, PolicyProviderAddress,
		PolicyInterfaceConstraint, PolicyTierAcl, PolicyVLAN, PolicyEncryption, PolicyInterfaceParameters,
	},
	onNetwork: {
		PolicySourceMacAddress, PolicyNetAdapterName, PolicyVSwitchExtension, PolicyDrMacAddress, PolicyAutomaticDNS,
		PolicyInterfaceConstraint, PolicyProviderAddress, PolicyRemoteSubnetRoute, PolicyVxlanPort, PolicyHostRoute,
		PolicySetPolicy, PolicyL4Proxy, PolicyLayerConstraint, PolicyNetworkACL,
	},
	onSubnet: {PolicyVLAN, PolicyVSID},
}

// policyFeatures names the feature that a type needs.
var policyFeatures = map[string]builds.Feature{
	PolicyRemoteSubnetRoute: builds.RemoteSubnet,
	PolicyHostRoute:         builds.HostRoute,
	PolicyVxlanPort:         builds.VxlanPort,
	PolicySetPolicy:         builds.SetPolicy,
	PolicyNetworkACL:        builds.NetworkACL,
	PolicyL4Proxy:           builds.L4Proxy,
	PolicyL4WFPProxy:        builds.L4WfpProxy,
	PolicyTierAcl:           builds.TierAcl,
}

// canonicalType returns the type's spelling in HCN v2, or "" when the scope has
// no such type.
func canonicalType(s scope, typ string) string {
	for _, t := range policyTypes[s] {
		if strings.EqualFold(t, typ) {
			return t
		}
	}
	return ""
}

// policyCheck checks the policies of one object.
type policyCheck struct {
	m     *mistakes
	build *builds.Build
	scope scope
	// network is the network that the policies belong to, its sets included.
	network *Network
	sets    map[string]bool
}

func (s *Service) newPolicyCheck(m *mistakes, sc scope, n *Network) *policyCheck {
	c := &policyCheck{m: m, build: s.build, scope: sc, network: n, sets: map[string]bool{}}
	if n != nil {
		for _, p := range PoliciesOf(n.Policies, PolicySetPolicy) {
			if v, err := DecodePolicy[SetPolicySettings](p); err == nil {
				c.sets[v.Id] = true
			}
		}
	}
	return c
}

// all checks and canonicalises the types of ps in place.
func (c *policyCheck) all(ps []Policy) {
	for i := range ps {
		t := canonicalType(c.scope, ps[i].Type)
		if t == "" {
			c.m.add(ErrInvalidPolicyType, "policies[%d]: there is no %s policy %q; there are %s",
				i, c.scope, ps[i].Type, strings.Join(policyTypes[c.scope], ", "))
			continue
		}
		ps[i].Type = t
		if f, ok := policyFeatures[t]; ok && !c.build.Has(f) {
			c.m.add(ErrNotImplemented, "policies[%d] %s: %s cannot do it (%s)", i, t, c.build, f.Fact().Says)
			continue
		}
		c.one(fmt.Sprintf("policies[%d] %s", i, t), ps[i])
	}
}

func (c *policyCheck) bad(at, format string, args ...any) {
	c.m.add(ErrInvalidPolicy, "%s: %s", at, fmt.Sprintf(format, args...))
}

// settings decodes into v and reports a failure.
func settings[T any](c *policyCheck, at string, p Policy, check func(T)) {
	v, err := DecodePolicy[T](p)
	if err != nil {
		c.bad(at, "%v", err)
		return
	}
	check(v)
}

func (c *policyCheck) one(at string, p Policy) {
	if len(p.Settings) > 0 && !json.Valid(p.Settings) {
		c.bad(at, "settings are not JSON")
		return
	}
	switch p.Type {
	case PolicyOutBoundNAT:
		settings(c, at, p, func(v OutBoundNATSettings) {
			c.address(at, "VirtualIP", v.VirtualIP, true)
			c.prefixes(at, "Exceptions", v.Exceptions)
			c.prefixes(at, "Destinations", v.Destinations)
		})
	case PolicySDNRoute:
		settings(c, at, p, func(v SDNRouteSettings) {
			c.prefix(at, "DestinationPrefix", v.DestinationPrefix)
			c.address(at, "NextHop", v.NextHop, true)
		})
	case PolicyACL, PolicyNetworkACL:
		settings(c, at, p, func(v ACLSettings) { c.acl(at, v) })
	case PolicyTierAcl:
		settings(c, at, p, func(v TierAclSettings) {
			for i, r := range v.TierAclRules {
				c.acl(fmt.Sprintf("%s rule %d", at, i), ACLSettings{
					Protocols: r.Protocols, Action: r.TierAclRuleAction, Direction: v.Direction, LocalAddresses: r.LocalAddresses,
					RemoteAddresses: r.RemoteAddresses, LocalPorts: r.LocalPorts, RemotePorts: r.RemotePorts,
				})
			}
		})
	case PolicyPortMapping:
		settings(c, at, p, func(v PortMappingSettings) {
			if v.Protocol != 6 && v.Protocol != 17 {
				c.bad(at, "Protocol is %d; it must be 6 (TCP) or 17 (UDP)", v.Protocol)
			}
			if v.InternalPort == 0 || v.ExternalPort == 0 {
				c.bad(at, "InternalPort and ExternalPort must be given")
			}
			c.address(at, "VIP", v.VIP, true)
		})
	case PolicyProviderAddress:
		settings(c, at, p, func(v ProviderAddressSettings) { c.address(at, "ProviderAddress", v.ProviderAddress, false) })
	case PolicyRemoteSubnetRoute:
		settings(c, at, p, func(v RemoteSubnetRouteSettings) {
			if c.network != nil && !c.network.Is(Overlay) {
				c.bad(at, "only an overlay network takes it, this one is %s", c.network.Type)
			}
			c.prefix(at, "DestinationPrefix", v.DestinationPrefix)
			c.address(at, "ProviderAddress", v.ProviderAddress, false)
			c.mac(at, "DistributedRouterMacAddress", v.DistributedRouterMacAddress)
		})
	case PolicyVxlanPort:
		settings(c, at, p, func(v VxlanPortSettings) {
			if v.Port == 0 {
				c.bad(at, "Port must be given")
			}
		})
	case PolicyDrMacAddress:
		settings(c, at, p, func(v DrMacAddressSettings) { c.mac(at, "Address", v.Address) })
	case PolicyVSID:
		settings(c, at, p, func(v VSIDSettings) {
			if v.IsolationId == 0 || v.IsolationId >= 1<<24 {
				c.bad(at, "IsolationId is %d; it must be 1 to 16777215", v.IsolationId)
			}
		})
	case PolicyVLAN:
		settings(c, at, p, func(v VLANSettings) {
			if v.IsolationId > 4094 {
				c.bad(at, "IsolationId is %d; it must be at most 4094", v.IsolationId)
			}
		})
	case PolicySetPolicy:
		settings(c, at, p, func(v SetPolicySettings) {
			switch {
			case v.Id == "":
				c.bad(at, "Id must be given")
			case v.PolicyType == "NESTEDIPSET" && !c.build.Has(builds.NestedIpSet):
				c.m.add(ErrNotImplemented, "%s: %s has no nested sets", at, c.build)
			case v.PolicyType != "IPSET" && v.PolicyType != "NESTEDIPSET":
				c.bad(at, "PolicyType is %q; it must be IPSET or NESTEDIPSET", v.PolicyType)
			}
		})
	case PolicyL4Proxy:
		settings(c, at, p, func(v L4ProxySettings) { c.prefixes(at, "Exceptions", v.Exceptions) })
	case PolicyQOS:
		settings(c, at, p, func(QOSSettings) {})
	case PolicyEncapOverhead:
		settings(c, at, p, func(EncapOverheadSettings) {})
	}
}

// acl follows FactACLAny.
func (c *policyCheck) acl(at string, v ACLSettings) {
	actions := []string{ACLAllow, ACLBlock}
	if c.build.Has(builds.TierAcl) {
		actions = append(actions, ACLPass)
	}
	if !slices.Contains(actions, v.Action) {
		c.bad(at, "Action is %q; it must be %s", v.Action, strings.Join(actions, " or "))
	}
	if v.Direction != ACLIn && v.Direction != ACLOut {
		c.bad(at, "Direction is %q; it must be In or Out", v.Direction)
	}
	if v.RuleType != "" && v.RuleType != ACLRuleHost && v.RuleType != ACLRuleSwitch {
		c.bad(at, "RuleType is %q; it must be Host or Switch", v.RuleType)
	}
	for _, p := range list(v.Protocols) {
		n, err := strconv.ParseUint(p, 10, 16)
		switch {
		case err != nil || n > 256:
			c.bad(at, "protocol %q is not a number of 0 to 255, or 256 for any", p)
		case n == 252 && !c.build.Has(builds.AclSupportForProtocol252):
			c.m.add(ErrNotImplemented, "%s: %s takes no protocol 252", at, c.build)
		}
	}
	c.aclAddresses(at, "LocalAddresses", v.LocalAddresses)
	c.aclAddresses(at, "RemoteAddresses", v.RemoteAddresses)
	c.aclPorts(at, "LocalPorts", v.LocalPorts)
	c.aclPorts(at, "RemotePorts", v.RemotePorts)
}

func (c *policyCheck) aclAddresses(at, field, value string) {
	all := list(value)
	if len(all) > 1 && !c.build.Has(builds.AclFeatures) {
		c.m.add(ErrNotImplemented, "%s: %s takes one address in %s, not a list", at, c.build, field)
	}
	for _, a := range all {
		if _, err := parsePrefix(a); err == nil || c.sets[a] {
			continue
		}
		if strings.EqualFold(a, "any") {
			c.bad(at, "%s is %q; leave it empty for any address", field, a)
			continue
		}
		c.bad(at, "%s has %q, which is no address, prefix or set of the network", field, a)
	}
}

func (c *policyCheck) aclPorts(at, field, value string) {
	for _, p := range list(value) {
		low, high, ranged := strings.Cut(p, "-")
		a, err1 := strconv.ParseUint(low, 10, 16)
		b, err2 := a, error(nil)
		if ranged {
			b, err2 = strconv.ParseUint(high, 10, 16)
			if !c.build.Has(builds.AclFeatures) {
				c.m.add(ErrNotImplemented, "%s: %s takes no port ranges", at, c.build)
			}
		}
		if err1 != nil || err2 != nil || a > b {
			c.bad(at, "%s has %q, which is no port or range of ports", field, p)
		}
	}
}

func (c *policyCheck) address(at, field, value string, optional bool) {
	if value == "" && optional {
		return
	}
	if _, err := netip.ParseAddr(value); err != nil {
		c.bad(at, "%s is %q, which is no address", field, value)
	}
}

func (c *policyCheck) prefix(at, field, value string) {
	if _, err := parsePrefix(value); err != nil {
		c.bad(at, "%s is %q, which is no prefix such as 10.0.0.0/8", field, value)
	}
}

func (c *policyCheck) prefixes(at, field string, values []string) {
	for _, v := range values {
		c.prefix(at, field, v)
	}
}

func (c *policyCheck) mac(at, field, value string) {
	if _, err := net.ParseMAC(value); err != nil {
		c.bad(at, "%s is %q, which is no MAC address such as 00-15-5D-01-02-03", field, value)
	}
}

// parsePrefix reads a prefix, or an address as a prefix of its full length.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// list splits a comma separated list and drops empty items.
func list(s string) []string {
	var all []string
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			all = append(all, f)
		}
	}
	return all
}
