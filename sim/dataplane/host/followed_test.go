package host

import (
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestWhatEndsAPath records a packet's way through a NAT and changes something.
func TestWhatEndsAPath(t *testing.T) {
	data := packet.Spec{Src: client, Dst: server, Proto: packet.TCP, SrcPort: 40000, DstPort: 80, TCPFlags: packet.ACK}
	other := data
	other.SrcPort = 40001
	for _, c := range []struct {
		name   string
		kind   string
		change func(x *idleNAT)
		at     time.Duration
		holds  bool
	}{
		{"nothing", "netfilter", func(*idleNAT) {}, time.Second, true},
		{"another connection", "netfilter", func(x *idleNAT) { x.pass(other) }, time.Second, true},
		{"all forgotten", "netfilter", func(x *idleNAT) { x.reset() }, time.Second, false},
		{"a reset, and time", "netfilter", func(x *idleNAT) {
			rst := data
			rst.TCPFlags = packet.RST
			x.ways.Settle() // as whoever sends a packet from machine to machine does
			x.pass(rst)
		}, 11 * time.Second, false},
		{"days", "netfilter", func(*idleNAT) {}, 6 * 24 * time.Hour, false},
		{"so long that it is unknown", "router", func(*idleNAT) {}, 5 * time.Minute, false},
		{"the connection is forgotten", "netfilter", func(x *idleNAT) {
			for _, e := range x.table {
				x.forget(e, nil)
			}
		}, time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newIdleNAT(c.kind)
			x.sim.Rec = nil
			ways := path.NewWays()
			record := func(spec packet.Spec) *path.Record {
				r := &path.Record{Ways: ways}
				x.sim.Path = r
				defer func() { x.sim.Path = nil }()
				x.pass(spec)
				return r
			}
			syn := data
			syn.TCPFlags = packet.SYN
			if record(syn).Keepable() {
				t.Error("the way of the first packet is kept: the second one takes another")
			}
			record(data)
			r := record(data)
			if !r.Keepable() {
				t.Fatal("the path of a known connection is not kept")
			}
			f := r.Flow()
			by := func(at time.Duration) *path.Passing {
				return &path.Passing{Now: at, Proto: packet.TCP, TCPFlags: packet.ACK, Packets: 1, Bytes: 60}
			}
			if !takesTwo(f, by(0)) {
				t.Fatal("the path does not hold before anything has changed")
			}
			c.change(x)
			if f.Holds(c.at) != c.holds {
				t.Errorf("the path holds: %v", !c.holds)
			}
			if f.Take(by(c.at)) != c.holds {
				t.Errorf("the path takes a packet: %v", !c.holds)
			}
		})
	}
}

// A packet on a bridge that is no reply of a known connection passes; once there is such a
// connection, it is translated.
func TestBridgedPathEndsWithAConnection(t *testing.T) {
	x := newIdleNAT("netfilter")
	x.sim = &wire.Simulation{}
	reply := packet.Spec{Src: server, Dst: outside, Proto: packet.UDP, SrcPort: 53, DstPort: 40000}
	r := &path.Record{}
	x.sim.Path = r
	x.Bridged(x.s, x.sim, packet.Build(reply))
	x.sim.Path = nil
	f := r.Flow()
	if !r.Keepable() || !f.Holds(0) {
		t.Fatal("the way past the NAT is not kept")
	}
	now := packet.Build(packet.Spec{Src: outside, Dst: server, Proto: packet.UDP, SrcPort: 40000, DstPort: 53})
	first := packet.Tuple{Src: client, Dst: server, Proto: packet.UDP, SrcPort: 40000, DstPort: 53}
	x.remember(x.sim, first, now, &connection{})
	if f.Holds(0) {
		t.Error("the path holds, though the packet is the reply of a connection now")
	}
}

// A stack with gates keeps no path: what a connection has said decides there about the next
// packet.
func TestGatesKeepNoPath(t *testing.T) {
	for _, gates := range []int{0, 1} {
		n := newNetwork(t)
		a, b := n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
		if gates > 0 {
			b.AddGate(Gate{Open: true, Event: trace.Note("a policy"), Fact: factTestGate})
		}
		r := &path.Record{}
		sim := &wire.Simulation{Path: r, Sink: func(string, string, *packet.Packet) bool { return true }}
		p := packet.Build(packet.Spec{EthSrc: a.Links[0].MAC, EthDst: b.Links[0].MAC, Src: client, Dst: netip.MustParseAddr("192.0.2.2"),
			Proto: packet.UDP, SrcPort: 40000, DstPort: 53})
		b.Input(sim, b.Links[0], p)
		if err := sim.Run(); err != nil || sim.Lost != (wire.Loss{}) {
			t.Fatal(err, sim.Lost)
		}
		if kept := r.Keepable(); kept != (gates == 0) {
			t.Errorf("with %d gates the way is kept: %v", gates, kept)
		}
	}
}

// What follows a connection can make it end sooner: an acknowledgement after a FIN. Another
// path that rests on the connection must hear of it, and of the last packet, whichever path
// took it.
func TestFollowersOfOneConnection(t *testing.T) {
	x := newIdleNAT("netfilter")
	x.sim = &wire.Simulation{}
	ways := path.NewWays()
	data := packet.Spec{Src: client, Dst: server, Proto: packet.TCP, SrcPort: 40000, DstPort: 80, TCPFlags: packet.SYN}
	x.pass(data)
	data.TCPFlags = packet.ACK
	keep := func(send func()) *path.Flow {
		r := &path.Record{Ways: ways}
		x.sim.Path = r
		send()
		x.sim.Path = nil
		if !r.Keepable() {
			t.Fatal("the way is not kept")
		}
		return r.Flow()
	}
	follows, again := keep(func() { x.pass(data) }), keep(func() { x.pass(data) })
	past := keep(func() { x.Bridged(x.s, x.sim, packet.Build(data)) }) // rests on the connection without belonging to it
	take := func(f *path.Flow, at time.Duration) bool {
		return f.Take(&path.Passing{Now: at, Proto: packet.TCP, TCPFlags: packet.ACK, Packets: 1, Bytes: 60})
	}
	const s = time.Second
	for _, f := range []*path.Flow{follows, again, follows, again, past} {
		if !take(f, s) {
			t.Fatal("a path does not hold")
		}
	}
	take(follows, 2*s)
	take(again, 3*s)
	take(follows, 4*s)
	ways.Settle()
	for _, e := range x.table {
		if e.last != 4*s || e.until != 4*s+x.Timeouts.Open {
			t.Errorf("the connection's last packet is of %v and it lives until %v", e.last, e.until)
		}
	}
	fin := data
	fin.TCPFlags |= packet.FIN
	x.sim.AdvanceTo(5 * s)
	x.pass(fin) // two minutes from now on
	if !take(past, 6*s) || !take(follows, 7*s) {
		t.Fatal("a path does not hold")
	}
	// The acknowledgement has left it one minute.
	if take(past, 100*s) {
		t.Error("a path holds that rests on a connection that has expired")
	}
}

// takesTwo sends two packets by a path: the first may be one that it looks at more closely.
func takesTwo(f *path.Flow, by *path.Passing) bool {
	first := f.Take(by)
	return f.Take(by) && first
}
