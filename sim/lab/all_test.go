package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// sideBySide makes TraceAll use several clusters, also on a machine with one processor.
func sideBySide(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// traceJSON is a trace as a document has it.
func traceJSON(t *testing.T, tr *trace.Trace) string {
	b, err := tr.MarshalIndent()
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// agree traces flows one by one and all at once, in another order, and wants the same
// bytes.
func agree(t *testing.T, file *File, rs []Request, seed uint64) {
	t.Helper()
	one, err := Build(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, len(rs))
	for i, r := range rs {
		tr, err := one.Trace(t.Context(), r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		want[i] = traceJSON(t, tr)
	}
	all, err := Build(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := max(len(rs), 20*(len(all.Plan.Pods)+len(all.Plan.Nodes)))
	random := rand.New(rand.NewPCG(seed, 1))
	order := make([]int, n)
	for i := range order {
		order[i] = random.IntN(len(rs))
	}
	var wrong atomic.Int32
	calls := make([]atomic.Int32, n)
	err = all.TraceAll(t.Context(), n, func(i int) Request { return rs[order[i]] }, func(i int, tr *trace.Trace, err error) error {
		if calls[i].Add(1); err != nil {
			return err
		}
		if got := traceJSON(t, tr); got != want[order[i]] && wrong.Add(1) < 4 {
			t.Errorf("%+v: %s", rs[order[i]], firstDifference(want[order[i]], got))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if calls[i].Load() != 1 {
			t.Fatalf("flow %d was handed over %d times", i, calls[i].Load())
		}
	}
}

// All flows at once, in memory that is used again and through several clusters, say what
// each of them says alone: in every lab with all of its flows, and in random ones between
// all kinds of ends.
func TestTraceAllIsTrace(t *testing.T) {
	sideBySide(t)
	for i, path := range fixtures(t) {
		file, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Build(t.Context(), file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rs := sampleRequests(c); len(rs) > 0 {
			t.Run(file.Lab.Metadata.Name, func(t *testing.T) { agree(t, file, rs, uint64(i)) })
		}
	}
	for seed := range uint64(4) {
		size := labtest.Size{Nodes: 3, Linux: int(seed) % 2, Pods: 4, Services: 6, Backends: 2, NodePorts: 2, Policies: 3 * int(seed),
			VXLAN: seed%2 == 1, DSR: seed > 1, Seed: seed + 1}
		dir, err := labtest.Write(t.TempDir(), size)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 2))
		var rs []Request
		for range 60 {
			r := Request{From: "pod/" + labtest.PodName(random.IntN(3), random.IntN(4)), To: "pod/" +
				labtest.PodName(random.IntN(3), random.IntN(4)) + ":80"}
			switch random.IntN(5) {
			case 0:
				r.To = "svc/" + labtest.ServiceName(random.IntN(6)) + ":80"
			case 1:
				r.Protocol, r.To = "ping", strings.TrimSuffix(r.To, ":80")
			case 2:
				r.Protocol, r.Size = "udp", 1+random.IntN(3000)
			case 3:
				r.Size, r.TTL = 100, uint8(1+random.IntN(4))
			}
			rs = append(rs, r)
		}
		t.Run(fmt.Sprint("random ", seed), func(t *testing.T) { agree(t, file, rs, seed) })
	}
}

// An error is that of the first flow that has one, however many go at once.
func TestTraceAllFails(t *testing.T) {
	sideBySide(t)
	file := design(t, hostGW)
	c := built(t, file)
	n := 100 * (len(c.Plan.Pods) + len(c.Plan.Nodes))
	request := func(i int) Request {
		if i >= n/2 {
			return Request{From: fmt.Sprint("pod/nobody-", i), To: "pod/peer:80"}
		}
		return Request{From: "pod/client", To: "pod/peer:80"}
	}
	for range 3 {
		err := c.TraceAll(t.Context(), n, request, func(_ int, _ *trace.Trace, err error) error { return err })
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("nobody-%d ", n/2)) {
			t.Fatalf("got %v", err)
		}
	}
	mine := errors.New("enough")
	if err := c.TraceAll(t.Context(), n, request, func(int, *trace.Trace, error) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	if tr, err := c.Trace(t.Context(), request(0)); err != nil || len(tr.Paths[0].Steps) == 0 {
		t.Errorf("afterwards the cluster says %v %v", tr, err)
	}
}

// What was called on a cluster holds for all flows: no other cluster is as it is.
func TestTraceAllAfterCalls(t *testing.T) {
	sideBySide(t)
	c := built(t, design(t, hostGW))
	if !c.AsBuilt() {
		t.Fatal("a cluster that was just built is not as it was built")
	}
	if _, err := c.Trace(t.Context(), Request{From: "pod/client", To: "svc/win-webserver:80"}); err != nil || !c.AsBuilt() {
		t.Fatalf("after a trace it is not as it was built: %v", err)
	}
	if err := c.HNS("win2").DeleteEndpoint(c.PodEndpoint("peer")); err != nil {
		t.Fatal(err)
	}
	if c.AsBuilt() {
		t.Fatal("a call to HNS is not seen")
	}
	request := func(int) Request { return Request{From: "pod/client", To: "pod/peer:80"} }
	want, err := c.Trace(t.Context(), request(0))
	if err != nil || want.Verdict == trace.Delivered {
		t.Fatal(want.Verdict, err)
	}
	text := traceJSON(t, want)
	err = c.TraceAll(t.Context(), 100*(len(c.Plan.Pods)+len(c.Plan.Nodes)), request, func(i int, tr *trace.Trace, err error) error {
		if err != nil || traceJSON(t, tr) != text {
			return fmt.Errorf("flow %d says something else: %v", i, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
