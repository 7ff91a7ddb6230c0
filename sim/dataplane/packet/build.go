package packet

import (
	"fmt"
	"net/netip"
)

const (
	defaultTTL = 64
	// tcpWindow is what built TCP segments announce. No rule looks at it.
	tcpWindow = 64240
)

// Spec describes a frame to build. Fields of other protocols than Proto are
// ignored.
type Spec struct {
	EthSrc, EthDst MAC
	// VLAN 0 means no tag.
	VLAN uint16
	// Src and Dst are of one family, which chooses IPv4 or IPv6.
	Src, Dst         netip.Addr
	Proto            Proto
	SrcPort, DstPort uint16
	// TTL 0 is 64.
	TTL                uint8
	TCPFlags           uint8
	Seq, Ack           uint32
	ICMPType, ICMPCode uint8
	ICMPID, ICMPSeq    uint16
	Payload            []byte
	// IPID is the IPv4 identification.
	IPID uint16
	// DontFragment sets DF, which TCP over IPv4 has in any case.
	DontFragment bool
}

// Validate says why no packet can be built from s, or returns nil.
func (s *Spec) Validate() error {
	v4 := s.Src.Unmap().Is4()
	switch {
	case !s.Src.IsValid() || !s.Dst.IsValid():
		return fmt.Errorf("a packet needs a source and a destination address")
	case v4 != s.Dst.Unmap().Is4():
		return fmt.Errorf("source %v and destination %v are not of one family", s.Src, s.Dst)
	case v4 && s.Proto == ICMPv6:
		return fmt.Errorf("ICMPv6 cannot go over IPv4; use ICMP")
	case !v4 && s.Proto == ICMP:
		return fmt.Errorf("ICMP cannot go over IPv6; use ICMPv6")
	case s.VLAN > 4094:
		return fmt.Errorf("VLAN %d is not between 1 and 4094", s.VLAN)
	case l4Len(s.Proto)+len(s.Payload) > maxIPv4Len-ipv4HeaderLen:
		return fmt.Errorf("a payload of %d bytes does not fit into one packet", len(s.Payload))
	}
	if !v4 {
		switch s.Proto {
		case extHopByHop, extRouting, extFragment, extDestination:
			return fmt.Errorf("protocol %d is an IPv6 extension header, not a protocol", s.Proto)
		}
	}
	return nil
}

func l4Len(p Proto) int {
	switch p {
	case TCP:
		return tcpHeaderLen
	case UDP:
		return udpHeaderLen
	case ICMP, ICMPv6:
		return icmpHeaderLen
	}
	return 0
}

// Build returns the frame that s describes, without padding and with every
// checksum right. A protocol that is not TCP, UDP or ICMP gets the payload as it
// is. TCP over IPv4 has DF set, as stacks that discover the path MTU do.
//
// Build panics when [Spec.Validate] returns an error: call that first where the
// values come from a user.
func Build(s Spec) *Packet {
	if err := s.Validate(); err != nil {
		panic("packet.Build: " + err.Error())
	}
	if s.TTL == 0 {
		s.TTL = defaultTTL
	}
	v4 := s.Src.Unmap().Is4()
	ipLen := ipv4HeaderLen
	if !v4 {
		ipLen = ipv6HeaderLen
	}
	n := l4Len(s.Proto) + len(s.Payload)
	p := blank(ethHeaderLen + ipLen + n)
	f := p.Bytes()
	putEth(f, s.EthDst, s.EthSrc, v4)
	if v4 {
		putIPv4(f[ethHeaderLen:], ipLen+n, s.IPID, s.Proto == TCP || s.DontFragment, s.TTL, s.Proto, s.Src.Unmap().As4(), s.Dst.Unmap().As4())
	} else {
		putIPv6(f[ethHeaderLen:], n, s.TTL, s.Proto, s.Src.As16(), s.Dst.As16())
	}
	l4 := f[ethHeaderLen+ipLen:]
	switch s.Proto {
	case TCP:
		be.PutUint16(l4, s.SrcPort)
		be.PutUint16(l4[2:], s.DstPort)
		be.PutUint32(l4[4:], s.Seq)
		be.PutUint32(l4[8:], s.Ack)
		l4[12], l4[13] = tcpHeaderLen/4<<4, s.TCPFlags
		be.PutUint16(l4[14:], tcpWindow)
	case UDP:
		putUDP(l4, s.SrcPort, s.DstPort, n)
	case ICMP, ICMPv6:
		l4[0], l4[1] = s.ICMPType, s.ICMPCode
		be.PutUint16(l4[4:], s.ICMPID)
		be.PutUint16(l4[6:], s.ICMPSeq)
	}
	copy(l4[l4Len(s.Proto):], s.Payload)
	p.mustParse()
	if p.h.L4 != 0 {
		want, at := p.h.l4Checksum(f)
		be.PutUint16(f[at:], want)
	}
	if s.VLAN != 0 {
		p.tag(s.VLAN)
	}
	return p
}

// tag puts an 802.1Q tag of priority 0 after the addresses.
func (p *Packet) tag(id uint16) {
	p.push(vlanTagLen)
	f := p.Bytes()
	copy(f, f[vlanTagLen:vlanTagLen+12])
	be.PutUint16(f[12:], etherVLAN)
	be.PutUint16(f[14:], id)
	p.h.VLAN = id
	p.h.shift(vlanTagLen)
}

// BuildARP returns an ARP packet (op 1 request, 2 reply) for IPv4 over Ethernet.
// The frame goes to dstMAC. A request to [Broadcast] has the target MAC address
// zero, because that is what it asks for. It panics when an address is not IPv4.
func BuildARP(op uint16, srcMAC, dstMAC MAC, sender, target netip.Addr) *Packet {
	if !sender.Unmap().Is4() || !target.Unmap().Is4() {
		panic(fmt.Sprintf("packet.BuildARP: %v and %v must be IPv4 addresses", sender, target))
	}
	p := blank(ethHeaderLen + arpHeaderLen)
	f := p.Bytes()
	copy(f, dstMAC[:])
	copy(f[6:], srcMAC[:])
	be.PutUint16(f[12:], EtherARP)
	b := f[ethHeaderLen:]
	be.PutUint16(b, arpEthernet)
	be.PutUint16(b[2:], EtherIPv4)
	b[4], b[5] = 6, 4
	be.PutUint16(b[6:], op)
	copy(b[8:], srcMAC[:])
	s, t := sender.Unmap().As4(), target.Unmap().As4()
	copy(b[14:], s[:])
	if dstMAC != Broadcast {
		copy(b[18:], dstMAC[:])
	}
	copy(b[24:], t[:])
	p.mustParse()
	return p
}

// blank returns a packet of n zero bytes.
func blank(n int) *Packet {
	return &Packet{buf: make([]byte, max(headroom+n, 256)), off: headroom, end: headroom + n}
}

// mustParse parses a frame that this package wrote.
func (p *Packet) mustParse() {
	if err := parse(p.Bytes(), &p.h); err != nil {
		panic("packet: built a frame that does not parse: " + err.Error())
	}
}

func putEth(f []byte, dst, src MAC, v4 bool) {
	copy(f, dst[:])
	copy(f[6:], src[:])
	if v4 {
		be.PutUint16(f[12:], EtherIPv4)
	} else {
		be.PutUint16(f[12:], EtherIPv6)
	}
}

func putIPv4(b []byte, total int, id uint16, df bool, ttl uint8, proto Proto, src, dst [4]byte) {
	b = b[:ipv4HeaderLen]
	b[0], b[1] = 4<<4|ipv4HeaderLen/4, 0
	be.PutUint16(b[2:], uint16(total))
	be.PutUint16(b[4:], id)
	be.PutUint16(b[6:], 0)
	if df {
		b[6] = 0x40
	}
	b[8], b[9] = ttl, byte(proto)
	be.PutUint16(b[10:], 0)
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	be.PutUint16(b[10:], ^fold(sum(b, 0)))
}

func putIPv6(b []byte, payload int, ttl uint8, proto Proto, src, dst [16]byte) {
	be.PutUint32(b, 6<<28)
	be.PutUint16(b[4:], uint16(payload))
	b[6], b[7] = byte(proto), ttl
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
}

func putUDP(b []byte, src, dst uint16, n int) {
	be.PutUint16(b, src)
	be.PutUint16(b[2:], dst)
	be.PutUint16(b[4:], uint16(n))
	be.PutUint16(b[6:], 0)
}
