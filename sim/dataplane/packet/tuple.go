package packet

import (
	"net/netip"
	"strconv"
)

// Tuple names a flow in one direction. It is comparable and has no padding, so
// it can key a map. For TCP and UDP the ICMP fields are 0; for ICMP and ICMPv6
// the ports are 0, and ICMPID is 0 unless the message carries an identifier.
type Tuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Proto            Proto
	ICMPType         uint8
	ICMPID           uint16
}

// Reverse returns the tuple of the flow's other direction: addresses and ports
// swapped, echo request and echo reply exchanged. Other ICMP types stay.
func (t Tuple) Reverse() Tuple {
	t.Src, t.Dst = t.Dst, t.Src
	t.SrcPort, t.DstPort = t.DstPort, t.SrcPort
	switch {
	case t.Proto == ICMP && t.ICMPType == icmpEchoRequest:
		t.ICMPType = icmpEchoReply
	case t.Proto == ICMP && t.ICMPType == icmpEchoReply:
		t.ICMPType = icmpEchoRequest
	case t.Proto == ICMPv6 && t.ICMPType == icmp6EchoRequest:
		t.ICMPType = icmp6EchoReply
	case t.Proto == ICMPv6 && t.ICMPType == icmp6EchoReply:
		t.ICMPType = icmp6EchoRequest
	}
	return t
}

// IsValid reports whether t came from an IP packet.
func (t Tuple) IsValid() bool { return t.Src.IsValid() && t.Dst.IsValid() }

// String returns "TCP 10.244.1.4:40000 > 10.96.0.10:80" or
// "ICMP echo request 10.244.1.4 > 203.0.113.10 id 1".
func (t Tuple) String() string {
	if !t.IsValid() {
		return "not IP"
	}
	b := append(make([]byte, 0, 96), t.Proto.String()...)
	b = append(b, ' ')
	switch t.Proto {
	case TCP, UDP:
		b = netip.AddrPortFrom(t.Src, t.SrcPort).AppendTo(b)
		b = append(b, " > "...)
		return string(netip.AddrPortFrom(t.Dst, t.DstPort).AppendTo(b))
	case ICMP, ICMPv6:
		b = appendICMPType(b, t.Proto, t.ICMPType)
		b = append(b, ' ')
	}
	b = t.Src.AppendTo(b)
	b = append(b, " > "...)
	b = t.Dst.AppendTo(b)
	if (t.Proto == ICMP || t.Proto == ICMPv6) && hasICMPID(t.Proto, t.ICMPType) {
		b = append(b, " id "...)
		b = strconv.AppendUint(b, uint64(t.ICMPID), 10)
	}
	return string(b)
}

// appendICMPType appends the name of a message type, or "type 5".
func appendICMPType(b []byte, p Proto, typ uint8) []byte {
	names := icmpNames
	if p == ICMPv6 {
		names = icmp6Names
	}
	if n, ok := names[typ]; ok {
		return append(b, n...)
	}
	return strconv.AppendUint(append(b, "type "...), uint64(typ), 10)
}

// Names of ICMP (RFC 792) and ICMPv6 (RFC 4443, RFC 4861) types.
var (
	icmpNames = map[uint8]string{
		0: "echo reply", 3: "destination unreachable", 5: "redirect",
		8: "echo request", 11: "time exceeded", 12: "parameter problem",
		13: "timestamp request", 14: "timestamp reply",
	}
	icmp6Names = map[uint8]string{
		1: "destination unreachable", 2: "packet too big", 3: "time exceeded",
		4: "parameter problem", 128: "echo request", 129: "echo reply",
		133: "router solicitation", 134: "router advertisement",
		135: "neighbour solicitation", 136: "neighbour advertisement",
	}
)

// Hash spreads connections: tuples that differ in anything have unrelated hashes, also in
// the lowest bits. It stands for choices at random, and for hashes that are not published.
func (t Tuple) Hash() uint32 {
	x := mix(mix(fnvBasis, t.Src), t.Dst)
	for _, b := range [...]byte{byte(t.SrcPort >> 8), byte(t.SrcPort), byte(t.DstPort >> 8), byte(t.DstPort), byte(t.Proto)} {
		x = (x ^ uint32(b)) * fnvPrime
	}
	// FNV alone would leave the parity of its input in the lowest bit: a client that
	// takes every other port would always reach the same one of two backends.
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

const (
	fnvBasis, fnvPrime = 2166136261, 16777619
	// fnvZeros is what ten bytes of 0 do: the prime to the power of ten, in 32 bits.
	fnvZeros = 1485291145
)

// mix takes in the sixteen bytes of an address, of which one of IPv4 has twelve in common
// with all others.
func mix(x uint32, a netip.Addr) uint32 {
	if a.Is4() {
		x = ((x*fnvZeros^0xff)*fnvPrime ^ 0xff) * fnvPrime
		for _, b := range a.As4() {
			x = (x ^ uint32(b)) * fnvPrime
		}
		return x
	}
	for _, b := range a.As16() {
		x = (x ^ uint32(b)) * fnvPrime
	}
	return x
}
