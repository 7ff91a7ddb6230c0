package live

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// wires keeps packets that are on their way over slow links until their time. The
// Net's lock is around it.
type wires struct {
	now    func() time.Duration
	random *rand.Rand
	queue  transits
	size   int // in bytes
	seq    uint64
	// under is the packet that is put in or goes on now.
	under transit
	// earlier is told when the next packet is due earlier than before.
	earlier chan struct{}
}

// transit is a packet on its way.
type transit struct {
	until time.Duration
	seq   uint64
	held  *inject.Held
	size  int // in bytes

	from    *space
	frame   []byte // as the program sent it, for those who watch
	offload netns.Offload
}

// The most that is kept on slow links: more than ten gigabits per second have on their
// way in 50 ms.
const (
	maxHeld      = 1 << 16
	maxHeldBytes = 64 << 20
)

// seed is that of the chance of links: the same packets in the same order meet the same.
const seed = 0x77696e6c6162

func newWires(now func() time.Duration) *wires {
	return &wires{now: now, random: rand.New(rand.NewPCG(seed, seed)), earlier: make(chan struct{}, 1)}
}

// Now implements [inject.Wires].
func (w *wires) Now() time.Duration { return w.now() }

// Random implements [inject.Wires].
func (w *wires) Random() float64 { return w.random.Float64() }

// Hold implements [inject.Wires].
func (w *wires) Hold(until time.Duration, h *inject.Held) bool { return w.hold(until, h, h.Len()) }

func (w *wires) hold(until time.Duration, h *inject.Held, size int) bool {
	if len(w.queue) >= maxHeld || w.size+size > maxHeldBytes {
		return false
	}
	t := w.under
	t.until, t.seq, t.held, t.size = until, w.seq, h, size
	if len(t.frame) > maxWatched {
		t.frame = nil
	}
	t.frame = bytes.Clone(t.frame)
	w.seq++
	w.size += size
	heap.Push(&w.queue, t)
	if w.queue[0].seq == t.seq {
		select {
		case w.earlier <- struct{}{}:
		default:
		}
	}
	return true
}

// due takes the next packet whose time has come; ok is false for none.
func (w *wires) due() (t transit, ok bool) {
	if len(w.queue) == 0 || w.queue[0].until > w.now() {
		return transit{}, false
	}
	t = heap.Pop(&w.queue).(transit)
	w.size -= t.size
	return t, true
}

// transits is a heap: the earliest first, of equal ones that which came first.
type transits []transit

func (q transits) Len() int { return len(q) }

func (q transits) Less(i, j int) bool {
	return q[i].until < q[j].until || q[i].until == q[j].until && q[i].seq < q[j].seq
}

func (q transits) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop implement [heap.Interface].
func (q *transits) Push(x any) { *q = append(*q, x.(transit)) }

// Pop implements [heap.Interface].
func (q *transits) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = transit{}
	*q = old[:len(old)-1]
	return last
}

// goOn lets packets go on that slow links hold, each at its time, until the network is
// down.
func (n *Net) goOn() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-n.host.Done():
			return
		case <-n.wires.earlier:
		case <-timer.C:
		}
		timer.Reset(n.resume())
	}
}

// inARow is how many packets go on before others get the lock.
const inARow = 64

// resume lets the packets go on whose time has come, and returns how long it is until
// that of the next.
func (n *Net) resume() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range inARow {
		t, ok := n.wires.due()
		if !ok {
			break
		}
		if !t.from.gone {
			n.resumed(t)
		}
	}
	if len(n.wires.queue) == 0 {
		return time.Hour
	}
	return n.wires.queue[0].until - n.wires.now()
}

// resumed lets one packet go on.
func (n *Net) resumed(t transit) {
	n.wires.under = t
	n.captures.begin(nil, nil)
	f, arrived := n.ports.Resume(t.held, n.now())
	if len(t.frame) > 0 {
		n.watch.see(n, t.from, t.frame, f, arrived, true)
	}
	n.captures.end(t.from, f, arrived, t.offload.Checksum)
	n.finish(f, arrived, t.offload)
}
