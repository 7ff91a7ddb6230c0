package replay_test

import (
	"bytes"
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/lab/replay"
)

// BenchmarkReplayMillion plays a million packets of 2,000 flows from memory. One operation
// is one capture. cpu-ns/packet is the time of the process, also of its collector, which
// counts on a machine that does other things as well.
//
//   - one_port reads the capture and sends every packet through one port of VFP with a
//     translation and an ACL, both stateful, which changes it in place. No machine, route,
//     switch or other port is visited, and nothing is written.
//   - all_hops sends every packet through every machine on its way and counts what became
//     of it and the rules that it met. No frame is written, so frames within the way of a
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

// onePort is a port with the layers of a load balancer and of an ACL.
func onePort() *vfp.Port {
	layer := func(name string, priority uint16, rules ...*vfp.Rule) *vfp.Layer {
		return &vfp.Layer{Name: name, Priority: priority, Stateful: true, Groups: []*vfp.Group{{Name: name, Rules: rules}}}
	}
	backend := packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: netip.MustParseAddr("10.244.2.9"), DstPort: 8080}
	pt := &vfp.Port{ID: "port"}
	pt.SetLayers([]*vfp.Layer{
		layer("ACL", 1, &vfp.Rule{ID: "allow", Flags: vfp.Stateful, Action: vfp.Allow{}}),
		layer("LB", 2, &vfp.Rule{ID: "lb", Flags: vfp.Stateful, Action: vfp.NAT{Set: backend}, Cond: vfp.Cond{DstPorts: []vfp.PortRange{vfp.Port1(80)}}}),
	})
	return pt
}

func BenchmarkReplayMillionOnePort(b *testing.B) {
	const packets = 1_000_000
	in := traffic(b, cluster(b, hostGW), packets, 2000)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for range b.N {
		pt, env, changed := onePort(), &vfp.Env{}, 0
		r, err := capture.Open(bytes.NewReader(in))
		if err != nil {
			b.Fatal(err)
		}
		var p packet.Packet
		var start time.Time
		for {
			data, info, err := r.Next()
			if err == io.EOF {
				break
			}
			if start.IsZero() {
				start = info.Time
			}
			env.Now = info.Time.Sub(start)
			if err != nil || p.Load(data) != nil || !pt.Process(&p, vfp.Out, env).Pass {
				b.Fatal(err, &p)
			}
			if p.Headers().DstPort == 8080 {
				changed++
			}
		}
		if changed < packets/4 {
			b.Fatal("only", changed, "packets were translated")
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
