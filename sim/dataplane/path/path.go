// Package path keeps what one packet did on its whole way through a simulation, so that
// the packets of the flow that follow need not visit the machines again: the path flow,
// which is to a network what the unified flow is to a port of VFP (docs/reference/speed.md).
//
// A [Record] is filled in while a packet goes its way. Every device that the packet
// visits says on what the way rests: on counters that count changes, and on flows and
// translations that have an age and live on when a packet follows them. What it does to
// the packet, the packet notes itself ([packet.Edits]). A device that cannot say gives
// the record up ([Record.GiveUp]), and each packet of the flow visits the devices.
//
// A packet that follows costs a look at two numbers, how often something has changed and
// when the first state of the way ends ([Ways]), and the states are told of it later.
//
// The package knows packets, counters and times. It must not know what devices there
// are, and it decides nothing about a packet: there is one data plane.
package path

import (
	"math"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// Record is what is being noted of one packet's way. A nil Record notes nothing.
type Record struct {
	// Edits are what was done to the packet.
	Edits packet.Edits
	// Len is the length of the frame in bytes at the beginning of the way.
	Len int
	// Ways are the flows of which this way will be one; nil when its flow is asked
	// itself whether it holds.
	Ways *Ways

	rests  []rest
	states []State
	given  bool
	// full is how many bytes less than maxRoom the packet could have been longer.
	full int
}

// maxRoom is the room of a path on which the packet's size was not examined, in bytes.
const maxRoom = 1 << 16

// rest is a counter that must not have changed.
type rest struct {
	counter *uint32
	was     uint32
}

// State is something on the way that ages, or that packets change: a flow, a
// translation.
type State interface {
	// Holds reports whether a packet at that time would find the state as the packet of
	// the record did.
	Holds(now time.Duration) bool
	// Until is the time from which on Holds would report false if nothing happened any
	// more; [Forever] when time alone does not end it.
	Until() time.Duration
	// Pass does to the state what packets do that come by. It is called when all states
	// of the way hold. Packets that come by again must do nothing but move Until on, with
	// the latest of their times; where the first one has done more, it says so
	// ([Passing.Changes]).
	Pass(by *Passing)
}

// Forever is when something ends that time does not end.
const Forever = time.Duration(math.MaxInt64)

// Passing is packets that go a way that was recorded, one after another.
type Passing struct {
	// Now is the time of the last one on the virtual clock.
	Now time.Duration
	// Proto and TCPFlags are those with which the packets began their way. In a tunnel
	// they have others; the State knows that. Of the flags only those count by which
	// packets of one flow do not differ: SYN, FIN and RST.
	Proto    packet.Proto
	TCPFlags uint8
	// Packets is how many there are, Bytes the length of all frames at the beginning.
	Packets, Bytes uint64

	changes bool
}

// Changes notes that the packets have changed more of a state than its time: other flows
// that follow it are asked again whether they hold.
func (by *Passing) Changes() { by.changes = true }

// On reports whether somebody records.
func (r *Record) On() bool { return r != nil }

// Rests notes that the way would be the same as long as a counter is what it is now. The
// device that counts gets the Ways that it says its changes to.
func (r *Record) Rests(counter *uint32, ways **Ways) {
	if r != nil {
		*ways = r.Ways
		r.rests = append(r.rests, rest{counter, *counter})
	}
}

// Follows notes a state that the packet has followed, and of which device.
func (r *Record) Follows(s State, ways **Ways) {
	if r != nil {
		*ways = r.Ways
		r.states = append(r.states, s)
	}
}

// Fits notes that the packet could have been longer by a number of bytes at a place where
// its size decides; 0 where the next byte could make a difference.
func (r *Record) Fits(room int) {
	if r != nil {
		r.full = max(r.full, maxRoom-room)
	}
}

// Room is how much longer, in bytes, a packet can be that goes the same way.
func (r *Record) Room() int { return maxRoom - r.full }

// GiveUp notes that the way cannot be kept: the packet has met something about which nothing
// says when it changes.
func (r *Record) GiveUp() {
	if r != nil {
		r.given = true
	}
}

// Keepable reports whether the way can be kept.
func (r *Record) Keepable() bool { return !r.given && r.Edits.Exact() }

// Reset makes the record ready for another packet.
func (r *Record) Reset() {
	r.Edits.Reset()
	clear(r.states)
	r.Ways = nil
	r.rests, r.states, r.given, r.full = r.rests[:0], r.states[:0], false, 0
}

// Flow is a way that was kept.
type Flow struct {
	ways *Ways
	// seen is what ways.changes was when the flow was last found to hold; it holds until
	// the time until if that is what it is still.
	seen  uint64
	until time.Duration
	// passed are packets of which the states do not know yet.
	passed Passing

	edits  packet.Edits
	rests  []rest
	states []State
}

// Flow is the recorded way, independent of the record. A counter that changed after a
// device had noted it, by the packet itself or by what it started, makes the flow one
// that does not hold.
func (r *Record) Flow() *Flow {
	return &Flow{ways: r.Ways, edits: r.Edits.Clone(), rests: unique(r.rests), states: append([]State(nil), r.states...)}
}

// unique leaves out what is there twice.
func unique(all []rest) []rest {
	var once []rest
next:
	for _, r := range all {
		for _, o := range once {
			if o == r {
				continue next
			}
		}
		once = append(once, r)
	}
	return once
}

// Holds reports whether a packet at that time would go the same way.
func (f *Flow) Holds(now time.Duration) bool {
	for i := range f.rests {
		if r := &f.rests[i]; *r.counter != r.was {
			return false
		}
	}
	for _, s := range f.states {
		if !s.Holds(now) {
			return false
		}
	}
	return true
}

// Until is the time from which on the flow would hold no more if nothing happened.
func (f *Flow) Until() time.Duration {
	until := Forever
	for _, s := range f.states {
		until = min(until, s.Until())
	}
	return until
}

// Pass notes packets at every state of the way.
func (f *Flow) Pass(by *Passing) {
	for _, s := range f.states {
		s.Pass(by)
	}
}

// Redo does to a packet what is done to it between two places of the way, given as
// [packet.Edits.Len] said them.
func (f *Flow) Redo(p *packet.Packet, from, to int) error { return f.edits.Redo(p, from, to) }
