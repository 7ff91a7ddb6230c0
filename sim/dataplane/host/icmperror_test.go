package host

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestICMPErrorFindsItsSocket: an error is for the socket whose packet it
// quotes. Behind a translation that ICMP does not pass through, a Windows
// socket does not recognise it; on Linux netfilter has put it right.
func TestICMPErrorFindsItsSocket(t *testing.T) {
	client, vip, backend := netip.MustParseAddr("10.244.1.4"), netip.MustParseAddr("10.96.0.50"), netip.MustParseAddr("10.244.2.5")
	for _, c := range []struct {
		name    string
		windows bool
		quoted  netip.Addr
		want    trace.Verdict
	}{
		{"its own packet", true, vip, trace.Rejected},
		{"the translated packet, Windows", true, backend, ""},
		{"the translated packet, Linux", false, backend, trace.Rejected},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Stack{Place: "win1", Windows: c.windows}
			l := &Link{Name: "eth0", MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Addrs: []netip.Prefix{netip.MustParsePrefix("10.244.1.4/24")}}
			s.AddLink(l)
			k := s.Open(packet.UDP, client, 40000, netip.AddrPortFrom(vip, 53))
			sent := packet.Build(packet.Spec{Src: client, Dst: c.quoted, Proto: packet.UDP, SrcPort: 40000, DstPort: 53, Payload: []byte("question")})
			spec := unreachable(sent)
			spec.EthDst = l.MAC
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			s.Input(sim, l, packet.Build(spec))
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			if k.Outcome.Verdict != c.want {
				t.Errorf("got %q, want %q", k.Outcome.Verdict, c.want)
			}
		})
	}
}
