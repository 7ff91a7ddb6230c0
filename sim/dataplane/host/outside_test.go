package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// segment builds a TCP segment from 10.0.1.2:80 to 10.0.1.5:40000.
func segment(flags uint8, seq uint32) *packet.Packet {
	return packet.Build(packet.Spec{Src: netip.MustParseAddr("10.0.1.2"), Dst: netip.MustParseAddr("10.0.1.5"), Proto: packet.TCP, SrcPort: 80,
		DstPort: 40000, TCPFlags: flags, Seq: seq, TTL: 64})
}

// icmpError builds an ICMP error of 10.0.1.2 about a datagram to its port 53; short cuts
// the quoted datagram off.
func icmpError(kind, code uint8, v6, short bool) *packet.Packet {
	from, to, proto := "10.0.1.2", "10.0.1.5", packet.ICMP
	if v6 {
		from, to, proto = "fd00:1::2", "fd00:1::5", packet.ICMPv6
	}
	quote := packet.Build(packet.Spec{Src: netip.MustParseAddr(to), Dst: netip.MustParseAddr(from), Proto: packet.UDP, SrcPort: 40000,
		DstPort: 53, TTL: 64}).Bytes()[14:]
	if short {
		quote = quote[:8]
	}
	return packet.Build(packet.Spec{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(to), Proto: proto, ICMPType: kind, ICMPCode: code,
		Payload: quote, TTL: 64})
}

// TestRefuses: what a program's stack sends when nobody listens.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     *packet.Packet
		proto packet.Proto
		port  uint16
		ok    bool
	}{
		{"the reset of a SYN", segment(packet.RST|packet.ACK, 0), packet.TCP, 80, true},
		{"the reset of a connection", segment(packet.RST|packet.ACK, 7), packet.TCP, 80, false},
		{"a reset without ACK", segment(packet.RST, 0), packet.TCP, 80, false},
		{"an ACK", segment(packet.ACK, 0), packet.TCP, 80, false},
		{"the answer to a SYN", segment(packet.SYN|packet.ACK, 0), packet.TCP, 80, false},
		{"port unreachable", icmpError(unreachable4, portClosed4, false, false), packet.UDP, 53, true},
		{"port unreachable, the quote cut off", icmpError(unreachable4, portClosed4, false, true), packet.UDP, 0, true},
		{"host unreachable", icmpError(unreachable4, 1, false, false), 0, 0, false},
		{"another kind with that code", icmpError(11, portClosed4, false, false), 0, 0, false},
		{"port unreachable in IPv6", icmpError(unreachable6, portClosed6, true, false), packet.UDP, 53, true},
		{"no route in IPv6", icmpError(unreachable6, 0, true, false), 0, 0, false},
		{"another kind in IPv6", icmpError(3, portClosed6, true, false), 0, 0, false},
	} {
		if proto, port, ok := refuses(c.p.Headers(), c.p); ok != c.ok || ok && (proto != c.proto || port != c.port) {
			t.Errorf("%s: %v %d %v", c.name, proto, port, ok)
		}
	}
}

// TestEmitRefusal: an answer that nobody listens leaves where the stack itself would have
// given one.
func TestEmitRefusal(t *testing.T) {
	for _, c := range []struct {
		name     string
		windows  bool
		firewall string
		p        *packet.Packet
		sent     bool
	}{
		{"Linux answers", false, "silent", segment(packet.RST|packet.ACK, 0), true},
		{"Windows without its firewall answers", true, "answers", segment(packet.RST|packet.ACK, 0), true},
		{"Windows with its firewall is silent", true, "silent", segment(packet.RST|packet.ACK, 0), false},
		{"about UDP, too", true, "silent", icmpError(unreachable4, portClosed4, false, false), false},
		{"a reset of a connection is let through", true, "silent", segment(packet.RST|packet.ACK, 7), true},
		{"data is", true, "silent", segment(packet.ACK, 9), true},
	} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
		s.Windows = c.windows
		sent := 0
		s.Links[0].Send = func(*wire.Simulation, *packet.Packet) { sent++ }
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		sim.Pinned = map[string]string{questionFirewall.Param: c.firewall}
		s.Emit(sim, c.p)
		if (sent == 1) != c.sent {
			t.Errorf("%s: sent %d", c.name, sent)
		}
		last := sim.Rec.Steps()[len(sim.Rec.Steps())-1]
		if !c.sent && (last.Reason != trace.PortClosed || last.Place != "m") {
			t.Errorf("%s: %+v", c.name, last)
		}
		if first := sim.Rec.Steps()[0]; first.Reason == trace.PortClosed && !strings.HasPrefix(first.Text(), "nothing listens on ") {
			t.Errorf("%s: %q", c.name, first.Text())
		}
		if first := sim.Rec.Steps()[0]; c.sent && c.p.Headers().Seq == 0 && c.p.Headers().Proto == packet.TCP &&
			(first.Action != trace.ActReject || first.Reason != trace.PortClosed) {
			t.Errorf("%s: %+v", c.name, first)
		}
	}
	// To an address of its own, Windows does not answer at all.
	s := stackOf(t, []string{"eth0 10.0.1.2/24 10.0.1.5/24"}, nil)
	s.Windows = true
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	s.Emit(sim, segment(packet.RST|packet.ACK, 0))
	if steps := sim.Rec.Steps(); len(steps) == 0 || steps[len(steps)-1].Reason != trace.HostNotSwitched {
		t.Errorf("to itself: %+v", steps)
	}
}

// TestTalk: a conversation is remembered, and many make room for new ones.
func TestTalk(t *testing.T) {
	s := &Stack{}
	of := func(n int) packet.Tuple {
		return packet.Tuple{SrcPort: uint16(n), DstPort: uint16(n >> 16), Proto: packet.TCP}
	}
	for i := range maxTalked {
		s.talk(of(i))
	}
	if len(s.talked) != maxTalked || !s.talked[of(0)] || !s.talked[of(maxTalked-1)] {
		t.Fatalf("%d conversations are remembered, want %d", len(s.talked), maxTalked)
	}
	s.talk(of(maxTalked))
	if len(s.talked) != 1 || !s.talked[of(maxTalked)] {
		t.Errorf("%d conversations are remembered", len(s.talked))
	}
}

// What programs outside send and get meets the gates of their machine as what its own
// programs do: a conversation does when it is opened, and then no more.
func TestGatesOfProgramsOutside(t *testing.T) {
	for _, c := range []struct {
		name  string
		gates []Gate
		// packets in order: "> " is one that the programs send, "< " one that arrives
		packets []string
		want    string // which pass
	}{
		{"none", nil, []string{"> tcp 10.0.1.2:1000 > 10.0.1.5:80 S", "< tcp 10.0.1.5:80 > 10.0.1.2:1000 SA"}, "yes yes"},
		{"what they open", []Gate{{Out: true}}, []string{"> tcp 10.0.1.2:1000 > 10.0.1.5:80 S"}, "no"},
		{"what they open by UDP", []Gate{{Out: true}}, []string{"> udp 10.0.1.2:1000 > 10.0.1.5:53"}, "no"},
		{"what a gate lets pass", []Gate{{Out: true, Passes: func(h *packet.Headers) bool { return h.DstPort == 80 }}},
			[]string{"> tcp 10.0.1.2:1000 > 10.0.1.5:80 S", "> tcp 10.0.1.2:1000 > 10.0.1.5:81 S"}, "yes no"},
		{"what they go on with", []Gate{{Out: true}}, []string{"> tcp 10.0.1.2:1000 > 10.0.1.5:80 A"}, "yes"},
		{"the gate for what others open", []Gate{{}}, []string{"> udp 10.0.1.2:1000 > 10.0.1.5:53", "< udp 10.0.1.5:53 > 10.0.1.2:1000",
			"< udp 10.0.1.5:54 > 10.0.1.2:1000"}, "yes yes no"},
		{"what others open", []Gate{{}}, []string{"< udp 10.0.1.5:53 > 10.0.1.2:1000", "< tcp 10.0.1.5:53 > 10.0.1.2:1000 S",
			"< tcp 10.0.1.5:53 > 10.0.1.2:1000 A"}, "no no yes"},
		{"their answers to what others opened", []Gate{{Out: true}},
			[]string{"< udp 10.0.1.5:53 > 10.0.1.2:1000", "> udp 10.0.1.2:1000 > 10.0.1.5:53", "> udp 10.0.1.2:1000 > 10.0.1.5:54"}, "yes yes no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
			for _, g := range c.gates {
				g.Event, g.Fact = trace.Note("a policy"), factTestGate
				s.AddGate(g)
			}
			passed := false
			s.Links[0].Send = func(*wire.Simulation, *packet.Packet) { passed = true }
			var got []string
			for _, text := range c.packets {
				passed = false
				sim := &wire.Simulation{Sink: func(string, string, *packet.Packet) bool { passed = true; return true }}
				p := packetOf(t, s.Links[0], text[2:])
				if text[0] == '>' {
					s.Emit(sim, p)
				} else {
					s.Input(sim, s.Links[0], p)
				}
				if passed == (sim.Unknown == "a policy") {
					t.Errorf("%s: passed %v, unknown %q", text, passed, sim.Unknown)
				}
				got = append(got, map[bool]string{true: "yes", false: "no"}[passed])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("passed: %s; want %s", strings.Join(got, " "), c.want)
			}
			if c.gates == nil && len(s.talked) != 0 {
				t.Errorf("without gates, %d conversations are remembered", len(s.talked))
			}
			s.Reset()
			if len(s.talked) != 0 {
				t.Errorf("after the reset, %d conversations are remembered", len(s.talked))
			}
		})
	}
}

// A gate can be taken away again.
func TestRemoveGates(t *testing.T) {
	s := &Stack{}
	s.AddGate(Gate{Event: trace.Note("one")})
	s.AddGate(Gate{Event: trace.Note("two")})
	s.RemoveGates(func(g Gate) bool { return g.Event.Text() == "one" })
	if len(s.gates) != 1 || s.gates[0].Event.Text() != "two" {
		t.Errorf("gates %+v", s.gates)
	}
}
