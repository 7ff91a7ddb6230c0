package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// classify reads the verdict off the end of a path. It looks at what happened
// only: no case here decides what happens.
func (c *Cluster) classify(p *trace.Path, out host.Outcome, sim *wire.Simulation, err error, dst end, proto packet.Proto) {
	last := lastReason(p.Steps)
	switch {
	case sim.Unknown != "":
		p.Verdict, p.Reason, p.Summary = trace.Unknown, trace.ModelHole, sentence(sim.Unknown)
		p.Grade = evidence.Unknown
	case err != nil:
		p.Verdict, p.Reason, p.Summary = trace.Looped, trace.TTLExceeded, sentence(err.Error())
	case out.Done:
		p.Verdict, p.Reason, p.Summary = out.Verdict, out.Reason, sentence(out.Event.Text())
		if p.Seen != nil && out.Verdict == trace.Delivered {
			p.Summary = fmt.Sprintf("Delivered; %s saw the source %s.", p.Seen.Where, p.Seen.Src)
		}
	case last == nil:
		// Every loss is a step. One without is a fault of winlab, and no verdict
		// on the network.
		p.Verdict, p.Reason, p.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
		p.Summary = "The packet was lost without a step that says where: a fault of winlab."
	default:
		c.lost(p, last, dst, proto)
	}
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

// lost finds the reason that a person would give for a loss.
func (c *Cluster) lost(p *trace.Path, last *trace.Step, dst end, proto packet.Proto) {
	p.Reason = last.Reason
	where := last.Place
	if last.Object != "" {
		where += ", " + last.Object
	}
	noWay := last.Reason == trace.NoRoute || last.Reason == trace.NoNeighbour || last.Reason == trace.NotForwarding || last.Reason == trace.NotMyAddress || last.Reason == trace.SpoofedSource
	arrived := p.Seen != nil && slices.ContainsFunc(p.Steps, func(s trace.Step) bool { return s.Leg == trace.Reply })
	switch {
	case last.Reason == trace.TTLExceeded:
		p.Verdict = trace.Looped
	case arrived:
		p.Verdict = trace.NoReply
		switch {
		case noWay && isICMP(proto) && untranslated(p.Steps):
			p.Reason = trace.ICMPNotTranslated
		case noWay:
			p.Reason = trace.NoWayBack
		case last.Reason == trace.UnexpectedSource && replyTranslated(p.Steps):
			p.Reason = trace.SourceTranslated
		}
	case last.Action == trace.ActReject:
		// A refusal was sent but did not come back.
		p.Verdict = trace.NoReply
	default:
		p.Verdict = trace.Dropped
		switch {
		case noWay && isICMP(proto) && untranslated(p.Steps):
			p.Reason = trace.ICMPNotTranslated
		case noWay && c.serves(dst, proto) && !rewritten(p.Steps, "dst"):
			p.Reason = trace.NoLoadBalancer
		case noWay && c.NetType == "overlay" && c.inCluster(last):
			p.Reason = trace.NotEncapsulated
		}
	}
	e, _ := trace.Explain(p.Reason)
	p.Summary = fmt.Sprintf("%s (%s): %s", sentence(strings.TrimSuffix(e.Title, ".")), where, last.Text()) + "."
	p.Summary = strings.Replace(p.Summary, ". (", " (", 1)
}

func isICMP(p packet.Proto) bool { return p == packet.ICMP || p == packet.ICMPv6 }

// untranslated reports whether a translating rule on the request's way missed
// only because of the protocol.
func untranslated(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == trace.Request && s.Action == trace.ActNoMatch && slices.ContainsFunc(s.Nearest, func(m trace.Miss) bool { return m.Field == "protocol" })
	})
}

// replyTranslated reports whether a dynamic NAT rule changed the reply's source.
func replyTranslated(steps []trace.Step) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == trace.Reply && s.RuleType == "dynnat" && slices.ContainsFunc(s.Changes, func(ch trace.Change) bool { return ch.Field == "src" })
	})
}

func rewritten(steps []trace.Step, field string) bool {
	return slices.ContainsFunc(steps, func(s trace.Step) bool {
		return s.Leg == trace.Request && slices.ContainsFunc(s.Changes, func(ch trace.Change) bool { return ch.Field == field })
	})
}

// serves reports whether the destination is an address that only a load
// balancer could serve.
func (c *Cluster) serves(dst end, proto packet.Proto) bool {
	if c.frontend(dst.addr, dst.port, proto) != nil {
		return true
	}
	for _, p := range c.Kube.ServiceCIDRs {
		if p.Contains(dst.addr) {
			return true
		}
	}
	return false
}

// inCluster reports whether the packet that was lost outside the nodes was for
// a pod: without encapsulation the underlay cannot know the way.
func (c *Cluster) inCluster(last *trace.Step) bool {
	if last.Place != "fabric" {
		return false
	}
	words := strings.Fields(last.Text())
	return slices.ContainsFunc(c.podOrder, func(k string) bool { return slices.Contains(words, c.pods[k].Address.String()) })
}

// judge sums the paths up; all says that no way was left out.
func (c *Cluster) judge(t *trace.Trace, all bool) {
	if len(t.Paths) == 0 {
		return
	}
	first := t.Paths[0]
	t.Verdict, t.Reason, t.Summary = first.Verdict, first.Reason, first.Summary
	for _, p := range t.Paths {
		if p.Grade.Weaker(t.Grade) {
			t.Grade = p.Grade
		}
		if p.Verdict != t.Verdict {
			t.Verdict, t.Reason = trace.Varies, trace.SplitVerdict
		}
	}
	if n := len(t.Paths); n > 1 {
		counts := map[trace.Verdict]int{}
		for _, p := range t.Paths {
			counts[p.Verdict]++
		}
		var parts []string
		for _, v := range trace.Verdicts {
			if counts[v.ID] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", counts[v.ID], v.ID))
			}
		}
		if t.Verdict == trace.Varies {
			t.Summary = fmt.Sprintf("%d ways are possible: %s.", n, strings.Join(parts, ", "))
		} else {
			t.Summary = fmt.Sprintf("All %d ways were tried. %s", n, t.Summary)
		}
	}
	if !all && t.Verdict != trace.Varies {
		t.Verdict, t.Reason, t.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
		t.Summary = fmt.Sprintf("There are more than %d ways; those were tried and ended alike, the others were not tried.", maxPaths)
	} else if !all {
		t.Summary += fmt.Sprintf(" There are more than %d; the others were not tried.", maxPaths)
	}
	if t.Reason == trace.ICMPNotTranslated {
		t.Hints = append(t.Hints, "TCP and UDP are translated on the same way: try "+t.Flow.To+" with a port")
	}
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
