package vfp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	podMAC    = packet.MAC{0, 0x15, 0x5d, 0x4a, 1, 4}
	serverMAC = packet.MAC{0, 0x15, 0x5d, 0x4a, 1, 5}
	hostMAC   = packet.MAC{0, 0x15, 0x5d, 0, 1, 0x0b}
	gwMAC     = packet.MAC{0, 0x15, 0x5d, 0, 1, 1}
)

// parse reads a packet as "tcp 10.0.0.1:1000 > 10.0.0.2:80 syn", "udp ...",
// "ping 10.0.0.1 > 10.0.0.2", "pong ...", "gre ..." or
// "vxlan 10.0.0.1 > 10.0.0.2 vni 4096 [tcp ...]". A TCP segment without flags is
// one of a connection that is up. Other words after the destination: id N, the
// identifier of a ping; dstmac NAME; first-fragment and later-fragment.
func parse(tb testing.TB, text string) *packet.Packet {
	tb.Helper()
	if strings.HasPrefix(text, "vxlan ") {
		outer, inner, _ := strings.Cut(text, " [")
		return parseTunnel(tb, outer, strings.TrimSuffix(inner, "]"))
	}
	f := strings.Fields(text)
	if len(f) < 4 || f[2] != ">" {
		tb.Fatalf("%q is not a packet", text)
	}
	s := packet.Spec{EthSrc: podMAC, EthDst: gwMAC, TTL: 128, Payload: []byte("0123456789")}
	s.Src, s.SrcPort = endpoint(f[1])
	s.Dst, s.DstPort = endpoint(f[3])
	switch f[0] {
	case "tcp":
		s.Proto, s.TCPFlags = packet.TCP, packet.ACK
	case "udp":
		s.Proto = packet.UDP
	case "gre":
		s.Proto = packet.GRE
	case "ping", "pong":
		s.Proto, s.ICMPType = packet.ICMP, map[string]uint8{"ping": 8, "pong": 0}[f[0]]
		if s.Src.Is6() {
			s.Proto, s.ICMPType = packet.ICMPv6, map[string]uint8{"ping": 128, "pong": 129}[f[0]]
		}
	default:
		tb.Fatalf("%q is not a protocol", f[0])
	}
	fragment := options(tb, &s, f[4:])
	if fragment == 0 {
		return packet.Build(s)
	}
	frame := append([]byte(nil), packet.Build(s).Bytes()...)
	binary.BigEndian.PutUint16(frame[20:], fragment)
	p, err := packet.New(frame)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// options reads the words after the destination. fragment is what the IPv4
// header says about fragments.
func options(tb testing.TB, s *packet.Spec, f []string) (fragment uint16) {
	tb.Helper()
	for ; len(f) > 0; f = f[1:] {
		switch f[0] {
		case "syn":
			s.TCPFlags = packet.SYN
		case "syn-ack":
			s.TCPFlags = packet.SYN | packet.ACK
		case "rst":
			s.TCPFlags = packet.RST
		case "first-fragment":
			fragment = 0x2000 // more follow
		case "later-fragment":
			fragment = 1 // at offset 8
		case "dstmac":
			s.EthDst, f = macs[f[1]], f[1:]
		case "id":
			n, _ := strconv.Atoi(f[1])
			s.ICMPID, f = uint16(n), f[1:]
		default:
			tb.Fatalf("what is %q of a packet?", f[0])
		}
	}
	return fragment
}

func parseTunnel(tb testing.TB, outer, inner string) *packet.Packet {
	tb.Helper()
	f := strings.Fields(outer)
	if len(f) != 6 || f[0] != "vxlan" {
		tb.Fatalf("%q is not the outside of a tunnel packet", outer)
	}
	vni, _ := strconv.Atoi(f[5])
	p := parse(tb, inner)
	if err := p.Encap(packet.Outer{EthSrc: gwMAC, EthDst: hostMAC, Src: addr(f[1]), Dst: addr(f[3]), VNI: uint32(vni),
		SrcPort: 50000}); err != nil {
		tb.Fatal(err)
	}
	return p
}

// short writes a packet in the form that parse reads, without flags.
func short(p *packet.Packet) string {
	if in, vni, err := p.Inner(packet.VXLAN); err == nil && p.Headers().DstPort == packet.VXLANPort {
		h := p.Headers()
		return fmt.Sprintf("vxlan %s > %s vni %d [%s]", h.Src, h.Dst, vni, shortHeaders(&in))
	}
	return shortHeaders(p.Headers())
}

func shortHeaders(h *packet.Headers) string {
	src, dst := h.Src.String(), h.Dst.String()
	if hasPorts(h) {
		src, dst = netip.AddrPortFrom(h.Src, h.SrcPort).String(), netip.AddrPortFrom(h.Dst, h.DstPort).String()
	}
	name := strings.ToLower(h.Proto.String())
	if isICMP(h) {
		name = map[uint8]string{8: "ping", 128: "ping", 0: "pong", 129: "pong"}[h.ICMPType]
	}
	return name + " " + src + " > " + dst
}

// outcome says what became of a packet: the packet afterwards, with those MAC
// addresses that changed, or why it went no further.
func outcome(before, after *packet.Packet, res Result) string {
	switch {
	case res.Unknown != "":
		return string(trace.ModelHole)
	case !res.Pass:
		return string(res.Reason)
	}
	text := short(after)
	if m := after.Headers().EthSrc; m != before.Headers().EthSrc {
		text += " srcmac " + macName(m)
	}
	if m := after.Headers().EthDst; m != before.Headers().EthDst {
		text += " dstmac " + macName(m)
	}
	if res.Hairpin {
		text += " hairpin"
	}
	return text
}

// layer is a stateful layer with rules in one group per direction.
func layer(name string, priority uint16, out, in []*Rule) *Layer {
	l := &Layer{Name: name, Priority: priority, Stateful: true}
	l.Groups = append(l.Groups, &Group{Name: name + "_OUT", Dir: Out, Rules: out}, &Group{Name: name + "_IN", Dir: In, Rules: in})
	return l
}

func port(layers ...*Layer) *Port {
	pt := &Port{ID: "port", Label: "endpoint client", MAC: podMAC}
	pt.SetLayers(layers)
	return pt
}

// step is one packet through a port and what is to come of it.
type step struct {
	// at is the time in seconds; 0 keeps the clock where it is.
	at  int
	dir Direction
	in  string
	// want is the packet afterwards, "" for one that does not change, or the
	// reason for which it goes no further.
	want any
}

// play sends packets through two ports with the same rules, one recorded and
// one not, and compares what comes out with the table.
func play(t *testing.T, build func() *Port, steps []step) {
	t.Helper()
	for _, recorded := range []bool{false, true} {
		pt := build()
		var now time.Duration
		for i, s := range steps {
			if s.at != 0 {
				now = time.Duration(s.at) * time.Second
			}
			env := &Env{Now: now}
			if recorded {
				env.Rec = &trace.Recorder{}
			}
			before, p := parse(t, s.in), parse(t, s.in)
			want := fmt.Sprint(s.want)
			if s.want == "" {
				want = short(before)
			}
			if got := outcome(before, p, pt.Process(p, s.dir, env)); got != want {
				t.Errorf("step %d at %v, recorded %v: %s %s\n got %s\nwant %s", i+1, now, recorded, s.dir, s.in, got, want)
			}
			if err := p.VerifyChecksums(); err != nil && !strings.Contains(s.in, "fragment") {
				t.Errorf("step %d: %s %s: %v", i+1, s.dir, s.in, err)
			}
		}
	}
}

// lastStep returns the last step that a recorder holds.
func lastStep(t *testing.T, rec *trace.Recorder) trace.Step {
	t.Helper()
	if len(rec.Steps()) == 0 {
		t.Fatal("nothing recorded")
	}
	return rec.Steps()[len(rec.Steps())-1]
}

func missText(ms []trace.Miss) string {
	var s []string
	for _, m := range ms {
		s = append(s, fmt.Sprintf("%s: %s wants %s, has %s", m.Rule, m.Field, m.Want, m.Got))
	}
	return strings.Join(s, "\n")
}
