package packet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

var (
	podMAC = MAC{0, 0x15, 0x5d, 0x4a, 1, 4}
	gwMAC  = MAC{0, 0x15, 0x5d, 0, 1, 0xb}
)

func unhexFrame(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMAC(t *testing.T) {
	for _, s := range []string{"00-15-5D-4A-01-04", "00:15:5d:4a:01:04", "00-15-5d-4a-01-04"} {
		m, err := ParseMAC(s)
		if err != nil || m != podMAC || m.String() != "00-15-5d-4a-01-04" {
			t.Errorf("%s: %v %v", s, m, err)
		}
	}
	for _, s := range []string{"", "00155D4A0104", "00-15-5D-4A-01", "00-15-5D:4A-01-04", "0g-15-5D-4A-01-04", "00-15-5D-4A-01-04-",
		"00.15.5D.4A.01.04"} {
		if m, err := ParseMAC(s); err == nil || !strings.Contains(err.Error(), "write it like") {
			t.Errorf("%q: %v %v", s, m, err)
		}
	}
	if !Broadcast.IsMulticast() || podMAC.IsMulticast() || !(MAC{}).IsZero() || podMAC.IsZero() {
		t.Error("IsMulticast or IsZero")
	}
}

func TestString(t *testing.T) {
	syn := Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("10.244.1.4"), Dst: ip("10.96.0.50"), Proto: TCP, SrcPort: 40000, DstPort: 80, TTL: 128,
		TCPFlags: SYN}
	const line = "00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  10.244.1.4:40000 > 10.96.0.50:80 TCP SYN ttl 128"
	vx, gn := Build(syn), Build(syn)
	if err := vx.Encap(testOuter(VXLAN)); err != nil {
		t.Fatal(err)
	}
	if err := gn.Encap(testOuter(Geneve)); err != nil {
		t.Fatal(err)
	}
	inVLAN := syn
	inVLAN.VLAN = 7
	tagged := Build(inVLAN)
	for _, c := range []struct {
		p    *Packet
		want string
	}{
		{Build(syn), line},
		{tagged, strings.Replace(line, "0b  ", "0b vlan 7  ", 1)},
		{vx, "00-15-5d-01-01-01 > 00-15-5d-02-02-02  10.0.0.4:51234 > 10.0.0.5:4789 UDP ttl 128 VXLAN vni 4096 [ " + line + " ]"},
		{gn, "00-15-5d-01-01-01 > 00-15-5d-02-02-02  10.0.0.4:51234 > 10.0.0.5:6081 UDP ttl 128 Geneve vni 4096 [ " + line + " ]"},
		{Build(Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: UDP, SrcPort: 1, DstPort: 53}),
			"00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  [fd00::4]:1 > [fd00::5]:53 UDP ttl 64"},
		{Build(Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: ICMP, ICMPType: 8, ICMPID: 1, ICMPSeq: 2}),
			"00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  10.0.0.4 > 10.0.0.5 ICMP echo request id 1 seq 2 ttl 64"},
		{Build(Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: ICMP, ICMPType: 11}),
			"00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  10.0.0.4 > 10.0.0.5 ICMP time exceeded code 0 ttl 64"},
		{Build(Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: 132}),
			"00-15-5d-4a-01-04 > 00-15-5d-00-01-0b  10.0.0.4 > 10.0.0.5 protocol 132 ttl 64"},
		{BuildARP(1, podMAC, Broadcast, ip("10.0.0.4"), ip("10.0.0.1")),
			"00-15-5d-4a-01-04 > ff-ff-ff-ff-ff-ff  ARP who-has 10.0.0.1 tell 10.0.0.4"},
		{BuildARP(2, gwMAC, podMAC, ip("10.0.0.1"), ip("10.0.0.4")),
			"00-15-5d-00-01-0b > 00-15-5d-4a-01-04  ARP 10.0.0.1 is-at 00-15-5d-00-01-0b"},
		{new(Packet), "short frame of 0 bytes"},
	} {
		if got := c.p.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestARP(t *testing.T) {
	h := BuildARP(1, podMAC, Broadcast, ip("10.0.0.4"), ip("10.0.0.1")).Headers()
	if h.ARPOp != 1 || h.ARPSender != ip("10.0.0.4") || h.ARPTarget != ip("10.0.0.1") || h.ARPSenderMAC != podMAC ||
		!h.ARPTargetMAC.IsZero() || h.IPVersion != 0 {
		t.Errorf("request: %+v", h)
	}
	h = BuildARP(2, gwMAC, podMAC, ip("10.0.0.1"), ip("10.0.0.4")).Headers()
	if h.ARPOp != 2 || h.ARPSenderMAC != gwMAC || h.ARPTargetMAC != podMAC || h.EthDst != podMAC {
		t.Errorf("reply: %+v", h)
	}
}

func TestTuple(t *testing.T) {
	tcp := Tuple{Src: ip("10.244.1.4"), Dst: ip("10.96.0.10"), SrcPort: 40000, DstPort: 80, Proto: TCP}
	ping := Tuple{Src: ip("10.244.1.4"), Dst: ip("203.0.113.10"), Proto: ICMP, ICMPType: 8, ICMPID: 1}
	ping6 := Tuple{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: ICMPv6, ICMPType: 128, ICMPID: 1}
	for _, c := range []struct {
		t            Tuple
		str, reverse string
	}{
		{tcp, "TCP 10.244.1.4:40000 > 10.96.0.10:80", "TCP 10.96.0.10:80 > 10.244.1.4:40000"},
		{ping, "ICMP echo request 10.244.1.4 > 203.0.113.10 id 1", "ICMP echo reply 203.0.113.10 > 10.244.1.4 id 1"},
		{ping6, "ICMPv6 echo request fd00::4 > fd00::5 id 1", "ICMPv6 echo reply fd00::5 > fd00::4 id 1"},
		{Tuple{}, "not IP", "not IP"},
	} {
		if c.t.String() != c.str || c.t.Reverse().String() != c.reverse || c.t.Reverse().Reverse() != c.t {
			t.Errorf("%v, reverse %v", c.t, c.t.Reverse())
		}
	}
	p := Build(Spec{Src: ping.Src, Dst: ping.Dst, Proto: ICMP, ICMPType: 8, ICMPID: 1, ICMPSeq: 9})
	if p.Tuple() != ping {
		t.Errorf("echo request: %+v", p.Tuple())
	}
	q := Build(Spec{Src: tcp.Src, Dst: tcp.Dst, Proto: TCP, SrcPort: 40000, DstPort: 80})
	if q.Tuple() != tcp {
		t.Errorf("tcp: %+v", q.Tuple())
	}
}

// Frames that cannot be parsed say where and why; edits of what was not parsed
// do nothing.
func TestParseErrors(t *testing.T) {
	const eth = "00155d00010b 00155d4a0104 "
	const ip4 = eth + "0800 45000028 00000000 40060000 0a000004 0a000005 "
	for _, c := range []struct{ name, frame, want string }{
		{"empty", "", "Ethernet at byte 0: 0 bytes are too short, a header has 14"},
		{"tag", eth + "8100 00", "VLAN at byte 12: the tag is cut off after 3 bytes"},
		{"ip short", eth + "0800 45", "IPv4 at byte 14: 1 bytes are too short, a header has 20"},
		{"ip version", eth + "0800 65000014 00000000 40060000 0a000004 0a000005", "IPv4 at byte 14: version is 6"},
		{"ihl", eth + "0800 44000014 00000000 40060000 0a000004 0a000005", "IPv4 at byte 14: header length 16 is below 20"},
		{"total", eth + "0800 45000013 00000000 40060000 0a000004 0a000005", "IPv4 at byte 14: total length 19 is below the header length 20"},
		{"cut", ip4 + "9c40", "IPv4 at byte 14: total length 40, but the frame holds 22 bytes"},
		{"tcp short", eth + "0800 45000016 00000000 40060000 0a000004 0a000005 9c40", "TCP at byte 34: 2 bytes are too short, a header has 20"},
		{"tcp offset", ip4 + "9c400050 00000000 00000000 60020000 00000000",
			"TCP at byte 34: data offset 24 is not between 20 and the 20 bytes there are"},
		{"udp length", eth + "0800 4500001c 00000000 40110000 0a000004 0a000005 9c400050 00090000",
			"UDP at byte 34: length 9, but the packet holds 8 bytes"},
		{"udp length 7", eth + "0800 4500001c 00000000 40110000 0a000004 0a000005 9c400050 00070000", "UDP at byte 34: length 7 is below 8"},
		{"icmp", eth + "0800 45000018 00000000 40010000 0a000004 0a000005 08000000", "ICMP at byte 34: 4 bytes are too short, a header has 8"},
		{"arp", eth + "0806 0001", "ARP at byte 14: 2 bytes are too short, a packet has 28"},
		{"arp ib", eth + "0806 00200800 0604 0001" + strings.Repeat("00", 20),
			"ARP at byte 14: only Ethernet and IPv4 are known, this is hardware 32 and protocol 0x0800"},
		{"ip6 short", eth + "86dd 60", "IPv6 at byte 14: 1 bytes are too short, a header has 40"},
		{"ip6 version", eth + "86dd 50000000 0000 3b40" + strings.Repeat("00", 32), "IPv6 at byte 14: version is 5"},
		{"ip6 cut", eth + "86dd 60000000 0001 3b40" + strings.Repeat("00", 32), "IPv6 at byte 14: payload length 1, but the frame holds 0 bytes"},
		{"ip6 ext", eth + "86dd 60000000 0008 0040" + strings.Repeat("00", 32) + "3b01000000000000",
			"IPv6 at byte 54: extension header 0 has 16 bytes, but the packet holds 8"},
		{"ip6 ext cut", eth + "86dd 60000000 0001 3c40" + strings.Repeat("00", 32) + "3b",
			"IPv6 at byte 54: extension header 60 is cut off after 1 bytes"},
		{"ip6 routing", eth + "86dd 60000000 0008 2b40" + strings.Repeat("00", 32) + "3b00000200000000",
			"IPv6 at byte 54: routing header with 2 segments left is not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := unhexFrame(t, c.frame)
			p, err := New(f)
			var pe *ParseError
			if !errors.As(err, &pe) || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			if p.setSrc(ip("10.0.0.9")) || p.setDst(ip("fd00::9")) || p.SetSrcPort(1) || p.SetDstPort(1) || p.SetICMPID(1) {
				t.Error("an edit of a header that was not parsed reports success")
			}
			if !bytes.Equal(p.Bytes(), f) || p.Headers().IPVersion != 0 || p.Tuple().IsValid() || p.VerifyChecksums() != nil {
				t.Errorf("bytes %x, headers %+v", p.Bytes(), p.Headers())
			}
		})
	}
}

func TestFramesWithoutIP(t *testing.T) {
	for _, f := range []string{
		"0180c2000000 00155d4a0104 0026 424203",            // 802.3, spanning tree
		"00155d00010b 00155d4a0104 88cc 0207",              // LLDP
		"00155d00010b 00155d4a0104 8100 0001 8100 0002 00", // two tags
	} {
		p, err := New(unhexFrame(t, f))
		if err != nil || p.Headers().IPVersion != 0 || p.DecTTL() != 0 {
			t.Errorf("%s: %v %v", f, p, err)
		}
	}
}

// Setters refuse what the packet does not have.
func TestSettersRefuse(t *testing.T) {
	tcp := Build(Spec{Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: TCP})
	tcp6 := Build(Spec{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: TCP})
	unreachable := Build(Spec{Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: ICMP, ICMPType: 3})
	arp := BuildARP(1, podMAC, Broadcast, ip("10.0.0.4"), ip("10.0.0.1"))
	for name, c := range map[string]struct {
		p    *Packet
		edit func(*Packet) bool
	}{
		"IPv6 address on IPv4":   {tcp, func(p *Packet) bool { return p.setSrc(ip("fd00::9")) }},
		"IPv4 address on IPv6":   {tcp6, func(p *Packet) bool { return p.setDst(ip("10.0.0.9")) }},
		"no address":             {tcp, func(p *Packet) bool { return p.setDst(netip.Addr{}) }},
		"identifier on TCP":      {tcp, func(p *Packet) bool { return p.SetICMPID(1) }},
		"port on ICMP":           {unreachable, func(p *Packet) bool { return p.SetSrcPort(1) }},
		"identifier on an error": {unreachable, func(p *Packet) bool { return p.SetICMPID(1) }},
		"address on ARP":         {arp, func(p *Packet) bool { return p.setSrc(ip("10.0.0.9")) }},
	} {
		before := bytes.Clone(c.p.Bytes())
		if c.edit(c.p) || !bytes.Equal(before, c.p.Bytes()) {
			t.Errorf("%s was not refused", name)
		}
	}
	if !tcp.setSrc(ip("::ffff:10.0.0.9")) || tcp.Tuple().Src != ip("10.0.0.9") {
		t.Error("a mapped address is an IPv4 address")
	}
}

func TestUDPChecksum(t *testing.T) {
	p := Build(Spec{Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: UDP, SrcPort: 1, DstPort: 2, Payload: []byte{0, 0}})
	field := func() uint16 { return be.Uint16(p.Bytes()[p.h.L4+6:]) }
	// One port makes the sum come out as 0, which is sent as 0xffff.
	var seen bool
	for port := range 0x10000 {
		p.SetSrcPort(uint16(port))
		if field() == 0 {
			t.Fatalf("port %d: the checksum became 0, which means none", port)
		}
		if field() == 0xffff {
			seen = true
			if err := p.VerifyChecksums(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !seen {
		t.Error("no port gives 0xffff")
	}
	be.PutUint16(p.Bytes()[p.h.L4+6:], 0)
	p.SetSrcPort(5)
	p.setDst(ip("10.9.9.9"))
	if field() != 0 || p.VerifyChecksums() != nil {
		t.Errorf("no checksum became 0x%04x", field())
	}
}

// Edits after a tag leave the tag alone.
func TestVLAN(t *testing.T) {
	plain := Spec{EthSrc: podMAC, EthDst: gwMAC, Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: TCP, DstPort: 80}
	tagged := plain
	tagged.VLAN = 100
	p := Build(tagged)
	if p.Headers().VLAN != 100 || p.Len() != Build(plain).Len()+4 || p.Headers().DstPort != 80 {
		t.Fatalf("%v", p)
	}
	if !p.SetDstPort(81) || p.VerifyChecksums() != nil || p.Headers().VLAN != 100 {
		t.Errorf("an edit behind a tag: %v", p)
	}
	if !p.SetDstPort(80) || !bytes.Equal(p.Bytes(), Build(tagged).Bytes()) {
		t.Errorf("%x\n%x", p.Bytes(), Build(tagged).Bytes())
	}
}

// A checksum names its layer when it is wrong, also inside a tunnel.
func TestVerifyChecksums(t *testing.T) {
	for _, c := range []struct {
		spoil int // offset into the inner frame
		want  string
	}{{14 + 8, "IPv4"}, {14 + 20 + 4, "TCP"}} {
		p, _ := New(frame64())
		p.Bytes()[c.spoil] ^= 0x40
		var ce *ChecksumError
		if err := p.VerifyChecksums(); !errors.As(err, &ce) || ce.Layer != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		for _, k := range []Tunnel{VXLAN, Geneve} {
			q := p.Clone()
			if err := q.Encap(testOuter(k)); err != nil {
				t.Fatal(err)
			}
			if err := q.VerifyChecksums(); !errors.As(err, &ce) || ce.Layer != "inner "+c.want {
				t.Errorf("%v: %v, want inner %s", k, err, c.want)
			}
			be.PutUint16(q.Bytes()[ce.Offset:], ce.Want)
			if err := q.VerifyChecksums(); err != nil {
				t.Errorf("with the checksum that it asked for: %v", err)
			}
		}
	}
	p := Build(Spec{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: UDP, SrcPort: 1, DstPort: 2})
	be.PutUint16(p.Bytes()[p.h.L4+6:], 0)
	if p.VerifyChecksums() == nil {
		t.Error("UDP over IPv6 needs a checksum")
	}
}

func TestFragments(t *testing.T) {
	p := Build(Spec{Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: UDP, SrcPort: 7, DstPort: 9, Payload: make([]byte, 64)})
	refrag := func(word uint16) *Packet {
		f := bytes.Clone(p.Bytes())
		be.PutUint16(f[20:], word)
		be.PutUint16(f[24:], 0)
		be.PutUint16(f[24:], ^fold(sum(f[14:34], 0)))
		q, err := New(f)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	first, later := refrag(0x2000), refrag(0x2005)
	if h := first.Headers(); !h.Fragment || h.DstPort != 9 {
		t.Errorf("first: %+v", h)
	}
	if h := later.Headers(); !h.Fragment || h.L4 != 0 || h.DstPort != 0 || later.SetDstPort(1) || later.String() == "" {
		t.Errorf("later: %+v", h)
	}
	// Both get the new address; the checksum of the datagram is in the first.
	sumBefore := be.Uint16(first.Bytes()[first.h.L4+6:])
	payload := bytes.Clone(later.Payload())
	for _, q := range []*Packet{first, later} {
		if !q.setSrc(ip("10.0.0.9")) || q.VerifyChecksums() != nil {
			t.Errorf("%v", q)
		}
	}
	if be.Uint16(first.Bytes()[first.h.L4+6:]) == sumBefore || !bytes.Equal(payload, later.Payload()) {
		t.Error("the first fragment's UDP checksum must follow, the later one's bytes must stay")
	}
	if whole := refrag(0x4000); whole.Headers().Fragment {
		t.Error("DF makes no fragment")
	}
}

// IPv6 extension headers lead to the transport header.
func TestIPv6Extensions(t *testing.T) {
	udp := Build(Spec{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: UDP, SrcPort: 7, DstPort: 9, Payload: []byte("x")})
	with := func(next byte, ext string) *Packet {
		e := unhexFrame(t, ext)
		f := append(bytes.Clone(udp.Bytes()[:54]), append(e, udp.Bytes()[54:]...)...)
		f[20] = next
		be.PutUint16(f[18:], uint16(len(f)-54))
		p, err := New(f)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, p := range []*Packet{
		with(0, "1100 000000000000"),
		with(0, "3c00 000000000000 1101 0000000000000000000000000000"),
		with(43, "1100 0000 00000000"),
		with(44, "1100 0000 00001234"), // atomic fragment
	} {
		if h := p.Headers(); h.DstPort != 9 || h.Fragment || p.VerifyChecksums() != nil || !p.setDst(ip("fd00::99")) ||
			p.VerifyChecksums() != nil {
			t.Errorf("%v %+v", p, h)
		}
	}
	later := with(44, "1100 0101 00001234")
	if h := later.Headers(); !h.Fragment || h.L4 != 0 || h.Proto != UDP || h.IPID != 0x1234 {
		t.Errorf("%+v", h)
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, s := range []Spec{
		{}, {Src: ip("10.0.0.4"), Dst: ip("fd00::5")}, {Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Proto: ICMPv6},
		{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: ICMP}, {Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: 44},
		{Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), Payload: make([]byte, 65535)}, {Src: ip("10.0.0.4"), Dst: ip("10.0.0.5"), VLAN: 4095},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v: no objection", s)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	tcp, r := frame64(), natRewrite()
	v6 := Build(Spec{Src: ip("fd00::4"), Dst: ip("fd00::5"), Proto: ICMPv6, ICMPType: 128, ICMPID: 3}).Bytes()
	o := testOuter(VXLAN)
	a, a6 := ip("10.9.9.9"), ip("fd00::9")
	var p Packet
	if n := testing.AllocsPerRun(100, func() {
		_ = p.Load(tcp)
		p.Apply(r)
		p.SetEthSrc(podMAC)
		p.SetEthDst(gwMAC)
		p.setSrc(a)
		p.setDst(a)
		p.SetSrcPort(1)
		p.SetDstPort(2)
		p.DecTTL()
		sinkTuple = p.Tuple().Reverse()
		_ = VXLANSrcPort(sinkTuple)
		_ = p.VerifyChecksums()
		_ = p.Encap(o)
		_, _, _ = p.Inner(VXLAN)
		_, _ = p.Decap(VXLAN)
		_ = p.Load(v6)
		p.setSrc(a6)
		p.SetICMPID(4)
		p.Apply(r)
	}); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}

// Headers stay what a fresh parse of the bytes would give, whatever is done.
func TestHeadersFollowBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		p, err := New(genFrame(t, r))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			randomEdit(r, p)
			rw := randomRewrite(r, p.h.IPVersion)
			p.Apply(&rw)
		}
		q, err := New(p.Bytes())
		if err != nil || *q.Headers() != *p.Headers() {
			t.Fatalf("%v\n got %+v\nwant %+v", err, *p.Headers(), *q.Headers())
		}
	}
}

func randomRewrite(r *rand.Rand, version uint8) Rewrite {
	return Rewrite{
		Set:    RewriteMask(r.IntN(128)),
		EthSrc: MAC{2, byte(r.Uint32())}, EthDst: MAC{2, 1, byte(r.Uint32())},
		Src: randomAddr(r, version), Dst: randomAddr(r, version),
		SrcPort: uint16(r.Uint32()), DstPort: uint16(20000 + r.IntN(40000)), ICMPID: uint16(r.Uint32()),
	}
}
