package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// judge reads the verdict off what happened on one path. It looks at that only:
// no case here decides what happens. k may be nil: then the reason is that of the
// place where the path ended.
func (f *flow) judge(k knowledge, r *run) trace.Path {
	steps, said := f.withTroubles(r.steps)
	p := trace.Path{Choices: r.choices, Steps: steps, Seen: r.seen, Arrived: r.arrived, Grade: trace.Weakest(steps)}
	last := lastReason(p.Steps)
	switch {
	case r.unknown != "":
		p.Verdict, p.Reason, p.Summary = trace.Unknown, trace.ModelHole, sentence(r.unknown)
		p.Grade = evidence.Unknown
	case r.endless != nil:
		p.Verdict, p.Reason, p.Summary = trace.Looped, trace.TTLExceeded, sentence(r.endless.Error())
	case r.out.Done && p.Seen != nil && r.out.Verdict == trace.Delivered:
		p.Verdict, p.Reason, p.Summary = r.out.Verdict, r.out.Reason, "Delivered; "+p.Seen.Where+" saw the source "+p.Seen.Src+"."
	case r.out.Done:
		p.Verdict, p.Reason, p.Summary = r.out.Verdict, r.out.Reason, sentence(r.out.Event.Text())
	case last == nil:
		// Every loss is a step. A loss without a step is a bug of winlab and says
		// nothing about the network.
		p.Verdict, p.Reason, p.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
		p.Summary = "The packet was lost, but no step says where: this is a bug in winlab."
	default:
		p.Verdict, p.Reason = f.lost(&p, last)
		p.Summary = lossSummary(p.Reason, last)
	}
	switch {
	case p.Verdict == trace.Delivered:
	case p.Verdict != trace.Unknown && f.explain(k, &p, last):
	case said != nil && !redirected(p.Steps):
		p.Summary += fmt.Sprintf(" %s on %s: %s.", said.Program, said.Node, strings.TrimSuffix(said.Text, "."))
	}
	toIngress(f.ingress, &p)
	if len(r.before) > 0 {
		for i := range p.Steps {
			p.Steps[i].N += len(r.before)
		}
		p.Steps = append(r.before, p.Steps...)
		p.Grade = trace.Weakest(p.Steps)
	}
	return p
}

// withTroubles puts what the programs of a node could not do into the steps, at the
// place where it tells: after the last step of the request on that node while its
// destination is still the one that was asked for. It returns the first of them, too.
func (f *flow) withTroubles(steps []trace.Step) ([]trace.Step, *cluster.Trouble) {
	var first *cluster.Trouble
	if f.around == nil {
		return steps, nil
	}
	troubles := f.around.Troubles(f.dst, f.proto)
	for i := range troubles {
		t := &troubles[i]
		at := -1
		for j, s := range steps {
			if s.Leg != trace.Request || changes(s, diff.Destination) {
				break
			}
			if s.Place == t.Node {
				at = j
			}
		}
		if at < 0 {
			continue
		}
		if first == nil {
			first = t
		}
		// A loss is the end; the complaint comes before it.
		if steps[at].Reason == "" {
			at++
		}
		n := 1
		if at > 0 {
			n = steps[at-1].N + 1
		}
		note := trace.Step{N: n, Leg: trace.Request, Place: t.Node, Object: t.Program, Action: trace.ActNote,
			Event: trace.Of(complains{t.Text})}.Cite(t.Fact)
		steps = slices.Insert(slices.Clone(steps), at, note)
		for j := at + 1; j < len(steps); j++ {
			steps[j].N++
		}
	}
	return steps, first
}

// lastReason is the last step that ended something.
func lastReason(steps []trace.Step) *trace.Step {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Reason != "" {
			return &steps[i]
		}
	}
	return nil
}

// noWay are the reasons of a packet that no machine can or will carry further.
var noWay = []trace.Reason{trace.NoRoute, trace.NoNeighbour, trace.NotForwarding, trace.NotMyAddress, trace.SpoofedSource}

// lost finds the verdict and the reason that a person would give for a loss.
func (f *flow) lost(p *trace.Path, last *trace.Step) (trace.Verdict, trace.Reason) {
	arrived := p.Seen != nil && slices.ContainsFunc(p.Steps, func(s trace.Step) bool { return s.Leg == trace.Reply })
	switch {
	case last.Reason == trace.TTLExceeded:
		return trace.Looped, last.Reason
	case arrived:
		return trace.NoReply, f.replyLost(p, last)
	case last.Action == trace.ActReject:
		// A refusal was sent but did not come back.
		return trace.NoReply, last.Reason
	}
	return trace.Dropped, f.requestLost(p, last)
}

// replyLost is the reason when the request arrived.
func (f *flow) replyLost(p *trace.Path, last *trace.Step) trace.Reason {
	stuck := slices.Contains(noWay, last.Reason)
	switch {
	case stuck && isICMP(f.proto) && untranslated(p.Steps):
		return trace.ICMPNotTranslated
	case stuck && f.bareForPod(p.Steps, last):
		return trace.NotEncapsulated
	case stuck:
		return trace.NoWayBack
	case last.Reason == trace.UnexpectedSource && replyTranslated(p.Steps):
		return trace.SourceTranslated
	}
	return last.Reason
}

// requestLost is the reason when the request did not arrive.
func (f *flow) requestLost(p *trace.Path, last *trace.Step) trace.Reason {
	stuck := slices.Contains(noWay, last.Reason)
	switch {
	case stuck && isICMP(f.proto) && untranslated(p.Steps):
		return trace.ICMPNotTranslated
	case stuck && f.bareForPod(p.Steps, last):
		return trace.NotEncapsulated
	}
	return last.Reason
}

// bareForPod reports whether a packet of an overlay that was lost outside the nodes left a node for
// a pod: without encapsulation the underlay cannot have a route. A packet that never reached a node
// cannot have been encapsulated.
func (f *flow) bareForPod(steps []trace.Step, last *trace.Step) bool {
	if !f.overlay || last.Place != wire.Fabric || !slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == last.Leg && s.N < last.N && f.around.IsNode(s.Place)
	}) {
		return false
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].N > last.N || steps[i].Frame == nil {
			continue
		}
		p, err := packet.New(slices.Clone(steps[i].Frame))
		return err == nil && f.around.isPodAddress(p.Headers().Dst)
	}
	return false
}

// lossSummary says in a sentence where and why a packet was lost.
func lossSummary(r trace.Reason, last *trace.Step) string {
	e, _ := trace.Explain(r)
	title := strings.TrimSuffix(sentence(strings.TrimSuffix(e.Title, ".")), ".")
	return fmt.Sprintf("%s (%s): %s.", title, whereIn(last), last.Text())
}

// whereIn names the place of a step and what in it acted.
func whereIn(s *trace.Step) string {
	if s.Object == "" {
		return s.Place
	}
	return s.Place + ", " + s.Object
}

func isICMP(p packet.Proto) bool { return p == packet.ICMP || p == packet.ICMPv6 }

// untranslated reports whether a translating rule on the request's way missed
// only because of the protocol.
func untranslated(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == trace.Request && s.Action == trace.ActNoMatch &&
			slices.ContainsFunc(s.Nearest, func(m trace.Miss) bool { return m.Field == "protocol" })
	})
}

// dynNAT is the type of the rules that translate what leaves.
var dynNAT = vfp.DynNAT{}.Type()

// replyTranslated reports whether a dynamic NAT rule changed the reply's source.
func replyTranslated(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == trace.Reply && s.RuleType == dynNAT && changes(s, diff.Source)
	})
}

// redirected reports whether the request's destination was translated.
func redirected(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool { return s.Leg == trace.Request && changes(s, diff.Destination) })
}

// balanced reports whether a load balancer's rule took the request, also one that keeps the
// destination.
func balanced(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool { return s.Leg == trace.Request && s.RuleType == "lbnat" })
}

// changes reports whether a step changed a field.
func changes(s trace.Step, field string) bool {
	return slices.ContainsFunc(s.Changes, func(ch trace.Change) bool { return ch.Field == field })
}

// sentence makes a text start with a capital and end with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
