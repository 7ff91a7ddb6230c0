package host

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// wirePacket makes a packet that arrives on a link as packetOf does, by gopacket: with a
// checksum that this module did not compute, and with options in its IPv4 header.
func wirePacket(t *testing.T, l *Link, text string, options bool) *packet.Packet {
	t.Helper()
	model := packetOf(t, l, text)
	h := model.Headers()
	var nl gopacket.NetworkLayer
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr(h.EthSrc[:]), DstMAC: net.HardwareAddr(h.EthDst[:]),
		EthernetType: layers.EthernetType(h.EtherType)}
	all := []gopacket.SerializableLayer{eth}
	if h.IPVersion == 6 {
		ip := &layers.IPv6{Version: 6, HopLimit: h.TTL, NextHeader: layers.IPProtocol(h.Proto), SrcIP: h.Src.AsSlice(), DstIP: h.Dst.AsSlice()}
		nl, all = ip, append(all, ip)
	} else {
		ip := &layers.IPv4{Version: 4, TTL: h.TTL, Id: 4711, Protocol: layers.IPProtocol(h.Proto), SrcIP: h.Src.AsSlice(), DstIP: h.Dst.AsSlice()}
		if options { // router alert (RFC 2113), stream identifier: 8 bytes
			ip.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}},
				{OptionType: 136, OptionLength: 4, OptionData: []byte{0xfe, 0xed}}}
		}
		nl, all = ip, append(all, ip)
	}
	switch h.Proto {
	case packet.TCP:
		l := &layers.TCP{SrcPort: layers.TCPPort(h.SrcPort), DstPort: layers.TCPPort(h.DstPort), Seq: 77, SYN: h.TCPFlags&packet.SYN != 0,
			ACK: h.TCPFlags&packet.ACK != 0, Window: 1024}
		_ = l.SetNetworkLayerForChecksum(nl)
		all = append(all, l)
	case packet.UDP:
		l := &layers.UDP{SrcPort: layers.UDPPort(h.SrcPort), DstPort: layers.UDPPort(h.DstPort)}
		_ = l.SetNetworkLayerForChecksum(nl)
		all = append(all, l)
	case packet.ICMP:
		all = append(all, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(h.ICMPType, 0), Id: h.ICMPID, Seq: 3})
	case packet.ICMPv6:
		l := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(h.ICMPType, 0)}
		_ = l.SetNetworkLayerForChecksum(nl)
		all = append(all, l, &layers.ICMPv6Echo{Identifier: h.ICMPID, SeqNumber: 3})
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		append(all, gopacket.Payload("hello, world"))...); err != nil {
		t.Fatal(err)
	}
	p, err := packet.New(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// translator is a machine between two links, and what it sent out of each.
func translator(t *testing.T, rules ...string) (s *Stack, sent map[string][]*packet.Packet) {
	s = stackOf(t, []string{"in 10.0.1.1/24 fd00:1::1/64", "out 192.0.2.1/24 fd00:2::1/64"}, nil)
	s.Forwarding, s.NAT = true, iptables(t, s, rules...)
	sent = map[string][]*packet.Packet{}
	for _, l := range s.Links {
		l.Send = func(_ *wire.Simulation, p *packet.Packet) { sent[l.Name] = append(sent[l.Name], p.Clone()) }
	}
	return s, sent
}

// errorFrom is an ICMP error of somebody about a packet, which came from that address, as
// it arrives on a link; it quotes so many bytes after the IP header, 0 for all there are.
func errorFrom(l *Link, who string, about *packet.Packet, kind uint8, quote int) *packet.Packet {
	h := about.Headers()
	q := about.Bytes()[h.L3:h.End]
	if quote > 0 {
		q = q[:h.L4-h.L3+quote]
	}
	proto := packet.ICMP
	if h.IPVersion == 6 {
		proto = packet.ICMPv6
	}
	return packet.Build(packet.Spec{EthSrc: packet.MAC{2, 9}, EthDst: l.MAC, Src: netip.MustParseAddr(who), Dst: h.Src, Proto: proto,
		ICMPType: kind, ICMPCode: 1, TTL: 64, Payload: bytes.Clone(q)})
}

// What an ICMP error quotes when it has come back through the translation: to the last
// byte the packet as its sender has sent it and a router has passed it on, checksums
// too. It is about the client's packet, or about the answer to it.
func TestErrorsQuoteWhatWasSent(t *testing.T) {
	masquerade := "-A POSTROUTING -o out -j MASQUERADE"
	service4 := "-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:53"
	service6 := "-A PREROUTING -d fd00:96::50/128 -j DNAT --to [fd00:2::2]:53"
	cases := 0
	for _, c := range []struct{ request, answer string }{
		{"tcp 10.0.1.2:40000 > TO:8080 S", "tcp 192.0.2.2:PORT > FROM SA"},
		{"udp 10.0.1.2:40000 > TO:8080", "udp 192.0.2.2:PORT > FROM"},
		{"ping 10.0.1.2 > TO", "pong 192.0.2.2 > FROM"},
		{"tcp [fd00:1::2]:40000 > [TO]:8080 S", "tcp [fd00:2::2]:PORT > FROM SA"},
		{"udp [fd00:1::2]:40000 > [TO]:8080", "udp [fd00:2::2]:PORT > FROM"},
		{"ping fd00:1::2 > TO", "pong fd00:2::2 > FROM"},
	} {
		for _, rules := range [][]string{{masquerade}, {service4, service6}, {service4, service6, masquerade}} {
			for _, quote := range []int{8, 16, 0} {
				for _, options := range []bool{false, true} {
					v6 := strings.Contains(c.request, "fd00")
					if options && v6 {
						continue
					}
					cases++
					to, router, server := "192.0.2.2", "192.0.2.77", "192.0.2.2"
					if v6 {
						to, router, server = "fd00:2::2", "fd00:2::77", "fd00:2::2"
					}
					want := router // as which the client sees the router behind the machine
					if len(rules) > 1 {
						to = map[bool]string{false: "10.96.0.50", true: "fd00:96::50"}[v6]
						want = to // Linux gives errors of routers the address of the Service, too
					}
					name := fmt.Sprintf("%s with %q, quotes %d, options %v", strings.Replace(c.request, "TO", to, 1), rules, quote, options)
					s, sent := translator(t, rules...)
					in, out := s.Links[0], s.Links[1]
					request := wirePacket(t, in, strings.Replace(c.request, "TO", to, 1), options)
					s.Input(&wire.Simulation{}, in, request.Clone())
					if len(sent["out"]) != 1 {
						t.Fatalf("%s: sent %v", name, sent)
					}
					there := sent["out"][0]

					kind := uint8(11)
					if v6 {
						kind = 3
					}
					s.Input(&wire.Simulation{}, out, errorFrom(out, router, there, kind, quote))
					expectError(t, name, sent["in"], request, want, quote)

					// The answer, and an error of the client's side about it.
					h := there.Headers()
					from := netip.AddrPortFrom(h.Src, h.SrcPort).String()
					if h.SrcPort == 0 {
						from = h.Src.String()
					}
					answer := wirePacket(t, out, strings.NewReplacer("FROM", from, "PORT", fmt.Sprint(h.DstPort)).Replace(c.answer), options)
					answer.SetICMPID(h.ICMPID)
					sent["in"], sent["out"] = nil, nil
					s.Input(&wire.Simulation{}, out, answer.Clone())
					if len(sent["in"]) != 1 {
						t.Fatalf("%s: the answer: sent %v", name, sent)
					}
					back := sent["in"][0]
					want = back.Headers().Dst.String()
					if len(rules) != 2 { // masqueraded
						want = h.Src.String()
					}
					s.Input(&wire.Simulation{}, in, errorFrom(in, back.Headers().Dst.String(), back, kind, quote))
					expectError(t, name+", about the answer", sent["out"], answer, want, quote)
					if len(sent["out"]) == 1 && sent["out"][0].Headers().Dst.String() != server {
						t.Errorf("%s: goes to %s", name, sent["out"][0].Headers().Dst)
					}
					if len(s.NAT.table) != 2 {
						t.Errorf("%s: %d entries", name, len(s.NAT.table))
					}
				}
			}
		}
	}
	if cases != 6*3*3+3*3*3 {
		t.Errorf("%d cases", cases)
	}
}

// expectError looks at the one error that went out: from whom, and that it quotes the
// packet as one router has passed it on.
func expectError(t *testing.T, name string, sent []*packet.Packet, about *packet.Packet, from string, quote int) {
	t.Helper()
	if len(sent) != 1 {
		t.Errorf("%s: sent %v", name, sent)
		return
	}
	got := sent[0]
	if err := got.VerifyChecksums(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if h := got.Headers(); h.Src.String() != from || h.Dst != about.Headers().Src {
		t.Errorf("%s: from %s to %s, want from %s to %s", name, h.Src, h.Dst, from, about.Headers().Src)
	}
	passed := about.Clone()
	passed.DecTTL()
	h := passed.Headers()
	want := passed.Bytes()[h.L3:h.End]
	if quote > 0 {
		want = want[:h.L4-h.L3+quote]
	}
	if q := got.Payload(); !bytes.Equal(q, want) {
		t.Errorf("%s: quotes\n%x\nwant\n%x", name, q, want)
	}
}

// A quote without a checksum stays without one, and one that is wrong stays wrong.
func TestQuotedChecksumsAreNotRepaired(t *testing.T) {
	for _, c := range []struct {
		name      string
		at        int // in the IP packet
		was, want [2]byte
	}{
		{"UDP without a checksum", 26, [2]byte{0, 0}, [2]byte{0, 0}},
		{"a wrong IPv4 checksum", 10, [2]byte{0x12, 0x34}, [2]byte{}},
	} {
		s, sent := translator(t, "-A POSTROUTING -o out -j MASQUERADE")
		in, out := s.Links[0], s.Links[1]
		request := wirePacket(t, in, "udp 10.0.1.2:40000 > 192.0.2.2:53", false)
		s.Input(&wire.Simulation{}, in, request)
		there := sent["out"][0]
		copy(there.Bytes()[14+c.at:], c.was[:])
		s.Input(&wire.Simulation{}, out, errorFrom(out, "192.0.2.2", there, 3, 8))
		got := [2]byte(sent["in"][0].Payload()[c.at:])
		if repaired := [2]byte(request.Bytes()[14+c.at:]); c.want == ([2]byte{}) && c.at == 10 {
			if got == repaired {
				t.Errorf("%s: is right now", c.name)
			}
		} else if got != c.want {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
	}
}

// Only ICMP errors go with the connection that they are about; other messages have their
// own, and an error that is about nothing that was translated passes as it is.
func TestWhatIsRelated(t *testing.T) {
	for _, c := range []struct {
		v6    bool
		kinds []uint8
		want  bool
	}{
		// RFC 792: unreachable, source quench, redirect, time exceeded, parameter problem.
		{false, []uint8{3, 4, 5, 11, 12}, true},
		{false, []uint8{0, 1, 2, 6, 8, 9, 10, 13, 14, 255}, false},
		// RFC 4443 section 2.1: error messages have the high bit 0.
		{true, []uint8{1, 2, 3, 4, 127}, true},
		{true, []uint8{128, 129, 133, 135, 255}, false},
	} {
		for _, kind := range c.kinds {
			h := &packet.Headers{Proto: packet.ICMP, ICMPType: kind}
			if c.v6 {
				h.Proto = packet.ICMPv6
			}
			if isError(h) != c.want {
				t.Errorf("%s type %d: %v", h.Proto, kind, !c.want)
			}
		}
	}
	if isError(&packet.Headers{Proto: packet.TCP, ICMPType: 3}) {
		t.Error("TCP is no ICMP error")
	}
}

func TestErrorsThatPassUntranslated(t *testing.T) {
	for _, c := range []struct {
		name  string
		known string // a packet that went through before
		about string // the packet that the error is about
		quote int
	}{
		{"about no known connection", "udp 10.0.1.2:40000 > 192.0.2.2:53", "udp 192.0.2.1:50001 > 192.0.2.2:53", 8},
		{"about one that is not translated", "udp 10.0.9.2:40000 > 192.0.2.2:53", "udp 10.0.9.2:40000 > 192.0.2.2:53", 8},
		{"with too little of the packet", "udp 10.0.1.2:40000 > 192.0.2.2:53", "udp 192.0.2.1:50000 > 192.0.2.2:53", 2},
	} {
		s, sent := translator(t, "-A POSTROUTING -s 10.0.1.0/24 -o out -j MASQUERADE")
		s.AppendRoutes(Route{To: netip.MustParsePrefix("10.0.9.0/24"), Link: s.Links[0]})
		in, out := s.Links[0], s.Links[1]
		s.Input(&wire.Simulation{}, in, packetOf(t, in, c.known))
		known := len(s.NAT.table)
		// It is for somebody behind the machine, so that it is passed on.
		p := errorFrom(out, "192.0.2.2", packetOf(t, in, c.about), 3, c.quote)
		p.Apply(&packet.Rewrite{Set: packet.RwDst, Dst: netip.MustParseAddr("10.0.1.2")})
		before := p.Clone()
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, out, p)
		if len(sent["in"]) != 1 {
			t.Errorf("%s: sent %v", c.name, sent)
			continue
		}
		got := sent["in"][0]
		if got.Tuple() != before.Tuple() || !bytes.Equal(got.Payload(), before.Payload()) {
			t.Errorf("%s: %s became %s", c.name, before, got)
		}
		for _, st := range sim.Rec.Steps() {
			if st.Action == trace.ActRewrite {
				t.Errorf("%s: %+v", c.name, st)
			}
		}
		if len(s.NAT.table) != known {
			t.Errorf("%s: %d entries, before %d", c.name, len(s.NAT.table), known)
		}
	}
}

// The step of a translated error names the rule that made the connection, what changed
// outside and what it quotes now; without a recorder the same packet comes out. An error
// that crosses a bridge is translated, too.
func TestTheStepOfARelatedError(t *testing.T) {
	rule := "-A POSTROUTING -o out -j MASQUERADE"
	var frames [][]byte
	for _, c := range []struct {
		name             string
		record, bridging bool
	}{{"recorded", true, false}, {"not recorded", false, false}, {"on a bridge", true, true}} {
		s, sent := translator(t, rule)
		in, out := s.Links[0], s.Links[1]
		s.Input(&wire.Simulation{}, in, packetOf(t, in, "udp 10.0.1.2:40000 > 192.0.2.2:53"))
		sim := &wire.Simulation{}
		if c.record {
			sim.Rec = &trace.Recorder{}
		}
		p := errorFrom(out, "192.0.2.2", sent["out"][0], 3, 8)
		if c.bridging {
			s.NAT.Bridged(s, sim, p)
			if got := p.Headers().Dst.String(); got != "10.0.1.2" {
				t.Errorf("%s: it crosses to %s", c.name, got)
			}
			if q, ok := quoted(p); !ok || q.String() != "UDP 10.0.1.2:40000 > 192.0.2.2:53" {
				t.Errorf("%s: it quotes %s", c.name, q)
			}
		} else {
			s.Input(sim, out, p)
			frames = append(frames, sent["in"][0].Bytes())
		}
		if !c.record {
			continue
		}
		st := sim.Rec.Steps()[0]
		if st.Action != trace.ActRewrite || st.RuleType != "iptables" || st.Rule != rule || st.Evidence != "host.netfilter-nat" ||
			st.Place != "m" ||
			!strings.HasSuffix(st.Text(), "quotes UDP 10.0.1.2:40000 > 192.0.2.2:53") {
			t.Errorf("%s: %+v, %q", c.name, st, st.Text())
		}
		if len(st.Changes) != 1 || st.Changes[0].Before.String() != "192.0.2.1" || st.Changes[0].After.String() != "10.0.1.2" {
			t.Errorf("%s: changes %+v", c.name, st.Changes)
		}
	}
	if !bytes.Equal(frames[0], frames[1]) {
		t.Errorf("recorded\n%x\nnot recorded\n%x", frames[0], frames[1])
	}
}
