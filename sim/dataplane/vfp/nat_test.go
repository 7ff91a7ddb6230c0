package vfp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

var tcpUDP = []packet.Proto{packet.TCP, packet.UDP}

// snat is the rule of OutBoundNAT for a pod: its packets leave with the node's
// address and a port of a pool.
func snat(pool *Pool) *Rule {
	return &Rule{ID: "SNAT", Action: DynNAT{pool}, Priority: 1090, Flags: Terminating | Stateful,
		Cond: Cond{Protos: tcpUDP, Src: []netip.Prefix{prefix("10.244.1.4")}}}
}

func exception(to string) *Rule {
	return &Rule{ID: "(exception " + to + ")", Action: Allow{}, Priority: 1000, Flags: Terminating,
		Cond: Cond{Dst: []netip.Prefix{prefix(to)}}}
}

// lb is the rule of a Service on a client's port.
func lb(to ...string) *Rule { return lbWith(LBNAT{Targets: targets(to...)}) }

func lbWith(action LBNAT) *Rule {
	return &Rule{ID: "LB", Action: action, Priority: 500, Flags: Terminating | Stateful,
		Cond: Cond{Protos: tcpUDP, Dst: []netip.Prefix{prefix("10.96.0.10")}, DstPorts: []PortRange{Port1(80)}}}
}

func targets(to ...string) (ts []Target) {
	for _, t := range to {
		ap := netip.MustParseAddrPort(t)
		ts = append(ts, Target{Addr: ap.Addr(), Port: ap.Port()})
	}
	return ts
}

func TestNAT(t *testing.T) {
	outbound := func() *Port {
		return port(layer("NAT", 300, []*Rule{exception("10.244.0.0/16"),
			snat(&Pool{Name: "pool", Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil))
	}
	for _, tc := range []struct {
		name  string
		port  func() *Port
		steps []step
	}{
		{"OutBoundNAT", outbound, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 203.0.113.10:443 syn", "tcp 192.168.1.11:50048 > 203.0.113.10:443"},
			{0, In, "tcp 203.0.113.10:443 > 192.168.1.11:50048 syn-ack", "tcp 203.0.113.10:443 > 10.244.1.4:1000"},
			{0, Out, "tcp 10.244.1.4:1000 > 203.0.113.10:443", "tcp 192.168.1.11:50048 > 203.0.113.10:443"},
			{0, Out, "udp 10.244.1.4:1000 > 203.0.113.10:53", "udp 192.168.1.11:50049 > 203.0.113.10:53"},
			{0, In, "tcp 203.0.113.10:443 > 192.168.1.11:50050", ""}, // not a port of the pool's
		}},
		{"an exception keeps the source", outbound, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:80 syn", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:80", ""},
		}},
		{"ICMP passes NAT as it is", outbound, []step{
			{0, Out, "ping 10.244.1.4 > 203.0.113.10", ""},
			{0, In, "pong 203.0.113.10 > 10.244.1.4", ""},
		}},
		{"mid-connection without a flow", outbound, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 203.0.113.10:443", trace.NoFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 203.0.113.10:443 syn", "tcp 192.168.1.11:50048 > 203.0.113.10:443"},
			{240, Out, "tcp 10.244.1.4:1000 > 203.0.113.10:443", trace.NoFlow},
		}},
		// A server's answer to a client outside meets OutBoundNAT as a packet of
		// its own and leaves with another source (Azure/AKS#1367).
		{"SYN-ACK makes a flow", outbound, []step{
			{0, In, "tcp 192.168.1.50:1000 > 10.244.1.4:80 syn", ""},
			{0, Out, "tcp 10.244.1.4:80 > 192.168.1.50:1000 syn-ack", "tcp 192.168.1.11:50048 > 192.168.1.50:1000"},
		}},
		{"load balancer with one backend", func() *Port { return port(layer("LB", 200, []*Rule{lb("10.244.2.4:8080")}, nil)) }, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", "tcp 10.244.1.4:1000 > 10.244.2.4:8080"},
			{0, In, "tcp 10.244.2.4:8080 > 10.244.1.4:1000 syn-ack", "tcp 10.96.0.10:80 > 10.244.1.4:1000"},
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80", "tcp 10.244.1.4:1000 > 10.244.2.4:8080"},
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:81 syn", ""},
			{0, Out, "ping 10.244.1.4 > 10.96.0.10", ""},
			{0, In, "tcp 10.244.2.4:8080 > 10.244.1.4:1001", ""},
		}},
		{"load balancer without backends", func() *Port { return port(layer("LB", 200, []*Rule{lb()}, nil)) }, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", trace.NoBackend},
		}},
		{"first the load balancer, then OutBoundNAT's exceptions", func() *Port {
			return port(layer("LB", 200, []*Rule{lb("10.244.2.4:8080")}, nil),
				layer("NAT", 300, []*Rule{exception("10.244.0.0/16"), snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil))
		}, []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", "tcp 10.244.1.4:1000 > 10.244.2.4:8080"},
			{0, Out, "tcp 10.244.1.4:1000 > 10.96.0.10:80", "tcp 10.244.1.4:1000 > 10.244.2.4:8080"},
		}},
		{"one of two flows has expired", func() *Port {
			short := lb("203.0.113.10:8080")
			short.TTL = 10 * time.Second
			return port(layer("LB", 200, []*Rule{short}, nil),
				layer("NAT", 300, []*Rule{snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil))
		}, []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.96.0.10:80", "udp 192.168.1.11:50048 > 203.0.113.10:8080"},
			{9, Out, "udp 10.244.1.4:1000 > 10.96.0.10:80", "udp 192.168.1.11:50048 > 203.0.113.10:8080"},
			{19, In, "udp 203.0.113.10:8080 > 192.168.1.11:50048", "udp 203.0.113.10:8080 > 10.244.1.4:1000"},
			{20, Out, "udp 10.244.1.4:1000 > 10.96.0.10:80", "udp 192.168.1.11:50048 > 203.0.113.10:8080"},
		}},
		// Both connections look alike from the backend: the later one has the
		// replies, also when those of the first were seen before.
		{"two Services with one backend", func() *Port {
			other := lb("10.244.2.4:8080")
			other.Cond.Dst = []netip.Prefix{prefix("10.96.0.20")}
			return port(layer("LB", 200, []*Rule{lb("10.244.2.4:8080"), other}, nil))
		}, []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.96.0.10:80", "udp 10.244.1.4:1000 > 10.244.2.4:8080"},
			{0, In, "udp 10.244.2.4:8080 > 10.244.1.4:1000", "udp 10.96.0.10:80 > 10.244.1.4:1000"},
			{0, Out, "udp 10.244.1.4:1000 > 10.96.0.20:80", "udp 10.244.1.4:1000 > 10.244.2.4:8080"},
			{0, In, "udp 10.244.2.4:8080 > 10.244.1.4:1000", "udp 10.96.0.20:80 > 10.244.1.4:1000"},
		}},
		{"port mapping", func() *Port {
			return port(layer("NAT", 300, nil, []*Rule{{ID: "map", Flags: Stateful,
				Cond:   Cond{Protos: []packet.Proto{packet.TCP}, Dst: []netip.Prefix{prefix("192.168.1.11")}, DstPorts: []PortRange{Port1(8080)}},
				Action: NAT{packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: addr("10.244.1.4"), DstPort: 80}}}}))
		}, []step{
			{0, In, "tcp 192.168.1.50:1000 > 192.168.1.11:8080 syn", "tcp 192.168.1.50:1000 > 10.244.1.4:80"},
			{0, Out, "tcp 10.244.1.4:80 > 192.168.1.50:1000 syn-ack", "tcp 192.168.1.11:8080 > 192.168.1.50:1000"},
		}},
		{"hairpin: replies come in where requests did", func() *Port {
			pool := &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
			return port(layer("LB", 200, nil, []*Rule{lbWith(LBNAT{Targets: targets("10.244.2.4:8080"), Hairpin: true, Pool: pool})}))
		}, []step{
			{0, In, "tcp 192.168.1.50:1000 > 10.96.0.10:80 syn", "tcp 192.168.1.11:50048 > 10.244.2.4:8080 hairpin"},
			{0, In, "tcp 10.244.2.4:8080 > 192.168.1.11:50048 syn-ack", "tcp 10.96.0.10:80 > 192.168.1.50:1000 dstmac pod hairpin"},
			{0, Out, "tcp 10.244.2.4:8080 > 192.168.1.11:50048 syn-ack", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { play(t, tc.port, tc.steps) })
	}
}

// Of several backends every one is used; a flow keeps its own; session affinity
// sends all flows of a client to one.
func TestBackends(t *testing.T) {
	backends := []string{"10.244.2.4:8080", "10.244.2.5:8080", "10.244.2.6:8080"}
	pick := func(pt *Port, src string, n int) string {
		p := parse(t, fmt.Sprintf("tcp %s:%d > 10.96.0.10:80 syn", src, 1000+n))
		if res := pt.Process(p, Out, &Env{}); !res.Pass {
			t.Fatalf("%+v", res)
		}
		return p.Headers().Dst.String()
	}
	spread, sticky := map[string]int{}, map[string]map[string]bool{}
	pt := port(layer("LB", 200, []*Rule{lb(backends...)}, nil))
	bySource := port(layer("LB", 200, []*Rule{lbWith(LBNAT{Targets: targets(backends...), BySource: true})}, nil))
	for n := range 300 {
		dst := pick(pt, "10.244.1.4", n)
		spread[dst]++
		if again := pick(pt, "10.244.1.4", n); again != dst {
			t.Fatalf("flow %d moved from %s to %s", n, dst, again)
		}
		src := fmt.Sprintf("10.244.1.%d", 4+n%20)
		if sticky[src] == nil {
			sticky[src] = map[string]bool{}
		}
		sticky[src][pick(bySource, src, n)] = true
	}
	for _, text := range backends {
		if n := spread[netip.MustParseAddrPort(text).Addr().String()]; n < 50 {
			t.Errorf("%s got %d of 300 flows: %v", text, n, spread)
		}
	}
	used := map[string]bool{}
	for src, dsts := range sticky {
		if len(dsts) != 1 {
			t.Errorf("%s was sent to %v", src, dsts)
		}
		for d := range dsts {
			used[d] = true
		}
	}
	if len(used) != 3 {
		t.Errorf("affinity uses only %v", used)
	}
}

// The caller may choose the backend, and the choice holds for the flow.
func TestChoose(t *testing.T) {
	pt := port(layer("LB", 200, []*Rule{lb("10.244.2.4:80", "10.244.2.5:80")}, nil))
	asked := 0
	env := &Env{Choose: func(where string, n, def int, label func(int) string) int {
		asked++
		if where != "LB" || n != 2 || label(1) != "10.244.2.5:80" {
			t.Errorf("asked for %s, %d, %s", where, n, label(1))
		}
		return 1
	}}
	for range 3 {
		p := parse(t, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn")
		pt.Process(p, Out, env)
		if p.Headers().Dst != addr("10.244.2.5") {
			t.Errorf("sent to %s", p.Headers().Dst)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times for one flow", asked)
	}
}

// KeepDst sends the packet on without translating it: only the MAC changes.
func TestKeepDestination(t *testing.T) {
	to := targets("10.244.1.9:8080")
	to[0].MAC = packet.MAC{0, 0x15, 0x5d, 0, 0, 9}
	pt := port(layer("HAIRPIN", 230, nil, []*Rule{lbWith(LBNAT{Targets: to, KeepDst: true, Hairpin: true})}))
	p := parse(t, "tcp 192.168.1.50:1000 > 10.96.0.10:80 syn")
	res := pt.Process(p, In, &Env{})
	if !res.Hairpin || short(p) != "tcp 192.168.1.50:1000 > 10.96.0.10:80" || p.Headers().EthDst != to[0].MAC || p.Headers().EthSrc != podMAC {
		t.Errorf("%+v %v", res, p)
	}
}

// Translating and translating back gives the bytes of the packet that would
// have arrived without translation.
func TestNATIsUndone(t *testing.T) {
	for _, proto := range []string{"tcp", "udp"} {
		for n := range 200 {
			client, server := fmt.Sprintf("10.244.1.4:%d", 1000+n*7), fmt.Sprintf("203.0.113.%d:%d", n, 80+n)
			r := lb(server)
			r.Cond.DstPorts = nil
			pt := port(layer("LB", 200, []*Rule{r}, nil), layer("NAT", 300,
				[]*Rule{snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil))
			out := parse(t, fmt.Sprintf("%s %s > 10.96.0.10:80 syn", proto, client))
			if res := pt.Process(out, Out, &Env{}); !res.Pass {
				t.Fatalf("%+v", res)
			}
			h := out.Headers()
			back := parse(t, fmt.Sprintf("%s %s > %s:%d syn-ack", proto, server, h.Src, h.SrcPort))
			if res := pt.Process(back, In, &Env{}); !res.Pass {
				t.Fatalf("%+v", res)
			}
			want := parse(t, fmt.Sprintf("%s 10.96.0.10:80 > %s syn-ack", proto, client))
			if !slices.Equal(back.Bytes(), want.Bytes()) {
				t.Fatalf("%s: got %v\n%x\nwant %v\n%x", server, back, back.Bytes(), want, want.Bytes())
			}
		}
	}
}

// Replaced rules cut the flows of rules that are gone, and only those.
func TestSetLayersKeepsFlows(t *testing.T) {
	pool := &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
	rules := func(dst string) []*Layer {
		r := lb(dst)
		return []*Layer{layer("LB", 200, []*Rule{r}, nil), layer("NAT", 300, []*Rule{snat(pool)}, nil)}
	}
	pt := port(rules("203.0.113.10:8080")...)
	send := func(want string) {
		t.Helper()
		p := parse(t, "tcp 10.244.1.4:1000 > 10.96.0.10:80")
		got := ""
		if res := pt.Process(p, Out, &Env{}); res.Pass {
			got = short(p)
		} else {
			got = string(res.Reason)
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	pt.Process(parse(t, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn"), Out, &Env{})
	pt.SetLayers(rules("203.0.113.99:8080"))
	send("tcp 192.168.1.11:50048 > 203.0.113.10:8080") // the flow keeps its backend
	pt.SetLayers(rules("203.0.113.99:8080")[1:])
	send(string(trace.NoFlow)) // the load balancer is gone
	pt.Process(parse(t, "tcp 10.244.1.4:1000 > 203.0.113.1:80 syn"), Out, &Env{})
	if cut := pt.Flush("NAT"); len(cut) != 2 || cut[1].String() != "TCP 10.244.1.4:1000 > 203.0.113.1:80" {
		t.Errorf("cut %v", cut)
	}
	pt.Process(parse(t, "tcp 10.244.1.4:1000 > 203.0.113.1:80 syn"), Out, &Env{})
	pt.SetLayers(nil)
	for k, c := range pool.used {
		if !c.expired(0) {
			t.Errorf("port %d is still in use", k.port)
		}
	}
}

// Flush names every connection that is cut, whichever side opened it, once.
func TestFlush(t *testing.T) {
	pt := port(acl(t, "allow out 1 any; allow in 1 any"))
	for n := range 50 {
		pt.Process(parse(t, fmt.Sprintf("tcp 10.244.1.4:%d > 10.0.0.1:80 syn", 1000+n)), Out, &Env{})
		pt.Process(parse(t, fmt.Sprintf("tcp 10.0.0.1:%d > 10.244.1.4:80 syn", 2000+n)), In, &Env{})
		pt.Process(parse(t, fmt.Sprintf("udp 10.244.1.4:%d > 10.0.0.1:53", 1000+n)), Out, &Env{})
	}
	pt.Process(parse(t, "tcp 10.244.1.4:1000 > 10.0.0.1:80"), Out, &Env{Now: 200 * time.Second})
	if cut := pt.Flush("ACL_ENDPOINT_LAYER"); len(cut) != 100 {
		t.Errorf("%d connections cut, want 100", len(cut))
	}
	if res := pt.Process(parse(t, "tcp 10.244.1.4:1000 > 10.0.0.1:80"), Out, &Env{Now: 200 * time.Second}); res.Reason != trace.NoFlow {
		t.Errorf("after the flush: %+v", res)
	}
}

// A packet of a known flow costs no allocation.
func TestNoAllocs(t *testing.T) {
	for name, pt := range map[string]*Port{
		"allow":  port(acl(t, "allow out 1 any; allow in 1 any")),
		"dynnat": port(layer("NAT", 300, []*Rule{snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil)),
		"lbnat":  port(layer("LB", 200, []*Rule{lb("10.244.2.4:80", "10.244.2.5:80")}, nil)),
		"encap":  port(layer("ENCAP", 500, []*Rule{encapRule("10.96.0.0/16")}, nil)),
	} {
		frame := parse(t, "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn").Bytes()
		var p packet.Packet
		env := &Env{}
		if n := testing.AllocsPerRun(100, func() {
			_ = p.Load(frame)
			if !pt.Process(&p, Out, env).Pass {
				t.Error("dropped")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// What a port remembers of packets is bounded.
func TestMemoryIsBounded(t *testing.T) {
	stateless := port(layer("L2", 1, []*Rule{{ID: "mac", Action: &Transpose{packet.Rewrite{Set: packet.RwEthDst, EthDst: gwMAC}}}}, nil))
	stateful := port(acl(t, "allow out 1 any"))
	burst := port(layer("L2", 1, []*Rule{{ID: "mac", Action: &Transpose{packet.Rewrite{Set: packet.RwEthDst, EthDst: gwMAC}}}}, nil))
	p, often := parse(t, "udp 10.244.1.4:0 > 203.0.113.10:53"), parse(t, "udp 10.244.1.5:1 > 203.0.113.10:53")
	kept := keyOf(often, Out)
	kept.unify(often)
	var now time.Duration
	for n := range maxUnified + 5000 {
		p.SetSrcPort(uint16(n))
		p.SetDstPort(uint16(n >> 16))
		now += time.Second
		stateless.Process(p, Out, &Env{Now: now})
		stateful.Process(p, Out, &Env{Now: now})
		burst.Process(p, Out, &Env{Now: now / 10000})
		if n%200 == 0 {
			stateless.Process(bytesOf(t, often), Out, &Env{Now: now})
			if !slices.ContainsFunc(valuesOf(&stateless.unified), func(u *unified) bool { return u.key == kept }) {
				t.Fatalf("at %v a unified flow is forgotten that has a packet every 200 s", now)
			}
		}
	}
	// 240 connections are alive, or were used.
	for name, pt := range map[string]*Port{"with flows": stateful, "without flows": stateless} {
		if n, u := pt.layers[0].flows.n, pt.unified.n; n > 2*firstSweep || u > 2*firstSweep {
			t.Errorf("%s: %d flows and %d unified flows for 240 living connections", name, n, u)
		}
	}
	if n := burst.unified.n; n == 0 || n > maxUnified {
		t.Errorf("%d unified flows, all just used", n)
	}
}

// bytesOf is a packet with the bytes of another: Process changes it.
func bytesOf(t *testing.T, p *packet.Packet) *packet.Packet {
	t.Helper()
	q, err := packet.New(slices.Clone(p.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A client that takes every second port reaches both of two backends, one that takes
// every fourth all of four; a client that stays on one backend does so for every port.
func TestHashSpreads(t *testing.T) {
	h := packet.Headers{Src: netip.MustParseAddr("10.244.1.4"), Dst: netip.MustParseAddr("10.96.0.50"), DstPort: 80, Proto: packet.TCP}
	for _, backends := range []uint32{2, 3, 4} {
		for _, step := range []int{1, 2, 4, 256} {
			picked, affine := map[uint32]int{}, map[uint32]int{}
			for i := range 200 {
				h.SrcPort = uint16(32768 + i*step%28000)
				picked[hash(&h, false)%backends]++
				affine[hash(&h, true)%backends]++
			}
			for b := range backends {
				if picked[b] < 200/int(backends)/3 {
					t.Errorf("ports %d apart: backend %d of %d gets %d of 200", step, b, backends, picked[b])
				}
			}
			if len(affine) != 1 {
				t.Errorf("one client goes to %v", affine)
			}
		}
	}
	clients := map[uint32]int{}
	for i := range 200 {
		h.Src = netip.AddrFrom4([4]byte{10, 244, 1, byte(i)})
		clients[hash(&h, true)%2]++
	}
	if clients[0] < 60 || clients[1] < 60 {
		t.Errorf("200 clients: %v", clients)
	}
}
