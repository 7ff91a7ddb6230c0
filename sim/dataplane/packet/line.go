package packet

import (
	"net/netip"
	"strconv"
	"strings"
)

// Line is what [Packet.String] says of a packet's addresses.
type Line struct {
	SrcMAC, DstMAC MAC
	// Src and Dst have port 0 where the packet does not have ports.
	Src, Dst netip.AddrPort
	Proto    Proto
	// VNI and Inner are of a tunnel whose inner frame could be read; Inner is nil for none.
	VNI   uint32
	Inner *Line
}

// ReadLine reads what [Packet.String] has written of an IP packet. The result is false for
// everything else.
func ReadLine(s string) (l Line, ok bool) {
	head, rest, found := strings.Cut(s, "  ")
	a, b, found2 := strings.Cut(head, " > ")
	if !found || !found2 {
		return l, false
	}
	b, _, _ = strings.Cut(b, " vlan ")
	var err1, err2 error
	if l.SrcMAC, err1 = ParseMAC(a); err1 != nil {
		return l, false
	}
	if l.DstMAC, err2 = ParseMAC(b); err2 != nil {
		return l, false
	}
	a, rest, found = strings.Cut(rest, " > ")
	if !found {
		return l, false
	}
	b, rest, _ = strings.Cut(rest, " ")
	var ok1, ok2 bool
	l.Src, ok1 = end(a)
	l.Dst, ok2 = end(b)
	proto, rest, _ := strings.Cut(rest, " ")
	if l.Proto, ok = protoOf(proto); !ok || !ok1 || !ok2 {
		return l, false
	}
	if i, j := strings.Index(rest, " vni "), strings.Index(rest, " [ "); i >= 0 && j > i && strings.HasSuffix(rest, " ]") {
		vni, err := strconv.ParseUint(rest[i+len(" vni "):j], 10, 32)
		inner, ok := ReadLine(strings.TrimSuffix(rest[j+len(" [ "):], " ]"))
		if err == nil && ok {
			l.VNI, l.Inner = uint32(vni), &inner
		}
	}
	return l, true
}

// end reads an address with a port or without.
func end(s string) (netip.AddrPort, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap, true
	}
	a, err := netip.ParseAddr(s)
	return netip.AddrPortFrom(a, 0), err == nil
}

func protoOf(s string) (Proto, bool) {
	for _, p := range []Proto{TCP, UDP, ICMP, ICMPv6} {
		if p.String() == s {
			return p, true
		}
	}
	return 0, false
}
