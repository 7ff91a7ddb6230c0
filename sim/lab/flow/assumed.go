package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A lab of a real cluster has nodes that were not observed. They are as the models of
// their plugin and of kube-proxy make them, and a real one may have drifted from that. So
// what becomes of a packet there is the answer to a question: if the nodes are as they are
// made, what the models say, and if not, the outcome is unknown. See docs/decisions/missing-facts.md.

// assumedParam is the question whether nodes that were not observed are as they are made; a lab can pin
// its answer.
const (
	assumedParam = labfile.ParamAssumedNodes
	asMade       = labfile.AssumedAsMade
	notAsMade    = labfile.AssumedOtherwise
)

// assumed splits the paths of a flow that come to nodes that were not observed. What is
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
		choice := trace.Choice{Of: 2, Param: assumedParam, Value: asMade,
			Label: asMadeBy(which, len(nodes), plugin, c.Proxy.Mode != kubeproxy.ModeNone)}
		other := p
		p.Choices = append(slices.Clone(p.Choices), choice)
		choice.Pick, choice.Value, choice.Label = 1, notAsMade, "not"
		node := c.Plan.Node(p.Steps[first[i]].Place)
		why := fmt.Sprintf("%s was not observed: %s", node.Kube.Name, node.Assumed)
		other.Choices = append(slices.Clone(other.Choices), choice)
		other.Verdict, other.Reason, other.Summary = trace.Unknown, trace.MissingFact, trace.Sentence(why)
		other.Cause, other.Causes, other.Seen, other.Arrived = "", nil, nil, nil
		other.Steps = append(slices.Clone(other.Steps[:first[i]]),
			trace.Step{N: first[i] + 1, Leg: p.Steps[first[i]].Leg, Place: node.Kube.Name, Action: trace.ActUnknown, Reason: trace.MissingFact,
				Event: trace.Note(why)})
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

// asMadeBy says that nodes are as their plugin configures them, and kube-proxy where the plugin does
// not replace it.
func asMadeBy(which string, nodes int, plugin string, proxy bool) string {
	is, it, makes := "is", "it", plugin+" configures"
	if nodes > 1 {
		is, it = "are", "them"
	}
	if proxy {
		makes = plugin + " and kube-proxy configure"
	}
	return which + " " + is + " as " + makes + " " + it
}

// AsMade is an error where the lab says that nodes that were not observed differ from the models. What
// packets do there is unknown then, and a command that follows packets one by one, such as a replay or
// a running lab, cannot express that.
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
	return fmt.Errorf(
		"the lab says %s: %s for nodes that were not observed (%s), so what happens to packets there is unknown, but this command follows packets as the models do; write %s: %s in params, or remove the line. winlab trace accepts it",
		assumedParam, notAsMade, strings.Join(nodes, ", "), assumedParam, asMade)
}

// Assumptions are what verdicts rest on where questions are not followed, as in a replay or a running
// lab: one sentence for each node that was not observed. The list is empty where the lab says that such
// nodes are as their models; where it says that they are not, [Cluster.AsMade] is an error.
func (c *Cluster) Assumptions() []string {
	if c.Plan.Params.Pinned[assumedParam] == asMade {
		return nil
	}
	var said []string
	for _, n := range c.Plan.AssumedNodes() {
		said = append(said, fmt.Sprintf("%s (%s) was not observed; assuming that %s", n.Kube.Name, n.Assumed,
			asMadeBy(n.Kube.Name, 1, c.Plan.Network.Plugin, c.Proxy.Mode != kubeproxy.ModeNone)))
	}
	return said
}
