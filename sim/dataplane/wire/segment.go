package wire

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Device is a machine with network interfaces.
type Device interface {
	// Receive takes a frame that arrived at one of the device's interfaces.
	Receive(sim *Simulation, nic *NIC, p *packet.Packet)
	// ARP answers who has an address on the interface's segment.
	ARP(nic *NIC, ip netip.Addr) (packet.MAC, bool)
}

// NIC is a network interface plugged into a segment.
type NIC struct {
	Name    string
	MAC     packet.MAC
	Owner   Device
	Segment *Segment
	// Promiscuous, when set, reports further MAC addresses whose frames the
	// interface takes: those of machines on a virtual switch that it connects.
	Promiscuous func(packet.MAC) bool
	// Line, when set, is the cable between the interface and its segment.
	Line Line

	arrives func(*Simulation, *packet.Packet) // what its machine takes
}

// Line is a cable that is more than that: it holds frames up, or loses them.
type Line interface {
	// Carry takes a frame, towards an interface or, with nil, onto the segment, and
	// calls on with it when it has crossed, at once or as an event of its own. A frame
	// that is lost it records, and does not pass on.
	Carry(sim *Simulation, to *NIC, p *packet.Packet, on func(p *packet.Packet))
}

// Hand gives a frame that has crossed the segment to the interface's machine.
func (n *NIC) Hand(sim *Simulation, p *packet.Packet) {
	if n.Line == nil {
		if n.arrives == nil { // attached to no segment
			sim.Queue(func() { n.Owner.Receive(sim, n, p) })
		} else {
			sim.Arrives(n.arrives, p)
		}
		return
	}
	n.Line.Carry(sim, n, p, func(p *packet.Packet) { sim.Queue(func() { n.Owner.Receive(sim, n, p) }) })
}

// Segment is one layer-2 network. Its Policy, when set, sees every frame
// before it is delivered and may drop it or take it over.
type Segment struct {
	Name string
	// Place is where traces say the segment is; empty is [Fabric].
	Place string
	// AnswersAll, when set, answers every ARP request with this address.
	AnswersAll packet.MAC
	// Unknown says why not all machines on it are known, "" where they are: then somebody may
	// answer for an address that no interface here has, and what becomes of a frame to them is
	// unknown.
	Unknown string
	NICs    []*NIC
	Policy  func(sim *Simulation, from *NIC, p *packet.Packet) (handled bool)
	// Line, when set, is crossed by every frame of the segment, before Policy.
	Line Line
	// MTU is the largest IP packet that it carries in bytes, 0 for no bound. Cut, when
	// set, decides what becomes of a larger one, and reports whether it goes on; without
	// it the packet is lost.
	MTU int
	Cut func(sim *Simulation, p *packet.Packet) (goesOn bool)
	// Forget, when set, makes Policy forget the flows that it has seen.
	Forget func()
	// Epoch, when set, counts changes of what machines answer and which frames they take:
	// as long as it stays the same, they are asked once. Without it they are always asked.
	Epoch func() uint64

	known known
	// said is how steps name the segment while its name is what named says.
	named, said string
}

// known is what a segment has found out about its machines in one epoch.
type known struct {
	epoch   uint64
	answers map[netip.Addr]firsts
	takers  map[packet.MAC]firsts
}

// firsts are the first two machines that answer for an address, or take its frames; nil
// for none. One of them may be the one that asks.
type firsts [2]struct {
	nic *NIC
	mac packet.MAC
}

// firstExcept is the first that is not the one who asks.
func (f *firsts) firstExcept(from *NIC) (*NIC, packet.MAC) {
	for _, x := range f {
		if x.nic != nil && x.nic != from {
			return x.nic, x.mac
		}
	}
	return nil, packet.MAC{}
}

// maxKnown bounds what is remembered of a segment: a hostile capture must not fill the
// memory.
const maxKnown = 1 << 16

// knownThisEpoch returns what is known in this epoch, nil where everybody is to be asked.
func (s *Segment) knownThisEpoch() *known {
	if s.Epoch == nil {
		return nil
	}
	k := &s.known
	if now := s.Epoch(); k.answers == nil || k.epoch != now || len(k.answers)+len(k.takers) >= maxKnown {
		*k = known{now, map[netip.Addr]firsts{}, map[packet.MAC]firsts{}}
	}
	return k
}

// first asks machines in turn, and returns the first two of whom f says yes.
func (s *Segment) first(f func(*NIC) (packet.MAC, bool)) (found firsts) {
	n := 0
	for _, nic := range s.NICs {
		mac, ok := f(nic)
		if !ok {
			continue
		}
		found[n].nic, found[n].mac = nic, mac
		if n++; n == len(found) {
			break
		}
	}
	return found
}

// Fabric is the place in traces of everything between the machines.
const Fabric = "fabric"

func (s *Segment) place() string {
	if s.Place != "" {
		return s.Place
	}
	return Fabric
}

func (s *Segment) object() string {
	if s.Place != "" {
		return s.Name
	}
	if s.named != s.Name || s.said == "" {
		s.named, s.said = s.Name, "segment "+s.Name
	}
	return s.said
}

// Attach plugs an interface in.
func (s *Segment) Attach(n *NIC) {
	n.Segment = s
	n.arrives = func(sim *Simulation, p *packet.Packet) { n.Owner.Receive(sim, n, p) }
	s.NICs = append(s.NICs, n)
	s.known = known{}
}

// Detach takes interfaces away.
func (s *Segment) Detach(gone func(*NIC) bool) {
	s.NICs = slices.DeleteFunc(s.NICs, gone)
	s.known = known{}
}

var factWire = evidence.New("wire.ethernet", evidence.Stated,
	"An Ethernet segment delivers a frame to the interface that has its destination MAC address.", "IEEE 802.3")

var factGiant = evidence.New("wire.giant", evidence.Stated,
	"A switch silently drops a frame that is larger than it carries.", "IEEE 802.3", "RFC 4821 section 1")

// Send puts a frame on the segment.
func (s *Segment) Send(sim *Simulation, from *NIC, p *packet.Packet) {
	sim.Taps.seeSegment(s, from, p)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: s.place(), Object: s.object(), Action: trace.ActForward,
			Event: trace.Note("on the wire"), Packet: sim.Rec.Describe(p), Frame: sim.Rec.Copy(p)}.Cite(factWire))
	}
	if from.Line == nil {
		s.cross(sim, from, p)
		return
	}
	from.Line.Carry(sim, nil, p, func(p *packet.Packet) { s.cross(sim, from, p) })
}

// cross takes a frame that is on the segment across it.
func (s *Segment) cross(sim *Simulation, from *NIC, p *packet.Packet) {
	if s.Line == nil {
		s.decide(sim, from, p)
		return
	}
	s.Line.Carry(sim, nil, p, func(p *packet.Packet) { s.decide(sim, from, p) })
}

func (s *Segment) decide(sim *Simulation, from *NIC, p *packet.Packet) {
	if s.MTU > 0 {
		if p.Size() > s.MTU && !s.tooBig(sim, p) {
			return
		}
		sim.Path.Fits(max(s.MTU-p.Size(), 0))
	}
	if s.Policy == nil || !s.Policy(sim, from, p) {
		s.deliver(sim, from, p)
	}
}

// tooBig is a packet larger than the segment carries. It reports whether it goes on.
func (s *Segment) tooBig(sim *Simulation, p *packet.Packet) bool {
	if s.Cut != nil {
		return s.Cut(sim, p)
	}
	sim.RecordLoss(s.place(), s.object(), trace.PacketTooBig)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: s.place(), Object: s.object(), Action: trace.ActDrop, Reason: trace.PacketTooBig,
			Event: trace.Of(giant{p.Size(), s.MTU}), Packet: sim.Rec.Describe(p)}.Cite(factGiant))
	}
	return false
}

// deliver hands a frame to the first interface that takes its destination, and
// a copy of a group frame to all interfaces but the sender's.
func (s *Segment) deliver(sim *Simulation, from *NIC, p *packet.Packet) {
	dst := p.Headers().EthDst
	if dst.IsMulticast() {
		for _, n := range s.NICs {
			if n != from {
				n.Hand(sim, p.Clone())
			}
		}
		return
	}
	if n := s.Taker(from, dst); n != nil {
		n.Hand(sim, p)
		return
	}
	if s.Unknown != "" {
		sim.RecordUnknown(s.Unknown)
	}
	sim.RecordLoss(s.place(), s.Name, trace.NoNeighbour)
	if sim.Rec.On() {
		what := trace.Of(nobodyHas{dst})
		if s.Unknown != "" {
			what = trace.Note("to a machine that is not in the lab, if there is one")
		}
		sim.Rec.Add(trace.Step{Place: s.place(), Object: s.object(), Action: trace.ActDrop, Reason: trace.NoNeighbour,
			Event: what, Packet: sim.Rec.Describe(p)}.Cite(factWire))
	}
}

// Taker is the first interface that takes frames to a MAC address, nil for none.
func (s *Segment) Taker(from *NIC, dst packet.MAC) *NIC {
	k := s.knownThisEpoch()
	if k == nil {
		for _, n := range s.NICs {
			if n != from && n.takes(dst) {
				return n
			}
		}
		return nil
	}
	found, ok := k.takers[dst]
	if !ok {
		epoch := k.epoch
		found = s.first(func(n *NIC) (packet.MAC, bool) { return dst, n.takes(dst) })
		if k = s.knownThisEpoch(); k.epoch == epoch {
			k.takers[dst] = found
		}
	}
	n, _ := found.firstExcept(from)
	return n
}

// takes reports whether the interface takes frames to a MAC address.
func (n *NIC) takes(dst packet.MAC) bool {
	return n.MAC == dst || n.Promiscuous != nil && n.Promiscuous(dst)
}

// unknownMAC stands for the address of a machine that may be on a segment.
var unknownMAC = packet.MAC{0x02}

// Resolve asks all machines on the segment who has an address, as ARP or
// neighbour discovery does.
func (s *Segment) Resolve(from *NIC, ip netip.Addr) (packet.MAC, bool) {
	if !s.AnswersAll.IsZero() {
		return s.AnswersAll, true
	}
	if mac, ok := s.ask(from, ip); ok {
		return mac, true
	}
	if s.Unknown != "" {
		return unknownMAC, true
	}
	return packet.MAC{}, false
}

// ask asks the machines for an address.
func (s *Segment) ask(from *NIC, ip netip.Addr) (packet.MAC, bool) {
	k := s.knownThisEpoch()
	if k == nil {
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
	found := s.answering(k, ip)
	n, mac := found.firstExcept(from)
	return mac, n != nil
}

// Owner is the first interface whose machine answers for an address, nil for none.
func (s *Segment) Owner(ip netip.Addr) *NIC {
	var found firsts
	if k := s.knownThisEpoch(); k != nil {
		found = s.answering(k, ip)
	} else {
		found = s.first(func(n *NIC) (packet.MAC, bool) { return n.Owner.ARP(n, ip) })
	}
	n, _ := found.firstExcept(nil)
	return n
}

// answering asks the machines for an address that has not been asked for in this epoch.
func (s *Segment) answering(k *known, ip netip.Addr) firsts {
	found, ok := k.answers[ip]
	if !ok {
		epoch := k.epoch
		found = s.first(func(n *NIC) (packet.MAC, bool) { return n.Owner.ARP(n, ip) })
		if k = s.knownThisEpoch(); k.epoch == epoch { // else a machine has done only now what waited
			k.answers[ip] = found
		}
	}
	return found
}
