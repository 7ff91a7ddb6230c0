package vfp

import (
	"fmt"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/trace"
)

const counted = "layer ACL; allow in 1 id web port 80; block in 2 id rest any; layer NAT; dynnat out 1 id out any => pool 192.168.1.11 50048"

func countsOf(pt *Port) map[string]Counts {
	pt.Count()
	all := map[string]Counts{}
	for _, l := range pt.Layers() {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				all[r.ID] = r.Counts()
			}
		}
	}
	return all
}

// traffic sends some packets of some connections, and their replies.
func traffic(t *testing.T, pt *Port, env *Env) {
	t.Helper()
	for i := range 200 {
		env.Now = time.Duration(i) * time.Second
		for _, c := range []struct {
			dir  Direction
			text string
		}{
			{In, fmt.Sprintf("tcp 10.0.0.1:%d > 10.244.1.4:80 syn", 1000+i/20)},
			{Out, fmt.Sprintf("tcp 10.244.1.4:80 > 10.0.0.1:%d syn-ack", 1000+i/20)},
			{In, "udp 10.0.0.2:1 > 10.244.1.4:53"},
			{Out, fmt.Sprintf("udp 10.244.1.4:%d > 10.0.0.9:53", 2000+i%3)},
		} {
			pt.Process(parse(t, c.text), c.dir, env)
		}
	}
}

// The fast way counts what the slow way counts, and both what there was: 200 packets
// from the client and 200 replies are of the rule web, and of no other layer's the
// replies of a flow that another layer has not seen.
func TestCounts(t *testing.T) {
	fast, slow := port(policy(t, counted)...), port(policy(t, counted)...)
	traffic(t, fast, &Env{})
	traffic(t, slow, &Env{Rec: &trace.Recorder{}})
	got, want := countsOf(fast), countsOf(slow)
	size := uint64(parse(t, "udp 10.0.0.2:1 > 10.244.1.4:53").Len())
	for id, n := range map[string]Counts{
		"web":  {Packets: 400, Bytes: 400 * uint64(parse(t, "tcp 10.0.0.1:1 > 10.244.1.4:80 syn").Len())},
		"rest": {Packets: 200, Dropped: 200, Bytes: 200 * size},
	} {
		if got[id] != n {
			t.Errorf("%s: counted %+v, want %+v", id, got[id], n)
		}
	}
	if out := got["out"]; out.Packets < 600-400 || out.Dropped != 0 {
		t.Errorf("out: counted %+v", out)
	}
	for id := range want {
		if got[id] != want[id] {
			t.Errorf("%s: the fast way counted %+v, the slow one %+v", id, got[id], want[id])
		}
	}
	for _, pt := range []*Port{fast, slow} {
		pt.Reset()
		for id, n := range countsOf(pt) {
			if n != (Counts{}) {
				t.Errorf("%s has %+v after the reset", id, n)
			}
		}
	}
}

// Rules that are put on the port again go on counting, others and a reset begin anew.
func TestCountsLive(t *testing.T) {
	pt := port(policy(t, counted)...)
	traffic(t, pt, &Env{})
	before := countsOf(pt)
	pt.SetLayers(policy(t, counted+"; dynnat out 2 id new any => pool 192.168.1.11 50048"))
	after := countsOf(pt)
	for id, n := range before {
		if after[id] != n || n == (Counts{}) {
			t.Errorf("%s: %+v before, %+v after", id, n, after[id])
		}
	}
	if after["new"] != (Counts{}) {
		t.Errorf("a new rule has counted %+v", after["new"])
	}
	pt.Reset()
	for id, n := range countsOf(pt) {
		if n != (Counts{}) {
			t.Errorf("%s has %+v after the reset", id, n)
		}
	}
}

// What will be undone does not count.
func TestCountsOfATrace(t *testing.T) {
	pt := port(policy(t, counted)...)
	traffic(t, pt, &Env{})
	before, flows := countsOf(pt), pt.layers[0].flows.n
	env := &Env{Now: time.Hour, Rec: &trace.Recorder{}, Journal: &journal.Journal{}}
	for i := range 10 {
		pt.Process(parse(t, fmt.Sprintf("tcp 10.0.0.1:%d > 10.244.1.4:80 syn", 5000+i)), In, env)
		pt.Process(parse(t, "udp 10.0.0.2:1 > 10.244.1.4:53"), In, env)
	}
	env.Journal.Undo()
	for id, n := range countsOf(pt) {
		if before[id] != n {
			t.Errorf("%s: %+v before, %+v after", id, before[id], n)
		}
	}
	if now := pt.layers[0].flows.n; now != flows || pt.now >= time.Hour {
		t.Errorf("%d flows, then %d; it is %s", flows, now, pt.now)
	}
}
