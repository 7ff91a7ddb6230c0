package packet

import "net/netip"

// IPv6 extension headers (RFC 8200 §4).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

func (h *Headers) parseIPv6(f []byte, at int) error {
	b := f[at:]
	if len(b) < ipv6HeaderLen {
		return parseErr("IPv6", at, "%d bytes are too short, a header has %d", len(b), ipv6HeaderLen)
	}
	if b[0]>>4 != 6 {
		return parseErr("IPv6", at, "version is %d", b[0]>>4)
	}
	n := int(be.Uint16(b[4:]))
	if n > len(b)-ipv6HeaderLen {
		return parseErr("IPv6", at, "payload length %d, but the frame holds %d bytes", n, len(b)-ipv6HeaderLen)
	}
	h.IPVersion = 6
	h.L3 = at
	h.TOS = b[0]<<4 | b[1]>>4
	h.TTL = b[7]
	h.Src = netip.AddrFrom16([16]byte(b[8:24]))
	h.Dst = netip.AddrFrom16([16]byte(b[24:40]))
	h.End = at + ipv6HeaderLen + n
	return h.parseExtensions(f, at+ipv6HeaderLen, b[6])
}

// parseExtensions walks the extension headers to the transport header.
func (h *Headers) parseExtensions(f []byte, at int, next uint8) error {
	for {
		b := f[at:h.End]
		switch next {
		case extHopByHop, extRouting, extDestination, extFragment:
			if len(b) < 8 {
				return parseErr("IPv6", at, "extension header %d is cut off after %d bytes", next, len(b))
			}
		default:
			h.Proto, h.Payload = Proto(next), at
			return h.parseL4(f, at)
		}
		n := 8
		switch next {
		case extFragment:
			frag := be.Uint16(b[2:])
			h.Fragment = frag&0xfff9 != 0 // an atomic fragment (RFC 6946) is not fragmented
			h.IPID = be.Uint16(b[6:])
			if frag&0xfff8 != 0 {
				h.Proto, h.Payload = Proto(b[0]), at+n
				return nil // not the first fragment: no transport header
			}
		case extRouting:
			// The transport checksum covers the final destination, which is
			// not the one in the header (RFC 8200 §8.1). An edit would break it.
			if b[3] != 0 {
				return parseErr("IPv6", at, "routing header with %d segments left is not supported", b[3])
			}
			n += int(b[1]) * 8
		default:
			n += int(b[1]) * 8
		}
		if n > len(b) {
			return parseErr("IPv6", at, "extension header %d has %d bytes, but the packet holds %d", next, n, len(b))
		}
		next = b[0]
		at += n
	}
}
