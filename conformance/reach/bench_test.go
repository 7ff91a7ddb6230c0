package reach

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
)

// large builds a lab of a size.
func large(b *testing.B, s labtest.Size) *lab.Cluster {
	b.Helper()
	path, err := labtest.Write(b.TempDir(), s)
	if err != nil {
		b.Fatal(err)
	}
	return built(b, path, "", nil)
}

// size400 are 400 pods in 50 groups of equal pods, with a policy each that an agent enforces.
var size400 = labtest.Size{Nodes: 8, Pods: 50, Backends: 8, Policies: 50, Agent: "calico"}

// BenchmarkReach asks who reaches whom among 400 pods with 50 policies.
func BenchmarkReach(b *testing.B) {
	c := large(b, size400)
	for b.Loop() {
		r, err := Run(b.Context(), c, Options{From: []string{"pod/*"}, To: []string{"pod/*"}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Pairs), "flows")
		b.ReportMetric(float64(r.Traced), "traces")
	}
}

// BenchmarkPairwise traces a hundred of these flows one by one, the measure for the one above.
func BenchmarkPairwise(b *testing.B) {
	c := large(b, size400)
	for b.Loop() {
		for i := range 100 {
			r := lab.Request{From: "pod/" + labtest.PodName(i%8, i%50), To: "pod/" + labtest.PodName(i*7%8, i*13%50) + ":80"}
			if _, err := c.Trace(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/flow")
}
