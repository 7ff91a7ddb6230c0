package observed

import (
	"strings"
	"testing"
)

// BenchmarkLog reads a kubelet's log of about 10 MB.
func BenchmarkLog(b *testing.B) {
	line := "I1118 07:03:40.918264    3412 kubelet.go:1917] SyncLoop (PLEG): \"client_default(0f0d5a4e-5a0e-4f5b-8a52-7d1c0b6e9f01)\", event: &pleg.PodLifecycleEvent{ID:\"0f0d5a4e\"} network policy\n"
	text := strings.Repeat(line, 10<<20/len(line))
	fsys := folder(map[string]string{"kubelet.log": text})
	b.SetBytes(int64(len(text)))
	b.ResetTimer()
	for range b.N {
		ReadFS(fsys)
	}
}

// BenchmarkNode reads a folder as people take it.
func BenchmarkNode(b *testing.B) {
	for range b.N {
		if _, err := Read(b.Context(), "../../../fixtures/nodes/healthy-l2bridge"); err != nil {
			b.Fatal(err)
		}
	}
}
