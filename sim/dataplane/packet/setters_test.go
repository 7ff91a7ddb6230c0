package packet

import "net/netip"

// Setters of one address each, with which [Packet.Apply] is compared.

// setSrc sets the source address. A false return means another address family
// or no IP.
func (p *Packet) setSrc(a netip.Addr) bool {
	f, h := p.Bytes(), &p.h
	at, _ := addrOffsets(h.IPVersion)
	if h.IPVersion == 0 {
		return false
	}
	s, delta, ok := swapAddr(f[h.L3+at:], h.IPVersion, a)
	if ok {
		h.Src = s
		h.fixAddr(f, delta)
	}
	return ok
}

// setDst sets the destination address. A false return means another address
// family or no IP.
func (p *Packet) setDst(a netip.Addr) bool {
	f, h := p.Bytes(), &p.h
	_, at := addrOffsets(h.IPVersion)
	if h.IPVersion == 0 {
		return false
	}
	d, delta, ok := swapAddr(f[h.L3+at:], h.IPVersion, a)
	if ok {
		h.Dst = d
		h.fixAddr(f, delta)
	}
	return ok
}
