package packet

// SetQuoted gives the packet that an ICMP error quotes other addresses, and other ports
// or another identifier. The checksums in the quote change with them as far as they are
// quoted (a quoted UDP checksum of 0 stays), and so does the error's own. What is wrong
// in the quote stays wrong.
//
// The quote has a whole IP header, of the family of t, and after it the ports of TCP
// and UDP, or an echo message's first 8 bytes. An IPv6 header has no extensions.
func (p *Packet) SetQuoted(t Tuple) {
	p.edits.inexact()
	q := p.Payload()
	h := Headers{IPVersion: q[0] >> 4, Proto: t.Proto, L4: ipv6HeaderLen}
	if h.IPVersion == 4 {
		h.L4 = int(q[0]&15) * 4
	}
	rw := Rewrite{Set: RwSrc | RwDst | RwSrcPort | RwDstPort, Src: t.Src, Dst: t.Dst, SrcPort: t.SrcPort, DstPort: t.DstPort}
	addr := h.applyAddr(q, &rw)
	if h.IPVersion == 4 {
		update(q[10:], addr)
	}
	var body uint64
	switch l4 := q[h.L4:]; t.Proto {
	case TCP, UDP:
		h.SrcPort, h.DstPort = be.Uint16(l4), be.Uint16(l4[2:])
		body = h.applyPorts(q, &rw)
	case ICMP, ICMPv6:
		body = swap16(be.Uint16(l4[4:]), t.ICMPID)
		be.PutUint16(l4[4:], t.ICMPID)
	}
	if h.L4+l4Len(t.Proto) <= len(q) {
		h.fixL4(q, addr, body)
	}
	p.FillChecksum()
}
