package wire

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Simulation is the state of one running simulation. Every device gets it with
// every frame: it says what time it is, takes the events that the device
// schedules, makes the choices that a real system leaves open, and notes what
// happened. Devices keep their own state (flows, routes, sockets) themselves.
//
// The zero Simulation is ready to use: it records nothing and starts at time 0.
// It is not safe for concurrent use.
type Simulation struct {
	Clock
	EventQueue
	Choices
	Losses
	Taps Taps
	// CheckChecksums makes stacks look at the checksums of what they receive. A
	// device that spoils one sets it: all other frames are right by construction.
	CheckChecksums bool
	// Lifted are rules that block and are left out this time, to see what else is in
	// the path of a packet that they blocked.
	Lifted map[Lift]bool
	// Sink, when set, is offered what arrives at a stack that owns the destination,
	// before the programs there, and reports whether it takes it. Place and object
	// name the stack. A packet that was taken is not changed until Run returns.
	Sink func(place, object string, p *packet.Packet) (taken bool)
	// Pace, when set, lets frames take time and be lost by chance on lines. Without
	// it, in a trace and in a replay, lines hold nothing up, and lose all or nothing.
	Pace Pace
	// Journal notes what the simulation changes in devices, to be undone; nil for a
	// simulation whose changes stay.
	Journal *journal.Journal
	// Rec records the steps; nil records none.
	Rec *trace.Recorder
	// Path records the way of the packet, to be kept for those that follow; nil records
	// none. Whoever visits a packet says there on what the way rests.
	Path *path.Record
}

// Pace is the time that lines take, and their chance.
type Pace interface {
	// Now is the time of the lines, which need not be that of the simulation's clock.
	Now() time.Duration
	// Hold keeps a frame until a time and calls on with it then. It reports false
	// when it cannot keep more.
	Hold(until time.Duration, p *packet.Packet, on func(p *packet.Packet)) (held bool)
	// Random is a random number from 0 on, less than 1.
	Random() float64
}

// Lift names a rule that blocks: by its name and where it comes from.
type Lift struct{ Rule, From string }

// LiftOf names a rule.
func LiftOf(rule string, from *trace.Origin) Lift {
	if from == nil {
		return Lift{Rule: rule}
	}
	return Lift{rule, from.String()}
}

// Clock is the virtual time since the start of a simulation. It advances only
// by AdvanceTo, and never runs backwards.
type Clock struct{ now time.Duration }

// Now returns the virtual time.
func (c *Clock) Now() time.Duration { return c.now }

// AdvanceTo sets the time; an earlier time than now changes nothing.
func (c *Clock) AdvanceTo(t time.Duration) { c.now = max(c.now, t) }

// Choices makes the choices that a real system leaves open, such as a load
// balancer's backend, answers the questions that no source decides, and lists
// both.
type Choices struct {
	// Forced are the picks to make at the first choices.
	Forced []int
	// Pinned answers questions by their parameter. An answer that is pinned is no
	// choice.
	Pinned map[string]string
	// Known are answers to questions that an earlier simulation of the same world
	// has given.
	Known []trace.Choice
	// Explore takes the first candidate at all later choices, so that the
	// caller can force the others one after another. Without it they take their
	// default, a hash of the flow: a replay balances as a real switch does.
	Explore bool
	// Made lists the choices that were made.
	Made []trace.Choice
}

// Choose picks one of n candidates and notes it. Where names the rule that
// picks, def is what its hash says, and label names a candidate.
func (c *Choices) Choose(where string, n, def int, label func(int) string) int {
	pick := def
	if i := len(c.Made); i < len(c.Forced) {
		pick = c.Forced[i] % n
	} else if c.Explore {
		pick = 0
	}
	c.Made = append(c.Made, trace.Choice{Where: where, Pick: pick, Of: n, Label: label(pick)})
	return pick
}

// Ask answers a question that no source decides, with one of the values of its
// answers. In one simulation the same question about the same thing (a machine, a
// rule; "" for the whole lab) has the same answer every time.
func (c *Choices) Ask(q *evidence.Question, about string) string {
	if v, ok := c.Pinned[q.Param]; ok {
		return v
	}
	for _, given := range [][]trace.Choice{c.Known, c.Made} {
		for i := range given {
			if m := &given[i]; m.Param == q.Param && m.Where == about {
				return m.Value
			}
		}
	}
	pick := c.Choose(about, len(q.Answers), 0, func(i int) string { return q.Answers[i].Means })
	made := &c.Made[len(c.Made)-1]
	made.Param, made.Value = q.Param, q.Answers[pick].Value
	return made.Value
}

// Losses notes the packets that went no further, also when nothing is recorded.
type Losses struct {
	// Unknown is the first behaviour that a packet needed and that is not
	// modelled; "" when all was known.
	Unknown string
	// Lost is the last loss.
	Lost Loss
}

// Loss is where and why a packet was dropped. The zero Loss means that it was not.
type Loss struct {
	Place, Object string
	Reason        trace.Reason
}

// RecordLoss notes that a packet was thrown away.
func (l *Losses) RecordLoss(place, object string, reason trace.Reason) {
	l.Lost = Loss{place, object, reason}
}

// RecordUnknown notes that a packet needed a behaviour that is not modelled.
func (l *Losses) RecordUnknown(what string) {
	if l.Unknown == "" {
		l.Unknown = what
	}
}

// Taps see frames and do not change them; a nil one is not called. A frame is
// valid until the tap returns.
type Taps struct {
	// Segment sees every frame that an interface sends on a segment.
	Segment func(s *Segment, from *NIC, p *packet.Packet)
	// Port sees every frame that enters or leaves a virtual switch by one of
	// its ports.
	Port func(place, port string, entering bool, p *packet.Packet)
}

func (t *Taps) seeSegment(s *Segment, from *NIC, p *packet.Packet) {
	if t.Segment != nil {
		t.Segment(s, from, p)
	}
}

// SeePort shows a frame at the port of a virtual switch to the tap there.
func (t *Taps) SeePort(place, port string, entering bool, p *packet.Packet) {
	if t.Port != nil {
		t.Port(place, port, entering, p)
	}
}
