package host

import (
	"encoding/binary"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The ICMP types that a stack deals with (RFC 792, RFC 4443).
const (
	echoRequest, echoReply     = 8, 0
	echoRequest6, echoReply6   = 128, 129
	unreachable4, unreachable6 = 3, 1
	portClosed4, portClosed6   = 3, 4 // codes of unreachable
	fragmentationNeeded        = 4    // code of unreachable4
	packetTooBig6              = 2
)

// icmp answers echo requests and hands errors to the socket they are for.
func (s *Stack) icmp(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	v6 := h.Proto == packet.ICMPv6
	switch {
	case !v6 && h.ICMPType == echoRequest, v6 && h.ICMPType == echoRequest6:
		s.answerEcho(sim, p)
	case !v6 && h.ICMPType == unreachable4 && h.ICMPCode == fragmentationNeeded, v6 && h.ICMPType == packetTooBig6:
		s.tooBigFor(sim, p)
	case !v6 && h.ICMPType == unreachable4, v6 && h.ICMPType == unreachable6:
		s.icmpError(sim, p)
	default:
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(noSocket{p.Tuple()}), factSocket)
	}
}

func (s *Stack) answerEcho(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if sim.Rec.On() {
		sim.Rec.See(trace.Seen{Where: s.Place, Src: h.Src.String(), Dst: h.Dst.String()})
	}
	s.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Of(echoRequested{h.Src})}, factEcho)
	typ := uint8(echoReply)
	if h.Proto == packet.ICMPv6 {
		typ = echoReply6
	}
	q := packet.Build(packet.Spec{Src: h.Dst, Dst: h.Src, Proto: h.Proto, TTL: 128, ICMPType: typ,
		ICMPID: h.ICMPID, ICMPSeq: h.ICMPSeq, Payload: append([]byte(nil), p.Payload()...)})
	sim.Rec.SetLeg(trace.Reply)
	s.step(sim, q, trace.Step{Action: trace.ActAnswer, Event: trace.Of(messageOf(q))}, factEcho)
	sim.Queue(func() { s.output(sim, q) })
}

// icmpError hands an error to the UDP socket whose packet it quotes.
func (s *Stack) icmpError(sim *wire.Simulation, p *packet.Packet) {
	sent, ok := quoted(p)
	k := s.sockets[sent.Reverse()]
	if !ok || k == nil || k.Tuple.Proto != packet.UDP || k.Outcome.Done {
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerError{sent}), factICMPError)
		return
	}
	k.finish(sim, p, trace.Rejected, trace.PortClosed, trace.Note("the receiver's stack says that nothing listens there"))
}

// reset is the answer to a TCP segment that no socket takes.
func reset(h *packet.Headers) packet.Spec {
	return packet.Spec{Src: h.Dst, Dst: h.Src, Proto: packet.TCP, SrcPort: h.DstPort, DstPort: h.SrcPort, TTL: 128,
		TCPFlags: packet.RST | packet.ACK, Ack: h.Seq + 1}
}

// unreachable is the ICMP port unreachable for a datagram, quoting its start: the IP
// header and eight bytes, the least of RFC 792 and RFC 4443, which is the UDP header.
func unreachable(p *packet.Packet) packet.Spec {
	h := p.Headers()
	quote := p.Bytes()[h.L3 : h.L4+8]
	spec := packet.Spec{Src: h.Dst, Dst: h.Src, Proto: packet.ICMP, TTL: 128, ICMPType: unreachable4, ICMPCode: portClosed4,
		Payload: append([]byte(nil), quote...)}
	if h.IPVersion == 6 {
		spec.Proto, spec.ICMPType, spec.ICMPCode = packet.ICMPv6, unreachable6, portClosed6
	}
	return spec
}

// quoted is the tuple of the packet that an ICMP error quotes: of TCP, UDP or an echo
// message.
func quoted(p *packet.Packet) (t packet.Tuple, ok bool) {
	q := p.Payload()
	n := 0
	switch {
	case len(q) > 0 && q[0]>>4 == 4 && len(q) >= 28:
		if binary.BigEndian.Uint16(q[6:])&0x1fff != 0 {
			return t, false // a fragment after the first has no ports
		}
		n = int(q[0]&15) * 4
		t.Src, t.Dst, t.Proto = netip.AddrFrom4([4]byte(q[12:16])), netip.AddrFrom4([4]byte(q[16:20])), packet.Proto(q[9])
	case len(q) > 0 && q[0]>>4 == 6 && len(q) >= 48:
		n = 40
		t.Src, t.Dst, t.Proto = netip.AddrFrom16([16]byte(q[8:24])), netip.AddrFrom16([16]byte(q[24:40])), packet.Proto(q[6])
	}
	if n < 20 || len(q) < n+4 || t.Proto.IsICMP() && len(q) < n+8 {
		return t, false
	}
	switch t.Proto {
	case packet.TCP, packet.UDP:
		t.SrcPort, t.DstPort = binary.BigEndian.Uint16(q[n:]), binary.BigEndian.Uint16(q[n+2:])
	case packet.ICMP, packet.ICMPv6:
		if t.ICMPType = q[n]; !isEcho(t) {
			return t, false
		}
		t.ICMPID = binary.BigEndian.Uint16(q[n+4:])
	default:
		return t, false
	}
	return t, true
}

// isEcho reports whether a tuple is that of an echo request or reply.
func isEcho(t packet.Tuple) bool {
	if t.Proto == packet.ICMPv6 {
		return t.ICMPType == echoRequest6 || t.ICMPType == echoReply6
	}
	return t.ICMPType == echoRequest || t.ICMPType == echoReply
}
