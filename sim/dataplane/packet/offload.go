package packet

// LeaveChecksum puts the sum of the pseudo-header into the transport checksum, as a
// sender does that leaves the rest to its device, and returns where the checksummed
// bytes begin in the frame and how far after that the field stands. It reports false
// for a packet without such a checksum: no TCP or UDP header, or a fragment.
func (p *Packet) LeaveChecksum() (start, offset int, ok bool) {
	p.edits.inexact()
	h := &p.h
	if h.L4 == 0 || h.Fragment {
		return 0, 0, false
	}
	switch h.Proto {
	case TCP:
		offset = 16
	case UDP:
		offset = 6
	default:
		return 0, 0, false
	}
	f := p.Bytes()
	be.PutUint16(f[h.L4+offset:], fold(h.pseudo(f, h.End-h.L4)))
	return h.L4, offset, true
}

// FillChecksum computes the transport checksum anew. A packet without one, or a
// fragment, stays as it is.
func (p *Packet) FillChecksum() {
	p.edits.inexact()
	h := &p.h
	if h.L4 == 0 || h.Fragment {
		return
	}
	switch h.Proto {
	case TCP, UDP, ICMP, ICMPv6:
	default:
		return
	}
	f := p.Bytes()
	want, at := h.l4Checksum(f)
	be.PutUint16(f[at:], want)
}
