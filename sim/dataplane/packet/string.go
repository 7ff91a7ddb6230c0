package packet

import (
	"net/netip"
	"strconv"
)

// String returns the packet on one line:
//
//	00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  10.244.1.4:40000 > 10.96.0.50:80 TCP SYN ttl 128
//
// A tunnel on its usual port shows the inner frame in brackets.
func (p *Packet) String() string {
	if p.Len() < ethHeaderLen {
		return "short frame of " + strconv.Itoa(p.Len()) + " bytes"
	}
	return string(p.h.append(make([]byte, 0, 128), p.Bytes(), maxTunnels))
}

// Words returns a function that says of a frame what String says of a packet.
func (p *Packet) Words() func(frame []byte) string { return words }

func words(frame []byte) string {
	p := Packet{buf: frame, end: len(frame)}
	_ = parse(frame, &p.h) // what could be parsed is said
	return p.String()
}

func (h *Headers) append(b, f []byte, depth int) []byte {
	b = h.EthSrc.append(b)
	b = append(b, " > "...)
	b = h.EthDst.append(b)
	if h.VLAN != 0 {
		b = appendNum(b, " vlan ", h.VLAN)
	}
	b = append(b, "  "...)
	switch {
	case h.IPVersion != 0:
		b = h.appendIP(b)
	case h.ARPSender.IsValid():
		return h.appendARP(b)
	default:
		b = append(b, "type 0x"...)
		for i := 12; i >= 0; i -= 4 {
			b = append(b, hexDigits[h.EtherType>>i&15])
		}
		return b
	}
	kind, ok := h.tunnelKind()
	if !ok || depth == 0 {
		return b
	}
	vni, _, inner, err := h.tunnel(f, kind)
	if err != nil {
		return b
	}
	b = append(append(append(b, ' '), kind.String()...), " vni "...)
	b = strconv.AppendUint(b, uint64(vni), 10)
	b = append(b, " [ "...)
	var ih Headers
	if err := parseInner(f, inner, h.End, &ih); err != nil {
		b = append(b, err.Error()...)
	} else {
		b = ih.append(b, f, depth-1)
	}
	return append(b, " ]"...)
}

func (h *Headers) appendIP(b []byte) []byte {
	if h.hasPorts() {
		b = netip.AddrPortFrom(h.Src, h.SrcPort).AppendTo(b)
		b = append(b, " > "...)
		b = netip.AddrPortFrom(h.Dst, h.DstPort).AppendTo(b)
	} else {
		b = h.Src.AppendTo(b)
		b = append(b, " > "...)
		b = h.Dst.AppendTo(b)
	}
	b = append(append(b, ' '), h.Proto.String()...)
	switch {
	case h.L4 == 0:
	case h.Proto == TCP:
		b = appendFlags(append(b, ' '), h.TCPFlags)
	case h.Proto == ICMP || h.Proto == ICMPv6:
		b = appendICMPType(append(b, ' '), h.Proto, h.ICMPType)
		if h.hasICMPID() {
			b = appendNum(b, " id ", h.ICMPID)
			b = appendNum(b, " seq ", h.ICMPSeq)
		} else {
			b = appendNum(b, " code ", uint16(h.ICMPCode))
		}
	}
	if h.Fragment {
		b = append(b, " fragment"...)
	}
	return appendNum(b, " ttl ", uint16(h.TTL))
}

func (h *Headers) appendARP(b []byte) []byte {
	switch h.ARPOp {
	case arpRequest:
		b = h.ARPTarget.AppendTo(append(b, "ARP who-has "...))
		return h.ARPSender.AppendTo(append(b, " tell "...))
	case arpReply:
		b = h.ARPSender.AppendTo(append(b, "ARP "...))
		return h.ARPSenderMAC.append(append(b, " is-at "...))
	}
	return appendNum(b, "ARP operation ", h.ARPOp)
}

func appendNum(b []byte, label string, n uint16) []byte {
	return strconv.AppendUint(append(b, label...), uint64(n), 10)
}
