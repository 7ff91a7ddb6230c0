package host

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A stack can have programs outside the simulation: real ones, on a TCP/IP stack of
// their own that has the same addresses. What they send comes in by Emit, and what
// arrives for them goes to the simulation's Sink.

// Emit sends a packet that programs outside made. The stack refuses, translates and
// routes it as one of its own programs'; the frame's MAC addresses do not count. An
// answer of the outside stack that no program listens is let through only where this
// stack would have answered, too.
func (s *Stack) Emit(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if len(s.gates) > 0 {
		if h.Opens() && !s.talked[p.Tuple()] && !s.admits(sim, p, true) {
			return
		}
		s.talk(p.Tuple().Reverse())
	}
	if proto, port, ok := refuses(h, p); ok && !s.answersClosed(sim, p, proto, port) {
		return
	}
	s.outside = true
	s.output(sim, p)
	s.outside = false
}

// refuses reports whether a packet says that no program listens on a port, and which port.
func refuses(h *packet.Headers, p *packet.Packet) (proto packet.Proto, port uint16, ok bool) {
	switch {
	case h.Proto == packet.TCP:
		// Only the reset of a SYN to a closed port has no sequence number (RFC 9293
		// section 3.5.2).
		return packet.TCP, h.SrcPort, h.TCPFlags&(packet.RST|packet.ACK) == packet.RST|packet.ACK && h.Seq == 0
	case h.Proto == packet.ICMP && h.ICMPType == unreachable4 && h.ICMPCode == portClosed4,
		h.Proto == packet.ICMPv6 && h.ICMPType == unreachable6 && h.ICMPCode == portClosed6:
		q, _ := quoted(p)
		return packet.UDP, q.DstPort, true
	}
	return 0, 0, false
}

// answersClosed follows the same rules as closed.
func (s *Stack) answersClosed(sim *wire.Simulation, p *packet.Packet, proto packet.Proto, number uint16) bool {
	port, inside := closedPort{proto, number}, s.keepsInside(p.Headers().Dst)
	switch {
	case inside && s.Windows:
		s.drop(sim, p, trace.HostNotSwitched, trace.Of(notSwitched(port)), factOwn)
		return false
	case s.Windows && sim.Ask(questionFirewall, s.Place) == "silent":
		s.drop(sim, p, trace.PortClosed, trace.Of(notAnswered(port)), factFirewall)
		return false
	}
	s.step(sim, p, trace.Step{Action: trace.ActReject, Reason: trace.PortClosed, Event: trace.Of(port)}, factClosed)
	return true
}

// maxTalked bounds how many conversations of programs outside are remembered.
const maxTalked = 1 << 16

// talk remembers a conversation whose packets meet no gate.
func (s *Stack) talk(t packet.Tuple) {
	s.Use()
	if s.talked == nil {
		s.talked = map[packet.Tuple]bool{}
	}
	if len(s.talked) >= maxTalked {
		clear(s.talked)
	}
	s.talked[t] = true
}
