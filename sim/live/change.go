package live

import (
	"context"
	"errors"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Change does what a step of a lab says to the cluster that runs, and gives the
// machines that are there afterwards their namespaces. The step's time passes at once:
// flows in switches get older, and programs do not notice. Connections that HNS cuts on
// a real node get their resets. Pods that go take their programs with them.
//
// Changes are made one after another. With an error a part of the step can have been
// made; what is there then has its namespaces.
//
// Where the lab's kube-proxy or plugin are programs, they are told, and Change returns
// when they have done what they do; packets pass meanwhile.
func (n *Net) Change(ctx context.Context, s labfile.Step) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)()
	err := n.Do(func(*lab.Cluster) error {
		if n.changes == nil {
			n.changes = lab.NewChanges(n.c)
		}
		wait, err := labfile.ParseWait(s.Wait)
		if err != nil {
			return err
		}
		if err := n.changes.Make(ctx, s); err != nil {
			return err
		}
		n.skipped += wait
		for _, text := range s.Restart {
			if program, node, err := labfile.ParseProgram(text); err == nil && program == labfile.ProgramNode {
				n.restarted["node/"+node] = true
			}
		}
		return nil
	})
	if errors.Is(err, errDown) {
		return err
	}
	return errors.Join(err, n.sync(ctx))
}

// cut hands the resets of connections that were cut to the programs. The lock is held.
func (n *Net) cut() {
	arrived := n.ports.Cut(n.now())
	for i := range arrived {
		n.arrive(&arrived[i], netns.Offload{})
	}
}
