package replay_test

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab/replay"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
)

// BenchmarkReplayMillion plays a million packets of 2,000 flows from memory. One operation
// is one capture. cpu-ns/packet is the time of the process, also of its collector, which
// counts on a machine that does other things as well.
//
//   - all_hops sends every packet through every machine on its way and counts what became
//     of it and the rules that it met. No frame is written, so frames within the path of a
//     flow that is known are not made.
//   - written makes the frame at each hop, about 4.5 for a packet, and writes them and
//     the capture's own as pcapng with a comment each, to nowhere.
//   - every_machine is all_hops without paths that are kept: each packet visits each
//     machine, with every step recorded. It plays a hundredth of the packets.
func BenchmarkReplayMillion(b *testing.B) {
	const packets = 1_000_000
	c := cluster(b, hostGW)
	for _, v := range []struct {
		name    string
		packets int
		out     io.Writer
		record  bool
	}{
		{"all_hops", packets, nil, false},
		{"written", packets, io.Discard, false},
		{"every_machine", packets / 100, nil, true},
	} {
		b.Run(v.name, func(b *testing.B) {
			in := traffic(b, c, v.packets, 2000)
			b.ReportAllocs()
			b.ResetTimer()
			before, frames := cpuTime(b), 0
			for range b.N {
				s, err := replay.Run(b.Context(), c, bytes.NewReader(in), v.out, replay.Options{Record: v.record})
				if err != nil || s.Packets != v.packets {
					b.Fatal(s, err)
				}
				frames = s.Frames
			}
			used := float64(cpuTime(b) - before)
			n := float64(v.packets * b.N)
			b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(used/n, "cpu-ns/packet")
			if v.out != nil {
				written := float64(v.packets+frames) * float64(b.N)
				b.ReportMetric(used/written, "cpu-ns/frame")
			}
		})
	}
}

// BenchmarkReplayMillionOnePort is [replaytest.OnePort].
func BenchmarkReplayMillionOnePort(b *testing.B) {
	const packets = 1_000_000
	in := traffic(b, cluster(b, hostGW), packets, 2000)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for range b.N {
		n, translated, err := replaytest.OnePort(bytes.NewReader(in))
		if err != nil || n != packets || translated < packets/4 {
			b.Fatal(n, translated, err)
		}
	}
	n := float64(packets * b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(cpuTime(b)-before)/n, "cpu-ns/packet")
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
