package plain

import (
	"bytes"
	"io"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
)

// frames of 2,000 flows.
func frames(tb testing.TB, n int) [][]byte {
	tb.Helper()
	var b bytes.Buffer
	err := replaytest.Traffic{Packets: n, Flows: min(n, 2000), Seed: 1,
		Sources: []netip.Addr{netip.MustParseAddr("10.244.1.4"), netip.MustParseAddr("10.244.1.5")},
		Targets: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.7:80"), netip.MustParseAddrPort("10.244.2.4:53"),
			netip.MustParseAddrPort("203.0.113.10:0")}}.Write(&b)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := capture.Open(&b)
	if err != nil {
		tb.Fatal(err)
	}
	var all [][]byte
	for {
		data, _, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, bytes.Clone(data))
	}
}

// TestRewrite: the baseline does its work, or it would measure nothing. Headers and checksums
// are read by the simulator's parser.
func TestRewrite(t *testing.T) {
	r := New([4]byte{192, 0, 2, 1})
	all := frames(t, 5000)
	for i, f := range all {
		if !r.Rewrite(f) {
			t.Fatalf("packet %d is not rewritten", i)
		}
		var p packet.Packet
		if err := p.Load(f); err != nil {
			t.Fatal(err)
		}
		if got := p.Headers().Src; got != netip.MustParseAddr("192.0.2.1") {
			t.Fatalf("packet %d is from %v", i, got)
		}
		if sum(f[14:34]) != 0xffff {
			t.Fatalf("packet %d: the checksum of the header is wrong", i)
		}
	}
	if r.Flows() != 2000 {
		t.Errorf("%d flows, want 2,000", r.Flows())
	}
	if r.Rewrite([]byte{1, 2, 3}) {
		t.Error("three bytes are a packet")
	}
}

func sum(b []byte) uint16 {
	s := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// BenchmarkPlainPacket is the machine's measure: one of 2,000 flows in turn.
func BenchmarkPlainPacket(b *testing.B) {
	all := frames(b, 2000)
	r := New([4]byte{192, 0, 2, 1})
	src := make([][4]byte, len(all))
	for i, f := range all {
		copy(src[i][:], f[26:])
		r.Rewrite(f)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		copy(all[i][26:], src[i][:]) // the flow that it was
		if !r.Rewrite(all[i]) {
			b.Fatal("not rewritten")
		}
		if i++; i == len(all) {
			i = 0
		}
	}
}
