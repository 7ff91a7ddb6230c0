package bench

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var (
	internet = netip.MustParseAddr("203.0.113.10")
	pod      = netip.MustParseAddr("10.244.1.10")
	remote   = netip.MustParseAddr("10.244.2.11")
)

// BenchmarkCachedFlow is one packet of a flow that the port knows: copy the
// frame in, parse it, find the unified flow, change the packet. "flows" takes
// 2,000 flows in turn, so that the table does not stay in the nearest cache.
func BenchmarkCachedFlow(b *testing.B) {
	for _, bc := range []struct {
		name    string
		network hns.NetworkType
		dst     netip.Addr
		flows   int
		done    func(h *packet.Headers) bool // whether the port did what the name says
	}{
		{"allow", hns.L2Bridge, pod, 1, func(h *packet.Headers) bool { return h.Dst == pod && h.Src != mgmt }},
		{"snat", hns.L2Bridge, internet, 1, func(h *packet.Headers) bool { return h.Src == mgmt }},
		{"lb", hns.L2Bridge, vip(7), 1, func(h *packet.Headers) bool { return h.DstPort == 8080 }},
		{"encap", hns.Overlay, remote, 1, func(h *packet.Headers) bool { return h.DstPort == packet.VXLANPort && h.EthDst == gwMAC }},
		{"lb-2000-flows", hns.L2Bridge, vip(7), 2000, func(h *packet.Headers) bool { return h.DstPort == 8080 }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			n := newNode(b, bc.network, 100)
			pt := n.clientPort()
			frames := make([][]byte, bc.flows)
			var p packet.Packet
			env := &vfp.Env{}
			for i := range frames {
				frames[i] = n.frame64(bc.dst, uint16(10000+i), 80, packet.SYN)
				_ = p.Load(frames[i])
				if res := pt.Process(&p, vfp.Out, env); !res.Pass || !bc.done(p.Headers()) {
					b.Fatalf("the first packet of flow %d: %+v %v", i, res, &p)
				}
				frames[i] = n.frame64(bc.dst, uint16(10000+i), 80, packet.ACK)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				_ = p.Load(frames[i])
				if i++; i == len(frames) {
					i = 0
				}
				if !pt.Process(&p, vfp.Out, env).Pass {
					b.Fatal("dropped")
				}
			}
		})
	}
}

// BenchmarkFirstPacket is the SYN of a new connection to a Service, with the
// rules of that many Services on the port. A connection is forgotten after 240
// seconds of the virtual clock, which advances so that 2,400 are alive, in the
// last case 24,000.
func BenchmarkFirstPacket(b *testing.B) {
	for _, bc := range []struct {
		services int
		alive    time.Duration
	}{{10, 2400}, {1000, 2400}, {10000, 2400}, {1000, 24000}} {
		name := fmt.Sprint(bc.services, "-services")
		if bc.alive > 2400 {
			name += "-busy"
		}
		b.Run(name, func(b *testing.B) {
			services := bc.services
			n := newNode(b, hns.L2Bridge, services)
			pt := n.clientPort()
			frame := n.frame64(vip(0), 0, 80, packet.SYN)
			var p packet.Packet
			env := &vfp.Env{}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d := vip(i % services).As4()
				copy(frame[30:], d[:])
				binary.BigEndian.PutUint16(frame[34:], uint16(i*7))
				i++
				env.Now += vfp.DefaultTTL / bc.alive
				_ = p.Load(frame)
				if !pt.Process(&p, vfp.Out, env).Pass {
					b.Fatal("dropped")
				}
			}
		})
	}
}

// BenchmarkBlockedPacket is a packet that an ACL drops; drops are not cached.
func BenchmarkBlockedPacket(b *testing.B) {
	n := newNode(b, hns.L2Bridge, 100)
	acls := []hns.Policy{hns.NewPolicy(hns.ACLSettings{Action: hns.ACLBlock, Direction: hns.ACLIn, Priority: 65500, RuleType: "Switch"})}
	for i := range 50 {
		acls = append(acls, hns.NewPolicy(hns.ACLSettings{Action: hns.ACLAllow, Direction: hns.ACLIn, Priority: uint16(900 + i),
			RuleType:        "Switch",
			RemoteAddresses: fmt.Sprintf("10.1.%d.0/24", i), Protocols: "6", LocalPorts: "80"}))
	}
	n.client.Policies = append(n.client.Policies, acls...)
	pt := n.clientPort()
	frame := packet.Build(packet.Spec{EthDst: pt.MAC, Src: internet, Dst: netip.MustParseAddr("10.244.1.4"), Proto: packet.TCP, SrcPort: 40000,
		DstPort: 80, TCPFlags: packet.SYN}).Bytes()
	var p packet.Packet
	env := &vfp.Env{}
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(frame)
		if pt.Process(&p, vfp.In, env).Reason != trace.ACLBlock {
			b.Fatal("not blocked")
		}
	}
}

// BenchmarkTunnel is a VXLAN packet that comes in from the wire.
func BenchmarkTunnel(b *testing.B) {
	n := newNode(b, hns.Overlay, 100)
	pt := &vfp.Port{ID: "external", External: true}
	pt.SetLayers(n.compiler.External([]*hns.Network{n.network}))
	q := packet.Build(packet.Spec{EthDst: hostMAC, Src: remote, Dst: netip.MustParseAddr("10.244.1.4"), Proto: packet.TCP, SrcPort: 40000,
		DstPort: 80, TCPFlags: packet.ACK})
	if err := q.Encap(packet.Outer{EthDst: hostMAC, Src: netip.MustParseAddr("192.168.1.12"), Dst: mgmt, VNI: 4096}); err != nil {
		b.Fatal(err)
	}
	frame := q.Bytes()
	var p packet.Packet
	env := &vfp.Env{}
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(frame)
		if !pt.Process(&p, vfp.In, env).Pass {
			b.Fatal("dropped")
		}
	}
}

// BenchmarkCompile makes the rules of a pod's port from 1,000 Services of one
// port and installs them.
func BenchmarkCompile(b *testing.B) {
	n := newNode(b, hns.L2Bridge, 1000)
	pt := n.clientPort()
	b.ReportAllocs()
	for b.Loop() {
		pt.SetLayers(n.compiler.Endpoint(n.client))
	}
}

// BenchmarkEndpoints makes 10,000 endpoints on one network then 5,000 more,
// each after one is deleted; HNS chooses every address.
func BenchmarkEndpoints(b *testing.B) {
	for b.Loop() {
		s := hns.NewService(builds.MustLookup("20348"), hns.Options{Node: "win1", ManagementIP: mgmt})
		nw, err := s.CreateNetwork(hns.Network{Type: hns.L2Bridge, Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{
			IpAddressPrefix: "10.244.0.0/16", Routes: []hns.NetRoute{{NextHop: "10.244.0.1", DestinationPrefix: "0.0.0.0/0"}},
		}}}}})
		if err != nil {
			b.Fatal(err)
		}
		var ids []string
		for i := range 15000 {
			if i >= 10000 {
				if err := s.DeleteEndpoint(ids[2*(i-10000)]); err != nil {
					b.Fatal(err)
				}
			}
			e, err := s.CreateEndpoint(hns.Endpoint{HostComputeNetwork: nw.ID})
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
	}
}

// BenchmarkTracePort is the SYN of BenchmarkFirstPacket with every step written
// down, one port's share of a trace.
func BenchmarkTracePort(b *testing.B) {
	n := newNode(b, hns.L2Bridge, 1000)
	pt := n.clientPort()
	frame := n.frame64(vip(7), 40000, 80, packet.SYN)
	var p packet.Packet
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Load(frame)
		rec := &trace.Recorder{}
		if !pt.Process(&p, vfp.Out, &vfp.Env{Rec: rec, Place: "win1"}).Pass || len(rec.Steps()) == 0 {
			b.Fatal("dropped or not recorded")
		}
	}
}
