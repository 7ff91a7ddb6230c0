package packet

// A Packet may stand for several on the wire: the segments into which a sender's device
// cuts a large TCP segment, or the fragments of a datagram. All of them take the same
// way, so it goes as one, and remembers how large the largest of them is.
type parts struct {
	// size is the length of the largest IP packet in bytes, 0 for one packet that is
	// whole. Within a tunnel it is that of the inner one, and overhead what the tunnel
	// adds to each.
	size, overhead int
	// fragmented says that the outermost packets are IP fragments, inner that those in
	// the tunnel are.
	fragmented, inner bool
	// whole says that its sender wants it to go in one piece.
	whole bool
}

// Size is the length of the IP packet in bytes, of the largest one where it stands for
// several; 0 for a frame that carries no IP.
func (p *Packet) Size() int {
	switch {
	case p.h.IPVersion == 0:
		return 0
	case p.parts.size > 0:
		return p.parts.size + p.parts.overhead
	}
	return p.h.End - p.h.L3
}

// Segment makes the packet stand for segments that its sender's device cuts it into, IP
// packets of at most size bytes. A size of at least the packet's own changes nothing.
func (p *Packet) Segment(size int) {
	if size > 0 && size < p.Size() {
		p.edits.inexact()
		p.parts.size, p.parts.overhead = size, 0
	}
}

// Fragment makes the packet stand for the IP fragments of it, of at most size bytes.
func (p *Packet) Fragment(size int) {
	p.edits.inexact()
	p.parts.size, p.parts.overhead, p.parts.fragmented = size, 0, true
}

// Fragmented reports whether the outermost packet is, or stands for, IP fragments.
func (p *Packet) Fragmented() bool { return p.parts.fragmented || p.h.Fragment }

// Reassemble makes one packet of the fragments that it stands for, and reports whether
// it stood for some. A single fragment stays what it is.
func (p *Packet) Reassemble() bool {
	if !p.parts.fragmented {
		return false
	}
	p.edits.inexact()
	p.parts.fragmented, p.parts.size, p.parts.overhead = false, 0, 0
	return true
}

// DontFragment reports whether no machine on the way may cut the packet into fragments:
// the flag of IPv4, and every packet of IPv6.
func (p *Packet) DontFragment() bool {
	return p.h.IPVersion == 6 || p.h.IPVersion == 4 && p.Bytes()[p.h.L3+6]&0x40 != 0
}

// KeepWhole lets the sender's own stack not cut the packet either, which DF does for IPv4.
func (p *Packet) KeepWhole() {
	p.edits.inexact()
	p.parts.whole = true
}

// SenderCuts reports whether only the sender's own stack may fragment a packet: an IPv6 packet that
// is not a TCP segment (RFC 8200 section 4.5).
func (p *Packet) SenderCuts() bool {
	return p.h.IPVersion == 6 && p.h.Proto != TCP && !p.parts.whole
}

// encapsulated notes that n bytes were put around the IP packet.
func (p *parts) encapsulated(n int) {
	if p.size > 0 {
		p.overhead += n
	}
	p.inner, p.fragmented = p.fragmented, false
}

// decapsulated undoes encapsulated. What was a fragment outside was reassembled.
func (p *parts) decapsulated(n int) {
	if p.size > 0 {
		p.overhead = max(p.overhead-n, 0)
	}
	p.fragmented, p.inner = p.inner, false
}

// AnnounceMSS notes the largest segment that the sender of a SYN takes, in bytes of
// payload. It stands beside the frame: the frames of this package have no options.
func (p *Packet) AnnounceMSS(n int) {
	p.edits.inexact()
	p.mss = n
}

// MSS is what AnnounceMSS has noted, 0 for nothing.
func (p *Packet) MSS() int { return p.mss }
