package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxDifferences bounds the notices about one port.
const maxDifferences = 20

// compareVFP reports rules that the listings of a dump have and the model does not, and vice versa.
// The listings change nothing: HNS's objects are the state, and the rules are what the model makes
// of them.
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
	said := 0
	say := func(r *dump.Rule, why string, at *trace.Origin) {
		if said++; said <= maxDifferences {
			b.notice("VFP rule "+r.Name, why, at)
		}
	}
	diffs, _ := dump.DiffRules(theirs, ours)
	for _, d := range diffs {
		switch d.Kind {
		case dump.OnlyTheirs:
			if dump.RuleKey(d.Theirs.Name) != "" {
				say(d.Theirs, fmt.Sprintf("the node has it on the port of %s in %s, but the model does not", ours.Friendly, d.Theirs.Layer),
					&trace.Origin{What: d.Theirs.Name, File: d.Theirs.Place.File, Line: d.Theirs.Place.Line})
			}
		case dump.OnlyOurs:
			say(d.Ours,
				fmt.Sprintf(
					"the model has it on the port of %s in %s of node %s, but the listing does not: the verdict of a flow that meets it may be wrong",
					ours.Friendly, d.Ours.Layer, n.Name), at)
		}
	}
	if said > maxDifferences {
		b.notice("VFP rules of port "+theirs.Name, fmt.Sprintf("%d more differences are not shown", said-maxDifferences), at)
	}
}
