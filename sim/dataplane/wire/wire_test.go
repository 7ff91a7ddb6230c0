package wire

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// box counts the frames that it gets and owns one address.
type box struct {
	addr netip.Addr
	got  int
}

func (b *box) Receive(*World, *NIC, *packet.Packet) { b.got++ }

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
	return packet.Build(packet.Spec{EthSrc: from, EthDst: to, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP, DstPort: 53})
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
			w := &World{Rec: &trace.Recorder{}}
			tapped := 0
			w.Tap = func(*Segment, *NIC, *packet.Packet) { tapped++ }
			s.Send(w, nics[0], frame(nics[0].MAC, c.to))
			if err := w.Run(); err != nil {
				t.Fatal(err)
			}
			if got := [3]int{boxes[0].got, boxes[1].got, boxes[2].got}; got != c.want {
				t.Errorf("received %v, want %v", got, c.want)
			}
			if last := w.Rec.Steps()[len(w.Rec.Steps())-1]; last.Reason != c.reason || tapped != 1 {
				t.Errorf("the last step is %+v, %d frames tapped", last, tapped)
			}
		})
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
	s.Policy = func(_ *World, from *NIC, _ *packet.Packet) bool { return from == nics[0] }
	w := &World{}
	s.Send(w, nics[0], frame(nics[0].MAC, nics[1].MAC))
	s.Send(w, nics[2], frame(nics[2].MAC, nics[1].MAC))
	if err := w.Run(); err != nil || boxes[1].got != 1 {
		t.Errorf("%d frames, want the second only (%v)", boxes[1].got, err)
	}
}

func TestRunEnds(t *testing.T) {
	w := &World{}
	var again func()
	again = func() { w.Queue(again) }
	w.Queue(again)
	if err := w.Run(); err == nil || !strings.Contains(err.Error(), "events") {
		t.Errorf("an endless run: %v", err)
	}
	ran := false
	w.Queue(func() { ran = true })
	if err := w.Run(); err != nil || !ran {
		t.Errorf("after an endless run the next one must be empty: %v, ran %v", err, ran)
	}
}

func TestChoices(t *testing.T) {
	label := func(i int) string { return string('a' + rune(i)) }
	w := &World{Forced: []int{2}}
	if got := w.Choose("x", 3, 1, label); got != 2 {
		t.Errorf("forced: %d", got)
	}
	if got := w.Choose("y", 3, 1, label); got != 1 {
		t.Errorf("without a recorder the default counts: %d", got)
	}
	w.Rec = &trace.Recorder{}
	if got := w.Choose("z", 3, 1, label); got != 0 {
		t.Errorf("while recording the first is taken, the others follow: %d", got)
	}
	if len(w.Made) != 3 || w.Made[0].Label != "c" || w.Made[2].Of != 3 {
		t.Errorf("made: %+v", w.Made)
	}
	w.Fell("first")
	w.Fell("second")
	if w.Hole != "first" {
		t.Errorf("the hole is %q", w.Hole)
	}
}
