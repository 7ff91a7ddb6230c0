package bench

import (
	"errors"
	"flag"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	envelope = flag.Bool("envelope", false, "run the benchmark of the size for which Kubernetes is tested: a minute, and gigabytes")
	heapFile = flag.String("heap", "", "write a heap profile to this file while the benchmark's lab is there")
)

// BenchmarkEnvelope reads and builds a lab of the size for which Kubernetes is tested, 5,000 nodes
// with 150,000 pods and 10,000 Services, and sends flows in it. It reports seconds for each part, on
// the clock, and the memory that is in use with the lab there, after a collection. make
// bench-envelope runs it, and prints its profiles.
func BenchmarkEnvelope(b *testing.B) {
	if !*envelope {
		b.Skip("takes a minute and gigabytes: make bench-envelope, or -args -envelope")
	}
	path, err := labtest.Write(b.TempDir(), labtest.Size{Nodes: 5000, Pods: 30, Services: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		took := func(name string, do func() error) {
			start := time.Now()
			if err := do(); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			b.ReportMetric(time.Since(start).Seconds(), "s/"+name)
		}
		inUse := func(name string) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB/"+name)
		}
		var f *lab.File
		var c *lab.Cluster
		send := func(to string) func() error {
			return func() error {
				t, err := c.Trace(b.Context(), lab.Request{From: "pod/" + labtest.PodName(0, 0), To: to + ":80"})
				if err == nil && t.Verdict != trace.Delivered {
					b.Errorf("the flow to %s is %s: %s", to, t.Verdict, t.Summary)
				}
				return err
			}
		}
		took("read", func() (err error) { f, err = lab.Load(path); return err })
		inUse("read")
		took("build", func() (err error) { c, err = lab.Build(b.Context(), f, lab.Options{}); return err })
		inUse("built")
		pod, service := "pod/"+labtest.PodName(4999, 0), "svc/"+labtest.ServiceName(7)
		took("first-trace", send(pod))
		took("first-to-a-Service", send(service))
		for range 8 { // what follows uses what these have made
			if err := errors.Join(send(pod)(), send(service)()); err != nil {
				b.Fatal(err)
			}
		}
		took("trace", send(pod))
		took("trace-to-a-Service", send(service))
		inUse("traced")
		if *heapFile != "" {
			w, err := os.Create(*heapFile)
			if err != nil {
				b.Fatal(err)
			}
			if err := pprof.Lookup("heap").WriteTo(w, 0); err != nil {
				b.Fatal(err)
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		runtime.KeepAlive(c)
	}
}
