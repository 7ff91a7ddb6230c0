package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/replay"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
	"github.com/winlab-dev/winlab/sim/trace"
)

const hostGW = "l2bridge-flannel-host-gw"

func cluster(tb testing.TB, name string) *lab.Cluster {
	tb.Helper()
	f, err := lab.Load(filepath.Join("../../../fixtures/labs", name+".yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	c, err := lab.Build(tb.Context(), f, lab.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func addr(tb testing.TB, c *lab.Cluster, name string) netip.Addr {
	tb.Helper()
	a, err := c.Address(name)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// traffic is a capture of pods that talk to pods, a Service, the office and the
// internet.
func traffic(tb testing.TB, c *lab.Cluster, packets, flows int) []byte {
	tb.Helper()
	to := func(name string, port uint16) netip.AddrPort { return netip.AddrPortFrom(addr(tb, c, name), port) }
	var vip netip.Addr
	for _, s := range c.Kube.Services {
		if s.Key() == "default/win-webserver" {
			vip = s.ClusterIPs[0]
		}
	}
	t := replaytest.Traffic{Packets: packets, Flows: flows, Seed: 1,
		Sources: []netip.Addr{addr(tb, c, "pod/client"), addr(tb, c, "pod/neighbour"), addr(tb, c, "pod/peer"), addr(tb, c, "pod/linux-client")},
		Targets: []netip.AddrPort{to("pod/peer", 80), netip.AddrPortFrom(vip, 80), to("host/internet", 443), to("pod/neighbour", 53),
			to("host/lan", 80), to("host/internet", 0), to("pod/client", 9)}}
	var b bytes.Buffer
	if err := t.Write(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// record is one packet of an output.
type record struct {
	hop, comment string
	frame        []byte
}

func play(tb testing.TB, c *lab.Cluster, in []byte, o replay.Options) (*replay.Summary, []record, []byte) {
	tb.Helper()
	var out bytes.Buffer
	s, err := replay.Run(tb.Context(), c, bytes.NewReader(in), &out, o)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := capture.Open(bytes.NewReader(out.Bytes()))
	if err != nil {
		tb.Fatal(err)
	}
	var rs []record
	for {
		data, info, err := r.Next()
		if err == io.EOF {
			return s, rs, out.Bytes()
		}
		if err != nil {
			tb.Fatal(err)
		}
		rs = append(rs, record{info.Name, info.Comment, bytes.Clone(data)})
	}
}

var designs = []string{"ovs-l3", "rras-l3", hostGW, "l2bridge-win-bridge-udr", "l2bridge-azure-cni", "l2tunnel-azure-cni",
	"overlay-win-overlay", "overlay-flannel-vxlan", "transparent-ovn-kubernetes", "nat-winnat"}

// The fast way (unified flows, no record) gives the same file as the slow one.
func TestFastIsSlow(t *testing.T) {
	for _, name := range designs {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, name)
			in := traffic(t, c, 1500, 60)
			fast, rs, a := play(t, c, in, replay.Options{})
			_, slow, b := play(t, c, in, replay.Options{Record: true})
			if !bytes.Equal(a, b) {
				for i := range rs {
					if i >= len(slow) || rs[i].hop != slow[i].hop || rs[i].comment != slow[i].comment || !bytes.Equal(rs[i].frame, slow[i].frame) {
						t.Fatalf("record %d differs:\nfast %s %q\n%x\nslow %s %q\n%x", i, rs[i].hop, rs[i].comment, rs[i].frame, slow[i].hop, slow[i].comment,
							slow[i].frame)
					}
				}
				t.Fatal("the files differ")
			}
			if fast.Packets != 1500 || len(fast.Outcomes) < 2 {
				t.Errorf("summary %+v", fast)
			}
			for _, r := range rs {
				p, err := packet.New(r.frame)
				if err == nil {
					err = p.VerifyChecksums()
				}
				if err != nil {
					t.Fatalf("%s: %v in %x", r.hop, err, r.frame)
				}
			}
		})
	}
}

// captureOfOneFrame is a capture of one frame.
func captureOfOneFrame(tb testing.TB, specs ...packet.Spec) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, "eth0")
	if err != nil {
		tb.Fatal(err)
	}
	for i, s := range specs {
		if err := w.Write(0, replaytest.Start.Add(time.Duration(i)*time.Second), packet.Build(s).Bytes(), ""); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func syn(src, dst netip.Addr, port uint16) packet.Spec {
	return packet.Spec{Src: src, Dst: dst, Proto: packet.TCP, SrcPort: 40000, DstPort: port, TCPFlags: packet.SYN, TTL: 128}
}

func TestHops(t *testing.T) {
	c := cluster(t, hostGW)
	client, peer, internet := addr(t, c, "pod/client"), addr(t, c, "pod/peer"), addr(t, c, "host/internet")
	win1 := addr(t, c, "node/win1")
	for _, tt := range []struct {
		name, port string
		spec       packet.Spec
		verdict    trace.Verdict
		reason     trace.Reason
		hops       []string // each must be crossed, in this order
		src        netip.Addr
	}{
		{"pod to pod on another node", "", syn(client, peer, 80), trace.Delivered, trace.OK,
			[]string{"capture", "win1 endpoint", "wire nodes", "win2 "}, client},
		{"out with OutBoundNAT", "", syn(client, internet, 443), trace.Delivered, trace.OK,
			[]string{"win1 endpoint", "wire nodes", "wire uplink", "wire internet"}, win1},
		{"closed port", "", syn(client, peer, 81), trace.Rejected, trace.PortClosed, []string{"wire nodes"}, client},
		{"by the wire", "wire/nodes", syn(internet, peer, 80), trace.Delivered, trace.OK, []string{"wire nodes", "win2 "}, internet},
		{"no route", "", syn(client, netip.MustParseAddr("192.0.2.1"), 80), trace.Dropped, trace.NoRoute, []string{"wire nodes", "wire uplink"},
			win1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, rs, _ := play(t, c, captureOfOneFrame(t, tt.spec), replay.Options{Port: tt.port})
			if len(s.Outcomes) != 1 || s.Outcomes[0].Verdict != tt.verdict || s.Outcomes[0].Reason != tt.reason {
				t.Errorf("outcomes %+v, want %s %s", s.Outcomes, tt.verdict, tt.reason)
			}
			i := 0
			for _, h := range tt.hops {
				n := slices.IndexFunc(rs[i:], func(r record) bool { return strings.HasPrefix(r.hop, h) })
				if n < 0 {
					t.Fatalf("hop %q is not crossed after %d in %v", h, i, hopsOf(rs))
				}
				i += n
			}
			p, _ := packet.New(rs[len(rs)-1].frame)
			if got := p.Headers().Src; got != tt.src {
				t.Errorf("last seen with source %s, want %s", got, tt.src)
			}
			if !strings.HasPrefix(rs[0].comment, string(tt.verdict)) {
				t.Errorf("comment %q", rs[0].comment)
			}
		})
	}
}

func hopsOf(rs []record) []string {
	var hs []string
	for _, r := range rs {
		hs = append(hs, r.hop)
	}
	return hs
}

// The clock of a replay is that of the capture: a connection that was idle for
// longer than its flow lives gets another source port or is dropped, as in a trace.
func TestClock(t *testing.T) {
	c := cluster(t, hostGW)
	first := syn(addr(t, c, "pod/client"), addr(t, c, "host/internet"), 443)
	data := first
	data.TCPFlags = packet.ACK
	var b bytes.Buffer
	w, _ := capture.NewWriter(&b, "eth0")
	for i, s := range []packet.Spec{first, data, data} {
		at := replaytest.Start.Add([]time.Duration{0, time.Minute, time.Hour}[i])
		if err := w.Write(0, at, packet.Build(s).Bytes(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ := play(t, c, b.Bytes(), replay.Options{})
	if len(s.Outcomes) != 2 || s.Outcomes[0].Verdict != trace.Delivered || s.Outcomes[0].Packets != 2 {
		t.Errorf("two packets arrive, the one after an hour does not: %+v", s.Outcomes)
	}
}

func TestDamaged(t *testing.T) {
	c := cluster(t, hostGW)
	in := traffic(t, c, 20, 5)
	for _, tt := range []struct {
		name string
		in   []byte
		want string // in the summary, or in the error when it begins with !
	}{
		{"ends inside a packet", in[:len(in)-7], "19"},
		{"nothing", nil, "!0 bytes"},
		{"text", []byte("this is not a capture"), "!neither pcap nor pcapng"},
		{"port", in, "!there is no port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := replay.Options{}
			if tt.name == "port" {
				o.Port = "pod/nobody"
			}
			s, err := replay.Run(t.Context(), c, bytes.NewReader(tt.in), io.Discard, o)
			if want, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
				return
			}
			if err != nil || len(s.Skipped) == 0 || !strings.Contains(s.Skipped[0], tt.want) {
				t.Errorf("%v %+v, want %q in what was skipped", err, s, tt.want)
			}
		})
	}
	bad := captureOfOneFrame(t, syn(addr(t, c, "pod/client"), addr(t, c, "pod/peer"), 80))
	i := bytes.Index(bad, []byte{0x08, 0x00, 0x45})
	bad[i+2] = 0x4f // a header longer than the packet
	s, rs, _ := play(t, c, bad, replay.Options{})
	if s.Malformed != 1 || len(s.Skipped) != 1 || len(rs) != 1 {
		t.Errorf("a malformed packet is written as it was and not played: %+v", s)
	}
}

// FuzzReplay holds that no capture makes a replay panic, and that the slow way
// gives the same file as the fast one.
func FuzzReplay(f *testing.F) {
	c := cluster(f, hostGW)
	o := cluster(f, "overlay-flannel-vxlan")
	f.Add(traffic(f, c, 12, 7))
	f.Add(traffic(f, o, 12, 7))
	f.Add(captureOfOneFrame(f, packet.Spec{EthDst: packet.Broadcast, Src: addr(f, c, "pod/client"),
		Dst: netip.MustParseAddr("255.255.255.255"), Proto: packet.UDP, SrcPort: 68, DstPort: 67}))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, c := range []*lab.Cluster{c, o} {
			var a, b bytes.Buffer
			s1, err1 := replay.Run(t.Context(), c, bytes.NewReader(in), &a, replay.Options{})
			s2, err2 := replay.Run(t.Context(), c, bytes.NewReader(in), &b, replay.Options{Record: true})
			if (err1 == nil) != (err2 == nil) {
				t.Fatalf("fast %v, slow %v", err1, err2)
			}
			if err1 == nil && (!bytes.Equal(a.Bytes(), b.Bytes()) || s1.Packets != s2.Packets) {
				t.Fatalf("fast %+v, slow %+v", s1, s2)
			}
		}
	})
}

// A replay that is interrupted returns no summary, also when it was waiting for
// packets.
func TestContextEndsReplay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, w := io.Pipe()
	defer w.Close()
	cancel()
	if s, err := replay.Run(ctx, cluster(t, hostGW), in, nil, replay.Options{}); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", s, err)
	}
}
