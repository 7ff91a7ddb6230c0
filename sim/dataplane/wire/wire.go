// Package wire carries frames between machines: network interfaces, layer-2
// segments, the queue of frames under way and the virtual clock.
//
// It knows frames and MAC addresses. It must not know routing, virtual
// switches or anything of Kubernetes: those are devices plugged into it.
package wire

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Device is a machine with network interfaces.
type Device interface {
	// Receive takes a frame that arrived at one of the device's interfaces.
	Receive(w *World, nic *NIC, p *packet.Packet)
	// ARP answers who has an address on the interface's segment.
	ARP(nic *NIC, ip netip.Addr) (packet.MAC, bool)
}

// NIC is a network interface plugged into a segment.
type NIC struct {
	Name    string
	MAC     packet.MAC
	Owner   Device
	Segment *Segment
	// Promiscuous interfaces get every frame that nobody else owns, and all
	// with a MAC address of theirs: a virtual switch behind the interface.
	Promiscuous func(packet.MAC) bool
}

// Segment is one layer-2 network. Its Policy, when set, sees every frame
// before it is delivered and may drop it or take it over.
type Segment struct {
	Name string
	// Place is where traces say the segment is; empty is "fabric".
	Place string
	// AnswersAll, when set, answers every ARP request with this address.
	AnswersAll packet.MAC
	NICs       []*NIC
	Policy     func(w *World, from *NIC, p *packet.Packet) (handled bool)
	// Forget, when set, makes Policy forget the flows that it has seen.
	Forget func()
}

func (s *Segment) place() string {
	if s.Place != "" {
		return s.Place
	}
	return "fabric"
}

func (s *Segment) object() string {
	if s.Place != "" {
		return s.Name
	}
	return "segment " + s.Name
}

// Attach plugs an interface in.
func (s *Segment) Attach(n *NIC) {
	n.Segment = s
	s.NICs = append(s.NICs, n)
}

var factWire = evidence.New("wire.ethernet", evidence.Stated,
	"An Ethernet segment delivers a frame to the interface that has its destination MAC address.", "IEEE 802.3")

// Send puts a frame on the segment.
func (s *Segment) Send(w *World, from *NIC, p *packet.Packet) {
	if w.Tap != nil {
		w.Tap(s, from, p)
	}
	if w.Rec.On() {
		w.Rec.Add(trace.Step{Place: s.place(), Object: s.object(), Action: trace.ActForward,
			Event: trace.Note("on the wire"), Packet: w.Rec.Describe(p), Frame: append([]byte(nil), p.Bytes()...)}.Cite(factWire))
	}
	if s.Policy != nil && s.Policy(w, from, p) {
		return
	}
	s.Deliver(w, from, p)
}

// Deliver hands a frame to the interface that owns its destination, past the
// segment's policy.
func (s *Segment) Deliver(w *World, from *NIC, p *packet.Packet) {
	dst := p.Headers().EthDst
	if dst.IsMulticast() {
		for _, n := range s.NICs {
			if n != from {
				q := p.Clone()
				w.Queue(func() { n.Owner.Receive(w, n, q) })
			}
		}
		return
	}
	for _, n := range s.NICs {
		if n != from && (n.MAC == dst || n.Promiscuous != nil && n.Promiscuous(dst)) {
			w.Queue(func() { n.Owner.Receive(w, n, p) })
			return
		}
	}
	w.Lose(s.place(), s.Name, trace.NoNeighbour)
	if w.Rec.On() {
		w.Rec.Add(trace.Step{Place: s.place(), Object: s.object(), Action: trace.ActDrop, Reason: trace.NoNeighbour,
			Event: trace.Note("nobody on the segment has the MAC address " + dst.String()), Packet: w.Rec.Describe(p)}.Cite(factWire))
	}
}

// Resolve asks all machines on the segment who has an address, as ARP or
// neighbour discovery does.
func (s *Segment) Resolve(from *NIC, ip netip.Addr) (packet.MAC, bool) {
	if !s.AnswersAll.IsZero() {
		return s.AnswersAll, true
	}
	for _, n := range s.NICs {
		if n == from {
			continue
		}
		if mac, ok := n.Owner.ARP(n, ip); ok {
			return mac, true
		}
	}
	return packet.MAC{}, false
}

// World is what moves: the frames under way and the clock.
type World struct {
	// Now is the virtual time.
	Now time.Duration
	Rec *trace.Recorder
	// Tap, when set, sees every frame on every segment.
	Tap func(s *Segment, from *NIC, p *packet.Packet)
	// Forced are the picks to make at the first choices; later choices take
	// the default. Made lists the choices that were made.
	Forced []int
	Made   []trace.Choice
	// Hole is set to the first hole of the model that a packet fell into.
	Hole string
	// Spread takes the default of every choice, a hash of the flow, also while
	// recording: a replay balances as a real switch does.
	Spread bool
	// TapPort, when set, sees every frame that enters or leaves a virtual
	// switch by one of its ports.
	TapPort func(place, port string, entering bool, p *packet.Packet)
	// Sink, when set, takes what arrives at a stack that owns the destination,
	// in place of the programs there: nobody answers. Place and object name
	// the stack.
	Sink func(place, object string, p *packet.Packet)
	// Lost is the last loss, also when nothing is recorded.
	Lost Loss

	queue []func()
	next  int // of queue
	env   vfp.Env
}

// Loss is where and why a packet was thrown away. The zero Loss is none.
type Loss struct {
	Place, Object string
	Reason        trace.Reason
}

// MaxEvents bounds one run: more means that packets travel in circles that no
// hop limit ends.
const MaxEvents = 4096

// Queue schedules an event after all that are waiting.
func (w *World) Queue(f func()) { w.queue = append(w.queue, f) }

// Run works the queue off. It returns an error when it does not end.
func (w *World) Run() error {
	defer func() {
		clear(w.queue)
		w.queue, w.next = w.queue[:0], 0
	}()
	for n := 0; w.next < len(w.queue); n++ {
		if n == MaxEvents {
			return fmt.Errorf("more than %d events for one packet", MaxEvents)
		}
		f := w.queue[w.next]
		w.next++
		f()
	}
	return nil
}

// Choose makes a choice and notes it.
func (w *World) Choose(where string, n, def int, label func(int) string) int {
	pick := def
	if i := len(w.Made); i < len(w.Forced) {
		pick = w.Forced[i] % n
	} else if w.Rec.On() && !w.Spread {
		pick = 0
	}
	w.Made = append(w.Made, trace.Choice{Where: where, Pick: pick, Of: n, Label: label(pick)})
	return pick
}

// Env is the environment for a packet that passes a virtual switch at place. It
// is valid until the next call.
func (w *World) Env(place string) *vfp.Env {
	if w.env.Choose == nil {
		w.env.Choose = w.Choose
	}
	w.env.Now, w.env.Rec, w.env.Place = w.Now, w.Rec, place
	return &w.env
}

// Lose notes that a packet was thrown away.
func (w *World) Lose(place, object string, reason trace.Reason) {
	w.Lost = Loss{place, object, reason}
}

// Fell notes that a packet fell into a hole of the model.
func (w *World) Fell(hole string) {
	if w.Hole == "" {
		w.Hole = hole
	}
}
