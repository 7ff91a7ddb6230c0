package host

import (
	"net/netip"
	"slices"

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

// Listen adds a program. The last one added for an address and port wins.
func (s *Stack) Listen(l *Listener) { s.listeners = append(s.listeners, l) }

// Unlisten takes programs away. Connections that they have accepted live on.
func (s *Stack) Unlisten(gone ...*Listener) {
	s.listeners = slices.DeleteFunc(s.listeners, func(l *Listener) bool { return slices.Contains(gone, l) })
}

// Listeners returns the programs that listen.
func (s *Stack) Listeners() []*Listener { return s.listeners }

func (s *Stack) listener(proto packet.Proto, h *packet.Headers) *Listener {
	if s.Outside != nil && !s.Outside(proto, netip.AddrPortFrom(h.Dst, h.DstPort)) {
		return nil
	}
	for i := len(s.listeners) - 1; i >= 0; i-- {
		l := s.listeners[i]
		if l.Proto == proto && l.Port == h.DstPort && (!l.Addr.IsValid() || l.Addr == h.Dst) {
			return l
		}
	}
	if s.Outside != nil {
		return &Listener{Name: "a program that runs here", Proto: proto, Port: h.DstPort}
	}
	return nil
}

// accept answers a connection request or datagram.
func (s *Stack) accept(sim *wire.Simulation, l *Listener, p *packet.Packet) {
	h := p.Headers()
	k := &Socket{stack: s, Tuple: p.Tuple().Reverse(), server: true, answer: l.Answer, seq: 1000, ack: h.Seq + 1, peer: p.MSS()}
	if h.Proto == packet.TCP {
		s.keep(k, sim.Journal)
	}
	request := append([]byte(nil), p.Payload()...)
	if len(l.Backends) != 0 {
		s.proxy(sim, l, k, p, request)
		return
	}
	s.recordSeen(sim, h)
	s.step(sim, p, trace.Step{Action: trace.ActDeliver, Event: trace.Of(taken{l.name(), h.Proto, h.DstPort, h.Src}), From: l.Origin},
		factProgram)
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
		Event: trace.Of(proxied{l.name(), b, i, len(l.Backends)})}, factProxy)
	k := s.OpenNoted(sim.Journal, client.Tuple.Proto, netip.Addr{}, 0, b)
	k.done = func(sim *wire.Simulation) {
		if k.Outcome.Verdict != trace.Delivered {
			return
		}
		s.step(sim, nil, trace.Step{Action: trace.ActAnswer, Event: trace.Of(backendAnswered{l.name()})}, factProxy)
		client.replyWith(sim, k.Outcome.Payload)
	}
	k.Send(sim, request, 128)
}

// recordSeen notes a request as its receiver sees it.
func (s *Stack) recordSeen(sim *wire.Simulation, h *packet.Headers) {
	if sim.Rec.On() {
		sim.Rec.See(trace.Seen{Where: s.Place, Src: h.Src.String(), Dst: netip.AddrPortFrom(h.Dst, h.DstPort).String()})
	}
}
