package live

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A connection whose answer is lost says where and by what, as one whose request is lost.
func TestWatchLostAnswer(t *testing.T) {
	for _, c := range []struct {
		lab, variant, from, to string
		reason                 trace.Reason
	}{
		{"018-no-route-to-windows-pods", "broken", "pod/client", "pod/linux-client", trace.NoWayBack},
		{"020-remote-subnet-route-missing", "broken", "pod/linux-client", "pod/client", trace.NotEncapsulated},
	} {
		t.Run(c.lab, func(t *testing.T) {
			n := upVariant(t, "../../fixtures/held-out/"+c.lab+".yaml", c.variant, Options{})
			events, _, stop := n.Watch()
			defer stop()
			to := address(t, n, c.to)
			if conn, err := n.Dial(t.Context(), c.from, "tcp", netip.AddrPortFrom(to, 80), 300*time.Millisecond); err == nil {
				conn.Close()
				t.Fatal("it is connected")
			}
			e := <-events
			if e.Verdict != trace.NoReply || e.Where == "" || e.Why == "" {
				t.Errorf("%+v", e)
			}
			t.Logf("%s at %s: %s", e.Reason, e.Where, e.Why)
		})
	}
}

// A change that fails half-way leaves namespaces for what there is then, and is followed
// by others; those that come at once are made one after another.
func TestChangeFails(t *testing.T) {
	n := up(t, "l2bridge-flannel-host-gw.yaml", Options{})
	bad := labfile.Step{Wait: "1h", Delete: []string{"pod/linux-client"},
		HNS: []labfile.HNSCall{{Node: "win1", Delete: &labfile.HNSSelector{Kind: "loadBalancer", VIP: "10.9.9.9"}}}}
	if err := n.Change(t.Context(), bad); err == nil {
		t.Fatal("there is no such load balancer")
	} else {
		t.Log(err)
	}
	if n.skipped != 0 {
		t.Errorf("%v have passed in a step that failed", n.skipped)
	}
	errs := make(chan error)
	for range 4 {
		go func() { errs <- n.Change(t.Context(), labfile.Step{Restart: []string{"kube-proxy/win1"}}) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for name, e := range n.ports.Entries() {
		if n.spaces[e] == nil {
			t.Errorf("%s has no namespace", name)
		}
	}
	n.Close()
	if err := n.Change(t.Context(), labfile.Step{}); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
}

// kube-proxy in userspace mode hands datagrams on, and the backend's answers back.
func TestUserSpaceProxyUDP(t *testing.T) {
	n := up(t, "rras-l3.yaml", Options{})
	node, peer := address(t, n, "node/win1"), address(t, n, "pod/linux-client")
	if err := n.Do(func(c *lab.Cluster) error {
		for name, l := range map[string]*host.Listener{
			"node/win1": {Name: "kube-proxy", Proto: packet.UDP, Addr: node, Port: 5300,
				Backends: []netip.AddrPort{netip.AddrPortFrom(peer, 9999)}},
			"pod/default/linux-client": {Name: "echo", Proto: packet.UDP, Port: 9999},
		} {
			for _, k := range []cluster.Kind{cluster.NodeKind, cluster.PodKind} {
				for _, m := range c.Machines(k) {
					if m.Ref.String() == name {
						m.Stack().Listen(l)
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := n.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(node, 5300)
	events, _, stop := n.Watch()
	defer stop()
	c, err := n.Dial(t.Context(), "node/linux1", "udp", to, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 1500)
	size, err := c.Read(buf)
	if err != nil {
		for range len(events) {
			t.Logf("%+v", <-events)
		}
		t.Fatalf("%v %+v", err, n.Stats())
	}
	if said := string(buf[:size]); !strings.HasPrefix(said, "pod/default/linux-client\n") || !strings.HasSuffix(said, "hello") {
		t.Errorf("%q", said)
	}
}
