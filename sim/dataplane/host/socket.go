package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Listener is a program that waits for connections or datagrams.
type Listener struct {
	Name  string
	Proto packet.Proto
	// Addr limits it to one address; the zero Addr listens on all.
	Addr netip.Addr
	Port uint16
	// Answer makes the payload of the reply to a datagram or request; nil
	// echoes.
	Answer func(request []byte) []byte
	// Backends makes it a user-space proxy: it opens a connection of its own
	// to one of them and answers when that one answers.
	Backends []netip.AddrPort
	Origin   *trace.Origin
}

// Outcome is what a socket got.
type Outcome struct {
	Done    bool
	Verdict trace.Verdict
	Reason  trace.Reason
	Text    string
	Payload []byte
}

// Socket is a program's end of a connection.
type Socket struct {
	Stack   *Stack
	Tuple   packet.Tuple // as this end sends
	Outcome Outcome
	// server is set on the end that was accepted; answer makes its replies.
	server bool
	answer func([]byte) []byte
	// done is called when the answer has come.
	done func(sim *wire.Simulation)
	seq  uint32
	ack  uint32
}

// Listen adds a program. The last one added for an address and port wins.
func (s *Stack) Listen(l *Listener) { s.listeners = append(s.listeners, l) }

// Listeners returns the programs that listen.
func (s *Stack) Listeners() []*Listener { return s.listeners }

// Reset forgets all sockets and translations.
func (s *Stack) Reset() {
	clear(s.sockets)
	s.nextPort = 0
	if s.NAT != nil {
		s.NAT.reset()
	}
}

// EphemeralBase is the first port a client socket gets, below the range that
// NAT pools use, so that a trace shows at a glance whose port it is.
const EphemeralBase = 40000

// Open makes a client socket. A zero port picks the next free one.
func (s *Stack) Open(proto packet.Proto, src netip.Addr, port uint16, dst netip.AddrPort) *Socket {
	if !src.IsValid() {
		src = s.Source(dst.Addr())
	}
	if port == 0 {
		port = EphemeralBase + s.nextPort
		s.nextPort++
	}
	t := packet.Tuple{Src: src, Dst: dst.Addr(), Proto: proto}
	if proto == packet.TCP || proto == packet.UDP {
		t.SrcPort, t.DstPort = port, dst.Port()
	} else {
		t.ICMPType, t.ICMPID = 8, port-EphemeralBase+1
		if proto == packet.ICMPv6 {
			t.ICMPType = 128
		}
	}
	k := &Socket{Stack: s, Tuple: t, seq: 1}
	if s.sockets == nil {
		s.sockets = map[packet.Tuple]*Socket{}
	}
	s.sockets[t.Reverse()] = k
	return k
}

// Send sends the first packet of the socket's conversation: a SYN, a datagram
// or an echo request; after an answer came it sends data on the connection.
func (k *Socket) Send(sim *wire.Simulation, payload []byte, ttl uint8) {
	spec := k.spec(ttl, payload)
	first := !k.Outcome.Done
	k.Outcome = Outcome{}
	if k.Tuple.Proto == packet.TCP {
		if first {
			spec.TCPFlags, spec.Payload = packet.SYN, nil
		} else {
			spec.TCPFlags, spec.Ack = packet.ACK|packet.PSH, 1
		}
	}
	p := packet.Build(spec)
	k.Stack.step(sim, p, trace.Step{Action: trace.ActSend, Event: trace.Note(describe(p))}, nil)
	k.Stack.Output(sim, p)
}

func (k *Socket) spec(ttl uint8, payload []byte) packet.Spec {
	t := k.Tuple
	s := packet.Spec{Src: t.Src, Dst: t.Dst, Proto: t.Proto, SrcPort: t.SrcPort, DstPort: t.DstPort,
		TTL: ttl, ICMPType: t.ICMPType, ICMPID: t.ICMPID, ICMPSeq: 1, Seq: k.seq, Payload: payload}
	k.seq++
	return s
}

// describe says what a packet is in a person's words.
func describe(p *packet.Packet) string {
	h := p.Headers()
	t := p.Tuple()
	if h.Proto != packet.TCP {
		return t.String()
	}
	return t.String() + " " + packet.FlagString(h.TCPFlags)
}

// local delivers a packet to this stack. inside is set when it never left it.
func (s *Stack) local(sim *wire.Simulation, p *packet.Packet, inside bool) {
	if s.NAT != nil && !s.NAT.input(s, sim, p) {
		return
	}
	h := p.Headers()
	t := p.Tuple()
	if r := s.refused(h.Proto); r != nil {
		s.drop(sim, p, trace.ProtocolNotSupported, r.Text, r.Fact)
		return
	}
	if h.Proto == packet.UDP && s.tunnelled(sim, p) {
		return
	}
	if sim.Sink != nil {
		sim.Sink(s.Place, s.Object, p)
		return
	}
	if k := s.sockets[t]; k != nil {
		k.receive(sim, p)
		return
	}
	switch h.Proto {
	case packet.ICMP, packet.ICMPv6:
		s.icmp(sim, p)
		return
	case packet.TCP:
		if h.TCPFlags&(packet.SYN|packet.ACK|packet.RST) == packet.SYN {
			if l := s.listener(packet.TCP, h); l != nil {
				s.accept(sim, l, p)
				return
			}
			s.closed(sim, p, inside)
			return
		}
		text := "no socket waits for " + t.String()
		reason := trace.UnexpectedSource
		if h.TCPFlags&packet.SYN != 0 {
			text = fmt.Sprintf("a SYN-ACK from %s, which no socket here has written to", netip.AddrPortFrom(h.Src, h.SrcPort))
		}
		s.drop(sim, p, reason, text, factSocket)
	case packet.UDP:
		if l := s.listener(packet.UDP, h); l != nil {
			s.accept(sim, l, p)
			return
		}
		if sim.Rec.On() && len(s.sockets) > 0 {
			for k := range s.sockets {
				if k.Proto == packet.UDP && k.DstPort == h.DstPort {
					s.drop(sim, p, trace.UnexpectedSource, fmt.Sprintf("a datagram from %s, which the socket on port %d has not written to", netip.AddrPortFrom(h.Src, h.SrcPort), h.DstPort), factSocket)
					return
				}
			}
		}
		s.closed(sim, p, inside)
	default:
		s.drop(sim, p, trace.ProtocolNotSupported, "no program takes protocol "+h.Proto.String(), factSocket)
	}
}

func (s *Stack) listener(proto packet.Proto, h *packet.Headers) *Listener {
	for i := len(s.listeners) - 1; i >= 0; i-- {
		l := s.listeners[i]
		if l.Proto == proto && l.Port == h.DstPort && (!l.Addr.IsValid() || l.Addr == h.Dst) {
			return l
		}
	}
	return nil
}

// closed answers for a port on which nobody listens.
func (s *Stack) closed(sim *wire.Simulation, p *packet.Packet, inside bool) {
	h := p.Headers()
	if inside && s.Windows {
		// Azure/azure-container-networking#1863: the host's stack drops it.
		reason := trace.HostNotSwitched
		if h.Dst.IsLoopback() {
			reason = trace.LoopbackNotSwitched
		}
		s.drop(sim, p, reason, fmt.Sprintf("no program of the host listens on %s port %d, and the virtual switch never sees the packet", h.Proto, h.DstPort), factOwn)
		return
	}
	s.step(sim, p, trace.Step{Action: trace.ActReject, Reason: trace.PortClosed, Event: trace.Note(fmt.Sprintf("nothing listens on %s port %d", h.Proto, h.DstPort))}, factClosed)
	t := p.Tuple().Reverse()
	spec := packet.Spec{Src: t.Src, Dst: t.Dst, Proto: t.Proto, SrcPort: t.SrcPort, DstPort: t.DstPort, TTL: 128}
	if h.Proto == packet.TCP {
		spec.TCPFlags, spec.Ack = packet.RST|packet.ACK, h.Seq+1
	} else {
		spec = unreachable(p)
	}
	sim.Rec.SetLeg(trace.Reply)
	q := packet.Build(spec)
	sim.Queue(func() { s.Output(sim, q) })
}

// unreachable is the ICMP port unreachable for a packet, quoting its start.
func unreachable(p *packet.Packet) packet.Spec {
	h := p.Headers()
	quote := p.Bytes()[h.L3:]
	// RFC 792 and RFC 4443: the IP header and at least eight bytes.
	if n := h.L4 - h.L3 + 8; len(quote) > n {
		quote = quote[:n]
	}
	spec := packet.Spec{Src: h.Dst, Dst: h.Src, Proto: packet.ICMP, TTL: 128, ICMPType: 3, ICMPCode: 3, Payload: append([]byte(nil), quote...)}
	if h.IPVersion == 6 {
		spec.Proto, spec.ICMPType, spec.ICMPCode = packet.ICMPv6, 1, 4
	}
	return spec
}

// quoted is the tuple of the UDP packet that an ICMP error quotes.
func quoted(p *packet.Packet) (packet.Tuple, bool) {
	q, t := p.Payload(), packet.Tuple{Proto: packet.UDP}
	n := 0
	switch {
	case len(q) > 0 && q[0]>>4 == 4 && len(q) >= 28:
		n = int(q[0]&15) * 4
		t.Src, t.Dst = netip.AddrFrom4([4]byte(q[12:16])), netip.AddrFrom4([4]byte(q[16:20]))
	case len(q) > 0 && q[0]>>4 == 6 && len(q) >= 48:
		n = 40
		t.Src, t.Dst = netip.AddrFrom16([16]byte(q[8:24])), netip.AddrFrom16([16]byte(q[24:40]))
	}
	if n == 0 || len(q) < n+4 {
		return t, false
	}
	t.SrcPort, t.DstPort = binary.BigEndian.Uint16(q[n:]), binary.BigEndian.Uint16(q[n+2:])
	return t, true
}

// icmp answers echo requests and hands errors to the socket they are for.
func (s *Stack) icmp(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	switch {
	case h.Proto == packet.ICMP && h.ICMPType == 8, h.Proto == packet.ICMPv6 && h.ICMPType == 128:
		sim.Rec.See(trace.Seen{Where: s.Place, Src: h.Src.String(), Dst: h.Dst.String()})
		s.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note("echo request from " + h.Src.String())}, factEcho)
		typ := uint8(0)
		if h.Proto == packet.ICMPv6 {
			typ = 129
		}
		q := packet.Build(packet.Spec{Src: h.Dst, Dst: h.Src, Proto: h.Proto, TTL: 128, ICMPType: typ,
			ICMPID: h.ICMPID, ICMPSeq: h.ICMPSeq, Payload: append([]byte(nil), p.Payload()...)})
		sim.Rec.SetLeg(trace.Reply)
		s.step(sim, q, trace.Step{Action: trace.ActAnswer, Event: trace.Note(describe(q))}, factEcho)
		sim.Queue(func() { s.Output(sim, q) })
	case h.Proto == packet.ICMP && h.ICMPType == 3, h.Proto == packet.ICMPv6 && h.ICMPType == 1:
		sent, ok := quoted(p)
		for _, k := range s.sockets {
			mine := k.Tuple.Proto == packet.UDP && !k.Outcome.Done && !k.server
			if mine && ok && (k.Tuple == sent || !s.Windows && k.Tuple.Src == sent.Src && k.Tuple.SrcPort == sent.SrcPort) {
				k.finish(sim, p, trace.Rejected, trace.PortClosed, "the receiver's stack says that nothing listens there")
				return
			}
		}
		s.drop(sim, p, trace.UnexpectedSource, fmt.Sprintf("an ICMP error about %s, which no socket here sent", sent), factICMPError)
	default:
		s.drop(sim, p, trace.UnexpectedSource, "no socket waits for "+p.Tuple().String(), factSocket)
	}
}

// accept answers a connection request or datagram.
func (s *Stack) accept(sim *wire.Simulation, l *Listener, p *packet.Packet) {
	h := p.Headers()
	if len(l.Backends) == 0 {
		sim.Rec.See(trace.Seen{Where: s.Place, Src: h.Src.String(), Dst: netip.AddrPortFrom(h.Dst, h.DstPort).String()})
	}
	t := p.Tuple().Reverse()
	k := &Socket{Stack: s, Tuple: t, server: true, answer: l.Answer, seq: 1000, ack: h.Seq + 1}
	if s.sockets == nil {
		s.sockets = map[packet.Tuple]*Socket{}
	}
	if h.Proto == packet.TCP {
		s.sockets[t.Reverse()] = k
	}
	request := append([]byte(nil), p.Payload()...)
	if len(l.Backends) != 0 {
		s.proxy(sim, l, k, p, request)
		return
	}
	s.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note(fmt.Sprintf("%s on %s port %d, from %s", l.name(), h.Proto, h.DstPort, h.Src)), From: l.Origin}, factProgram)
	k.reply(sim, request)
}

func (l *Listener) name() string {
	if l.Name != "" {
		return l.Name
	}
	return "a program"
}

// proxy connects to a backend on behalf of a client and answers when it answers.
func (s *Stack) proxy(sim *wire.Simulation, l *Listener, client *Socket, p *packet.Packet, request []byte) {
	i := 0
	if n := len(l.Backends); n > 1 {
		i = sim.Choose(l.Name, n, 0, func(i int) string { return l.Backends[i].String() })
	}
	b := l.Backends[i]
	s.step(sim, p, trace.Step{Action: trace.ActCallProxy, From: l.Origin,
		Event: trace.Note(fmt.Sprintf("%s takes the connection and opens its own to %s (backend %d of %d)", l.name(), b, i+1, len(l.Backends)))}, factProxy)
	k := s.Open(client.Tuple.Proto, netip.Addr{}, 0, b)
	k.done = func(sim *wire.Simulation) {
		if k.Outcome.Verdict != trace.Delivered {
			return
		}
		s.step(sim, nil, trace.Step{Action: trace.ActAnswer, Event: trace.Note("the backend answered: " + l.name() + " answers the client")}, factProxy)
		client.replyWith(sim, k.Outcome.Payload)
	}
	k.Send(sim, request, 128)
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
	p := packet.Build(spec)
	k.Stack.step(sim, p, trace.Step{Action: trace.ActAnswer, Event: trace.Note(describe(p))}, factProgram)
	sim.Queue(func() { k.Stack.Output(sim, p) })
}

// receive takes a packet that belongs to the socket's connection.
func (k *Socket) receive(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if k.server {
		if h.TCPFlags&packet.RST != 0 {
			k.Stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note("the connection was reset")}, factSocket)
			delete(k.Stack.sockets, k.Tuple.Reverse())
			return
		}
		sim.Rec.See(trace.Seen{Where: k.Stack.Place, Src: h.Src.String(), Dst: netip.AddrPortFrom(h.Dst, h.DstPort).String()})
		k.Stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note("data on the connection from " + h.Src.String())}, factProgram)
		k.ack = h.Seq + 1
		k.reply(sim, append([]byte(nil), p.Payload()...))
		return
	}
	if h.Proto == packet.TCP && h.TCPFlags&packet.RST != 0 {
		k.finish(sim, p, trace.Rejected, trace.PortClosed, "the connection was refused (reset)")
		return
	}
	k.finish(sim, p, trace.Delivered, trace.OK, "the reply is here: "+describe(p))
}

func (k *Socket) finish(sim *wire.Simulation, p *packet.Packet, v trace.Verdict, r trace.Reason, text string) {
	k.Outcome = Outcome{Done: true, Verdict: v, Reason: r, Text: text, Payload: append([]byte(nil), p.Payload()...)}
	k.Stack.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Note(text)}, factSocket)
	if k.done != nil {
		k.done(sim)
	}
}
