package inject_test

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/inject"
)

// fuzzed is a cluster with programs outside.
type fuzzed struct {
	ports   *inject.Ports
	names   []string // of entries, sorted
	entries map[string]*inject.Entry
	now     time.Duration
}

func openPorts(t testing.TB, design string) *fuzzed {
	t.Helper()
	f, err := lab.Load(filepath.Join("../../../fixtures/labs", design+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: "model"})
	if err != nil {
		t.Fatal(err)
	}
	p := &fuzzed{ports: inject.Open(c.Cluster, nil, nil)}
	p.entries = p.ports.Entries()
	for name := range p.entries {
		p.names = append(p.names, name)
	}
	slices.Sort(p.names)
	return p
}

// put sends a frame; a third of them are recorded.
func (p *fuzzed) put(name string, frame []byte, record bool) ([]inject.Arrival, error) {
	p.now += time.Millisecond
	_, arrived, err := p.ports.Put(p.entries[name], frame, inject.Parts{}, p.now, record)
	return arrived, err
}

// talks reports whether the SYN of a pod still reaches its neighbour.
func (p *fuzzed) talks(port uint16) bool {
	from, to := p.entries["pod/default/client"], p.entries["pod/default/neighbour"]
	q := packet.Build(packet.Spec{EthSrc: from.Stack().Links[0].MAC, EthDst: packet.MAC{2, 0, 0, 0, 0, 1}, Src: from.Stack().Address(false),
		Dst:   to.Stack().Address(false),
		Proto: packet.TCP, SrcPort: port, DstPort: 80, TTL: 64, TCPFlags: packet.SYN, Seq: 1})
	arrived, err := p.put(from.Name, q.Bytes(), false)
	return err == nil && len(arrived) == 1 && arrived[0].To == to
}

// FuzzPut puts frames in that no stack would send: cut, with wrong lengths, tunnels
// within tunnels, errors about nothing. Nothing may panic or run without an end, and
// afterwards others still talk.
func FuzzPut(f *testing.F) {
	var all []*fuzzed
	for _, design := range []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "ovs-l3", "nat-winnat"} {
		all = append(all, openPorts(f, design))
	}
	client, peer := netip.MustParseAddr("10.244.1.4"), netip.MustParseAddr("10.244.2.4")
	base := packet.Spec{EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2}, Src: client, Dst: peer, Proto: packet.TCP, SrcPort: 1000,
		DstPort: 80, TTL: 64, TCPFlags: packet.SYN}
	seed := func(edit func(s *packet.Spec)) {
		s := base
		edit(&s)
		for at := range byte(3) {
			f.Add(at, at, packet.Build(s).Bytes())
		}
	}
	inner := packet.Build(base).Bytes()
	seed(func(*packet.Spec) {})
	seed(func(s *packet.Spec) { s.TTL = 1 })
	seed(func(s *packet.Spec) { s.Dst = netip.MustParseAddr("10.96.0.10"); s.Proto = packet.UDP; s.DstPort = 53 })
	seed(func(s *packet.Spec) { s.Proto, s.ICMPType = packet.ICMP, 8 })
	seed(func(s *packet.Spec) { s.Proto, s.ICMPType, s.ICMPCode, s.Payload = packet.ICMP, 3, 3, inner[14:] })
	seed(func(s *packet.Spec) { s.Proto, s.ICMPType, s.Payload = packet.ICMP, 11, []byte{0x4f} })
	seed(func(s *packet.Spec) {
		s.Dst, s.Proto, s.DstPort = netip.MustParseAddr("192.168.1.11"), packet.UDP, 4789
		s.Payload = append([]byte{8, 0, 0, 0, 0, 16, 0, 0}, inner...)
	})
	seed(func(s *packet.Spec) {
		s.Src, s.Dst, s.Proto = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2"), packet.UDP
	})
	f.Add(byte(0), byte(0), inner[:20])
	f.Add(byte(1), byte(1), []byte{})
	f.Add(byte(2), byte(2), packet.BuildARP(1, packet.MAC{2, 1}, packet.Broadcast, client, peer).Bytes())
	var port uint16
	f.Fuzz(func(t *testing.T, design, at byte, frame []byte) {
		p := all[int(design)%len(all)]
		for _, record := range []bool{false, true} {
			// The frame is the sender's: nothing may keep it.
			_, _ = p.put(p.names[int(at)%len(p.names)], slices.Clone(frame), record)
		}
		if port++; !p.talks(10000 + port%20000) {
			t.Fatal("others do not talk any more")
		}
	})
}
