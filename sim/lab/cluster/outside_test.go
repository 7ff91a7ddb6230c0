package cluster_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func outside(t *testing.T) *lab.Cluster {
	t.Helper()
	f, err := lab.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model, Objects: cluster.Outside, Proxies: cluster.Outside})
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
	if len(c.Machines(cluster.PodKind)) != 0 || len(c.Kube.Services) != 0 {
		t.Errorf("the lab's own objects are there: %v %v", c.Machines(cluster.PodKind), c.Kube.Services)
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
	if !errors.Is(err, cluster.ErrRefused) || !strings.Contains(err.Error(), pinned) {
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
	c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetServices(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Options.Objects") {
		t.Error(err)
	}
	if err := c.RemovePod(t.Context(), "default/client"); err == nil || !strings.Contains(err.Error(), "belongs to the lab") {
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
	svc := &kube.Service{Namespace: "default", Name: "web", Type: kube.ClusterIP, ClusterIPs: []netip.Addr{vip},
		Ports: []kube.ServicePort{{Proto: packet.TCP, Port: 80, Target: 80}}}
	if err := c.SetServices(t.Context(), []*kube.Service{svc}); err != nil {
		t.Fatal(err)
	}
	if s := c.FrontendOn("win1", svc, vip, 80, packet.TCP); s.Made || !strings.Contains(s.Because, "which the lab does not run") {
		t.Errorf("%+v", s)
	}
	s := c.HNS("win1")
	lb, err := s.CreateLoadBalancer(hns.LoadBalancer{HostComputeEndpoints: []string{m.Endpoint}, FrontendVIPs: []string{vip.String()},
		PortMappings: []hns.LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: 80}}})
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

// TestPoliciesOfAnAPIServer: they have notices that name the pods they select, their gates
// are in traces and go with them, and labels and named ports are those of the API server.
func TestPoliciesOfAnAPIServer(t *testing.T) {
	for _, c := range []struct {
		lab, says string
		open      bool
	}{
		{"l2bridge-flannel-host-gw", "nothing in this cluster enforces it: flannel does not", true},
		{"l2bridge-azure-cni", "who enforces it is not modelled", false},
	} {
		t.Run(c.lab, func(t *testing.T) {
			f, err := lab.Load("../../../fixtures/labs/" + c.lab + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			policiesOf(t, f, c.says, c.open)
		})
	}
}

func policiesOf(t *testing.T, f *lab.File, says string, open bool) {
	cl, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model, Objects: cluster.Outside, Proxies: cluster.Outside})
	if err != nil {
		t.Fatal(err)
	}
	for node, name := range map[string]string{"win1": "web", "win2": "client"} {
		p := podOn(node, name, "")
		p.Listen = []labfile.ListenPort{{Proto: packet.TCP, Port: 80}}
		if _, err := cl.AddPod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deny"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	c := policed{t, cl}
	app := map[string]string{"app": "web"}
	want := trace.Delivered
	if !open {
		want = trace.Unknown
	}
	c.set(nil, nil, policy)
	if n := c.notice(); !strings.Contains(n, "NetworkPolicy default/deny: "+says) || !strings.Contains(n, "it selects no pod") {
		t.Error(n)
	}
	if met, v := c.meets(); met || v != trace.Delivered {
		t.Errorf("a pod that is not selected: %v, %s", met, v)
	}
	c.set(app, nil, policy)
	if n := c.notice(); strings.Count(n, "\n") > 0 || !strings.Contains(n, "it selects pod/default/web") {
		t.Error(n)
	}
	if met, v := c.meets(); !met || v != want {
		t.Errorf("a pod that is selected: %v, %s", met, v)
	}
	http := intstr.FromString("http")
	named := policy.DeepCopy()
	named.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: &http}}}}
	c.set(app, map[string]uint16{"http": 80}, named)
	if met, v := c.meets(); met || v != trace.Delivered {
		t.Errorf("a port that is admitted by its name: %v, %s", met, v)
	}
	c.set(app, map[string]uint16{"http": 81}, named)
	if met, _ := c.meets(); !met {
		t.Error("another port has the name")
	}
	if err := cl.RemovePod(t.Context(), "default/web"); err != nil {
		t.Fatal(err)
	}
	if n := c.notice(); !strings.Contains(n, "it selects no pod") {
		t.Error(n)
	}
	p := podOn("win1", "web", "")
	p.Listen = []labfile.ListenPort{{Proto: packet.TCP, Port: 80}}
	if _, err := cl.AddPod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if met, _ := c.meets(); !met {
		t.Error("the policy is not for a pod that came later")
	}
	c.set(app, nil)
	if n := c.notice(); n != "" {
		t.Error(n)
	}
	if met, v := c.meets(); met || v != trace.Delivered {
		t.Errorf("after the policy has gone: %v, %s", met, v)
	}
}

// policed is a cluster whose NetworkPolicies change.
type policed struct {
	t  *testing.T
	cl *lab.Cluster
}

func (c policed) set(labels map[string]string, ports map[string]uint16, policies ...*networkingv1.NetworkPolicy) {
	c.t.Helper()
	list, err := labfile.PoliciesOf(policies)
	if err == nil {
		err = c.cl.SetPolicies(c.t.Context(), cluster.Policies{List: list,
			Pods: map[string]cluster.PolicyPod{"default/web": {Labels: labels, Ports: ports}}})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c policed) notice() string {
	var all []string
	for _, n := range c.cl.Notices() {
		if strings.HasPrefix(n.What, "NetworkPolicy ") {
			all = append(all, n.What+": "+n.Why)
		}
	}
	return strings.Join(all, "\n")
}

func (c policed) meets() (met bool, verdict trace.Verdict) {
	c.t.Helper()
	tr, err := c.cl.Trace(c.t.Context(), lab.Request{From: "pod/client", To: "pod/web:80"})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range tr.Paths {
		for _, s := range p.Steps {
			met = met || s.Event.Text() != "" && strings.Contains(s.Event.Text(), "NetworkPolicy default/deny admits no such connection")
		}
	}
	return met, tr.Verdict
}

// TestNoticesOfAnAPIServer are replaced, and those of the lab stay.
func TestNoticesOfAnAPIServer(t *testing.T) {
	c := outside(t)
	before := len(c.Notices())
	a, b := trace.Notice{What: "a", Why: "x"}, trace.Notice{What: "b", Why: "x"}
	c.SetNotices([]trace.Notice{a, b, c.Notices()[0]})
	c.SetNotices([]trace.Notice{b})
	if now := c.Notices(); len(now) != before+1 || now[before] != b {
		t.Errorf("%+v", now)
	}
}

// TestNamesOfAnAPIServer: its name servers are pods, and a trace knows what they answer.
func TestNamesOfAnAPIServer(t *testing.T) {
	c := outside(t)
	for node, name := range map[string]string{"linux1": "coredns-x", "win1": "client"} {
		if _, err := c.AddPod(t.Context(), podOn(node, name, "")); err != nil {
			t.Fatal(err)
		}
	}
	web := &kube.Service{Namespace: "default", Name: "web", Type: kube.ClusterIP,
		ClusterIPs: []netip.Addr{plan.Nth(c.Kube.ServiceCIDRs[0].Addr(), 77)},
		Ports:      []kube.ServicePort{{Proto: packet.TCP, Port: 80, Target: 80}}}
	dns := &kube.Service{Namespace: "kube-system", Name: "kube-dns", Type: kube.ClusterIP, ClusterIPs: []netip.Addr{c.Kube.DNSIP},
		Ports: []kube.ServicePort{{Name: "dns", Proto: packet.UDP, Port: 53, Target: 53}},
		Endpoints: []kube.Endpoint{{Addr: c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: "default/coredns-x"}).Address,
			Pod: "default/coredns-x", Node: "linux1", Ready: true, Serving: true}}}
	if err := c.SetServices(t.Context(), []*kube.Service{web, dns}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.HNS("win1").CreateLoadBalancer(hns.LoadBalancer{FrontendVIPs: []string{c.Kube.DNSIP.String()},
		PortMappings:         []hns.LBPortMapping{{Protocol: 17, InternalPort: 53, ExternalPort: 53}},
		HostComputeEndpoints: []string{remoteEndpoint(t, c, dns.Endpoints[0].Addr)}}); err != nil {
		t.Fatal(err)
	}
	tr, err := c.Trace(t.Context(), lab.Request{From: "pod/client", To: "name/web:80"})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Names) != 1 || tr.Names[0].Verdict != trace.Delivered || tr.Flow.Dst != web.ClusterIPs[0].String() {
		t.Errorf("%+v", tr.Names)
	}
}

// remoteEndpoint is one of win1 for an address of another node.
func remoteEndpoint(t *testing.T, c *lab.Cluster, a netip.Addr) string {
	t.Helper()
	s := c.HNS("win1")
	e, err := s.CreateEndpoint(hns.Endpoint{HostComputeNetwork: s.ListNetworks(nil)[0].ID, Flags: hns.EndpointRemote,
		IpConfigurations: []hns.IpConfig{{IpAddress: a.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}
