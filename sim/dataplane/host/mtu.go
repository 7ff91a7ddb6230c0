package host

import (
	"cmp"
	"encoding/binary"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var (
	factMTU = evidence.New("host.mtu", evidence.Stated,
		"A stack sends no IP packet by an interface that is larger than its MTU. It cuts a packet without DF into fragments, of IPv6 its own programs' only; one with DF it refuses its own program, and for others answers with ICMP fragmentation needed or packet too big, which say the MTU.",
		"RFC 791 section 3.2", "RFC 1191 section 4", "RFC 8200 section 4.5", "RFC 8201 section 4")
	factPathMTU = evidence.New("host.path-mtu", evidence.Stated,
		"TCP sends segments no larger than its own interface and the other end's MSS allow, and smaller ones when it is told so.",
		"RFC 9293 section 3.7.1", "RFC 1191 section 6.3")
	factWindowsMTU = evidence.NewParam("windows-mtu", "host.windows-mtu", evidence.Stated,
		"HNS sets the MTU of the interfaces of Windows nodes and of process-isolated containers from 1500 to 1450, by design; that was said of AKS. Of Windows Server 2016 it is said that the interface on the switch has 1500. No source says it for every network and build.",
		"Azure/AKS#2873", "microsoft/SDN#517", "microsoft/SDN#84")
	questionWindowsMTU = evidence.NewQuestion("windows-mtu", factWindowsMTU,
		evidence.Answer{Value: "1450", Means: "interfaces of Windows nodes and pods have the MTU 1450 that HNS sets by design"},
		evidence.Answer{Value: "1500", Means: "interfaces of Windows nodes and pods have the MTU 1500"})
)

// Sizes of IP packets in bytes.
const (
	// EthernetMTU is what an Ethernet link carries by default.
	EthernetMTU = 1500
	// VXLANOverhead is what VXLAN adds over IPv4: a frame's header, VXLAN, UDP and IP
	// (flannel-io/flannel pkg/backend/vxlan encapOverhead).
	VXLANOverhead = 50

	windowsMTU = 1450
	tcpHeaders = 40 // of IPv4 and TCP without options
)

// mtu is the MTU of a link. What Windows has is asked for where a packet of a size
// depends on it.
func (s *Stack) mtu(sim *wire.Simulation, l *Link, size int) int {
	switch {
	case l.MTU != 0:
		return l.MTU
	case !s.Windows || size <= windowsMTU || size > EthernetMTU:
		return EthernetMTU
	case sim.Ask(questionWindowsMTU, "") == "1450":
		return windowsMTU
	}
	return EthernetMTU
}

// LinkMTU is the MTU of a link for programs outside: what the lab says, or the first
// answer where that is open.
func (s *Stack) LinkMTU(l *Link, pinned map[string]string) int {
	switch {
	case l.MTU != 0:
		return l.MTU
	case s.Windows && pinned[questionWindowsMTU.Param] != "1500":
		return windowsMTU
	}
	return EthernetMTU
}

// fits makes a packet fit the link that it leaves by, and reports whether it can go.
func (s *Stack) fits(sim *wire.Simulation, l *Link, p *packet.Packet, forwarded bool) bool {
	size := p.Size()
	if size <= EthernetMTU && l.MTU == 0 && !s.Windows {
		sim.Path.Fits(EthernetMTU - size)
		return true
	}
	mtu := s.mtu(sim, l, size)
	if size <= mtu {
		if l.MTU == 0 && size <= windowsMTU {
			mtu = min(mtu, windowsMTU) // a larger one asks
		}
		sim.Path.Fits(mtu - size)
		return true
	}
	fact := cmp.Or(l.MTUFact, factMTU)
	if !p.DontFragment() || !forwarded && !s.outside && p.SenderCuts() {
		p.Fragment(mtu)
		s.step(sim, p, trace.Step{Action: trace.ActNote, Event: trace.Of(cut{size, mtu, l.Name})}, fact)
		return true
	}
	s.step(sim, p, trace.Step{Action: trace.ActDrop, Reason: trace.PacketTooBig, Event: trace.Of(tooBig{size, mtu, l.Name, forwarded})}, fact)
	if !forwarded && !s.outside {
		return false
	}
	spec := packet.Spec{Src: s.Source(p.Headers().Src), Dst: p.Headers().Src, Proto: packet.ICMP, TTL: 128, ICMPType: unreachable4,
		ICMPCode: fragmentationNeeded, ICMPSeq: uint16(mtu), Payload: quote(p)}
	if p.Headers().IPVersion == 6 {
		spec.Proto, spec.ICMPType, spec.ICMPCode = packet.ICMPv6, packetTooBig6, 0
	}
	if !spec.Src.IsValid() {
		return false
	}
	q := packet.Build(spec)
	if !forwarded {
		sim.Queue(func() { s.local(sim, q, true) })
		return false
	}
	sim.Rec.SetLeg(trace.Reply)
	sim.Queue(func() { s.output(sim, q) })
	return false
}

// quote is the start of a packet as an ICMP error has it: the IP header and at least
// eight bytes (RFC 792, RFC 4443).
func quote(p *packet.Packet) []byte {
	h := p.Headers()
	q := p.Bytes()[h.L3:h.End]
	if n := h.L4 - h.L3 + 8; h.L4 > 0 && len(q) > n {
		q = q[:n]
	}
	return append([]byte(nil), q...)
}

// tooBigFor takes the answer of a machine on the way that a packet is too big.
func (s *Stack) tooBigFor(sim *wire.Simulation, p *packet.Packet) {
	sent, ok := quoted(p)
	// RFC 1191 section 4; the low half of the field of RFC 4443 section 3.2.
	mtu := int(binary.BigEndian.Uint16(p.Bytes()[p.Headers().L4+6:]))
	if !ok {
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerError{sent}), factICMPError)
		return
	}
	k := s.sockets[sent.Reverse()]
	switch {
	case k == nil:
		s.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerError{sent}), factICMPError)
	case sent.Proto == packet.TCP:
		k.smaller(sim, p, mtu-tcpHeaders-20*int(p.Headers().IPVersion/6))
	case !k.server && !k.Outcome.Done:
		k.finish(sim, p, trace.Rejected, trace.PacketTooBig, trace.Of(saysMTU{mtu}))
	}
}

// smaller sends the last segment again in smaller ones.
func (k *Socket) smaller(sim *wire.Simulation, p *packet.Packet, mss int) {
	if k.mss != 0 && mss >= k.mss || mss < 1 || len(k.last.Payload) == 0 {
		k.stack.drop(sim, p, trace.UnexpectedSource, trace.Of(strangerError{k.Tuple}), factPathMTU)
		return
	}
	k.mss = mss
	k.stack.step(sim, p, trace.Step{Action: trace.ActNote, Event: trace.Of(sendsSmaller{mss})}, factPathMTU)
	q := k.segments(sim, packet.Build(k.last))
	sim.Queue(func() { k.stack.output(sim, q) })
}

// segments makes a packet of the socket stand for the segments into which TCP cuts it,
// and lets one that opens a connection say what this end takes.
func (k *Socket) segments(sim *wire.Simulation, p *packet.Packet) *packet.Packet {
	h := p.Headers()
	r, ok := k.stack.lookup(h.Dst)
	if h.Proto != packet.TCP || !ok {
		return p
	}
	headers := h.Payload - h.L3
	if h.TCPFlags&packet.SYN != 0 {
		switch {
		case r.Link.MTU != 0:
			p.AnnounceMSS(r.Link.MTU - headers)
		case k.stack.Windows:
			p.AnnounceMSS(openMSS)
		default:
			p.AnnounceMSS(EthernetMTU - headers)
		}
	}
	if h.End == h.Payload {
		return p
	}
	k.last = packet.Spec{Src: h.Src, Dst: h.Dst, Proto: h.Proto, SrcPort: h.SrcPort, DstPort: h.DstPort, TTL: h.TTL, TCPFlags: h.TCPFlags,
		Seq: h.Seq, Ack: h.Ack,
		Payload: append([]byte(nil), p.Payload()...)}
	size := min(p.Size(), EthernetMTU)
	if l := r.Link.MTU; l != 0 {
		size = min(p.Size(), l)
	}
	size = min(size, k.stack.mtu(sim, r.Link, size))
	switch {
	case k.peer > 0:
		size = min(size, k.peer+headers)
	case k.peer == openMSS && size > windowsMTU && sim.Ask(questionWindowsMTU, "") == "1450":
		size = windowsMTU
	}
	if k.mss > 0 {
		size = min(size, k.mss+headers)
	}
	p.Segment(size)
	return p
}

// openMSS is that of a Windows stack whose MTU is an open question.
const openMSS = -1
