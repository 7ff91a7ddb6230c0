package hns

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

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

// Type is PolicyACL.
func (ACLSettings) Type() PolicyType { return PolicyACL }

func (s ACLSettings) check(c *policyCheck, at string) { c.acl(at, s) }

// acl is an ACL policy, parsed.
type acl struct {
	id       string
	priority uint16
	// action and direction are the words of the policy, for the rule's name.
	action, direction string
	allow, pass, in   bool
	protos            []packet.Proto
	local, remote     aclSide
	// namesSet is set when an address field names a set instead of addresses; then
	// localSets and remoteSets are the fields' texts.
	namesSet              bool
	localSets, remoteSets string
	// bySets is set when the addresses are those of sets.
	bySets bool
}

// aclSide is one end of the packets that an ACL is about; empty means any.
type aclSide struct {
	addresses []prefix
	ports     []vfp.PortRange
}

// parse has no value for rules of type Host: those are not VFP rules.
func (s ACLSettings) parse() (any, bool) {
	if strings.EqualFold(s.RuleType, ACLRuleHost) {
		return nil, false
	}
	local, okLocal := aclAddresses(s.LocalAddresses)
	remote, okRemote := aclAddresses(s.RemoteAddresses)
	return acl{
		id: s.Id, priority: s.Priority, action: s.Action, direction: s.Direction,
		allow: strings.EqualFold(s.Action, ACLAllow), pass: strings.EqualFold(s.Action, ACLPass), in: strings.EqualFold(s.Direction, ACLIn),
		protos:   protoList(s.Protocols),
		local:    aclSide{local, portList(s.LocalPorts)},
		remote:   aclSide{remote, portList(s.RemotePorts)},
		namesSet: !okLocal || !okRemote, localSets: s.LocalAddresses, remoteSets: s.RemoteAddresses,
	}, true
}

// aclAddresses parses an address list of an ACL; ok is false when it names a set.
func aclAddresses(list string) (ps []prefix, ok bool) {
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	fields := strings.Split(list, ",")
	ps = prefixes(fields)
	return ps, len(ps) == len(fields)
}

// anyProtocol is how an ACL writes "all protocols".
const anyProtocol = 256

func protoList(list string) []packet.Proto {
	var ps []packet.Proto
	for f := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n == anyProtocol {
			continue
		}
		ps = append(ps, packet.Proto(n))
	}
	return ps
}

func portList(list string) []vfp.PortRange {
	var rs []vfp.PortRange
	for f := range strings.SplitSeq(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(f), "-")
		a, err := strconv.ParseUint(lo, 10, 16)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.ParseUint(hi, 10, 16); err != nil {
				continue
			}
		}
		rs = append(rs, vfp.PortRange{Lo: uint16(a), Hi: uint16(b)})
	}
	return rs
}

// NetworkACLSettings are ACLSettings of a whole network.
type NetworkACLSettings ACLSettings

// Type is PolicyNetworkACL.
func (NetworkACLSettings) Type() PolicyType { return PolicyNetworkACL }

// networkACL is a NetworkACL policy, parsed.
type networkACL struct{ acl }

func (s NetworkACLSettings) parse() (any, bool) {
	v, ok := ACLSettings(s).parse()
	if !ok {
		return nil, false
	}
	return networkACL{v.(acl)}, true
}

func (s NetworkACLSettings) check(c *policyCheck, at string) { c.acl(at, ACLSettings(s)) }

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

// Type is PolicyTierAcl.
func (TierAclSettings) Type() PolicyType { return PolicyTierAcl }

func (s TierAclSettings) check(c *policyCheck, at string) {
	for i, r := range s.TierAclRules {
		c.acl(fmt.Sprintf("%s rule %d", at, i), ACLSettings{
			Protocols: r.Protocols, Action: r.TierAclRuleAction, Direction: s.Direction, LocalAddresses: r.LocalAddresses,
			RemoteAddresses: r.RemoteAddresses, LocalPorts: r.LocalPorts, RemotePorts: r.RemotePorts,
		})
	}
}

// SetPolicySettings are a named set of addresses that ACLs refer to.
type SetPolicySettings struct {
	Id         string `json:"Id"`
	Name       string `json:"Name"`
	PolicyType string `json:"PolicyType"`
	Values     string `json:"Values"`
}

// Values of SetPolicySettings.PolicyType.
const (
	SetOfAddresses = "IPSET"
	setOfSets      = "NESTEDIPSET"
)

// Type is PolicySetPolicy.
func (SetPolicySettings) Type() PolicyType { return PolicySetPolicy }

func (s SetPolicySettings) check(c *policyCheck, at string) {
	switch {
	case s.Id == "":
		c.bad(at, "Id must be given")
	case s.PolicyType == setOfSets && !c.build.Has(builds.NestedIpSet):
		c.m.add(ErrNotImplemented, "%s: %s has no nested sets", at, c.build)
	case s.PolicyType != SetOfAddresses && s.PolicyType != setOfSets:
		c.bad(at, "PolicyType is %q; it must be IPSET or NESTEDIPSET", s.PolicyType)
	}
}
