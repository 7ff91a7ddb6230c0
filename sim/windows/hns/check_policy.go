package hns

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

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
		for v := range EachSettings[SetPolicySettings](n.Policies) {
			c.sets[v.Id] = true
		}
	}
	return c
}

// joined lists types, for a message.
func joined[T ~string](types []T) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = string(t)
	}
	return strings.Join(words, ", ")
}

// checkAll checks and canonicalises the types of ps in place.
func (c *policyCheck) checkAll(ps []Policy) {
	for i := range ps {
		k := policyKindOf(ps[i].typ)
		if k == nil || !slices.Contains(k.on, c.scope) {
			c.m.add(ErrInvalidPolicyType, "policies[%d]: there is no %s policy %q; there are %s",
				i, c.scope, ps[i].typ, joined(typesOn(c.scope)))
			continue
		}
		t := k.typ
		ps[i].typ = t
		if k.needs != "" && !c.build.Has(k.needs) {
			c.m.add(ErrNotImplemented, "policies[%d] %s: %s cannot do it (%s)", i, t, c.build, k.needs.Fact().Says)
			continue
		}
		c.checkOne(fmt.Sprintf("policies[%d] %s", i, t), ps[i])
	}
}

func (c *policyCheck) bad(at, format string, args ...any) {
	c.m.add(ErrInvalidPolicy, "%s: %s", at, fmt.Sprintf(format, args...))
}

// checkOne checks the settings of one policy.
func (c *policyCheck) checkOne(at string, p Policy) {
	if p.malformed != nil {
		c.bad(at, "%v", p.malformed)
		return
	}
	if s, ok := p.settings.(checker); ok {
		s.check(c, at)
	}
}

// acl follows hns.acl-any-is-empty.
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
		c.bad(at, "%s has %q, which is not an address, prefix or set of the network", field, a)
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
			c.bad(at, "%s has %q, which is not a port or a range of ports", field, p)
		}
	}
}

func (c *policyCheck) address(at, field, value string, optional bool) {
	if value == "" && optional {
		return
	}
	if _, err := netip.ParseAddr(value); err != nil {
		c.bad(at, "%s is %q, which is not an address", field, value)
	}
}

func (c *policyCheck) prefix(at, field, value string) {
	if _, err := parsePrefix(value); err != nil {
		c.bad(at, "%s is %q, which is not a prefix such as 10.0.0.0/8", field, value)
	}
}

// translated checks the Exceptions or Destinations of an OutBoundNAT policy
// (hns.outboundnat-host-bits).
func (c *policyCheck) translated(at, field string, values []string) {
	c.prefixes(at, field, values)
	for _, v := range values {
		if p, err := parsePrefix(v); err == nil && p.hostBits && c.build.Has(builds.RefusesHostBits) {
			c.bad(at, "%s has %q, whose host bits are set, and %s refuses that: write %s", field, v, c.build, p.Prefix)
		}
	}
}

func (c *policyCheck) prefixes(at, field string, values []string) {
	for _, v := range values {
		c.prefix(at, field, v)
	}
}

func (c *policyCheck) mac(at, field, value string) {
	if _, err := net.ParseMAC(value); err != nil {
		c.bad(at, "%s is %q, which is not a MAC address such as 00-15-5D-01-02-03", field, value)
	}
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
