package host

import (
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
		done   bool
		reason trace.Reason
	}{
		{"both alike", 1, 8472, true, ""},
		{"another identifier", 2, 8472, false, trace.UnknownVNI},
		{"another port", 1, 4789, false, trace.TunnelPort},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			a, b := n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
			vtep(a, "192.0.2.1", c.vni, c.port, "10.244.1.0/32", "10.244.2.0/24", "192.0.2.2", 1, 2)
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
		{"no device", packet.VXLAN, 4789, false, "a VXLAN packet (VNI 7) to UDP port 4789, and no tunnel device here has that port", trace.TunnelPort},
		{"Linux' own port", packet.VXLAN, 8472, false, "a VXLAN packet (VNI 7) to UDP port 8472, and no tunnel device here has that port", trace.TunnelPort},
		{"Geneve", packet.Geneve, 6081, false, "a Geneve packet (VNI 7) to UDP port 6081, and no tunnel device here has that port", trace.TunnelPort},
		{"the switch's port", packet.VXLAN, 4789, true, "a VXLAN packet (VNI 7) to UDP port 4789, and the virtual switch did not open it", trace.NotDecapsulated},
		{"any other port", packet.VXLAN, 5000, false, "nothing listens on UDP port 5000", trace.PortClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
			s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
			if c.bySwitch {
				s.TunnelPorts = []uint16{c.port}
			}
			p := packetOf(t, s.Links[0], "tcp 10.244.1.4:1 > 10.244.2.4:80 S")
			if err := p.Encap(packet.Outer{Kind: c.kind, EthDst: s.Links[0].MAC, Src: netip.MustParseAddr("10.0.1.7"), Dst: netip.MustParseAddr("10.0.1.2"), DstPort: c.port, VNI: 7}); err != nil {
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
	a.Routes = append(a.Routes, Route{To: netip.MustParsePrefix("10.244.3.0/24"), Via: netip.MustParseAddr("10.244.2.1"), Link: l})
	if out, rec := n.send(a, packet.TCP, "10.244.3.1:80", 64); out.Done || reasonOf(rec) != trace.NoTunnelEndpoint {
		t.Errorf("no peer has it: %+v, %s", out, reasonOf(rec))
	}
}
