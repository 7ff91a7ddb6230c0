package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/flow/judge"
	"github.com/winlab-dev/winlab/sim/lab/flow/outcome"
	"github.com/winlab-dev/winlab/sim/trace"
)

// explore sends a flow for every combination of choices, and judges each path while
// the cluster is as it was left. It reports whether that was all of them: there may be
// more than outcome.MaxPaths.
func (c *Cluster) explore(ctx context.Context, f *flow) (paths []trace.Path, complete bool, err error) {
	todo := [][]int{nil}
	for len(todo) > 0 && len(paths) < outcome.MaxPaths {
		forced := todo[0]
		todo = todo[1:]
		if err := c.rebuildChanged(ctx); err != nil {
			return nil, false, err
		}
		r, err := c.sendAll(f, forced)
		if err != nil {
			return nil, false, err
		}
		p := f.Judge(knows{c}, &r)
		if err := c.further(ctx, f, forced, &p); err != nil {
			return nil, false, err
		}
		paths = append(paths, p)
		todo = append(todo, alternatives(r.Choices, len(forced))...)
	}
	return paths, len(todo) == 0, c.rebuildChanged(ctx)
}

// maxCauses bounds the causes that are named of one path.
const maxCauses = 4

// further finds what else would stop a packet that a rule blocked: it is sent again
// without that rule. The steps and the verdict stay those of the first time, and each
// further end is a cause of its own. Only what somebody decided to block, ACLs and rules
// of the network, can be left out: it is not known what a packet would meet behind a
// route that is not there.
func (c *Cluster) further(ctx context.Context, f *flow, forced []int, p *trace.Path) error {
	if _, blocked := blockedBy(p); !blocked {
		return nil
	}
	defer func() { f.lifted = nil }()
	at, all := p, []string{outcome.CauseOf(p)}
	for len(all) < maxCauses {
		l, blocked := blockedBy(at)
		if !blocked || f.lifted[l] {
			break
		}
		if f.lifted == nil {
			f.lifted = map[wire.Lift]bool{}
		}
		f.lifted[l] = true
		if err := c.rebuildChanged(ctx); err != nil {
			return err
		}
		r, err := c.sendAll(f, forced)
		if err != nil {
			return err
		}
		next := f.Judge(knows{c}, &r)
		if next.Verdict == trace.Delivered || next.Verdict == trace.Unknown {
			break
		}
		at, all = &next, append(all, outcome.CauseOf(&next))
	}
	if len(all) > 1 {
		p.Causes = all
		p.Summary = fmt.Sprintf("There are %d causes; fixing one reveals the next: %s", len(all), outcome.Numbered(all))
	}
	return nil
}

// blockedBy is the rule that ended a path, where a rule of an access list or of the
// network did.
func blockedBy(p *trace.Path) (wire.Lift, bool) {
	last := judge.LastReason(p.Steps)
	if last == nil || last.Reason != trace.ACLBlock && last.Reason != trace.FabricPolicy || last.RuleType == "" {
		return wire.Lift{}, false
	}
	return wire.LiftOf(last.Rule, last.From), true
}

// alternatives are the picks that were not made after the first ones.
func alternatives(made []trace.Choice, first int) [][]int {
	var all [][]int
	for i := first; i < len(made); i++ {
		for alt := 1; alt < made[i].Of; alt++ {
			next := make([]int, 0, i+1)
			for _, m := range made[:i] {
				next = append(next, m.Pick)
			}
			all = append(all, append(next, alt))
		}
	}
	return all
}

// sending is a flow under way.
type sending struct {
	c      *Cluster
	f      *flow
	sim    wire.Simulation
	rec    trace.Recorder // of the first packet
	socket *host.Socket
	err    error
}

// start opens the sender's socket: in a cluster without flows, or in one that runs
// as it is.
func (c *Cluster) start(f *flow, forced []int) *sending {
	if c.run == nil {
		c.Reset()
	}
	s := c.again.sending()
	s.c, s.f, s.sim.Choices = c, f, wire.Choices{Forced: forced, Explore: true, Pinned: c.Plan.Params.Pinned}
	s.rec.Expect(c.steps)
	s.sim.Rec = &s.rec
	if c.run != nil {
		c.run.journal.Undo()
		s.sim.Journal = c.run.journal
		s.sim.AdvanceTo(c.run.now)
	}
	if f.tap != nil {
		s.sim.Taps.Segment = func(g *wire.Segment, n *wire.NIC, p *packet.Packet) {
			if g.Place == "" {
				f.tap(g.Name, n.Name, p.Bytes())
			}
		}
	}
	s.sim.Lifted = f.lifted
	st := c.Machine(f.From).Stack()
	if f.elsewhere {
		st = otherContainer(st)
	}
	s.socket = st.OpenNoted(s.sim.Journal, f.Proto, f.src, f.srcPort, f.Dst)
	s.socket.DontFragment = f.dontFragment
	return s
}

// whySecondPacket says why there is a second packet.
func (f *flow) whySecondPacket() trace.Event {
	if f.data && f.idle == 0 && len(f.meanwhile) == 0 {
		return trace.Of(sendsData{len(f.payload)})
	}
	return trace.Of(sendsAgain{f.idle})
}

// send sends the flow's packet and lets the simulation run to its end.
func (s *sending) send() {
	s.sim.Rec.SetLeg(trace.Request)
	s.socket.Send(&s.sim, s.f.payload, s.f.ttl)
	s.err = s.sim.Run()
}

func (s *sending) result() judge.Run {
	steps := s.sim.Rec.Steps()
	s.c.steps = len(steps) // the next flow is often as long
	return judge.Run{Choices: s.sim.Made, Steps: steps, Seen: s.sim.Rec.Seen(), Arrived: s.sim.Rec.Arrived(), Out: s.socket.Outcome,
		Unknown: s.sim.Unknown, Endless: s.err}
}

// sendAll sends a flow: its first packet and, when something comes after that, a
// second one, which is what is judged. The error is an HNS call's.
func (c *Cluster) sendAll(f *flow, forced []int) (judge.Run, error) {
	s := c.start(f, forced)
	s.send()
	if s.err != nil || f.idle == 0 && len(f.meanwhile) == 0 && !f.data || s.socket.Outcome.Verdict != trace.Delivered {
		return s.result(), nil
	}
	before := s.sim.Rec.Steps()
	// The second packet gets a record of its own.
	s.sim.Rec = &trace.Recorder{}
	s.sim.Rec.SetLeg(trace.Request)
	s.sim.Rec.Add(trace.Step{Place: f.label, Action: trace.ActNote, Event: f.whySecondPacket()})
	s.sim.AdvanceTo(s.sim.Now() + f.idle)
	if err := s.meanwhile(); err != nil {
		return judge.Run{}, err
	}
	if s.err == nil {
		s.send()
	}
	r := s.result()
	r.Before = slices.Clip(before)
	return r, nil
}

// meanwhile makes HNS calls in the middle of a connection and cuts the flows
// that applying ACLs again cuts.
func (s *sending) meanwhile() error {
	if len(s.f.meanwhile) == 0 {
		return nil
	}
	s.c.changed = true
	for _, call := range s.f.meanwhile {
		s.sim.Rec.Add(trace.Step{Place: call.Node, Object: "HNS", Action: trace.ActNote, Event: trace.Of(hnsCalled{call.What})})
	}
	if err := s.c.Cluster.Call(s.f.meanwhile); err != nil {
		return fmt.Errorf("meanwhile: %w", err)
	}
	s.c.Cut(&s.sim)
	s.err = s.sim.Run()
	return nil
}
