package packet

// sum adds the 16-bit words of b to s, in the ones' complement sense: the
// result is right modulo 0xffff (RFC 1071).
func sum(b []byte, s uint64) uint64 {
	for len(b) >= 8 {
		x := be.Uint64(b)
		s += x>>32 + x&0xffffffff
		b = b[8:]
	}
	for len(b) >= 2 {
		s += uint64(be.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold reduces a sum to 16 bits. The result is 0 only for a sum of 0.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// swap32 returns what replacing the word old by new adds to a checksum's sum:
// ~m + m' of RFC 1624 equation 3.
func swap32(old, new uint32) uint64 { return uint64(^old) + uint64(new) }

func swap16(old, new uint16) uint64 { return uint64(^old) + uint64(new) }

// update replaces the checksum at the start of b after the covered bytes
// changed by delta: HC' = ~(~HC + ~m + m') (RFC 1624 equation 3).
func update(b []byte, delta uint64) {
	be.PutUint16(b, ^fold(uint64(^be.Uint16(b))+delta))
}

// updateUDP is update for UDP, where 0 means that there is no checksum and
// stays, and a computed 0 is sent as 0xffff (RFC 768).
func updateUDP(b []byte, delta uint64) {
	old := be.Uint16(b)
	if old == 0 {
		return
	}
	c := ^fold(uint64(^old) + delta)
	if c == 0 {
		c = 0xffff
	}
	be.PutUint16(b, c)
}

// fixL4 corrects the transport checksum. addr is the change of the addresses,
// which are in the pseudo-header; body is the change of the header itself.
func (h *Headers) fixL4(f []byte, addr, body uint64) {
	if h.L4 == 0 {
		return
	}
	switch h.Proto {
	case TCP:
		update(f[h.L4+16:], addr+body)
	case UDP:
		updateUDP(f[h.L4+6:], addr+body)
	case ICMPv6:
		update(f[h.L4+2:], addr+body)
	case ICMP: // no pseudo-header
		if body != 0 {
			update(f[h.L4+2:], body)
		}
	}
}

// pseudo returns the sum of the pseudo-header for n bytes of transport.
func (h *Headers) pseudo(f []byte, n int) uint64 {
	s := uint64(h.Proto) + uint64(n)
	if h.IPVersion == 4 {
		return sum(f[h.L3+12:h.L3+20], s)
	}
	return sum(f[h.L3+8:h.L3+40], s)
}

// l4Checksum returns the transport checksum as it should be in f, computed
// over the whole, and the offset of its field.
func (h *Headers) l4Checksum(f []byte) (want uint16, at int) {
	body := f[h.L4:h.End]
	var s uint64
	switch h.Proto {
	case TCP:
		at = 16
		s = h.pseudo(f, len(body))
	case UDP:
		at = 6
		s = h.pseudo(f, len(body))
	case ICMP:
		at = 2
	case ICMPv6:
		at = 2
		s = h.pseudo(f, len(body))
	}
	s = sum(body[:at], s)
	s = sum(body[at+2:], s)
	want = ^fold(s)
	if want == 0 && h.Proto == UDP {
		want = 0xffff
	}
	return want, h.L4 + at
}
