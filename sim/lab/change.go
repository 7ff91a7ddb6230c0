package lab

import (
	"context"
	"fmt"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// Changes makes changes to a cluster one after another, as the steps of a lab do: what
// programs of the cluster see of them, they follow.
type Changes struct {
	c     *Cluster
	file  *File
	steps []labfile.Step
}

// NewChanges begins with a cluster that was just built. The lab's own steps are not
// done.
func NewChanges(c *Cluster) *Changes { return &Changes{c: c, file: c.Plan.File} }

// Make does what a step says; its name and flows do not count. Files in it are
// relative to the lab's folder. With an error the cluster has changed in part, or not
// at all.
func (h *Changes) Make(ctx context.Context, s labfile.Step) error {
	s.Name, s.Flows = fmt.Sprintf("change %d", len(h.steps)+1), nil
	steps := append(h.steps[:len(h.steps):len(h.steps)], s)
	p, err := plan.New(h.file.WithSteps(steps), "", nil)
	if err != nil {
		return err
	}
	if err := h.c.Follow(ctx, p); err != nil {
		return err
	}
	h.steps = steps
	return nil
}
