package lab

import (
	"fmt"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// BenchmarkTraceLab is a flow from a pod to a pod on another node, there and
// back, with every step recorded.
func BenchmarkTraceLab(b *testing.B) {
	f, err := Load("../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		b.Fatal(err)
	}
	c, err := Build(b.Context(), f, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		t, err := c.Trace(b.Context(), Request{From: "pod/client", To: "pod/peer:80"})
		if err != nil || t.Verdict != "delivered" {
			b.Fatal(t, err)
		}
	}
}

// BenchmarkTraceLarge is such a flow in clusters of other sizes, to a pod and to a Service.
func BenchmarkTraceLarge(b *testing.B) {
	for _, bc := range []struct {
		name string
		size labtest.Size
	}{
		{"10-nodes-100-Services", labtest.Size{Nodes: 10, Pods: 30, Services: 100}},
		{"10-nodes-10000-Services", labtest.Size{Nodes: 10, Pods: 30, Services: 10000, DSR: true}},
		{"1000-nodes-100-Services", labtest.Size{Nodes: 1000, Pods: 30, Services: 100}},
		{"100-nodes-100-Services-vxlan", labtest.Size{Nodes: 100, Pods: 30, Services: 100, VXLAN: true}},
		{"10-nodes-1000-policies", labtest.Size{Nodes: 10, Pods: 30, Services: 100, Policies: 1000}},
	} {
		path, err := labtest.Write(b.TempDir(), bc.size)
		if err != nil {
			b.Fatal(err)
		}
		var c *Cluster
		for _, to := range []string{"pod/" + labtest.PodName(bc.size.Nodes-1, 0) + ":80", "svc/" + labtest.ServiceName(7) + ":80"} {
			b.Run(bc.name+"/"+to[:3], func(b *testing.B) {
				if c == nil {
					f, err := Load(path)
					if err != nil {
						b.Fatal(err)
					}
					if c, err = Build(b.Context(), f, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				send := func() {
					if _, err := c.Trace(b.Context(), Request{From: "pod/" + labtest.PodName(0, 0), To: to}); err != nil {
						b.Fatal(err)
					}
				}
				for range 8 { // the first ones make what is kept
					send()
				}
				b.ReportAllocs()
				for b.Loop() {
					send()
				}
			})
		}
	}
}

// BenchmarkTraceAll is one of all pairs of 400 pods on eight nodes.
func BenchmarkTraceAll(b *testing.B) {
	const pods = 400
	path, err := labtest.Write(b.TempDir(), labtest.Size{Nodes: 8, Pods: 50, Services: 50, Backends: 8})
	if err != nil {
		b.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		b.Fatal(err)
	}
	c, err := Build(b.Context(), f, Options{})
	if err != nil {
		b.Fatal(err)
	}
	name := func(i int) string { return "pod/" + labtest.PodName(i/50, i%50) }
	request := func(i int) Request { return Request{From: name(i / pods % pods), To: name(i%pods) + ":80"} }
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.TraceAll(b.Context(), b.N, request, func(_ int, t *trace.Trace, err error) error {
		if err == nil && t.Verdict != trace.Delivered {
			err = fmt.Errorf("%s to %s is %s", t.Flow.From, t.Flow.To, t.Verdict)
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
}
