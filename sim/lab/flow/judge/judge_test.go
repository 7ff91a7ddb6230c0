package judge

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	pod    = netip.MustParseAddr("10.244.2.4")
	client = netip.MustParseAddr("10.244.1.4")
)

// step is one of a path, in a few words.
func step(leg trace.Leg, place string, a trace.Action, r trace.Reason) trace.Step {
	return trace.Step{Leg: leg, Place: place, Object: "x", Action: a, Reason: r, Event: trace.Note("it ended here")}
}

// onTheWire is a frame from the client to an address.
func onTheWire(dst netip.Addr) trace.Step {
	s := step(trace.Request, wire.Fabric, trace.ActForward, "")
	s.Frame = packet.Build(packet.Spec{Src: client, Dst: dst, Proto: packet.TCP, DstPort: 80}).Bytes()
	return s
}

// replyTo is a frame of the reply to an address.
func replyTo(dst netip.Addr) trace.Step {
	s := onTheWire(dst)
	s.Leg = trace.Reply
	return s
}

// twoNodes is a cluster of two nodes and one pod.
type twoNodes struct{}

func (twoNodes) IsNode(n string) bool                                    { return n == "win1" || n == "win2" }
func (twoNodes) IsPodAddress(a netip.Addr) bool                          { return a == pod }
func (twoNodes) Troubles(netip.AddrPort, packet.Proto) []cluster.Trouble { return nil }

func TestVerdictFollowsFromSteps(t *testing.T) {
	t.Parallel()
	missedByProtocol := step(trace.Request, "win1", trace.ActNoMatch, "")
	missedByProtocol.Nearest = []trace.Miss{{Field: "protocol"}}
	onNode := step(trace.Request, "win1", trace.ActForward, "")
	overlay := Flow{Overlay: true, Around: twoNodes{}}
	replySNAT := step(trace.Reply, "win2", trace.ActRewrite, "")
	replySNAT.RuleType, replySNAT.Changes = "dynnat", []trace.Change{{Field: diff.Source}}
	noRoute := step(trace.Request, wire.Fabric, trace.ActDrop, trace.NoRoute)
	replyNoRoute := step(trace.Reply, wire.Fabric, trace.ActDrop, trace.NoRoute)
	seen := &trace.Seen{Where: "web", Src: client.String()}
	for _, c := range []struct {
		name    string
		f       Flow
		r       Run
		verdict trace.Verdict
		reason  trace.Reason
	}{
		{"a program says how it ended", Flow{}, Run{Out: host.Outcome{Done: true, Verdict: trace.Rejected, Reason: trace.PortClosed}},
			trace.Rejected, trace.PortClosed},
		{"what is not modelled comes before all", Flow{}, Run{Unknown: "it", Out: host.Outcome{Done: true, Verdict: trace.Delivered}},
			trace.Unknown, trace.ModelHole},
		{"no end", Flow{}, Run{Endless: errors.New("in circles")}, trace.Looped, trace.TTLExceeded},
		{"no step says where", Flow{}, Run{Steps: []trace.Step{step(trace.Request, "win1", trace.ActForward, "")}}, trace.Unknown,
			trace.ModelHole},
		{"dropped on the way", Flow{}, Run{Steps: []trace.Step{step(trace.Request, "win1", trace.ActDrop, trace.ACLBlock)}}, trace.Dropped,
			trace.ACLBlock},
		{"hop limit", Flow{}, Run{Steps: []trace.Step{step(trace.Request, "win1", trace.ActDrop, trace.TTLExceeded)}}, trace.Looped,
			trace.TTLExceeded},
		{"a refusal that got lost", Flow{}, Run{Steps: []trace.Step{step(trace.Request, "win1", trace.ActReject, trace.PortClosed)}},
			trace.NoReply, trace.PortClosed},
		{"echo that no rule translates", Flow{Proto: packet.ICMP}, Run{Steps: []trace.Step{missedByProtocol, noRoute}}, trace.Dropped,
			trace.ICMPNotTranslated},
		{"TCP past the same rule", Flow{Proto: packet.TCP}, Run{Steps: []trace.Step{missedByProtocol, noRoute}}, trace.Dropped, trace.NoRoute},
		{"overlay, pod address bare on the wire", overlay, Run{Steps: []trace.Step{onNode, onTheWire(pod), noRoute}}, trace.Dropped,
			trace.NotEncapsulated},
		{"overlay, from outside", overlay, Run{Steps: []trace.Step{onTheWire(pod), noRoute}}, trace.Dropped, trace.NoRoute},
		{"overlay, another address", overlay, Run{Steps: []trace.Step{onNode, onTheWire(client), noRoute}}, trace.Dropped, trace.NoRoute},
		{"l2bridge, pod address on the wire", Flow{Around: overlay.Around}, Run{Steps: []trace.Step{onNode, onTheWire(pod), noRoute}},
			trace.Dropped, trace.NoRoute},
		{"overlay, lost on a node", overlay, Run{Steps: []trace.Step{onNode, onTheWire(pod),
			step(trace.Request, "win2", trace.ActDrop, trace.NoRoute)}}, trace.Dropped, trace.NoRoute},
		{"overlay, the reply bare on the wire", overlay, Run{Seen: seen,
			Steps: []trace.Step{onNode, step(trace.Reply, "win1", trace.ActForward, ""), replyTo(pod), replyNoRoute}}, trace.NoReply,
			trace.NotEncapsulated},
		{"overlay, the reply of a machine outside", overlay, Run{Seen: seen, Steps: []trace.Step{onNode, replyTo(pod), replyNoRoute}},
			trace.NoReply, trace.NoWayBack},
		{"reply without a way", Flow{}, Run{Seen: seen, Steps: []trace.Step{replyNoRoute}}, trace.NoReply, trace.NoWayBack},
		{"reply to an echo that was not translated", Flow{Proto: packet.ICMP},
			Run{Seen: seen, Steps: []trace.Step{missedByProtocol, replyNoRoute}}, trace.NoReply, trace.ICMPNotTranslated},
		{"reply from an address that was not asked", Flow{}, Run{Seen: seen,
			Steps: []trace.Step{replySNAT, step(trace.Reply, "win1", trace.ActDrop, trace.UnexpectedSource)}}, trace.NoReply,
			trace.SourceTranslated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i := range c.r.Steps {
				c.r.Steps[i].N = i + 1
			}
			if p := c.f.Judge(nil, &c.r); p.Verdict != c.verdict || p.Reason != c.reason {
				t.Errorf("%s %s (%s), want %s %s", p.Verdict, p.Reason, p.Summary, c.verdict, c.reason)
			}
		})
	}
}

// Of a connection that goes on, the second packet is judged, and its steps are
// numbered after the first one's.
func TestSecondPacketIsJudged(t *testing.T) {
	t.Parallel()
	first := step(trace.Request, "win1", trace.ActDrop, trace.ACLBlock)
	first.N = 1
	second := step(trace.Request, "win1", trace.ActDrop, trace.NoRoute)
	second.N = 1
	f := &Flow{}
	p := f.Judge(nil, &Run{Before: []trace.Step{first}, Steps: []trace.Step{second}})
	if p.Reason != trace.NoRoute || len(p.Steps) != 2 || p.Steps[1].N != 2 {
		t.Errorf("%s, %d steps, the last is number %d", p.Reason, len(p.Steps), p.Steps[len(p.Steps)-1].N)
	}
}
