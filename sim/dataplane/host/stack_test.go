package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// router is a machine between "in" and "out" that counts what leaves.
func router(t *testing.T) (s *Stack, sent *int) {
	s = stackOf(t, []string{"in 10.0.1.1/24", "out 10.0.2.1/24"}, nil)
	s.Forwarding = true
	sent = new(int)
	for _, l := range s.Links {
		l.Send = func(*wire.Simulation, *packet.Packet) { *sent++ }
	}
	return s, sent
}

// Whether a machine forwards may be unknown; what it would have to pass on is then
// unknown, and what is for itself is not.
func TestForwardingThatIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		forwarding bool
		unknown    string
		in         string
		want       string // what the simulation does not know
		sent       int
	}{
		{false, "the dump does not say", "udp 10.0.1.2:1 > 10.0.2.2:53", "the dump does not say", 0},
		{false, "the dump does not say", "udp 10.0.1.2:1 > 10.0.1.1:53", "", 1}, // refused
		{true, "the dump does not say", "udp 10.0.1.2:1 > 10.0.2.2:53", "", 1},
		{false, "", "udp 10.0.1.2:1 > 10.0.2.2:53", "", 0},
	} {
		s, sent := router(t)
		s.Forwarding, s.ForwardingUnknown = c.forwarding, c.unknown
		sim := &wire.Simulation{}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], c.in))
		if err := sim.Run(); err != nil || sim.Unknown != c.want || *sent != c.sent {
			t.Errorf("%+v: unknown %q, sent %d (%v)", c, sim.Unknown, *sent, err)
		}
		if lost := sim.Lost.Reason == trace.NotForwarding; lost != (c.sent == 0) {
			t.Errorf("%+v: lost %+v", c, sim.Lost)
		}
	}
}

// filter is a firewall that lets one port pass.
type filter struct{ port, asked, forgot int }

func (f *filter) Pass(_ *wire.Simulation, p *packet.Packet) bool {
	f.asked++
	return int(p.Headers().DstPort) == f.port
}

func (f *filter) Forget() { f.forgot++ }

// A machine's firewall decides about what it passes on and nothing else, once for each
// packet, and forgets with its machine.
func TestFirewall(t *testing.T) {
	for in, want := range map[string]struct{ asked, sent int }{
		"udp 10.0.1.2:1 > 10.0.2.2:53":       {1, 1},
		"udp 10.0.1.2:1 > 10.0.2.2:54":       {1, 0},
		"udp 10.0.1.2:1 > 10.0.1.1:54":       {0, 1}, // refused by the machine itself
		"udp 10.0.1.2:1 > 10.0.2.2:53 ttl1":  {1, 0},
		"udp 10.0.1.2:1 > 192.0.2.2:53 ttl9": {1, 0}, // no route
	} {
		s, sent := router(t)
		f := &filter{port: 53}
		s.Firewall = f
		sim := &wire.Simulation{}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], in))
		if err := sim.Run(); err != nil || f.asked != want.asked || *sent != want.sent {
			t.Errorf("%s: asked %d, sent %d (%v); want %+v", in, f.asked, *sent, err, want)
		}
		s.Reset()
		if f.forgot != 1 {
			t.Errorf("%s: forgot %d times", in, f.forgot)
		}
	}
}

// A step that follows a route names who set it and what that rests on, else what every
// route rests on.
func TestStepsNameTheRoute(t *testing.T) {
	origin := &trace.Origin{What: "flannel"}
	for _, own := range []bool{false, true} {
		s, _ := router(t)
		r := Route{To: netip.MustParsePrefix("10.9.0.0/16"), Via: netip.MustParseAddr("10.0.2.9"), Origin: origin}
		want := factRoute
		if own {
			r.Fact, want = factTestGate, factTestGate
		}
		if err := s.AddRoute(r); err != nil {
			t.Fatal(err)
		}
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "udp 10.0.1.2:1 > 10.9.0.1:53"))
		st := sim.Rec.Steps()
		if len(st) != 1 || st[0].From != origin || st[0].Evidence != want.ID || st[0].Action != trace.ActForward || st[0].Place != "m" ||
			st[0].Object != "stack" || !strings.Contains(st[0].Packet.String(), "10.9.0.1:53") {
			t.Errorf("steps %+v", st)
		}
	}
}

// A route without a link takes the first link on whose network its next hop is; one with
// a link keeps it.
func TestTheLinkOfARoute(t *testing.T) {
	for _, c := range []struct {
		link int // -1: none
		want string
	}{{-1, "eth1"}, {0, "eth0"}, {2, "eth2"}} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24", "eth1 10.0.2.2/24", "eth2 10.0.2.3/24"}, nil)
		r := Route{To: netip.MustParsePrefix("10.9.0.0/16"), Via: netip.MustParseAddr("10.0.2.9")}
		if c.link >= 0 {
			r.Link = s.Links[c.link]
		}
		if err := s.AddRoute(r); err != nil || s.Routes()[3].Link.Name != c.want {
			t.Errorf("%+v: %v (%v)", c, s.Routes(), err)
		}
	}
}

// A source address is of the destination's family: of the link that the packet leaves by,
// else of another one.
func TestSourceOfAnotherLink(t *testing.T) {
	s := stackOf(t, []string{"lo fd00:9::1/128", "eth0 10.0.1.2/24", "eth1 10.0.2.2/24 fd00:2::2/64"},
		[]string{"fd00:1::/64 via fd00:2::9 dev eth0"})
	for to, want := range map[string]string{"10.0.2.9": "10.0.2.2", "fd00:2::9": "fd00:2::2", "fd00:1::9": "fd00:9::1",
		"2001:db8::1": "fd00:9::1", "8.8.8.8": "10.0.1.2", "fd00:2::2": "fd00:2::2"} {
		if got := s.Source(netip.MustParseAddr(to)); got.String() != want {
			t.Errorf("to %s: %s, want %s", to, got, want)
		}
	}
}
