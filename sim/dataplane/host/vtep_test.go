package host

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// vtep gives a machine a VXLAN device with one peer.
func vtep(m *machine, local string, vni uint32, port uint16, own, peerPrefix, peer string, mac, peerMAC byte) {
	m.AddVTEP(&VTEP{Kind: packet.VXLAN, VNI: vni, Port: port, Local: netip.MustParseAddr(local),
		Link:  &Link{Name: "vxlan0", MAC: packet.MAC{2, 1, 0, 0, 0, mac}, Addrs: []netip.Prefix{netip.MustParsePrefix(own)}},
		Peers: []Peer{{Prefix: netip.MustParsePrefix(peerPrefix), Addr: netip.MustParseAddr(peer), MAC: packet.MAC{2, 1, 0, 0, 0, peerMAC}}}})
}

func TestTunnelDevices(t *testing.T) {
	for _, c := range []struct {
		name   string
		vni    uint32
		port   uint16
		mac    byte // of b's device, as a has it
		done   bool
		reason trace.Reason
	}{
		{"both alike", 1, 8472, 2, true, ""},
		{"another identifier", 2, 8472, 2, false, trace.UnknownVNI},
		{"another port", 1, 4789, 2, false, trace.TunnelPort},
		{"another MAC address", 1, 8472, 3, false, trace.TunnelMAC},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			a, b := n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
			vtep(a, "192.0.2.1", c.vni, c.port, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, c.mac)
			vtep(b, "192.0.2.2", 1, 8472, "10.244.2.0/32", "10.244.1.0/24", "192.0.2.1", 2, 1)
			b.Listen(&Listener{Proto: packet.TCP, Port: 80})
			out, rec := n.send(a, packet.TCP, "10.244.2.0:80", 64)
			if out.Done != c.done || !c.done && reasonOf(rec) != c.reason {
				t.Errorf("%+v, %s", out, reasonOf(rec))
			}
			if c.done && (len(n.frames) != 2 || !strings.Contains(n.frames[0], "192.0.2.1:") || rec.Seen().Src != "10.244.1.0") {
				t.Errorf("frames %q, seen %+v", n.frames, rec.Seen())
			}
		})
	}
	n := newNetwork(t)
	a := n.add("a", "lan 192.0.2.1/24")
	vtep(a, "192.0.2.1", 1, 8472, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
	if out, rec := n.send(a, packet.TCP, "10.244.2.1:80", 64); out.Done || reasonOf(rec) != trace.NoNeighbour {
		t.Errorf("a peer that is not there: %+v, %s", out, reasonOf(rec))
	}
}

// A packet to a tunnel's port that no device takes.
func TestTunnelPacketsThatNobodyOpens(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     packet.Tunnel
		port     uint16
		bySwitch bool
		want     string
		reason   trace.Reason
	}{
		{"no device", packet.VXLAN, 4789, false, "a VXLAN packet (VNI 7) to UDP port 4789, and no tunnel device here has that port",
			trace.TunnelPort},
		{"Linux' own port", packet.VXLAN, 8472, false, "a VXLAN packet (VNI 7) to UDP port 8472, and no tunnel device here has that port",
			trace.TunnelPort},
		{"Geneve", packet.Geneve, 6081, false, "a Geneve packet (VNI 7) to UDP port 6081, and no tunnel device here has that port",
			trace.TunnelPort},
		{"the switch's port", packet.VXLAN, 4789, true, "a VXLAN packet (VNI 7) to UDP port 4789, and the virtual switch did not open it",
			trace.NotDecapsulated},
		{"any other port", packet.VXLAN, 5000, false, "nothing listens on UDP port 5000", trace.PortClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
			s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
			if c.bySwitch {
				s.TunnelPorts = []uint16{c.port}
			}
			p := packetOf(t, s.Links[0], "tcp 10.244.1.4:1 > 10.244.2.4:80 S")
			if err := p.Encap(packet.Outer{Kind: c.kind, EthDst: s.Links[0].MAC, Src: netip.MustParseAddr("10.0.1.7"),
				Dst: netip.MustParseAddr("10.0.1.2"), DstPort: c.port, VNI: 7}); err != nil {
				t.Fatal(err)
			}
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			s.Input(sim, s.Links[0], p)
			if st := sim.Rec.Steps(); len(st) != 1 || st[0].Text() != c.want || st[0].Reason != c.reason {
				t.Errorf("steps %+v, want %q", st, c.want)
			}
		})
	}
	// A datagram to the port that is not a tunnel packet is for a program.
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Listen(&Listener{Proto: packet.UDP, Port: 4789})
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "udp 10.0.1.7:1 > 10.0.1.2:4789"))
	if sim.Rec.Seen() == nil {
		t.Errorf("the program got nothing: %+v", sim.Rec.Steps())
	}
}

// Several devices of a machine each take what is for their port, and a datagram to that
// port that is no tunnel packet is for a program.
func TestEachDeviceHasItsPort(t *testing.T) {
	for _, c := range []struct {
		name string
		port uint16
		vni  uint32
		want string // the device that opens it, "" for none
	}{{"the first", 8472, 1, "vxlan0"}, {"the second", 9999, 2, "vxlan1"}, {"the first's identifier at the second's port", 9999, 1, ""}} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
		for i, port := range []uint16{8472, 9999} {
			s.AddVTEP(&VTEP{Kind: packet.VXLAN, VNI: uint32(i + 1), Port: port, Local: s.Address(false),
				Link: &Link{Name: fmt.Sprintf("vxlan%d", i), MAC: packet.MAC{2, 1},
					Addrs: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/32", i))}}})
		}
		s.Listen(&Listener{Proto: packet.UDP, Port: c.port})
		s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
		p := packetOf(t, s.Links[0], "udp 10.244.9.4:1 > 10.244.1.0:80")
		if err := p.Encap(packet.Outer{Kind: packet.VXLAN, EthDst: s.Links[0].MAC, Src: netip.MustParseAddr("10.0.1.7"),
			Dst: netip.MustParseAddr("10.0.1.2"), DstPort: c.port, VNI: c.vni}); err != nil {
			t.Fatal(err)
		}
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], p)
		if st := sim.Rec.Steps()[0]; (st.Action == trace.ActDecap) != (c.want != "") || c.want != "" &&
			!strings.HasSuffix(st.Text(), "by "+c.want) {
			t.Errorf("%s: %s %q", c.name, st.Action, st.Text())
		}
		sim = &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], fmt.Sprintf("udp 10.0.1.7:1 > 10.0.1.2:%d", c.port)))
		if sim.Rec.Seen() == nil {
			t.Errorf("%s: a program got nothing: %+v", c.name, sim.Rec.Steps())
		}
	}
}

// A NIC that offloads checksums and does not know the tunnel leaves wrong ones inside; the
// outer packet is right, and the receiver's stack drops the inner one.
func TestSpoiledChecksums(t *testing.T) {
	for _, c := range []struct {
		spoils bool
		proto  packet.Proto
		reason trace.Reason
	}{{false, packet.TCP, ""}, {true, packet.TCP, trace.BadChecksum}, {true, packet.UDP, trace.BadChecksum}, {true, packet.ICMP, ""}} {
		n := newNetwork(t)
		a, b := n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
		vtep(a, "192.0.2.1", 1, 8472, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
		vtep(b, "192.0.2.2", 1, 8472, "10.244.2.0/32", "10.244.1.0/24", "192.0.2.1", 2, 1)
		a.vteps[0].SpoilsChecksums = c.spoils
		b.Listen(&Listener{Proto: c.proto, Port: 80})
		out, rec := n.send(a, c.proto, "10.244.2.0:80", 64)
		if out.Done != (c.reason == "") || reasonOf(rec) != c.reason || (rec.Seen() != nil) != (c.reason == "") {
			t.Errorf("%+v: %+v, %q, seen %+v", c, out, reasonOf(rec), rec.Seen())
		}
	}
	// A stack looks at checksums only in a simulation in which some may be wrong: nothing
	// else here makes them wrong.
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Listen(&Listener{Proto: packet.UDP, Port: 53})
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	for _, checks := range []bool{false, true} {
		p := packetOf(t, s.Links[0], "udp 10.0.1.7:1 > 10.0.1.2:53")
		p.SpoilChecksum()
		sim := &wire.Simulation{Rec: &trace.Recorder{}, CheckChecksums: checks}
		s.Input(sim, s.Links[0], p)
		if (sim.Lost.Reason == trace.BadChecksum) != checks {
			t.Errorf("with checks %v: %+v", checks, sim.Lost)
		}
	}
}

// A packet that is too large to get a tunnel's headers is lost, and says so.
func TestTooLargeForATunnel(t *testing.T) {
	n := newNetwork(t)
	a := n.add("a", "lan 192.0.2.1/24")
	n.add("b", "lan 192.0.2.2/24")
	vtep(a, "192.0.2.1", 1, 8472, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
	for size, reason := range map[int]trace.Reason{65535 - 20 - 8 - 8 - 14 - 20 - 8: trace.TunnelPort,
		65535 - 20 - 8 - 8 - 14 - 20 - 8 + 1: trace.BadPacket} {
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		a.Open(packet.UDP, netip.Addr{}, 0, netip.MustParseAddrPort("10.244.2.1:53")).Send(sim, make([]byte, size), 64)
		if err := sim.Run(); err != nil || sim.Lost.Reason != reason {
			t.Errorf("%d bytes: %+v, %v; want %s", size, sim.Lost, err, reason)
		}
	}
}

// A device has its own kind of tunnel, and its outer packets the TTL of a host's own.
func TestWhatATunnelSends(t *testing.T) {
	for _, kind := range []packet.Tunnel{packet.VXLAN, packet.Geneve} {
		s := stackOf(t, []string{"eth0 192.0.2.1/24"}, nil)
		var sent []*packet.Packet
		s.Links[0].Send = func(_ *wire.Simulation, p *packet.Packet) { sent = append(sent, p) }
		s.AddVTEP(&VTEP{Kind: kind, VNI: 7, Port: 9999, Local: s.Address(false), Link: &Link{Name: "tun", MAC: packet.MAC{2, 1}},
			Peers: []Peer{{Prefix: netip.MustParsePrefix("10.244.2.0/24"), Addr: netip.MustParseAddr("192.0.2.2"), MAC: packet.MAC{2, 2}}}})
		s.Open(packet.UDP, netip.MustParseAddr("10.244.1.0"), 0, netip.MustParseAddrPort("10.244.2.1:53")).Send(&wire.Simulation{}, nil, 9)
		if len(sent) != 1 {
			t.Fatalf("%s: sent %v", kind, sent)
		}
		h := sent[0].Headers()
		in, vni, err := sent[0].Inner(kind)
		if err != nil || vni != 7 || in.DstPort != 53 || in.TTL != 9 || in.EthDst != (packet.MAC{2, 2}) || in.EthSrc != (packet.MAC{2, 1}) {
			t.Errorf("%s: inside %+v, VNI %d (%v)", kind, in, vni, err)
		}
		if h.DstPort != 9999 || h.TTL != 64 || h.Src.String() != "192.0.2.1" || h.SrcPort < 49152 {
			t.Errorf("%s: outside %+v", kind, h)
		}
	}
}

// A device knows the neighbours that its peers are, and no others.
func TestTunnelPeers(t *testing.T) {
	n := newNetwork(t)
	a := n.add("a", "lan 192.0.2.1/24")
	vtep(a, "192.0.2.1", 1, 8472, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
	l := a.vteps[0].Link
	if m, ok := l.Resolve(netip.MustParseAddr("10.244.2.9")); !ok || m != (packet.MAC{2, 1, 0, 0, 0, 2}) {
		t.Errorf("the peer's MAC address is %s, %v", m, ok)
	}
	if _, ok := l.Resolve(netip.MustParseAddr("10.244.3.9")); ok {
		t.Error("an address of no peer answers")
	}
	a.AppendRoutes(Route{To: netip.MustParsePrefix("10.244.3.0/24"), Via: netip.MustParseAddr("10.244.2.1"), Link: l})
	if out, rec := n.send(a, packet.TCP, "10.244.3.1:80", 64); out.Done || reasonOf(rec) != trace.NoTunnelEndpoint {
		t.Errorf("no peer has it: %+v, %s", out, reasonOf(rec))
	}
}
