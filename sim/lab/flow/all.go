package flow

import (
	"context"
	"runtime"
	"sync"

	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TraceAll traces n flows, and calls got with the number of each and its trace, or the error of a
// flow that cannot be sent. The trace is valid until got returns: its memory is used for the next
// one. A caller that wants to keep part of it must copy that part; strings can be kept.
//
// Where that pays, flows go through several clusters of the same plan at once, and got is
// called by several goroutines, in no order and never twice for one flow; each cluster
// says of a flow what the others would. That needs a cluster which is as it was built
// ([build.Cluster.AsBuilt]). An error of got ends all; that of the first flow for which it
// returns one is returned, and flows behind that one may be missing.
func (c *Cluster) TraceAll(ctx context.Context, n int, request func(i int) Request,
	got func(i int, t *trace.Trace, err error) error) error {
	if err := c.rebuildChanged(ctx); err != nil {
		return err
	}
	all := []*Cluster{c}
	for len(all) < c.sideBySide(n) {
		b, err := c.Twin(ctx)
		if err != nil {
			return err
		}
		all = append(all, New(b))
	}
	w := work{n: n}
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() {
			c.again = &reused{}
			defer func() { c.again = nil }()
			w.take(func(i int) error {
				t, err := c.Trace(ctx, request(i))
				err = got(i, t, err)
				c.again.free()
				return err
			})
		})
	}
	running.Wait()
	return w.err
}

// aCluster is how many flows take as long as building one machine of a cluster, about.
const aCluster = 10

// sideBySide is how many clusters n flows are worth.
func (c *Cluster) sideBySide(n int) int {
	worth := n / (aCluster * max(len(c.Plan.Pods)+len(c.Plan.Nodes), 1))
	if c.run != nil || c.at != 0 || len(c.Plan.OpenBuilds()) > 0 || !c.AsBuilt() {
		return 1
	}
	return max(min(runtime.GOMAXPROCS(0), worth), 1)
}

// work hands out numbers from 0 to n, in pieces and in order.
type work struct {
	n  int
	mu sync.Mutex
	// next is the first number that has not been handed out, failed the number of err.
	next, failed int
	err          error
}

// piece is how many numbers are taken at once.
const piece = 64

// take calls f with numbers until none is left or f fails. As pieces are handed out in
// order, those before a number that failed are done.
func (w *work) take(f func(i int) error) {
	for {
		w.mu.Lock()
		from := w.next
		to := min(from+piece, w.n)
		w.next = to
		w.mu.Unlock()
		for i := from; i < to; i++ {
			if err := f(i); err != nil {
				w.fail(i, err)
				return
			}
		}
		if from == to {
			return
		}
	}
}

// fail records the error of the first number that has one. No more pieces are handed out.
func (w *work) fail(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil || i < w.failed {
		w.failed, w.err = i, err
	}
	w.next = w.n
}

// reused are the sendings of one trace, to be used for the next one.
type reused struct {
	list []*sending
	used int
}

// sending returns a free one, or a new one. A nil reused does not have any.
func (r *reused) sending() *sending {
	if r == nil {
		return &sending{}
	}
	if r.used == len(r.list) {
		r.list = append(r.list, &sending{})
	}
	s := r.list[r.used]
	r.used++
	return s
}

// free makes all sendings free: their steps are no longer used.
func (r *reused) free() {
	for _, s := range r.list[:r.used] {
		s.rec.Reset()
		queue := s.sim.EventQueue
		*s = sending{rec: s.rec, sim: wire.Simulation{EventQueue: queue}}
	}
	r.used = 0
	if len(r.list) > keptSendings {
		r.list = r.list[:keptSendings]
	}
}

// keptSendings bounds what is kept of a flow with many paths.
const keptSendings = 16
