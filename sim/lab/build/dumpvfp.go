package build

import (
	"context"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxDifferences bounds the notices about one port.
const maxDifferences = 20

// compareVFP says which rules the listings of a dump have and the model has not,
// and the other way round. The listings change nothing: HNS's objects are the
// state, and the rules are what the model makes of them.
func (b *builder) compareVFP(context.Context) error {
	for _, n := range b.Nodes {
		if n.Plan.Dump == nil || n.windows == nil {
			continue
		}
		ours := map[string]dump.Port{}
		for _, p := range n.windows.Ports() {
			x := port(p)
			ours[strings.ToLower(x.Name)] = x
		}
		for _, p := range n.Plan.Dump.Ports {
			if !p.HasRules {
				continue
			}
			x, ok := ours[strings.ToLower(p.Name)]
			if !ok {
				x, ok = ours[strings.ToLower(p.Friendly)]
			}
			at := &trace.Origin{What: "port " + p.Name, File: p.Place.File, Line: p.Place.Line}
			if !ok {
				b.notice("VFP rules of port "+p.Name, "no endpoint of the dump has this port, so its rules were not compared", at)
				continue
			}
			b.comparePort(n, p, x, at)
		}
	}
	return nil
}

func (b *builder) comparePort(n *Node, theirs, ours dump.Port, at *trace.Origin) {
	count := func(p dump.Port) (map[string]int, map[string]dump.Rule, []string) {
		times, first := map[string]int{}, map[string]dump.Rule{}
		var order []string
		for _, r := range p.Rules {
			k := ruleKey(r)
			if k == "" {
				continue
			}
			if times[k]++; times[k] == 1 {
				first[k] = r
				order = append(order, k)
			}
		}
		return times, first, order
	}
	have, rules, order := count(theirs)
	model, made, modelOrder := count(ours)
	said := 0
	say := func(what, why string, at *trace.Origin) {
		if said++; said <= maxDifferences {
			b.notice(what, why, at)
		}
	}
	for _, k := range order {
		if r := rules[k]; have[k] > model[k] {
			say("VFP rule "+r.Name, fmt.Sprintf("the node has it on the port of %s in %s, and the model does not make it", ours.Friendly, r.Layer), &trace.Origin{What: r.Name, File: r.Place.File, Line: r.Place.Line})
		}
	}
	for _, k := range modelOrder {
		// A listing of one layer, group or rule does not say what is missing elsewhere.
		if r := made[k]; model[k] > have[k] && theirs.Only == "" {
			say("VFP rule "+r.Name, fmt.Sprintf("the model makes it on the port of %s in %s of node %s, and the listing does not have it: a flow that meets it may be judged wrongly", ours.Friendly, r.Layer, n.Name), at)
		}
	}
	if said > maxDifferences {
		b.notice("VFP rules of port "+theirs.Name, fmt.Sprintf("%d more differences are not shown", said-maxDifferences), at)
	}
}

// generated are the parts of rule names that HNS makes up: a tag of a load
// balancer's id, the number of an OutBoundNAT rule.
var generated = lazyregexp.New(`(^|_)[0-9A-Fa-f]{5}_|OUTBOUNDNAT_\d+_`)

// ruleKey is what two listings of the same rule have in common; "" for rules that
// only winlab has a name for.
func ruleKey(r dump.Rule) string {
	if r.Name == "" || strings.HasPrefix(r.Name, "(") {
		return ""
	}
	name := generated.ReplaceAllStringFunc(r.Name, func(s string) string {
		if strings.HasPrefix(s, "OUTBOUNDNAT") {
			return "OUTBOUNDNAT_*_"
		}
		return strings.TrimRight(s[:len(s)-6], "") + "*_"
	})
	return strings.ToUpper(name)
}
