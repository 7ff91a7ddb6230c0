package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// CannotBe says why no cluster can be made of a lab. Nothing was started.
type CannotBe struct {
	Lab     string
	Reasons []string
}

func (e *CannotBe) Error() string {
	return fmt.Sprintf("no cluster can be made of the lab %s: %s", e.Lab, strings.Join(e.Reasons, "; "))
}

// check looks for all that keeps a lab from being a cluster, before anything starts.
func (c *Cluster) check(p *plan.Plan) error {
	e := &CannotBe{Lab: p.File.Lab.Metadata.Name}
	no := func(format string, args ...any) { e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...)) }
	if c.host == nil {
		no("it has no Linux node for the control plane; add {name: linux1, os: linux} to nodes")
	}
	if c.windowsBuild() == nil && slices.ContainsFunc(c.o.Hollow, func(h Hollow) bool { return h.Build == nil }) {
		no("it has no Windows node whose build hollow nodes could have; write it, as --hollow-nodes 300:10.0.20348.2762")
	}
	for _, n := range p.Nodes {
		if n.Dump != nil {
			no("node %s was read from a dump, and no network plugin runs there", n.Kube.Name)
		}
		if c.o.CanRun == nil {
			continue
		}
		if err := c.o.CanRun(&n.Kube); err != nil {
			no("node %s: %v", n.Kube.Name, err)
		}
	}
	if len(e.Reasons) > 0 {
		return e
	}
	return nil
}
