package vfp

import (
	"fmt"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// The memory of a unified flow that was forgotten serves another one, unless a path has it:
// that would take its packets to another flow's end.
func TestUnifiedFlowsAreUsedAgain(t *testing.T) {
	const first = "udp 10.0.0.1:1 > 10.0.0.2:2"
	for _, onPath := range []bool{false, true} {
		t.Run(fmt.Sprint("on a path: ", onPath), func(t *testing.T) {
			forgetsEarly(t, 1)
			pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1}}, nil))
			env, ways := &Env{}, path.NewWays()
			p := parse(t, first)
			if onPath {
				env.Path = &path.Record{Len: p.Len(), Ways: ways}
				p.Note(&env.Path.Edits)
			}
			if !pt.Process(p, Out, env).Pass {
				t.Fatal("dropped")
			}
			u := valuesOf(&pt.unified)[0]
			for n, from := range []string{"10.0.0.3", "10.0.0.4"} {
				pt.Process(parse(t, fmt.Sprintf("udp %s:1 > 10.0.0.2:2", from)), Out, &Env{Now: maxUnused})
				if n == 0 && pt.unified.n != 1 {
					t.Fatal("the unified flow is not forgotten: the rest of the test shows nothing")
				}
			}
			if again := u.key.src[1]&0xff == 4; again == onPath {
				t.Errorf("its memory is used again: %v", again)
			}
			if onPath && env.Path.Flow().Holds(maxUnused) {
				t.Error("the path holds on a unified flow that was forgotten")
			}
		})
	}
}

// Of many that were forgotten at once a port keeps few.
func TestFewAreSpare(t *testing.T) {
	pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1}}, nil))
	forgetsEarly(t, 10*maxSpare)
	for n := range 10 * maxSpare {
		pt.Process(parse(t, fmt.Sprintf("udp 10.0.0.1:%d > 10.0.0.2:2", n+1)), Out, &Env{})
	}
	pt.Process(parse(t, "udp 10.0.0.3:1 > 10.0.0.2:2"), Out, &Env{Now: maxUnused})
	if pt.unified.n != 1 || len(pt.spare) != maxSpare {
		t.Errorf("%d unified flows are there and %d spare, want 1 and %d", pt.unified.n, len(pt.spare), maxSpare)
	}
}

// A unified flow that was looked at and goes on is not spare.
func TestWhatGoesOnIsNotSpare(t *testing.T) {
	forgetsEarly(t, 1)
	pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1}}, nil))
	const kept = "udp 10.0.0.1:1 > 10.0.0.2:2"
	send(t, pt, Out, kept, &Env{})
	send(t, pt, Out, kept, &Env{Now: maxUnused / 2})
	u := valuesOf(&pt.unified)[0]
	for n := range 3 {
		send(t, pt, Out, fmt.Sprintf("udp 10.0.0.3:%d > 10.0.0.2:2", n+1), &Env{Now: maxUnused})
	}
	if u.key.srcPort() != 1 || u.key.src[1]&0xff != 1 || pt.unified.n != 4 {
		t.Errorf("of 4 unified flows %d are there, and the first is that of %v", pt.unified.n, u.key.tuple())
	}
}
