package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var (
	factPodLeaves = evidence.New("lab.pod-deletion", evidence.Code,
		"A pod that is deleted is first marked as terminating in its EndpointSlices. Its network is removed when its containers have stopped; only then is the pod gone.",
		"kubernetes/kubernetes pkg/kubelet/kubelet.go SyncTerminatingPod", "kubernetes/endpointslice utils.go podToEndpoint")
	factNodeStarts = evidence.New("lab.node-starts-again", evidence.Inferred,
		"After a node restarts, its agent sets up the network as before, every pod gets a new sandbox with CNI DEL and ADD, kube-proxy starts without state, and no machine on the node remembers a flow.",
		"kubernetes/kubernetes pkg/kubelet/kuberuntime/kuberuntime_manager.go computePodActions")
	// FactHalfClosed is about connections that live over steps.
	FactHalfClosed = evidence.New("lab.half-closed-connection", evidence.Inferred,
		"A flow of a connection that one or both ends have closed is kept as long as any other.",
		"port flow settings in microsoft/SDN Kubernetes/windows/debug (half-open, TIME_WAIT and default time all 240 s)")
)

// StepError is a step that could not be done. What came before it holds.
type StepError struct {
	// Step is its name, "" for the lab's calls to HNS before the first step.
	Step string
	Err  error
}

func (e *StepError) Error() string {
	if e.Step == "" {
		return e.Err.Error()
	}
	return "step " + e.Step + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Done is how many of the plan's steps were done.
func (c *Cluster) Done() int { return c.done }

// Advance does the next step of the plan. Time passes for whoever has a clock; a cluster does not
// have one.
func (c *Cluster) Advance(ctx context.Context) error {
	c.changes()
	defer c.changes()
	s := c.Plan.Steps[c.done]
	if err := c.b.step(ctx, s); err != nil {
		return c.Plan.Wrap(&StepError{Step: s.Name, Err: err})
	}
	c.done++
	return nil
}

// Follow does the step that a plan has after those that were done: the plan is that of
// the cluster, with one more step. The plan is the cluster's from then on.
func (c *Cluster) Follow(ctx context.Context, p *plan.Plan) error {
	c.changes()
	defer c.changes()
	s := p.Steps[c.done]
	for _, q := range slices.Concat(s.Stop, s.Restart) {
		if c.node(q.Node) == nil {
			return fmt.Errorf("%s: there is no node %s in this lab", q, q.Node)
		}
	}
	if r := c.b.real; r != nil {
		if err := c.b.canStep(s, r.plugins != nil, r.proxy); err != nil {
			return err
		}
	}
	if err := c.b.step(ctx, s); err != nil {
		return err
	}
	c.Plan = p
	c.done++
	return nil
}

// Gone is the last address of a pod or Service that was deleted: "pod/default/web"
// or "svc/default/web".
func (c *Cluster) Gone(what string) (netip.Addr, bool) {
	a, ok := c.gone[what]
	return a, ok
}

// FactOf is what a trace cites for a step.
func FactOf(s *plan.Step) *evidence.Fact {
	switch {
	case slices.ContainsFunc(s.Restart, func(p plan.Program) bool { return p.Program == labfile.ProgramNode }):
		return factNodeStarts
	case len(s.DeletePods) > 0:
		return factPodLeaves
	}
	return nil
}

func (b *builder) step(ctx context.Context, s *plan.Step) error {
	if err := b.known(s); err != nil {
		return err
	}
	b.setLinks(s.Links)
	if b.real != nil {
		b.real.ctx = ctx
	}
	for _, p := range s.Stop {
		if err := b.stopProxy(b.node(p.Node)); err != nil {
			return err
		}
	}
	for _, do := range []func(context.Context, *plan.Step) error{b.remove, b.change, b.restart} {
		b.settle()
		if err := do(ctx, s); err != nil {
			return err
		}
	}
	if err := b.Call(s.Calls); err != nil {
		return err
	}
	defer b.disputed()
	return b.tryAgain(ctx)
}

// known refuses what a step asks of programs that winlab does not run, and notes
// what they would do.
func (b *builder) known(s *plan.Step) error {
	if err := b.outsiders(s); err != nil {
		return err
	}
	for _, p := range slices.Concat(s.Stop, s.Restart) {
		n := b.node(p.Node)
		switch {
		case p.Program == labfile.ProgramHNS && n.HNS == nil:
			return fmt.Errorf("%s: the node has no HNS in this lab", p)
		case p.Program == labfile.ProgramKubeProxy && (b.ovs != nil || n.Plan.Windows() && n.Plan.Proxy.Mode == kubeproxy.ModeNone):
			return fmt.Errorf("%s: no kube-proxy runs on this node", p)
		case p.Program != labfile.ProgramHNS && n.Plan.Dump != nil:
			return fmt.Errorf(
				"%s: the node's HNS was read from a dump, and what its programs did there is not known; restart hns or call HNS instead", p)
		case p.Program == labfile.ProgramNode && b.Plan.Network.Design != plan.CNI && n.windows != nil:
			return fmt.Errorf("%s: how the network of plugin %s comes back on a Windows node is not modelled", p, b.Plan.Network.Plugin)
		}
	}
	if len(s.DeletePods)+len(s.DeleteServices)+len(s.Pods)+len(s.Services) == 0 {
		return nil
	}
	for _, n := range b.Nodes {
		if n.Plan.Dump != nil && n.Plan.Proxy.Mode == kubeproxy.ModeKernelspace {
			b.notice("kube-proxy on "+n.Name, "the node's HNS was read from a dump: its load balancers do not follow the changes of step "+s.Name,
				s.Origin)
		}
	}
	return nil
}

// follow makes the Services' endpoints of the pods that there are, and lets whoever
// looks at them follow: policies, the DNS, every kube-proxy.
func (b *builder) follow(ctx context.Context) error {
	return errors.Join(b.policies(ctx), b.services(ctx), b.names(ctx), b.sync())
}

// remove deletes Services and pods (lab.pod-deletion).
func (b *builder) remove(ctx context.Context, s *plan.Step) error {
	if len(s.DeletePods) == 0 && len(s.DeleteServices) == 0 {
		return nil
	}
	for _, key := range s.DeleteServices {
		ns, name, _ := strings.Cut(key, "/")
		if k := b.Service(ns, name); k != nil && len(k.ClusterIPs) > 0 {
			b.leave("svc/"+key, k.ClusterIPs[0])
		}
		b.lists = slices.DeleteFunc(slices.Clone(b.lists), func(l *labfile.Service) bool { return l.Key() == key })
	}
	var leaving []*pod
	for _, key := range s.DeletePods {
		if p := b.pod(key); p != nil {
			p.leaves = true
			leaving = append(leaving, p)
		}
		for _, l := range b.without {
			l.deleted = l.deleted || l.Key() == key
		}
	}
	if err := b.follow(ctx); err != nil || len(leaving) == 0 {
		return err
	}
	for _, p := range leaving {
		if err := b.takeDown(p); err != nil {
			return fmt.Errorf("pod %s on %s: %w", p.Key(), p.Node, err)
		}
		b.leave(podObject+p.Key(), p.given)
	}
	return b.follow(ctx)
}

func (b *builder) leave(what string, a netip.Addr) {
	if b.gone == nil {
		b.Cluster.gone = map[string]netip.Addr{}
	}
	b.gone[what] = a
}

// pod finds a pod that is there, nil for none.
func (b *builder) pod(key string) *pod {
	i := slices.IndexFunc(b.pods, func(p *pod) bool { return p.Key() == key })
	if i < 0 {
		return nil
	}
	return b.pods[i]
}

// takeDown takes a pod's network down and forgets the pod.
func (b *builder) takeDown(p *pod) error {
	n := b.node(p.Node)
	b.pods = slices.DeleteFunc(b.pods, func(o *pod) bool { return o == p })
	b.machines = slices.DeleteFunc(b.machines, func(m *Machine) bool { return m.Ref == Ref{PodKind, p.Key()} })
	b.index.forget()
	if p.HostNetwork {
		n.machine.Stack().Unlisten(p.listened...)
		return nil
	}
	return b.detach(n, p)
}

// detach undoes what attach did for a pod.
func (b *builder) detach(n *Node, p *pod) error {
	switch at := p.in; {
	case n.antrea != nil:
		n.antrea.Detach(at.Compartment)
		return b.plugin.Del(n.Node, &p.Pod.Pod, n.HNS)
	case n.windows != nil:
		n.windows.Detach(at.endpoint)
		switch {
		case b.plugin == nil || n.Plan.Dump != nil:
		case b.real != nil && b.real.plugins != nil:
			return b.real.detach(n, &p.Pod.Pod)
		default:
			return b.plugin.Del(n.Node, &p.Pod.Pod, n.HNS)
		}
		return n.HNS.DeleteEndpoint(at.endpoint)
	case n.linux != nil:
		n.linux.Detach(at.Compartment)
		if b.plugin != nil {
			return b.plugin.Del(n.Node, &p.Pod.Pod, nil)
		}
	default:
		n.machine.(*ovs.Node).Detach(at.Compartment)
	}
	return nil
}

// change applies Services and pods.
func (b *builder) change(ctx context.Context, s *plan.Step) error {
	for _, in := range s.Ingresses {
		b.Ingresses = append(slices.DeleteFunc(b.Ingresses, func(o *labfile.Ingress) bool { return o.Key() == in.Key() }), in)
	}
	if len(s.Services) == 0 && len(s.Pods) == 0 && len(s.Policies) == 0 && len(s.AdminPolicies)+len(s.OwnPolicies) == 0 &&
		len(s.Namespaces) == 0 && len(s.Slices) == 0 {
		return nil
	}
	for _, sl := range s.Slices {
		b.slices = append(slices.DeleteFunc(slices.Clone(b.slices), func(o *labfile.Slice) bool {
			return o.Namespace == sl.Namespace && o.Name == sl.Name && o.IPv6 == sl.IPv6
		}), sl)
	}
	for _, np := range s.Policies {
		b.admit = append(slices.DeleteFunc(slices.Clone(b.admit), func(o *labfile.Policy) bool { return o.Key() == np.Key() }), np)
	}
	for _, p := range s.OwnPolicies {
		b.owns = append(slices.DeleteFunc(slices.Clone(b.owns), func(o *labfile.OwnPolicy) bool { return o.Key() == p.Key() }), p)
	}
	for _, p := range s.AdminPolicies {
		b.admins = append(slices.DeleteFunc(slices.Clone(b.admins), func(o *labfile.AdminPolicy) bool { return o.Key() == p.Key() }), p)
	}
	if len(s.Namespaces) > 0 {
		all := maps.Clone(b.namespaces)
		if all == nil {
			all = map[string]map[string]string{}
		}
		maps.Copy(all, s.Namespaces)
		b.namespaces = all
	}
	for _, svc := range s.Services {
		b.lists = slices.Clone(b.lists)
		if i := slices.IndexFunc(b.lists, func(l *labfile.Service) bool { return l.Key() == svc.Key() }); i >= 0 {
			b.lists[i] = svc
		} else {
			b.lists = append(b.lists, svc)
		}
		delete(b.gone, "svc/"+svc.Key())
	}
	for _, planned := range s.Pods {
		if p := b.pod(planned.Key()); p != nil {
			b.restate(p, planned)
			continue
		}
		if err := b.addPod(&pod{Pod: planned}); err != nil {
			return err
		}
		delete(b.gone, podObject+planned.Key())
	}
	b.sortPods()
	return b.follow(ctx)
}

// restate gives a pod that is there its new state.
func (b *builder) restate(p *pod, now *plan.Pod) {
	before := p.Pod
	p.Pod = now
	m := b.Machine(Ref{PodKind, p.Key()})
	if len(now.Listen) != len(before.Listen) {
		m.Stack().Unlisten(p.listened...)
		p.listened = nil
		b.start(m, p)
	}
	if m.resolver != nil {
		m.resolver.GlobalSuffixes, m.resolver.AppendToMultiLabel = now.DNS.GlobalSuffixes, now.DNS.AppendToMultiLabel
	}
}

func (b *builder) restart(ctx context.Context, s *plan.Step) error {
	for _, p := range s.Restart {
		n := b.node(p.Node)
		var err error
		switch p.Program {
		case labfile.ProgramHNS:
			err = b.Call([]plan.Call{{Node: p.Node, What: "the HNS service restarts", Restart: true}})
		case labfile.ProgramKubeProxy:
			err = b.restartProxy(n)
		case labfile.ProgramNode:
			err = b.restartNode(ctx, n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// restartProxy starts kube-proxy again: it knows nothing of what it did before.
func (b *builder) restartProxy(n *Node) error {
	n.settle()
	n.stopped = false
	if b.hasRealProxy(n) {
		return b.real.restartProxy(n)
	}
	if err := b.startProxy(n); err != nil {
		return err
	}
	return b.syncNode(n)
}

// stopProxy stops kube-proxy on a node.
func (b *builder) stopProxy(n *Node) error {
	n.settle()
	n.stopped = true
	if b.hasRealProxy(n) {
		return b.real.halt(n)
	}
	return nil
}

// hasRealProxy reports whether the program is a node's kube-proxy, and no model.
func (b *builder) hasRealProxy(n *Node) bool {
	return b.real != nil && b.real.proxy && b.real.nodes[n.Name] != nil && n.Plan.Proxy.Mode == kubeproxy.ModeKernelspace
}

// restartNode follows lab.node-starts-again.
func (b *builder) restartNode(ctx context.Context, n *Node) error {
	stopped := n.stopped
	if err := b.stopProxy(n); err != nil {
		return err
	}
	var mine []*pod
	for _, p := range b.pods {
		if p.Node == n.Name {
			p.leaves = true
			mine = append(mine, p)
		}
	}
	// The others see that its pods are not ready.
	if err := b.follow(ctx); err != nil {
		return err
	}
	for _, p := range mine {
		if err := b.takeDown(p); err != nil {
			return err
		}
	}
	n.machine.Reset()
	if n.windows != nil && b.plugin != nil && n.Plan.Dump == nil {
		if err := b.restartWindows(n); err != nil {
			return err
		}
	} else if n.antrea != nil && n.HNS != nil {
		if err := b.antreaRestart(n); err != nil {
			return err
		}
	} else if n.HNS != nil {
		n.HNS.Boot()
	}
	for _, p := range mine {
		if p.outside {
			continue // its runtime sees that the sandbox is gone, and makes another
		}
		if err := b.addPod(&pod{Pod: p.Pod}); err != nil {
			return err
		}
	}
	b.sortPods()
	if n.stopped = false; stopped {
		b.Log = append(b.Log, "kube-proxy on "+n.Name+" starts with the node")
	}
	if err := b.startProxy(n); err != nil {
		return err
	}
	if err := b.follow(ctx); err != nil || !b.hasRealProxy(n) {
		return err
	}
	if b.real.place != nil { // the node's place is made anew, too
		b.real.waiting = append(b.real.waiting, n)
		return nil
	}
	return b.real.restartProxy(n)
}

// restartWindows lets HNS and the plugin's agent of a node start again: networks
// that do not persist are gone (hcn.non-persistent), and the agent makes them anew.
func (b *builder) restartWindows(n *Node) error {
	n.later = false
	n.windows.DetachHost()
	for _, nw := range n.HNS.ListNetworks(func(nw *hns.Network) bool { return nw.Flags&hns.NetworkNonPersistent != 0 }) {
		if err := n.HNS.DeleteNetwork(nw.ID); err != nil {
			return err
		}
	}
	n.HNS.Boot()
	n.windows.Refresh()
	if err := b.prepareNode(n); err != nil {
		return err
	}
	n.windows.Reset()
	return nil
}

// canStep says whether a step needs a program that has ended when the lab was built.
func (b *builder) canStep(s *plan.Step, plugin, proxy bool) error {
	starts := slices.ContainsFunc(s.Restart, func(p plan.Program) bool { return p.Program != labfile.ProgramHNS })
	pods := len(s.Pods) > 0 || len(s.DeletePods) > 0
	services := len(s.Services) > 0 || len(s.DeleteServices) > 0
	if b.Options.Keep || !(plugin && (pods || starts) || proxy && (pods || services || starts || len(s.Stop) > 0)) {
		return nil
	}
	const why = "real components run only while a lab is built, but this step needs them again; write components: model"
	if b.Options.Components == labfile.Real {
		return fmt.Errorf("%w for this lab: step %s: %s", ErrNoComponents, s.Name, why)
	}
	return &StepError{Step: s.Name, Err: errors.New(why)}
}
