package build_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/build"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func outside(t *testing.T) *lab.Cluster {
	t.Helper()
	f, err := lab.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: spec.Model, Objects: build.Outside, Proxies: build.Outside})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func podOn(node, name, address string) *plan.Pod {
	p := &plan.Pod{Pod: kube.Pod{Namespace: "default", Name: name, Node: node}, Ready: true}
	if address != "" {
		p.Address = netip.MustParseAddr(address)
	}
	return p
}

// TestARuntimesPods: the plugin's refusal is an error and leaves nothing, a pod in the
// node's network is the node, and what is not there can be removed.
func TestARuntimesPods(t *testing.T) {
	c := outside(t)
	if len(c.Machines(build.PodKind)) != 0 || len(c.Kube.Services) != 0 {
		t.Errorf("the lab's own objects are there: %v %v", c.Machines(build.PodKind), c.Kube.Services)
	}
	i := slices.IndexFunc(c.NotModelled, func(n trace.Notice) bool { return strings.Contains(n.Why, "come from an API server") })
	if i < 0 || !strings.Contains(c.NotModelled[i].What, " pods, ") || !strings.Contains(c.NotModelled[i].What, " Services") {
		t.Errorf("no notice of what is left out: %+v", c.NotModelled)
	}
	cidr := c.Kube.Node("win1").PodCIDRs[0]
	pinned := plan.Nth(cidr.Addr(), 40).String()
	m, err := c.AddPod(t.Context(), podOn("win1", "one", pinned))
	if err != nil || m.Address.String() != pinned || m.Endpoint == "" {
		t.Fatalf("%+v, error %v", m, err)
	}
	endpoints := len(c.HNS("win1").ListEndpoints(nil))
	_, err = c.AddPod(t.Context(), podOn("win1", "two", pinned))
	if !errors.Is(err, build.ErrRefused) || !strings.Contains(err.Error(), pinned) {
		t.Errorf("a second pod with the address of the first: %v", err)
	}
	if now := len(c.HNS("win1").ListEndpoints(nil)); now != endpoints {
		t.Errorf("%d endpoints, before %d", now, endpoints)
	}
	if _, ok := c.WithoutNetwork("default/two"); ok {
		t.Error("the runtime tries again, and not the lab")
	}
	if err := c.RemovePod(t.Context(), "default/one"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddPod(t.Context(), podOn("win1", "two", pinned)); err != nil {
		t.Errorf("the address is free again: %v", err)
	}
	own := podOn("win2", "agent", "")
	own.HostNetwork = true
	if m, err := c.AddPod(t.Context(), own); err != nil || m.Stack() != m.Node.Stack() || m.Address != m.Node.Address {
		t.Errorf("%+v, error %v", m, err)
	}
	for _, key := range []string{"default/agent", "default/agent", "default/none"} {
		if err := c.RemovePod(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
}

// TestALabsOwnServices are not replaced.
func TestALabsOwnServices(t *testing.T) {
	f, err := lab.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: spec.Model})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetServices(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Options.Objects") {
		t.Error(err)
	}
	if err := c.RemovePod(t.Context(), "default/client"); err == nil || !strings.Contains(err.Error(), "the lab's own") {
		t.Error(err)
	}
	// A pod that a runtime adds is in no Service by its labels.
	var svc *kube.Service
	for _, s := range c.Kube.Services {
		if s.Name == "win-webserver" {
			svc = s
		}
	}
	before := len(svc.Endpoints)
	p := podOn("win1", "more", "")
	p.Labels = map[string]string{"app": "win-webserver"}
	if _, err := c.AddPod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if s := c.Service("default", "win-webserver"); len(s.Endpoints) != before {
		t.Errorf("%d endpoints, before %d", len(s.Endpoints), before)
	}
}

// TestAdopt: a load balancer that a kube-proxy of somebody else has made is that of its
// Service.
func TestAdopt(t *testing.T) {
	c := outside(t)
	m, err := c.AddPod(t.Context(), podOn("win1", "one", ""))
	if err != nil {
		t.Fatal(err)
	}
	vip := plan.Nth(c.Kube.ServiceCIDRs[0].Addr(), 77)
	svc := &kube.Service{Namespace: "default", Name: "web", Type: kube.ClusterIP, ClusterIPs: []netip.Addr{vip}, Ports: []kube.ServicePort{{Proto: packet.TCP, Port: 80, Target: 80}}}
	if err := c.SetServices(t.Context(), []*kube.Service{svc}); err != nil {
		t.Fatal(err)
	}
	if s := c.FrontendOn("win1", svc, vip, 80, packet.TCP); s.Made || !strings.Contains(s.Because, "no program of the lab") {
		t.Errorf("%+v", s)
	}
	s := c.HNS("win1")
	lb, err := s.CreateLoadBalancer(hns.LoadBalancer{HostComputeEndpoints: []string{m.Endpoint}, FrontendVIPs: []string{vip.String()}, PortMappings: []hns.LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: 80}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Adopt(); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.ListLoadBalancers(nil) {
		if l.ID == lb.ID && (l.Origin == nil || l.Origin.What != "Service default/web") {
			t.Errorf("the origin is %+v", l.Origin)
		}
	}
	if s := c.FrontendOn("win1", svc, vip, 80, packet.TCP); !s.Made {
		t.Errorf("%+v", s)
	}
}
