package host

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	inside  = netip.MustParsePrefix("10.0.1.0/24")
	client  = netip.MustParseAddr("10.0.1.2")
	server  = netip.MustParseAddr("192.0.2.2")
	outside = netip.MustParseAddr("192.0.2.1")
)

// idleNAT is a NAT between a client and a server, without a network around it.
type idleNAT struct {
	*NAT
	s   *Stack
	out *Link
	sim *wire.Simulation
}

func newIdleNAT(kind string) *idleNAT {
	in, out := &Link{Name: "in"}, &Link{Name: "out", Addrs: []netip.Prefix{netip.PrefixFrom(outside, 24)}}
	x := &idleNAT{s: &Stack{Place: "r"}, out: out, sim: &wire.Simulation{Rec: &trace.Recorder{}}}
	masquerade := NATRule{Chain: Postrouting, Src: []netip.Prefix{inside}, OutLink: out, Masquerade: true}
	switch kind {
	case "netfilter":
		x.NAT = NewNetfilter()
		x.Rules = []NATRule{masquerade}
	case "router":
		x.NAT = NewRouterNAT(factMasquerade)
		x.Rules = []NATRule{masquerade}
	case "WinNAT":
		x.NAT = NewWinNAT(inside, in, nil)
	}
	return x
}

// pass sends a packet through, and returns it as it leaves; nil when it does not.
func (x *idleNAT) pass(spec packet.Spec) *packet.Packet {
	p := packet.Build(spec)
	if !x.destination(x.s, x.sim, p, Prerouting) || p.Headers().Dst == server && !x.source(x.s, x.sim, p, x.out) {
		return nil
	}
	return p
}

// play sends the packets of a conversation between the client's port 40000 and the server
// and lets time pass: ">SYN" is the client's, "<ACK" the server's answer to whom the
// client was translated to last, "30s" is time, and packets of other protocols are ">"
// and "<". It returns what became of the last packet.
func (x *idleNAT) play(t *testing.T, proto packet.Proto, words string) (got string, seen uint16) {
	t.Helper()
	flags := map[string]uint8{"SYN": packet.SYN, "SYN+ACK": packet.SYN | packet.ACK, "ACK": packet.ACK, "FIN": packet.FIN | packet.ACK,
		"RST": packet.RST, "": 0}
	var first uint16
	for word := range strings.FieldsSeq(words) {
		spec := packet.Spec{Proto: proto, Src: client, Dst: server, SrcPort: 40000, DstPort: 80, TCPFlags: flags[word[1:]]}
		switch {
		case word[0] == '<':
			spec.Src, spec.Dst, spec.SrcPort, spec.DstPort = server, outside, 80, seen
		case word[0] != '>':
			d, err := time.ParseDuration(word)
			if err != nil {
				t.Fatal(err)
			}
			x.sim.AdvanceTo(x.sim.Now() + d)
			continue
		}
		if proto == packet.ICMP {
			spec.SrcPort, spec.DstPort, spec.ICMPType, spec.ICMPID = 0, 0, 8, 7
			if word[0] == '<' {
				spec.ICMPType, spec.ICMPID = 0, seen
			}
		}
		p := x.pass(spec)
		if p == nil {
			return "dropped", seen
		}
		h := p.Headers()
		now := h.SrcPort
		if proto == packet.ICMP {
			now = h.ICMPID
		}
		switch {
		case word[0] == '<' && h.Dst == client:
			got = "back"
		case word[0] == '<':
			got = "not back"
		case first == 0:
			got, first, seen = "first", now, now
		case now == seen:
			got = "as before"
		default:
			got, seen = "anew", now
		}
	}
	if x.sim.Unknown != "" {
		got += ", unknown"
	}
	return got, seen
}

// How long a connection is known on which nothing is sent, by what it is.
func TestTimeouts(t *testing.T) {
	const stands = ">SYN <SYN+ACK >ACK "
	for _, c := range []struct {
		nat   string
		proto packet.Proto
		words string
		want  string
	}{
		{"netfilter", packet.TCP, stands + "119h59m >ACK", "as before"},
		{"netfilter", packet.TCP, stands + "120h >ACK", "anew"}, // nf_conntrack_tcp_loose
		{"netfilter", packet.TCP, stands + "119h59m <ACK 119h59m >ACK", "as before"},
		{"netfilter", packet.TCP, stands + "120h <ACK", "not back"},
		{"netfilter", packet.TCP, ">SYN 1m59s <SYN+ACK 3m >ACK", "as before"},
		{"netfilter", packet.TCP, ">SYN 2m <SYN+ACK", "not back"},
		{"netfilter", packet.TCP, ">SYN >SYN 2m <SYN+ACK", "not back"}, // sent again, it still opens
		{"netfilter", packet.TCP, stands + ">FIN 1m59s <ACK", "back"},
		{"netfilter", packet.TCP, stands + ">FIN 2m <ACK", "not back"},
		{"netfilter", packet.TCP, stands + "<FIN >ACK 59s >FIN", "as before"}, // CLOSE_WAIT
		{"netfilter", packet.TCP, stands + "<FIN >ACK 1m >FIN", "anew"},
		{"netfilter", packet.TCP, stands + "<FIN >ACK >FIN 29s <ACK", "back"}, // LAST_ACK
		{"netfilter", packet.TCP, stands + "<FIN >ACK >FIN 30s <ACK", "not back"},
		{"netfilter", packet.TCP, stands + "<FIN >ACK >FIN <ACK 1m59s >ACK", "as before"}, // TIME_WAIT
		{"netfilter", packet.TCP, stands + "<FIN >ACK >FIN <ACK >FIN 1m59s >ACK", "as before"},
		{"netfilter", packet.TCP, stands + "<FIN >ACK >FIN <ACK 2m >ACK", "anew"},
		{"netfilter", packet.TCP, stands + ">RST 9s <ACK", "back"},
		{"netfilter", packet.TCP, stands + ">RST 10s <ACK", "not back"},
		{"netfilter", packet.TCP, stands + ">FIN >RST >FIN 10s <ACK", "not back"},
		{"netfilter", packet.TCP, stands + ">FIN >SYN <SYN+ACK >ACK 3m <ACK", "back"}, // the same ports again
		{"netfilter", packet.TCP, stands + ">RST >SYN <SYN+ACK >ACK 3m <ACK", "back"},
		{"netfilter", packet.UDP, "> 29s <", "back"},
		{"netfilter", packet.UDP, "> 30s <", "not back"},
		{"netfilter", packet.UDP, "> < 1m59s <", "back"},
		{"netfilter", packet.UDP, "> < 2m <", "not back"},
		{"netfilter", packet.UDP, "> < 2m >", "anew"},
		{"netfilter", packet.ICMP, "> 29s <", "back"},
		{"netfilter", packet.ICMP, "> 30s <", "not back"},

		{"WinNAT", packet.TCP, stands + "29m59s >ACK", "as before"},
		{"WinNAT", packet.TCP, stands + "30m >ACK", "anew, unknown"},
		{"WinNAT", packet.TCP, stands + "30m >SYN", "anew"},
		{"WinNAT", packet.TCP, stands + "30m <ACK", "not back"},
		{"WinNAT", packet.TCP, ">SYN 2m <SYN+ACK", "not back"},
		{"WinNAT", packet.TCP, stands + ">FIN 2m <ACK", "not back"},
		{"WinNAT", packet.TCP, stands + ">FIN <ACK 1m59s <FIN", "back"},
		{"WinNAT", packet.TCP, stands + ">FIN <ACK <FIN 2m >ACK", "anew, unknown"},
		{"WinNAT", packet.UDP, "> < 1m59s <", "back"},
		{"WinNAT", packet.UDP, "> < 2m <", "not back"},
		{"WinNAT", packet.ICMP, "> 30s <", "not back"},

		{"router", packet.TCP, stands + "3m59s <ACK", "back"},
		{"router", packet.TCP, stands + "4m <ACK", "back, unknown"},
		{"router", packet.TCP, stands + "4m >ACK", "as before, unknown"},
		{"router", packet.TCP, stands + ">FIN 4m <ACK", "not back"},
		{"router", packet.TCP, ">ACK", "first, unknown"},
		{"router", packet.UDP, "> 4m59s <", "back"},
		{"router", packet.UDP, "> 5m <", "not back"},
		{"router", packet.ICMP, "> 1m <", "not back"},
	} {
		if got, _ := newIdleNAT(c.nat).play(t, c.proto, c.words); got != c.want {
			t.Errorf("%s, %s, %s: %s, want %s", c.nat, c.proto, c.words, got, c.want)
		}
	}
}

// What is forgotten is said, with what it rests on.
func TestForgottenIsSaid(t *testing.T) {
	x := newIdleNAT("netfilter")
	x.play(t, packet.UDP, "> < 2m >")
	for _, s := range x.sim.Rec.Steps() {
		if s.Text() == "a connection was here, idle for longer than 2m0s: forgotten" && s.Evidence == factConntrackTimeouts.ID {
			return
		}
	}
	t.Errorf("not said in %v", x.sim.Rec.Steps())
}

// No port is given twice while it is in use, and none is left when all are.
func TestFreePorts(t *testing.T) {
	for proto, of := range map[packet.Proto]int{packet.UDP: natPorts, packet.ICMP: natIDs} {
		x := newIdleNAT("router")
		x.sim.Rec = nil
		spec := func(i int) packet.Spec {
			a := client.As4()
			a[3] += byte(i >> 15)
			s := packet.Spec{Proto: proto, Src: netip.AddrFrom4(a), Dst: server, SrcPort: uint16(1 + i&0x7fff), DstPort: 53}
			if proto == packet.ICMP {
				s.SrcPort, s.DstPort, s.ICMPType, s.ICMPID = 0, 0, 8, uint16(1+i&0x7fff)
			}
			return s
		}
		used := map[packet.Tuple]bool{}
		for i := range of {
			p := x.pass(spec(i))
			if p == nil || used[p.Tuple()] {
				t.Fatalf("%s: connection %d: %v, a tuple that is in use", proto, i, p)
			}
			used[p.Tuple()] = true
		}
		if p := x.pass(spec(of)); p != nil {
			t.Errorf("%s: all are in use, and there is another one: %s", proto, p)
		}
		// Another destination has the same ports free.
		other := spec(of)
		other.Dst = netip.MustParseAddr("192.0.2.3")
		q := packet.Build(other)
		if !x.destination(x.s, x.sim, q, Prerouting) || !x.source(x.s, x.sim, q, x.out) {
			t.Errorf("%s: to another server no port is free", proto)
		}
		x.sim.AdvanceTo(5 * time.Minute)
		if x.pass(spec(of+1)) == nil {
			t.Errorf("%s: nothing was forgotten", proto)
		}
	}
}

// A flood leaves nothing behind: what has expired is swept out as more comes.
func TestSweep(t *testing.T) {
	x := newIdleNAT("netfilter")
	x.sim.Rec = nil
	most := 0
	for i := range 60_000 {
		x.sim.AdvanceTo(time.Duration(i) * 10 * time.Millisecond) // 100 a second, of which 30 s are known
		if x.pass(packet.Spec{Proto: packet.UDP, Src: client, Dst: server, SrcPort: uint16(i + 1), DstPort: 53}) == nil {
			t.Fatal("not passed")
		}
		most = max(most, len(x.table))
	}
	if limit := 2 * (2*30*100 + firstSweep); most > limit {
		t.Errorf("%d directions were kept, of which at most 6,000 were alive", most)
	}
}

// An ICMP error about a connection that is forgotten is about none.
func TestErrorAfterTimeout(t *testing.T) {
	for wait, want := range map[time.Duration]string{29 * time.Second: "10.0.1.2", 30 * time.Second: ""} {
		s, sent := translator(t, "-A POSTROUTING -o out -j MASQUERADE")
		in, out := s.Links[0], s.Links[1]
		sim := &wire.Simulation{}
		s.Input(sim, in, packetOf(t, in, "udp 10.0.1.2:1000 > 192.0.2.2:53"))
		sim.AdvanceTo(wait)
		s.Input(sim, out, errorFrom(out, "192.0.2.2", sent["out"][0], 3, 0))
		got := ""
		if len(sent["in"]) == 1 {
			got = sent["in"][0].Headers().Dst.String()
		}
		if got != want {
			t.Errorf("after %v the error goes to %q, want %q", wait, got, want)
		}
	}
}

// Nobody answers that nobody listens to a packet for many machines.
func TestClosedPortOfMany(t *testing.T) {
	for _, text := range []string{"udp 10.0.1.2:1000 > 224.0.0.251:5353", "tcp 10.0.1.2:1000 > 224.0.0.251:80 S",
		"udp [fd00:1::2]:1000 > [ff02::fb]:5353"} {
		s, sent := translator(t)
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], text))
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		if len(sent["in"])+len(sent["out"]) != 0 || reasonOf(sim.Rec) != trace.PortClosed {
			t.Errorf("%s: %v, %s", text, sent, reasonOf(sim.Rec))
		}
	}
}
