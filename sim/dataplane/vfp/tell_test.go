package vfp

import (
	"fmt"
	"testing"
	"time"
)

const (
	tellOpen = "tcp 10.0.0.1:1 > 10.0.0.2:80 syn"
	tellMore = "tcp 10.0.0.1:1 > 10.0.0.2:80"
	tellLong = "udp 10.0.0.3:1 > 10.0.0.2:53"
)

// later makes a port where a connection of ten seconds was opened at 0, had packets by its
// unified flow until 8, of which it has not been told, and where it is 12.
func later(t *testing.T) *Port {
	t.Helper()
	pt := port(policy(t, "layer FW; allow out 1 id long ttl 1000 udp; layer A; allow out 1 id short ttl 10 tcp; allow out 2 id rest ttl 1000 udp")...)
	for _, p := range []struct {
		at   time.Duration
		what string
	}{{0, tellOpen}, {0, tellLong}, {1, tellMore}, {8, tellMore}, {12, tellLong}} {
		if got := send(t, pt, Out, p.what, &Env{Now: p.at * time.Second}); got != "" && got != "passed" {
			t.Fatalf("%s at %d: %q", p.what, p.at, got)
		}
	}
	if len(pt.due) == 0 {
		t.Fatal("all connections are told")
	}
	return pt
}

// Connections are told late of the packets that follow unified flows, and before anybody
// asks them how long they live.
func TestConnectionsAreToldInTime(t *testing.T) {
	if got := later(t).Connections("A"); len(got) != 1 {
		t.Errorf("the connections are %v", got)
	}
	sw := NewSwitch("s", "external")
	pt := later(t)
	sw.AddPort(pt)
	sw.Inject(pt, "FW", parse(t, tellMore), &Env{Now: 12 * time.Second})
	for _, f := range valuesOf(&pt.layers[1].flows) {
		if f.rule.ID == "short" && f.conn.until != 22*time.Second {
			t.Errorf("a packet that a layer sends finds the connection to end at %v", f.conn.until)
		}
	}
	pt = later(t)
	for _, u := range valuesOf(&pt.unified) {
		if u.rules[len(u.rules)-1].ID == "short" && !(&followed{port: pt, u: u}).Holds(12*time.Second) {
			t.Error("a path does not hold that rests on the connection")
		}
	}
	before := fmt.Sprint(valuesOf(&pt.unified))
	if send(t, pt, Out, tellMore, &Env{Now: 15 * time.Second}); fmt.Sprint(valuesOf(&pt.unified)) != before {
		t.Error("the unified flow was made again")
	}
}

// A port of a pool is taken as long as the connection lives that has it, at whichever port
// of the switch.
func TestPoolAsksTheOtherPort(t *testing.T) {
	pool := &Pool{Name: "pool", Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
	with := func() *Port {
		return port(layer("NAT", 1, []*Rule{{ID: "out", Action: DynNAT{pool}, Priority: 1, Flags: Stateful, TTL: 10 * time.Second}}, nil))
	}
	a, b := with(), with()
	for _, at := range []time.Duration{0, 1, 8} {
		send(t, a, Out, "udp 10.0.0.1:1 > 10.0.0.2:53", &Env{Now: at * time.Second})
	}
	for n := range 2 * blockSize {
		p := parse(t, fmt.Sprintf("udp 10.0.0.5:%d > 10.0.0.2:53", n+1))
		if r := b.Process(p, Out, &Env{Now: 12 * time.Second}); r.Pass && p.Headers().SrcPort == 50048 {
			t.Fatal("the port of a connection that lives was given away")
		}
	}
}
