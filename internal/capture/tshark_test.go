package capture

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// tsharkFields writes frames to a file and returns what tshark reads in each.
func tsharkFields(t *testing.T, frames [][]byte, fields ...string) []string {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed; the tests of package packet check the same against gopacket")
	}
	file := filepath.Join(t.TempDir(), "out.pcapng")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(f, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range frames {
		if err := w.Write(0, epoch, b, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", file, "-T", "fields", "-E", "separator=|", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o",
		"udp.check_checksum:TRUE"}
	for _, n := range fields {
		args = append(args, "-e", n)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// tshark finds every checksum of translated and tunnelled packets right, and
// the tunnels where they should be.
func TestTsharkAgreesOnPackets(t *testing.T) {
	a := netip.MustParseAddr
	outer := packet.Outer{Src: a("10.0.0.4"), Dst: a("10.0.0.5"), VNI: 4096, TTL: 128}
	geneve, over6 := outer, outer
	geneve.Kind, geneve.Options = packet.Geneve, []byte{0, 1, 2, 1, 0, 0, 0, 7}
	over6.Src, over6.Dst = a("fd00::4"), a("fd00::5")
	nat4 := &packet.Rewrite{Set: packet.RwSrc | packet.RwDst | packet.RwSrcPort | packet.RwICMPID, Src: a("10.0.0.9"), Dst: a("10.244.2.7"),
		SrcPort: 50000, ICMPID: 77}
	nat6 := &packet.Rewrite{Set: nat4.Set, Src: a("fd00::9"), Dst: a("fd00::7"), SrcPort: 50000, ICMPID: 77}
	v4 := packet.Spec{Src: a("10.244.1.4"), Dst: a("10.96.0.10"), SrcPort: 40000, DstPort: 8080, Payload: []byte("odd")}
	v6 := packet.Spec{Src: a("fd01::4"), Dst: a("fd01::5"), SrcPort: 40000, DstPort: 8080, Payload: []byte("odd")}
	with := func(s packet.Spec, p packet.Proto, typ uint8) *packet.Packet {
		s.Proto, s.ICMPType, s.TCPFlags = p, typ, packet.SYN
		return packet.Build(s)
	}
	var frames [][]byte
	var want []string
	for _, c := range []struct {
		p     *packet.Packet
		r     *packet.Rewrite
		outer *packet.Outer
		want  string // ip, tcp, udp, icmp, icmpv6 checksum status (1 good, 3 none), VXLAN and Geneve VNI
	}{
		{with(v4, packet.TCP, 0), nat4, nil, "1|1|||||"},
		{with(v4, packet.UDP, 0), nat4, nil, "1||1||||"},
		{with(v4, packet.ICMP, 8), nat4, nil, "1|||1|||"},
		{with(v6, packet.TCP, 0), nat6, nil, "|1|||||"},
		{with(v6, packet.UDP, 0), nat6, nil, "||1||||"},
		{with(v6, packet.ICMPv6, 128), nat6, nil, "||||1||"},
		{with(v4, packet.TCP, 0), nat4, &outer, "1,1|1|3|||4096|"},
		{with(v6, packet.TCP, 0), nat6, &geneve, "1|1|3||||0x001000"},
		{with(v4, packet.UDP, 0), nat4, &over6, "1||1,1|||4096|"},
	} {
		c.p.Apply(c.r)
		if c.outer != nil {
			if err := c.p.Encap(*c.outer); err != nil {
				t.Fatal(err)
			}
		}
		frames = append(frames, c.p.Bytes())
		want = append(want, c.want)
	}
	got := tsharkFields(t, frames, "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "icmp.checksum.status",
		"icmpv6.checksum.status", "vxlan.vni", "geneve.vni")
	if len(got) != len(want) {
		t.Fatalf("tshark reads %d packets:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d: tshark says %q, want %q", i+1, got[i], want[i])
		}
	}
}
