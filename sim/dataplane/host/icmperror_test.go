package host

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// An ICMP error is for the socket whose packet it quotes. Behind a translation
// that ICMP does not pass through, no socket recognises it; where netfilter has
// translated, it has put the quote right (TestErrorsFollowTheirConnection). Sockets are
// opened in the order given, all from port 40000 but the last.
func TestICMPErrorFindsItsSocket(t *testing.T) {
	for _, c := range []struct {
		name    string
		windows bool
		sockets []string // destinations
		proto   packet.Proto
		quoted  string // destination; the source is 10.244.1.4:40000
		want    int    // the socket that learns of it, -1 for none
	}{
		{"its own packet", true, []string{"10.96.0.50:53"}, packet.UDP, "10.96.0.50:53", 0},
		{"the translated packet, Windows", true, []string{"10.96.0.50:53"}, packet.UDP, "10.244.2.5:53", -1},
		{"the translated packet, Linux", false, []string{"10.96.0.50:53"}, packet.UDP, "10.244.2.5:53", -1},
		{"the one quoted, not one opened before", false, []string{"10.96.0.50:53", "10.96.0.51:53"}, packet.UDP, "10.96.0.51:53", 1},
		{"another protocol", false, []string{"10.96.0.50:53"}, packet.TCP, "10.96.0.50:53", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // the order of a map must not show
				s := stackOf(t, []string{"eth0 10.244.1.4/24"}, nil)
				s.Windows = c.windows
				var sockets []*Socket
				for _, dst := range c.sockets {
					sockets = append(sockets, s.Open(c.proto, netip.Addr{}, 40000, netip.MustParseAddrPort(dst)))
				}
				sent := packetOf(t, s.Links[0], "udp 10.244.1.4:40000 > "+c.quoted)
				sim := errorAbout(s, sent)
				for i, k := range sockets {
					if got := k.Outcome.Verdict == trace.Rejected && k.Outcome.Reason == trace.PortClosed; got != (i == c.want) {
						t.Fatalf("socket %d: %+v", i, k.Outcome)
					}
				}
				if got := sim.Lost.Reason == trace.UnexpectedSource; got != (c.want < 0) {
					t.Fatalf("lost: %+v", sim.Lost)
				}
			}
		})
	}
}

// errorAbout hands a stack the port unreachable for a packet.
func errorAbout(s *Stack, sent *packet.Packet) *wire.Simulation {
	spec := unreachable(sent)
	spec.EthDst = s.Links[0].MAC
	spec.Dst = s.Links[0].Addrs[0].Addr()
	if sent.Headers().IPVersion == 6 {
		spec.Dst = s.Address(true)
	}
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	s.Input(sim, s.Links[0], packet.Build(spec))
	return sim
}

func TestICMPErrorOverIPv6(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.244.1.4/24 fd00::4/64"}, nil)
	k := s.Open(packet.UDP, netip.Addr{}, 40000, netip.MustParseAddrPort("[fd00::5]:53"))
	errorAbout(s, packetOf(t, s.Links[0], "udp [fd00::4]:40000 > [fd00::5]:53"))
	if k.Outcome.Verdict != trace.Rejected {
		t.Errorf("the socket got %+v", k.Outcome)
	}
}

// An answered or an accepting socket takes no error.
func TestICMPErrorAfterTheAnswer(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.244.1.4/24"}, nil)
	l := s.Links[0]
	k := s.Open(packet.UDP, netip.Addr{}, 40000, netip.MustParseAddrPort("10.96.0.50:53"))
	s.Input(&wire.Simulation{}, l, packetOf(t, l, "udp 10.96.0.50:53 > 10.244.1.4:40000"))
	errorAbout(s, packetOf(t, l, "udp 10.244.1.4:40000 > 10.96.0.50:53"))
	if k.Outcome.Verdict != trace.Delivered {
		t.Errorf("the socket got %+v", k.Outcome)
	}
}

// The quote is data from outside: it may be cut or nonsense.
func TestQuotedPacket(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.0.1/24 fd00::1/64"}, nil)
	v4 := packetOf(t, s.Links[0], "udp 10.0.0.1:1000 > 10.0.0.2:53")
	v6 := packetOf(t, s.Links[0], "udp [fd00::1]:1000 > [fd00::2]:53")
	ip4, ip6 := v4.Bytes()[v4.Headers().L3:], v6.Bytes()[v6.Headers().L3:]
	bytesOf := func(text string) []byte {
		p := packetOf(t, s.Links[0], text)
		return p.Bytes()[p.Headers().L3:]
	}
	// with is a packet with one byte other than it was.
	with := func(ip []byte, at int, b byte) []byte {
		ip = slices.Clone(ip)
		ip[at] = b
		return ip
	}
	// long is a packet with 40 bytes of options and n bytes after its header.
	long := func(ip []byte, n int) []byte {
		return slices.Concat(with(ip, 0, 0x4f)[:20], make([]byte, 40), ip[20:20+n])
	}
	ping, pong, gre := bytesOf("ping 10.0.0.1 > 10.0.0.2"), bytesOf("pong 10.0.0.1 > 10.0.0.2"), bytesOf("gre 10.0.0.1 > 10.0.0.2")
	ping6, pong6 := bytesOf("ping fd00::1 > fd00::2"), bytesOf("pong fd00::1 > fd00::2")
	tcp := bytesOf("tcp 10.0.0.1:1000 > 10.0.0.2:80 S")
	for _, c := range []struct {
		name  string
		quote []byte
		want  string // "": none
	}{
		{"IPv4", ip4[:28], "UDP 10.0.0.1:1000 > 10.0.0.2:53"},
		{"IPv6", ip6[:48], "UDP [fd00::1]:1000 > [fd00::2]:53"},
		{"IPv4, one byte short", ip4[:27], ""},
		{"IPv6, one byte short", ip6[:47], ""},
		{"a header longer than the quote", with(ip4, 0, 0x4f)[:32], ""},
		{"options, and just the ports", long(ip4, 4), "UDP 10.0.0.1:1000 > 10.0.0.2:53"},
		{"options, and a byte less", long(ip4, 3), ""},
		{"a header that says to be too short", with(ip4, 0, 0x44), ""},
		{"TCP", tcp[:28], "TCP 10.0.0.1:1000 > 10.0.0.2:80"},
		{"an echo request", ping[:28], "ICMP echo request 10.0.0.1 > 10.0.0.2 id 1"},
		{"an echo reply", pong[:28], "ICMP echo reply 10.0.0.1 > 10.0.0.2 id 1"},
		{"options, and just an identifier", long(ping, 8), "ICMP echo request 10.0.0.1 > 10.0.0.2 id 1"},
		{"options, and half an identifier", long(ping, 7), ""},
		{"an echo request in IPv6", ping6[:48], "ICMPv6 echo request fd00::1 > fd00::2 id 1"},
		{"an echo reply in IPv6", pong6[:48], "ICMPv6 echo reply fd00::1 > fd00::2 id 1"},
		{"another ICMP message", with(ping, 20, 13), ""},
		{"an IPv4 message with the number of an IPv6 echo", with(ping, 20, 128), ""},
		{"an IPv6 message with the number of an IPv4 echo", with(ping6, 40, 8), ""},
		{"another protocol", slices.Concat(gre, make([]byte, 8)), ""},
		{"the first fragment", with(ip4, 6, 0x20), "UDP 10.0.0.1:1000 > 10.0.0.2:53"},
		{"a fragment after the first", with(ip4, 7, 1), ""},
		{"the last fragment of a large packet", with(ip4, 6, 0x1f), ""},
		{"nothing", nil, ""},
		{"of another version", append([]byte{0x55}, ip4[1:28]...), ""},
	} {
		spec := packet.Spec{Src: netip.MustParseAddr("10.0.0.2"), Dst: netip.MustParseAddr("10.0.0.1"), Proto: packet.ICMP, ICMPType: 3,
			Payload: c.quote}
		got, ok := quoted(packet.Build(spec))
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %s, %v; want %q", c.name, got, ok, c.want)
		}
	}
}
