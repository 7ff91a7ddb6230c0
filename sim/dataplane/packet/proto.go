package packet

import "strconv"

// Proto is an IP protocol number (IANA "Protocol Numbers").
type Proto uint8

// The protocols that have a name here. Only TCP, UDP, ICMP over IPv4 and ICMPv6
// over IPv6 have their headers parsed.
const (
	ICMP   Proto = 1
	IGMP   Proto = 2
	IPIP   Proto = 4
	TCP    Proto = 6
	UDP    Proto = 17
	IPv6in Proto = 41
	GRE    Proto = 47
	ICMPv6 Proto = 58
)

// String returns "TCP", "UDP", "ICMP", "ICMPv6", or "protocol 132".
func (p Proto) String() string {
	switch p {
	case ICMP:
		return "ICMP"
	case IGMP:
		return "IGMP"
	case IPIP:
		return "IPIP"
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case IPv6in:
		return "IPv6-in-IP"
	case GRE:
		return "GRE"
	case ICMPv6:
		return "ICMPv6"
	}
	return "protocol " + strconv.Itoa(int(p))
}

// EtherTypes (IEEE 802 numbers).
const (
	EtherIPv4 uint16 = 0x0800
	EtherARP  uint16 = 0x0806
	etherVLAN uint16 = 0x8100
	EtherIPv6 uint16 = 0x86dd
)

// TCP flag bits as in the header (RFC 9293 §3.1).
const (
	FIN uint8 = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
)

// FlagString returns TCP flags as "SYN", "SYN,ACK" or "none".
func FlagString(flags uint8) string { return string(appendFlags(nil, flags)) }

func appendFlags(b []byte, flags uint8) []byte {
	start := len(b)
	for _, f := range [...]struct {
		bit  uint8
		name string
	}{{SYN, "SYN"}, {FIN, "FIN"}, {RST, "RST"}, {PSH, "PSH"}, {ACK, "ACK"}, {URG, "URG"}, {0x40, "ECE"}, {0x80, "CWR"}} {
		if flags&f.bit == 0 {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, f.name...)
	}
	if len(b) == start {
		b = append(b, "none"...)
	}
	return b
}

// ICMP message types that carry an identifier and a reply.
const (
	icmpEchoReply     = 0
	icmpEchoRequest   = 8
	icmpTimestamp     = 13
	icmpTimestampRep  = 14
	icmp6EchoRequest  = 128
	icmp6EchoReply    = 129
	arpRequest        = 1
	arpReply          = 2
	arpEthernet       = 1
	arpHeaderLen      = 28
	ethHeaderLen      = 14
	vlanTagLen        = 4
	ipv4HeaderLen     = 20
	ipv6HeaderLen     = 40
	tcpHeaderLen      = 20
	udpHeaderLen      = 8
	icmpHeaderLen     = 8
	maxIPv4Len        = 0xffff
	maxIPv6PayloadLen = 0xffff
)

// hasICMPID reports whether the message carries an identifier and a sequence
// number, so that a translator can tell its flows apart (RFC 5508 §3.1).
func hasICMPID(p Proto, typ uint8) bool {
	if p == ICMPv6 {
		return typ == icmp6EchoRequest || typ == icmp6EchoReply
	}
	switch typ {
	case icmpEchoReply, icmpEchoRequest, icmpTimestamp, icmpTimestampRep:
		return true
	}
	return false
}

// IsICMP reports whether it is the ICMP of IPv4 or of IPv6.
func (p Proto) IsICMP() bool { return p == ICMP || p == ICMPv6 }
