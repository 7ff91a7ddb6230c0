package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// upOutside runs a lab whose pods and Services come from outside.
func upOutside(t testing.TB, path string, o lab.Options) *Net {
	t.Helper()
	f, err := lab.Load(filepath.Join("../../fixtures/labs", path))
	if err != nil {
		t.Fatal(err)
	}
	o.Objects, o.Proxies = cluster.Outside, cluster.Outside
	if o.Components == "" {
		o.Components = labfile.Model
	}
	c, err := lab.Build(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), c, Options{Silent: true, Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func addPod(t testing.TB, n *Net, name, node string) Attached {
	t.Helper()
	a, err := n.AddPod(t.Context(), Sandbox{Namespace: "default", Name: name, UID: name, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// echoOn serves on a machine until the test ends.
func echoOn(t *testing.T, n *Net, on string, at netip.AddrPort) {
	t.Helper()
	l, err := n.Listen(t.Context(), on, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
}

// says sends a line and reads it again.
func says(c net.Conn, r *bufio.Reader, line string) error {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return err
	}
	got, err := r.ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("%q came back as %q", line, got)
	}
	return err
}

// TestSandboxes: pods of a runtime come and go, many at once, while a connection between
// two others goes on.
func TestSandboxes(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	client, server := addPod(t, n, "client", "linux1"), addPod(t, n, "server", "win2")
	if !n.c.Kube.Node("win2").PodCIDRs[0].Contains(server.IPv4) {
		t.Errorf("the server has %s", server.IPv4)
	}
	echoOn(t, n, server.Machine, netip.AddrPortFrom(server.IPv4, 8080))
	c, err := n.Dial(t.Context(), client.Machine, "tcp", netip.AddrPortFrom(server.IPv4, 8080), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := says(c, r, fmt.Sprint("line ", i)); err != nil {
				stopped <- err
				return
			}
		}
	}()
	nodes := []string{"linux1", "win1", "win2"}
	var mu sync.Mutex
	used := map[netip.Addr]string{client.IPv4: "client", server.IPv4: "server"}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprint("p", i)
			a, err := n.AddPod(t.Context(), Sandbox{Namespace: "many", Name: name, Node: nodes[i%3]})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			if o := used[a.IPv4]; o != "" {
				t.Errorf("%s has the address of %s", name, o)
			}
			used[a.IPv4] = name
			mu.Unlock()
			if i%2 == 0 {
				c, err := n.Dial(t.Context(), a.Machine, "tcp", netip.AddrPortFrom(server.IPv4, 8080), 20*time.Second)
				if err != nil {
					t.Errorf("%s on %s: %v", name, nodes[i%3], err)
				} else {
					if err := says(c, bufio.NewReader(c), name); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					_ = c.Close()
				}
				if err := n.RemovePod(t.Context(), a.Machine); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("the connection of others: %v", err)
	}
	_ = n.Do(func(c *lab.Cluster) error {
		if pods := len(c.Machines(cluster.PodKind)); pods != 2+25 {
			t.Errorf("%d pods are left", pods)
		}
		for _, node := range []string{"win1", "win2"} {
			for _, e := range c.HNS(node).ListEndpoints(nil) {
				if strings.Contains(e.Name, "p0_") {
					t.Errorf("%s still has endpoint %s", node, e.Name)
				}
			}
		}
		return nil
	})
	// Twice is no error, and a name can come again.
	for range 2 {
		if err := n.RemovePod(t.Context(), "pod/many/p1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := n.AddPod(t.Context(), Sandbox{Namespace: "many", Name: "p1", Node: "win1"}); err != nil {
		t.Error(err)
	}
}

func TestSandboxMistakes(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	a := addPod(t, n, "one", "win1")
	for _, c := range []struct {
		s    Sandbox
		want string
	}{
		{Sandbox{Namespace: "default", Name: "x", Node: "win9"}, `there is no node "win9" in this lab; there are linux1, win1, win2`},
		{Sandbox{Name: "x", Node: "win1"}, "needs a namespace and a name"},
		{Sandbox{Namespace: "default", Name: "one", Node: "win1"}, "is already on node win1"},
	} {
		if _, err := n.AddPod(t.Context(), c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.s, err, c.want)
		}
	}
	if err := n.RemovePod(t.Context(), "node/win1"); err == nil || !strings.Contains(err.Error(), "write pod/NAMESPACE/NAME") {
		t.Error(err)
	}
	if err := n.Change(t.Context(), labfile.Step{Pods: []labfile.Pod{{Name: "y", Node: "win1"}}}); err == nil ||
		!strings.Contains(err.Error(), "come from an API server") {
		t.Error(err)
	}
	if err := n.Change(t.Context(), labfile.Step{Restart: []string{"kube-proxy/win1"}}); err == nil ||
		!strings.Contains(err.Error(), "the lab does not run this kube-proxy") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.AddPod(ctx, Sandbox{Namespace: "default", Name: "late", Node: "win1"}); err == nil {
		t.Error("a context that has ended counts for nothing")
	}
	_ = n.Do(func(c *lab.Cluster) error {
		if c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: "default/late"}) != nil {
			t.Error("the pod whose namespace was not made is left")
		}
		return nil
	})
	n.Close()
	if err := n.RemovePod(t.Context(), a.Machine); err != nil {
		t.Errorf("after the end nothing is there: %v", err)
	}
}

// TestServicesFromOutside: Linux nodes follow the Services of an API server, and HNS of
// Windows nodes is left to a kube-proxy of somebody else.
func TestServicesFromOutside(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	client, server := addPod(t, n, "client", "linux1"), addPod(t, n, "server", "win2")
	wclient := addPod(t, n, "wclient", "win1")
	echoOn(t, n, server.Machine, netip.AddrPortFrom(server.IPv4, 8080))
	vip := n.c.Kube.ServiceCIDRs[0].Addr().Next().Next().Next()
	to := netip.AddrPortFrom(vip, 80)
	if c, err := n.Dial(t.Context(), client.Machine, "tcp", to, time.Second); err == nil {
		c.Close()
		t.Fatal("a Service that is not there serves")
	}
	svc := &kube.Service{Namespace: "default", Name: "web", Type: kube.ClusterIP, ClusterIPs: []netip.Addr{vip},
		Ports:     []kube.ServicePort{{Proto: packet.TCP, Port: 80, Target: 8080}},
		Endpoints: []kube.Endpoint{{Addr: server.IPv4, Node: "win2", Pod: "default/server", Ready: true, Serving: true}}}
	if err := n.SetServices(t.Context(), []*kube.Service{svc}); err != nil {
		t.Fatal(err)
	}
	c, err := n.Dial(t.Context(), client.Machine, "tcp", to, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := says(c, bufio.NewReader(c), "hello"); err != nil {
		t.Error(err)
	}
	_ = n.Do(func(c *lab.Cluster) error {
		if all := c.HNS("win1").ListLoadBalancers(nil); len(all) != 0 {
			t.Errorf("the model has programmed HNS: %+v", all[0])
		}
		return nil
	})
	if c, err := n.Dial(t.Context(), wclient.Machine, "tcp", to, time.Second); err == nil {
		c.Close()
		t.Error("the Service works on win1, where no kube-proxy runs")
	}
	if err := n.SetServices(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c, err := n.Dial(t.Context(), client.Machine, "tcp", to, time.Second); err == nil {
		c.Close()
		t.Error("a Service that has gone serves")
	}
}

// TestANodeStartsAgain: its sandboxes are gone, and the runtime adds them again.
func TestANodeStartsAgain(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	client, server := addPod(t, n, "client", "linux1"), addPod(t, n, "server", "win2")
	h, err := n.CreateContainer(t.Context(), client.Machine, Container{Name: "a", Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, _ := outputs(t)
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"win2", "linux1"} {
		if err := n.Change(t.Context(), labfile.Step{Restart: []string{"node/" + node}}); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := h.Wait(t.Context()); err != nil || e.Signal != 9 {
		t.Errorf("%+v, error %v", e, err)
	}
	for _, a := range []Attached{client, server} {
		if _, err := n.Listen(t.Context(), a.Machine, netip.MustParseAddrPort("127.0.0.1:0")); err == nil ||
			!strings.Contains(err.Error(), "there is no "+a.Machine) {
			t.Errorf("%s is there: %v", a.Machine, err)
		}
		if err := n.RemovePod(t.Context(), a.Machine); err != nil {
			t.Error(err)
		}
	}
	client, server = addPod(t, n, "client", "linux1"), addPod(t, n, "server", "win2")
	echoOn(t, n, server.Machine, netip.AddrPortFrom(server.IPv4, 8080))
	c, err := n.Dial(t.Context(), client.Machine, "tcp", netip.AddrPortFrom(server.IPv4, 8080), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := says(c, bufio.NewReader(c), "hello"); err != nil {
		t.Error(err)
	}
}
