package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
)

// Lock is the right to use a cluster: its objects, and the HNS of its nodes. Whoever has
// built a cluster holds it, so that programs that stay (see [Options.Keep]) wait with
// their calls to HNS; a live network gives it up between two packets, and the cluster
// itself while it waits for a program.
type Lock struct {
	sync.Mutex
	// After, when set, is called after each call of a program to HNS, with the lock held.
	After func()
}

// calls is the lock as a program's call to HNS takes it.
type calls struct{ l *Lock }

func (c calls) Lock() { c.l.Lock() }
func (c calls) Unlock() {
	if c.l.After != nil {
		c.l.After()
	}
	c.l.Unlock()
}

// Calls is the lock for calls of programs to HNS.
func (l *Lock) Calls() sync.Locker { return calls{l} }

// outside does what needs programs: they call HNS meanwhile. f must use nothing of the
// cluster.
func (b *builder) outside(f func() error) error {
	b.Options.Lock.Unlock()
	defer b.Options.Lock.Lock()
	return f()
}

// Program is a program of a node that stays.
type Program struct {
	// Node is where it runs, Name what it is: "kube-proxy 1.36.3".
	Node, Name string
	// PID is its process of Linux.
	PID   int
	Since time.Time
	// Log is the file that it writes to.
	Log string
	// Ended says how the program ended, "" while it runs.
	Ended string
}

// Notice says what does not happen any more since the program has ended by itself.
func (p *Program) Notice() trace.Notice {
	kind, _, _ := strings.Cut(p.Name, " ")
	return trace.Notice{What: p.Name + " of node/" + p.Node, Why: fmt.Sprintf(
		"it has ended by itself (%s): what it created in HNS stays, but it no longer follows changes; winlab restart %s/%s starts it again, winlab logs %s/%s shows its output",
		p.Ended, kind, p.Node, kind, p.Node)}
}

// Programs are those that stay, in the order of the nodes. The caller holds the lock.
func (c *Cluster) Programs() []Program {
	if c.b == nil || c.b.real == nil {
		return nil
	}
	var all []Program
	for _, n := range c.Nodes {
		if x := c.b.real.nodes[n.Name]; x != nil && x.proxy != nil {
			p := Program{Node: n.Name, Name: x.proxy.name, PID: x.proxy.PID(), Since: x.proxy.Since, Log: x.proxy.Stderr}
			select {
			case <-x.proxy.Done():
				p.Ended = x.proxy.End()
			default:
			}
			all = append(all, p)
		}
	}
	return all
}

// ServiceOf returns the HNS of a node as its programs call it, nil for a node without such
// programs.
func (c *Cluster) ServiceOf(node string) *hcn.Service {
	if c.b == nil || c.b.real == nil || c.b.real.nodes[node] == nil {
		return nil
	}
	return c.b.real.nodes[node].service
}

// Move lets kube-proxy of each node run in another place from now on: where it runs it
// ends, and starts there, as after a restart. The caller holds the lock.
func (c *Cluster) Move(ctx context.Context, to func(node string) components.Place) error {
	c.changes()
	defer c.changes()
	if c.b.real == nil || c.b.real.stopped || !c.b.real.proxy {
		return nil
	}
	r := c.b.real
	r.ctx, r.place = ctx, to
	for _, n := range c.Nodes {
		if err := r.halt(n); err != nil {
			return err
		}
	}
	states := r.states
	if c.done > 0 {
		states = [][]*kube.Service{c.Kube.Services}
	}
	return r.proxies(states)
}

// Resume starts kube-proxy on nodes that have started again, when their places are
// there. The caller holds the lock.
func (c *Cluster) Resume(ctx context.Context) error {
	c.changes()
	defer c.changes()
	if c.b.real == nil {
		return nil
	}
	r := c.b.real
	r.ctx = ctx
	all := r.waiting
	r.waiting = nil
	for _, n := range all {
		if err := r.restartProxy(n); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the programs that stay. The cluster can still be traced.
func (c *Cluster) Close() error {
	if c.b == nil || c.b.real == nil {
		return nil
	}
	return c.b.real.stop()
}

// pods of a node that the plugin's program has attached, by namespace and name.
type attachedPods map[string]*components.Attached
