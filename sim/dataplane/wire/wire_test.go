package wire

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// box counts the frames that it gets and owns one address.
type box struct {
	addr netip.Addr
	got  int
}

func (b *box) Receive(*Simulation, *NIC, *packet.Packet) { b.got++ }

func (b *box) ARP(n *NIC, ip netip.Addr) (packet.MAC, bool) { return n.MAC, ip == b.addr }

// segment has three machines with the addresses 10.0.0.1 to 10.0.0.3.
func segment() (*Segment, []*NIC, []*box) {
	s := &Segment{Name: "lan"}
	var nics []*NIC
	var boxes []*box
	for i := range byte(3) {
		b := &box{addr: netip.AddrFrom4([4]byte{10, 0, 0, i + 1})}
		n := &NIC{Name: string('a' + rune(i)), MAC: packet.MAC{2, 0, 0, 0, 0, i + 1}, Owner: b}
		s.Attach(n)
		nics, boxes = append(nics, n), append(boxes, b)
	}
	return s, nics, boxes
}

func frame(from, to packet.MAC) *packet.Packet {
	return packet.Build(packet.Spec{EthSrc: from, EthDst: to, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
		Proto: packet.UDP, DstPort: 53})
}

func TestAFrameReachesItsOwner(t *testing.T) {
	for _, c := range []struct {
		name   string
		to     packet.MAC
		want   [3]int
		reason trace.Reason
	}{
		{"unicast", packet.MAC{2, 0, 0, 0, 0, 2}, [3]int{0, 1, 0}, ""},
		{"to the sender itself", packet.MAC{2, 0, 0, 0, 0, 1}, [3]int{}, trace.NoNeighbour},
		{"broadcast", packet.Broadcast, [3]int{0, 1, 1}, ""},
		{"nobody's", packet.MAC{2, 9, 9, 9, 9, 9}, [3]int{}, trace.NoNeighbour},
		{"a container's behind the third", packet.MAC{2, 7, 7, 7, 7, 7}, [3]int{0, 0, 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, nics, boxes := segment()
			nics[2].Promiscuous = func(m packet.MAC) bool { return m[1] == 7 }
			sim := &Simulation{Rec: &trace.Recorder{}}
			tapped := 0
			sim.Taps.Segment = func(*Segment, *NIC, *packet.Packet) { tapped++ }
			s.Send(sim, nics[0], frame(nics[0].MAC, c.to))
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			if got := [3]int{boxes[0].got, boxes[1].got, boxes[2].got}; got != c.want {
				t.Errorf("received %v, want %v", got, c.want)
			}
			if last := sim.Rec.Steps()[len(sim.Rec.Steps())-1]; last.Reason != c.reason || tapped != 1 {
				t.Errorf("the last step is %+v, %d frames tapped", last, tapped)
			}
		})
	}
}

// Traces name a segment between machines and one inside a machine differently.
func TestHowTracesNameASegment(t *testing.T) {
	for _, c := range []struct{ place, name, wantPlace, wantObject string }{
		{"", "lan", "fabric", "segment lan"},
		{"lin1", "bridge cni0", "lin1", "bridge cni0"},
	} {
		s, nics, _ := segment()
		s.Place, s.Name = c.place, c.name
		sim := &Simulation{Rec: &trace.Recorder{}}
		s.Send(sim, nics[0], frame(nics[0].MAC, packet.MAC{2, 9, 9, 9, 9, 9}))
		steps := sim.Rec.Steps()
		if len(steps) != 2 || steps[0].Text() != "on the wire" ||
			steps[1].Text() != "no machine on the segment has the MAC address 02-09-09-09-09-09" {
			t.Fatalf("%s: steps %+v", c.name, steps)
		}
		for _, st := range steps {
			if st.Place != c.wantPlace || st.Object != c.wantObject || st.Evidence != "wire.ethernet" || st.Packet.IsZero() {
				t.Errorf("%s: the step is %+v", c.name, st)
			}
		}
		if want := (Loss{c.wantPlace, c.name, trace.NoNeighbour}); sim.Lost != want {
			t.Errorf("%s: the loss is %+v, want %+v", c.name, sim.Lost, want)
		}
	}
}

func TestAttach(t *testing.T) {
	s, nics, _ := segment()
	for _, n := range nics {
		if n.Segment != s {
			t.Errorf("interface %s does not know its segment", n.Name)
		}
	}
}

func TestTheTapAtASwitchPort(t *testing.T) {
	sim := &Simulation{}
	sim.Taps.SeePort("win1", "endpoint client", true, nil) // nobody watches
	var got []string
	sim.Taps.Port = func(place, port string, entering bool, _ *packet.Packet) {
		got = append(got, fmt.Sprint(place, ", ", port, ", ", entering))
	}
	sim.Taps.SeePort("win1", "endpoint client", true, nil)
	sim.Taps.SeePort("win1", "external port", false, nil)
	if want := []string{"win1, endpoint client, true", "win1, external port, false"}; !slices.Equal(got, want) {
		t.Errorf("the tap saw %q, want %q", got, want)
	}
}

func TestWhoHasAnAddress(t *testing.T) {
	s, nics, _ := segment()
	if m, ok := s.Resolve(nics[0], netip.MustParseAddr("10.0.0.3")); !ok || m != nics[2].MAC {
		t.Errorf("10.0.0.3 is at %s, %v", m, ok)
	}
	for _, nobody := range []string{"10.0.0.9", "10.0.0.1"} {
		if m, ok := s.Resolve(nics[0], netip.MustParseAddr(nobody)); ok {
			t.Errorf("%s answers as %s", nobody, m)
		}
	}
	s.AnswersAll = packet.MAC{0x12}
	if m, ok := s.Resolve(nics[0], netip.MustParseAddr("10.0.0.9")); !ok || m != s.AnswersAll {
		t.Errorf("a segment that answers for all: %s, %v", m, ok)
	}
}

func TestAPolicyMayTakeAFrame(t *testing.T) {
	s, nics, boxes := segment()
	s.Policy = func(_ *Simulation, from *NIC, _ *packet.Packet) bool { return from == nics[0] }
	sim := &Simulation{}
	s.Send(sim, nics[0], frame(nics[0].MAC, nics[1].MAC))
	s.Send(sim, nics[2], frame(nics[2].MAC, nics[1].MAC))
	if err := sim.Run(); err != nil || boxes[1].got != 1 {
		t.Errorf("%d frames, want the second only (%v)", boxes[1].got, err)
	}
}

func TestRunEnds(t *testing.T) {
	sim := &Simulation{}
	var again func()
	again = func() { sim.Queue(again) }
	sim.Queue(again)
	if err := sim.Run(); err == nil || !strings.Contains(err.Error(), "events") {
		t.Errorf("an endless run: %v", err)
	}
	ran := false
	sim.Queue(func() { ran = true })
	if err := sim.Run(); err != nil || !ran {
		t.Errorf("after an endless run the next one must be empty: %v, ran %v", err, ran)
	}
}

func TestChoices(t *testing.T) {
	label := func(i int) string { return string('a' + rune(i)) }
	for _, c := range []struct {
		name    string
		choices Choices
		want    []int // of three choices among 3, whose hash says 1
	}{
		{"by the hash", Choices{}, []int{1, 1, 1}},
		{"the first, to explore the others later", Choices{Explore: true}, []int{0, 0, 0}},
		{"forced, then by the hash", Choices{Forced: []int{2}}, []int{2, 1, 1}},
		{"forced, then explored", Choices{Forced: []int{2, 1}, Explore: true}, []int{2, 1, 0}},
		{"forced beyond the candidates", Choices{Forced: []int{5}}, []int{2, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := &Simulation{Choices: c.choices}
			var got []int
			for range 3 {
				got = append(got, sim.Choose("rule", 3, 1, label))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("picked %v, want %v", got, c.want)
			}
			for i, m := range sim.Made {
				if want := (trace.Choice{Where: "rule", Pick: c.want[i], Of: 3, Label: label(c.want[i])}); m != want {
					t.Errorf("choice %d is noted as %+v, want %+v", i, m, want)
				}
			}
		})
	}
}

func TestTheClockDoesNotRunBackwards(t *testing.T) {
	sim := &Simulation{}
	for _, to := range []time.Duration{time.Second, 5 * time.Second, 2 * time.Second} {
		sim.AdvanceTo(to)
	}
	if sim.Now() != 5*time.Second {
		t.Errorf("it is %s, want 5s", sim.Now())
	}
}

func TestTheFirstUnknownAndTheLastLossAreNoted(t *testing.T) {
	sim := &Simulation{}
	sim.RecordUnknown("first")
	sim.RecordUnknown("second")
	sim.RecordLoss("win1", "host stack", trace.NoRoute)
	sim.RecordLoss("win2", "pod/default/web", trace.PortClosed)
	want := Losses{Unknown: "first", Lost: Loss{"win2", "pod/default/web", trace.PortClosed}}
	if sim.Losses != want {
		t.Errorf("noted %+v, want %+v", sim.Losses, want)
	}
}

// counting is a machine that counts how often it is asked, and knows what it may take.
type counting struct {
	box
	asked *int
}

func (c *counting) ARP(n *NIC, ip netip.Addr) (packet.MAC, bool) {
	*c.asked++
	return c.box.ARP(n, ip)
}

// TestKnown changes who has an address and who takes frames, and asks segments that
// remember in between: they answer as one that asks everybody, and ask once an epoch.
func TestKnown(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var epoch uint64
	asked, unasked := 0, 0
	fast, slow := &Segment{Name: "s", Epoch: func() uint64 { return epoch }}, &Segment{Name: "s"}
	machines := map[*Segment][]*counting{}
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	attach := func(i int) {
		for s, n := range map[*Segment]*int{fast: &asked, slow: &unasked} {
			c := &counting{asked: n}
			c.addr = address(i % 5)
			machines[s] = append(machines[s], c)
			s.Attach(&NIC{Name: fmt.Sprint(i), MAC: packet.MAC{0, byte(i % 7)}, Owner: c})
		}
	}
	for i := range 8 {
		attach(i)
	}
	for step := range 20000 {
		switch what := r.IntN(200); {
		case what == 0:
			epoch++
			i, a := r.IntN(8), address(r.IntN(6))
			machines[fast][i].addr, machines[slow][i].addr = a, a
		case what == 1:
			epoch++
			i, m := r.IntN(len(fast.NICs)), byte(r.IntN(7))
			for _, s := range []*Segment{fast, slow} {
				s.NICs[i].Promiscuous = func(x packet.MAC) bool { return x[1] == m }
			}
		case what == 2 && len(fast.NICs) < 30:
			attach(step)
		case what == 3 && len(fast.NICs) > 8:
			name := fast.NICs[8].Name
			for _, s := range []*Segment{fast, slow} {
				s.Detach(func(n *NIC) bool { return n.Name == name })
			}
		}
		i, a, m := r.IntN(len(fast.NICs)), address(r.IntN(7)), packet.MAC{0, byte(r.IntN(8))}
		gotMAC, got := fast.Resolve(fast.NICs[i], a)
		wantMAC, want := slow.Resolve(slow.NICs[i], a)
		if got != want || gotMAC != wantMAC {
			t.Fatalf("step %d: %s is at %s %v, want %s %v", step, a, gotMAC, got, wantMAC, want)
		}
		name := func(n *NIC) string {
			if n == nil {
				return ""
			}
			return n.Name
		}
		if got, want := name(fast.Taker(fast.NICs[i], m)), name(slow.Taker(slow.NICs[i], m)); got != want {
			t.Fatalf("step %d: %s takes frames to %s, want %s", step, got, m, want)
		}
	}
	if asked*2 > unasked {
		t.Errorf("machines were asked %d times, %d without memory", asked, unasked)
	}
}

// TestAskedOnce: with many machines on a segment, each is asked once for an address.
func TestAskedOnce(t *testing.T) {
	asked := 0
	s := &Segment{Name: "s", Epoch: func() uint64 { return 7 }}
	for i := range 1000 {
		c := &counting{asked: &asked}
		c.addr = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.Attach(&NIC{MAC: packet.MAC{1, 0, 0, 0, byte(i >> 8), byte(i)}, Owner: c})
	}
	for range 50 {
		if mac, ok := s.Resolve(s.NICs[3], netip.AddrFrom4([4]byte{10, 0, 3, 200})); !ok || mac != s.NICs[968].MAC {
			t.Fatal(mac, ok)
		}
		s.Resolve(s.NICs[3], netip.AddrFrom4([4]byte{10, 0, 9, 9})) // nobody
	}
	if asked > 2*len(s.NICs) {
		t.Errorf("1,000 machines were asked %d times for two addresses", asked)
	}
}
