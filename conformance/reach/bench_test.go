package reach

import (
	"os"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
)

// withAgent writes a lab whose NetworkPolicies Calico's agent enforces.
func withAgent(b *testing.B, dir string, s labtest.Size) string {
	b.Helper()
	path, err := labtest.Write(dir, s)
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "network: {plugin: flannel,", "network: {policyAgent: calico, plugin: flannel,", 1)), 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// size400 are 400 pods in 50 groups of equal pods, with a policy each.
var size400 = labtest.Size{Nodes: 8, Pods: 50, Backends: 8, Policies: 50}

// BenchmarkReach asks who reaches whom among 400 pods with 50 policies.
func BenchmarkReach(b *testing.B) {
	c := built(b, withAgent(b, b.TempDir(), size400), "", nil)
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
	c := built(b, withAgent(b, b.TempDir(), size400), "", nil)
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
