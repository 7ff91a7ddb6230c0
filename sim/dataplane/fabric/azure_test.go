package fabric

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// vm answers ARP for its addresses and keeps the frames that it gets.
type vm struct {
	addrs   []string
	got     []*packet.Packet
	gateway bool
}

func (v *vm) Receive(_ *wire.Simulation, _ *wire.NIC, p *packet.Packet) { v.got = append(v.got, p) }

func (v *vm) ARP(n *wire.NIC, ip netip.Addr) (packet.MAC, bool) {
	for _, a := range v.addrs {
		if netip.MustParseAddr(a) == ip {
			return n.MAC, true
		}
	}
	return packet.MAC{}, false
}

func (v *vm) Routes() bool { return v.gateway }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestVirtualNetwork(t *testing.T) {
	deny := Rule{Name: "deny-web", To: prefix("10.0.0.2/32"), Proto: packet.TCP, PortLo: 80, PortHi: 90}
	allow := Rule{Name: "allow-web", Allow: true, From: prefix("10.0.0.1/32"), Proto: packet.TCP, PortLo: 80, PortHi: 80}
	udr := Route{To: prefix("10.244.2.0/24"), Via: netip.MustParseAddr("10.0.0.2")}
	wide := Route{To: prefix("10.244.0.0/16"), Via: netip.MustParseAddr("10.0.0.254")}
	floating := Route{To: prefix("192.0.2.80/32"), Via: netip.MustParseAddr("10.0.0.2")}
	for _, c := range []struct {
		name     string
		net      Azure
		from     int // 0 and 1 are machines, 2 the gateway
		src, dst string
		proto    packet.Proto
		port     uint16
		to       int // -1: nobody
		reason   trace.Reason
	}{
		{name: "between machines", src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 22, to: 1},
		{name: "an answer to UDP port 65330", src: "10.0.0.1", dst: "10.0.0.2", proto: packet.UDP, port: 65330, to: -1,
			reason: trace.FabricPolicy},
		{name: "TCP port 65330", src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 65330, to: 1},
		{name: "the UDP port beside it", src: "10.0.0.1", dst: "10.0.0.2", proto: packet.UDP, port: 65331, to: 1},
		{name: "to a second address of a machine", src: "10.0.0.1", dst: "10.0.0.22", proto: packet.TCP, port: 22, to: 1},
		{name: "to nobody", src: "10.0.0.1", dst: "10.0.0.99", proto: packet.TCP, port: 22, to: -1, reason: trace.NoRoute},
		{name: "to the outside", src: "10.0.0.1", dst: "192.0.2.1", proto: packet.TCP, port: 443, to: 2},
		{name: "from the outside", from: 2, src: "192.0.2.1", dst: "10.0.0.1", proto: packet.TCP, port: 443, to: 0},
		{name: "between IPv6 addresses", src: "fd00::1", dst: "fd00::2", proto: packet.TCP, port: 22, to: 1},
		{name: "an IPv6 address of nobody", src: "fd00::1", dst: "fd00::9", proto: packet.TCP, port: 22, to: -1, reason: trace.NoRoute},
		{name: "another machine's IPv6 address", src: "fd00::2", dst: "fd00::2", proto: packet.TCP, port: 22, to: -1,
			reason: trace.SpoofedSource},
		{name: "an IPv6 address that is not known to the network", src: "fd01::1", dst: "fd00::2", proto: packet.TCP, port: 22, to: -1,
			reason: trace.SpoofedSource},
		{name: "a pod that is not known to the network", src: "10.244.1.4", dst: "10.0.0.2", proto: packet.TCP, port: 80, to: -1,
			reason: trace.SpoofedSource},
		{name: "another machine's address", src: "10.0.0.2", dst: "10.0.0.2", proto: packet.TCP, port: 80, to: -1, reason: trace.SpoofedSource},
		{name: "a pod, with IP forwarding", net: Azure{IPForwarding: true}, src: "10.244.1.4", dst: "10.0.0.2", proto: packet.TCP, port: 80,
			to: 1},
		{name: "to a pod, without a route", net: Azure{IPForwarding: true}, src: "10.244.1.4", dst: "10.244.2.4", proto: packet.TCP, port: 80,
			to: 2},
		{name: "to a pod, by a user-defined route", net: Azure{IPForwarding: true, Routes: []Route{udr}}, src: "10.244.1.4", dst: "10.244.2.4",
			proto: packet.TCP, port: 80, to: 1},
		{name: "to a pod, by a route to a NIC without IP forwarding", net: Azure{Routes: []Route{udr}}, src: "10.0.0.1", dst: "10.244.2.4",
			proto: packet.TCP, port: 80, to: -1, reason: trace.NotForwarding},
		{name: "a floating address", net: Azure{Routes: []Route{floating}}, from: 2, src: "192.0.2.1", dst: "192.0.2.80", proto: packet.TCP,
			port: 80, to: 1},
		{name: "from a floating address", net: Azure{Routes: []Route{floating}}, from: 1, src: "192.0.2.80", dst: "192.0.2.1", proto: packet.TCP,
			port: 80, to: 2},
		{name: "from another machine's floating address", net: Azure{Routes: []Route{floating}}, src: "192.0.2.80", dst: "192.0.2.1",
			proto: packet.TCP, port: 80, to: -1, reason: trace.SpoofedSource},
		{name: "from a prefix that is routed to the machine", net: Azure{Routes: []Route{udr}}, from: 1, src: "10.244.2.0", dst: "10.0.0.1",
			proto: packet.TCP, port: 80, to: -1, reason: trace.SpoofedSource},
		{name: "the gateway does not send for a machine", from: 2, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 80, to: -1,
			reason: trace.SpoofedSource},
		{name: "the gateway's own address", from: 2, src: "10.0.0.254", dst: "10.0.0.2", proto: packet.TCP, port: 80, to: 1},
		{name: "the longest user-defined route", net: Azure{IPForwarding: true, Routes: []Route{wide, udr}}, src: "10.0.0.1", dst: "10.244.2.4",
			proto: packet.TCP, port: 80, to: 1},
		{name: "the longest user-defined route, in another order", net: Azure{IPForwarding: true, Routes: []Route{udr, wide}}, src: "10.0.0.1",
			dst: "10.244.2.4", proto: packet.TCP, port: 80, to: 1},
		{name: "of equal user-defined routes the first", net: Azure{IPForwarding: true,
			Routes: []Route{udr, {To: udr.To, Via: netip.MustParseAddr("10.0.0.254")}}}, src: "10.0.0.1", dst: "10.244.2.4", proto: packet.TCP,
			port: 80, to: 1},
		{name: "a user-defined route for others", net: Azure{IPForwarding: true, Routes: []Route{udr}}, src: "10.0.0.1", dst: "10.244.3.4",
			proto: packet.TCP, port: 80, to: 2},
		{name: "no route for the network's own addresses", net: Azure{
			Routes: []Route{{To: prefix("10.0.0.0/8"), Via: netip.MustParseAddr("10.0.0.254")}}}, src: "10.0.0.1", dst: "10.0.0.2",
			proto: packet.TCP, port: 80, to: 1},
		{name: "a route to the gateway needs no IP forwarding", net: Azure{
			Routes: []Route{{To: prefix("10.244.0.0/16"), Via: netip.MustParseAddr("10.0.0.254")}}}, src: "10.0.0.1", dst: "10.244.2.4",
			proto: packet.TCP, port: 80, to: 2},
		{name: "a route to nobody", net: Azure{IPForwarding: true,
			Routes: []Route{{To: prefix("10.244.0.0/16"), Via: netip.MustParseAddr("10.0.0.99")}}}, src: "10.0.0.1", dst: "10.244.2.4",
			proto: packet.TCP, port: 80, to: -1, reason: trace.NoRoute},
		{name: "the gateway sends nothing back to itself", from: 2, src: "192.0.2.1", dst: "192.0.2.2", proto: packet.TCP, port: 80, to: -1,
			reason: trace.NoRoute},
		{name: "denied from a prefix", net: Azure{Rules: []Rule{{From: prefix("10.0.0.0/30")}}}, src: "10.0.0.1", dst: "10.0.0.2",
			proto: packet.TCP, port: 80, to: -1, reason: trace.FabricPolicy},
		{name: "denied, the first port", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 80, to: -1,
			reason: trace.FabricPolicy},
		{name: "denied, the last port", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 90, to: -1,
			reason: trace.FabricPolicy},
		{name: "denied, the port before", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 79, to: 1},
		{name: "denied", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 85, to: -1,
			reason: trace.FabricPolicy},
		{name: "another port", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.TCP, port: 91, to: 1},
		{name: "another protocol", net: Azure{Rules: []Rule{deny}}, src: "10.0.0.1", dst: "10.0.0.2", proto: packet.UDP, port: 85, to: 1},
		{name: "another machine", net: Azure{Rules: []Rule{deny}}, from: 1, src: "10.0.0.2", dst: "10.0.0.1", proto: packet.TCP, port: 85, to: 0},
		{name: "the first rule that matches counts: allow", net: Azure{Rules: []Rule{allow, deny}}, src: "10.0.0.1", dst: "10.0.0.2",
			proto: packet.TCP, port: 80, to: 1},
		{name: "the first rule that matches counts: deny", net: Azure{Rules: []Rule{deny, allow}}, src: "10.0.0.1", dst: "10.0.0.2",
			proto: packet.TCP, port: 80, to: -1, reason: trace.FabricPolicy},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The second machine would answer ARP for a pod of its own, which
			// says nothing about what the network knows.
			vms := []*vm{{addrs: []string{"10.0.0.1", "10.244.1.4", "fd00::1", "fd01::1"}},
				{addrs: []string{"10.0.0.2", "10.0.0.22", "10.244.2.4", "fd00::2"}}, {addrs: []string{"10.0.0.254"}, gateway: true}}
			s := &wire.Segment{Name: "vnet"}
			var nics []*wire.NIC
			for i, v := range vms {
				n := &wire.NIC{Name: "nic", MAC: packet.MAC{2, 0, 0, 0, 0, byte(i + 1)}, Owner: v}
				s.Attach(n)
				nics = append(nics, n)
			}
			c.net.Subnets = []netip.Prefix{prefix("10.0.0.0/24"), prefix("fd00::/64")}
			c.net.Attach(s)
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			p := packet.Build(packet.Spec{EthSrc: nics[c.from].MAC, EthDst: hostMAC, Src: netip.MustParseAddr(c.src),
				Dst: netip.MustParseAddr(c.dst), Proto: c.proto, SrcPort: 40000, DstPort: c.port, TCPFlags: packet.SYN})
			s.Send(sim, nics[c.from], p)
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			for i, v := range vms {
				want := 0
				if i == c.to {
					want = 1
				}
				if len(v.got) != want {
					t.Errorf("machine %d got %d frames, want %d", i, len(v.got), want)
				}
				for _, p := range v.got {
					if h := p.Headers(); h.EthSrc != hostMAC || h.EthDst != nics[i].MAC {
						t.Errorf("the frame is from %s to %s; the virtualisation host writes both MAC addresses", h.EthSrc, h.EthDst)
					}
				}
			}
			steps := sim.Rec.Steps()
			last := steps[len(steps)-1]
			if last.Reason != c.reason || sim.Lost.Reason != c.reason {
				t.Errorf("the last step is %+v, the loss %+v; want the reason %q", last, sim.Lost, c.reason)
			}
			if gateway := strings.HasSuffix(last.Text(), "gateway"); gateway != (c.to == 2 && !strings.Contains(c.name, "needs no IP forwarding")) {
				t.Errorf("the last step says %q", last.Text())
			}
			if last.Place != "fabric" || last.Object != "Azure host" || (last.Action == trace.ActDrop) != (c.to < 0) || last.Evidence == "" ||
				last.Packet.IsZero() {
				t.Errorf("the last step is %+v", last)
			}
		})
	}
}

// The answer to an allowed flow passes a rule that would deny it.
func TestAnswersOfAllowedFlowsPass(t *testing.T) {
	a, b := &vm{addrs: []string{"10.0.0.1"}}, &vm{addrs: []string{"10.0.0.2"}}
	s := &wire.Segment{}
	na, nb := &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Owner: a}, &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 2}, Owner: b}
	s.Attach(na)
	s.Attach(nb)
	Azure{Subnets: []netip.Prefix{prefix("10.0.0.0/24")}, Rules: []Rule{{Name: "no-answers", From: prefix("10.0.0.2/32")}}}.Attach(s)
	sim := &wire.Simulation{}
	spec := packet.Spec{EthDst: hostMAC, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP,
		SrcPort: 1000, DstPort: 53}
	s.Send(sim, na, packet.Build(spec))
	spec.Src, spec.Dst, spec.SrcPort, spec.DstPort = spec.Dst, spec.Src, 53, 1000
	s.Send(sim, nb, packet.Build(spec))
	spec.SrcPort = 54
	s.Send(sim, nb, packet.Build(spec))
	if err := sim.Run(); err != nil || len(b.got) != 1 || len(a.got) != 1 {
		t.Errorf("%d and %d frames, want one each: the answer, not the new flow (%v)", len(a.got), len(b.got), err)
	}
	s.Forget()
	spec.SrcPort = 53
	s.Send(sim, nb, packet.Build(spec))
	if err := sim.Run(); err != nil || len(a.got) != 1 {
		t.Errorf("an answer passed after the flow was forgotten (%v)", err)
	}
	if s.AnswersAll != hostMAC {
		t.Errorf("ARP is answered with %s", s.AnswersAll)
	}
}

// Only IP is for the virtualisation host to route; it answers ARP itself.
func TestOtherFramesEndAtTheHost(t *testing.T) {
	a, b := &vm{addrs: []string{"10.0.0.1"}}, &vm{addrs: []string{"10.0.0.2"}}
	s := &wire.Segment{}
	na, nb := &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 1}, Owner: a}, &wire.NIC{MAC: packet.MAC{2, 0, 0, 0, 0, 2}, Owner: b}
	s.Attach(na)
	s.Attach(nb)
	Azure{Subnets: []netip.Prefix{prefix("10.0.0.0/24")}}.Attach(s)
	sim := &wire.Simulation{}
	s.Send(sim, na, packet.BuildARP(1, na.MAC, packet.Broadcast, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")))
	if err := sim.Run(); err != nil || len(b.got) != 0 {
		t.Errorf("%d frames, want none (%v)", len(b.got), err)
	}
}
