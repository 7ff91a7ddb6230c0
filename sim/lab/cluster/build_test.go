package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func planned(t *testing.T, name string) *plan.Plan {
	t.Helper()
	f, err := labfile.Load("../../../fixtures/labs/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(f, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func built(t *testing.T, name string) *Cluster {
	t.Helper()
	c, err := New(t.Context(), planned(t, name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every design has its machines in one order, each pod on its node with an
// address, and HNS where Windows nodes use it.
func TestDesigns(t *testing.T) {
	t.Parallel()
	for _, d := range []struct {
		name string
		typ  hns.NetworkType
	}{
		{"l2bridge-flannel-host-gw", hns.L2Bridge}, {"overlay-flannel-vxlan", hns.Overlay}, {"l2tunnel-azure-cni", hns.L2Tunnel},
		{"nat-winnat", hns.NAT}, {"rras-l3", hns.Transparent},
		{"transparent-ovn-kubernetes", ""}, {"ovs-l3", ""},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := built(t, d.name)
			var kinds []int
			for _, m := range c.machines {
				kinds = append(kinds, int(m.Kind))
				if m.Stack() == nil || c.Machine(m.Ref) == nil {
					t.Errorf("%s has no stack or is not found", m.Ref)
				}
			}
			if !slices.IsSorted(kinds) {
				t.Errorf("routers, hosts, nodes and pods are mixed: %v", kinds)
			}
			names := func(k Kind) (all []string) {
				for _, m := range c.Machines(k) {
					all = append(all, m.Name)
				}
				return all
			}
			if !slices.IsSorted(names(PodKind)) || !slices.Contains(names(PodKind), "default/client") {
				t.Errorf("pods %v", names(PodKind))
			}
			pod := c.Machine(Ref{PodKind, "default/client"})
			if !pod.Address.IsValid() || !pod.Stack().Owns(pod.Address) || pod.Node != c.node("win1") {
				t.Errorf("pod %+v", pod)
			}
			svc := c.HNS("win1")
			if (svc != nil) != (d.typ != "") || (pod.Endpoint != "") != (d.typ != "") {
				t.Fatalf("HNS %v, endpoint %q", svc != nil, pod.Endpoint)
			}
			if svc != nil && !slices.ContainsFunc(svc.ListNetworks(nil), func(n *hns.Network) bool { return n.Is(d.typ) }) {
				t.Errorf("there is no network of type %s", d.typ)
			}
		})
	}
}

// A rebuild has nothing of what was called since, and leaves the first as it is.
func TestRebuildIsAnother(t *testing.T) {
	t.Parallel()
	c := built(t, "l2bridge-flannel-host-gw")
	before := len(c.HNS("win1").ListLoadBalancers(nil))
	if err := c.Call([]plan.Call{{Node: "win1", Delete: &plan.Selector{Kind: hns.KindLoadBalancer}}}); err != nil {
		t.Fatal(err)
	}
	again, err := c.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(again.HNS("win1").ListLoadBalancers(nil)); got != before || before == 0 {
		t.Errorf("%d load balancers after the rebuild, %d before", got, before)
	}
	if n := len(c.HNS("win1").ListLoadBalancers(nil)); n != 0 {
		t.Errorf("the first cluster has %d load balancers again", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if broken, err := c.Rebuild(ended); broken != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a rebuild that was interrupted gives %v, %v", broken, err)
	}
}

// A call that must fail and does not is an error, and the other way round.
func TestCallsThatMustFail(t *testing.T) {
	t.Parallel()
	c := built(t, "l2bridge-flannel-host-gw")
	nothing := plan.Call{Node: "win1", Create: &plan.Create{Kind: hns.KindEndpoint, Count: 1,
		Object: map[string]any{"HostComputeNetwork": "no-such-network"}}}
	if err := c.Call([]plan.Call{nothing}); err == nil {
		t.Error("an endpoint on no network")
	}
	var code *hns.Error
	if err := c.Call([]plan.Call{nothing}); !errors.As(err, &code) {
		t.Fatalf("no error of HNS, but %v", err)
	}
	nothing.Code, nothing.Error = uint32(code.Code), "the code"
	if err := c.Call([]plan.Call{nothing}); err != nil {
		t.Errorf("it fails as it must, and the error is %v", err)
	}
	nothing.Code++
	if err := c.Call([]plan.Call{nothing}); err == nil {
		t.Error("it fails with another code than it must")
	}
	if err := c.Call([]plan.Call{{Node: "win1", Restart: true, Error: "any"}}); err == nil {
		t.Error("a restart that must fail")
	}
	if err := c.Call([]plan.Call{{Node: "linux1", Restart: true}}); err == nil {
		t.Error("a call to a node without HNS")
	}
}

// OVN gets a load balancer for every port of a Service with an address, with the
// endpoints that are ready.
func TestWhatOVNIsAskedFor(t *testing.T) {
	t.Parallel()
	ip := netip.MustParseAddr
	other := "mesh"
	services := []*kube.Service{
		{Namespace: "a", Name: "other", ProxyName: &other, ClusterIPs: []netip.Addr{ip("10.96.0.11")}, Ports: []kube.ServicePort{{Port: 1}}},
		{Namespace: "a", Name: "headless", Headless: true, Ports: []kube.ServicePort{{Port: 1}}},
		{Namespace: "a", Name: "alias", Type: "ExternalName", Ports: []kube.ServicePort{{Port: 1}}},
		{Namespace: "a", Name: "web", ClusterIPs: []netip.Addr{ip("10.96.0.10")},
			Ports: []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, Target: 8080, NodePort: 30080},
				{Name: "x", Proto: packet.UDP, Port: 53}},
			Endpoints: []kube.Endpoint{{Addr: ip("10.244.1.3"), Ready: true}, {Addr: ip("10.244.1.4")},
				{Addr: ip("10.244.1.5"), Ready: true, Ports: map[string]uint16{"http": 81}}}},
	}
	if all := ovnServices(services, false); len(all) != 3 {
		t.Errorf("%d, want the other program's as well", len(all))
	}
	got := ovnServices(services, true)
	if len(got) != 2 || got[0].Name != "a/web" || got[0].NodePort != 30080 || got[1].Port != 53 {
		t.Fatalf("%+v", got)
	}
	if want := []netip.AddrPort{netip.MustParseAddrPort("10.244.1.3:8080"),
		netip.MustParseAddrPort("10.244.1.5:81")}; !slices.Equal(got[0].Backends, want) {
		t.Errorf("backends %v, want %v", got[0].Backends, want)
	}
}

// TestTroublesOfAFrontend holds the troubles that are found by frontend against asking each, while
// programs try again.
func TestTroublesOfAFrontend(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	frontend := func() kubeproxy.Frontend {
		f := kubeproxy.Frontend{Port: uint16(80 + r.IntN(3)), Proto: packet.TCP}
		if r.IntN(3) > 0 {
			f.Addr = netip.AddrFrom4([4]byte{10, 96, 0, byte(r.IntN(4))})
		}
		return f
	}
	c := &Cluster{}
	nodes := []*Node{{Node: &kube.Node{Name: "a"}}, {Node: &kube.Node{Name: "b"}}}
	found := 0
	for i := range 300 {
		n := nodes[r.IntN(2)]
		switch r.IntN(8) {
		case 0:
			c.noTroubles(n, kubeProxy)
		case 1:
			c.trouble(n, kubeProxy, fmt.Sprint(i), nil, nil)
		case 2:
			odd := func(f kubeproxy.Frontend) bool { return f.Port%2 == 1 }
			c.trouble(n, kubeProxy, fmt.Sprint(i), nil, odd)
		default:
			tr := kubeproxy.Trouble{Text: fmt.Sprint(i)}
			for range r.IntN(3) {
				tr.Frontends = append(tr.Frontends, frontend())
			}
			c.addTrouble(Trouble{n.Name, kubeProxy, tr.Text, nil, tr.About, tr.Frontends})
		}
		about := func(tr Trouble, f kubeproxy.Frontend) bool { return tr.about == nil || tr.about(f) }
		x, y := frontend(), frontend()
		var want, got []string
		for _, tr := range c.troubles {
			if about(tr, x) || about(tr, y) {
				want = append(want, tr.Text)
			}
		}
		for _, k := range c.troublesOf.indicesAbout(c.troubles, x, y) {
			if tr := c.troubles[k]; about(tr, x) || about(tr, y) {
				got = append(got, tr.Text)
			}
		}
		if found += len(got); !slices.Equal(got, want) {
			t.Fatalf("step %d: %v %v: %v, want %v", i, x, y, got, want)
		}
	}
	if found < 100 {
		t.Errorf("only %d troubles were found", found)
	}
}
