package replay_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/replay"
)

// BenchmarkReplayMillion plays a million packets of 2,000 flows, reading and
// writing included. One operation is one capture; packets/s is what to look at.
func BenchmarkReplayMillion(b *testing.B) {
	const packets = 1_000_000
	c := cluster(b, hostGW)
	in := traffic(b, c, packets, 2000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, err := replay.Run(b.Context(), c, bytes.NewReader(in), io.Discard, replay.Options{})
		if err != nil || s.Packets != packets {
			b.Fatal(err)
		}
	}
	b.ReportMetric(packets*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}
