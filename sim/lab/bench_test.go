package lab

import "testing"

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
