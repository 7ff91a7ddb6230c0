package packet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// genFrame serialises a random valid frame with gopacket: the oracle for
// parsing and for checksums.
func genFrame(t testing.TB, r *rand.Rand) []byte {
	t.Helper()
	mac := func() net.HardwareAddr {
		var m [6]byte
		for i := range m {
			m[i] = byte(r.Uint32())
		}
		return m[:]
	}
	addr := func(n int) net.IP {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if n == 16 {
			b[0] = 0xfd // not the v4-mapped block
		}
		return b
	}
	v6, tagged := r.IntN(2) == 1, r.IntN(3) == 0
	eth := &layers.Ethernet{SrcMAC: mac(), DstMAC: mac(), EthernetType: layers.EthernetTypeIPv4}
	if v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
	}
	ls := []gopacket.SerializableLayer{eth}
	if tagged {
		ls = append(ls, &layers.Dot1Q{VLANIdentifier: uint16(1 + r.IntN(4094)), Priority: uint8(r.IntN(8)), Type: eth.EthernetType})
		eth.EthernetType = layers.EthernetTypeDot1Q
	}
	ttl := uint8(1 + r.IntN(255))
	var nl gopacket.NetworkLayer
	proto := []layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolICMPv4, 253}[r.IntN(4)]
	if v6 {
		if proto == layers.IPProtocolICMPv4 {
			proto = layers.IPProtocolICMPv6
		}
		ip := &layers.IPv6{Version: 6, TrafficClass: uint8(r.Uint32()), FlowLabel: r.Uint32() & 0xfffff, HopLimit: ttl, NextHeader: proto,
			SrcIP: addr(16), DstIP: addr(16)}
		nl = ip
		ls = append(ls, ip)
	} else {
		ip := &layers.IPv4{Version: 4, TOS: uint8(r.Uint32()), Id: uint16(r.Uint32()), TTL: ttl, Protocol: proto, SrcIP: addr(4), DstIP: addr(4)}
		if r.IntN(4) == 0 {
			ip.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
		}
		nl = ip
		ls = append(ls, ip)
	}
	port := func() uint16 { return uint16(20000 + r.IntN(40000)) }
	switch proto {
	case layers.IPProtocolTCP:
		l := &layers.TCP{SrcPort: layers.TCPPort(port()), DstPort: layers.TCPPort(port()), Seq: r.Uint32(), Ack: r.Uint32(), SYN: r.IntN(2) == 0,
			ACK: r.IntN(2) == 0, PSH: r.IntN(2) == 0, Window: uint16(r.Uint32())}
		if r.IntN(2) == 0 {
			l.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{5, 0xb4}}}
		}
		_ = l.SetNetworkLayerForChecksum(nl)
		ls = append(ls, l)
	case layers.IPProtocolUDP:
		l := &layers.UDP{SrcPort: layers.UDPPort(port()), DstPort: layers.UDPPort(port())}
		_ = l.SetNetworkLayerForChecksum(nl)
		ls = append(ls, l)
	case layers.IPProtocolICMPv4:
		typ := []uint8{8, 0, 3, 11, 13}[r.IntN(5)]
		ls = append(ls, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, uint8(r.IntN(3))), Id: uint16(r.Uint32()),
			Seq: uint16(r.Uint32())})
	case layers.IPProtocolICMPv6:
		typ := []uint8{128, 129, 1, 3}[r.IntN(4)]
		l := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
		_ = l.SetNetworkLayerForChecksum(nl)
		ls = append(ls, l)
		if typ >= 128 {
			ls = append(ls, &layers.ICMPv6Echo{Identifier: uint16(r.Uint32()), SeqNumber: uint16(r.Uint32())})
		} else {
			ls = append(ls, gopacket.Payload(make([]byte, 4)))
		}
	}
	body := make([]byte, 1+r.IntN(100))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	ls = append(ls, gopacket.Payload(body))
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(buf.Bytes())
	if r.IntN(3) == 0 {
		out = append(out, make([]byte, r.IntN(20))...) // padding of the link
	}
	return out
}

// opaque reports whether the packet is of protocol 253, for experiments
// (RFC 3692), which neither side knows.
func opaque(pkt gopacket.Packet) bool {
	switch l := pkt.NetworkLayer().(type) {
	case *layers.IPv4:
		return l.Protocol == 253
	case *layers.IPv6:
		return l.NextHeader == 253
	}
	return false
}

// decode is what gopacket makes of a frame, in the words of Headers.
func decode(t testing.TB, f []byte) (h Headers, payload []byte) {
	t.Helper()
	pkt := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.NoCopy)
	if e := pkt.ErrorLayer(); e != nil && !opaque(pkt) {
		t.Fatalf("gopacket: %v", e.Error())
	}
	addr := func(ip net.IP) netip.Addr { a, _ := netip.AddrFromSlice(ip); return a }
	for _, l := range pkt.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			h.EthDst, h.EthSrc, h.EtherType = MAC(l.DstMAC), MAC(l.SrcMAC), uint16(l.EthernetType)
			payload = l.LayerPayload()
		case *layers.Dot1Q:
			h.VLAN, h.EtherType = l.VLANIdentifier, uint16(l.Type)
			payload = l.LayerPayload()
		case *layers.IPv4:
			h.IPVersion, h.TOS, h.TTL, h.IPID, h.Proto = 4, l.TOS, l.TTL, l.Id, Proto(l.Protocol)
			h.Src, h.Dst = addr(l.SrcIP), addr(l.DstIP)
			payload = l.LayerPayload()
		case *layers.IPv6:
			h.IPVersion, h.TOS, h.TTL, h.Proto = 6, l.TrafficClass, l.HopLimit, Proto(l.NextHeader)
			h.Src, h.Dst = addr(l.SrcIP), addr(l.DstIP)
			payload = l.LayerPayload()
		case *layers.TCP:
			h.SrcPort, h.DstPort, h.Seq, h.Ack = uint16(l.SrcPort), uint16(l.DstPort), l.Seq, l.Ack
			h.TCPFlags = l.Contents[13]
			payload = l.LayerPayload()
		case *layers.UDP:
			h.SrcPort, h.DstPort = uint16(l.SrcPort), uint16(l.DstPort)
			payload = l.LayerPayload()
		case *layers.ICMPv4:
			h.ICMPType, h.ICMPCode = l.TypeCode.Type(), l.TypeCode.Code()
			if hasICMPID(ICMP, h.ICMPType) {
				h.ICMPID, h.ICMPSeq = l.Id, l.Seq
			}
			payload = l.LayerPayload()
		case *layers.ICMPv6:
			h.ICMPType, h.ICMPCode = l.TypeCode.Type(), l.TypeCode.Code()
			payload = l.LayerPayload()[4:]
			if hasICMPID(ICMPv6, h.ICMPType) {
				h.ICMPID, h.ICMPSeq = be.Uint16(l.LayerPayload()), be.Uint16(l.LayerPayload()[2:])
			}
		}
	}
	return h, payload
}

// The parser agrees with gopacket on every field, and so do the checksums that
// gopacket computed.
func TestParseAgreesWithGopacket(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var p Packet
	for range 3000 {
		f := genFrame(t, r)
		if err := p.Load(f); err != nil {
			t.Fatalf("%x: %v", f, err)
		}
		want, payload := decode(t, f)
		got := *p.Headers()
		got.L3, got.L4, got.Payload, got.End = 0, 0, 0, 0
		if got != want {
			t.Fatalf("%x:\n got %+v\nwant %+v", f, got, want)
		}
		if !bytes.Equal(p.Payload(), payload) {
			t.Fatalf("%x: payload\n got %x\nwant %x", f, p.Payload(), payload)
		}
		if err := p.VerifyChecksums(); err != nil {
			t.Fatalf("%x: %v", f, err)
		}
	}
}

// After edits gopacket, which computes checksums over the whole, would write
// the same bytes.
func TestEditsAgreeWithFullChecksums(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var p Packet
	for range 3000 {
		f := genFrame(t, r)
		if err := p.Load(f); err != nil {
			t.Fatal(err)
		}
		randomEdit(r, &p)
		want := reserialise(t, p.Bytes()[:p.h.End])
		if got := p.Bytes()[:p.h.End]; !bytes.Equal(got, want) {
			t.Fatalf("%v\n got %x\nwant %x", &p, got, want)
		}
	}
}

// reserialise decodes a frame and writes it again with fresh checksums, without
// the padding that gopacket adds.
func reserialise(t testing.TB, f []byte) []byte {
	t.Helper()
	pkt := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
	var ls []gopacket.SerializableLayer
	for _, l := range pkt.Layers() {
		switch l := l.(type) {
		case *layers.ICMPv6:
			// The layers above it do not serialise all that they decoded.
			_ = l.SetNetworkLayerForChecksum(pkt.NetworkLayer())
			ls = append(ls, l, gopacket.Payload(l.LayerPayload()))
		case *layers.TCP:
			_ = l.SetNetworkLayerForChecksum(pkt.NetworkLayer())
			ls = append(ls, l, gopacket.Payload(l.LayerPayload()))
		case *layers.UDP:
			_ = l.SetNetworkLayerForChecksum(pkt.NetworkLayer())
			ls = append(ls, l, gopacket.Payload(l.LayerPayload()))
		case *layers.ICMPv4:
			ls = append(ls, l, gopacket.Payload(l.LayerPayload()))
		case *layers.Ethernet:
			ls = append(ls, l)
		case *layers.Dot1Q:
			ls = append(ls, l)
		case *layers.IPv4:
			ls = append(ls, l)
		case *layers.IPv6:
			ls = append(ls, l)
		}
	}
	if opaque(pkt) {
		ls = append(ls, gopacket.Payload(pkt.NetworkLayer().LayerPayload()))
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{ComputeChecksums: true}, ls...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()[:len(f)]
}

// randomEdit changes a random choice of fields through the setters.
func randomEdit(r *rand.Rand, p *Packet) {
	a := randomAddr(r, p.h.IPVersion)
	b := randomAddr(r, p.h.IPVersion)
	for _, edit := range []func(){
		func() { p.SetEthSrc(MAC{2, 0, 0, 0, 0, byte(r.Uint32())}) },
		func() { p.SetEthDst(MAC{2, 0, 0, 0, 1, byte(r.Uint32())}) },
		func() { p.setSrc(a) },
		func() { p.setDst(b) },
		func() { p.SetSrcPort(uint16(20000 + r.IntN(40000))) },
		func() { p.SetDstPort(uint16(20000 + r.IntN(40000))) },
		func() { p.SetICMPID(uint16(r.Uint32())) },
		func() { p.DecTTL() },
	} {
		if r.IntN(2) == 0 {
			edit()
		}
	}
}

func randomAddr(r *rand.Rand, version uint8) netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if version == 4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	b[0] = 0xfd
	return netip.AddrFrom16(b)
}

// What Build writes is what gopacket would write.
func TestBuildAgreesWithGopacket(t *testing.T) {
	a4, b4 := netip.MustParseAddr("10.244.1.4"), netip.MustParseAddr("203.0.113.10")
	a6, b6 := netip.MustParseAddr("fd00::4"), netip.MustParseAddr("2001:db8::10")
	for _, s := range []Spec{
		{Src: a4, Dst: b4, Proto: TCP, SrcPort: 40000, DstPort: 80, TCPFlags: SYN | ACK, Seq: 7, Ack: 9},
		{Src: a4, Dst: b4, Proto: UDP, SrcPort: 40000, DstPort: 5353, Payload: []byte("hello"), VLAN: 12, IPID: 5},
		{Src: a4, Dst: b4, Proto: ICMP, ICMPType: 8, ICMPID: 1, ICMPSeq: 2, Payload: []byte("abcdefg"), TTL: 128},
		{Src: a6, Dst: b6, Proto: TCP, SrcPort: 40000, DstPort: 80, TCPFlags: FIN, Payload: []byte("x")},
		{Src: a6, Dst: b6, Proto: UDP, SrcPort: 40000, DstPort: 5353},
		{Src: a6, Dst: b6, Proto: ICMPv6, ICMPType: 128, ICMPID: 1, ICMPSeq: 2, Payload: []byte("abcdefg")},
	} {
		p := Build(s)
		if want := reserialise(t, p.Bytes()); !bytes.Equal(p.Bytes(), want) {
			t.Errorf("%v\n got %x\nwant %x", p, p.Bytes(), want)
		}
		h, payload := decode(t, p.Bytes())
		if !bytes.Equal(payload, s.Payload) && len(s.Payload) != 0 {
			t.Errorf("%v: payload %q", p, payload)
		}
		got := Spec{VLAN: h.VLAN, Src: h.Src, Dst: h.Dst, Proto: h.Proto, SrcPort: h.SrcPort, DstPort: h.DstPort, TTL: h.TTL,
			TCPFlags: h.TCPFlags, Seq: h.Seq, Ack: h.Ack, ICMPType: h.ICMPType, ICMPCode: h.ICMPCode, ICMPID: h.ICMPID, ICMPSeq: h.ICMPSeq,
			IPID: h.IPID}
		want := s
		want.Payload = nil
		if want.TTL == 0 {
			want.TTL = 64
		}
		if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
			t.Errorf("gopacket reads\n%s, want\n%s", a, b)
		}
	}
}

// gopacket finds the inner frame where Encap put it.
func TestEncapAgreesWithGopacket(t *testing.T) {
	in := frame64()
	for _, k := range []Tunnel{VXLAN, Geneve} {
		p, _ := New(in)
		o := testOuter(k)
		if k == Geneve {
			o.Options = []byte{1, 2, 0x80, 1, 0xaa, 0xbb, 0xcc, 0xdd}
		}
		if err := p.Encap(o); err != nil {
			t.Fatal(err)
		}
		pkt := gopacket.NewPacket(p.Bytes(), layers.LayerTypeEthernet, gopacket.Default)
		var vni uint32
		var inner []byte
		switch l := pkt.Layers()[3].(type) {
		case *layers.VXLAN:
			vni, inner = l.VNI, l.LayerPayload()
			if !l.ValidIDFlag {
				t.Error("VXLAN: flag I is not set")
			}
		case *layers.Geneve:
			vni, inner = l.VNI, l.LayerPayload()
			if !l.CriticalOption || len(l.Options) != 1 || !bytes.Equal(l.Options[0].Data, o.Options[4:]) {
				t.Errorf("Geneve: critical %v, options %v", l.CriticalOption, l.Options)
			}
		default:
			t.Fatalf("%v: layer 4 is %v", k, l.LayerType())
		}
		if vni != 4096 || !bytes.Equal(inner, in) {
			t.Errorf("%v: VNI %d, inner %x", k, vni, inner)
		}
		u := pkt.Layer(layers.LayerTypeUDP).(*layers.UDP)
		ip := pkt.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if u.Checksum != 0 || uint16(u.SrcPort) != 51234 || ip.TTL != 128 || ip.Flags != layers.IPv4DontFragment || int(ip.Length) != len(in)+
			len(o.Options)+50-14 {
			t.Errorf("%v: outer %+v %+v", k, ip, u)
		}
	}
}
