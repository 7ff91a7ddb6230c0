package hns

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// acls compiles the access list of an endpoint.
func (c *Compiler) acls(ls *layers, e *Endpoint) {
	for i, p := range PoliciesOf(e.Policies, PolicyACL) {
		if a, ok := p.value.(acl); ok {
			r := a.rule(i + 1)
			r.Origin = p.Origin
			dir, group := vfp.Out, "ACL_ENDPOINT_GROUP_IPV4_OUT"
			if a.in {
				dir, group = vfp.In, "ACL_ENDPOINT_GROUP_IPV4_IN"
			}
			ls.add(layerACL, group, dir, r)
		}
	}
	if tiers := PoliciesOf(e.Policies, PolicyTierAcl); len(tiers) > 0 {
		for _, d := range []vfp.Direction{vfp.Out, vfp.In} {
			ls.add(layerACL, "(TIER_ACL)", d, &vfp.Rule{ID: "(tier acl)", Fact: factTierACL,
				Action: vfp.NotModelled{Action: vfp.Block{}, Why: "the endpoint has TierAcl policies, which winlab does not model"}, Origin: tiers[0].Origin})
		}
	}
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
		notModelled(r, "the ACL names an address set, which winlab does not model", factSetPolicy)
	}
	src, dst := a.local, a.remote
	if a.in {
		src, dst = a.remote, a.local
	}
	r.Cond = vfp.Cond{Protos: a.protos, Src: src.addresses, SrcPorts: src.ports, Dst: dst.addresses, DstPorts: dst.ports}
	return r
}

// notModelled keeps what a rule matches and takes away what it does: why says
// what is not known about it.
func notModelled(r *vfp.Rule, why string, fact *evidence.Fact) {
	r.Action, r.Fact = vfp.NotModelled{Action: r.Action, Why: why}, fact
}
