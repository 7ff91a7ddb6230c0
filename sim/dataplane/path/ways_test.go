package path

import (
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// idle is a state that ends some time after its last packet.
type idle struct {
	ttl, until      time.Duration
	packets, bytes  uint64
	told            int // how often
	opened, lasting bool
}

func (s *idle) Holds(now time.Duration) bool { return s.lasting || now < s.until }

func (s *idle) Until() time.Duration {
	if s.lasting {
		return Forever
	}
	return s.until
}

func (s *idle) Pass(by *Passing) {
	s.told++
	s.until = max(s.until, by.Now+s.ttl)
	s.packets += by.Packets
	s.bytes += by.Bytes
	if !s.opened {
		s.opened = true
		by.Changes()
	}
}

// kept is a flow on a state and on a counter.
func kept(w *Ways, n *uint32, of **Ways, s State) *Flow {
	r := &Record{Ways: w}
	r.Rests(n, of)
	r.Follows(s, of)
	return r.Flow()
}

func ackAt(t time.Duration) *Passing {
	return &Passing{Now: t, Proto: packet.TCP, TCPFlags: packet.ACK, Packets: 1, Bytes: 100}
}

func TestPacketsThatFollowAreToldLater(t *testing.T) {
	var n uint32
	var device *Ways
	w, s := NewWays(), &idle{ttl: 10, until: 5}
	f := kept(w, &n, &device, s)
	if device != w {
		t.Fatal("the device does not get the Ways")
	}
	for i := range 4 {
		if !f.Take(ackAt(time.Duration(i))) {
			t.Fatalf("packet %d is not taken", i)
		}
	}
	if s.told != 1 || s.packets != 1 {
		t.Errorf("the state was told %d times of %d packets, want the first one only", s.told, s.packets)
	}
	w.Settle()
	w.Settle()
	if s.told != 2 || s.packets != 4 || s.bytes != 400 || s.until != 13 {
		t.Errorf("the state has %+v after 4 packets, the last one at 3", s)
	}
}

// A path that was found to hold until a time is asked again then: packets that the state
// has not been told of keep it alive.
func TestPathsHoldUntilTheirStatesEnd(t *testing.T) {
	var n uint32
	var device *Ways
	w, s := NewWays(), &idle{ttl: 10, until: 5, opened: true}
	f := kept(w, &n, &device, s)
	for _, c := range []struct {
		at    time.Duration
		taken bool
	}{{0, true}, {9, true}, {18, true}, {27, true}, {37, false}, {36, true}} {
		if f.Take(ackAt(c.at)) != c.taken {
			t.Errorf("at %d: taken is %v", c.at, !c.taken)
		}
	}
}

func TestChangesAreSeen(t *testing.T) {
	var n uint32
	var device *Ways
	w := NewWays()
	s := &idle{lasting: true}
	f := kept(w, &n, &device, s)
	if !f.Take(ackAt(0)) || !f.Take(ackAt(1)) || !f.Take(ackAt(2)) {
		t.Fatal("nothing has changed")
	}
	device.Changed()
	if s.packets != 3 {
		t.Errorf("the state knows of %d packets when it changes, want 3", s.packets)
	}
	if !f.Take(ackAt(3)) {
		t.Error("the counter is what it was, and the flow does not hold")
	}
	device.Changed()
	n++
	if f.Take(ackAt(4)) {
		t.Error("the counter has changed, and the flow holds")
	}
}

// What a packet does to a state beside its time is seen by the other flows on it.
func TestWhatAPacketChangesIsSeen(t *testing.T) {
	var n uint32
	var device *Ways
	w := NewWays()
	shared := &idle{ttl: 100, until: 100, opened: true}
	f, g := kept(w, &n, &device, shared), kept(w, &n, &device, shared)
	f.Take(ackAt(0))
	shared.opened = false // what the next packet to be told of does
	shared.ttl = 1
	g.Take(ackAt(1))
	told := shared.told
	if f.Take(ackAt(2)); shared.told == told {
		t.Error("the state was not asked again after a packet had changed more than its time")
	}
}

// A shared state is told of the flows in any order, and the latest time counts.
func TestLatestTimeCounts(t *testing.T) {
	var n uint32
	var device *Ways
	w := NewWays()
	s := &idle{ttl: 10, until: 5, opened: true}
	f, g := kept(w, &n, &device, s), kept(w, &n, &device, s)
	f.Take(ackAt(0))
	g.Take(ackAt(0))
	f.Take(ackAt(1))
	g.Take(ackAt(2))
	f.Take(ackAt(4))
	w.Settle()
	if s.until != 14 || s.packets != 5 {
		t.Errorf("the state ends at %d and knows %d packets, want 14 and 5", s.until, s.packets)
	}
}

// Nobody keeps paths where there are no Ways.
func TestNoWays(t *testing.T) {
	var w *Ways
	w.Changed()
	w.Settle()
}
