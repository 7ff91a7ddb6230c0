package vfp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

func encapRule(to string) *Rule {
	return &Rule{ID: "route", Flags: Terminating, Cond: Cond{Dst: []netip.Prefix{prefix(to)}},
		Action: RouteEncap{&Tunnel{Kind: packet.VXLAN, Src: addr("192.168.1.11"), Dst: addr("192.168.1.12"), VNI: 4096, Port: 4789,
			InnerDst: packet.MAC{2, 0, 0, 0, 0, 2}, InnerSrc: packet.MAC{2, 0, 0, 0, 0, 1}}}}
}

type hop struct{ dst packet.MAC }

func (h *hop) NextHop(netip.Addr) (Hop, bool) {
	return Hop{Src: hostMAC, Dst: h.dst, Via: Via("gateway"), Reason: trace.NoRoute}, !h.dst.IsZero()
}

// overlay is a port with the outbound layers of an overlay network.
func overlay(next Router) *Port { return port(overlayLayers(next)...) }

func overlayLayers(next Router) []*Layer {
	encap := layer("ENCAP", 500, []*Rule{encapRule("10.244.2.0/24")}, nil)
	route := layer("PA_ROUTE", 600, []*Rule{{ID: "PA_ROUTE", Action: PARoute{next},
		Cond: Cond{Protos: []packet.Proto{packet.UDP}, DstPorts: []PortRange{Port1(4789)}, Src: []netip.Prefix{prefix("192.168.1.11")}}}}, nil)
	encap.Stateful, route.Stateful = false, false
	return []*Layer{encap, route}
}

func TestEncapThenPARoute(t *testing.T) {
	pt := overlay(&hop{gwMAC})
	for i := range 3 { // slow, fast, recorded
		env := &Env{}
		if i == 2 {
			env.Rec = &trace.Recorder{}
		}
		p := parse(t, "tcp 10.244.1.4:1000 > 10.244.2.4:80 syn")
		inner := parse(t, "tcp 10.244.1.4:1000 > 10.244.2.4:80 syn")
		inner.Apply(&packet.Rewrite{Set: packet.RwEthDst | packet.RwEthSrc, EthDst: packet.MAC{2, 0, 0, 0, 0, 2},
			EthSrc: packet.MAC{2, 0, 0, 0, 0, 1}})
		if res := pt.Process(p, Out, env); !res.Pass {
			t.Fatalf("%+v", res)
		}
		h := p.Headers()
		if h.Src != addr("192.168.1.11") || h.Dst != addr("192.168.1.12") || h.DstPort != 4789 || h.TTL != 128 || h.EthSrc != hostMAC ||
			h.EthDst != gwMAC {
			t.Errorf("outer: %v", p)
		}
		if h.SrcPort != packet.VXLANSrcPort(inner.Tuple()) {
			t.Errorf("outer source port %d", h.SrcPort)
		}
		if err := p.VerifyChecksums(); err != nil {
			t.Error(err)
		}
		o, err := p.Decap(packet.VXLAN)
		if err != nil || o.VNI != 4096 || string(p.Bytes()) != string(inner.Bytes()) {
			t.Errorf("inside (%v, VNI %d): %v, want %v", err, o.VNI, p, inner)
		}
	}
}

// nowhere is a host whose routes nobody has shown.
type nowhere struct{}

func (nowhere) NextHop(netip.Addr) (Hop, bool) { return Hop{Unknown: "nobody has shown them"}, false }

func TestPARouteUnknown(t *testing.T) {
	for range 2 { // a packet that goes no further leaves no flow behind
		res := overlay(nowhere{}).Process(parse(t, "tcp 10.244.1.4:1000 > 10.244.2.4:80 syn"), Out, &Env{})
		if res.Pass || res.Unknown != "nobody has shown them" {
			t.Errorf("%+v", res)
		}
	}
}

// A change of the route table shows once the rules are set again.
func TestPARouteAfterChange(t *testing.T) {
	next := &hop{gwMAC}
	pt := overlay(next)
	const request, tunnel = "udp 10.244.1.4:1000 > 10.244.2.4:80",
		"vxlan 192.168.1.11 > 192.168.1.12 vni 4096 [udp 10.244.1.4:1000 > 10.244.2.4:80] srcmac host"
	check := func(when, want string) {
		t.Helper()
		if got := send(t, pt, Out, request, &Env{}); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("at first", tunnel) // to the gateway, to which the frame went already
	next.dst = serverMAC
	check("before", tunnel)
	pt.SetLayers(overlayLayers(next))
	check("after", tunnel+" dstmac server")
	next.dst = packet.MAC{}
	pt.SetLayers(overlayLayers(next))
	check("without a way", string(trace.NoRoute))
}

// Two pings that differ in their identifier only go through the tunnel with
// their own source ports, and stateful layers after it tell them apart.
func TestEncapOfPings(t *testing.T) {
	behind := layer("BEHIND", 700, []*Rule{{ID: "nat", Flags: Stateful,
		Action: NAT{packet.Rewrite{Set: packet.RwSrc, Src: addr("192.168.9.9")}}}}, nil)
	for _, recorded := range []bool{false, true} {
		pt := port(layer("ENCAP", 500, []*Rule{encapRule("10.244.2.0/24")}, nil), behind)
		ports := map[uint16]bool{}
		for id := range uint16(3) {
			p := parse(t, "ping 10.244.1.4 > 10.244.2.4")
			p.SetICMPID(id)
			want := packet.VXLANSrcPort(p.Tuple())
			env := &Env{}
			if recorded {
				env.Rec = &trace.Recorder{}
			}
			pt.Process(p, Out, env)
			ports[p.Headers().SrcPort] = true
			if p.Headers().SrcPort != want || p.Headers().Src != addr("192.168.9.9") {
				t.Errorf("ping %d: %v", id, p)
			}
		}
		if len(ports) != 3 {
			t.Errorf("source ports %v", ports)
		}
	}
}

// decap has the rules of a node that knows the VNI 4096.
func decap() *Port {
	l := layer("DECAP_IN", 900, nil, []*Rule{
		{ID: "decap", Priority: 1, Action: Decap{packet.VXLAN},
			Cond: Cond{Dst: []netip.Prefix{prefix("192.168.1.11")}, Tunnel: TunnelCond{Port: 4789, VNI: 4096}}},
		{ID: "(unknown VNI)", Priority: 2, Action: Block{trace.UnknownVNI},
			Cond: Cond{Protos: []packet.Proto{packet.UDP}, Dst: []netip.Prefix{prefix("192.168.1.11")}, DstPorts: []PortRange{Port1(4789)}}},
	})
	l.Stateful = false
	return port(l)
}

func vxlan(t *testing.T, inner string, vni uint32) *packet.Packet {
	p := parse(t, inner)
	if err := p.Encap(packet.Outer{EthSrc: gwMAC, EthDst: hostMAC, Src: addr("192.168.1.12"), Dst: addr("192.168.1.11"), VNI: vni,
		SrcPort: 50000}); err != nil {
		t.Fatal(err)
	}
	return p
}

// All packets have the same outer tuple: what is inside decides each time.
func TestDecap(t *testing.T) {
	pt := decap()
	for range 2 {
		for _, inner := range []string{"udp 10.244.2.4:1 > 10.244.1.4:2", "ping 10.244.2.4 > 10.244.1.4"} {
			p := vxlan(t, inner, 4096)
			if res := pt.Process(p, In, &Env{}); !res.Pass || short(p) != inner {
				t.Errorf("%s: %+v %v", inner, res, p)
			}
		}
		if res := pt.Process(vxlan(t, "ping 10.244.2.4 > 10.244.1.4", 4097), In, &Env{}); res.Reason != trace.UnknownVNI {
			t.Errorf("VNI 4097: %+v", res)
		}
	}
	p := packet.BuildARP(1, podMAC, packet.Broadcast, addr("10.244.2.4"), addr("10.244.1.4"))
	if err := p.Encap(packet.Outer{EthDst: hostMAC, Src: addr("192.168.1.12"), Dst: addr("192.168.1.11"), VNI: 4096}); err != nil {
		t.Fatal(err)
	}
	if res := pt.Process(p, In, &Env{}); !res.Pass || p.Headers().ARPOp != 1 {
		t.Errorf("ARP inside: %+v %v", res, p)
	}
}

// A tunnel packet that passed because its VNI is not ours does not make the
// next one with the same outer tuple pass.
func TestDecapAfterMiss(t *testing.T) {
	pt := decap()
	l := pt.layers[0].Layer
	l.Groups[1].Rules = l.Groups[1].Rules[:1] // no block
	pt.SetLayers([]*Layer{l})
	for range 2 {
		if p := vxlan(t, "ping 10.244.2.4 > 10.244.1.4", 1); !pt.Process(p, In, &Env{}).Pass || p.Headers().Proto != packet.UDP {
			t.Errorf("VNI 1: %v", p)
		}
		if p := vxlan(t, "ping 10.244.2.4 > 10.244.1.4", 4096); !pt.Process(p, In, &Env{}).Pass || p.Headers().Proto != packet.ICMP {
			t.Errorf("VNI 4096: %v", p)
		}
	}
}

// A frame that leaves no room for the outer headers is dropped also when the
// flow is known. It does not keep flows alive that it never reached.
func TestEncapTooLong(t *testing.T) {
	behind := snat(&Pool{Addr: addr("192.168.9.9"), Blocks: []uint16{50048}})
	behind.Cond.Src = nil
	pt := port(layer("ENCAP", 500, []*Rule{encapRule("10.244.2.0/24")}, nil), layer("BEHIND", 700, []*Rule{behind}, nil))
	for _, s := range []struct {
		at, bytes int
		srcPort   uint16 // of the outer header, 0 when the frame is dropped
	}{{0, 100, 50048}, {100, 65490, 0}, {200, 100, 50048}, {300, 65490, 0}, {440, 100, 50049}} {
		p := packet.Build(packet.Spec{Src: addr("10.244.1.4"), Dst: addr("10.244.2.4"), Proto: packet.UDP, SrcPort: 1, DstPort: 2,
			Payload: make([]byte, s.bytes)})
		res := pt.Process(p, Out, &Env{Now: time.Duration(s.at) * time.Second})
		if dropped := res.Reason == trace.BadPacket; dropped != (s.srcPort == 0) || !dropped && p.Headers().SrcPort != s.srcPort {
			t.Errorf("%d bytes after %d s: %+v, outer source port %d", s.bytes, s.at, res, p.Headers().SrcPort)
		}
	}
}

// Rules that look at the MAC address see that of every packet of a flow.
func TestDestinationMAC(t *testing.T) {
	pt := port(layer("PA_ROUTE", 600, []*Rule{{ID: "own", Action: PARoute{&hop{packet.MAC{2, 2, 2, 2, 2, 2}}}, Cond: Cond{DstMAC: hostMAC}}},
		nil))
	for range 2 {
		for _, m := range []packet.MAC{gwMAC, hostMAC} {
			p := parse(t, "udp 10.244.1.4:1 > 10.244.2.4:2")
			p.SetEthDst(m)
			pt.Process(p, Out, &Env{})
			if routed := p.Headers().EthDst == (packet.MAC{2, 2, 2, 2, 2, 2}); routed != (m == hostMAC) {
				t.Errorf("to %v: routed %v", m, routed)
			}
		}
	}
}
