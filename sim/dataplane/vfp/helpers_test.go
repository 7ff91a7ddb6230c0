package vfp

import (
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
	podMAC  = packet.MAC{0, 0x15, 0x5d, 0x4a, 1, 4}
	hostMAC = packet.MAC{0, 0x15, 0x5d, 0, 1, 0x0b}
	gwMAC   = packet.MAC{0, 0x15, 0x5d, 0, 1, 1}
)

// parse reads a packet as "tcp 10.0.0.1:1000 > 10.0.0.2:80 syn", "udp ...",
// "ping 10.0.0.1 > 10.0.0.2", "pong ..." or "gre ...". A TCP segment without
// flags is one of a connection that is up.
func parse(tb testing.TB, text string) *packet.Packet {
	tb.Helper()
	f := strings.Fields(text)
	if len(f) < 4 || f[2] != ">" {
		tb.Fatalf("no packet: %q", text)
	}
	s := packet.Spec{EthSrc: podMAC, EthDst: gwMAC, TTL: 128, Payload: []byte("0123456789")}
	endpoint := func(text string) (netip.Addr, uint16) {
		if ap, err := netip.ParseAddrPort(text); err == nil {
			return ap.Addr(), ap.Port()
		}
		return addr(text), 0
	}
	s.Src, s.SrcPort = endpoint(f[1])
	s.Dst, s.DstPort = endpoint(f[3])
	switch f[0] {
	case "tcp":
		s.Proto, s.TCPFlags = packet.TCP, packet.ACK
		for _, flag := range f[4:] {
			s.TCPFlags = map[string]uint8{"syn": packet.SYN, "syn-ack": packet.SYN | packet.ACK, "rst": packet.RST}[flag]
		}
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
		tb.Fatalf("no protocol: %q", text)
	}
	return packet.Build(s)
}

// short writes a packet in the form that parse reads, without flags.
func short(p *packet.Packet) string {
	h := p.Headers()
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

// acl reads rules as "allow in 900 tcp from 10.0.0.0/8 to 10.1.0.1 port 80 srcport 1-5".
func acl(tb testing.TB, policy string) *Layer {
	tb.Helper()
	l := &Layer{Name: "ACL_ENDPOINT_LAYER", Stateful: true}
	for line := range strings.SplitSeq(policy, ";") {
		f := strings.Fields(line)
		r := &Rule{ID: strings.TrimSpace(line), Action: Allow{}, Flags: Terminating | Stateful}
		if f[0] == "block" {
			r.Action, r.Flags = Block{}, Terminating
		}
		dir := map[string]Direction{"in": In, "out": Out}[f[1]]
		n, err := strconv.ParseUint(f[2], 10, 16)
		if err != nil {
			tb.Fatalf("rule %q: %v", line, err)
		}
		r.Priority = uint16(n)
		protos := map[string]packet.Proto{"tcp": packet.TCP, "udp": packet.UDP, "icmp": packet.ICMP}
		for f = f[3:]; len(f) > 0; f = f[1:] {
			if p, ok := protos[f[0]]; ok {
				r.Cond.Protos = append(r.Cond.Protos, p)
				continue
			}
			switch f[0] {
			case "any", "stateful":
				continue
			case "stateless":
				r.Flags = Terminating
				continue
			}
			if len(f) < 2 {
				tb.Fatalf("rule %q ends in %q", line, f[0])
			}
			switch what := f[1]; f[0] {
			case "from":
				r.Cond.Src = append(r.Cond.Src, prefix(what))
			case "to":
				r.Cond.Dst = append(r.Cond.Dst, prefix(what))
			case "port":
				r.Cond.DstPorts = append(r.Cond.DstPorts, portRange(what))
			case "srcport":
				r.Cond.SrcPorts = append(r.Cond.SrcPorts, portRange(what))
			case "icmptype":
				r.Cond.ICMPTypes = append(r.Cond.ICMPTypes, uint8(portRange(what).Lo))
			default:
				tb.Fatalf("rule %q: what is %q?", line, f[0])
			}
			f = f[1:]
		}
		g := l.Group("ACL_"+dir.String(), dir, 0)
		g.Rules = append(g.Rules, r)
	}
	return l
}

func prefix(s string) netip.Prefix {
	if strings.Contains(s, "/") {
		return netip.MustParsePrefix(s)
	}
	return Host(addr(s))
}

func portRange(s string) PortRange {
	lo, hi, ranged := strings.Cut(s, "-")
	a, _ := strconv.Atoi(lo)
	b := a
	if ranged {
		b, _ = strconv.Atoi(hi)
	}
	return PortRange{uint16(a), uint16(b)}
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
	// reason for which it is dropped.
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
			p := parse(t, s.in)
			res := pt.Process(p, s.dir, env)
			got, want := short(p), short(parse(t, s.in))
			switch w := s.want.(type) {
			case trace.Reason:
				want = string(w)
			case string:
				if w != "" {
					want = w
				}
			}
			switch {
			case res.Unknown != "":
				got = string(trace.ModelHole)
			case !res.Pass:
				got = string(res.Reason)
			}
			if got != want {
				t.Errorf("step %d at %v, recorded %v: %s %s\n got %s\nwant %s", i+1, now, recorded, s.dir, s.in, got, want)
			}
			if err := p.VerifyChecksums(); err != nil {
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
		s = append(s, fmt.Sprintf("%s: %s wants %s, is %s", m.Rule, m.Field, m.Want, m.Got))
	}
	return strings.Join(s, "\n")
}
