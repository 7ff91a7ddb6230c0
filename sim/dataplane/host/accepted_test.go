package host

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestStands: a connection stands from its answer to its reset.
func TestStands(t *testing.T) {
	for _, c := range []struct{ stands, ended, want bool }{{false, false, false}, {true, false, true}, {true, true, false},
		{false, true, false}} {
		if k := (&Socket{stands: c.stands, ended: c.ended}); k.Stands() != c.want {
			t.Errorf("%+v: %v", c, k.Stands())
		}
	}
}

// TestAcceptedEnd: the end that accepted a connection can send data and close, without
// being asked.
func TestAcceptedEnd(t *testing.T) {
	for _, c := range []struct {
		name       string
		proto      packet.Proto
		do         func(k *Socket, sim *wire.Simulation)
		flags      uint8
		ack        uint32
		keepsState bool
	}{
		{"data", packet.TCP, func(k *Socket, sim *wire.Simulation) { k.Push(sim, []byte("x"), 64) }, packet.ACK | packet.PSH, 12, true},
		{"data in UDP", packet.UDP, func(k *Socket, sim *wire.Simulation) { k.Push(sim, []byte("x"), 64) }, 0, 0, true},
		{"the end", packet.TCP, func(k *Socket, sim *wire.Simulation) { k.Close(sim, packet.FIN, 64) }, packet.ACK | packet.FIN, 1, false},
		{"a reset", packet.TCP, func(k *Socket, sim *wire.Simulation) { k.Close(sim, packet.RST, 64) }, packet.ACK | packet.RST, 1, false},
	} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
		var sent []*packet.Packet
		s.Links[0].Send = func(_ *wire.Simulation, p *packet.Packet) { sent = append(sent, p) }
		k := &Socket{stack: s, server: true, ack: 12, Tuple: packet.Tuple{Src: netip.MustParseAddr("10.0.1.2"),
			Dst: netip.MustParseAddr("10.0.1.5"), Proto: c.proto, SrcPort: 80, DstPort: 40000}}
		k.Outcome.Verdict = trace.Delivered
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		c.do(k, sim)
		if len(sent) != 1 {
			t.Errorf("%s: %d packets", c.name, len(sent))
			continue
		}
		h := sent[0].Headers()
		if h.Src != k.Tuple.Src || h.DstPort != 40000 || c.proto == packet.TCP && (h.TCPFlags != c.flags || h.Ack != c.ack) {
			t.Errorf("%s: %v, flags %#x, ack %d", c.name, sent[0], h.TCPFlags, h.Ack)
		}
		if first := sim.Rec.Steps()[0]; first.Action != trace.ActSend || first.Text() == "" {
			t.Errorf("%s: %+v", c.name, first)
		}
		if (k.Outcome.Verdict == trace.Delivered) != c.keepsState {
			t.Errorf("%s: the outcome of before is %q", c.name, k.Outcome.Verdict)
		}
	}
}

// TestAccepted lists the ends that were accepted, the last one first, and not those that
// were reset meanwhile or that the machine opened itself.
func TestAccepted(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	s.Listen(&Listener{Proto: packet.TCP, Port: 80})
	arrives := func(text string) {
		s.Input(&wire.Simulation{}, s.Links[0], packetOf(t, s.Links[0], text))
	}
	for range 2 { // the second time after a reset of the stack
		arrives("tcp 10.0.1.5:1003 > 10.0.1.2:80 S")
		s.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.0.1.5:80"))
		arrives("tcp 10.0.1.5:1001 > 10.0.1.2:80 S")
		arrives("tcp 10.0.1.5:1004 > 10.0.1.2:80 S")
		arrives("tcp 10.0.1.5:1002 > 10.0.1.2:80 S")
		arrives("tcp 10.0.1.5:1004 > 10.0.1.2:80 R")
		var got []uint16
		for _, k := range s.Accepted() {
			got = append(got, k.Tuple.DstPort)
		}
		if !slices.Equal(got, []uint16{1002, 1001, 1003}) {
			t.Errorf("%v", got)
		}
		s.Reset()
	}
}

// TestOpensAgain: only a SYN to an accepted end opens its connection anew.
func TestOpensAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		server bool
		flags  uint8
		want   bool
	}{
		{"a SYN", true, packet.SYN, true}, {"a SYN to the end that opened", false, packet.SYN, false},
		{"the answer to a SYN", true, packet.SYN | packet.ACK, false},
		{"a reset", true, packet.RST, false}, {"a SYN and a reset", true, packet.SYN | packet.RST, false}, {"data", true, packet.ACK, false},
	} {
		if got := (&Socket{server: c.server}).opensAgain(segment(c.flags, 1).Headers()); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if (&Socket{server: true}).opensAgain(packetOf(t, &Link{}, "udp 10.0.1.5:1 > 10.0.1.2:53").Headers()) {
		t.Error("UDP opens nothing")
	}
}
