package packet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

var be = binary.BigEndian

func parseErr(layer string, at int, format string, args ...any) error {
	return &ParseError{Layer: layer, Offset: at, What: fmt.Sprintf(format, args...)}
}

// parse fills h from f. After an error h holds the Ethernet fields only, so
// that edits of upper layers find nothing to edit.
func parse(f []byte, h *Headers) error {
	*h = Headers{}
	if len(f) < ethHeaderLen {
		return parseErr("Ethernet", 0, "%d bytes are too short, a header has %d", len(f), ethHeaderLen)
	}
	h.EthDst = MAC(f[0:6])
	h.EthSrc = MAC(f[6:12])
	h.EtherType = be.Uint16(f[12:])
	l3 := ethHeaderLen
	if h.EtherType == etherVLAN {
		if len(f) < ethHeaderLen+vlanTagLen {
			return parseErr("VLAN", 12, "the tag is cut off after %d bytes", len(f)-12)
		}
		h.VLAN = be.Uint16(f[14:]) & 0xfff
		h.EtherType = be.Uint16(f[16:])
		l3 += vlanTagLen
	}
	var err error
	switch h.EtherType {
	case EtherIPv4:
		err = h.parseIPv4(f, l3)
	case EtherIPv6:
		err = h.parseIPv6(f, l3)
	case EtherARP:
		err = h.parseARP(f, l3)
	default:
		h.Payload, h.End = l3, len(f)
	}
	if err != nil {
		*h = Headers{EthDst: h.EthDst, EthSrc: h.EthSrc, EtherType: h.EtherType, VLAN: h.VLAN}
	}
	return err
}

func (h *Headers) parseIPv4(f []byte, at int) error {
	b := f[at:]
	if len(b) < ipv4HeaderLen {
		return parseErr("IPv4", at, "%d bytes are too short, a header has %d", len(b), ipv4HeaderLen)
	}
	if b[0]>>4 != 4 {
		return parseErr("IPv4", at, "version is %d", b[0]>>4)
	}
	hl, total := int(b[0]&15)*4, int(be.Uint16(b[2:]))
	if hl < ipv4HeaderLen {
		return parseErr("IPv4", at, "header length %d is below %d", hl, ipv4HeaderLen)
	}
	if total < hl {
		return parseErr("IPv4", at, "total length %d is below the header length %d", total, hl)
	}
	if total > len(b) {
		return parseErr("IPv4", at, "total length %d, but the frame holds %d bytes", total, len(b))
	}
	h.IPVersion = 4
	h.L3 = at
	h.TOS = b[1]
	h.IPID = be.Uint16(b[4:])
	frag := be.Uint16(b[6:])
	h.Fragment = frag&0x3fff != 0
	h.TTL = b[8]
	h.Proto = Proto(b[9])
	h.Src = netip.AddrFrom4([4]byte(b[12:16]))
	h.Dst = netip.AddrFrom4([4]byte(b[16:20]))
	h.Payload, h.End = at+hl, at+total
	if frag&0x1fff != 0 {
		return nil // not the first fragment: no transport header
	}
	return h.parseL4(f, at+hl)
}

// parseL4 parses the transport header at byte at. What has none that this
// package knows stays opaque payload.
func (h *Headers) parseL4(f []byte, at int) error {
	b := f[at:h.End]
	switch h.Proto {
	case TCP:
		if len(b) < tcpHeaderLen {
			return parseErr("TCP", at, "%d bytes are too short, a header has %d", len(b), tcpHeaderLen)
		}
		hl := int(b[12]>>4) * 4
		if hl < tcpHeaderLen || hl > len(b) {
			return parseErr("TCP", at, "data offset %d is not between %d and the %d bytes there are", hl, tcpHeaderLen, len(b))
		}
		h.SrcPort, h.DstPort = be.Uint16(b), be.Uint16(b[2:])
		h.Seq, h.Ack = be.Uint32(b[4:]), be.Uint32(b[8:])
		h.TCPFlags = b[13]
		h.L4, h.Payload = at, at+hl
	case UDP:
		if len(b) < udpHeaderLen {
			return parseErr("UDP", at, "%d bytes are too short, a header has %d", len(b), udpHeaderLen)
		}
		n := int(be.Uint16(b[4:]))
		if n < udpHeaderLen {
			return parseErr("UDP", at, "length %d is below %d", n, udpHeaderLen)
		}
		if !h.Fragment {
			if n > len(b) {
				return parseErr("UDP", at, "length %d, but the packet holds %d bytes", n, len(b))
			}
			h.End = at + n
		}
		h.SrcPort, h.DstPort = be.Uint16(b), be.Uint16(b[2:])
		h.L4, h.Payload = at, at+udpHeaderLen
	case ICMP, ICMPv6:
		if (h.Proto == ICMP) != (h.IPVersion == 4) {
			return nil // the number means nothing in this version of IP
		}
		if len(b) < icmpHeaderLen {
			return parseErr(h.Proto.String(), at, "%d bytes are too short, a header has %d", len(b), icmpHeaderLen)
		}
		h.ICMPType, h.ICMPCode = b[0], b[1]
		if hasICMPID(h.Proto, b[0]) {
			h.ICMPID, h.ICMPSeq = be.Uint16(b[4:]), be.Uint16(b[6:])
		}
		h.L4, h.Payload = at, at+icmpHeaderLen
	}
	return nil
}

func (h *Headers) parseARP(f []byte, at int) error {
	b := f[at:]
	if len(b) < arpHeaderLen {
		return parseErr("ARP", at, "%d bytes are too short, a packet has %d", len(b), arpHeaderLen)
	}
	if be.Uint16(b) != arpEthernet || be.Uint16(b[2:]) != EtherIPv4 || b[4] != 6 || b[5] != 4 {
		return parseErr("ARP", at, "only Ethernet and IPv4 are known, this is hardware %d and protocol 0x%04x", be.Uint16(b), be.Uint16(b[2:]))
	}
	h.L3, h.Payload, h.End = at, at+arpHeaderLen, at+arpHeaderLen
	h.ARPOp = be.Uint16(b[6:])
	h.ARPSenderMAC, h.ARPSender = MAC(b[8:14]), netip.AddrFrom4([4]byte(b[14:18]))
	h.ARPTargetMAC, h.ARPTarget = MAC(b[18:24]), netip.AddrFrom4([4]byte(b[24:28]))
	return nil
}
