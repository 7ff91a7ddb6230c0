package vfp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// refNearest tries every rule, and makes the text of all that a packet fails.
func refNearest(l *Layer, p *packet.Packet, dir Direction) []trace.Miss {
	var changing, passing []trace.Miss
	h := p.Headers()
	for _, g := range l.Groups {
		if !g.serves(dir, h.IPVersion) {
			continue
		}
		for _, r := range g.Rules {
			m := r.misses(p, h)
			if r.Cond.set().count() < 2 || len(m) != 1 {
				continue
			}
			m[0].Rule, m[0].From = r.ID, r.Origin
			if r.Action.Type() == (Allow{}).Type() {
				passing = append(passing, m[0])
			} else {
				changing = append(changing, m[0])
			}
		}
	}
	ms := append(changing, passing...)
	return ms[:min(len(ms), 3)]
}

// indexed compares what the index of a group finds with what trying every rule finds.
func indexed(t testing.TB, data []byte) {
	t.Helper()
	d := &dice{data}
	pools := newPools()
	seed := d.cut(8)
	more := &dice{expand(seed, 4000)}
	g := &Group{Name: "g", Dir: Out, Family: pick[uint8](d, 0, 4)}
	for i := range pick(d, 5, 30, 90) {
		r := more.rule(fmt.Sprint(i), pools)
		if more.chance(30) && len(g.Rules) > 0 { // the same condition with another value
			r.Cond = more.varied(g.Rules[more.roll(len(g.Rules))].Cond)
		}
		g.Rules = append(g.Rules, r)
	}
	l := &Layer{Name: "L", Groups: []*Group{g, {Name: "h", Dir: Out, Rules: []*Rule{more.rule("last", pools)}}}}
	l.seal()
	for _, g := range l.Groups {
		g.index.near = d.chance(80)
	}
	var seen [][]byte
	for len(d.data) > 0 {
		frame := d.packet(seen, nil)
		seen = append(seen, frame)
		p, err := packet.New(frame)
		if err != nil || p.Headers().IPVersion == 0 {
			continue
		}
		h := p.Headers()
		var want *Rule
		for _, r := range g.Rules {
			if r.matches(p, h) {
				want = r
				break
			}
		}
		if got := g.index.find(p, h); got != want {
			t.Fatalf("%v\nfound %v, want %v", p, got, want)
		}
		if got, want := fmt.Sprint(nearest(l, p, Out)), fmt.Sprint(refNearest(l, p, Out)); got != want {
			t.Fatalf("%v\nnearest %s\nwant    %s", p, got, want)
		}
	}
}

// varied is a condition that has another value in one field.
func (d *dice) varied(c Cond) Cond {
	switch d.roll(4) {
	case 0:
		c.Dst = d.prefixes(d.chance(20))
	case 1:
		c.DstPorts = d.ports()
	case 2:
		c.Src = d.prefixes(d.chance(20))
	case 3:
		c.Protos = []packet.Proto{pick(d, packet.TCP, packet.UDP, packet.ICMP)}
	}
	return c
}

// expand makes many bytes of a few.
func expand(seed []byte, n int) []byte {
	var s [32]byte
	copy(s[:], seed)
	all := make([]byte, n)
	_, _ = rand.NewChaCha8(s).Read(all)
	return all
}

func TestIndexed(t *testing.T) {
	for i := range 600 {
		indexed(t, expand([]byte{byte(i), byte(i >> 8), 7}, 400))
	}
}

func FuzzIndexed(f *testing.F) {
	f.Add(expand([]byte("a"), 300))
	f.Fuzz(func(t *testing.T, data []byte) { indexed(t, data) })
}

// TestRulesTried holds how many rules are compared with a packet: as many among 10,000
// Services as among 100, whether the packet is for one of them, for another port of one,
// from one, or for none.
func TestRulesTried(t *testing.T) {
	vip := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}) }
	tried := func(services int, text string) (n float64) {
		g, back := &Group{Name: "LB", Dir: Out}, &Group{Name: "BACK", Dir: Out}
		for i := range services {
			tcp, port := []packet.Proto{packet.TCP}, []PortRange{Port1(80)}
			own := []netip.Prefix{netip.MustParsePrefix("172.16.0.1/32"), netip.MustParsePrefix("172.16.0.2/32")}
			g.Rules = append(g.Rules, &Rule{ID: fmt.Sprint(i), Action: NAT{},
				Cond: Cond{Protos: tcp, Dst: []netip.Prefix{Host(vip(i))}, DstPorts: port, Src: own[:2*(i%2)]}})
			back.Rules = append(back.Rules, &Rule{ID: fmt.Sprint(i), Action: Allow{},
				Cond: Cond{Protos: tcp, Src: []netip.Prefix{Host(vip(i))}, SrcPorts: port}})
		}
		l := &Layer{Name: "LB", Groups: []*Group{g, back}}
		l.seal()
		p := parse(t, text)
		for range scansFirst + 1 {
			nearest(l, p, Out)
		}
		g.index.tried, back.index.tried = 0, 0
		g.index.find(p, p.Headers())
		back.index.find(p, p.Headers())
		nearest(l, p, Out)
		return float64(g.index.tried + back.index.tried)
	}
	for _, text := range []string{
		"tcp 10.244.1.4:1000 > 10.96.0.3:80 syn", "tcp 10.244.1.4:1000 > 10.96.0.3:443 syn", "udp 10.244.1.4:1000 > 10.96.0.3:80",
		"tcp 10.96.0.3:80 > 10.244.1.4:1000 syn", "tcp 10.244.1.4:1000 > 10.244.2.2:80 syn", "tcp 10.244.1.4:1000 > 10.244.2.2:443 syn",
		"tcp 172.16.0.1:1000 > 10.244.2.2:80 syn", "ping 10.244.1.4 > 10.96.0.3", "ping 10.244.1.4 > 10.244.2.2",
	} {
		few, many := tried(100, text), tried(10000, text)
		if exponent := math.Log((many+1)/(few+1)) / math.Log(100); exponent > 0.1 {
			t.Errorf("%s: %.0f rules tried among 100 Services, %.0f among 10,000", text, few, many)
		}
	}
}
