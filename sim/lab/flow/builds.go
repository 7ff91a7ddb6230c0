package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow/outcome"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// A lab may not know which build of Windows a node has. Which rules HNS makes of its
// objects depends on it, so there is one cluster for every build that a node may have,
// and the flow is sent through each of them, but only for the nodes that it reaches. From
// there on a build is the answer to an open question like others (worlds.go): where the
// flow ends alike on all, nothing is asked, and where not, the builds that decide are
// named.

// maxBuilds bounds the clusters that are built for one flow, and maxKept those that wait
// for the next one.
const (
	maxBuilds = 1024
	maxKept   = 64
)

// ErrBuilds says that a lab does not know the build of some node, where a single cluster is needed.
type ErrBuilds struct{ Nodes []*plan.Node }

func (e *ErrBuilds) Error() string {
	var all []string
	for _, n := range e.Nodes {
		all = append(all, fmt.Sprintf("node %s (%s)", n.Kube.Name, n.Build))
	}
	return fmt.Sprintf("the Windows build of %s is not known, and this command needs one; write --windows BUILD, or set build in the lab. %s",
		strings.Join(all, ", "), outcome.AskBuild(e.Nodes[0].Kube.Name))
}

// OneBuild is an error where the lab does not know the build of some node.
func (c *Cluster) OneBuild() error {
	if open := c.Plan.OpenBuilds(); len(open) > 0 {
		return &ErrBuilds{open}
	}
	return nil
}

// sent is the outcome of a flow: its trace, without a summary, and whether all paths were tried.
type sent struct {
	t *trace.Trace
	ends
	complete bool
}

// sender sends a flow through a cluster.
type sender func(ctx context.Context, c *Cluster) (sent, error)

// buildWorld is a flow in a cluster whose nodes have some builds: of those nodes that it
// has to do with, the index of the candidate.
type buildWorld struct {
	chosen map[string]int
	sent
}

// settled sends a flow through the cluster, or through one for every build that nodes may
// have, and sums it up.
func (c *Cluster) settled(ctx context.Context, send sender) (*trace.Trace, error) {
	if len(c.Plan.OpenBuilds()) == 0 {
		s, err := send(ctx, c)
		if err == nil {
			c.assumed(&s)
		}
		if err == nil && len(s.t.Paths) > 0 && !s.decided() {
			outcome.Summarise(s.t, s.complete)
		}
		return s.t, err
	}
	var all []buildWorld
	err := c.onBuilds(ctx, map[string]int{}, send, &all)
	var many tooMany
	switch {
	case errors.As(err, &many):
		t := all[0].t
		t.Lab, t.Paths, t.Open = c.Info(), nil, nil
		t.Verdict, t.Reason = trace.Unknown, trace.MissingFact
		t.Summary = fmt.Sprintf(
			"The builds of %s are not known, and the flow involves all of these nodes: more than %d combinations. Set some with --windows, or in the lab.", strings.Join(many, ", "), maxBuilds)
		t.Hints = append(t.Hints, outcome.AskBuild(many[0]))
		return t, nil
	case err != nil:
		return nil, err
	}
	return c.join(all), nil
}

// decided reports whether a trace has its verdict already: nothing could be sent.
func (s *sent) decided() bool { return s.t.Verdict != "" }

// tooMany are nodes whose builds make too many worlds.
type tooMany []string

func (tooMany) Error() string { return "too many combinations of Windows builds" }

// onBuilds sends a flow in a cluster with the chosen builds. Where it has to do with a node
// whose build is not chosen, it is sent on each.
func (c *Cluster) onBuilds(ctx context.Context, chosen map[string]int, send sender, all *[]buildWorld) error {
	w, err := c.withBuilds(ctx, chosen)
	if err != nil {
		return err
	}
	s, err := send(ctx, w)
	if err != nil {
		return err
	}
	w.assumed(&s)
	var open []string
	for _, n := range c.Plan.OpenBuilds() {
		if _, ok := chosen[n.Kube.Name]; !ok && w.concerns(&s, n.Kube.Name) {
			open = append(open, n.Kube.Name)
		}
	}
	if len(open) == 0 || len(*all) >= maxBuilds {
		if *all = append(*all, buildWorld{maps.Clone(chosen), s}); len(*all) > maxBuilds {
			return tooMany(slices.Sorted(maps.Keys(chosen)))
		}
		return nil
	}
	for i := range c.Plan.Node(open[0]).Candidates {
		next := maps.Clone(chosen)
		next[open[0]] = i
		if err := c.onBuilds(ctx, next, send, all); err != nil {
			return err
		}
	}
	return nil
}

// withBuilds is the cluster with the chosen builds, and the first of the others.
func (c *Cluster) withBuilds(ctx context.Context, chosen map[string]int) (*Cluster, error) {
	key := ""
	for _, n := range c.Plan.OpenBuilds() {
		key += fmt.Sprint(chosen[n.Kube.Name], " ")
	}
	if w := c.builds[key]; w != nil {
		w.at = c.at
		return w, w.reach(ctx, w.at)
	}
	b, err := cluster.New(ctx, c.Plan.WithBuilds(chosen), c.Options)
	if err != nil {
		return nil, err
	}
	w := &Cluster{Cluster: b, at: c.at}
	if c.builds == nil || len(c.builds) >= maxKept {
		c.builds = map[string]*Cluster{}
	}
	c.builds[key] = w
	return w, w.reach(ctx, w.at)
}

// concerns reports whether what a node does can decide about a flow: the packet came to
// it, an end of the flow or a backend that the Service may have is on it, or the name was
// asked there.
func (c *Cluster) concerns(s *sent, node string) bool {
	t := s.t
	at := func(p *trace.Path) bool {
		return slices.ContainsFunc(p.Steps, func(s trace.Step) bool { return s.Place == node })
	}
	for i := range t.Paths {
		if at(&t.Paths[i]) {
			return true
		}
	}
	for _, l := range t.Names {
		for i := range l.Queries {
			if p := l.Queries[i].Path; p != nil && at(p) {
				return true
			}
		}
	}
	return t.Flow.Node == node || c.endOn(s.from, node) || c.endOn(s.to, node) || c.backendOn(s, node)
}

// endOn reports whether an end of a flow is a node, or a pod that is to be there.
func (c *Cluster) endOn(t labfile.Target, node string) bool {
	if t.Kind == labfile.NodeTarget {
		return t.Name == node
	}
	return t.Kind == labfile.PodTarget && slices.ContainsFunc(c.Plan.Pods,
		func(p *plan.Pod) bool { return p.Node == node && p.Key() == t.Namespace+"/"+t.Name })
}

// backendOn reports whether a pod that a Service selects is to be on a node, whether the
// node's plugin has given it a network or not; the Service is one that the flow goes to.
func (c *Cluster) backendOn(f *sent, node string) bool {
	t := f.t
	dst, _ := netip.ParseAddr(t.Flow.Dst)
	for _, s := range c.Plan.Services {
		k := c.Service(s.Namespace, s.Name)
		named := f.to.Kind == labfile.ServiceTarget && f.to.Namespace == s.Namespace && f.to.Name == s.Name
		has := k != nil && (slices.Contains(k.ClusterIPs, dst) || slices.Contains(k.ExternalIPs, dst) || slices.Contains(k.IngressIPs, dst))
		if k != nil && !has {
			for _, p := range k.Ports {
				has = has || p.NodePort != 0 && p.NodePort == t.Flow.DstPort
			}
		}
		if !named && !has {
			continue
		}
		if len(s.Selector) == 0 || slices.ContainsFunc(c.Plan.Pods, func(p *plan.Pod) bool {
			return p.Node == node && p.Namespace == s.Namespace && selects(s.Selector, p.Labels)
		}) {
			return true
		}
	}
	return false
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// join makes one trace of the outcomes of a flow on all builds. Builds on which it ends
// alike, whatever the other nodes have, are one answer.
func (c *Cluster) join(all []buildWorld) *trace.Trace {
	answers := map[string][]answer{} // by node
	for _, n := range c.Plan.OpenBuilds() {
		if slices.ContainsFunc(all, func(w buildWorld) bool { _, ok := w.chosen[n.Kube.Name]; return ok }) {
			answers[n.Kube.Name] = answersOf(n, all)
		}
	}
	t := all[0].t
	complete := true
	var paths []trace.Path
	for i := range all {
		w := &all[i]
		choices, first := c.choices(w, answers)
		if !first {
			continue
		}
		complete = complete && w.complete
		if len(w.t.Paths) == 0 || w.decided() {
			p := trace.Path{Verdict: w.t.Verdict, Reason: w.t.Reason, Summary: w.t.Summary, Grade: w.t.Grade}
			if len(w.t.Paths) > 0 {
				p.Steps = w.t.Paths[0].Steps
			}
			w.t.Paths = []trace.Path{p}
		}
		for _, p := range w.t.Paths {
			p.Choices = append(slices.Clone(choices), p.Choices...)
			paths = append(paths, p)
		}
	}
	t.Lab, t.Paths = c.Info(), paths
	if n := c.Plan.Node(t.Flow.Node); n != nil {
		t.Flow.Build = n.Build
	}
	if len(paths) > 1 || t.Verdict == "" {
		outcome.Summarise(t, complete)
	}
	decides := slices.ContainsFunc(t.Open, func(o trace.OpenQuestion) bool { return o.Param == outcome.BuildParam })
	for _, n := range c.Plan.OpenBuilds() {
		name := n.Kube.Name
		if as := answers[name]; len(as) == 1 {
			t.Assumed = append(t.Assumed, trace.Assumption{What: "build of " + name, Value: "any of " + n.Build +
				" (the verdict does not depend on it)", Flag: "--windows"})
		} else if len(as) > 1 && !decides {
			t.Hints = append(t.Hints, "the build of "+name+" is not known ("+n.Build+"); "+outcome.AskBuild(name))
		}
	}
	return t
}

// answer is a set of candidates of a node on which a flow ends alike.
type answer struct {
	of   []int
	text string
}

// answersOf groups the candidates of a node.
func answersOf(n *plan.Node, all []buildWorld) []answer {
	name := n.Kube.Name
	by := map[string]*answer{}
	var order []string
	for i := range n.Candidates {
		var ends []string
		for _, w := range all {
			if at, ok := w.chosen[name]; ok && at == i {
				ends = append(ends, w.others(name)+w.end())
			}
		}
		slices.Sort(ends)
		key := strings.Join(ends, "\n")
		if by[key] == nil {
			by[key] = &answer{}
			order = append(order, key)
		}
		by[key].of = append(by[key].of, i)
	}
	var as []answer
	for _, key := range order {
		a := by[key]
		a.text = builds.Stretches(n.Candidates, a.of)
		as = append(as, *a)
	}
	return as
}

// others are the builds of the other nodes.
func (w *buildWorld) others(name string) string {
	s := ""
	for _, n := range slices.Sorted(maps.Keys(w.chosen)) {
		if n != name {
			s += fmt.Sprintf("%s=%d ", n, w.chosen[n])
		}
	}
	return s
}

// end is how a flow ended, by way.
func (w *buildWorld) end() string {
	ends := []string{fmt.Sprint(w.t.Verdict, w.t.Reason, w.complete, paramsIn(w.t.Open))}
	for i := range w.t.Paths {
		p := &w.t.Paths[i]
		s := fmt.Sprint(p.Verdict, p.Reason)
		for _, c := range p.Choices {
			s += fmt.Sprintf(" %q %q %q", c.Where, c.Param, cmp.Or(c.Value, c.Label))
		}
		ends = append(ends, s)
	}
	slices.Sort(ends[1:])
	return strings.Join(ends, "; ")
}

// paramsIn lists the parameters of questions.
func paramsIn(open []trace.OpenQuestion) (params []string) {
	for _, o := range open {
		params = append(params, o.Param)
	}
	return params
}

// choices are the answers that lead to a world, and first reports whether it is the one
// that stands for all with these answers.
func (c *Cluster) choices(w *buildWorld, answers map[string][]answer) (all []trace.Choice, first bool) {
	for _, n := range c.Plan.OpenBuilds() {
		at, ok := w.chosen[n.Kube.Name]
		if !ok {
			continue
		}
		as := answers[n.Kube.Name]
		i := slices.IndexFunc(as, func(a answer) bool { return slices.Contains(a.of, at) })
		if as[i].of[0] != at {
			return nil, false
		}
		if len(as) > 1 {
			all = append(all, trace.Choice{Where: n.Kube.Name, Pick: i, Of: len(as), Label: "Windows is " + as[i].text, Param: outcome.BuildParam,
				Value: as[i].text})
		}
	}
	return all, true
}
