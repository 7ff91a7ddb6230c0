// Package inject puts frames into a built cluster from outside and follows them to their
// end: those of a capture, which nobody answers ([Injector]), and those of programs that are
// plugged into the machines of a network that runs ([Ports]).
//
// It must not know requests, expectations and verdicts on flows: it says of one frame where
// it went and how it ended.
package inject

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Injector puts frames of a capture into a cluster and watches where they go.
// Programs do not answer: a frame ends where it arrives. Flows, translations
// and the clock last from frame to frame.
type Injector struct {
	c     *cluster.Cluster
	sim   wire.Simulation
	p     packet.Packet
	sunk  int
	where string
	place string
	to    *host.Stack

	byMAC  map[packet.MAC]*Entry
	byAddr map[netip.Addr]*Entry
	ports  map[string]*Entry
	wires  map[*wire.Segment]*Entry
	stacks map[[2]string]*host.Stack
	hops   map[nextKey]nextHop
	// routesOf is the configuration's epoch for which hops were found.
	routesOf uint64

	hop        Hop
	boundaries map[Boundary]*Boundary
	crossed    int  // boundaries, by the last frame
	followed   bool // the last frame went along a path that was kept
	outcomes   map[Outcome]*Outcome

	paths        pathTable
	rec          path.Record
	passing      path.Passing // kept, so that a packet costs no allocation
	way          []crossing   // of the frame that is recorded
	size, length int          // of it, when it was put in
	// live is set when programs outside the simulation answer; see Open.
	live *ports
}

// Entry is a place where a frame can be put in.
type Entry struct {
	// Name is pod/NAMESPACE/NAME, node/NAME, host/NAME or wire/SEGMENT.
	Name string

	link  *host.Link
	stack *host.Stack
	seg   *wire.Segment
	nic   *wire.NIC
}

type nextKey struct {
	e   *Entry
	dst netip.Addr
}

type nextHop struct {
	link *host.Link
	mac  packet.MAC
}

// Outcome is what happened to a frame.
type Outcome struct {
	Verdict trace.Verdict
	Reason  trace.Reason
	// Place and Object name the stack that took it, or where it was lost. When
	// the verdict is unknown Object says what is not known.
	Place, Object string
	// Held says that the packet is on its way over a slow link, and that there is no
	// verdict yet.
	Held bool
	// Readdressed says that the frame's MAC addresses were not those of the
	// lab and were replaced by those that the sender would have used.
	Readdressed bool
}

// Boundary is what frames cross: a segment ("wire nodes") or a port of a virtual switch
// ("win1 endpoint client"). Entering is set for frames on their way into a switch.
type Boundary struct {
	Place, Name string
	Entering    bool
}

// String is "wire nodes", "win1 bridge cni0", "win1 endpoint client into switch".
func (b *Boundary) String() string {
	switch {
	case b.Place == "":
		return "wire " + b.Name
	case b.Entering:
		return b.Place + " " + b.Name + " into switch"
	}
	return b.Place + " " + b.Name
}

// Hop is called with every frame that crosses a boundary. The frame is valid until it
// returns. One Injector gives a boundary by the same pointer each time.
type Hop func(at *Boundary, frame []byte)

// injected is the event of a frame that comes out of a capture.
type injected struct{}

func (injected) Text() string { return "from the capture" }

// nobody stands for the machine behind a wire that a capture is played onto: it never answers.
type nobody struct{}

func (nobody) Receive(*wire.Simulation, *wire.NIC, *packet.Packet) {}
func (nobody) ARP(*wire.NIC, netip.Addr) (packet.MAC, bool)        { return packet.MAC{}, false }

// New prepares a cluster for frames. All its flows are forgotten. Hop may
// be nil. Record makes every frame go the slow way with a full record, which
// gives the same frames and the same outcomes.
func New(c *cluster.Cluster, hop Hop, record bool) *Injector {
	c.Reset()
	j := &Injector{c: c, byMAC: map[packet.MAC]*Entry{}, byAddr: map[netip.Addr]*Entry{}, ports: map[string]*Entry{},
		wires: map[*wire.Segment]*Entry{}, stacks: map[[2]string]*host.Stack{}, hops: map[nextKey]nextHop{},
		hop: hop, boundaries: map[Boundary]*Boundary{}, outcomes: map[Outcome]*Outcome{}}
	if record {
		j.sim.Rec = &trace.Recorder{}
	}
	j.sim.Sink = j.sink
	j.sim.Pinned = c.Plan.Params.Pinned
	j.sim.Taps.Segment = func(s *wire.Segment, _ *wire.NIC, p *packet.Packet) { j.crosses(Boundary{s.Place, s.Name, false}, p) }
	j.sim.Taps.Port = func(place, port string, entering bool, p *packet.Packet) {
		j.crosses(Boundary{place, port, entering}, p)
	}
	j.findEntries()
	for _, s := range c.Segments {
		e := &Entry{Name: "wire/" + s.Name, seg: s, nic: &wire.NIC{Name: "capture", Owner: nobody{}, Segment: s}}
		j.ports[e.Name], j.wires[s] = e, e
	}
	return j
}

// crosses takes a frame at a boundary.
func (j *Injector) crosses(b Boundary, p *packet.Packet) {
	j.crossed++
	if j.hop == nil && !j.sim.Path.On() {
		return
	}
	at := j.boundaries[b]
	if at == nil {
		at = &b
		j.boundaries[b] = at
	}
	if j.sim.Path.On() {
		if p != &j.p {
			j.sim.Path.GiveUp() // a second packet
		}
		j.way = append(j.way, crossing{at, j.rec.Edits.Len()})
	}
	if j.hop != nil {
		j.hop(at, p.Bytes())
	}
}

// Crossed is how many boundaries the last frame crossed, with all that was made of it on
// its way.
func (j *Injector) Crossed() int { return j.crossed }

// findEntries makes the entries of all machines with programs.
func (j *Injector) findEntries() {
	for _, kind := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range j.c.Machines(kind) {
			j.entry(m.Ref.String(), m.Stack(), m.HasOwnNetwork())
		}
	}
}

// entry adds a stack's first link; own says that frames with one of its
// addresses as source are put in there by default.
func (j *Injector) entry(name string, st *host.Stack, own bool) {
	j.stacks[[2]string{st.Place, st.Object}] = st
	if len(st.Links) == 0 {
		return
	}
	e := &Entry{Name: name, link: st.Links[0], stack: st}
	j.ports[name] = e
	if !own {
		return
	}
	for _, l := range st.Links {
		if !l.MAC.IsZero() {
			j.byMAC[l.MAC] = e
		}
		for _, a := range l.Addrs {
			j.byAddr[a.Addr()] = e
		}
	}
}

// Entry finds a place by its name: pod/[NS/]NAME, node/NAME, host/NAME or
// wire/SEGMENT.
func (j *Injector) Entry(name string) (*Entry, error) {
	if kind, rest, _ := strings.Cut(name, "/"); kind == "pod" && !strings.Contains(rest, "/") {
		name = "pod/default/" + rest
	}
	if e := j.ports[name]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("there is no port %s in this lab; there are %s", name, strings.Join(j.Entries(), ", "))
}

// Entries lists the names of all places, sorted.
func (j *Injector) Entries() []string {
	var names []string
	for n := range j.ports {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Find is the place where a frame belongs: the port of the pod that has its
// source MAC address or source address, else the wire of the segment on which
// its sender is.
func (j *Injector) Find(h *packet.Headers) *Entry {
	if e := j.byMAC[h.EthSrc]; e != nil && (e.stack == nil || !h.Src.IsValid() || e.stack.Owns(h.Src)) {
		return e
	}
	src := h.Src
	if h.EtherType == packet.EtherARP {
		src = h.ARPSender
	}
	if e := j.byAddr[src]; e != nil {
		return e
	}
	return j.wires[j.segment(h, src)]
}

// segment is the one on which a frame's sender is: by its MAC address, its
// address, the receiver's MAC address; else the segment of the nodes.
func (j *Injector) segment(h *packet.Headers, src netip.Addr) *wire.Segment {
	for _, by := range []func(plan.Segment, *wire.Segment) bool{
		func(_ plan.Segment, s *wire.Segment) bool { return onSegment(s, h.EthSrc) != nil },
		func(g plan.Segment, _ *wire.Segment) bool {
			return src.IsValid() && g.Subnet.IsValid() && g.Subnet.Contains(src)
		},
		func(_ plan.Segment, s *wire.Segment) bool { return onSegment(s, h.EthDst) != nil },
	} {
		for i, s := range j.c.Segments {
			if by(j.c.Plan.Segments[i], s) {
				return s
			}
		}
	}
	return j.c.Segment(j.c.Plan.Nodes[0].Segment)
}

func onSegment(s *wire.Segment, m packet.MAC) *wire.NIC {
	for _, n := range s.NICs {
		if n.MAC == m {
			return n
		}
	}
	return nil
}

// Inject puts a frame in and follows it to its end. A nil entry is the one of
// [Injector.Find]. The time is that since the first frame; it does not run
// backwards. Equal outcomes are the same pointer. The error is a *packet.ParseError of a
// frame that was not put in.
func (j *Injector) Inject(e *Entry, frame []byte, now time.Duration) (*Outcome, error) {
	j.crossed, j.followed = 0, false
	if err := j.p.Load(frame); err != nil {
		return j.intern(Outcome{Verdict: trace.Dropped, Reason: trace.BadPacket, Place: "capture"}), err
	}
	k, ok := pathKey{}, false
	if j.keepsPaths() {
		if k, ok = keyOf(e, &j.p); ok {
			if o, followed := j.follow(&k, now); followed {
				return o, nil
			}
		}
	}
	o := j.walk(e, now, ok)
	if ok {
		j.keepPath(&k, o)
	}
	return o, nil
}

// intern is the one pointer for an outcome. There are as many as a lab has places and
// reasons, but for what is unknown, which may name more.
func (j *Injector) intern(o Outcome) *Outcome {
	p := j.outcomes[o]
	if p == nil {
		if len(j.outcomes) >= maxHops {
			clear(j.outcomes)
		}
		p = &o
		j.outcomes[o] = p
	}
	return p
}

// walk sends the loaded frame from machine to machine.
func (j *Injector) walk(e *Entry, now time.Duration, record bool) *Outcome {
	h := j.p.Headers()
	if e == nil {
		e = j.Find(h)
	}
	if h.Proto == packet.TCP && j.p.Size() > host.EthernetMTU {
		// A device has cut it after the capture, or put it together before; into what
		// the capture does not say.
		j.p.Segment(smallSegment)
	}
	j.c.Ways().Settle()
	j.begin(e, now)
	if record {
		j.recordPath()
	}
	changed := j.send(e)
	f := j.outcome(j.sim.Run())
	f.Readdressed = changed
	return j.intern(f)
}

// smallSegment fits every link, in bytes (RFC 791).
const smallSegment = 576

// begin prepares the simulation for the loaded frame.
func (j *Injector) begin(e *Entry, now time.Duration) {
	sim := &j.sim
	sim.AdvanceTo(now)
	sim.Losses, sim.Made = wire.Losses{}, sim.Made[:0]
	if sim.Rec != nil {
		if j.live == nil {
			sim.Rec = &trace.Recorder{}
		} else {
			sim.Rec.Reset() // who looks on has what it wants of the last packet
		}
		sim.Rec.Add(trace.Step{Place: e.Name, Action: trace.ActSend, Event: trace.Of(injected{}), Packet: sim.Rec.Describe(&j.p)})
	}
	j.sunk, j.to = 0, nil
}

// send puts the loaded frame in. It reports whether the MAC addresses had to be
// replaced.
func (j *Injector) send(e *Entry) (changed bool) {
	h := j.p.Headers()
	link := e.link
	switch {
	case e.seg != nil:
		from := onSegment(e.seg, h.EthSrc)
		if from == nil {
			from = e.nic
		}
		if h.Dst.IsValid() && !j.known(e.seg, from, h.EthDst) {
			if mac, ok := e.seg.Resolve(from, h.Dst); ok {
				j.p.SetEthDst(mac)
				changed = true
			}
		}
		e.seg.Send(&j.sim, from, &j.p)
		return changed
	case h.EthSrc != link.MAC && h.IPVersion != 0 && !h.EthDst.IsMulticast():
		hop := j.nextHop(e, h.Dst)
		if hop.link != nil {
			link = hop.link
			j.p.SetEthDst(hop.mac)
		}
		j.p.SetEthSrc(link.MAC)
		changed = true
	}
	link.Send(&j.sim, &j.p)
	return changed
}

// known reports whether somebody on the segment takes frames for a MAC address.
func (j *Injector) known(s *wire.Segment, from *wire.NIC, m packet.MAC) bool {
	if m.IsMulticast() || m == s.AnswersAll && !m.IsZero() {
		return true
	}
	return s.Taker(from, m) != nil
}

func (j *Injector) nextHop(e *Entry, dst netip.Addr) nextHop {
	if now := j.c.Epoch(); now != j.routesOf {
		clear(j.hops)
		j.routesOf = now
	}
	k := nextKey{e, dst}
	n, ok := j.hops[k]
	if !ok {
		e.stack.Use()
		if hop, reason := e.stack.NextHop(dst); reason == "" {
			n = nextHop{hop.Link, hop.MAC}
		}
		if len(j.hops) >= maxHops {
			clear(j.hops)
		}
		j.hops[k] = n
	}
	return n
}

// maxHops bounds what is remembered about next hops: a hostile capture must not
// fill the memory.
const maxHops = 1 << 16

func (j *Injector) sink(place, object string, p *packet.Packet) bool {
	if j.live != nil && !j.live.take(j.stacks[[2]string{place, object}], p) {
		return false
	}
	j.sunk++
	if p != &j.p {
		j.sim.Path.GiveUp()
	}
	if j.to == nil {
		j.to, j.place, j.where = j.stacks[[2]string{place, object}], place, object
		h := p.Headers()
		if j.live == nil && j.to != nil && h.Proto == packet.TCP && h.TCPFlags&(packet.SYN|packet.ACK|packet.RST) == packet.SYN &&
			!listens(j.to, h) {
			j.sim.RecordLoss(place, object, trace.PortClosed)
		}
	}
	return true
}

func listens(s *host.Stack, h *packet.Headers) bool {
	return slices.ContainsFunc(s.Listeners(), func(l *host.Listener) bool {
		return l.Proto == h.Proto && l.Port == h.DstPort && (!l.Addr.IsValid() || l.Addr == h.Dst)
	})
}

// outcome reads the verdict off what happened.
func (j *Injector) outcome(err error) Outcome {
	sim := &j.sim
	lost := Outcome{Verdict: trace.Dropped, Reason: sim.Lost.Reason, Place: sim.Lost.Place, Object: sim.Lost.Object}
	switch {
	case sim.Unknown != "":
		return Outcome{Verdict: trace.Unknown, Reason: trace.ModelHole, Object: sim.Unknown}
	case err != nil:
		return Outcome{Verdict: trace.Looped, Reason: trace.TTLExceeded, Object: err.Error()}
	case j.sunk > 0 && (sim.Lost.Reason == trace.PortClosed || sim.Lost.Reason == trace.PacketTooBig):
		lost.Verdict = trace.Rejected
	case sim.Lost == wire.Loss{} && j.sunk == 0 && j.live != nil && j.live.held > 0:
		return Outcome{Held: true}
	case j.sunk > 0:
		return Outcome{Verdict: trace.Delivered, Reason: trace.OK, Place: j.place, Object: j.where}
	case sim.Lost.Reason == trace.TTLExceeded:
		lost.Verdict = trace.Looped
	case sim.Lost.Reason == "":
		lost.Object = "no machine accepted it"
	}
	return lost
}

// Where is place and object together: "win1, pod/default/client".
func (f Outcome) Where() string {
	if f.Place == "" || f.Object == "" || strings.HasPrefix(f.Place, "host/") && f.Object == "host stack" {
		return f.Place + f.Object
	}
	return f.Place + ", " + f.Object
}
