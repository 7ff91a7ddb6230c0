package vfp

import (
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// way is what a packet did at one port, and for which packets that was found.
type way struct {
	*path.Flow
	edits, len int
	res        Result
}

type wayKey struct {
	packet.Headers
	dir Direction
}

// wayOf is a packet's key: its headers without what no rule looks at. TCP segments that
// open, end or reset have none, nor have fragments and ICMP but pings.
func wayOf(h *packet.Headers, dir Direction) (k wayKey, ok bool) {
	k = wayKey{*h, dir}
	k.Seq, k.Ack, k.IPID, k.ICMPSeq, k.TOS, k.End, k.Payload, k.TCPFlags = 0, 0, 0, 0, 0, 0, 0, 0
	switch {
	case h.IPVersion == 0 || h.Fragment || h.L4 == 0:
		return k, false
	case h.Proto == packet.TCP:
		return k, h.TCPFlags&(packet.SYN|packet.FIN|packet.RST) == 0
	}
	return k, h.Proto == packet.UDP || h.ICMPType == 8 || h.ICMPType == 128
}

// passing is a packet as a flow takes it.
func passing(p *packet.Packet, now time.Duration) *path.Passing {
	h := p.Headers()
	return &path.Passing{Now: now, Proto: h.Proto, TCPFlags: h.TCPFlags, Packets: 1, Bytes: uint64(p.Len())}
}

// byPath processes a packet by what an earlier one of the flow did at the port, where that
// holds, and keeps what it does otherwise.
func (c *contest) byPath(pt *Port, p *packet.Packet, dir Direction) Result {
	k, ok := wayOf(p.Headers(), dir)
	if w := c.paths[k]; ok && w != nil && p.Len() <= w.len && w.Take(passing(p, c.now)) {
		c.followed++
		if err := w.Redo(p, 0, w.edits); err != nil {
			panic(err)
		}
		return w.res
	}
	c.ways.Settle()
	r := &path.Record{Len: p.Len(), Ways: c.ways}
	if ok {
		p.Note(&r.Edits)
	}
	res := pt.Process(p, dir, &Env{Now: c.now, Path: r})
	p.Note(nil)
	if ok && r.Keepable() {
		c.paths[k] = &way{r.Flow(), r.Edits.Len(), r.Len, res}
	}
	return res
}

// TestPathsAreTaken holds that the contest between the ways to process a packet has one
// with paths: a test that compares a way with itself shows nothing.
func TestPathsAreTaken(t *testing.T) {
	pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1, Flags: Stateful}}, nil))
	c := &contest{paths: map[wayKey]*way{}, ways: path.NewWays()}
	c.byPath(pt, parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2"), Out)
	c.byPath(pt, parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2"), Out)
	pt.Count()
	if n := pt.Layers()[0].Groups[0].Rules[0].Counts().Packets; c.followed != 1 || n != 2 {
		t.Errorf("%d packets by path, want the second one; the rule has counted %d", c.followed, n)
	}
}

// TestWhatEndsAPath records a packet's way through a switch and changes something: the way
// must hold no more, or still.
func TestWhatEndsAPath(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Switch, from, to *Port)
		holds  bool
	}{
		{"nothing", func(*Switch, *Port, *Port) {}, true},
		{"other rules", func(_ *Switch, from, _ *Port) { from.SetLayers(nil) }, false},
		{"a port more", func(s *Switch, _, _ *Port) { s.AddPort(&Port{MAC: gwMAC}) }, false},
		{"a port less", func(s *Switch, _, to *Port) { s.RemovePort(to) }, false},
		{"a fixed binding", func(s *Switch, from, _ *Port) { s.Bind(addr("10.0.0.2"), packet.UDP, 2, from) }, false},
		{"fixed bindings gone", func(s *Switch, _, _ *Port) { s.Unbind() }, false},
		{"a flow's binding", func(s *Switch, from, _ *Port) { s.bind(binding{addr("10.0.0.2"), packet.UDP, 2}, from, nil) }, false},
		{"the binding of another port number", func(s *Switch, from, _ *Port) { s.bind(binding{addr("10.0.0.2"), packet.UDP, 3}, from, nil) },
			true},
		{"all forgotten", func(s *Switch, _, _ *Port) { s.Reset() }, false},
		{"rules for a port that had none, made when they are needed", func(_ *Switch, _, to *Port) {
			to.Reset()
			to.SetLayersLater(func() []*Layer { return []*Layer{layer("L", 1, nil, nil)} })
		}, false},
		{"a flow with the packet's key", func(_ *Switch, from, _ *Port) {
			st := from.layers[0]
			for _, f := range valuesOf(&st.flows) {
				st.put(flowAt(from, f.key), f.key.hash(), 0, nil)
			}
		}, false},
		{"a flow with another key", func(_ *Switch, from, _ *Port) {
			k := key{src: [2]uint64{0, 9}}
			from.layers[0].put(flowAt(from, k), k.hash(), 0, nil)
		}, true},
		{"the layer's flows are cut", func(_ *Switch, from, _ *Port) { from.Flush("L") }, false},
		{"another unified flow in its place", func(_ *Switch, from, _ *Port) {
			for _, old := range valuesOf(&from.unified) {
				u := new(unified)
				u.init()
				from.keep(&old.key, old.key.hash(), u, 0)
			}
		}, false},
		{"the port forgot", func(_ *Switch, from, _ *Port) { from.clearUnified() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSwitch("s", "external")
			from, to := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1, Flags: Stateful}}, nil)), &Port{ID: "to", MAC: gwMAC}
			s.AddPort(from)
			s.AddPort(to)
			p := parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2")
			r := &path.Record{Len: p.Len(), Ways: path.NewWays()}
			by := passing(p, 0)
			p.Note(&r.Edits)
			if o := s.Send(from, p, &Env{Path: r}); o.To != to || !r.Keepable() {
				t.Fatalf("%+v, keepable %v", o, r.Keepable())
			}
			f := r.Flow()
			if !takesTwo(f, by) {
				t.Fatal("the path does not hold before anything has changed")
			}
			c.change(s, from, to)
			if f.Holds(0) != c.holds {
				t.Errorf("the path holds: %v", !c.holds)
			}
			if f.Take(by) != c.holds {
				t.Errorf("the path takes a packet: %v", !c.holds)
			}
		})
	}
}

// A port without rules has nothing to forget: a way through it holds after that, until the
// port gets rules, also when they are made only when somebody needs them.
func TestRulesMadeLaterEndAPath(t *testing.T) {
	pt := &Port{ID: "bare", MAC: gwMAC}
	p := parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2")
	r := &path.Record{Len: p.Len(), Ways: path.NewWays()}
	p.Note(&r.Edits)
	if !pt.Process(p, Out, &Env{Path: r}).Pass || !r.Keepable() {
		t.Fatal("the way through a port without rules is not kept")
	}
	f, by := r.Flow(), passing(p, 0)
	if pt.Reset(); !takesTwo(f, by) {
		t.Fatal("the path does not hold, though nothing has changed")
	}
	pt.SetLayersLater(func() []*Layer { return []*Layer{layer("L", 1, nil, nil)} })
	if f.Take(by) {
		t.Error("the path takes a packet past the new rules")
	}
}

// A unified flow without packets is forgotten when there are many, also one that rests on
// no flow: a path on it would count packets that no rule hears of.
func TestSweptUnifiedFlowEndsAPath(t *testing.T) {
	pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1}}, nil))
	p := parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2")
	r := &path.Record{Len: p.Len(), Ways: path.NewWays()}
	p.Note(&r.Edits)
	if !pt.Process(p, Out, &Env{Path: r}).Pass || !r.Keepable() {
		t.Fatal("the way is not kept")
	}
	f, by := r.Flow(), passing(p, 0)
	if !takesTwo(f, by) {
		t.Fatal("the path does not hold before anything has changed")
	}
	r.Ways.Settle()
	pt.Process(parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2"), Out, &Env{}) // finds it near
	forgetsEarly(t, 1)
	pt.Process(parse(t, "udp 10.0.0.3:1 > 10.0.0.2:2"), Out, &Env{Now: maxUnused})
	if pt.unified.n != 1 {
		t.Fatal(pt.unified.n, "unified flows, want that of the last packet alone")
	}
	if by.Now = maxUnused; f.Holds(maxUnused) || f.Take(by) {
		t.Error("the path holds, though the port has forgotten its unified flow")
	}
	pt.Process(parse(t, "udp 10.0.0.1:1 > 10.0.0.2:2"), Out, &Env{Now: maxUnused})
	pt.Count()
	if n := pt.Layers()[0].Groups[0].Rules[0].Counts().Packets; n != 6 {
		t.Errorf("the rule has counted %d packets, want 6: four of a unified flow that is gone, one of another, one of a new one", n)
	}
}

// Packets that followed a path are told of together: the connection lives from the last of
// them on, whichever flow it was of, and the rule has counted them all, with what they were
// longer at the port.
func TestFollowersAreToldTogether(t *testing.T) {
	pt := port(layer("L", 1, []*Rule{{ID: "a", Action: Allow{}, Priority: 1, Flags: Stateful}}, nil))
	ways := path.NewWays()
	const longer = 50
	keep := func(text string, dir Direction) *path.Flow {
		p := parse(t, text)
		r := &path.Record{Len: p.Len() - longer, Ways: ways}
		p.Note(&r.Edits)
		if !pt.Process(p, dir, &Env{Path: r}).Pass || !r.Keepable() {
			t.Fatal("the way is not kept")
		}
		return r.Flow()
	}
	request, reply := keep("udp 10.0.0.1:1 > 10.0.0.2:2", Out), keep("udp 10.0.0.2:2 > 10.0.0.1:1", In)
	pt.Count()
	rule := pt.Layers()[0].Groups[0].Rules[0]
	before := rule.Counts()
	take := func(f *path.Flow, at time.Duration) {
		t.Helper()
		if !f.Take(&path.Passing{Now: at, Proto: packet.UDP, Packets: 1, Bytes: 100}) {
			t.Fatal("the path does not hold at", at)
		}
	}
	for _, at := range []time.Duration{0, 5} {
		take(request, at)
		take(reply, at+2)
	}
	take(request, 9)
	pt.Count()
	if n := rule.Counts(); n.Packets-before.Packets != 5 || n.Bytes-before.Bytes != 5*(100+longer) {
		t.Errorf("the rule has counted %+v, before %+v", n, before)
	}
	for _, f := range valuesOf(&pt.layers[0].flows) {
		if f.conn.until != 9+f.conn.ttl {
			t.Errorf("the connection lives until %v, want %v", f.conn.until, 9+f.conn.ttl)
		}
	}
}

// forgetsEarly makes ports forget what is over when they hold that many flows.
func forgetsEarly(t testing.TB, flows int) {
	before := firstSweep
	firstSweep = flows
	t.Cleanup(func() { firstSweep = before })
}

// flowAt is a flow of a new connection.
func flowAt(pt *Port, k key) *flow {
	c := &conn{port: pt, ttl: DefaultTTL, until: DefaultTTL}
	c.forward = flow{conn: c, key: k}
	return &c.forward
}

func valuesOf[V any](t *table[V]) []*V {
	var all []*V
	t.all(func(v *V) { all = append(all, v) })
	return all
}

// takesTwo sends two packets by a path: the first may be one that it looks at more closely.
func takesTwo(f *path.Flow, by *path.Passing) bool {
	first := f.Take(by)
	return f.Take(by) && first
}
