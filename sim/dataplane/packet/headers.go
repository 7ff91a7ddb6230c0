package packet

import (
	"fmt"
	"net/netip"
)

// Headers is what was parsed from the outermost stack of a frame. Fields of a
// layer that is absent are zero. A caller reads it; changing it does not change
// the frame.
type Headers struct {
	EthDst, EthSrc MAC
	// EtherType is the type after the VLAN tag, if there is one.
	EtherType uint16
	// VLAN is the identifier of the outermost 802.1Q tag, 0 for none.
	VLAN uint16

	// IPVersion is 4, 6, or 0 for a frame that carries no IP.
	IPVersion uint8
	TTL, TOS  uint8
	// Fragment is set on every fragment, the first too. Only the first has
	// ports, and on none can the transport checksum be verified.
	Fragment bool
	Proto    Proto
	TCPFlags uint8
	ICMPType uint8
	ICMPCode uint8
	Src, Dst netip.Addr
	// IPID is the IPv4 identification, or the low half of the IPv6 one when
	// there is a fragment header.
	IPID             uint16
	SrcPort, DstPort uint16
	ICMPID, ICMPSeq  uint16
	Seq, Ack         uint32

	// ARP over Ethernet and IPv4.
	ARPOp                      uint16
	ARPSenderMAC, ARPTargetMAC MAC
	ARPSender, ARPTarget       netip.Addr

	// L3, L4, Payload and End are offsets into the frame, 0 when absent. L4 is
	// set when a TCP, UDP, ICMP or ICMPv6 header was parsed. End is where the
	// payload ends; bytes after it are padding of the link.
	L3, L4, Payload, End int
}

// Tuple returns the flow of the outermost stack, the zero Tuple for a frame
// that carries no IP. Fragments after the first have no ports.
func (h *Headers) Tuple() Tuple {
	return Tuple{
		Src: h.Src, Dst: h.Dst, SrcPort: h.SrcPort, DstPort: h.DstPort,
		Proto: h.Proto, ICMPType: h.ICMPType, ICMPID: h.ICMPID,
	}
}

// Opens reports whether a packet asks for something that is not there yet: a TCP
// connection (SYN alone), a conversation by UDP (any datagram), an echo (the request).
// Other protocols, and other ICMP messages, open nothing.
func (h *Headers) Opens() bool {
	switch h.Proto {
	case TCP:
		return h.TCPFlags&(SYN|ACK|RST) == SYN
	case UDP:
		return true
	case ICMP:
		return h.ICMPType == 8
	case ICMPv6:
		return h.ICMPType == 128
	}
	return false
}

// ParseError says why a frame could not be parsed.
type ParseError struct {
	// Layer is where parsing stopped: "Ethernet", "IPv4", "TCP", "VXLAN" ...
	Layer string
	// Offset is the byte of the frame at which the layer begins.
	Offset int
	// What is wrong, as a clause.
	What string
}

// Error returns "IPv4 at byte 14: total length 1500, but the frame holds 82 bytes".
func (e *ParseError) Error() string {
	return fmt.Sprintf("%s at byte %d: %s", e.Layer, e.Offset, e.What)
}
