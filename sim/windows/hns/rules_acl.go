package hns

import (
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// acls compiles the access list of an endpoint, and that of its network.
func (c *Compiler) acls(ls *layers, n *Network, e *Endpoint) {
	dual := dualStack(n, e)
	for i, p := range PoliciesOf(e.Policies, PolicyACL) {
		a, ok := p.value.(acl)
		if !ok {
			continue
		}
		a, some := a.resolved(n)
		if !some {
			continue
		}
		for _, r := range a.rules(i+1, dual) {
			r.Origin = p.Origin
			ls.acl(a.in, dual, r)
		}
	}
	number := 0
	for p, a := range eachValue[networkACL](n.Policies) {
		number++
		for _, r := range a.rules(number, dual) {
			r.Origin = p.Origin
			notModelled(r.Rule, "the network has NetworkACL policies, and how HNS orders them among its endpoints' ACLs is not documented",
				factNetworkACL)
			ls.acl(a.in, dual, r)
		}
	}
	c.loneACL(ls, e, dual)
	if tiers := PoliciesOf(e.Policies, PolicyTierAcl); len(tiers) > 0 {
		for _, d := range []vfp.Direction{vfp.Out, vfp.In} {
			ls.add(layerACL, "(TIER_ACL)", d, &vfp.Rule{ID: "(tier acl)", Fact: factTierACL,
				Action: vfp.NotModelled{Action: vfp.Block{}, Why: "the endpoint has TierAcl policies, which winlab does not model"},
				Origin: tiers[0].Origin})
		}
	}
}

// loneACL compiles what the bug lone-acl-denies-rest adds to an endpoint with ACLs.
func (c *Compiler) loneACL(ls *layers, e *Endpoint, dual bool) {
	c.withQuirk(builds.LoneACLDeniesRest, func(has bool, given *vfp.Given) {
		if !has {
			return
		}
		for p := range eachValue[acl](e.Policies) {
			for _, v6 := range []bool{false, true} {
				if v6 && !dual {
					break
				}
				ls.acl(false, dual, familyRule{&vfp.Rule{ID: "(default deny)", Priority: priorityDefaultDeny, Action: vfp.Block{},
					Flags: vfp.Terminating, Origin: p.Origin, Fact: factLoneACL, Given: given}, v6})
			}
			return
		}
	})
}

// dualStack reports whether an endpoint's ACLs are in groups of both families: when
// it has an IPv6 address, or an ACL names one. Otherwise the group of IPv4 has them
// all, and serves both.
func dualStack(n *Network, e *Endpoint) bool {
	if e.Address(true).IsValid() {
		return true
	}
	for _, a := range eachValue[acl](e.Policies) {
		if a.namesIPv6() {
			return true
		}
	}
	for _, a := range eachValue[networkACL](n.Policies) {
		if a.namesIPv6() {
			return true
		}
	}
	return false
}

func (a acl) namesIPv6() bool {
	return len(ofFamily(slices.Concat(a.local.addresses, a.remote.addresses), true)) > 0
}

// acl adds a rule to the group of its direction and family.
func (ls *layers) acl(in, dual bool, r familyRule) {
	dir, name := vfp.Out, "ACL_ENDPOINT_GROUP_%s_OUT"
	if in {
		dir, name = vfp.In, "ACL_ENDPOINT_GROUP_%s_IN"
	}
	family, version := uint8(0), "IPV4"
	switch {
	case r.v6:
		family, version = 6, "IPV6"
	case dual:
		family = 4
	}
	g := ls.layer(layerACL).Group(fmt.Sprintf(name, version), dir, family)
	g.Rules = append(g.Rules, r.Rule)
	g.Tie = questionACLTie
}

// familyRule is a rule for packets of IPv6 or of IPv4.
type familyRule struct {
	*vfp.Rule
	v6 bool
}

// rules are the rules of the policy that has this number among the ACLs of its
// endpoint: one, or with groups of both families one in each that it concerns.
func (a acl) rules(number int, dual bool) []familyRule {
	if !dual {
		return []familyRule{{a.rule(number), false}}
	}
	var all []familyRule
	for _, v6 := range []bool{false, true} {
		one := a
		one.local.addresses, one.remote.addresses = ofFamily(a.local.addresses, v6), ofFamily(a.remote.addresses, v6)
		if len(one.local.addresses) == 0 && len(a.local.addresses) > 0 || len(one.remote.addresses) == 0 && len(a.remote.addresses) > 0 {
			continue // all that it names is of the other family
		}
		all = append(all, familyRule{one.rule(number), v6})
	}
	return all
}

// rule is the rule of the policy that has this number among the ACLs of its endpoint.
func (a acl) rule(number int) *vfp.Rule {
	r := &vfp.Rule{ID: a.id, Priority: a.priority, Action: vfp.Block{}, Flags: vfp.Terminating, Fact: factACL}
	if r.ID == "" {
		r.ID = fmt.Sprintf("(acl %d %s %s %d)", number, a.action, a.direction, a.priority)
	}
	if a.allow {
		r.Action, r.Flags = vfp.Allow{}, vfp.Terminating|vfp.Stateful
	}
	if a.pass {
		notModelled(r, "the ACL action Pass leads to the next tier of rules, which winlab does not model", factTierACL)
	}
	if a.namesSet {
		notModelled(r, "the ACL refers to an address set that its network does not have, or combines a set with addresses", factSetUnknown)
	}
	src, dst := a.local, a.remote
	if a.in {
		src, dst = a.remote, a.local
	}
	if a.bySets {
		r.Fact = factSetPolicy
	}
	if haveHostBits(slices.Concat(src.addresses, dst.addresses)) {
		notModelled(r, "an address of the ACL is a prefix with host bits, and what HNS does with it is not documented", factOddPrefix)
	}
	r.Cond = vfp.Cond{Protos: a.protos, Src: plain(src.addresses), SrcPorts: src.ports, Dst: plain(dst.addresses), DstPorts: dst.ports}
	return r
}

// notModelled keeps what a rule matches and takes away what it does: why says
// what is not known about it.
func notModelled(r *vfp.Rule, why string, fact *evidence.Fact) {
	r.Action, r.Fact = vfp.NotModelled{Action: r.Action, Why: why}, fact
}
