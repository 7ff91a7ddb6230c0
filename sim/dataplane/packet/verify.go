package packet

import "fmt"

// ChecksumError names a checksum that is wrong.
type ChecksumError struct {
	// Layer is "IPv4", "TCP", "inner UDP" ...
	Layer string
	// Offset is where the checksum is in the frame.
	Offset    int
	Got, Want uint16
}

// Error returns "TCP checksum at byte 50 is 0x1234, should be 0x5678".
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s checksum at byte %d is 0x%04x, should be 0x%04x", e.Layer, e.Offset, e.Got, e.Want)
}

// maxTunnels is how many tunnels VerifyChecksums and String look into.
const maxTunnels = 4

// VerifyChecksums checks every checksum of the frame, also inside VXLAN to UDP
// port 4789 and Geneve to 6081. It returns a *[ChecksumError] for the outermost
// wrong one, and a *[ParseError] for a tunnelled frame that cannot be parsed.
//
// Transport checksums of fragments cannot be checked and are skipped. A UDP
// checksum of 0 is right over IPv4, and over IPv6 only on the tunnels' ports
// (RFC 6935).
func (p *Packet) VerifyChecksums() error {
	return p.h.verify(p.Bytes(), "", maxTunnels)
}

func (h *Headers) verify(f []byte, prefix string, depth int) error {
	if h.IPVersion == 4 {
		hdr := f[h.L3 : h.L3+int(f[h.L3]&15)*4]
		if fold(sum(hdr, 0)) != 0xffff {
			want := ^fold(sum(hdr[12:], sum(hdr[:10], 0)))
			return &ChecksumError{prefix + "IPv4", h.L3 + 10, be.Uint16(hdr[10:]), want}
		}
	}
	if h.L4 == 0 || h.Fragment {
		return nil
	}
	kind, tunnelled := h.tunnelKind()
	want, at := h.l4Checksum(f)
	got := be.Uint16(f[at:])
	none := h.Proto == UDP && got == 0 && (h.IPVersion == 4 || tunnelled)
	if !none && !sameChecksum(h.Proto, got, want) {
		return &ChecksumError{prefix + h.Proto.String(), at, got, want}
	}
	if !tunnelled || depth == 0 {
		return nil
	}
	_, _, inner, err := h.tunnel(f, kind)
	if err != nil {
		return nil // UDP on the port, but no tunnel
	}
	var ih Headers
	if err := parseInner(f, inner, h.End, &ih); err != nil {
		return err
	}
	return ih.verify(f, prefix+"inner ", depth-1)
}

// sameChecksum compares in ones' complement, where 0 and 0xffff are one number.
// In UDP 0 is not a checksum.
func sameChecksum(p Proto, a, b uint16) bool {
	if a == b {
		return true
	}
	return p != UDP && a%0xffff == 0 && b%0xffff == 0
}

// tunnelKind says which tunnel uses the destination port.
func (h *Headers) tunnelKind() (Tunnel, bool) {
	if h.L4 != 0 && h.Proto == UDP {
		switch h.DstPort {
		case VXLANPort:
			return VXLAN, true
		case GenevePort:
			return Geneve, true
		}
	}
	return 0, false
}

// TransportChecksumWrong reports whether the outermost TCP or UDP checksum is
// wrong, where the frame has one that can be checked.
func (p *Packet) TransportChecksumWrong() bool {
	p.edits.inexact()
	h, f := &p.h, p.Bytes()
	if h.L4 == 0 || h.Fragment || h.Proto != TCP && h.Proto != UDP {
		return false
	}
	want, at := h.l4Checksum(f)
	got := be.Uint16(f[at:])
	return (h.Proto != UDP || got != 0) && !sameChecksum(h.Proto, got, want)
}

// SpoilChecksum makes the outermost TCP or UDP checksum wrong, as a NIC does that
// offloads it and does not know the tunnel around it. Other packets stay as they
// are.
func (p *Packet) SpoilChecksum() {
	p.edits.inexact()
	h, f := &p.h, p.Bytes()
	if h.L4 == 0 || h.Fragment || h.Proto != TCP && h.Proto != UDP {
		return
	}
	want, at := h.l4Checksum(f)
	bad := ^want
	if bad == 0 {
		bad = 1 // UDP: no checksum
	}
	be.PutUint16(f[at:], bad)
}
