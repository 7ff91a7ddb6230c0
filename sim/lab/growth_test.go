package lab_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
)

// counted is what one lab cost. Allocations stand for work: they do not depend on the
// machine, and a list that is made for every node, Service or pod has some for each.
type counted struct{ read, build, first, trace, objects float64 }

func count(t *testing.T, s labtest.Size) (n counted) {
	t.Helper()
	path, err := labtest.Write(t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(f func()) float64 {
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		f()
		runtime.ReadMemStats(&b)
		return float64(b.Mallocs - a.Mallocs)
	}
	var f *lab.File
	var c *lab.Cluster
	n.read = allocations(func() { f, err = lab.Load(path) })
	if err != nil {
		t.Fatal(err)
	}
	n.build = allocations(func() { c, err = lab.Build(t.Context(), f, lab.Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range c.Nodes {
		if x.HNS != nil {
			x.HNS.AsIs(func() { n.objects += float64(len(x.HNS.ListEndpoints(nil)) + len(x.HNS.ListLoadBalancers(nil))) })
		}
	}
	if c.Settled() != 0 {
		t.Errorf("%+v: %d nodes were used before a packet was sent", s, c.Settled())
	}
	send := func() {
		if _, err := c.Trace(t.Context(), lab.Request{From: "pod/" + labtest.PodName(0, 0), To: "pod/" + labtest.PodName(s.Nodes-1, 0) +
			":80"}); err != nil {
			t.Fatal(err)
		}
	}
	n.first = allocations(send)
	n.trace = math.Min(allocations(send), allocations(send))
	if c.Settled() != 2 {
		t.Errorf("%+v: a packet from a pod of one node to one of another used %d nodes", s, c.Settled())
	}
	return n
}

// TestGrowth holds how work grows with a lab: building with its size and no faster, a
// trace with its path only. It counts, and takes no time.
func TestGrowth(t *testing.T) {
	base := labtest.Size{Nodes: 12, Pods: 4, Services: 24, Backends: 2}
	const by = 4
	for _, tc := range []struct {
		name string
		of   labtest.Size
		more func(*labtest.Size)
	}{
		{"nodes, host-gw", base, func(s *labtest.Size) { s.Nodes *= by }},
		{"nodes, vxlan", labtest.Size{Nodes: 12, Pods: 4, Services: 24, Backends: 2, VXLAN: true}, func(s *labtest.Size) { s.Nodes *= by }},
		{"pods", base, func(s *labtest.Size) { s.Pods *= by }},
		{"Services", base, func(s *labtest.Size) { s.Services *= by }},
		{"policies", labtest.Size{Nodes: 12, Pods: 4, Services: 24, Backends: 2, Policies: 24}, func(s *labtest.Size) { s.Policies *= by }},
		{"pods with policies", labtest.Size{Nodes: 12, Pods: 4, Services: 24, Backends: 2, Policies: 24},
			func(s *labtest.Size) { s.Pods *= by; s.Policies *= by }},
		{"all", base, func(s *labtest.Size) { s.Nodes *= by; s.Services *= by }},
	} {
		small, large := tc.of, tc.of
		tc.more(&large)
		count(t, small) // what is made once in a process
		a, b := count(t, small), count(t, large)
		exponent := func(x, y float64) float64 { return math.Log(y/x) / math.Log(by) }
		build, objects := exponent(a.read+a.build, b.read+b.build), exponent(a.objects, b.objects)
		t.Logf(
			"%-14s × %d: building %.0f to %.0f, exponent %.2f; objects of HNS %.0f to %.0f, exponent %.2f; first trace %.0f to %.0f; trace %.0f to %.0f",
			tc.name, by, a.read+a.build, b.read+b.build, build, a.objects, b.objects, objects, a.first, b.first, a.trace, b.trace)
		if build > 1.1 || objects > 1.01 {
			t.Errorf("%s: building grows with the power %.2f, what it leaves in HNS with %.2f", tc.name, build, objects)
		}
		if b.trace > 1.05*a.trace {
			t.Errorf("%s: a trace grows with the cluster, from %.0f to %.0f", tc.name, a.trace, b.trace)
		}
	}
}
