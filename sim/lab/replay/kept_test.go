package replay_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	build "github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/replay"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
)

var update = flag.Bool("update", false, "rewrite testdata/kept.txt")

// rough is a capture of conversations with everything that can matter to a flow that is
// kept: openings and ends in the middle, resets, both directions, packets of all sizes,
// hop limits that run out, pauses longer than flows live, tags, fragments.
func rough(tb testing.TB, c *lab.Cluster, seed uint64, packets, flows int) []byte {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(seed, seed))
	specs := conversations(c, rnd, flows)
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, "eth0")
	if err != nil {
		tb.Fatal(err)
	}
	at, seen := replaytest.Start, map[int]bool{}
	for n := range packets {
		i := rnd.IntN(len(specs))
		s := specs[i]
		size := rnd.IntN(64)
		switch rnd.IntN(12) {
		case 0:
			size = 1350 + rnd.IntN(160)
		case 1:
			size = rnd.IntN(4000)
		}
		s.Payload, s.IPID, s.Seq, s.ICMPSeq = make([]byte, size), uint16(n), rnd.Uint32(), uint16(n)
		for i := range s.Payload {
			s.Payload[i] = byte(rnd.Uint32())
		}
		vary(rnd, &s, !seen[i])
		seen[i] = true
		frame := packet.Build(s).Bytes()
		if rnd.IntN(60) == 0 && s.Src.Is4() && s.VLAN == 0 {
			frame[20] |= 0x20 // more fragments; the checksum of the header is not looked at
		}
		if err := w.Write(0, at, frame, ""); err != nil {
			tb.Fatal(err)
		}
		at = at.Add(time.Duration(rnd.IntN(3000)) * time.Microsecond)
		if rnd.IntN(150) == 0 {
			at = at.Add(time.Duration(rnd.IntN(600)) * time.Second)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// conversations are flows between the machines of a lab, and to its Services.
func conversations(c *lab.Cluster, rnd *rand.Rand, flows int) []packet.Spec {
	var from, to []netip.Addr
	for _, kind := range []build.Kind{build.PodKind, build.NodeKind, build.HostKind} {
		for _, m := range c.Machines(kind) {
			for _, v6 := range []bool{false, true} {
				if a := m.Stack().Address(v6); a.IsValid() {
					if to = append(to, a); kind == build.PodKind {
						from = append(from, a)
					}
				}
			}
		}
	}
	for _, s := range c.Kube.Services {
		to = append(to, s.ClusterIPs...)
	}
	specs := make([]packet.Spec, flows)
	for i := range specs {
		s := packet.Spec{EthSrc: packet.MAC{2, 0, 0, 0, 0, 1}, EthDst: packet.MAC{2, 0, 0, 0, 0, 2}, Src: from[rnd.IntN(len(from))], TTL: 128,
			SrcPort: uint16(20000 + i)}
		for {
			if s.Dst = to[rnd.IntN(len(to))]; s.Dst.Is6() == s.Src.Is6() {
				break
			}
		}
		switch rnd.IntN(6) {
		case 0:
			s.Proto, s.ICMPType, s.ICMPID = packet.ICMP, 8, uint16(i)
			if s.Src.Is6() {
				s.Proto, s.ICMPType = packet.ICMPv6, 128
			}
		case 1:
			s.Proto, s.DstPort = packet.UDP, []uint16{53, 4789, 9}[rnd.IntN(3)]
		default:
			s.Proto, s.DstPort = packet.TCP, []uint16{80, 80, 443, 9}[rnd.IntN(4)]
		}
		specs[i] = s
	}
	return specs
}

// vary makes a packet one that opens, ends or resets its connection, its other direction,
// or one with an unusual header.
func vary(rnd *rand.Rand, s *packet.Spec, first bool) {
	if s.TCPFlags = packet.ACK; first {
		s.TCPFlags = packet.SYN
	} else if s.Proto == packet.TCP {
		switch rnd.IntN(30) {
		case 0:
			s.TCPFlags = packet.SYN
		case 1:
			s.TCPFlags |= packet.FIN
		case 2:
			s.TCPFlags = packet.RST
		}
	}
	if rnd.IntN(5) == 0 {
		s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
		switch s.ICMPType {
		case 8:
			s.ICMPType = 0
		case 128:
			s.ICMPType = 129
		}
	}
	switch rnd.IntN(40) {
	case 0:
		s.TTL = uint8(1 + rnd.IntN(4))
	case 1:
		s.VLAN = 7
	case 2:
		s.ICMPCode = 3
	}
}

// counted is what the rules of all Windows nodes have counted.
func counted(tb testing.TB, c *lab.Cluster) string {
	tb.Helper()
	var b strings.Builder
	for _, n := range c.Nodes {
		if n.HNS == nil {
			continue
		}
		s, err := n.State()
		if err != nil {
			tb.Fatal(err)
		}
		for _, p := range s.Ports {
			for _, r := range p.Rules {
				fmt.Fprintln(&b, n.Name, p.Friendly, r.Layer, r.Group, r.Name, *r.Counts)
			}
		}
	}
	return b.String()
}

func sum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b))[:16] }

// TestKept holds what replays write against what the program wrote before it kept what a
// packet did on its whole way: the file, the summary, and what the rules of VFP counted.
func TestKept(t *testing.T) {
	var b strings.Builder
	b.WriteString("# design traffic: file, summary, counts of rules. Rewritten with -update; a difference is a change of what packets do.\n")
	for _, name := range append([]string{"l2bridge-azure-cni-dual-stack", "l2bridge-sdnbridge"}, designs...) {
		c := cluster(t, name)
		for i, in := range [][]byte{traffic(t, c, 4000, 60), rough(t, c, 1, 4000, 40), rough(t, c, 2, 4000, 8)} {
			for _, files := range []bool{true, false} {
				var out bytes.Buffer
				var s *replay.Summary
				var err error
				if files {
					s, err = replay.Run(t.Context(), c, bytes.NewReader(in), &out, replay.Options{})
				} else {
					s, err = replay.Run(t.Context(), c, bytes.NewReader(in), nil, replay.Options{})
				}
				if err != nil {
					t.Fatal(err)
				}
				j, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s %d %v: %s %s %s\n", name, i, files, sum(out.Bytes()), sum(j), sum([]byte(counted(t, c))))
			}
		}
	}
	const file = "testdata/kept.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range got {
		if i >= len(old) || got[i] != old[i] {
			t.Errorf("%s\nwas\n%s", got[i], old[min(i, len(old)-1)])
		}
	}
}
