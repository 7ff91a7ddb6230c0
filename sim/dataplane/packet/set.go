package packet

import "net/netip"

// The setters change one field, the parsed headers and every checksum that
// covers it. Those that return a bool do nothing and return false when the
// packet has no such field: a port on ICMP or on a later fragment, an identifier
// on an ICMP error.
//
// A UDP checksum of 0 means "none" and stays 0. Protocols other than TCP, UDP
// and ICMP whose checksum covers the addresses (DCCP, UDP-Lite) are not
// corrected.

// SetEthSrc sets the source MAC address.
func (p *Packet) SetEthSrc(m MAC) {
	if p.Len() >= ethHeaderLen {
		if p.edits != nil {
			p.edits.rewrite(&Rewrite{Set: RwEthSrc, EthSrc: m})
		}
		copy(p.buf[p.off+6:], m[:])
		p.h.EthSrc = m
	}
}

// SetEthDst sets the destination MAC address.
func (p *Packet) SetEthDst(m MAC) {
	if p.Len() >= ethHeaderLen {
		if p.edits != nil {
			p.edits.rewrite(&Rewrite{Set: RwEthDst, EthDst: m})
		}
		copy(p.buf[p.off:], m[:])
		p.h.EthDst = m
	}
}

// swapAddr writes a into an address field and returns the change of the sum.
func swapAddr(b []byte, version uint8, a netip.Addr) (stored netip.Addr, delta uint64, ok bool) {
	switch {
	case version == 4 && (a.Is4() || a.Is4In6()):
		n := a.As4()
		b = b[:4]
		delta = swap32(be.Uint32(b), be.Uint32(n[:]))
		copy(b, n[:])
		return netip.AddrFrom4(n), delta, true
	case version == 6 && a.Is6():
		n := a.As16()
		b = b[:16]
		for i := 0; i < 16; i += 4 {
			delta += swap32(be.Uint32(b[i:]), be.Uint32(n[i:]))
		}
		copy(b, n[:])
		return netip.AddrFrom16(n), delta, true
	}
	return netip.Addr{}, 0, false
}

// addrOffsets returns where the addresses are in an IP header.
func addrOffsets(version uint8) (src, dst int) {
	if version == 4 {
		return 12, 16
	}
	return 8, 24
}

func (h *Headers) fixAddr(f []byte, delta uint64) {
	if h.IPVersion == 4 {
		update(f[h.L3+10:], delta)
	}
	h.fixL4(f, delta, 0)
}

func (h *Headers) hasPorts() bool { return h.L4 != 0 && (h.Proto == TCP || h.Proto == UDP) }

func (h *Headers) hasICMPID() bool {
	return h.L4 != 0 && (h.Proto == ICMP || h.Proto == ICMPv6) && hasICMPID(h.Proto, h.ICMPType)
}

// SetSrcPort sets the source port of TCP or UDP.
func (p *Packet) SetSrcPort(port uint16) bool {
	h := &p.h
	if !h.hasPorts() {
		return false
	}
	p.edits.rewrite(&Rewrite{Set: RwSrcPort, SrcPort: port})
	f := p.Bytes()
	be.PutUint16(f[h.L4:], port)
	h.fixL4(f, 0, swap16(h.SrcPort, port))
	h.SrcPort = port
	return true
}

// SetDstPort sets the destination port of TCP or UDP.
func (p *Packet) SetDstPort(port uint16) bool {
	h := &p.h
	if !h.hasPorts() {
		return false
	}
	p.edits.rewrite(&Rewrite{Set: RwDstPort, DstPort: port})
	f := p.Bytes()
	be.PutUint16(f[h.L4+2:], port)
	h.fixL4(f, 0, swap16(h.DstPort, port))
	h.DstPort = port
	return true
}

// SetSeq sets the sequence number of a TCP segment.
func (p *Packet) SetSeq(seq uint32) bool {
	h := &p.h
	if h.L4 == 0 || h.Proto != TCP {
		return false
	}
	p.edits.inexact()
	f := p.Bytes()
	be.PutUint32(f[h.L4+4:], seq)
	h.fixL4(f, 0, swap32(h.Seq, seq))
	h.Seq = seq
	return true
}

// SetICMPID sets the identifier of an echo or timestamp message.
func (p *Packet) SetICMPID(id uint16) bool {
	h := &p.h
	if !h.hasICMPID() {
		return false
	}
	p.edits.rewrite(&Rewrite{Set: RwICMPID, ICMPID: id})
	f := p.Bytes()
	be.PutUint16(f[h.L4+4:], id)
	h.fixL4(f, 0, swap16(h.ICMPID, id))
	h.ICMPID = id
	return true
}

func (h *Headers) setTTL(f []byte, ttl uint8) {
	if h.IPVersion == 4 {
		update(f[h.L3+10:], swap16(uint16(h.TTL)<<8, uint16(ttl)<<8))
		f[h.L3+8] = ttl
	} else {
		f[h.L3+7] = ttl
	}
	h.TTL = ttl
}

// DecTTL takes one from the time to live and returns what is left. A TTL of 0
// stays 0; so a router drops the packet when 0 is returned. A frame without IP
// returns 0.
func (p *Packet) DecTTL() (left uint8) {
	if p.h.TTL > 0 {
		p.edits.ttl()
		p.h.setTTL(p.Bytes(), p.h.TTL-1)
	}
	return p.h.TTL
}

// shift moves the offsets of h by n bytes.
func (h *Headers) shift(n int) {
	for _, o := range [...]*int{&h.L3, &h.L4, &h.Payload, &h.End} {
		if *o != 0 {
			*o += n
		}
	}
}
