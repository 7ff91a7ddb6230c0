package live

import (
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// TestFragments6: a datagram of IPv6 that the sender's Linux cuts arrives where stacks of
// Linux are on the way, and not through a switch of Windows, of which it is not known what it
// does with fragments.
func TestFragments6(t *testing.T) {
	n := up(t, "l2bridge-azure-cni-dual-stack.yaml", Options{})
	large := netns.Echo{Size: 4000}
	for _, c := range []struct {
		from, to string
		arrives  bool
	}{
		{"node/linux1", "host/lan", true},
		{"pod/linux-client", "node/linux1", true},
		{"pod/client", "pod/default/neighbour", false},
	} {
		to := address6Of(t, n, c.to)
		if _, err := n.PingWith(t.Context(), c.from, to, netns.Echo{}, 20*time.Second); err != nil {
			t.Fatalf("%s -> %s: %v", c.from, c.to, err)
		}
		wait := 20 * time.Second
		if !c.arrives {
			wait = time.Second
		}
		if _, err := n.PingWith(t.Context(), c.from, to, large, wait); (err == nil) != c.arrives {
			t.Errorf("%s -> %s with 4000 bytes: %v", c.from, c.to, err)
		}
	}
	if len(n.Stats().Unknown) != 1 {
		t.Errorf("unknown: %v", n.Stats().Unknown)
	}
}

// address6Of is a machine's IPv6 address.
func address6Of(t *testing.T, n *Net, name string) (a netip.Addr) {
	t.Helper()
	s, err := n.find(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.spec.Addrs {
		if p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast() {
			return p.Addr()
		}
	}
	t.Fatalf("%s has no IPv6 address", name)
	return a
}
