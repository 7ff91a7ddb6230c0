package host

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// net is a small network of stacks on segments, without switches.
type network struct {
	t        *testing.T
	segments map[string]*wire.Segment
	macs     byte
	frames   []string
}

// machine plugs a stack into segments.
type machine struct {
	*Stack
	nics map[*wire.NIC]*Link
}

func (m *machine) Receive(sim *wire.Simulation, n *wire.NIC, p *packet.Packet) {
	m.Input(sim, m.nics[n], p)
}

func (m *machine) ARP(n *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	return m.nics[n].MAC, m.nics[n].Owns(ip)
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, segments: map[string]*wire.Segment{}}
}

// add makes a machine with one link for each "segment address/len".
func (n *network) add(name string, ports ...string) *machine {
	m := &machine{&Stack{Place: name, Object: "stack"}, map[*wire.NIC]*Link{}}
	for _, p := range ports {
		seg, addr, _ := strings.Cut(p, " ")
		if n.segments[seg] == nil {
			n.segments[seg] = &wire.Segment{Name: seg}
		}
		n.macs++
		l := &Link{Name: seg, MAC: packet.MAC{2, 0, 0, 0, 0, n.macs}, Addrs: []netip.Prefix{netip.MustParsePrefix(addr)}}
		nic := &wire.NIC{Name: name + " " + seg, MAC: l.MAC, Owner: m}
		s := n.segments[seg]
		s.Attach(nic)
		l.Send = func(sim *wire.Simulation, p *packet.Packet) { s.Send(sim, nic, p) }
		l.Resolve = func(ip netip.Addr) (packet.MAC, bool) { return s.Resolve(nic, ip) }
		m.nics[nic] = l
		m.AddLink(l)
	}
	return m
}

func (m *machine) route(t *testing.T, to, via string) {
	t.Helper()
	if err := m.AddRoute(Route{To: netip.MustParsePrefix(to), Via: netip.MustParseAddr(via)}); err != nil {
		t.Fatal(err)
	}
}

// send runs one flow and returns what the socket got and the steps.
func (n *network) send(from *machine, proto packet.Proto, to string, ttl uint8) (Outcome, *trace.Recorder) {
	n.t.Helper()
	rec := &trace.Recorder{}
	sim := &wire.Simulation{Rec: rec}
	n.frames = nil
	sim.Taps.Segment = func(s *wire.Segment, _ *wire.NIC, p *packet.Packet) {
		if err := p.VerifyChecksums(); err != nil {
			n.t.Errorf("%v in %s", err, p)
		}
		n.frames = append(n.frames, s.Name+" "+p.String())
	}
	k := from.Open(proto, netip.Addr{}, 0, netip.MustParseAddrPort(to))
	k.Send(sim, []byte("hello"), ttl)
	if err := sim.Run(); err != nil {
		n.t.Error(err)
	}
	return k.Outcome, rec
}

func reasonOf(rec *trace.Recorder) trace.Reason {
	for _, s := range slices.Backward(rec.Steps()) {
		if s.Reason != "" {
			return s.Reason
		}
	}
	return ""
}

func TestForwardingAndHopLimit(t *testing.T) {
	n := newNetwork(t)
	a, b := n.add("a", "left 10.0.1.2/24"), n.add("b", "right 10.0.2.2/24")
	r := n.add("r", "left 10.0.1.1/24", "right 10.0.2.1/24")
	a.route(t, "0.0.0.0/0", "10.0.1.1")
	b.route(t, "0.0.0.0/0", "10.0.2.1")
	b.Listen(&Listener{Proto: packet.TCP, Port: 80})
	if out, rec := n.send(a, packet.TCP, "10.0.2.2:80", 64); out.Done || reasonOf(rec) != trace.NotForwarding {
		t.Errorf("forwarding off: %+v, %s", out, reasonOf(rec))
	}
	r.Forwarding = true
	out, rec := n.send(a, packet.TCP, "10.0.2.2:80", 64)
	if out.Verdict != trace.Delivered || rec.Seen().Src != "10.0.1.2" {
		t.Errorf("forwarding on: %+v, seen %+v", out, rec.Seen())
	}
	if !strings.Contains(n.frames[1], "ttl 63") {
		t.Errorf("the hop limit was not counted down: %s", n.frames[1])
	}
	if out, rec := n.send(a, packet.TCP, "10.0.2.2:80", 1); out.Done || reasonOf(rec) != trace.TTLExceeded {
		t.Errorf("hop limit 1: %+v, %s", out, reasonOf(rec))
	}
	// Two routers that send a packet to one another.
	r2 := n.add("r2", "right 10.0.2.3/24")
	r2.Forwarding = true
	r.route(t, "10.9.0.0/16", "10.0.2.3")
	r2.route(t, "10.9.0.0/16", "10.0.2.1")
	if out, rec := n.send(a, packet.UDP, "10.9.0.1:53", 64); out.Done || reasonOf(rec) != trace.TTLExceeded || len(n.frames) != 64 {
		t.Errorf("a loop: %+v, %s, %d frames", out, reasonOf(rec), len(n.frames))
	}
	if out, rec := n.send(a, packet.TCP, "10.0.1.77:80", 64); out.Done || reasonOf(rec) != trace.NoNeighbour {
		t.Errorf("nobody there: %+v, %s", out, reasonOf(rec))
	}
	if out, rec := n.send(n.add("lonely", "left 10.0.1.9/24"), packet.TCP, "8.8.8.8:80", 64); out.Done || reasonOf(rec) != trace.NoRoute {
		t.Errorf("no route: %+v, %s", out, reasonOf(rec))
	}
}

func TestPortsAndPing(t *testing.T) {
	n := newNetwork(t)
	a, b := n.add("a", "lan 10.0.0.1/24"), n.add("b", "lan 10.0.0.2/24")
	b.Listen(&Listener{Proto: packet.UDP, Port: 53, Answer: func(q []byte) []byte { return append([]byte("re: "), q...) }})
	for _, c := range []struct {
		proto   packet.Proto
		to      string
		verdict trace.Verdict
		frame   string
	}{
		{packet.TCP, "10.0.0.2:80", trace.Rejected, "RST"},
		{packet.UDP, "10.0.0.2:99", trace.Rejected, "ICMP"},
		{packet.UDP, "10.0.0.2:53", trace.Delivered, "UDP"},
		{packet.ICMP, "10.0.0.2:0", trace.Delivered, "ICMP"},
	} {
		out, _ := n.send(a, c.proto, c.to, 64)
		if out.Verdict != c.verdict || len(n.frames) != 2 || !strings.Contains(n.frames[1], c.frame) {
			t.Errorf("%s to %s: %+v, frames %q", c.proto, c.to, out, n.frames)
		}
		if c.proto == packet.UDP && c.verdict == trace.Delivered && string(out.Payload) != "re: hello" {
			t.Errorf("the answer is %q", out.Payload)
		}
	}
	b.Refuse = []Refusal{{Proto: packet.UDP, Text: "no UDP here"}}
	if out, rec := n.send(a, packet.UDP, "10.0.0.2:53", 64); out.Done || reasonOf(rec) != trace.ProtocolNotSupported {
		t.Errorf("a protocol that the stack lacks: %+v, %s", out, reasonOf(rec))
	}
}

// A Windows stack keeps packets to itself inside; a Linux stack refuses there.
func TestOwnAddress(t *testing.T) {
	n := newNetwork(t)
	a := n.add("a", "lan 10.0.0.1/24")
	if out, rec := n.send(a, packet.TCP, "10.0.0.1:80", 64); out.Verdict != trace.Rejected || len(n.frames) != 0 ||
		rec.Steps()[1].Evidence != "host.own-address-linux" {
		t.Errorf("Linux: %+v, %q, %+v", out, n.frames, rec.Steps())
	}
	a.Windows = true
	if out, rec := n.send(a, packet.TCP, "10.0.0.1:80", 64); out.Done || reasonOf(rec) != trace.HostNotSwitched ||
		rec.Steps()[1].Evidence != "host.own-address-inside" {
		t.Errorf("Windows: %+v, %s", out, reasonOf(rec))
	}
	if out, rec := n.send(a, packet.TCP, "127.0.0.1:80", 64); out.Done || reasonOf(rec) != trace.LoopbackNotSwitched {
		t.Errorf("loopback: %+v, %s", out, reasonOf(rec))
	}
}

func TestARPIsAnsweredForOwnAddressesOnly(t *testing.T) {
	n := newNetwork(t)
	a, b := n.add("a", "lan 10.0.0.1/24"), n.add("b", "lan 10.0.0.2/24")
	for target, want := range map[string]int{"10.0.0.2": 1, "10.0.0.3": 0} {
		sim := &wire.Simulation{}
		replies := 0
		sim.Taps.Segment = func(_ *wire.Segment, from *wire.NIC, p *packet.Packet) {
			h := p.Headers()
			if h.EtherType == packet.EtherARP && h.ARPOp == 2 && h.ARPSenderMAC == b.Links[0].MAC && h.ARPSender == netip.MustParseAddr(target) {
				replies++
			}
		}
		a.Links[0].Send(sim, packet.BuildARP(1, a.Links[0].MAC, packet.Broadcast, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr(target)))
		if err := sim.Run(); err != nil || replies != want {
			t.Errorf("who has %s: %d replies, want %d (%v)", target, replies, want, err)
		}
	}
}
