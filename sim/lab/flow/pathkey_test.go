package flow

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// TestPathKey has every header field at which a machine may look: packets that differ in one
// have another key, those that differ in others have the same.
func TestPathKey(t *testing.T) {
	v4 := packet.Spec{EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2}, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.TCP, SrcPort: 1000, DstPort: 80, TTL: 64, TCPFlags: packet.ACK}
	v6 := v4
	v6.Src, v6.Dst = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	ping := v4
	ping.Proto, ping.ICMPType, ping.ICMPID = packet.ICMP, 8, 7
	key := func(e *Entry, s packet.Spec) (pathKey, bool) { return keyOf(e, packet.Build(s)) }
	here := &Entry{}
	for _, c := range []struct {
		name   string
		base   packet.Spec
		change func(s *packet.Spec)
		same   bool
	}{
		{"source MAC address", v4, func(s *packet.Spec) { s.EthSrc[5] = 9 }, false},
		{"destination MAC address", v4, func(s *packet.Spec) { s.EthDst[5] = 9 }, false},
		{"hop limit", v4, func(s *packet.Spec) { s.TTL = 63 }, false},
		{"hop limit of IPv6", v6, func(s *packet.Spec) { s.TTL = 63 }, false},
		{"protocol", v4, func(s *packet.Spec) { s.Proto = packet.UDP }, false},
		{"source", v4, func(s *packet.Spec) { s.Src = s.Src.Prev() }, false},
		{"destination", v4, func(s *packet.Spec) { s.Dst = s.Dst.Next() }, false},
		{"IPv6 source", v6, func(s *packet.Spec) { s.Src = netip.MustParseAddr("fd01::1") }, false},
		{"IPv6 source, the last bits", v6, func(s *packet.Spec) { s.Src = s.Src.Prev() }, false},
		{"IPv6 destination", v6, func(s *packet.Spec) { s.Dst = netip.MustParseAddr("fd01::2") }, false},
		{"IPv6 destination, the last bits", v6, func(s *packet.Spec) { s.Dst = s.Dst.Next() }, false},
		{"source port", v4, func(s *packet.Spec) { s.SrcPort++ }, false},
		{"destination port", v4, func(s *packet.Spec) { s.DstPort++ }, false},
		{"type of ICMP", ping, func(s *packet.Spec) { s.ICMPType = 0 }, false},
		{"code of ICMP", ping, func(s *packet.Spec) { s.ICMPCode = 1 }, false},
		{"identifier of ICMP", ping, func(s *packet.Spec) { s.ICMPID++ }, false},
		{"sequence number of ICMP", ping, func(s *packet.Spec) { s.ICMPSeq++ }, true},
		{"sequence and acknowledgement", v4, func(s *packet.Spec) { s.Seq, s.Ack = 5, 6 }, true},
		{"PSH", v4, func(s *packet.Spec) { s.TCPFlags |= packet.PSH }, true},
		{"payload and identification", v4, func(s *packet.Spec) { s.Payload, s.IPID = []byte("x"), 9 }, true},
	} {
		a, ok := key(here, c.base)
		changed := c.base
		c.change(&changed)
		b, there := key(here, changed)
		if !ok || !there || (a == b) != c.same {
			t.Errorf("%s: keys %v %v, the same %v, want %v", c.name, ok, there, a == b, c.same)
		}
	}
	a, _ := key(here, v4)
	if b, _ := key(&Entry{Name: "elsewhere"}, v4); a == b {
		t.Error("the place where a frame is put in is not in its key")
	}
	for _, flags := range []uint8{packet.SYN, packet.SYN | packet.ACK, packet.FIN | packet.ACK, packet.RST} {
		s := v4
		if s.TCPFlags = flags; s.Validate() != nil {
			t.Fatal("not a packet")
		} else if _, ok := key(here, s); ok {
			t.Errorf("a TCP segment with flags %#x has a key", flags)
		}
	}
	for _, change := range []func(s *packet.Spec){func(s *packet.Spec) { s.VLAN = 7 }, func(s *packet.Spec) { s.EthDst = packet.MAC{1, 0, 0x5e} }, func(s *packet.Spec) { s.Dst = netip.MustParseAddr("224.0.0.1") },
		func(s *packet.Spec) { s.Proto, s.ICMPType = packet.ICMP, 3 }, func(s *packet.Spec) { s.Proto = 47 }, func(s *packet.Spec) { s.Payload = make([]byte, 2000) }} {
		s := v4
		if change(&s); s.Validate() != nil {
			t.Fatal("not a packet")
		} else if _, ok := key(here, s); ok {
			t.Errorf("%+v has a key", s)
		}
	}
}
