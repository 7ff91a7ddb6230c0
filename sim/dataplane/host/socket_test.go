package host

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// What a client's socket makes of the packets that come back. It has sent from
// 10.0.1.2:40000 to 10.0.1.7:80.
func TestWhatComesBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		proto   packet.Proto
		windows bool
		in      string
		verdict trace.Verdict // "": the socket goes on waiting
		reason  trace.Reason
		text    string
	}{
		{name: "a SYN-ACK", proto: packet.TCP, in: "tcp 10.0.1.7:80 > 10.0.1.2:40000 SA", verdict: trace.Delivered, reason: trace.OK,
			text: "the reply is here: TCP 10.0.1.7:80 > 10.0.1.2:40000 SYN,ACK"},
		{name: "a reset", proto: packet.TCP, in: "tcp 10.0.1.7:80 > 10.0.1.2:40000 RA", verdict: trace.Rejected, reason: trace.PortClosed,
			text: "the connection was refused (reset)"},
		{name: "a SYN-ACK from another address", proto: packet.TCP, in: "tcp 10.0.1.8:80 > 10.0.1.2:40000 SA", reason: trace.UnexpectedSource,
			text: "a SYN-ACK from 10.0.1.8:80, to which no socket here has sent"},
		{name: "a SYN-ACK from another port", proto: packet.TCP, in: "tcp 10.0.1.7:81 > 10.0.1.2:40000 SA", reason: trace.UnexpectedSource,
			text: "a SYN-ACK from 10.0.1.7:81, to which no socket here has sent"},
		{name: "a segment of no connection", proto: packet.TCP, in: "tcp 10.0.1.8:80 > 10.0.1.2:40000 A", reason: trace.UnexpectedSource,
			text: "no socket waits for TCP 10.0.1.8:80 > 10.0.1.2:40000"},
		{name: "a reset of no connection", proto: packet.TCP, in: "tcp 10.0.1.8:80 > 10.0.1.2:40000 R", reason: trace.UnexpectedSource,
			text: "no socket waits for TCP 10.0.1.8:80 > 10.0.1.2:40000"},
		{name: "a connection to the client's port", proto: packet.TCP, in: "tcp 10.0.1.8:80 > 10.0.1.2:40000 S", reason: trace.PortClosed,
			text: "nothing listens on TCP port 40000"},
		{name: "a datagram", proto: packet.UDP, in: "udp 10.0.1.7:80 > 10.0.1.2:40000", verdict: trace.Delivered, reason: trace.OK,
			text: "the reply is here: UDP 10.0.1.7:80 > 10.0.1.2:40000"},
		{name: "a datagram from another address", proto: packet.UDP, in: "udp 10.0.1.8:80 > 10.0.1.2:40000", reason: trace.UnexpectedSource,
			text: "a datagram from 10.0.1.8:80, to which the socket on port 40000 has not sent"},
		{name: "a datagram to another port", proto: packet.UDP, in: "udp 10.0.1.7:80 > 10.0.1.2:40001", reason: trace.PortClosed,
			text: "nothing listens on UDP port 40001"},
		{name: "a datagram for a TCP socket's port", proto: packet.TCP, in: "udp 10.0.1.8:80 > 10.0.1.2:40000", reason: trace.PortClosed,
			text: "nothing listens on UDP port 40000"},
		{name: "an echo reply", proto: packet.ICMP, in: "pong 10.0.1.7 > 10.0.1.2", verdict: trace.Delivered, reason: trace.OK,
			text: "the reply is here: ICMP echo reply 10.0.1.7 > 10.0.1.2 id 1"},
		{name: "an echo reply from another address", proto: packet.ICMP, in: "pong 10.0.1.8 > 10.0.1.2", reason: trace.UnexpectedSource,
			text: "no socket waits for ICMP echo reply 10.0.1.8 > 10.0.1.2 id 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, record := range []bool{true, false} {
				s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
				s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
				sim := &wire.Simulation{}
				if record {
					sim.Rec = &trace.Recorder{}
				}
				k := s.Open(c.proto, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.1.7:80"))
				s.Input(sim, s.Links[0], packetOf(t, s.Links[0], c.in))
				if k.Outcome.Verdict != c.verdict || c.verdict != "" && (k.Outcome.Reason != c.reason || k.Outcome.Event.Text() != c.text) {
					t.Errorf("the socket got %+v (%s)", k.Outcome, k.Outcome.Event.Text())
				}
				if c.verdict == "" && sim.Lost.Reason != c.reason {
					t.Errorf("recorded %v: lost for %q, want %q", record, sim.Lost.Reason, c.reason)
				}
				if record {
					if last := sim.Rec.Steps()[len(sim.Rec.Steps())-1]; last.Text() != c.text ||
						(last.Action == trace.ActReject) != (c.reason == trace.PortClosed && c.verdict == "") {
						t.Errorf("the last step is %s: %q", last.Action, last.Text())
					}
				}
			}
		})
	}
}

// An answer to a connection that has its answer, and waits for none, is nobody's: what the
// connection got stays, and the step says whose the packet was.
func TestAnswerThatNobodyWaitsFor(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	k := s.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.1.7:80"))
	for i, want := range []trace.Reason{"", trace.UnexpectedSource, trace.UnexpectedSource} {
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], []string{"tcp 10.0.1.7:80 > 10.0.1.2:40000 SA", "tcp 10.0.1.7:80 > 10.0.1.2:40000 SA",
			"tcp 10.0.1.7:80 > 10.0.1.2:40000 A"}[i]))
		if sim.Lost.Reason != want || k.Outcome.Verdict != trace.Delivered || !k.Stands() {
			t.Errorf("packet %d: lost for %q, want %q; the socket got %+v", i+1, sim.Lost.Reason, want, k.Outcome)
		}
		last := sim.Rec.Steps()[len(sim.Rec.Steps())-1]
		if got := strings.HasSuffix(last.Text(), "for the connection of port 40000 to 10.0.1.7:80, which waits for no answer"); got != (want != "") {
			t.Errorf("packet %d: %q", i+1, last.Text())
		}
	}
	sim := &wire.Simulation{}
	k.Send(sim, []byte("more"), 64)
	s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "tcp 10.0.1.7:80 > 10.0.1.2:40000 A"))
	if sim.Lost.Reason != "" || k.Outcome.Verdict != trace.Delivered {
		t.Errorf("the answer to data: lost for %q, the socket got %+v", sim.Lost.Reason, k.Outcome)
	}
}

// A program is found by protocol, port and address; the last one added wins.
func TestListeners(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24 10.0.1.3/24"}, nil)
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	any80 := &Listener{Name: "any", Proto: packet.TCP, Port: 80}
	one80 := &Listener{Name: "one", Proto: packet.TCP, Port: 80, Addr: netip.MustParseAddr("10.0.1.3")}
	later := &Listener{Name: "later", Proto: packet.TCP, Port: 81}
	for _, l := range []*Listener{any80, one80, {Name: "earlier", Proto: packet.TCP, Port: 81}, later, {Proto: packet.UDP, Port: 80}} {
		s.Listen(l)
	}
	for in, want := range map[string]string{
		"tcp 10.0.1.7:1 > 10.0.1.2:80 S": "any on TCP port 80, from 10.0.1.7",
		"tcp 10.0.1.7:1 > 10.0.1.3:80 S": "one on TCP port 80, from 10.0.1.7",
		"tcp 10.0.1.7:1 > 10.0.1.3:81 S": "later on TCP port 81, from 10.0.1.7",
		"udp 10.0.1.7:1 > 10.0.1.3:80":   "a program on UDP port 80, from 10.0.1.7",
		"udp 10.0.1.7:1 > 10.0.1.3:81":   "nothing listens on UDP port 81",
	} {
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], in))
		if got := sim.Rec.Steps()[0].Text(); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if len(s.Listeners()) != 5 {
		t.Errorf("%d listeners", len(s.Listeners()))
	}
}

// A TCP connection: SYN and SYN-ACK without payload, then data and its echo;
// after a reset the server does not know the connection any more.
func TestAConversation(t *testing.T) {
	n := newNetwork(t)
	a, b := n.add("a", "lan 10.0.0.1/24"), n.add("b", "lan 10.0.0.2/24")
	b.Listen(&Listener{Proto: packet.TCP, Port: 80})
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	var frames []string
	sim.Taps.Segment = func(_ *wire.Segment, _ *wire.NIC, p *packet.Packet) {
		h := p.Headers()
		frames = append(frames, fmt.Sprintf("%d > %d %s %q", h.SrcPort, h.DstPort, packet.FlagString(h.TCPFlags), p.Payload()))
	}
	k := a.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.0.2:80"))
	for range 2 {
		k.Send(sim, []byte("hello"), 64)
		if err := sim.Run(); err != nil || k.Outcome.Verdict != trace.Delivered {
			t.Fatalf("%+v (%v)", k.Outcome, err)
		}
	}
	if string(k.Outcome.Payload) != "hello" {
		t.Errorf("the answer is %q", k.Outcome.Payload)
	}
	want := []string{`40000 > 80 SYN ""`, `80 > 40000 SYN,ACK ""`, `40000 > 80 PSH,ACK "hello"`, `80 > 40000 ACK "hello"`}
	if strings.Join(frames, "\n") != strings.Join(want, "\n") {
		t.Errorf("frames\n%s\nwant\n%s", strings.Join(frames, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range []struct{ flags, want string }{
		{"R", "the connection was reset"},
		{"A", "no socket waits for TCP 10.0.0.1:40000 > 10.0.0.2:80"},
	} {
		b.Input(sim, b.Links[0], packetOf(t, b.Links[0], "tcp 10.0.0.1:40000 > 10.0.0.2:80 "+c.flags))
		if got := sim.Rec.Steps()[len(sim.Rec.Steps())-1].Text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.flags, got, c.want)
		}
	}
}

// Sockets get ports and identifiers in the order in which they are opened, and
// after a reset from the beginning.
func TestEphemeralPorts(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	to := netip.MustParseAddrPort("10.0.1.7:80")
	for range 2 {
		for i := range uint16(3) {
			if k := s.Open(packet.TCP, netip.Addr{}, 0, to); k.Tuple.SrcPort != EphemeralBase+i || k.Tuple.Src.String() != "10.0.1.2" {
				t.Errorf("socket %d sends %s", i, k.Tuple)
			}
		}
		if k := s.Open(packet.ICMP, netip.Addr{}, 0, to); k.Tuple.ICMPID != 4 || k.Tuple.ICMPType != 8 || k.Tuple.DstPort != 0 {
			t.Errorf("an echo socket sends %s", k.Tuple)
		}
		if k := s.Open(packet.ICMPv6, netip.MustParseAddr("fd00::1"), 0, netip.MustParseAddrPort("[fd00::2]:0")); k.Tuple.ICMPType != 128 {
			t.Errorf("an IPv6 echo socket sends %s", k.Tuple)
		}
		s.Reset()
		if len(s.sockets) != 0 {
			t.Errorf("%d sockets after the reset", len(s.sockets))
		}
	}
}

// The user-space proxy ends the client's connection and opens its own.
func TestUserSpaceProxy(t *testing.T) {
	for _, c := range []struct {
		name     string
		backends []string
		forced   []int
		verdict  trace.Verdict
		seen     string // destination that the backend saw
		choices  int
	}{
		{"one backend", []string{"10.0.0.3:8080"}, nil, trace.Delivered, "10.0.0.3:8080", 0},
		{"the first of two", []string{"10.0.0.3:8080", "10.0.0.4:8080"}, []int{0}, trace.Delivered, "10.0.0.3:8080", 1},
		{"the second of two", []string{"10.0.0.3:8080", "10.0.0.4:8080"}, []int{1}, trace.Delivered, "10.0.0.4:8080", 1},
		{"a backend that refuses", []string{"10.0.0.3:9"}, nil, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			client, node := n.add("client", "lan 10.0.0.1/24"), n.add("node", "lan 10.0.0.2/24")
			for _, addr := range []string{"10.0.0.3", "10.0.0.4"} {
				n.add(addr, "lan "+addr+"/24").Listen(&Listener{Proto: packet.UDP, Port: 8080,
					Answer: func(q []byte) []byte { return append(q, " from "+addr...) }})
			}
			l := &Listener{Name: "proxy", Proto: packet.UDP, Port: 80}
			for _, b := range c.backends {
				l.Backends = append(l.Backends, netip.MustParseAddrPort(b))
			}
			node.Listen(l)
			sim := &wire.Simulation{Rec: &trace.Recorder{}, Choices: wire.Choices{Forced: c.forced}}
			k := client.Open(packet.UDP, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.0.2:80"))
			k.Send(sim, []byte("hello"), 64)
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			if k.Outcome.Verdict != c.verdict || len(sim.Made) != c.choices {
				t.Fatalf("%+v, choices %v", k.Outcome, sim.Made)
			}
			if c.verdict == "" {
				return
			}
			if seen := sim.Rec.Seen(); seen.Src != "10.0.0.2" || seen.Dst != c.seen {
				t.Errorf("the backend saw %+v", seen)
			}
			if want := "hello from " + c.seen[:8]; string(k.Outcome.Payload) != want {
				t.Errorf("the answer is %q, want %q", k.Outcome.Payload, want)
			}
		})
	}
}

// A Linux pod and a Windows pod answer pings of both families.
func TestEcho(t *testing.T) {
	for in, want := range map[string]string{
		"ping 10.0.1.7 > 10.0.1.2":       "ICMP echo reply 10.0.1.2 > 10.0.1.7 id 1",
		"ping fd00:1::7 > fd00:1::2":     "ICMPv6 echo reply fd00:1::2 > fd00:1::7 id 1",
		"pong fd00:1::7 > fd00:1::2":     "no socket waits for ICMPv6 echo reply fd00:1::7 > fd00:1::2 id 1",
		"udp [fd00:1::7]:1 > fd00:1::2":  "nothing listens on UDP port 0",
		"tcp 10.0.1.7:1 > 10.0.1.2:80 S": "nothing listens on TCP port 80",
	} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24 fd00:1::2/64"}, nil)
		var out []*packet.Packet
		s.Links[0].Send = func(_ *wire.Simulation, p *packet.Packet) { out = append(out, p) }
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], in))
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		steps := sim.Rec.Steps()
		said := false
		for _, st := range steps {
			said = said || st.Text() == want
		}
		if !said {
			t.Errorf("%s: no step says %q: %+v", in, want, steps)
		}
		switch {
		case strings.HasPrefix(in, "ping"):
			if len(out) != 1 || out[0].Headers().Tuple().String() != want || string(out[0].Payload()) != "data" || sim.Rec.Seen() == nil {
				t.Errorf("%s is answered by %v", in, out)
			}
			if last := steps[len(steps)-1]; last.Leg != trace.Reply {
				t.Errorf("%s: the last step is on the way of the %s", in, last.Leg)
			}
		case strings.HasPrefix(in, "udp"):
			if len(out) != 1 || out[0].Headers().ICMPType != 1 || out[0].Headers().ICMPCode != 4 {
				t.Errorf("%s is answered by %v, want port unreachable", in, out)
			}
		case strings.HasPrefix(in, "tcp"):
			if len(out) != 1 || out[0].Headers().TCPFlags != packet.RST|packet.ACK || out[0].Headers().Ack != 8 {
				t.Errorf("%s is answered by %v, want a reset", in, out)
			}
		}
	}
}

// With a sink nobody answers: the sink gets what arrives, ARP requests too.
func TestSink(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Listen(&Listener{Proto: packet.TCP, Port: 80})
	var got []string
	sim := &wire.Simulation{Sink: func(place, object string, p *packet.Packet) bool {
		got = append(got, place+" "+object)
		return true
	}}
	l := s.Links[0]
	l.Send = func(*wire.Simulation, *packet.Packet) { t.Error("the stack answered") }
	s.Input(sim, l, packetOf(t, l, "tcp 10.0.1.7:1 > 10.0.1.2:80 S"))
	s.Input(sim, l, packet.BuildARP(1, packet.MAC{2, 9}, packet.Broadcast, netip.MustParseAddr("10.0.1.7"), netip.MustParseAddr("10.0.1.2")))
	s.Input(sim, l, packet.BuildARP(1, packet.MAC{2, 9}, packet.Broadcast, netip.MustParseAddr("10.0.1.7"), netip.MustParseAddr("10.0.1.3")))
	if err := sim.Run(); err != nil || strings.Join(got, ",") != "m stack,m stack" {
		t.Errorf("the sink got %v (%v)", got, err)
	}
}

// The segments of a connection, as both ends count: numbers rise by one a segment, a
// server acknowledges what it has got, and no answer to a SYN carries data.
func TestNumbersOfAConnection(t *testing.T) {
	n := newNetwork(t)
	a, b := n.add("a", "lan 10.0.0.1/24"), n.add("b", "lan 10.0.0.2/24")
	b.Listen(&Listener{Proto: packet.TCP, Port: 80, Answer: func(q []byte) []byte { return append([]byte("re: "), q...) }})
	sim := &wire.Simulation{}
	var sent []packet.Headers
	var payloads []string
	sim.Taps.Segment = func(_ *wire.Segment, _ *wire.NIC, p *packet.Packet) {
		sent, payloads = append(sent, *p.Headers()), append(payloads, string(p.Payload()))
	}
	k := a.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.0.2:80"))
	for _, text := range []string{"", "one", "two"} {
		k.Send(sim, []byte(text), 64)
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(payloads, ","); got != ",,one,re: one,two,re: two" {
		t.Fatalf("payloads %s", got)
	}
	for i := 2; i < len(sent); i++ {
		if sent[i].Seq != sent[i-2].Seq+1 {
			t.Errorf("segment %d has number %d, that before it %d", i, sent[i].Seq, sent[i-2].Seq)
		}
	}
	for i := 1; i < len(sent); i += 2 {
		if sent[i].Ack != sent[i-1].Seq+1 || sent[i].TTL != 128 {
			t.Errorf("segment %d acknowledges %d of %d, TTL %d", i, sent[i].Ack, sent[i-1].Seq, sent[i].TTL)
		}
	}
}

// A connection that stands ends with a reset of the other end; one that was never
// answered was refused. What was answered before says nothing of what is sent now.
func TestResets(t *testing.T) {
	for _, c := range []struct {
		name     string
		proto    packet.Proto
		arrive   []string
		verdict  trace.Verdict
		reason   trace.Reason
		stands   bool
		answered bool // the last packet that was sent
	}{
		{"refused", packet.TCP, []string{"RA"}, trace.Rejected, trace.PortClosed, false, true},
		{"answered", packet.TCP, []string{"SA"}, trace.Delivered, trace.OK, true, true},
		{"answered, then reset", packet.TCP, []string{"SA", "R"}, trace.Rejected, trace.ConnectionReset, false, true},
		{"answered twice", packet.TCP, []string{"SA", "A"}, trace.Delivered, trace.OK, true, true},
		{"answered, then reset, then another answer", packet.TCP, []string{"SA", "R", "A"}, trace.Delivered, trace.OK, false, true},
		{"answered, then not", packet.TCP, []string{"SA", ""}, "", "", true, false},
		{"UDP knows no resets", packet.UDP, []string{"", "R"}, trace.Delivered, trace.OK, true, true},
	} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
		s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
		k := s.Open(c.proto, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.1.7:80"))
		for _, flags := range c.arrive {
			sim := &wire.Simulation{}
			k.Send(sim, nil, 64)
			if flags != "" || c.proto == packet.UDP {
				s.Input(sim, s.Links[0], packetOf(t, s.Links[0], strings.ToLower(c.proto.String())+" 10.0.1.7:80 > 10.0.1.2:40000 "+flags))
			}
		}
		if k.Outcome.Verdict != c.verdict || k.Outcome.Reason != c.reason || k.Stands() != c.stands || k.Outcome.Done != c.answered {
			t.Errorf("%s: %+v, stands %v", c.name, k.Outcome, k.Stands())
		}
	}
}

// A socket may have a source address that its machine would not pick.
func TestOpenWithASource(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24 10.0.1.3/24"}, nil)
	for src, want := range map[netip.Addr]string{netip.MustParseAddr("10.0.1.3"): "10.0.1.3", {}: "10.0.1.2"} {
		if k := s.Open(packet.TCP, src, 0, netip.MustParseAddrPort("10.0.1.7:80")); k.Tuple.Src.String() != want {
			t.Errorf("%s: sends %s", src, k.Tuple)
		}
	}
}

// Datagrams of one client are each taken by the program; a connection is accepted once,
// and its data is for the end that was accepted, also when the program has gone.
func TestWhatAProgramTakes(t *testing.T) {
	origin := &trace.Origin{What: "pod web"}
	udp := &Listener{Name: "web", Proto: packet.UDP, Port: 80, Origin: origin}
	tcp := &Listener{Name: "web", Proto: packet.TCP, Port: 80, Origin: origin}
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	s.Listen(udp)
	s.Listen(tcp)
	for _, c := range []struct {
		in   string
		want string
		from *trace.Origin
		gone bool
	}{
		{"udp 10.0.1.7:1000 > 10.0.1.2:80", "web on UDP port 80, from 10.0.1.7", origin, false},
		{"udp 10.0.1.7:1000 > 10.0.1.2:80", "web on UDP port 80, from 10.0.1.7", origin, false},
		{"tcp 10.0.1.7:1000 > 10.0.1.2:80 S", "web on TCP port 80, from 10.0.1.7", origin, false},
		{"tcp 10.0.1.7:1000 > 10.0.1.2:80 A", "data on the connection from 10.0.1.7", nil, false},
		{"tcp 10.0.1.7:1000 > 10.0.1.2:80 A", "data on the connection from 10.0.1.7", nil, true},
		{"tcp 10.0.1.7:1001 > 10.0.1.2:80 S", "nothing listens on TCP port 80", nil, true},
		{"udp 10.0.1.7:1000 > 10.0.1.2:80", "web on UDP port 80, from 10.0.1.7", origin, true},
		{"tcp 10.0.1.7:1000 > 10.0.1.2:80 R", "the connection was reset", nil, true},
	} {
		if c.gone {
			s.Unlisten(tcp)
		}
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], c.in))
		st := sim.Rec.Steps()[0]
		if st.Text() != c.want || st.From != c.from || (st.Action == trace.ActDeliver) == (st.Reason != "") {
			t.Errorf("%s: %+v, %q", c.in, st, st.Text())
		}
		// The receiver sees a request, and no reset.
		if seen := sim.Rec.Seen(); (seen != nil) != (st.Action == trace.ActDeliver && !strings.HasSuffix(c.in, "R")) {
			t.Errorf("%s: seen %+v", c.in, seen)
		}
	}
}

// What a program or a closed port does with a packet stays on record as how the packet
// ended, whatever happens to the answer.
func TestALossIsNotForgotten(t *testing.T) {
	for in, reason := range map[string]trace.Reason{
		"tcp 10.0.1.7:1 > 10.0.1.2:80 S": trace.PortClosed,
		"udp 10.0.1.7:1 > 10.0.1.2:80":   trace.PortClosed,
		"tcp 10.0.1.7:1 > 10.0.1.2:80 A": trace.ConnectionReset,
	} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
		sent := 0
		s.Links[0].Send = func(*wire.Simulation, *packet.Packet) { sent++ }
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], in))
		if err := sim.Run(); err != nil || sent != 1 || sim.Lost.Reason != reason || sim.Lost.Place != "m" {
			t.Errorf("%s: %d answers, lost %+v (%v)", in, sent, sim.Lost, err)
		}
		for i, st := range sim.Rec.Steps() {
			if want := map[bool]trace.Leg{true: trace.Request, false: trace.Reply}[i == 0]; st.Leg != want ||
				(i == 0) != (st.Action == trace.ActReject) {
				t.Errorf("%s: step %d is %s on the way of the %s", in, i, st.Action, st.Leg)
			}
		}
	}
}

// The proxy's own connection has a port of its machine's and a TTL of its own; its steps
// name the proxy and who it is for, and without a choice made for it the first backend
// is taken.
func TestWhatTheProxySends(t *testing.T) {
	for _, proto := range []packet.Proto{packet.UDP, packet.TCP} {
		n := newNetwork(t)
		client, node, backend := n.add("client", "lan 10.0.0.1/24"), n.add("node", "lan 10.0.0.2/24"), n.add("backend", "lan 10.0.0.3/24")
		for _, port := range []uint16{8080, 8081} {
			backend.Listen(&Listener{Proto: proto, Port: port})
		}
		origin := &trace.Origin{What: "Service web"}
		node.Listen(&Listener{Name: "proxy", Proto: proto, Port: 80, Origin: origin,
			Backends: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.3:8080"), netip.MustParseAddrPort("10.0.0.3:8081")}})
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		var frames []packet.Headers
		sim.Taps.Segment = func(_ *wire.Segment, _ *wire.NIC, p *packet.Packet) { frames = append(frames, *p.Headers()) }
		k := client.Open(proto, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.0.2:80"))
		k.Send(sim, []byte("hello"), 9)
		if err := sim.Run(); err != nil || k.Outcome.Verdict != trace.Delivered {
			t.Fatalf("%s: %+v (%v)", proto, k.Outcome, err)
		}
		if f := frames[1]; len(frames) != 4 || f.Src.String() != "10.0.0.2" || f.SrcPort != EphemeralBase || f.DstPort != 8080 || f.TTL != 128 ||
			f.TCPFlags != frames[0].TCPFlags {
			t.Errorf("%s: frames %+v", proto, frames)
		}
		var got []string
		for _, st := range sim.Rec.Steps() {
			if st.Evidence == "host.userspace-proxy" {
				got = append(got, string(st.Action)+" "+st.Text())
				if st.Action == trace.ActCallProxy && (st.From != origin || st.Packet.IsZero()) {
					t.Errorf("%s: %+v", proto, st)
				}
			}
		}
		want := []string{string(trace.ActCallProxy) + " proxy takes the connection and opens its own to 10.0.0.3:8080 (backend 1 of 2)",
			string(trace.ActAnswer) + " the backend answered: proxy answers the client"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q", proto, got)
		}
	}
}
