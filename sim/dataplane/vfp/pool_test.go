package vfp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A pool takes a block when it needs one. After a reset it begins again with
// those that it has.
func TestPoolTakesBlocksOnDemand(t *testing.T) {
	var taken []uint16
	pool := &Pool{Name: "pool", Addr: addr("192.168.1.11")}
	pool.More = func() (uint16, bool) {
		taken = append(taken, uint16(50048+1000*len(taken)))
		return taken[len(taken)-1], true
	}
	pt := port(layer("NAT", 300, []*Rule{snat(pool)}, nil))
	check := func(n int, want string, blocks int) {
		t.Helper()
		if got := send(t, pt, Out, fmt.Sprintf("udp 10.244.1.4:%d > 203.0.113.10:53", 1000+n), &Env{}); got != want+" > 203.0.113.10:53" {
			t.Errorf("connection %d: %s, want %s", n, got, want)
		}
		if len(taken) != blocks {
			t.Errorf("connection %d: %d blocks taken, want %d", n, len(taken), blocks)
		}
	}
	for n := range blockSize {
		check(n, fmt.Sprint("udp 192.168.1.11:", 50048+n), 1)
	}
	check(64, "udp 192.168.1.11:51048", 2)
	check(5, "udp 192.168.1.11:50053", 2)
	pt.Reset()
	check(7, "udp 192.168.1.11:50048", 2)
}

// Reset frees also what connections hold that were forgotten before: the clock
// may start again at zero.
func TestResetFreesExpired(t *testing.T) {
	pt := port(layer("NAT", 300, []*Rule{snat(&Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}})}, nil))
	bind := func(now time.Duration) uint16 {
		p := parse(t, "udp 10.244.1.4:1000 > 203.0.113.10:53")
		pt.Process(p, Out, &Env{Now: now})
		return p.Headers().SrcPort
	}
	first := bind(0)
	late := &Env{Now: 300 * time.Second}
	pt.Process(parse(t, "udp 203.0.113.10:53 > 192.168.1.11:50048"), In, late)
	if second := bind(late.Now); first != 50048 || second != 50049 {
		t.Fatalf("ports %d and %d", first, second)
	}
	pt.Reset()
	if got := bind(0); got != 50048 {
		t.Errorf("after a reset: port %d", got)
	}
}

// What one pool gives out, bind after bind: at is the time, dead a connection
// that has ended in the meantime.
func TestPoolBind(t *testing.T) {
	const block1, block2 = 50048, 60032
	type bind struct {
		times int
		proto packet.Proto
		at    time.Duration
		first uint16 // the port of the first of them, 0 when there is none
		last  uint16
	}
	for _, tc := range []struct {
		name   string
		blocks []uint16
		more   []uint16
		binds  []bind
	}{
		{"a block has 64 ports", []uint16{block1}, nil, []bind{{64, packet.TCP, 0, block1, block1 + 63}, {1, packet.TCP, 0, 0, 0}}},
		{"two blocks", []uint16{block1, block2}, nil, []bind{{64, packet.TCP, 0, block1, block1 + 63}, {64, packet.TCP, 0, block2, block2 + 63},
			{1, packet.TCP, 0, 0, 0}}},
		{"TCP and UDP have ports of their own", []uint16{block1}, nil,
			[]bind{{64, packet.TCP, 0, block1, block1 + 63}, {64, packet.UDP, 0, block1, block1 + 63}, {1, packet.UDP, 0, 0, 0}}},
		{"another block when the first is used up", []uint16{block1}, []uint16{block2},
			[]bind{{65, packet.TCP, 0, block1, block2}, {63, packet.TCP, 0, block2 + 1, block2 + 63}, {1, packet.TCP, 0, 0, 0}}},
		{"a pool without blocks takes one", nil, []uint16{block2}, []bind{{1, packet.TCP, 0, block2, block2}}},
		{"no blocks at all", nil, nil, []bind{{1, packet.TCP, 0, 0, 0}}},
		{"a port is free when its connection has expired", []uint16{block1}, nil,
			[]bind{{64, packet.TCP, 0, block1, block1 + 63}, {1, packet.TCP, 9, 0, 0}, {64, packet.TCP, 10, block1, block1 + 63}}},
		{"the next port is taken, not the lowest", []uint16{block1}, nil,
			[]bind{{2, packet.TCP, 0, block1, block1 + 1}, {1, packet.TCP, 20, block1 + 2, block1 + 2}}},
		{"a new block is begun at its first port", []uint16{block1}, []uint16{block2}, []bind{
			{1, packet.TCP, 0, block1, block1}, {64, packet.TCP, 20, block1 + 1, block1}, {64, packet.TCP, 40, block1 + 1, block1},
			{1, packet.TCP, 40, block2, block2}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := &Pool{Name: "pool", Addr: addr("192.168.1.11"), Blocks: tc.blocks}
			if tc.more != nil {
				pool.More = func() (uint16, bool) {
					if len(tc.more) == 0 {
						return 0, false
					}
					first := tc.more[0]
					tc.more = tc.more[1:]
					return first, true
				}
			}
			for i, b := range tc.binds {
				var ports []uint16
				for range b.times {
					port, ok := pool.bind(b.proto, &conn{until: b.at + 10}, &Env{Now: b.at})
					if ok == (port == 0) {
						t.Fatalf("port %d, ok %v", port, ok)
					}
					ports = append(ports, port)
				}
				if ports[0] != b.first || ports[len(ports)-1] != b.last {
					t.Errorf("bind %d: ports %d to %d, want %d to %d", i+1, ports[0], ports[len(ports)-1], b.first, b.last)
				}
			}
		})
	}
}

// A pool that several ports share gives back only what is asked for.
func TestPoolRelease(t *testing.T) {
	a, b := &Port{}, &Port{}
	pool := &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}
	bind := func(c *conn) uint16 {
		c.until = time.Hour
		port, _ := pool.bind(packet.UDP, c, &Env{})
		return port
	}
	dead := &conn{port: b}
	bind(&conn{port: a})
	second := bind(&conn{port: b})
	bind(dead)
	dead.dead = true
	pool.release(a)
	var left []uint16
	for k := range pool.used {
		left = append(left, k.port)
	}
	if !slices.Equal(left, []uint16{second}) {
		t.Errorf("in use after the release of port a: %v, want %d", left, second)
	}
	if got := bind(&conn{port: a}); got != 50051 {
		t.Errorf("a pool in use starts over: %d", got)
	}
	pool.release(a)
	pool.release(b)
	if got := bind(&conn{port: a}); got != 50048 {
		t.Errorf("a pool that nothing uses does not start over: %d", got)
	}
}

// When no port is free the packet is dropped, and the next connection that ends
// makes room.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	const rules = "layer NAT; dynnat out 1 udp ttl 100 => pool 192.168.1.11 50048"
	var steps []step
	for n := range blockSize {
		steps = append(steps, step{0, Out, fmt.Sprintf("udp 10.244.1.4:%d > 10.0.0.1:53", 1000+n),
			fmt.Sprintf("udp 192.168.1.11:%d > 10.0.0.1:53", 50048+n)})
	}
	steps = append(steps,
		step{50, In, "udp 10.0.0.1:53 > 192.168.1.11:50049", "udp 10.0.0.1:53 > 10.244.1.4:1001"},
		step{99, Out, "udp 10.244.1.4:2000 > 10.0.0.1:53", trace.NoFreePort},
		step{100, Out, "udp 10.244.1.4:2000 > 10.0.0.1:53", "udp 192.168.1.11:50048 > 10.0.0.1:53"},
		step{100, Out, "udp 10.244.1.4:2001 > 10.0.0.1:53", "udp 192.168.1.11:50050 > 10.0.0.1:53"}, // 50049 is in use
	)
	play(t, func() *Port { return port(policy(t, rules)...) }, steps)
}
