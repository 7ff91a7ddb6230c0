package vfp

import (
	"fmt"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// What flows remember, and for how long.
func TestFlows(t *testing.T) {
	t.Parallel()
	const blocked, noFlow, unknown = trace.ACLBlock, trace.NoFlow, trace.ModelHole
	for _, tc := range []struct {
		name, policy string
		steps        []step
	}{
		{"a flow decides before the rules", "layer ACL; allow out 1 any; block in 1 any", []step{
			{0, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", blocked},
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
			{0, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{0, In, "udp 10.0.0.1:53 > 10.244.1.4:1001", blocked},
		}},
		{"ICMP flows are of a type, not of an identifier", "layer ACL; allow out 1 icmp; block in 1 any", []step{
			{0, Out, "ping 10.244.1.4 > 10.0.0.1 id 1", ""},
			{0, In, "pong 10.0.0.1 > 10.244.1.4 id 2", ""},
			{0, In, "ping 10.0.0.1 > 10.244.1.4 id 1", blocked},
			{0, In, "pong 10.0.0.2 > 10.244.1.4 id 1", blocked},
		}},
		{"ICMP of another identifier follows the flow", "layer LB; transposition out 1 icmp stateful ttl 10 => dst 10.0.0.9", []step{
			{0, Out, "ping 10.244.1.4 > 10.0.0.1 id 1", "ping 10.244.1.4 > 10.0.0.9"},
			{9, Out, "ping 10.244.1.4 > 10.0.0.1 id 2", "ping 10.244.1.4 > 10.0.0.9"},
			{18, In, "pong 10.0.0.9 > 10.244.1.4 id 3", "pong 10.0.0.1 > 10.244.1.4"},
		}},
		{"the time to live is the rule's", "layer ACL; allow out 1 udp ttl 10; allow out 2 tcp; block in 1 any", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", ""},
			{9, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{18, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
			{28, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", blocked},
			{239, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000", ""},
			{478, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000", ""},
			{718, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000", blocked},
		}},
		{"requests keep the flow of the replies alive", "layer ACL; allow out 1 any ttl 10; block in 1 any", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
			{9, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", ""},
			{18, In, "udp 10.0.0.1:53 > 10.244.1.4:1000", ""},
		}},
		{"a segment without SYN starts no flow, whatever its flags", "layer ACL; allow out 1 any", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 rst", noFlow},
			{0, In, "tcp 10.0.0.1:80 > 10.244.1.4:1000 syn-ack", ""}, // no rule
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn-ack", ""},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 rst", ""},
		}},
		{"every kind of stateful rule wants the SYN", "layer A; nat out 1 port 1 => src 10.9.9.9; dynnat out 1 port 2 => pool 10.9.9.9 50048;" +
			"lbnat out 1 port 3 => 10.9.9.9:3; transposition out 1 port 4 stateful => src 10.9.9.9; paroute out 1 port 5 stateful => gw", []step{
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:1", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:2", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:3", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:4", noFlow},
			{0, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:5", noFlow},
		}},
		{"the first fragment has the ports, the later ones end",
			"layer NAT; allow out 1 to 10.244.0.0/16 stateless; dynnat out 2 any => pool 192.168.1.11 50048", []step{
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 first-fragment", "udp 192.168.1.11:50048 > 10.0.0.1:53"},
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", unknown},
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 first-fragment", "udp 192.168.1.11:50048 > 10.0.0.1:53"},
			}},
		{"a later fragment and a rule with a port", "layer ACL; block out 1 udp port 80; allow out 2 any stateless", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", unknown},
			{0, Out, "gre 10.244.1.4 > 10.0.0.1 later-fragment", ""},
		}},
		{"a later fragment and a rule with a source port", "layer ACL; block out 1 srcport 80; allow out 2 any stateless", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", unknown},
		}},
		{"a later fragment and a rule that needs no ports",
			"layer ACL; block out 1 udp to 10.0.0.1; allow out 2 udp to 10.0.0.2 stateless; block out 3 port 80", []step{
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", blocked},
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.2:53 later-fragment", "udp 10.244.1.4 > 10.0.0.2"},
			}},
		{"a later fragment and no rule for it", "layer ACL; allow out 1 tcp; block in 2 any", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", "udp 10.244.1.4 > 10.0.0.1"},
		}},
		{"a later fragment of a ping does not meet NAT", "layer NAT; dynnat out 1 any => pool 192.168.1.11 50048", []step{
			{0, Out, "ping 10.244.1.4 > 10.0.0.1 later-fragment", "pong 10.244.1.4 > 10.0.0.1"}, // its type is not in the packet
		}},
		{"a later fragment in a stateless layer",
			"layer L2 stateless; transposition out 1 udp => dstmac server; transposition out 2 port 53 => dstmac host", []step{
				{0, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53 later-fragment", "udp 10.244.1.4 > 10.0.0.1 dstmac server"},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func() *Port { return port(policy(t, tc.policy)...) }, tc.steps)
		})
	}
}

// send sends a packet through a port and says what became of it; "" when it
// passed as it was.
func send(t *testing.T, pt *Port, dir Direction, text string, env *Env) string {
	t.Helper()
	before, p := parse(t, text), parse(t, text)
	if got := outcome(before, p, pt.Process(p, dir, env)); got != short(before) {
		return got
	}
	return ""
}

// What is remembered of a flow's way through all layers holds until one of its
// flows ends, or a flow appears where there was none.
func TestUnifiedFlow(t *testing.T) {
	t.Parallel()
	const layers = "layer A; transposition out 1 udp port 53 stateful ttl 100 => dst 10.0.0.9; layer B; block out 1 to 10.0.0.9 port 54; allow in 1 any ttl 10; transposition out 2 udp port 53 => src 10.9.9.9"
	const request, there = "udp 10.244.1.4:1000 > 10.0.0.1:53", "udp 10.9.9.9:1000 > 10.0.0.9:53"
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"a flow in a later layer takes over, and ends", []step{
			{0, Out, request, there},
			{0, Out, request, there},
			// The reply to what layer B made of the request opens a flow there.
			{1, In, "udp 10.0.0.9:53 > 10.244.1.4:1000", "udp 10.0.0.1:53 > 10.244.1.4:1000"},
			{1, Out, request, "udp 10.244.1.4:1000 > 10.0.0.9:53"},
			{10, Out, request, "udp 10.244.1.4:1000 > 10.0.0.9:53"},
			{20, Out, request, there},
		}},
		{"what is dropped is not remembered", []step{
			{0, Out, "udp 10.244.1.4:1000 > 10.0.0.9:54", trace.ACLBlock},
			{1, In, "udp 10.0.0.9:54 > 10.244.1.4:1000", ""},
			{1, Out, "udp 10.244.1.4:1000 > 10.0.0.9:54", ""},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func() *Port { return port(policy(t, layers)...) }, tc.steps)
		})
	}
}

// Without a flow every packet picks a backend, and is asked for.
func TestBackendsWithoutFlows(t *testing.T) {
	pt := port(policy(t, "layer LB stateless; lbnat out 1 any => 10.0.0.1:80 10.0.0.2:80")...)
	next := 0
	env := &Env{Choose: func(string, int, int, func(int) string) int { next++; return next % 2 }}
	for n, want := range []string{"udp 10.244.1.4:1 > 10.0.0.2:80", "udp 10.244.1.4:1 > 10.0.0.1:80", "udp 10.244.1.4:1 > 10.0.0.2:80"} {
		if got := send(t, pt, Out, "udp 10.244.1.4:1 > 10.96.0.10:80", env); got != want {
			t.Errorf("packet %d: %s, want %s", n+1, got, want)
		}
	}
}

// A rule that is replaced by one of the same name keeps its flows; they cite the
// new one. A rule that is gone ends its flows and gives their ports back.
func TestSetLayersTakesFlowsOver(t *testing.T) {
	origin := func(layers []*Layer, what string) []*Layer {
		layers[0].Groups[0].Rules[0].Origin = &trace.Origin{What: what}
		return layers
	}
	const request = "udp 10.244.1.4:1000 > 10.0.0.1:53"
	pt := port(origin(policy(t, "layer A; allow out 1 id rule any"), "first")...)
	send(t, pt, Out, request, &Env{})
	pt.SetLayers(origin(policy(t, "layer A; allow out 1 id rule any"), "second"))
	rec := &trace.Recorder{}
	send(t, pt, Out, request, &Env{Rec: rec})
	if s := lastStep(t, rec); s.From.What != "second" || s.Text() != "flow" {
		t.Errorf("the flow is that of the %s rule: %s", s.From.What, s.Text())
	}

	pool := &Pool{Name: "pool", Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
	nat := func(id string) []*Layer {
		return []*Layer{layer("NAT", 1, []*Rule{{ID: id, Flags: Stateful, Action: DynNAT{pool}}}, nil)}
	}
	pt = port(nat("old")...)
	send(t, pt, Out, request, &Env{})
	pt.SetLayers(nat("new"))
	for n := range blockSize {
		if got := send(t, pt, Out, fmt.Sprintf("udp 10.244.1.5:%d > 10.0.0.1:53", n+1), &Env{}); got == string(trace.NoFreePort) {
			t.Fatalf("connection %d: the port of the old rule's flow is not free", n+1)
		}
	}
}

// Layers keep their flows by name, whatever their order.
func TestSetLayersByName(t *testing.T) {
	pt := port(policy(t, "layer A; allow out 1 id a any; layer B; allow out 1 id b any")...)
	send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", &Env{})
	pt.SetLayers(policy(t, "layer B; allow out 1 id b any; layer A; allow out 1 id a any"))
	if got := send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", &Env{}); got != "" {
		t.Errorf("layers in another order: %s", got)
	}
	pt.SetLayers(policy(t, "layer B; allow out 1 id b any; layer C; allow out 1 id a any"))
	if got := send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", &Env{}); got != string(trace.NoFlow) {
		t.Errorf("a layer of another name: %q", got)
	}
}

// Connections lists TCP connections that are alive, each as its opener's packet
// goes out.
func TestConnections(t *testing.T) {
	pt := port(policy(t, "layer A; allow out 1 any; allow in 1 any; layer B; allow out 1 any")...)
	at := func(seconds int) *Env { return &Env{Now: time.Duration(seconds) * time.Second} }
	send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", at(0))
	send(t, pt, Out, "tcp 10.244.1.4:1001 > 10.0.0.1:80 syn", at(0))
	send(t, pt, In, "tcp 10.0.0.1:2000 > 10.244.1.4:80 syn", at(0))
	send(t, pt, Out, "udp 10.244.1.4:1000 > 10.0.0.1:53", at(0))
	check := func(when, layer string, want ...string) {
		t.Helper()
		if got := fmt.Sprint(pt.Connections(layer)); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("at first", "A", "TCP 10.244.1.4:1000 > 10.0.0.1:80", "TCP 10.244.1.4:1001 > 10.0.0.1:80", "TCP 10.244.1.4:80 > 10.0.0.1:2000")
	check("another layer", "B", "TCP 10.244.1.4:1000 > 10.0.0.1:80", "TCP 10.244.1.4:1001 > 10.0.0.1:80")
	send(t, pt, In, "tcp 10.0.0.1:80 > 10.244.1.4:1001", at(200))
	send(t, pt, Out, "gre 10.244.1.4 > 10.0.0.1", at(300))
	check("later", "A", "TCP 10.244.1.4:1001 > 10.0.0.1:80")
	if cut := pt.Flush("A"); len(cut) != 1 {
		t.Errorf("cut: %v", cut)
	}
	check("after a flush", "A")
	if got := send(t, pt, Out, "tcp 10.244.1.4:1001 > 10.0.0.1:80", at(300)); got != string(trace.NoFlow) {
		t.Errorf("a connection that was cut: %q", got)
	}
}

// A packet that a layer made is seen by the layers below it only, then by the
// switch and the port that it leaves through.
func TestInject(t *testing.T) {
	const layers = "layer A; block out 1 any; layer ACL; block out 1 any; layer B; transposition out 1 to 10.244.1.5 => dst 10.244.1.6; block out 2 to 10.0.0.9"
	for _, tc := range []struct{ layer, packet, want string }{
		{"ACL", "tcp 10.244.1.4:1 > 10.0.0.1:2 dstmac server", "server tcp 10.244.1.4:1 > 10.0.0.1:2"},
		{"ACL", "tcp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", "server tcp 10.244.1.4:1 > 10.244.1.6:2"},
		{"ACL", "tcp 10.244.1.4:1 > 10.0.0.9:2 dstmac server", string(trace.ACLBlock)},
		{"ACL", "tcp 10.244.1.4:1 > 10.0.0.8:2 dstmac server", string(trace.ACLBlock)}, // by the server's port
		{"ACL", "tcp 10.244.1.4:1 > 10.244.1.4:2 dstmac pod", "client tcp 10.244.1.4:1 > 10.244.1.4:2"},
		{"B", "tcp 10.244.1.4:1 > 10.244.1.5:2 dstmac router", "ext tcp 10.244.1.4:1 > 10.244.1.5:2"},
		{"gone", "tcp 10.244.1.4:1 > 10.244.1.5:2 dstmac server", string(trace.PortNotReady)},
	} {
		l := newLab()
		l.KeepLoopback = true
		l.client.SetLayers(policy(t, layers))
		l.server.SetLayers(policy(t, "layer ACL; block in 1 to 10.0.0.8"))
		p := parse(t, tc.packet)
		out := l.Inject(l.client, tc.layer, p, &Env{})
		got := string(out.Reason)
		if out.To != nil {
			got = out.To.ID + " " + short(p)
		}
		if got != tc.want {
			t.Errorf("below %s, %s: %s, want %s", tc.layer, tc.packet, got, tc.want)
		}
	}
}

// Reset forgets the flows of every layer.
func TestReset(t *testing.T) {
	pt := port(policy(t, "layer A; allow out 1 any; layer B; allow out 1 any")...)
	send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", &Env{Now: time.Hour})
	pt.Reset()
	if got := send(t, pt, Out, "tcp 10.244.1.4:1000 > 10.0.0.1:80", &Env{}); got != string(trace.NoFlow) {
		t.Errorf("%q", got)
	}
	if n := len(pt.Connections("B")); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// The key of a flow and its bucket tell directions, families and ports apart.
func TestBucketOf(t *testing.T) {
	seen := map[uint16]int{}
	for n := range 4 * buckets {
		p := parse(t, fmt.Sprintf("udp 10.244.1.4:%d > 10.0.0.1:53", n+1))
		k := keyOf(p, Out)
		seen[bucketOf(k.hash())]++
	}
	most := 0
	for _, n := range seen {
		most = max(most, n)
	}
	if len(seen) < buckets*9/10 || most > 20 {
		t.Errorf("%d of %d buckets used, the fullest by %d of %d flows", len(seen), buckets, most, 4*buckets)
	}
	k := keyOf(parse(t, "tcp 10.244.1.4:1 > 10.0.0.1:2"), Out)
	in := k
	in.way |= dirIn
	if k.proto() != packet.TCP || bucketOf(k.hash()) == bucketOf(in.hash()) {
		t.Error("both directions are in one bucket")
	}
}
