package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// Action is an operation on a program or a node of a running cluster.
type Action string

const (
	// Stop ends it; it stays ended until Start or Restart. A program may end by itself, and
	// is killed when that takes too long.
	Stop Action = "stop"
	// Start starts what was stopped, or waits for its next start. It returns when that is
	// well: a program answers, a node is Ready.
	Start Action = "start"
	// Restart is Stop and Start.
	Restart Action = "restart"
	// Kill ends it without notice, as a fault does: a program's service manager starts it
	// again after its pause, a node is off until Start.
	Kill Action = "kill"
)

// Actions are all of them.
var Actions = []Action{Restart, Stop, Start, Kill}

// Done says that an action was done: "restarted".
func (a Action) Done() string {
	return map[Action]string{Stop: "stopped", Start: "started", Restart: "restarted", Kill: "killed"}[a]
}

// Act does something to programs ("kube-apiserver", "kubelet/win1", "hns/win1") or nodes
// ("node/win1"), one after the other. Of names that the cluster does not have it says so
// before anything is done.
func (c *Cluster) Act(ctx context.Context, a Action, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, c.can(a, name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.acting.Lock()
	defer c.acting.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	for _, name := range names {
		if c.life.Err() != nil {
			return errors.New("the cluster has ended")
		}
		if err := c.act(ctx, a, name); err != nil {
			return fmt.Errorf("%s %s: %w", a, name, err)
		}
		c.say(name + " was " + a.Done())
	}
	return nil
}

// can returns why an action is not possible for a name; nil if it is.
func (c *Cluster) can(a Action, name string) error {
	if !slices.Contains(Actions, a) {
		return fmt.Errorf("%q is not an action; write restart, stop, start or kill", a)
	}
	n := c.nodeOf(name)
	switch {
	case strings.HasPrefix(name, nodeOf) && n != nil:
		return nil
	case strings.HasPrefix(name, hnsOf) && n != nil && n.Windows != nil:
		if a != Restart {
			return fmt.Errorf("%s: HNS can be restarted only; what a node does without it is not modelled", name)
		}
		if c.isOff(n.Name) {
			return fmt.Errorf("%s: the node is off; winlab-cluster start node/%s switches it on", name, n.Name)
		}
		return nil
	}
	p, err := c.named(name)
	if err != nil {
		return err
	}
	if node := strings.TrimPrefix(p.machine, nodeOf); a != Stop && c.isOff(node) {
		return fmt.Errorf("%s: node %s is off; winlab-cluster start node/%s switches it on, and starts its programs", name, node, node)
	}
	return nil
}

// nodeOf is the node that a name ends with, nil for none.
func (c *Cluster) nodeOf(name string) *kube.Node {
	_, node, _ := strings.Cut(name, "/")
	return c.lab.Node(node)
}

func (c *Cluster) isOff(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off[node]
}

// named finds a program. The error lists what can be named.
func (c *Cluster) named(name string) (*program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, p := range c.programs {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	for _, n := range c.lab.Nodes {
		if n.Windows != nil {
			names = append(names, hnsOf+n.Name)
		}
	}
	for _, n := range c.lab.Nodes {
		names = append(names, nodeOf+n.Name)
	}
	return nil, fmt.Errorf("the cluster has no %s; it has %s", name, strings.Join(names, ", "))
}

func (c *Cluster) act(ctx context.Context, a Action, name string) error {
	switch n := c.nodeOf(name); {
	case strings.HasPrefix(name, nodeOf):
		return c.actOnNode(ctx, a, n)
	case strings.HasPrefix(name, hnsOf):
		return c.Net.Change(ctx, labfile.Step{Restart: []string{name}})
	}
	p, err := c.named(name)
	if err != nil {
		return err
	}
	switch a {
	case Kill:
		return p.kill(ctx)
	case Stop:
		return p.stop(ctx, false)
	case Restart:
		if err := p.stop(ctx, false); err != nil {
			return err
		}
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	return p.well(ctx)
}

func (c *Cluster) actOnNode(ctx context.Context, a Action, n *kube.Node) error {
	off := c.isOff(n.Name)
	if (a == Stop || a == Kill) && off {
		return nil
	}
	if a == Start && !off {
		return nil
	}
	if !off {
		if err := c.switchOff(ctx, n, a == Kill); err != nil {
			return err
		}
	}
	if a == Stop || a == Kill {
		return nil
	}
	return c.switchOn(ctx, n)
}

// switchOff ends all that runs on a node, and cuts its cable: to the others it is as a
// machine without power. With kill nothing is told that it ends; otherwise programs end
// first, as when the machine shuts down.
func (c *Cluster) switchOff(ctx context.Context, n *kube.Node, kill bool) error {
	var mine []*program
	c.mu.Lock()
	for _, p := range c.programs {
		if p.machine == machine(n) {
			mine = append(mine, p)
		}
	}
	r := c.runtimes[n.Name]
	delete(c.runtimes, n.Name)
	c.off[n.Name] = true
	c.mu.Unlock()
	slices.Reverse(mine) // the runtime last of those of a node, etcd last of the control plane
	cut := func() error {
		return c.Net.Change(ctx, labfile.Step{Links: []labfile.Link{{Of: machine(n), Down: true}}})
	}
	var errs []error
	if kill {
		errs = append(errs, cut())
	}
	for _, p := range mine {
		if err := p.stop(ctx, kill); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	if !kill {
		errs = append(errs, cut())
	}
	if r != nil {
		// The end of its pods is not reported.
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// switchOn lets a node start: its machine begins anew, as after a boot, and its programs
// start. It returns when the node is Ready.
func (c *Cluster) switchOn(ctx context.Context, n *kube.Node) error {
	start := time.Now()
	if err := c.Net.Change(ctx, labfile.Step{Links: []labfile.Link{{Of: machine(n)}}, Restart: []string{machine(n)}}); err != nil {
		return err
	}
	if n == c.host {
		if err := c.control(ctx); err != nil {
			return err
		}
		if err := c.hollow(ctx); err != nil {
			return err
		}
	}
	if err := c.node(ctx, n); err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.off, n.Name)
	c.mu.Unlock()
	c.say(fmt.Sprintf("%s is on after %v", machine(n), time.Since(start).Round(100*time.Millisecond)))
	return nil
}
