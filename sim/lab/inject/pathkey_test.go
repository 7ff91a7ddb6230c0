package inject

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// TestPathKey has packets that have the same key, and those that have none.
func TestPathKey(t *testing.T) {
	v4 := packet.Spec{EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2}, Src: netip.MustParseAddr("10.0.0.1"),
		Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.TCP, SrcPort: 1000, DstPort: 80, TTL: 64, TCPFlags: packet.ACK}
	ping := v4
	ping.Proto, ping.ICMPType, ping.ICMPID = packet.ICMP, 8, 7
	key := func(e *Entry, s packet.Spec) (pathKey, bool) { return keyOf(e, packet.Build(s)) }
	here := &Entry{}
	for _, c := range []struct {
		name   string
		base   packet.Spec
		change func(s *packet.Spec)
	}{
		{"sequence number of ICMP", ping, func(s *packet.Spec) { s.ICMPSeq++ }},
		{"sequence and acknowledgement", v4, func(s *packet.Spec) { s.Seq, s.Ack = 5, 6 }},
		{"PSH", v4, func(s *packet.Spec) { s.TCPFlags |= packet.PSH }},
		{"payload and identification", v4, func(s *packet.Spec) { s.Payload, s.IPID = []byte("x"), 9 }},
	} {
		a, ok := key(here, c.base)
		changed := c.base
		c.change(&changed)
		b, there := key(here, changed)
		if !ok || !there || a != b {
			t.Errorf("another %s: keys %v %v, the same %v", c.name, ok, there, a == b)
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
	for _, change := range []func(s *packet.Spec){func(s *packet.Spec) { s.VLAN = 7 },
		func(s *packet.Spec) { s.EthDst = packet.MAC{1, 0, 0x5e} }, func(s *packet.Spec) { s.Dst = netip.MustParseAddr("224.0.0.1") },
		func(s *packet.Spec) { s.Proto, s.ICMPType = packet.ICMP, 3 }, func(s *packet.Spec) { s.Proto = 47 },
		func(s *packet.Spec) { s.Payload = make([]byte, 2000) }} {
		s := v4
		if change(&s); s.Validate() != nil {
			t.Fatal("not a packet")
		} else if _, ok := key(here, s); ok {
			t.Errorf("%+v has a key", s)
		}
	}
}

// TestPathKeyHoldsHeaders changes every byte of the headers of some frames. Two frames that
// have the same key differ only in header fields at which no machine looks: a path that was
// kept for one is taken by the other.
func TestPathKeyHoldsHeaders(t *testing.T) {
	unseen := []string{"TOS", "TCPFlags", "IPID", "ICMPSeq", "Seq", "Ack"}
	e := &Entry{}
	keys := 0
	for _, p := range keyedPackets(t) {
		k, ok := keyOf(e, p)
		if !ok {
			t.Fatalf("%v has no key", p)
		}
		for i := range p.Headers().Payload {
			for bit := byte(1); bit != 0; bit <<= 1 {
				frame := bytes.Clone(p.Bytes())
				frame[i] ^= bit
				q, err := packet.New(frame)
				other, ok := keyOf(e, q)
				if err != nil || !ok || other != k {
					keys++
					continue
				}
				for _, name := range differingHeaders(p.Headers(), q.Headers()) {
					if !slices.Contains(unseen, name) {
						t.Errorf("keyOf (pathflow.go) gives frames with another %s the same key:\n%v\n%v", name, p, q)
					}
				}
			}
		}
	}
	if keys < 1000 {
		t.Errorf("%d frames with another key or none show little", keys)
	}
}

func keyedPackets(t *testing.T) (all []*packet.Packet) {
	t.Helper()
	for _, family := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		for _, proto := range []packet.Proto{packet.TCP, packet.UDP, packet.ICMP} {
			s := packet.Spec{EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2}, Src: netip.MustParseAddr(family[0]),
				Dst:   netip.MustParseAddr(family[1]),
				Proto: proto, SrcPort: 1000, DstPort: 80, TCPFlags: packet.ACK, ICMPType: 8, ICMPID: 7, Payload: []byte("payload")}
			if s.Src.Is6() && proto == packet.ICMP {
				s.Proto, s.ICMPType = packet.ICMPv6, 128
			}
			all = append(all, packet.Build(s))
		}
	}
	return all
}

// differingHeaders are the names of the header fields in which two packets differ, but for
// places in the frame.
func differingHeaders(a, b *packet.Headers) (names []string) {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if x.Field(i).Kind() != reflect.Int && x.Field(i).Interface() != y.Field(i).Interface() {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}
