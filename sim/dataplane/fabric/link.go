package fabric

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Link is a segment, or the cable of one interface on it, that is cut, slow or lossy.
// The machines at its ends do not notice: their interfaces stay up, as behind a switch
// whose other side is cut off.
type Link struct {
	// Name is what steps call it: "segment nodes", "link of win1 on nodes".
	Name string
	// Down carries nothing.
	Down bool
	// Delay is how long a frame takes in each direction, give or take up to Jitter,
	// with which frames overtake one another. Without it they keep their order.
	Delay, Jitter time.Duration
	// Loss is the share of frames that are lost, 0 to 1.
	Loss float64
	// Rate is in bits per second, for each direction of a cable and for a segment as a
	// whole; 0 means no limit.
	Rate   uint64
	Origin *trace.Origin

	// free is when the last frame of each direction has left, in the time of
	// [wire.Pace].
	free [2]time.Duration
}

// queued is how much waits for a link with a rate before frames are lost, in bytes:
// a thousand packets, as netem's default limit has it (tc-netem(8)).
const queued = 1000 * 1500

// Carry implements [wire.Line].
func (l *Link) Carry(sim *wire.Simulation, to *wire.NIC, p *packet.Packet, on func(p *packet.Packet)) {
	if sim.Pace != nil {
		sim.Path.GiveUp()
	}
	switch {
	case l.Down:
		l.drop(sim, p, trace.LinkDown, trace.Note("the link is cut"))
		return
	case l.Loss >= 1, l.Loss > 0 && sim.Pace != nil && sim.Pace.Random() < l.Loss:
		l.drop(sim, p, trace.LinkLoss, trace.Of(lostByChance{l.Loss}))
		return
	case sim.Pace == nil || l.Delay == 0 && l.Jitter == 0 && l.Rate == 0:
		on(p)
		return
	}
	now := sim.Pace.Now()
	until, ok := l.leaves(now, to != nil, p.Len())
	if !ok {
		l.drop(sim, p, trace.LinkLoss, trace.Note("more frames wait for the link than its queue holds"))
		return
	}
	until += l.Delay
	if l.Jitter > 0 {
		until += time.Duration((2*sim.Pace.Random() - 1) * float64(l.Jitter))
	}
	switch {
	case until <= now:
		on(p)
	case !sim.Pace.Hold(until, p, on):
		l.drop(sim, p, trace.LinkLoss, trace.Note("more frames are in flight on slow links than winlab keeps"))
	}
}

// leaves is when the last bit of a frame is on the link; ok is false when its queue is
// full.
func (l *Link) leaves(now time.Duration, towards bool, size int) (at time.Duration, ok bool) {
	if l.Rate == 0 {
		return now, true
	}
	free := &l.free[0]
	if towards {
		free = &l.free[1]
	}
	if *free > now && float64(*free-now)/float64(time.Second)*float64(l.Rate) > 8*queued {
		return 0, false
	}
	*free = max(*free, now) + time.Duration(float64(size)*8/float64(l.Rate)*float64(time.Second))
	return *free, true
}

func (l *Link) drop(sim *wire.Simulation, p *packet.Packet, reason trace.Reason, e trace.Event) {
	record(sim, l.Name, p, trace.Step{Action: trace.ActDrop, Reason: reason, Event: e, From: l.Origin}.Cite(factLink))
}
