package packet

import "net/netip"

// Patch is a [Rewrite] made ready for the whole packets of one flow over IPv4. What it
// changes of a checksum is the same for each of them and is computed once, and it is small
// and has no pointers.
type Patch struct {
	set              RewriteMask // no more than such a packet has
	srcPort, dstPort uint16
	icmpID           uint16
	ethSrc, ethDst   MAC
	src, dst         [4]byte
	// l3 and l4 are by how much the sums over the IP header and the transport change.
	l3, l4 uint16
	// l4At is where in the transport header the checksum is.
	l4At uint8
}

// Patch makes the rewrite ready for packets of a flow that are not fragments; ok is false
// where the flow is not one of IPv4.
func (r *Rewrite) Patch(t Tuple) (p Patch, ok bool) {
	if !t.Src.Is4() || !t.Dst.Is4() {
		return Patch{}, false
	}
	p = Patch{set: r.Set & (RwEthSrc | RwEthDst), ethSrc: r.EthSrc, ethDst: r.EthDst}
	var addr, body uint64
	swap := func(bit RewriteMask, old, new netip.Addr, to *[4]byte) {
		if r.Set&bit != 0 && (new.Is4() || new.Is4In6()) {
			was := old.As4()
			*to = new.As4()
			p.set |= bit
			addr += swap32(be.Uint32(was[:]), be.Uint32(to[:]))
		}
	}
	swap(RwSrc, t.Src, r.Src, &p.src)
	swap(RwDst, t.Dst, r.Dst, &p.dst)
	field := func(bit RewriteMask, old, new uint16, to *uint16) {
		if r.Set&bit != 0 {
			*to = new
			p.set |= bit
			body += swap16(old, new)
		}
	}
	switch t.Proto {
	case TCP, UDP:
		field(RwSrcPort, t.SrcPort, r.SrcPort, &p.srcPort)
		field(RwDstPort, t.DstPort, r.DstPort, &p.dstPort)
		p.l4, p.l4At = fold(addr+body), 16
		if t.Proto == UDP {
			p.l4At = udpSumAt
		}
	case ICMP: // no pseudo-header
		if hasICMPID(ICMP, t.ICMPType) {
			field(RwICMPID, t.ICMPID, r.ICMPID, &p.icmpID)
		}
		p.l4, p.l4At = fold(body), 2
	}
	p.l3 = fold(addr)
	return p, true
}

const udpSumAt = 6

// Patch does to a packet of the patch's flow what [Packet.Apply] does with the rewrite that
// it was made of. It does nothing and returns false when somebody notes what is done to the
// packet: that is a rewrite's.
func (p *Packet) Patch(t *Patch) bool {
	if p.edits != nil {
		return false
	}
	f, h, m := p.buf[p.off:p.end], &p.h, t.set
	if m&RwEthDst != 0 {
		*(*MAC)(f[0:6]) = t.ethDst
		h.EthDst = t.ethDst
	}
	if m&RwEthSrc != 0 {
		*(*MAC)(f[6:12]) = t.ethSrc
		h.EthSrc = t.ethSrc
	}
	if m&(RwSrc|RwDst) != 0 {
		ip := f[h.L3 : h.L3+ipv4HeaderLen]
		if m&RwSrc != 0 {
			*(*[4]byte)(ip[12:]) = t.src
			h.Src = netip.AddrFrom4(t.src)
		}
		if m&RwDst != 0 {
			*(*[4]byte)(ip[16:]) = t.dst
			h.Dst = netip.AddrFrom4(t.dst)
		}
		update16(ip[10:], t.l3)
	}
	if m&RwSrcPort != 0 {
		be.PutUint16(f[h.L4:], t.srcPort)
		h.SrcPort = t.srcPort
	}
	if m&RwDstPort != 0 {
		be.PutUint16(f[h.L4+2:], t.dstPort)
		h.DstPort = t.dstPort
	}
	if m&RwICMPID != 0 {
		be.PutUint16(f[h.L4+4:], t.icmpID)
		h.ICMPID = t.icmpID
	}
	switch {
	case t.l4 == 0:
	case t.l4At == udpSumAt:
		updateUDP(f[h.L4+udpSumAt:], uint64(t.l4))
	default:
		update16(f[h.L4+int(t.l4At):], t.l4)
	}
	return true
}

// update16 is update by a change that is folded.
func update16(b []byte, delta uint16) {
	s := uint32(^be.Uint16(b)) + uint32(delta)
	be.PutUint16(b, ^uint16(s+s>>16))
}
