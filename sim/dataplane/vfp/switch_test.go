package vfp

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// lab is a switch with the ports that a node has.
type lab struct {
	*Switch
	ext, host, client, server *Port
}

var serverMAC = packet.MAC{0, 0x15, 0x5d, 0x4a, 1, 5}

func newLab() *lab {
	l := &lab{
		Switch: NewSwitch("vSwitch", "external"),
		ext:    &Port{ID: "ext", External: true, Label: "external port"},
		host:   &Port{ID: "host", Host: true, MAC: hostMAC, Label: "host vNIC"},
		client: &Port{ID: "client", MAC: podMAC, Label: "endpoint client"},
		server: &Port{ID: "server", MAC: serverMAC, Label: "endpoint server"},
	}
	for _, p := range []*Port{l.ext, l.host, l.client, l.server} {
		l.AddPort(p)
	}
	return l
}

// send sends a packet in at a port and says where it leaves.
func (l *lab) send(t *testing.T, from *Port, to packet.MAC, text string) (where string, p *packet.Packet) {
	t.Helper()
	p = parse(t, text)
	p.SetEthDst(to)
	out := l.Send(from, p, &Env{})
	traced := parse(t, text)
	traced.SetEthDst(to)
	if again := l.Send(from, traced, &Env{Rec: &trace.Recorder{}}); again != out {
		t.Errorf("%s: %+v, with a recorder %+v", text, out, again)
	}
	if out.To == nil {
		return string(out.Reason), p
	}
	return out.To.ID, p
}

func TestSwitch(t *testing.T) {
	l := newLab()
	l.Bind(addr("192.168.1.11"), packet.TCP, 8080, l.server)
	unknown := packet.MAC{2, 9, 9, 9, 9, 9}
	for _, tc := range []struct {
		name string
		from *Port
		to   packet.MAC
		pkt  string
		want string
	}{
		{"neighbour by MAC", l.client, serverMAC, "tcp 10.244.1.4:1 > 10.244.1.5:80 syn", "server"},
		{"host by MAC", l.client, hostMAC, "tcp 10.244.1.4:1 > 192.168.1.11:22 syn", "host"},
		{"unknown MAC leaves the node", l.client, unknown, "tcp 10.244.1.4:1 > 203.0.113.1:80 syn", "ext"},
		{"unknown MAC from the wire goes nowhere", l.ext, unknown, "tcp 203.0.113.1:1 > 10.244.1.4:80 syn", string(trace.NoNeighbour)},
		{"from the wire by MAC", l.ext, podMAC, "tcp 203.0.113.1:1 > 10.244.1.4:80 syn", "client"},
		{"back to the same port", l.client, podMAC, "tcp 10.244.1.7:1 > 10.244.1.4:80 syn", "client"},
		{"back to the same port from its own address", l.client, podMAC, "tcp 10.244.1.4:1 > 10.244.1.4:80 syn", string(trace.HairpinToSelf)},
		{"a bound port wins over the MAC", l.ext, hostMAC, "tcp 203.0.113.1:1 > 192.168.1.11:8080 syn", "server"},
		{"a bound port is of one protocol", l.ext, hostMAC, "udp 203.0.113.1:1 > 192.168.1.11:8080", "host"},
		{"its neighbour is not bound", l.ext, hostMAC, "tcp 203.0.113.1:1 > 192.168.1.11:8081 syn", "host"},
	} {
		if got, _ := l.send(t, tc.from, tc.to, tc.pkt); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	l.KeepLoopback = true
	if got, _ := l.send(t, l.client, podMAC, "tcp 10.244.1.4:1 > 10.244.1.4:80 syn"); got != "client" {
		t.Errorf("with loopback kept: %s", got)
	}
	if got := l.Flood(l.client); len(got) != 3 {
		t.Errorf("a broadcast leaves through %d ports", len(got))
	}
	l.RemovePort(l.server)
	if got, _ := l.send(t, l.client, serverMAC, "tcp 10.244.1.4:1 > 10.244.1.5:80 syn"); got != "ext" {
		t.Errorf("to a port that is gone: %s", got)
	}
	if got, _ := l.send(t, l.ext, hostMAC, "tcp 203.0.113.1:1 > 192.168.1.11:8080 syn"); got != "host" {
		t.Errorf("to an address bound to a port that is gone: %s", got)
	}
}

// The reply to a translated packet finds the container through the binding of
// its pool, although it carries the node's MAC address.
func TestReplyToTranslatedPacket(t *testing.T) {
	l := newLab()
	l.client.SetLayers([]*Layer{layer("NAT", 300, []*Rule{snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil)})
	where, p := l.send(t, l.client, gwMAC, "tcp 10.244.1.4:1000 > 203.0.113.10:443 syn")
	if where != "ext" || short(p) != "tcp 192.168.1.11:50048 > 203.0.113.10:443" {
		t.Fatalf("%s %v", where, p)
	}
	where, p = l.send(t, l.ext, hostMAC, "tcp 203.0.113.10:443 > 192.168.1.11:50048 syn-ack")
	if where != "client" || short(p) != "tcp 203.0.113.10:443 > 10.244.1.4:1000" {
		t.Errorf("the reply: %s %v", where, p)
	}
	if where, _ = l.send(t, l.ext, hostMAC, "tcp 203.0.113.10:443 > 192.168.1.11:50049 syn-ack"); where != "host" {
		t.Errorf("to a port that nobody has: %s", where)
	}
	l.Reset()
	if where, _ = l.send(t, l.ext, hostMAC, "tcp 203.0.113.10:443 > 192.168.1.11:50048 syn-ack"); where != "host" {
		t.Errorf("after a reset: %s", where)
	}
}

// A load balancer on the host's port sends requests back into the switch, to
// the backend, and its replies back to the client.
func TestHairpin(t *testing.T) {
	l := newLab()
	to := targets("10.244.1.5:8080")
	to[0].MAC = serverMAC
	r := lbWith(LBNAT{Targets: to, Hairpin: true, Pool: &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}})
	l.host.SetLayers([]*Layer{layer("SLB", 220, nil, []*Rule{r})})
	where, p := l.send(t, l.client, hostMAC, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn")
	if where != "server" || short(p) != "tcp 192.168.1.11:50048 > 10.244.1.5:8080" {
		t.Fatalf("request: %s %v", where, p)
	}
	where, p = l.send(t, l.server, hostMAC, "tcp 10.244.1.5:8080 > 192.168.1.11:50048 syn-ack")
	if where != "client" || short(p) != "tcp 10.96.0.10:80 > 10.244.1.4:1000" {
		t.Errorf("reply: %s %v", where, p)
	}
}

// Rules that send a packet back into the switch for ever do not hang it.
func TestHairpinForEver(t *testing.T) {
	l := newLab()
	loop := lbWith(LBNAT{Targets: targets("10.244.1.5:80"), KeepDst: true, Hairpin: true})
	l.host.SetLayers([]*Layer{layer("LOOP", 1, nil, []*Rule{loop})})
	if where, _ := l.send(t, l.client, hostMAC, "udp 10.244.1.4:1000 > 10.96.0.10:80"); where != string(trace.TTLExceeded) {
		t.Errorf("%s", where)
	}
}

// Whoever is unplugged gives its ports back.
func TestRemovePortFreesPool(t *testing.T) {
	l := newLab()
	pool := &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
	l.client.SetLayers([]*Layer{layer("NAT", 300, []*Rule{snat(pool)}, nil)})
	l.send(t, l.client, gwMAC, "udp 10.244.1.4:1000 > 203.0.113.10:443")
	l.RemovePort(l.client)
	if len(pool.used) != 0 || len(l.bindings) != 0 {
		t.Errorf("%d ports and %d bindings are left", len(pool.used), len(l.bindings))
	}
}
