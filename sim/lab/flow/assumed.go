package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A lab of a real cluster has nodes at which nobody looked. They are as the models of
// their plugin and of kube-proxy make them, and a real one may have drifted from that. So
// what becomes of a packet there is the answer to a question: if the nodes are as they are
// made, what the models say, and if not, nobody knows. See docs/decisions/missing-facts.md.

// assumedParam is the question whether nodes at which nobody looked are as they are made; a lab can pin
// its answer.
const (
	assumedParam = labfile.ParamAssumedNodes
	asMade       = labfile.AssumedAsMade
	notAsMade    = labfile.AssumedOtherwise
)

// assumed splits the ways of a flow that come to nodes at which nobody looked. What is
// unknown anyway stays so.
func (c *Cluster) assumed(s *sent) {
	pinned := c.Plan.Params.Pinned[assumedParam]
	if pinned == asMade || len(c.Plan.AssumedNodes()) == 0 {
		return
	}
	var nodes []string
	rests := func(p *trace.Path) (first int, ok bool) {
		first = -1
		for i := range p.Steps {
			place := p.Steps[i].Place
			if n := c.Plan.Node(place); n == nil || n.Assumed == "" {
				continue
			}
			if first < 0 {
				first = i
			}
			if !slices.Contains(nodes, place) {
				nodes = append(nodes, place)
			}
		}
		return first, first >= 0 && p.Verdict != trace.Unknown
	}
	if s.decided() && len(s.t.Paths) == 0 {
		return
	}
	first := make([]int, len(s.t.Paths))
	any := false
	for i := range s.t.Paths {
		at, ok := rests(&s.t.Paths[i])
		if first[i] = at; !ok {
			first[i] = -1
		}
		any = any || ok
	}
	if !any {
		return
	}
	slices.Sort(nodes)
	which, plugin := strings.Join(nodes, ", "), c.Plan.Network.Plugin
	var all []trace.Path
	for i := range s.t.Paths {
		p := s.t.Paths[i]
		if first[i] < 0 {
			all = append(all, p)
			continue
		}
		choice := trace.Choice{Of: 2, Param: assumedParam, Value: asMade, Label: asMadeBy(which, len(nodes), plugin, c.Proxy.Mode != kubeproxy.ModeNone)}
		other := p
		p.Choices = append(slices.Clone(p.Choices), choice)
		choice.Pick, choice.Value, choice.Label = 1, notAsMade, "not"
		node := c.Plan.Node(p.Steps[first[i]].Place)
		why := fmt.Sprintf("nobody looked at %s: %s", node.Kube.Name, node.Assumed)
		other.Choices = append(slices.Clone(other.Choices), choice)
		other.Verdict, other.Reason, other.Summary = trace.Unknown, trace.MissingFact, sentence(why)
		other.Cause, other.Causes, other.Seen, other.Arrived = "", nil, nil, nil
		other.Steps = append(slices.Clone(other.Steps[:first[i]]), trace.Step{N: first[i] + 1, Leg: p.Steps[first[i]].Leg, Place: node.Kube.Name, Action: trace.ActUnknown, Reason: trace.MissingFact, Event: trace.Note(why)})
		if pinned == notAsMade {
			other.Choices = other.Choices[:len(other.Choices)-1] // nothing is asked
			all = append(all, other)
			continue
		}
		all = append(all, p, other)
	}
	s.t.Paths = all
	if s.decided() { // by the models
		s.t.Verdict, s.t.Reason, s.t.Summary = "", "", ""
	}
}

// asMadeBy says that nodes are as their plugin makes them, and kube-proxy where the plugin does
// not take its place.
func asMadeBy(which string, nodes int, plugin string, proxy bool) string {
	is, it, makes := "is", "it", plugin+" makes"
	if nodes > 1 {
		is, it = "are", "them"
	}
	if proxy {
		makes = plugin + " and kube-proxy make"
	}
	return which + " " + is + " as " + makes + " " + it
}

// AsMade is an error where the lab says that nodes at which nobody looked are not as they would be
// made: what packets do there is unknown then, and what follows packets one by one, such as a replay
// or a running lab, has no answer that says so.
func (c *Cluster) AsMade() error {
	if c.Plan.Params.Pinned[assumedParam] != notAsMade {
		return nil
	}
	var nodes []string
	for _, n := range c.Plan.AssumedNodes() {
		nodes = append(nodes, n.Kube.Name)
	}
	if len(nodes) == 0 {
		return nil
	}
	return fmt.Errorf("the lab says %s: %s of %s, at which nobody looked, so what packets do there is unknown, and this follows packets as the models do; write %s: %s in params, or take the line out. winlab trace answers with it",
		assumedParam, notAsMade, strings.Join(nodes, ", "), assumedParam, asMade)
}

// Assumptions say what answers about packets at single nodes depend on where no question is asked,
// as in a replay or a running lab: a sentence for each node at which nobody looked. There are none
// where the lab says that such nodes are as they are made; where it says that they are not,
// [Cluster.AsMade] is an error.
func (c *Cluster) Assumptions() []string {
	if c.Plan.Params.Pinned[assumedParam] == asMade {
		return nil
	}
	var said []string
	for _, n := range c.Plan.AssumedNodes() {
		said = append(said, fmt.Sprintf("nobody looked at %s (%s): this takes it that %s", n.Kube.Name, n.Assumed, asMadeBy(n.Kube.Name, 1, c.Plan.Network.Plugin, c.Proxy.Mode != kubeproxy.ModeNone)))
	}
	return said
}
