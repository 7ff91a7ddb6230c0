package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
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
