package wire

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// maxEvents bounds one run: more means that packets travel in circles that no
// hop limit ends.
const maxEvents = 4096

// EventQueue holds what is still to happen, in order. A device that passes a
// packet on queues its arrival instead of calling the next device, so a packet
// that travels in a circle ends as an error and not as a stack overflow. The
// zero EventQueue is empty and ready to use.
type EventQueue struct {
	waiting []event
	next    int // of waiting
}

// event is a function, or the arrival of a packet: most events are arrivals, and a closure
// for each would be an allocation for each hop of each packet.
type event struct {
	f       func()
	arrives func(*Simulation, *packet.Packet)
	sim     *Simulation
	p       *packet.Packet
}

// Queue schedules an event after all that are waiting.
func (q *EventQueue) Queue(f func()) { q.waiting = append(q.waiting, event{f: f}) }

// Arrives schedules the arrival of a packet after all that is waiting.
func (sim *Simulation) Arrives(at func(*Simulation, *packet.Packet), p *packet.Packet) {
	sim.waiting = append(sim.waiting, event{arrives: at, sim: sim, p: p})
}

// Run works the queue off, with the events that are queued meanwhile. It
// returns an error when that does not end. The queue is empty afterwards.
func (q *EventQueue) Run() error {
	defer func() {
		clear(q.waiting[:cap(q.waiting)])
		q.waiting, q.next = q.waiting[:0], 0
	}()
	for n := 0; q.next < len(q.waiting); n++ {
		if n == maxEvents {
			return fmt.Errorf("more than %d events for one packet", maxEvents)
		}
		e := q.waiting[q.next]
		if q.next++; q.next == len(q.waiting) { // most often only one event waits
			q.waiting, q.next = q.waiting[:0], 0
		}
		if e.f != nil {
			e.f()
		} else {
			e.arrives(e.sim, e.p)
		}
	}
	return nil
}
