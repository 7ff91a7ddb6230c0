package fabric

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// clock is a [wire.Pace] whose time a test sets, and whose chance it writes down.
type clock struct {
	now    time.Duration
	chance []float64
	held   []func()
	until  []time.Duration
	full   bool
}

func (c *clock) Now() time.Duration { return c.now }

func (c *clock) Random() float64 {
	x := c.chance[0]
	c.chance = c.chance[1:]
	return x
}

func (c *clock) Hold(until time.Duration, p *packet.Packet, on func(*packet.Packet)) bool {
	if c.full {
		return false
	}
	q := p.Clone()
	c.until, c.held = append(c.until, until), append(c.held, func() { on(q) })
	return true
}

// cable is two machines on a segment with a link.
func cable(on, at wire.Line) (send func(sim *wire.Simulation, port uint16) (arrived bool)) {
	a, b := &vm{addrs: []string{"10.0.0.1"}}, &vm{addrs: []string{"10.0.0.2"}}
	s := &wire.Segment{Name: "lan", Line: on}
	na, nb := &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Owner: a}, &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 2}, Owner: b, Line: at}
	s.Attach(na)
	s.Attach(nb)
	return func(sim *wire.Simulation, port uint16) bool {
		before := len(b.got)
		s.Send(sim, na, packet.Build(packet.Spec{EthSrc: na.MAC, EthDst: nb.MAC, Src: netip.MustParseAddr("10.0.0.1"),
			Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP, SrcPort: 1, DstPort: port, Payload: make([]byte, 1000-42)}))
		_ = sim.Run()
		return len(b.got) > before
	}
}

// Without time and chance, as in a trace, a link loses all or nothing.
func TestLinksOfATrace(t *testing.T) {
	for _, c := range []struct {
		name   string
		link   Link
		reason trace.Reason
	}{
		{"good", Link{}, ""},
		{"cut", Link{Down: true}, trace.LinkDown},
		{"loses all", Link{Loss: 1}, trace.LinkLoss},
		{"loses most", Link{Loss: 0.99}, ""},
		{"slow", Link{Delay: time.Hour, Jitter: time.Minute, Rate: 1}, ""},
	} {
		for where, send := range map[string]func(*wire.Simulation, uint16) bool{"segment": cable(&c.link, nil), "cable": cable(nil, &c.link)} {
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			arrived := send(sim, 9)
			if arrived != (c.reason == "") || sim.Lost.Reason != c.reason {
				t.Errorf("%s %s: arrived %v, lost %q", c.name, where, arrived, sim.Lost.Reason)
			}
			if c.reason != "" && !slices.ContainsFunc(sim.Rec.Steps(),
				func(s trace.Step) bool { return s.Reason == c.reason && s.Place == wire.Fabric }) {
				t.Errorf("%s %s: no step says it", c.name, where)
			}
		}
	}
}

func TestDelay(t *testing.T) {
	c := &clock{now: time.Second}
	sim := &wire.Simulation{Pace: c}
	send := cable(&Link{Delay: 20 * time.Millisecond}, &Link{Delay: 5 * time.Millisecond})
	for range 2 {
		if send(sim, 9) {
			t.Fatal("arrived at once")
		}
	}
	if want := []time.Duration{1020 * time.Millisecond, 1020 * time.Millisecond}; !slices.Equal(c.until, want) {
		t.Fatalf("until %v, want %v", c.until, want)
	}
	c.now = 1020 * time.Millisecond
	c.held[0]()
	_ = sim.Run()
	if want := 1025 * time.Millisecond; c.until[2] != want {
		t.Fatalf("the second link holds it until %v, want %v", c.until[2], want)
	}
	c.full = true
	c.held[1]()
	_ = sim.Run()
	if sim.Lost.Reason != trace.LinkLoss {
		t.Errorf("no room: lost %q", sim.Lost.Reason)
	}
}

func TestJitter(t *testing.T) {
	c := &clock{chance: []float64{0, 0.5, 0.75}}
	send := cable(&Link{Delay: 20 * time.Millisecond, Jitter: 8 * time.Millisecond}, nil)
	for range 3 {
		send(&wire.Simulation{Pace: c}, 9)
	}
	if want := []time.Duration{12 * time.Millisecond, 20 * time.Millisecond, 24 * time.Millisecond}; !slices.Equal(c.until, want) {
		t.Errorf("until %v, want %v", c.until, want)
	}
}

func TestLossByChance(t *testing.T) {
	c := &clock{chance: []float64{0.24, 0.25, 0.9, 0}}
	sim := &wire.Simulation{Pace: c}
	send := cable(&Link{Loss: 0.25}, nil)
	var got []bool
	for range 4 {
		got = append(got, send(sim, 9))
	}
	if want := []bool{false, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
}

// A thousand bytes at a megabit per second take 8 ms, and each waits for the one before.
func TestRate(t *testing.T) {
	c := &clock{}
	sim := &wire.Simulation{Pace: c}
	send := cable(nil, &Link{Rate: 1e6, Delay: time.Millisecond})
	for range 3 {
		send(sim, 9)
	}
	if want := []time.Duration{9 * time.Millisecond, 17 * time.Millisecond, 25 * time.Millisecond}; !slices.Equal(c.until, want) {
		t.Errorf("until %v, want %v", c.until, want)
	}
	for sim.Lost.Reason == "" {
		if send(sim, 9); len(c.until) > 2000 {
			t.Fatal("the queue has no end")
		}
	}
	if n := len(c.until); n != queued/1000+1 || sim.Lost.Reason != trace.LinkLoss {
		t.Errorf("%d frames wait, then %s", n, sim.Lost.Reason)
	}
}
