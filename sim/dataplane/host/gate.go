package host

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Gate is something that was written down for connections of a stack and that no rule
// here applies: a NetworkPolicy whose enforcement is not modelled, a bug of a build
// without a description. A connection that would pass it in any case is not affected;
// any other one is unknown from there on, or passes with a remark where a fact says
// that the gate has no effect, or is dropped where one says that it is.
//
// Answers of a connection that is known do not meet gates.
type Gate struct {
	// Out is for connections that programs of this stack open; without it, for those
	// that others open to it.
	Out bool
	// Passes reports whether a packet passes whatever the gate does; nil: none does.
	Passes func(h *packet.Headers) bool
	// Event says what the packet has met, Origin who wrote it.
	Event  trace.Event
	Origin *trace.Origin
	// Fact is the evidence: that it is not known what it does, or with Open that it
	// lets everything pass, with Closed that it drops all else.
	Fact         *evidence.Fact
	Open, Closed bool
	// Question, when set, is asked of a connection that would meet the gate, about
	// the stack's machine, or with OfCluster about all of them at once; the gate is there
	// with Answer.
	Question  *evidence.Question
	OfCluster bool
	Answer    string
}

// HasGates reports whether there is one.
func (s *Stack) HasGates() bool { return len(s.gates) > 0 }

// RemoveGates takes those gates away that match.
func (s *Stack) RemoveGates(match func(Gate) bool) { s.gates = slices.DeleteFunc(s.gates, match) }

// AddGate adds a gate behind those that are there.
func (s *Stack) AddGate(g Gate) { s.gates = append(s.gates, g) }

// AddGateFirst adds a gate before those that are there.
func (s *Stack) AddGateFirst(g Gate) { s.gates = slices.Insert(s.gates, 0, g) }

func (s *Stack) placeOfGate(g *Gate) string {
	if g.OfCluster {
		return ""
	}
	return s.Place
}

// admits lets a packet that opens a connection meet the stack's gates; false when it is
// not known how it goes on.
func (s *Stack) admits(sim *wire.Simulation, p *packet.Packet, out bool) bool {
	for i := range s.gates {
		g := &s.gates[i]
		if g.Out != out || g.Passes != nil && g.Passes(p.Headers()) || g.Question != nil && sim.Ask(g.Question, s.placeOfGate(g)) != g.Answer {
			continue
		}
		if g.Open {
			s.step(sim, p, trace.Step{Action: trace.ActNote, Event: g.Event, From: g.Origin}, g.Fact)
			continue
		}
		if g.Closed {
			s.step(sim, p, trace.Step{Action: trace.ActDrop, Reason: trace.ACLBlock, Event: g.Event, From: g.Origin}, g.Fact)
			return false
		}
		sim.RecordUnknown(g.Event.Text())
		s.step(sim, p, trace.Step{Action: trace.ActUnknown, Reason: trace.ModelHole, Event: g.Event, From: g.Origin}, g.Fact)
		return false
	}
	return true
}
