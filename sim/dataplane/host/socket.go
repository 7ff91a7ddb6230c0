package host

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Outcome is what a socket got.
type Outcome struct {
	Done    bool
	Verdict trace.Verdict
	Reason  trace.Reason
	Event   trace.Event // how it ended
	Payload []byte
}

// Socket is a program's end of a connection.
type Socket struct {
	Tuple   packet.Tuple // as this end sends
	Outcome Outcome
	// DontFragment sets DF on what the socket sends; TCP has it in any case.
	DontFragment bool
	stack        *Stack
	// server is set on the end that was accepted; answer makes its replies.
	server bool
	answer func([]byte) []byte
	// done is called when the answer has come.
	done func(sim *wire.Simulation)
	seq  uint32
	ack  uint32
	// last is the last segment with data; mss what this end was told to send at most, 0
	// for nothing, and peer what the other end takes, see segments.
	last      packet.Spec
	mss, peer int
	// opened counts the sockets of the stack that were opened before.
	opened int
	// stands is set on a client's end when the connection was answered, ended when
	// the other end has reset it.
	stands, ended bool
}

// Stands reports whether the connection was answered and not reset.
func (k *Socket) Stands() bool { return k.stands && !k.ended }

// Accepted lists the ends of connections that programs of this stack have accepted,
// the last one first.
func (s *Stack) Accepted() []*Socket {
	var all []*Socket
	for _, k := range s.sockets {
		if k.server {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *Socket) int { return b.opened - a.opened })
	return all
}

// opensAgain reports whether a packet opens a connection with the 5-tuple of one that
// was accepted before. The other end's challenge and the client's reset end that one,
// and the SYN that is sent again is accepted (RFC 9293 section 3.10.7.4).
func (k *Socket) opensAgain(h *packet.Headers) bool {
	return k.server && h.Proto == packet.TCP && h.TCPFlags&(packet.SYN|packet.ACK|packet.RST) == packet.SYN
}

// Close sends the end of a connection that stands: a FIN, after which this end sends
// no more data, or a reset.
func (k *Socket) Close(sim *wire.Simulation, flags uint8, ttl uint8) {
	spec := k.spec(ttl, nil)
	spec.TCPFlags, spec.Ack = packet.ACK|flags, 1
	k.Outcome = Outcome{}
	k.transmit(sim, spec)
}

// Push sends data from the end that accepted a connection, without being asked.
func (k *Socket) Push(sim *wire.Simulation, payload []byte, ttl uint8) {
	spec := k.spec(ttl, payload)
	spec.TCPFlags, spec.Ack = packet.ACK|packet.PSH, k.ack // of TCP only
	k.transmit(sim, spec)
}

func (k *Socket) transmit(sim *wire.Simulation, spec packet.Spec) {
	p := k.segments(sim, packet.Build(spec))
	k.stack.step(sim, p, trace.Step{Action: trace.ActSend, Event: trace.Of(messageOf(p))}, nil)
	k.stack.output(sim, p)
}

// Reset forgets all sockets and translations. A stack that was not used does not have any: on a
// node with a hundred pods few are used by a packet.
func (s *Stack) Reset() {
	if !s.touched {
		return
	}
	s.touched, s.used = false, false
	clear(s.sockets)
	clear(s.talked)
	s.nextPort, s.opened = 0, 0
	if s.NAT != nil {
		s.NAT.reset()
	}
	if s.Firewall != nil {
		s.Firewall.Forget()
	}
}

// EphemeralBase is the first port a client socket gets, below the range that
// NAT pools use, so that a trace shows at a glance whose port it is.
const EphemeralBase = 40000

// OutsideBase takes its place where the machine has programs outside, too: it is below
// the ports that those get who ask for none.
const OutsideBase = 20000

// Open makes a client socket. A zero port picks the next free one.
func (s *Stack) Open(proto packet.Proto, src netip.Addr, port uint16, dst netip.AddrPort) *Socket {
	return s.OpenNoted(nil, proto, src, port, dst)
}

// OpenNoted is Open for a simulation whose changes are noted.
func (s *Stack) OpenNoted(j *journal.Journal, proto packet.Proto, src netip.Addr, port uint16, dst netip.AddrPort) *Socket {
	s.Use()
	journal.Keep(j, &s.nextPort)
	if !src.IsValid() {
		src = s.Source(dst.Addr())
	}
	base := uint16(EphemeralBase)
	if j.On() {
		base = OutsideBase
	}
	if port == 0 {
		port = base + s.nextPort
		s.nextPort++
	}
	t := packet.Tuple{Src: src, Dst: dst.Addr(), Proto: proto}
	if proto == packet.TCP || proto == packet.UDP {
		t.SrcPort, t.DstPort = port, dst.Port()
	} else {
		t.ICMPType, t.ICMPID = 8, port-base+1
		if proto == packet.ICMPv6 {
			t.ICMPType = 128
		}
	}
	k := &Socket{stack: s, Tuple: t, seq: 1}
	s.keep(k, j)
	return k
}

// keep hands packets of the socket's connection to it from now on.
func (s *Stack) keep(k *Socket, undo *journal.Journal) {
	if s.sockets == nil {
		s.sockets = map[packet.Tuple]*Socket{}
	}
	journal.Keep(undo, &s.opened)
	journal.KeepKey(undo, s.sockets, k.Tuple.Reverse())
	k.opened = s.opened
	s.opened++
	s.sockets[k.Tuple.Reverse()] = k
}

// Send sends the first packet of the socket's conversation: a SYN, a datagram
// or an echo request; after an answer came it sends data on the connection.
func (k *Socket) Send(sim *wire.Simulation, payload []byte, ttl uint8) {
	spec := k.spec(ttl, payload)
	first := !k.stands
	k.Outcome = Outcome{}
	if k.Tuple.Proto == packet.TCP {
		if first {
			spec.TCPFlags, spec.Payload = packet.SYN, nil
		} else {
			spec.TCPFlags, spec.Ack = packet.ACK|packet.PSH, 1
		}
	}
	spec.DontFragment = k.DontFragment
	p := k.segments(sim, packet.Build(spec))
	if k.DontFragment {
		p.KeepWhole() // of IPv6, which has no flag
	}
	k.stack.step(sim, p, trace.Step{Action: trace.ActSend, Event: trace.Of(messageOf(p))}, nil)
	if !first || k.stack.admits(sim, p, true) {
		k.stack.output(sim, p)
	}
}

func (k *Socket) spec(ttl uint8, payload []byte) packet.Spec {
	t := k.Tuple
	s := packet.Spec{Src: t.Src, Dst: t.Dst, Proto: t.Proto, SrcPort: t.SrcPort, DstPort: t.DstPort,
		TTL: ttl, ICMPType: t.ICMPType, ICMPID: t.ICMPID, ICMPSeq: 1, Seq: k.seq, Payload: payload}
	k.seq++
	return s
}

// reply answers a request on the server's side.
func (k *Socket) reply(sim *wire.Simulation, request []byte) {
	payload := request
	if k.answer != nil {
		payload = k.answer(request)
	}
	k.replyWith(sim, payload)
}

func (k *Socket) replyWith(sim *wire.Simulation, payload []byte) {
	spec := k.spec(128, payload)
	if k.Tuple.Proto == packet.TCP {
		spec.TCPFlags, spec.Ack = packet.SYN|packet.ACK, k.ack
		if k.Outcome.Done {
			spec.TCPFlags = packet.ACK
		} else {
			spec.Payload = nil
		}
		k.Outcome.Done = true
	}
	sim.Rec.SetLeg(trace.Reply)
	p := k.segments(sim, packet.Build(spec))
	k.stack.step(sim, p, trace.Step{Action: trace.ActAnswer, Event: trace.Of(messageOf(p))}, factProgram)
	sim.Queue(func() { k.stack.output(sim, p) })
}

// receive takes a packet that belongs to the socket's connection.
func (k *Socket) receive(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if m := p.MSS(); m != 0 {
		k.peer = m
	}
	switch {
	case k.server:
		k.serve(sim, p)
	case h.Proto == packet.TCP && h.TCPFlags&packet.RST != 0 && k.stands:
		k.finish(sim, p, trace.Rejected, trace.ConnectionReset, trace.Note("the connection was reset"))
	case h.Proto == packet.TCP && h.TCPFlags&packet.RST != 0:
		k.finish(sim, p, trace.Rejected, trace.PortClosed, trace.Note("the connection was refused (reset)"))
	case h.Proto == packet.TCP && k.Outcome.Done:
		k.stack.drop(sim, p, trace.UnexpectedSource, trace.Of(notAwaited{messageOf(p), k.Tuple}), factSocket)
	default:
		k.finish(sim, p, trace.Delivered, trace.OK, trace.Of(replied{messageOf(p)}))
	}
}

// serve takes a packet of the client on the server's side.
func (k *Socket) serve(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if h.TCPFlags&packet.RST != 0 {
		k.stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note("the connection was reset")}, factSocket)
		journal.KeepKey(sim.Journal, k.stack.sockets, k.Tuple.Reverse())
		delete(k.stack.sockets, k.Tuple.Reverse())
		return
	}
	k.stack.recordSeen(sim, h)
	k.stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Of(dataReceived{h.Src})}, factProgram)
	k.ack = h.Seq + 1
	k.reply(sim, append([]byte(nil), p.Payload()...))
}

func (k *Socket) finish(sim *wire.Simulation, p *packet.Packet, v trace.Verdict, r trace.Reason, e trace.Event) {
	k.stands, k.ended = k.stands || v == trace.Delivered, k.ended || v == trace.Rejected
	k.Outcome = Outcome{Done: true, Verdict: v, Reason: r, Event: e, Payload: append([]byte(nil), p.Payload()...)}
	k.stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: e}, factSocket)
	if k.done != nil {
		k.done(sim)
	}
}

// HasSocket reports whether a program of the stack has a socket that sends this flow.
func (s *Stack) HasSocket(t packet.Tuple) bool { return s.sockets[t.Reverse()] != nil }
