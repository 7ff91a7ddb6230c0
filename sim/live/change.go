package live

import (
	"context"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Change does what a step of a lab says to the cluster that runs, and gives the
// machines that are there afterwards their namespaces. The step's time passes at once:
// flows in switches get older, and programs do not notice. Connections that HNS cuts on
// a real node get their resets. Pods that go take their programs with them.
func (n *Net) Change(ctx context.Context, s spec.Step) error {
	err := n.Do(func(*lab.Cluster) error {
		if n.changes == nil {
			n.changes = lab.NewChanges(n.c)
		}
		wait, err := spec.ParseWait(s.Wait)
		if err != nil {
			return err
		}
		n.skipped += wait
		if err := n.changes.Make(ctx, s); err != nil {
			return err
		}
		for _, text := range s.Restart {
			if program, node, err := spec.ParseProgram(text); err == nil && program == spec.ProgramNode {
				n.restarted["node/"+node] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.Sync(ctx)
}

// cut hands the resets of connections that were cut to the programs. The lock is held.
func (n *Net) cut() {
	arrived := n.ports.Cut(n.now())
	for i := range arrived {
		n.arrive(&arrived[i], netns.Offload{}, false)
	}
}
