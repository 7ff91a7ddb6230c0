package netns

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestShare: what may be used at once is a period's share, and what was used too much is
// owed.
func TestShare(t *testing.T) {
	s := share{limit: 0.5, credit: 50 * ms}
	for i, c := range []struct {
		used, after time.Duration
		run         bool
		credit      time.Duration
		pause       time.Duration
	}{
		{0, 10 * time.Second, true, 50 * ms, 50 * ms}, // nothing is saved up over more than a period
		{40 * ms, 40 * ms, true, 10 * ms, 10 * ms},
		{40 * ms, 10 * ms, false, -25 * ms, 60 * ms}, // it stops: 25 ms and a tick's 5 at a half
		{0, 20 * ms, false, -15 * ms, 40 * ms},
		{0, 40 * ms, true, 5 * ms, 10 * ms},
		{200 * ms, 10 * ms, false, -190 * ms, 100 * ms}, // the end of a container is noticed in time
	} {
		run := s.look(c.used, c.after)
		s.stopped = !run
		if run != c.run || s.credit != c.credit || s.pause() != c.pause {
			t.Errorf("%d: runs %v with %v, looked at again after %v; want %+v", i, run, s.credit, s.pause(), c)
		}
	}
}

// TestMeter: time counts once, also of processes that have ended.
func TestMeter(t *testing.T) {
	m := meter{}
	for i, c := range []struct {
		now  map[string]spent
		used time.Duration
	}{
		{map[string]spent{"1": {50 * ms, 0}}, 50 * ms},
		{map[string]spent{"1": {60 * ms, 0}, "2": {30 * ms, 0}}, 40 * ms},
		{map[string]spent{"1": {60 * ms, 40 * ms}}, 10 * ms},                          // 2 has ended after 10 more
		{map[string]spent{"1": {60 * ms, 45 * ms}, "3": {20 * ms, 0}}, 25 * ms},       // a child that nobody saw
		{map[string]spent{"1": {60 * ms, 45 * ms}}, 0},                                // 3 has ended, nobody has waited yet
		{map[string]spent{"1": {65 * ms, 65 * ms}}, 5 * ms},                           // now
		{map[string]spent{"1": {65 * ms, 65 * ms}, "1 later": {10 * ms, 0}}, 10 * ms}, // the number of another
	} {
		if got := m.count(c.now); got != c.used {
			t.Errorf("%d: %v, want %v", i, got, c.used)
		}
	}
}

// TestThrottle: four busy loops in a container use no more than its limit.
// It ends at once when it is removed, stopped or not.
func TestThrottle(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		const limit = 0.1
		p := staying(t, h, Container{Name: "held", OwnRoot: true, CPU: 1000 * limit}, sh("for i in 1 2 3 4; do while :; do :; done & done; wait"))
		before, err := h.Usage(t.Context(), "pod", "held")
		if err != nil {
			t.Skip(err) // what a container uses is not known on such a machine
		}
		at := time.Now()
		time.Sleep(2 * time.Second)
		after, err := h.Usage(t.Context(), "pod", "held")
		if err != nil {
			t.Fatal(err)
		}
		used, most := time.Duration(after.CPU-before.CPU), time.Duration(limit*float64(time.Since(at)))
		// Before the first look and between two, all loops run, on each processor.
		if slack := 150 * ms; used > most+slack {
			t.Errorf("it used %v, of %v", used, most)
		}
		if used == 0 {
			t.Error("it did not run at all")
		}
		if err := h.RemoveContainer(t.Context(), "pod", "held"); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Signal != 9 {
			t.Errorf("%+v, error %v", e, err)
		}
	})
}
