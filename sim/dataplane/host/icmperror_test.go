package host

import (
	"net/netip"
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
	long := append([]byte{0x4f}, ip4[1:]...) // says that its header has 60 bytes
	for _, c := range []struct {
		name  string
		quote []byte
		want  string // "": none
	}{
		{"IPv4", ip4[:28], "UDP 10.0.0.1:1000 > 10.0.0.2:53"},
		{"IPv6", ip6[:48], "UDP [fd00::1]:1000 > [fd00::2]:53"},
		{"IPv4, one byte short", ip4[:27], ""},
		{"IPv6, one byte short", ip6[:47], ""},
		{"a header longer than the quote", long[:32], ""},
		{"a header that just leaves room for the ports", append(append([]byte(nil), long[:28]...), make([]byte, 36)...), "UDP 10.0.0.1:0 > 10.0.0.2:0"},
		{"nothing", nil, ""},
		{"of another version", append([]byte{0x55}, ip4[1:28]...), ""},
	} {
		spec := packet.Spec{Src: netip.MustParseAddr("10.0.0.2"), Dst: netip.MustParseAddr("10.0.0.1"), Proto: packet.ICMP, ICMPType: 3, Payload: c.quote}
		got, ok := quoted(packet.Build(spec))
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %s, %v; want %q", c.name, got, ok, c.want)
		}
	}
}
