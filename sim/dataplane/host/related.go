package host

import (
	"encoding/binary"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// isError reports whether a packet is an ICMP error, which quotes the packet that it
// is about (RFC 792, RFC 4443).
func isError(h *packet.Headers) bool {
	switch h.Proto {
	case packet.ICMP:
		switch h.ICMPType {
		case 3, 4, 5, 11, 12:
			return true
		}
	case packet.ICMPv6:
		return h.ICMPType < 128
	}
	return false
}

// related translates an ICMP error with the connection of the packet that it quotes:
// its own addresses, so that it finds the way, and those in the quote, so that the
// socket knows its packet. An error about no known connection has no connection
// itself, and no rule is asked (Linux net/netfilter/nf_conntrack_proto_icmp.c
// nf_conntrack_inet_error; nf_nat_proto.c nf_nat_icmp_reply_translation).
func (n *NAT) related(s *Stack, sim *wire.Simulation, p *packet.Packet) {
	sent, ok := quoted(p)
	if !ok {
		return
	}
	answer := sent.Reverse()
	e := n.table[answer]
	if e == nil || e.rewrite.Set == 0 && e.icmpID == 0 {
		return
	}
	before := *p.Headers()
	rw := e.rewrite
	if rw.Set&packet.RwSrc != 0 {
		answer.Src = rw.Src
	}
	if rw.Set&packet.RwDst != 0 {
		answer.Dst = rw.Dst
	}
	if rw.Set&packet.RwSrcPort != 0 {
		answer.SrcPort = rw.SrcPort
	}
	if rw.Set&packet.RwDstPort != 0 {
		answer.DstPort = rw.DstPort
	}
	if e.icmpID != 0 {
		answer.ICMPID = e.icmpID
	}
	rw.Set &= packet.RwSrc | packet.RwDst
	p.Apply(&rw)
	requote(p, answer.Reverse())
	n.step(s, sim, p, trace.Step{Action: trace.ActRewrite, Rule: e.rule, Event: trace.Of(relatedError{answer.Reverse()}), Changes: natChanges(&before, p)})
}

// requote puts the ends of a connection into the packet that an ICMP error quotes.
func requote(p *packet.Packet, t packet.Tuple) {
	q := p.Payload()
	l4 := 40
	if t.Src.Is4() {
		l4 = int(q[0]&15) * 4
		copy(q[12:16], t.Src.AsSlice())
		copy(q[16:20], t.Dst.AsSlice())
		q[10], q[11] = 0, 0
		sum := uint32(0)
		for i := 0; i < l4; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(q[i:]))
		}
		sum = sum>>16 + sum&0xffff
		sum += sum >> 16
		binary.BigEndian.PutUint16(q[10:], ^uint16(sum))
	} else {
		copy(q[8:24], t.Src.AsSlice())
		copy(q[24:40], t.Dst.AsSlice())
	}
	switch t.Proto {
	case packet.TCP, packet.UDP:
		binary.BigEndian.PutUint16(q[l4:], t.SrcPort)
		binary.BigEndian.PutUint16(q[l4+2:], t.DstPort)
	case packet.ICMP, packet.ICMPv6:
		binary.BigEndian.PutUint16(q[l4+4:], t.ICMPID)
	}
	p.FillChecksum()
}
