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

// A port that is removed gives back the ports of its NAT pool.
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

// Which port a packet leaves through when several things claim it.
func TestForwarding(t *testing.T) {
	t.Parallel()
	vip := addr("192.168.1.11")
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		from    func(l *lab) *Port
		pkt     string
		want    string
	}{
		{"a bound port gets the frame with its MAC", func(l *lab) { l.Bind(vip, packet.TCP, 80, l.server) },
			func(l *lab) *Port { return l.ext }, "tcp 10.0.0.1:1 > 192.168.1.11:80 dstmac host",
			"server tcp 10.0.0.1:1 > 192.168.1.11:80 dstmac server"},
		{"a binding is not for ICMP", func(l *lab) { l.Bind(vip, packet.ICMP, 0, l.server) },
			func(l *lab) *Port { return l.ext }, "ping 10.0.0.1 > 192.168.1.11 dstmac host", "host ping 10.0.0.1 > 192.168.1.11"},
		{"what a pool has bound goes before what was configured", func(l *lab) {
			l.Bind(vip, packet.UDP, 50048, l.server)
			l.bindings[binding{vip, packet.UDP, 50048}] = l.client
		}, func(l *lab) *Port { return l.ext }, "udp 10.0.0.1:1 > 192.168.1.11:50048 dstmac host",
			"client udp 10.0.0.1:1 > 192.168.1.11:50048 dstmac pod"},
		{"after Unbind the MAC decides", func(l *lab) { l.Bind(vip, packet.TCP, 80, l.server); l.Unbind() },
			func(l *lab) *Port { return l.ext }, "tcp 10.0.0.1:1 > 192.168.1.11:80 dstmac host", "host tcp 10.0.0.1:1 > 192.168.1.11:80"},
		{"the host's own binding does not send its packets back", func(l *lab) { l.Bind(vip, packet.TCP, 80, l.host) },
			func(l *lab) *Port { return l.host }, "tcp 192.168.1.11:1 > 192.168.1.11:80 dstmac server",
			"server tcp 192.168.1.11:1 > 192.168.1.11:80"},
		{"a container's own binding does", func(l *lab) { l.Bind(vip, packet.TCP, 80, l.client) },
			func(l *lab) *Port { return l.client }, "tcp 10.244.1.4:1 > 192.168.1.11:80 dstmac host",
			"client tcp 10.244.1.4:1 > 192.168.1.11:80 dstmac pod"},
		{"the host may talk to itself through the switch", func(*lab) {},
			func(l *lab) *Port { return l.host }, "udp 192.168.1.11:1 > 192.168.1.11:2 dstmac host", "host udp 192.168.1.11:1 > 192.168.1.11:2"},
		{"a container may not", func(*lab) {},
			func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.244.1.4:2 dstmac pod", string(trace.HairpinToSelf)},
		{"but with two addresses it may", func(*lab) {},
			func(l *lab) *Port { return l.client }, "udp 10.244.1.9:1 > 10.244.1.4:2 dstmac pod", "client udp 10.244.1.9:1 > 10.244.1.4:2"},
		{"from the wire to nobody", func(*lab) {},
			func(l *lab) *Port { return l.ext }, "udp 10.0.0.1:1 > 10.244.1.4:2 dstmac router", string(trace.NoNeighbour)},
		{"without an external port to nobody", func(l *lab) { l.RemovePort(l.ext) },
			func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.0.0.1:2 dstmac router", string(trace.NoNeighbour)},
		{"of two ports with one MAC the other stays", func(l *lab) {
			l.AddPort(&Port{ID: "second", MAC: serverMAC})
			l.RemovePort(l.Ports[len(l.Ports)-1])
		}, func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", "server udp 10.244.1.4:1 > 10.244.1.5:2"},
		{"the port that lets packets in drops them too", func(l *lab) { l.client.SetLayers(policy(t, "layer ACL; block out 1 any")) },
			func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", string(trace.ACLBlock)},
		{"the port that lets packets out drops them too",
			func(l *lab) { l.server.SetLayers(policy(t, "layer ACL; block in 1 any => unknown-vni")) },
			func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", string(trace.UnknownVNI)},
		{"on the external port what comes in is inbound", func(l *lab) {
			l.ext.SetLayers(policy(t, "layer ACL; block in 1 port 1; block out 1 port 2"))
		}, func(l *lab) *Port { return l.ext }, "udp 10.0.0.1:1 > 10.244.1.4:2 dstmac pod", "client udp 10.0.0.1:1 > 10.244.1.4:2"},
		{"and what goes to the wire is outbound", func(l *lab) {
			l.ext.SetLayers(policy(t, "layer ACL; block in 1 port 1; block out 1 port 2"))
		}, func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.0.0.1:2 dstmac router", string(trace.ACLBlock)},
		{"where the model ends", func(l *lab) { l.server.SetLayers(policy(t, "layer ACL; unknown allow in 1 any")) },
			func(l *lab) *Port { return l.client }, "udp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", string(trace.ModelHole)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, rec := range []*trace.Recorder{nil, {}} {
				l := newLab()
				tc.prepare(l)
				before, p := parse(t, tc.pkt), parse(t, tc.pkt)
				out := l.Send(tc.from(l), p, &Env{Rec: rec})
				got := outcome(before, p, out.Result)
				if out.To != nil {
					got = out.To.ID + " " + got
				}
				if got != tc.want {
					t.Errorf("recorded %v:\n got %s\nwant %s", rec.On(), got, tc.want)
				}
			}
		})
	}
}
