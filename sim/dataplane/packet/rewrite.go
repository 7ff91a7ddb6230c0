package packet

import "net/netip"

// RewriteMask says which fields a [Rewrite] sets.
type RewriteMask uint16

// The fields of a Rewrite.
const (
	RwEthSrc RewriteMask = 1 << iota
	RwEthDst
	RwSrc
	RwDst
	RwSrcPort
	RwDstPort
	RwICMPID
)

// Rewrite is a header transposition: the fields in Set get new values, the
// others stay. The zero Rewrite changes nothing.
//
// Fields that a packet does not have are left out, as with the setters of
// [Packet]: one Rewrite serves the TCP and the ICMP packets of an address.
type Rewrite struct {
	// What most packets need of it comes first, so that it is in one line of cache.
	Set              RewriteMask
	SrcPort, DstPort uint16
	ICMPID           uint16
	EthSrc, EthDst   MAC
	Dst, Src         netip.Addr
}

// Apply rewrites the outermost headers of p in one pass.
func (p *Packet) Apply(r *Rewrite) {
	f, h, m := p.buf[p.off:p.end], &p.h, r.Set
	p.edits.rewrite(r)
	if m&(RwEthSrc|RwEthDst) != 0 && len(f) >= ethHeaderLen {
		h.applyMAC(f, r)
	}
	if h.IPVersion == 0 {
		return
	}
	var addr, body uint64 // changes of the sums over addresses and transport
	if m&(RwSrc|RwDst) != 0 {
		addr = h.applyAddr(f, r)
	}
	if m&(RwSrcPort|RwDstPort) != 0 && h.hasPorts() {
		body = h.applyPorts(f, r)
	}
	if m&RwICMPID != 0 && h.hasICMPID() {
		be.PutUint16(f[h.L4+4:], r.ICMPID)
		body += swap16(h.ICMPID, r.ICMPID)
		h.ICMPID = r.ICMPID
	}
	if addr != 0 || body != 0 {
		h.fixL4(f, addr, body)
	}
	if addr != 0 && h.IPVersion == 4 {
		update(f[h.L3+10:], addr)
	}
}

func (h *Headers) applyMAC(f []byte, r *Rewrite) {
	if r.Set&RwEthDst != 0 {
		*(*MAC)(f[0:6]) = r.EthDst
		h.EthDst = r.EthDst
	}
	if r.Set&RwEthSrc != 0 {
		*(*MAC)(f[6:12]) = r.EthSrc
		h.EthSrc = r.EthSrc
	}
}

// applyAddr sets the addresses and returns the change of the sum over them.
func (h *Headers) applyAddr(f []byte, r *Rewrite) (delta uint64) {
	src, dst := addrOffsets(h.IPVersion)
	if r.Set&RwSrc != 0 {
		if a, d, ok := swapAddr(f[h.L3+src:], h.IPVersion, r.Src); ok {
			h.Src = a
			delta += d
		}
	}
	if r.Set&RwDst != 0 {
		if a, d, ok := swapAddr(f[h.L3+dst:], h.IPVersion, r.Dst); ok {
			h.Dst = a
			delta += d
		}
	}
	return delta
}

// applyPorts sets the ports and returns the change of the sum over them.
func (h *Headers) applyPorts(f []byte, r *Rewrite) (delta uint64) {
	b := f[h.L4 : h.L4+4]
	if r.Set&RwSrcPort != 0 {
		be.PutUint16(b, r.SrcPort)
		delta += swap16(h.SrcPort, r.SrcPort)
		h.SrcPort = r.SrcPort
	}
	if r.Set&RwDstPort != 0 {
		be.PutUint16(b[2:], r.DstPort)
		delta += swap16(h.DstPort, r.DstPort)
		h.DstPort = r.DstPort
	}
	return delta
}

// Then returns one Rewrite that does what r followed by s does. Where both set
// a field, s wins. Addresses of different families in r and s do not compose:
// the family of s wins.
func (r Rewrite) Then(s Rewrite) Rewrite {
	if s.Set&RwEthSrc != 0 {
		r.EthSrc = s.EthSrc
	}
	if s.Set&RwEthDst != 0 {
		r.EthDst = s.EthDst
	}
	if s.Set&RwSrc != 0 {
		r.Src = s.Src
	}
	if s.Set&RwDst != 0 {
		r.Dst = s.Dst
	}
	if s.Set&RwSrcPort != 0 {
		r.SrcPort = s.SrcPort
	}
	if s.Set&RwDstPort != 0 {
		r.DstPort = s.DstPort
	}
	if s.Set&RwICMPID != 0 {
		r.ICMPID = s.ICMPID
	}
	r.Set |= s.Set
	return r
}

// IsZero reports whether r changes nothing.
func (r *Rewrite) IsZero() bool { return r.Set == 0 }
