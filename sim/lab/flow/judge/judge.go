// Package judge reads the verdict, the reason and the cause of a flow off what happened to it
// on one path.
//
// It must not know how a packet is sent, which rule fired or what HNS holds, and no case here
// decides what happens: a verdict follows from steps, their reasons and what the receiver saw,
// a cause from these and from what the cluster knows of the addresses in them.
package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Flow is what judging needs to know of a flow and of the cluster around it.
type Flow struct {
	From  cluster.Ref
	Proto packet.Proto
	Dst   netip.AddrPort
	// Ingress is the Ingress that the request is for, nil for none.
	Ingress *labfile.Ingress
	// Node is the sender's node, "" for none; Overlay says that pods need encapsulation
	// between nodes; Around is who is who.
	Node    string
	Overlay bool
	Around  Surroundings
}

// Surroundings are what judging asks of the cluster.
type Surroundings interface {
	// IsNode reports whether a name is that of a node, IsPodAddress whether an address is
	// that of a pod.
	IsNode(name string) bool
	IsPodAddress(a netip.Addr) bool
	// Troubles are what programs could not do for a destination.
	Troubles(to netip.AddrPort, proto packet.Proto) []cluster.Trouble
}

// Run is what happened to a flow on one path.
type Run struct {
	Choices []trace.Choice
	Steps   []trace.Step
	Seen    *trace.Seen
	Arrived *trace.Arrival
	// Before are the steps of the first packet, when a second one is judged.
	Before []trace.Step
	// Out is how the sender's program fared, Unknown the first behaviour on the path
	// that is not modelled, and Endless an error when the packet did not end.
	Out     host.Outcome
	Unknown string
	Endless error
}

// Judge reads the verdict off what happened on one path. It looks at that only:
// no case here decides what happens. k may be nil: then the reason is that of the
// place where the path ended.
func (f *Flow) Judge(k Knowledge, r *Run) trace.Path {
	steps, said := f.withTroubles(r.Steps)
	p := trace.Path{Choices: r.Choices, Steps: steps, Seen: r.Seen, Arrived: r.Arrived, Grade: trace.Weakest(steps)}
	last := LastReason(p.Steps)
	switch {
	case r.Unknown != "":
		p.Verdict, p.Reason, p.Summary = trace.Unknown, trace.ModelHole, trace.Sentence(r.Unknown)
		p.Grade = evidence.Unknown
	case r.Endless != nil:
		p.Verdict, p.Reason, p.Summary = trace.Looped, trace.TTLExceeded, trace.Sentence(r.Endless.Error())
	case r.Out.Done && p.Seen != nil && r.Out.Verdict == trace.Delivered:
		p.Verdict, p.Reason, p.Summary = r.Out.Verdict, r.Out.Reason, "Delivered; "+p.Seen.Where+" saw the source "+p.Seen.Src+"."
	case r.Out.Done:
		p.Verdict, p.Reason, p.Summary = r.Out.Verdict, r.Out.Reason, trace.Sentence(r.Out.Event.Text())
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
	toIngress(f.Ingress, &p)
	if len(r.Before) > 0 {
		for i := range p.Steps {
			p.Steps[i].N += len(r.Before)
		}
		p.Steps = append(r.Before, p.Steps...)
		p.Grade = trace.Weakest(p.Steps)
	}
	return p
}

// withTroubles puts what the programs of a node could not do into the steps, at the
// place where it tells: after the last step of the request on that node while its
// destination is still the one that was asked for. It returns the first of them, too.
func (f *Flow) withTroubles(steps []trace.Step) ([]trace.Step, *cluster.Trouble) {
	var first *cluster.Trouble
	if f.Around == nil {
		return steps, nil
	}
	troubles := f.Around.Troubles(f.Dst, f.Proto)
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
			Event: Complaint(t.Text)}.Cite(t.Fact)
		steps = slices.Insert(slices.Clone(steps), at, note)
		for j := at + 1; j < len(steps); j++ {
			steps[j].N++
		}
	}
	return steps, first
}

// LastReason is the last step that ended something.
func LastReason(steps []trace.Step) *trace.Step {
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
func (f *Flow) lost(p *trace.Path, last *trace.Step) (trace.Verdict, trace.Reason) {
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
func (f *Flow) replyLost(p *trace.Path, last *trace.Step) trace.Reason {
	stuck := slices.Contains(noWay, last.Reason)
	switch {
	case stuck && f.Proto.IsICMP() && untranslated(p.Steps):
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
func (f *Flow) requestLost(p *trace.Path, last *trace.Step) trace.Reason {
	stuck := slices.Contains(noWay, last.Reason)
	switch {
	case stuck && f.Proto.IsICMP() && untranslated(p.Steps):
		return trace.ICMPNotTranslated
	case stuck && f.bareForPod(p.Steps, last):
		return trace.NotEncapsulated
	}
	return last.Reason
}

// bareForPod reports whether a packet of an overlay that was lost outside the nodes left a node for
// a pod: without encapsulation the underlay cannot have a route. A packet that never reached a node
// cannot have been encapsulated.
func (f *Flow) bareForPod(steps []trace.Step, last *trace.Step) bool {
	if !f.Overlay || last.Place != wire.Fabric || !slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == last.Leg && s.N < last.N && f.Around.IsNode(s.Place)
	}) {
		return false
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].N > last.N || steps[i].Frame == nil {
			continue
		}
		p, err := packet.New(slices.Clone(steps[i].Frame))
		return err == nil && f.Around.IsPodAddress(p.Headers().Dst)
	}
	return false
}

// lossSummary says in a sentence where and why a packet was lost.
func lossSummary(r trace.Reason, last *trace.Step) string {
	e, _ := trace.Explain(r)
	title := strings.TrimSuffix(trace.Sentence(strings.TrimSuffix(e.Title, ".")), ".")
	return fmt.Sprintf("%s (%s): %s.", title, whereIn(last), last.Text())
}

// whereIn names the place of a step and what in it acted.
func whereIn(s *trace.Step) string {
	if s.Object == "" {
		return s.Place
	}
	return s.Place + ", " + s.Object
}

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

// complaint is what the log of a program says that has to do with the flow.
type complaint struct{ text string }

func (e complaint) Text() string { return e.text }

// Complaint is the event of a program that says in its log what it could not do.
func Complaint(text string) trace.Event { return trace.Of(complaint{text}) }

// IngressText names an Ingress with its place.
func IngressText(in *labfile.Ingress) string {
	return fmt.Sprintf("Ingress %s (%s:%d)", in.Key(), in.Origin.File, in.Origin.Line)
}

// toIngress makes of a packet that arrived what is known of a request to an Ingress.
func toIngress(in *labfile.Ingress, p *trace.Path) {
	if in == nil || p.Verdict != trace.Delivered {
		return
	}
	p.Verdict, p.Reason, p.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
	p.Summary += fmt.Sprintf(
		" What the controller of %s does with the request, and whether it reaches a pod, is not simulated; send to the Service of a rule instead.", IngressText(in))
}
