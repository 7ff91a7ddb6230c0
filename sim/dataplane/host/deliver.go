package host

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// local delivers a packet to this stack. inside is set when it never left it.
func (s *Stack) local(sim *wire.Simulation, p *packet.Packet, inside bool) {
	h := p.Headers()
	if p.Reassemble() {
		s.step(sim, p, trace.Step{Action: trace.ActNote, Event: trace.Note("its fragments are put together")}, factFragment)
	}
	if r := s.refused(h.Proto); r != nil {
		s.drop(sim, p, trace.ProtocolNotSupported, trace.Note(r.Text), r.Fact)
		return
	}
	if sim.CheckChecksums && p.TransportChecksumWrong() {
		s.drop(sim, p, trace.BadChecksum, trace.Of(badChecksum{h.Proto}), factChecksum)
		return
	}
	if h.Proto == packet.UDP && s.fromTunnel(sim, p) {
		return
	}
	if len(s.gates) > 0 {
		sim.Path.GiveUp() // who has talked is noted there
	}
	if len(s.gates) > 0 && h.Opens() && s.sockets[p.Tuple()] == nil && !s.talked[p.Tuple()] && !s.admits(sim, p, false) {
		return
	}
	if sim.Sink != nil && sim.Sink(s.Place, s.Object, p) {
		if len(s.gates) > 0 {
			s.talk(p.Tuple().Reverse())
		}
		return
	}
	if h.Fragment {
		e := trace.Note("a fragment: a stack puts them together first, and the simulation does not")
		sim.RecordUnknown(e.Text())
		s.step(sim, p, trace.Step{Action: trace.ActUnknown, Reason: trace.ModelHole, Event: e}, factFragment)
		return
	}
	if k := s.sockets[p.Tuple()]; k != nil && !k.opensAgain(h) {
		k.receive(sim, p)
		return
	}
	switch h.Proto {
	case packet.ICMP, packet.ICMPv6:
		s.icmp(sim, p)
	case packet.TCP:
		s.tcp(sim, p, inside)
	case packet.UDP:
		s.udp(sim, p, inside)
	default:
		s.drop(sim, p, trace.ProtocolNotSupported, trace.Of(noProgram{h.Proto}), factSocket)
	}
}

// tcp takes a segment of no known connection.
func (s *Stack) tcp(sim *wire.Simulation, p *packet.Packet, inside bool) {
	h := p.Headers()
	switch l := s.listener(packet.TCP, h); {
	case h.TCPFlags&(packet.SYN|packet.RST) == 0 && !s.waitsOn(packet.TCP, h.DstPort):
		s.unknownConnection(sim, p)
	case h.TCPFlags&packet.SYN == 0:
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(noSocket{p.Tuple()}), factSocket)
	case h.TCPFlags&(packet.ACK|packet.RST) != 0:
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerSYNACK{netip.AddrPortFrom(h.Src, h.SrcPort)}), factSocket)
	case l != nil:
		s.accept(sim, l, p)
	default:
		s.closed(sim, p, inside)
	}
}

// waitsOn reports whether a program waits for answers on a port.
func (s *Stack) waitsOn(proto packet.Proto, port uint16) bool {
	for _, k := range s.sockets {
		if !k.server && k.Tuple.Proto == proto && k.Tuple.SrcPort == port {
			return true
		}
	}
	return false
}

// unknownConnection answers a segment in mid-connection of which this stack knows
// nothing (RFC 9293 section 3.5.2).
func (s *Stack) unknownConnection(sim *wire.Simulation, p *packet.Packet) {
	s.step(sim, p, trace.Step{Action: trace.ActReject, Reason: trace.ConnectionReset, Event: trace.Of(noSocket{p.Tuple()})}, factSocket)
	sim.Rec.SetLeg(trace.Reply)
	q := packet.Build(reset(p.Headers()))
	sim.Queue(func() { s.output(sim, q) })
}

// udp takes a datagram that no socket waits for.
func (s *Stack) udp(sim *wire.Simulation, p *packet.Packet, inside bool) {
	h := p.Headers()
	if l := s.listener(packet.UDP, h); l != nil {
		s.accept(sim, l, p)
		return
	}
	if s.waitsOn(packet.UDP, h.DstPort) {
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerDatagram{netip.AddrPortFrom(h.Src, h.SrcPort), h.DstPort}), factSocket)
		return
	}
	s.closed(sim, p, inside)
}

// closed answers for a port on which no program listens.
func (s *Stack) closed(sim *wire.Simulation, p *packet.Packet, inside bool) {
	h := p.Headers()
	port := closedPort{h.Proto, h.DstPort}
	if s.PortsUnknown != "" {
		sim.RecordUnknown(s.PortsUnknown)
	}
	if h.Dst.IsMulticast() {
		s.drop(sim, p, trace.PortClosed, trace.Of(toMany(port)), factToMany)
		return
	}
	if inside && s.Windows {
		// Azure/azure-container-networking#1863: the host's stack drops it.
		reason := trace.HostNotSwitched
		if h.Dst.IsLoopback() {
			reason = trace.LoopbackNotSwitched
		}
		s.drop(sim, p, reason, trace.Of(notSwitched(port)), factOwn)
		return
	}
	if s.Windows && !inside && sim.Ask(questionFirewall, s.Place) == "silent" {
		s.drop(sim, p, trace.PortClosed, trace.Of(notAnswered(port)), factFirewall)
		return
	}
	s.step(sim, p, trace.Step{Action: trace.ActReject, Reason: trace.PortClosed, Event: trace.Of(port)}, factClosed)
	var spec packet.Spec
	if h.Proto == packet.TCP {
		spec = reset(h)
	} else {
		spec = unreachable(p)
	}
	sim.Rec.SetLeg(trace.Reply)
	q := packet.Build(spec)
	sim.Queue(func() { s.output(sim, q) })
}
