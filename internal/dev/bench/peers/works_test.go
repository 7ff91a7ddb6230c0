//go:build linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/internal/dev/bench/plain"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/lab/replay"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
	"github.com/winlab-dev/winlab/sim/trace"
)

const labFile = "fixtures/labs/l2bridge-flannel-host-gw.yaml"

// bench is what works share.
type bench struct {
	dir, winlab string
	capture     string // a file
	packets     int
	cluster     *lab.Cluster
	ovs         *sandbox // nil without Open vSwitch
}

func newBench(ctx context.Context, winlab string, packets int) (b *bench, err error) {
	if _, err := os.Stat(labFile); err != nil {
		return nil, fmt.Errorf("run this in the root of the repository: %w", err)
	}
	if winlab, err = filepath.Abs(winlab); err != nil {
		return nil, err
	}
	if _, err := os.Stat(winlab); err != nil {
		return nil, fmt.Errorf("%w; build it with make build", err)
	}
	b = &bench{winlab: winlab, packets: packets}
	if b.dir, err = os.MkdirTemp("", "winlab-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	f, err := lab.Load(labFile)
	if err != nil {
		return nil, err
	}
	if b.cluster, err = lab.Build(ctx, f, lab.Options{}); err != nil {
		return nil, err
	}
	if err := b.writeCapture(); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err == nil {
		if b.ovs, err = startOVS(ctx, filepath.Join(b.dir, "ovs")); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) close() {
	if b.ovs != nil {
		b.ovs.close()
	}
	_ = os.RemoveAll(b.dir)
}

// writeCapture makes the capture: 2,000 flows between pods, to a Service and to outside.
func (b *bench) writeCapture() error {
	var errs []error
	at := func(name string) netip.Addr {
		a, err := b.cluster.Address(name)
		errs = append(errs, err)
		return a
	}
	vip := netip.Addr{}
	for _, s := range b.cluster.Kube.Services {
		if s.Key() == "default/win-webserver" {
			vip = s.ClusterIPs[0]
		}
	}
	to := netip.AddrPortFrom
	t := replaytest.Traffic{Packets: b.packets, Flows: min(2000, b.packets), Seed: 1,
		Sources: []netip.Addr{at("pod/client"), at("pod/neighbour"), at("pod/peer"), at("pod/linux-client")},
		Targets: []netip.AddrPort{to(at("pod/peer"), 80), to(vip, 80), to(at("host/internet"), 443), to(at("pod/neighbour"), 53),
			to(at("host/lan"), 80), to(at("host/internet"), 0), to(at("pod/client"), 9)}}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.capture = filepath.Join(b.dir, "million.pcapng")
	f, err := os.Create(b.capture)
	if err != nil {
		return err
	}
	return errors.Join(t.Write(f), f.Close())
}

func (b *bench) works(context.Context) []work {
	rewrite, ovsLibrary, ovsCommand := b.tcprewrite, b.ovsTraces, b.ovsAppctl
	if _, err := exec.LookPath("tcprewrite"); err != nil {
		rewrite = nil
	}
	if b.ovs == nil {
		ovsLibrary, ovsCommand = nil, nil
	}
	analyzer := b.analyzer
	if _, err := exec.LookPath("netpol-analyzer"); err != nil {
		analyzer = nil
	}
	command := []string{"trace", labFile, "--from", "pod/client", "--to", "host/internet:443", "-o", "summary"}
	return []work{
		{name: "replay, one port", unit: "a packet", winlab: b.onePort, peer: rewrite, peerName: "tcprewrite", budget: 4, goal: 8,
			not: "winlab: nothing is written; parse, look up and rewrite at one port of two stateful layers. tcprewrite: one rewrite, written; no state"},
		{name: "replay, all hops", unit: "a packet", winlab: b.replay(false), peer: rewrite, peerName: "tcprewrite", budget: 1.8, goal: 2,
			not: "winlab: nothing is written; every hop of the path and the flows on it are worked. tcprewrite: one rewrite, written; no state, no path"},
		{name: "replay, all hops", unit: "a packet", winlab: b.replay(false), peer: b.plain, peerName: "by hand in Go", budget: 20, goal: 4,
			atMost: true,
			not:    "by hand: read, one map of flows, one rewrite; nothing written"},
		{name: "replay, written at every hop", unit: "a frame written", winlab: b.replay(true), peer: rewrite, peerName: "tcprewrite", budget: 3,
			goal: 2,
			not:  "winlab writes pcapng with a comment at each hop, tcprewrite pcap"},
		{name: "one trace, library", unit: "", winlab: b.traces, peer: ovsLibrary, peerName: "ofproto/trace", budget: 1,
			within: 20 * time.Microsecond,
			not:    "winlab: there and back over two machines, every step kept, not put into words. Open vSwitch: one bridge, four tables, one direction, put into words and sent"},
		{name: "one trace, command", unit: "", winlab: b.command(command...), peer: ovsCommand, peerName: "ovs-appctl", budget: 6,
			within: 8 * time.Millisecond, atMost: true,
			not: "winlab reads and builds the lab first; ovs-appctl asks a switch that runs, whose time is counted"},
		{name: "run of all fixtures", unit: "", winlab: b.command("run", "-d", filepath.Join(b.dir, "report")), peer: b.plain1M, peerName: hand,
			budget: 150, within: 3 * time.Second, atMost: true, peak: 200 << 20,
			not: "report, traces, drawings and JUnit are written"},
		{name: "1,000 nodes of 30 pods, 100 Services, host-gw", winlab: b.large(labtest.Size{Nodes: 1000, Pods: 30, Services: 100}, "trace"),
			peer: b.plain1M, peerName: hand, budget: 110, within: 5 * time.Second, atMost: true, peak: 500 << 20,
			not: built},
		{name: "100 nodes of 30 pods, 100 Services, vxlan", winlab: b.large(labtest.Size{Nodes: 100, Pods: 30, Services: 100, VXLAN: true},
			"trace"), peer: b.plain1M, peerName: hand, budget: 14, within: 500 * time.Millisecond, atMost: true, peak: 200 << 20,
			not: built},
		{name: "10 nodes, 10,000 Services, DSR", winlab: b.large(labtest.Size{Nodes: 10, Pods: 30, Services: 10_000, DSR: true}, "trace"),
			peer: b.plain1M, peerName: hand, budget: 60, within: 5 * time.Second, atMost: true, peak: 500 << 20,
			not: built},
		{name: "15,000 pods, 1,000 Services: reach of one flow", winlab: b.large(labtest.Size{Nodes: 500, Pods: 30, Services: 1000}, "reach"),
			peer: b.plain1M, peerName: hand, budget: 60, within: 1600 * time.Millisecond, atMost: true, peak: 500 << 20,
			not: built},
		{name: "all pairs of 400 pods, each traced", unit: "a pair", winlab: b.pairs, peer: b.plain, peerName: "a packet by hand", budget: 1200,
			within: 18750 * time.Nanosecond, atMost: true,
			not: "the lab is built; every step is recorded, in memory that the next flow uses again; winlab reach asks by classes and sends few of these"},
		{name: "reach: who reaches whom of 400 pods, 50 policies", winlab: b.large(policies, "reach-all"), peer: analyzer,
			peerName: "netpol-analyzer", budget: 50, goal: 100,
			not: "winlab reads the lab, builds it with the ACLs of Calico's agent and asks by classes for the ports that pods declare; netpol-analyzer knows policies and no network, and lists connections of all ports"},
		{name: "envelope: 5,000 nodes, 150,000 pods, 10,000 Services",
			winlab: b.large(labtest.Size{Nodes: 5000, Pods: 30, Services: 10_000}, "trace"), peer: b.plain1M, peerName: hand, budget: 900,
			within: 60 * time.Second, atMost: true, peak: 4 << 30, large: true,
			not: built},
		{name: "envelope: reach of one flow", winlab: b.large(labtest.Size{Nodes: 5000, Pods: 30, Services: 10_000}, "reach"), peer: b.plain1M,
			peerName: hand, budget: 900, within: 60 * time.Second, atMost: true, peak: 4 << 30, large: true,
			not: built},
	}
}

const (
	hand  = "a million packets by hand"
	built = "winlab reads the lab, builds it and sends one flow to a Service, as a command; the peer knows no cluster"
)

// policies are 400 pods in 50 groups, with a NetworkPolicy each.
var policies = labtest.Size{Nodes: 8, Pods: 50, Backends: 8, Policies: 50, Agent: "calico"}

// analyzer lists the connections among the pods of [policies].
func (b *bench) analyzer(ctx context.Context) (cost, error) {
	dir := filepath.Join(b.dir, "analyzer")
	if _, err := os.Stat(dir); err != nil {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return cost{}, err
		}
		if _, err := labtest.Write(dir, policies); err != nil {
			return cost{}, err
		}
		for _, name := range []string{"lab.yaml", "hostgw.conf", "net-conf.json"} { // no objects of Kubernetes
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return cost{}, err
			}
		}
	}
	return b.child(ctx, "netpol-analyzer", "list", "-q", "--dirpath", dir)
}

// large is a command on a lab of a size: trace or reach of one flow to a Service, or reach-all of
// all pods. The lab is written once.
func (b *bench) large(s labtest.Size, verb string) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		dir := filepath.Join(b.dir, fmt.Sprintf("%d-%d-%d", s.Nodes, s.Pods, s.Services))
		file := filepath.Join(dir, "lab.yaml")
		if _, err := os.Stat(file); err != nil {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return cost{}, err
			}
			if file, err = labtest.Write(dir, s); err != nil {
				return cost{}, err
			}
		}
		args := []string{verb, file, "--from", "pod/" + labtest.PodName(0, 0), "--to", "svc/s00001"}
		switch verb {
		case "trace":
			args[len(args)-1] += ":80"
		case "reach-all":
			args = []string{"reach", file, "--from", "pod/*", "--to", "pod/*"}
		}
		return b.child(ctx, b.winlab, args...)
	}
}

// pairs traces all pairs of 400 pods on eight nodes.
func (b *bench) pairs(ctx context.Context) (cost, error) {
	dir := filepath.Join(b.dir, "pairs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cost{}, err
	}
	file, err := labtest.Write(dir, labtest.Size{Nodes: 8, Pods: 50, Services: 50, Backends: 8})
	if err != nil {
		return cost{}, err
	}
	f, err := lab.Load(file)
	if err != nil {
		return cost{}, err
	}
	c, err := lab.Build(ctx, f, lab.Options{})
	if err != nil {
		return cost{}, err
	}
	return self(func() (n int, err error) {
		const pods = 400
		request := func(i int) lab.Request {
			from, to := i/pods, i%pods
			return lab.Request{From: "pod/" + labtest.PodName(from/50, from%50), To: "pod/" + labtest.PodName(to/50, to%50) + ":80"}
		}
		return pods * pods, c.TraceAll(ctx, pods*pods, request, func(_ int, t *trace.Trace, err error) error {
			if err == nil && t.Verdict != trace.Delivered {
				err = fmt.Errorf("%s to %s is %s", t.Flow.From, t.Flow.To, t.Verdict)
			}
			return err
		})
	})
}

// self measures work in this process; the garbage that it leaves is collected in its time, less what
// a collection takes that finds none: the lab and the peers' data are there anyway. On one
// processor: the collector keeps those busy that have nothing to do, and that would count.
func self(units func() (int, error)) (cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	begun := usage(syscall.RUSAGE_SELF)
	runtime.GC()
	before := usage(syscall.RUSAGE_SELF)
	n, err := units()
	runtime.GC()
	c := cost{cpu: usage(syscall.RUSAGE_SELF) - before - (before - begun), units: n}
	if err == nil && c.cpu <= 0 {
		err = errors.New("the work takes less than a collection, and cannot be measured; write more -packets")
	}
	return c, err
}

func usage(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (b *bench) replay(write bool) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		in, err := os.Open(b.capture)
		if err != nil {
			return cost{}, err
		}
		defer in.Close()
		var out io.Writer
		if write {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				return cost{}, err
			}
			defer null.Close()
			out = null
		}
		return self(func() (int, error) {
			s, err := replay.Run(ctx, b.cluster, in, out, replay.Options{})
			if err != nil {
				return 0, err
			}
			if s.Packets != b.packets || s.Frames < b.packets {
				return 0, fmt.Errorf("%d of %d packets crossed %d hops", s.Packets, b.packets, s.Frames)
			}
			if write {
				return s.Frames + s.Packets, nil // the packets as they were are written, too
			}
			return s.Packets, nil
		})
	}
}

// onePort plays the capture through one port.
func (b *bench) onePort(context.Context) (cost, error) {
	in, err := os.Open(b.capture)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	return self(func() (int, error) {
		n, translated, err := replaytest.OnePort(in)
		if err == nil && (n != b.packets || translated < n/4) {
			err = fmt.Errorf("%d of %d packets passed, %d were translated", n, b.packets, translated)
		}
		return n, err
	})
}

// plain is the capture rewritten by hand.
func (b *bench) plain(context.Context) (cost, error) {
	in, err := os.Open(b.capture)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	return self(func() (int, error) {
		r, err := capture.Open(in)
		if err != nil {
			return 0, err
		}
		w := plain.New([4]byte{192, 168, 1, 11})
		for n := 0; ; n++ {
			data, _, err := r.Next()
			if err == io.EOF {
				return n, nil
			}
			if err != nil {
				return 0, err
			}
			if !w.Rewrite(data) {
				return 0, fmt.Errorf("packet %d is not rewritten", n+1)
			}
		}
	})
}

// plain1M is what a million of these would cost.
func (b *bench) plain1M(ctx context.Context) (cost, error) {
	c, err := b.plain(ctx)
	c.cpu, c.units = time.Duration(c.perUnit()*1e6), 1
	return c, err
}

func (b *bench) tcprewrite(ctx context.Context) (cost, error) {
	c, err := b.child(ctx, "tcprewrite", "--infile="+b.capture, "--outfile="+filepath.Join(b.dir, "rewritten.pcap"),
		"--srcipmap=10.244.0.0/16:192.168.0.0/16", "--enet-dmac=02:00:00:00:00:09", "--enet-smac=02:00:00:00:00:08")
	c.units = b.packets
	return c, err
}

// command runs winlab.
func (b *bench) command(args ...string) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) { return b.child(ctx, b.winlab, args...) }
}

// child runs a program and measures it as a whole.
func (b *bench) child(ctx context.Context, name string, args ...string) (cost, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	if b.ovs != nil {
		cmd.Env = b.ovs.env
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", name, err, out[max(0, len(out)-500):])
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), units: 1, peak: u.Maxrss << 10}, nil
}

func (b *bench) traces(ctx context.Context) (cost, error) {
	const n = 5000
	return self(func() (int, error) {
		for range n {
			t, err := b.cluster.Trace(ctx, lab.Request{From: "pod/client", To: "pod/peer:80"})
			if err != nil {
				return 0, err
			}
			if t.Verdict != "delivered" {
				return 0, fmt.Errorf("the packet was not delivered: %s", t.Verdict)
			}
		}
		return n, nil
	})
}
