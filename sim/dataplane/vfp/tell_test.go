package vfp

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

const (
	tellOpen  = "tcp 10.0.0.1:1 > 10.0.0.2:80 syn"
	tellMore  = "tcp 10.0.0.1:1 > 10.0.0.2:80"
	tellReply = "tcp 10.0.0.2:80 > 10.0.0.1:1"
	tellLong  = "udp 10.0.0.3:1 > 10.0.0.2:53"
)

// untold makes a port where a connection of ten seconds was opened at 0 and had a packet by
// its unified flow at 8, of which it has not been told, and where the time is 12.
func untold(t *testing.T) (pt *Port, u *unified) {
	t.Helper()
	pt = port(policy(t,
		"layer FW; allow out 1 id long ttl 1000 udp; layer A; allow out 1 id short ttl 10 tcp; allow out 2 id rest ttl 1000 udp; block in 1 any")...)
	for _, p := range []struct {
		at   time.Duration
		what string
	}{{0, tellOpen}, {0, tellLong}, {1, tellMore}, {1, tellLong}, {8, tellMore}, {12, tellLong}} {
		if got := send(t, pt, Out, p.what, &Env{Now: p.at * time.Second}); got != "" {
			t.Fatalf("%s at %d: %q", p.what, p.at, got)
		}
	}
	i := slices.IndexFunc(pt.due, func(u *unified) bool { return u.key.proto() == packet.TCP })
	if i < 0 || pt.now != 12*time.Second || pt.due[i].used != 8*time.Second || pt.due[i].flows[0].conn.until != 11*time.Second {
		t.Fatal("the connection was told at once: the rest of the test shows nothing")
	}
	return pt, pt.due[i]
}

// Connections are told late of the packets that follow unified flows, and before anybody
// asks them how long they live or what they have carried.
func TestConnectionsAreToldInTime(t *testing.T) {
	at := func(seconds time.Duration) *Env { return &Env{Now: seconds * time.Second} }
	t.Run("who lists them", func(t *testing.T) {
		pt, _ := untold(t)
		if got := pt.Connections("A"); len(got) != 1 {
			t.Errorf("the connections are %v", got)
		}
	})
	t.Run("a packet that visits the layers", func(t *testing.T) {
		pt, _ := untold(t)
		if got := send(t, pt, In, tellReply, at(17)); got != "" {
			t.Errorf("a reply within the connection's time: %q", got)
		}
	})
	t.Run("a packet that a layer sends", func(t *testing.T) {
		pt, u := untold(t)
		sw := NewSwitch("s", "external")
		sw.AddPort(pt)
		sw.Inject(pt, "FW", parse(t, tellMore), at(12))
		if f := u.flows[0]; f.conn.until != 22*time.Second || pt.layers[1].flow(&f.key, f.key.hash()) != f {
			t.Errorf("the connection lives until %v", f.conn.until)
		}
	})
	t.Run("a packet by its unified flow", func(t *testing.T) {
		pt, u := untold(t)
		if got := send(t, pt, Out, tellMore, at(17)); got != "" {
			t.Errorf("a packet within the connection's time: %q", got)
		}
		if u.gone || u.used != 17*time.Second {
			t.Error("the unified flow was made again")
		}
	})
	t.Run("a path", func(t *testing.T) {
		pt, u := untold(t)
		if !(&followed{port: pt, u: u}).Holds(12 * time.Second) {
			t.Error("a path does not hold that rests on the connection")
		}
	})
	t.Run("rules that are put on", func(t *testing.T) {
		pt, u := untold(t)
		pt.SetLayers(policy(t, "layer A; allow out 1 id short ttl 10 tcp; block in 1 any"))
		if u.flows[0].conn.until != 18*time.Second || len(pt.due) != 0 {
			t.Errorf("the connection lives until %v; %d unified flows that are gone are kept to tell", u.flows[0].conn.until, len(pt.due))
		}
	})
	t.Run("what they have carried", func(t *testing.T) {
		pt := port(policy(t, "layer A; allow out 1 id a any")...)
		for _, p := range []string{tellOpen, tellOpen, tellOpen, tellMore} {
			send(t, pt, Out, p, at(0))
		}
		c := pt.due[0].flows[0].conn
		if c.carried {
			t.Fatal("the connection was told at once: the rest of the test shows nothing")
		}
		if pt.tell(); !c.carried {
			t.Error("the segment without SYN is not known")
		}
		send(t, pt, Out, tellOpen, at(0))
		if c.carried = false; pt.due[0].carried {
			t.Error("a SYN counts as one without")
		}
		if pt.tell(); c.carried {
			t.Error("what was told is told again")
		}
	})
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
	if len(a.due) != 1 {
		t.Fatal("the connection was told at once: the rest of the test shows nothing")
	}
	for n := range 2 * blockSize {
		p := parse(t, fmt.Sprintf("udp 10.0.0.5:%d > 10.0.0.2:53", n+1))
		if r := b.Process(p, Out, &Env{Now: 12 * time.Second}); r.Pass && p.Headers().SrcPort == 50048 {
			t.Fatal("the port of a connection that lives was given away")
		}
	}
}

// What a packet of a known flow needs is in two lines of cache, and a unified flow begins
// with one: the sizes of which the allocator makes such are multiples of the line's.
func TestUnifiedFlowFitsLines(t *testing.T) {
	const line = 64
	u := reflect.TypeFor[unified]()
	patch, _ := u.FieldByName("patch")
	if end := patch.Offset + patch.Type.Size(); end > 2*line || u.Size()%line != 0 {
		t.Errorf("the patch ends at byte %d of %d", end, u.Size())
	}
}
