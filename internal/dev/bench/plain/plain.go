// Package plain rewrites the source address of packets like Go code written by hand for this one
// purpose: fixed offsets, a map of flows, checksums by difference. It is the
// measure of a machine: what winlab costs is quoted in packets of this. It must know nothing of
// the simulator.
package plain

import "encoding/binary"

// flow is what a packet is known by.
type flow struct {
	src, dst [4]byte
	ports    [4]byte
	proto    byte
}

// Rewriter gives packets of IPv4 another source.
type Rewriter struct {
	To    [4]byte
	flows map[flow]int
}

// New returns a rewriter that knows no flow.
func New(to [4]byte) *Rewriter { return &Rewriter{To: to, flows: map[flow]int{}} }

// Flows is how many flows it has seen.
func (r *Rewriter) Flows() int { return len(r.flows) }

// Rewrite changes a frame in place and reports whether it is one that it knows: IPv4 without
// options, TCP, UDP or ICMP.
func (r *Rewriter) Rewrite(frame []byte) bool {
	const ip = 14
	if len(frame) < ip+28 || frame[12] != 8 || frame[13] != 0 || frame[ip] != 0x45 {
		return false
	}
	var f flow
	copy(f.src[:], frame[ip+12:])
	copy(f.dst[:], frame[ip+16:])
	f.proto = frame[ip+9]
	at := 0 // of the checksum that covers the addresses
	switch f.proto {
	case 1:
		copy(f.ports[:], frame[ip+24:ip+26])
	case 6:
		if len(frame) < ip+40 {
			return false
		}
		copy(f.ports[:], frame[ip+20:])
		at = ip + 36
	case 17:
		copy(f.ports[:], frame[ip+20:])
		at = ip + 26
	default:
		return false
	}
	r.flows[f]++
	copy(frame[ip+12:], r.To[:])
	update(frame[ip+10:], f.src, r.To)
	if at != 0 {
		update(frame[at:], f.src, r.To)
	}
	return true
}

// update changes a checksum for words that have changed (RFC 1624).
func update(sum []byte, from, to [4]byte) {
	s := uint32(^binary.BigEndian.Uint16(sum))
	s += uint32(^binary.BigEndian.Uint16(from[:])) + uint32(^binary.BigEndian.Uint16(from[2:]))
	s += uint32(binary.BigEndian.Uint16(to[:])) + uint32(binary.BigEndian.Uint16(to[2:]))
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	binary.BigEndian.PutUint16(sum, ^uint16(s))
}
