package ovs

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// TestWhatEndsAPath has what changes the connections of a chassis: a path that rests on them
// must hold no more; or still, when it was there already.
func TestWhatEndsAPath(t *testing.T) {
	first := packet.Tuple{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 40000, DstPort: 80,
		Proto: packet.TCP}
	now := first
	now.Dst = now.Dst.Next()
	ct := &conntrack{}
	for _, c := range []struct {
		name  string
		do    func()
		holds bool
	}{
		{"nothing", func() {}, true},
		{"a connection that is translated", func() { ct.commit(nil, "z", "rule", first, now) }, false},
		{"the same again", func() { ct.commit(nil, "z", "rule", first, now) }, true},
		{"it is translated otherwise", func() { ct.commit(nil, "z", "rule", first, first) }, false},
		{"one that policies let through", func() { ct.allow(nil, "z", first) }, false},
		{"the same one", func() { ct.allow(nil, "z", first) }, true},
		{"in another zone", func() { ct.allow(nil, "y", first) }, false},
		{"all forgotten", ct.reset, false},
	} {
		r := &path.Record{Ways: path.NewWays()}
		r.Rests(&ct.changes, &ct.ways)
		f, by := r.Flow(), &path.Passing{Proto: packet.TCP, TCPFlags: packet.ACK, Packets: 1, Bytes: 60}
		first := f.Take(by) // may be one that the path looks at more closely
		if !f.Take(by) || !first {
			t.Fatal("the path does not hold before anything has changed")
		}
		c.do()
		if f.Holds(0) != c.holds || f.Take(by) != c.holds {
			t.Errorf("%s: the path holds: %v", c.name, !c.holds)
		}
	}
}
