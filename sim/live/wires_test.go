package live

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Packets go on in the order of their times, and of equal ones in the order in which
// they came; none goes on before its time.
func TestWiresKeepOrder(t *testing.T) {
	now := time.Duration(0)
	w := newWires(func() time.Duration { return now })
	for _, until := range []time.Duration{30, 10, 20, 10, 30, 10} {
		if !w.hold(until, nil, 100) {
			t.Fatal("no room")
		}
	}
	if w.size != 600 {
		t.Errorf("%d bytes are held", w.size)
	}
	var got []uint64
	for now = 0; now <= 30; now += 5 {
		for {
			p, ok := w.due()
			if !ok {
				break
			}
			if p.until > now {
				t.Errorf("at %d one goes on whose time is %d", now, p.until)
			}
			got = append(got, p.seq)
		}
	}
	if want := []uint64{1, 3, 5, 2, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if w.size != 0 || len(w.queue) != 0 {
		t.Errorf("%d bytes, %d packets are left", w.size, len(w.queue))
	}
}

func TestWiresAreBounded(t *testing.T) {
	w := newWires(func() time.Duration { return 0 })
	n := 0
	for w.hold(time.Second, nil, 58000) {
		n++
	}
	if n != maxHeldBytes/58000 {
		t.Errorf("%d large packets are held", n)
	}
	w = newWires(func() time.Duration { return 0 })
	for n = 0; w.hold(time.Second, nil, 60); n++ {
		if n > maxHeld {
			t.Fatal("no end")
		}
	}
	if n != maxHeld {
		t.Errorf("%d small packets are held", n)
	}
}

// The same packets in the same order meet the same chance.
func TestChanceIsSeeded(t *testing.T) {
	now := func() time.Duration { return 0 }
	a, b := newWires(now), newWires(now)
	for range 10 {
		if x, y := a.Random(), b.Random(); x != y || x < 0 || x >= 1 {
			t.Fatal(x, y)
		}
	}
}

func link(t *testing.T, n *Net, l labfile.Link) {
	t.Helper()
	if err := n.Change(t.Context(), labfile.Step{Links: []labfile.Link{l}}); err != nil {
		t.Fatal(err)
	}
}

// addressOf is that of a machine.
func addressOf(n *Net, name string) (a netip.Addr) {
	_ = n.Do(func(c *lab.Cluster) error {
		for _, m := range slices.Concat(c.Machines(3), c.Machines(2), c.Machines(1)) {
			if m.Ref.String() == name {
				a = m.Address
			}
		}
		return nil
	})
	return a
}

func TestLinks(t *testing.T) {
	n := up(t, "overlay-flannel-vxlan.yaml", Options{})
	peer, neighbour := addressOf(n, "pod/default/peer"), addressOf(n, "pod/default/neighbour")
	ping := func(to netip.Addr) time.Duration {
		t.Helper()
		took, err := n.Ping(t.Context(), "pod/client", to, 20*time.Second)
		if err != nil {
			t.Fatalf("%v %+v", err, n.Stats())
		}
		return took
	}

	// Both directions of the cable take the delay: a round trip, a handshake and each
	// request. Within the node nothing is slower.
	link(t, n, labfile.Link{Of: "node/win1", Delay: "50ms"})
	if took := ping(peer); took < 100*time.Millisecond {
		t.Errorf("the round trip took %s", took)
	}
	ping(neighbour)
	begin := time.Now()
	c, err := n.Dial(t.Context(), "pod/client", "tcp", netip.AddrPortFrom(peer, 80), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	answer(t, c)
	c.Close()
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("a connection and a request took %s", took)
	}

	// The cable that is cut carries nothing, and the others do.
	link(t, n, labfile.Link{Of: "node/win1", Down: true})
	events, _, stop := n.Watch()
	if _, err := n.Ping(t.Context(), "pod/client", peer, 200*time.Millisecond); err == nil {
		t.Error("an answer came over a cable that is cut")
	}
	ping(neighbour)
	if e := <-events; e.Verdict != trace.Dropped || e.Reason != trace.LinkDown || e.Where != "fabric, link of node/win1 on nodes" {
		t.Errorf("watch: %+v", e)
	}
	stop()
	if lost := n.Stats().Lost["dropped link-down"]; lost == 0 {
		t.Errorf("nothing was counted: %v", n.Stats().Lost)
	}

	// What is lost by chance is sent again by TCP.
	link(t, n, labfile.Link{Of: "node/win1"})
	link(t, n, labfile.Link{Of: "segment/nodes", Loss: "20%"})
	c, err = n.Dial(t.Context(), "pod/client", "tcp", netip.AddrPortFrom(peer, 80), 60*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		answer(t, c)
	}
	c.Close()
	if lost := n.Stats().Lost["dropped link-loss"]; lost == 0 {
		t.Errorf("nothing was lost by chance: %v", n.Stats().Lost)
	}
	// A trace says what it does not follow of the links as they are now.
	if got := slowLinks(t, n); got != "loss 20% of link segment/nodes" {
		t.Errorf("a trace notes %q", got)
	}
	link(t, n, labfile.Link{Of: "segment/nodes"})
	if got := slowLinks(t, n); got != "" {
		t.Errorf("with all links as they should be a trace notes %q", got)
	}
	err = n.Change(t.Context(), labfile.Step{Links: []labfile.Link{{Of: "segment/nope"}, {Of: "node/win1", Loss: "7"}}})
	if err == nil || !strings.Contains(err.Error(), "no segment nope") || !strings.Contains(err.Error(), `"7" is not a share`) {
		t.Errorf("bad links: %v", err)
	}
}

// slowLinks are the notices of a trace that are about links.
func slowLinks(t *testing.T, n *Net) string {
	t.Helper()
	tr, err := n.Trace(t.Context(), lab.Request{From: "pod/client", To: "pod/peer:80"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, x := range tr.NotModelled {
		if strings.Contains(x.What, " of link ") {
			all = append(all, x.What)
		}
	}
	return strings.Join(all, ", ")
}

// answer says something to a responder, which sends it back.
func answer(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := c.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if k, err := c.Read(b); err != nil || string(b[:k]) != "hello\n" {
		t.Fatalf("%q %v", b[:k], err)
	}
}
