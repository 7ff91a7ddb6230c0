package host

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

var update = flag.Bool("update", false, "write testdata/transcript.txt")

// TestTranscript holds whole exchanges to what they were: every frame on the wire to
// its last byte, every step with its action, rule, reason, fact and changes, and what
// the socket and the receiver got. Read a difference as you would read a capture.
func TestTranscript(t *testing.T) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	n, client, r, server := inOut(t, func(r *machine) *NAT { return NewWinNAT(netip.MustParsePrefix("10.0.1.0/24"), r.Links[0], nil) })
	server.Listen(&Listener{Proto: packet.TCP, Port: 81, Name: "web"})
	say("# through WinNAT, two of each kind")
	for range 2 {
		transcript(n, say, client, packet.TCP, "192.0.2.2:80", 64)
		transcript(n, say, client, packet.UDP, "192.0.2.2:53", 64)
		transcript(n, say, client, packet.ICMP, "192.0.2.2:0", 64)
	}
	say("# closed ports, a protocol that nobody speaks")
	transcript(n, say, client, packet.TCP, "192.0.2.2:9", 64)
	transcript(n, say, client, packet.UDP, "192.0.2.2:9", 64)
	transcript(n, say, client, packet.GRE, "192.0.2.2:0", 64)
	say("# the last hop")
	transcript(n, say, client, packet.UDP, "192.0.2.2:53", 1)
	say("# no route, no neighbour, the machine itself")
	transcript(n, say, r, packet.TCP, "198.51.100.9:80", 64)
	transcript(n, say, r, packet.TCP, "192.0.2.77:80", 64)
	transcript(n, say, server, packet.TCP, "192.0.2.2:81", 64)
	say("# a published port")
	client.Listen(&Listener{Proto: packet.UDP, Port: 53})
	r.NAT.Publish([]NATRule{WinNATMapping(netip.Addr{}, packet.UDP, 5353, netip.MustParseAddrPort("10.0.1.2:53"),
		&trace.Origin{What: "hostPort of web"})})
	transcript(n, say, server, packet.UDP, "192.0.2.1:5353", 64)

	say("# netfilter: a Service, its second backend, and what is dropped")
	n, client, r, _ = inOut(t, func(r *machine) *NAT {
		return iptables(t, r.Stack, "-A PREROUTING -p tcp -d 10.96.0.50/32 --dport 8080 -j DNAT --to 192.0.2.2:80",
			"-A PREROUTING -p udp -d 10.96.0.50/32 -j DROP",
			"-A POSTROUTING -o out -j MASQUERADE")
	})
	r.NAT.Rules[1].Drop = trace.NoBackend
	transcript(n, say, client, packet.TCP, "10.96.0.50:8080", 64)
	transcript(n, say, client, packet.UDP, "10.96.0.50:8080", 64)
	r.NAT.reset()
	say("# after the table was cleared, ports and identifiers begin again")
	transcript(n, say, client, packet.TCP, "192.0.2.2:80", 64)
	transcript(n, say, client, packet.ICMP, "192.0.2.2:0", 64)

	say("# IPv6")
	n = newNetwork(t)
	a, c := n.add("a", "lan fd00::1/64"), n.add("b", "lan fd00::2/64")
	c.Listen(&Listener{Proto: packet.TCP, Port: 80})
	transcript(n, say, a, packet.TCP, "[fd00::2]:80", 64)
	transcript(n, say, a, packet.UDP, "[fd00::2]:80", 64)
	transcript(n, say, a, packet.ICMPv6, "[fd00::2]:0", 64)

	say("# a tunnel, and one whose inside is cut off")
	n = newNetwork(t)
	a, c = n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
	vtep(a, "192.0.2.1", 1, 8472, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
	vtep(c, "192.0.2.2", 1, 8472, "10.244.2.0/32", "10.244.1.0/24", "192.0.2.1", 2, 1)
	c.Listen(&Listener{Proto: packet.UDP, Port: 53})
	transcript(n, say, a, packet.UDP, "10.244.2.0:53", 64)

	if *update {
		if err := os.WriteFile("testdata/transcript.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/transcript.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range strings.Split(string(want), "\n") {
		got := strings.Split(b.String(), "\n")
		if i >= len(got) || got[i] != w {
			t.Fatalf("testdata/transcript.txt:%d: got\n%s\nwant\n%s", i+1, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), w)
		}
	}
	if len(b.String()) != len(want) {
		t.Error("there is more than testdata/transcript.txt holds; run with -update and read the difference")
	}
}

// transcript runs one flow and writes all of it down.
func transcript(n *network, say func(string, ...any), from *machine, proto packet.Proto, to string, ttl uint8) {
	rec := &trace.Recorder{}
	sim := &wire.Simulation{Rec: rec}
	say("== %s %s to %s, TTL %d", from.Place, proto, to, ttl)
	sim.Taps.Segment = func(s *wire.Segment, _ *wire.NIC, p *packet.Packet) {
		say("frame on %s: %s", s.Name, p)
		say("  %x", p.Bytes())
	}
	k := from.Open(proto, netip.Addr{}, 0, netip.MustParseAddrPort(to))
	k.Send(sim, []byte("hello"), ttl)
	if err := sim.Run(); err != nil {
		n.t.Error(err)
	}
	for _, s := range rec.Steps() {
		what := ""
		if s.Event.Detail != nil {
			what = s.Event.Detail.Text()
		}
		say("step %s %s %s: %s, rule %q %q, reason %q, fact %s, from %v, %q", s.Leg, s.Place, s.Object, s.Action, s.RuleType, s.Rule, s.Reason,
			s.Evidence, s.From, what)
		for _, c := range s.Changes {
			say("  %s: %s -> %s", c.Field, c.Before, c.After)
		}
		if !s.Packet.IsZero() {
			say("  packet %s", s.Packet)
		}
	}
	text := ""
	if k.Outcome.Event.Detail != nil {
		text = k.Outcome.Event.Detail.Text()
	}
	say("socket done %v, %s, reason %q, %q, payload %q", k.Outcome.Done, k.Outcome.Verdict, k.Outcome.Reason, text, k.Outcome.Payload)
	say("receiver %+v", rec.Seen())
}
