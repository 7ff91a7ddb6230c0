package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
)

// table finds values by the hash of a key that each value holds itself: places in one
// array, taken in turn from the one that a hash names. Beside a map it saves a copy of every
// key, and whoever looks up, puts and takes out computes one hash. The user compares keys.
type table[V any] struct {
	places []place[V] // a power of two of them
	n      int
}

type place[V any] struct {
	hash uint64
	v    *V
}

// firstPlace is the first place for a hash, nextPlace the one after a place. A place without a value
// ends the search. The table must not be empty.
func (t *table[V]) firstPlace(hash uint64) int { return int(hash) & (len(t.places) - 1) }
func (t *table[V]) nextPlace(i int) int        { return (i + 1) & (len(t.places) - 1) }

// firstPlaces is how many places there are in the smallest table that has one.
const firstPlaces = 16

// add puts a value in. None with its key is there.
func (t *table[V]) add(hash uint64, v *V) {
	if 8*t.n >= 5*len(t.places) { // from there on searches become long
		old := t.places
		t.places = make([]place[V], max(firstPlaces, 2*len(old)))
		for _, p := range old {
			if p.v != nil {
				t.put(p)
			}
		}
	}
	t.n++
	t.put(place[V]{hash, v})
}

func (t *table[V]) put(p place[V]) {
	i := t.firstPlace(p.hash)
	for t.places[i].v != nil {
		i = t.nextPlace(i)
	}
	t.places[i] = p
}

// find is the place of a value; ok is false when it is not there.
func (t *table[V]) find(hash uint64, v *V) (i int, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	for i = t.firstPlace(hash); t.places[i].v != nil; i = t.nextPlace(i) {
		if t.places[i].v == v {
			return i, true
		}
	}
	return 0, false
}

// swap replaces a value with another of the same key.
func (t *table[V]) swap(hash uint64, old, v *V) {
	if i, ok := t.find(hash, old); ok {
		t.places[i].v = v
	}
}

// remove takes a value out, if it is there. Values behind its place move up, or a search
// for them would end there.
func (t *table[V]) remove(hash uint64, v *V) {
	i, ok := t.find(hash, v)
	if !ok {
		return
	}
	t.n--
	last := len(t.places) - 1
	for j := t.nextPlace(i); t.places[j].v != nil; j = t.nextPlace(j) {
		if (j-t.firstPlace(t.places[j].hash))&last >= (j-i)&last {
			t.places[i] = t.places[j]
			i = j
		}
	}
	t.places[i] = place[V]{}
}

// keep notes how to undo what follows to the values of one key: before is the value that it
// has now, nil for none, and now finds the one that it has then.
func (t *table[V]) keep(j *journal.Journal, hash uint64, before *V, now func() *V) {
	if !j.On() {
		return
	}
	j.Add(func() {
		if v := now(); v != nil {
			t.remove(hash, v)
		}
		if before != nil {
			t.add(hash, before)
		}
	})
}

// all calls f with every value. f must not change the table.
func (t *table[V]) all(f func(*V)) {
	for i := range t.places {
		if v := t.places[i].v; v != nil {
			f(v)
		}
	}
}

// clear takes all values out. Room for many more than there were is given back: who goes through
// a table goes through its room, and a port is reset for every trace, also after a capture with
// thousands of flows.
func (t *table[V]) clear() {
	if len(t.places) > firstPlaces && 16*t.n < len(t.places) {
		t.places = nil
	}
	clear(t.places)
	t.n = 0
}

// aging holds values in the order in which they are to be looked at, those that may be
// over. A value is put in at its end with the time at which it would end if nothing
// happened to it; somebody looks at it then, and puts it in again when it goes on. All
// values of an aging live equally long, so what comes first is looked at first.
type aging[V any] struct {
	lives time.Duration
	queue []aged[V]
	head  int
	// limit is the number of values at which to leave out those that are gone.
	limit int
}

type aged[V any] struct {
	due time.Duration
	v   *V
}

// push puts a value in. gone reports whether a value is no longer needed.
func (a *aging[V]) push(due time.Duration, v *V, gone func(*V) bool) {
	if len(a.queue) == cap(a.queue) && a.head > len(a.queue)/2 { // room at the front
		n := copy(a.queue, a.queue[a.head:])
		clear(a.queue[n:])
		a.queue, a.head = a.queue[:n], 0
	}
	if a.limit = max(a.limit, firstSweep); len(a.queue)-a.head >= a.limit {
		left := a.queue[:0]
		for _, x := range a.queue[a.head:] {
			if !gone(x.v) {
				left = append(left, x)
			}
		}
		clear(a.queue[len(left):])
		a.queue, a.head, a.limit = left, 0, max(firstSweep, 2*len(left))
	}
	a.queue = append(a.queue, aged[V]{due, v})
}

// pop takes out the first value if it is due.
func (a *aging[V]) pop(now time.Duration) (v *V, ok bool) {
	if a.head == len(a.queue) || a.queue[a.head].due > now {
		return nil, false
	}
	v = a.queue[a.head].v
	a.queue[a.head].v = nil
	a.head++
	return v, true
}

func (a *aging[V]) clear() {
	clear(a.queue)
	a.queue, a.head, a.limit = a.queue[:0], 0, 0
}
