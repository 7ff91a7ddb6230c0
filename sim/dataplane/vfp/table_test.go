package vfp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A table holds what a map holds, also where many keys have one hash, and undone changes
// leave what was there.
func TestTableIsAMap(t *testing.T) {
	type value struct{ key, hash uint64 }
	rng := rand.New(rand.NewPCG(1, 1))
	for _, keys := range []uint64{3, 40, 1000} {
		for _, hashes := range []uint64{1, 7, 1 << 40} {
			var tab table[value]
			want := map[uint64]*value{}
			get := func(key uint64) *value {
				for i := tab.firstPlace(key % hashes); tab.n > 0 && tab.places[i].v != nil; i = tab.nextPlace(i) {
					if v := tab.places[i].v; v.key == key {
						return v
					}
				}
				return nil
			}
			change := func(j *journal.Journal) {
				v := &value{key: rng.Uint64N(keys)}
				v.hash = v.key % hashes
				old := want[v.key]
				tab.keep(j, v.hash, old, func() *value { return get(v.key) })
				journal.KeepKey(j, want, v.key)
				switch {
				case old == nil:
					tab.add(v.hash, v)
					want[v.key] = v
				case rng.IntN(2) == 0:
					tab.swap(v.hash, old, v)
					want[v.key] = v
				default:
					tab.remove(v.hash, v) // is not there
					tab.remove(v.hash, old)
					delete(want, v.key)
				}
			}
			for n := range 3000 {
				if change(nil); n%50 == 0 {
					j := &journal.Journal{}
					for range rng.IntN(20) {
						change(j)
					}
					j.Undo()
				}
				if n == 2000 {
					tab.clear()
					clear(want)
				}
				got := map[uint64]*value{}
				tab.all(func(v *value) { got[v.key] = v })
				if key := rng.Uint64N(keys); tab.n != len(want) || get(key) != want[key] || n%20 == 0 && !maps.Equal(got, want) {
					t.Fatalf("%d keys, %d hashes, change %d: %d values, want %d; %d is %v, want %v", keys, hashes, n, tab.n, len(want), key, get(key),
						want[key])
				}
			}
		}
	}
}

// What an aging holds is looked at when it is due, once, in the order of its coming, and
// what is gone takes no room.
// TestClearedTableIsSmall: a table that had thousands of values once is as quick to go through as a
// new one after the next few were taken out, and one that is as full each time keeps its room.
func TestClearedTableIsSmall(t *testing.T) {
	var tab table[int]
	fill := func(n int) {
		for i := range n {
			tab.add(uint64(i)*0x9e3779b97f4a7c15, &i)
		}
	}
	fill(5000)
	full := len(tab.places)
	tab.clear()
	if fill(5000); len(tab.places) != full {
		t.Errorf("%d places where there were %d before", len(tab.places), full)
	}
	tab.clear()
	for range 2 {
		fill(3)
		tab.clear()
		if len(tab.places) > firstPlaces {
			t.Errorf("%d places after three values", len(tab.places))
		}
		if i, ok := tab.find(7, new(int)); ok {
			t.Errorf("an empty table has a value at %d", i)
		}
	}
}

func TestAging(t *testing.T) {
	type value struct{ gone bool }
	gone := func(v *value) bool { return v.gone }
	var a aging[value]
	var want []*value
	var now time.Duration
	for n := range 100_000 {
		v := &value{}
		a.push(now+10, v, gone)
		want = append(want, v)
		now += time.Duration(n % 2)
		var due []*value
		for v, ok := a.pop(now); ok; v, ok = a.pop(now) {
			due = append(due, v)
		}
		if !slices.Equal(due, want[:len(due)]) || len(want)-len(due) > 20 {
			t.Fatalf("at %v: %d values are due, and %d are left", now, len(due), len(want)-len(due))
		}
		want = want[len(due):]
	}
	if len(a.queue) > 4*firstSweep {
		t.Errorf("room for %d values, and 20 are there", len(a.queue))
	}
	for range 100_000 {
		v := &value{}
		a.push(now+10, v, gone)
		v.gone = true
	}
	if len(a.queue) > 2*firstSweep {
		t.Errorf("%d values, and all are gone", len(a.queue))
	}
}

// A connection that had a packet is not forgotten when it would have been over without,
// and is when it is over.
func TestForgetsWhatIsOver(t *testing.T) {
	forgetsEarly(t, 0)
	pt := port(policy(t, "layer A; allow out 1 id rule ttl 10 any")...)
	const open, packet, other = "tcp 10.0.0.1:1 > 10.0.0.2:80 syn", "tcp 10.0.0.1:1 > 10.0.0.2:80", "udp 10.0.0.3:%d > 10.0.0.2:53"
	for n, c := range []struct {
		at    time.Duration
		what  string
		flows int
		want  string
	}{
		{0, open, 2, "passed"}, {9, packet, 2, "passed"}, {12, other, 4, "passed"}, {18, packet, 4, "passed"},
		{23, other, 4, "passed"}, // the first of the others is over
		{28, other, 4, "passed"}, // the connection is over since its 28th second
		{29, packet, 4, "no-flow"}, {29, open, 6, "passed"}, {34, other, 6, "passed"}, {38, packet, 6, "passed"},
	} {
		if c.what == other {
			c.what = fmt.Sprintf(other, n)
		}
		got := send(t, pt, Out, c.what, &Env{Now: c.at * time.Second})
		if flows := pt.layers[0].flows.n; flows != c.flows || c.want == "no-flow" != (got == string(trace.NoFlow)) {
			t.Errorf("at %d s, %s: %q and %d flows, want %s and %d", c.at, c.what, got, flows, c.want, c.flows)
		}
	}
}
