package kubeproxy

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// mesh is a value of the label service.kubernetes.io/service-proxy-name.
var mesh = "mesh"

// kube-proxy knows the label from 1.14 on; every value counts (kubeproxy.service-proxy-name).
func TestPassedOver(t *testing.T) {
	empty := ""
	for _, c := range []struct {
		minor int
		name  *string
		want  bool
	}{{13, &mesh, false}, {14, &mesh, true}, {14, &empty, true}, {37, &mesh, true}, {37, nil, false}} {
		if got := PassedOver(kube.Minor(c.minor), &kube.Service{ProxyName: c.name}) != ""; got != c.want {
			t.Errorf("1.%d: passed over %v, want %v", c.minor, got, c.want)
		}
	}
	for minor, want := range map[int]bool{15: false, 16: true, 35: true, 36: false} { // kubeproxy.headless-label
		if got := PassedOver(kube.Minor(minor), &kube.Service{HeadlessLabel: true}) != ""; got != want {
			t.Errorf("1.%d, the label of headless Services: passed over %v, want %v", minor, got, want)
		}
	}
	s := web("10.244.1.5")
	s.ProxyName = &mesh
	_, n := linux(13)
	if rs := rulesOf(Iptables(&kube.Cluster{}, n, []*kube.Service{s}), host.Prerouting); len(rs) == 0 {
		t.Error("1.13 serves it")
	}
}

// Why a frontend has no load balancer, as a sync of the model reports it.
func TestMissing(t *testing.T) {
	many := func(s *kube.Service) {
		var all []string
		for i := range 65 {
			all = append(all, fmt.Sprintf("10.244.3.%d", i+1))
		}
		set(s, all...)
	}
	for _, c := range []struct {
		name  string
		minor int
		edit  func(*kube.Service)
		addr  string // "" for the node port
		want  string
	}{
		{"made", 30, nil, "10.96.0.10", "made"},
		{"node port made", 30, nil, "", "made"},
		{"an address that is not the Service's", 30, nil, "10.96.0.99", ""},
		{"refused", 20, many, "10.96.0.10",
			"kube-proxy asked for 10.96.0.10:80/TCP, but HNS refused: hcnCreateLoadBalancer failed in Win32: The parameter is incorrect. (0x57): Unable to initialize VFP LB rule: invalid number of destinations (65, at most 64)"},
		{"given up", 20, many, "",
			"kube-proxy gave up on this port of the Service before it came to node:30080/TCP: ClusterIP 10.96.0.10:80/TCP failed: hcnCreateLoadBalancer failed in Win32: The parameter is incorrect. (0x57): Unable to initialize VFP LB rule: invalid number of destinations (65, at most 64)"},
		{"no endpoints", 30, func(s *kube.Service) { set(s) }, "10.96.0.10", "the Service has no endpoints: no pod is behind it"},
		{"one endpoint, not ready", 30, func(s *kube.Service) { s.Endpoints[0].Ready, s.Endpoints[0].Serving = false, false }, "10.96.0.10",
			"the only endpoint of the Service is not ready"},
		{"no endpoint ready", 30, func(s *kube.Service) {
			set(s, "10.244.1.5", "10.244.2.7")
			for i := range s.Endpoints {
				s.Endpoints[i].Ready, s.Endpoints[i].Serving = false, false
			}
		}, "", "none of the 2 endpoints of the Service is ready"},
		{"a pod of this node without an endpoint", 30, func(s *kube.Service) { set(s, "10.244.1.99") }, "10.96.0.10",
			"no backend of the Service can be used: 10.244.1.99: Local endpoint not found: HNS has none with this address"},
		{"external Local", 30, func(s *kube.Service) { s.ExternalLocal = true }, "",
			"externalTrafficPolicy is Local and no pod of the Service is on win1"},
		{"external Local, cluster IP", 30, func(s *kube.Service) { s.ExternalLocal = true }, "10.96.0.10", "made"},
		{"external Local and ignored", 19, func(s *kube.Service) { s.ExternalLocal = true }, "", "made"},
		{"external Local, asked for without backends", 20, func(s *kube.Service) { s.ExternalLocal = true }, "",
			"externalTrafficPolicy is Local and no pod of the Service is on win1: kube-proxy asked for one without backends, but HNS refused: hcnCreateLoadBalancer failed in Win32: The parameter is incorrect. (0x57): Unable to initialize VFP LB rule: invalid number of destinations (none)"},
		{"internal Local", 30, func(s *kube.Service) { s.InternalLocal = true }, "10.96.0.10",
			"internalTrafficPolicy is Local and no pod of the Service is on win1"},
		{"internal Local, node port", 30, func(s *kube.Service) { s.InternalLocal = true }, "", "made"},
		{"headless", 30, func(s *kube.Service) { s.Headless = true }, "10.96.0.10", "the Service is headless"},
		{"the label of a headless one", 30, func(s *kube.Service) { s.HeadlessLabel = true }, "10.96.0.10",
			"the Service has the label service.kubernetes.io/headless, with which kube-proxy of this version does not see it"},
		{"the label of a headless one, not read", 36, func(s *kube.Service) { s.HeadlessLabel = true }, "10.96.0.10", "made"},
		{"another proxy's", 30, func(s *kube.Service) { s.ProxyName = &mesh }, "10.96.0.10",
			`the Service has the label service.kubernetes.io/service-proxy-name: "mesh", so kube-proxy leaves it to another program, which is not modelled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2019, c.minor, hns.L2Bridge)
			s := web("10.244.2.7")
			if c.edit != nil {
				c.edit(s)
			}
			var addr netip.Addr
			if c.addr != "" {
				addr = ip(c.addr)
			}
			r := l.sync(l.start(), s)
			got, made := r.Missing("win1", s, s.Ports[0], addr)
			if made {
				got += "made"
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q\n%s", got, c.want, r)
			}
		})
	}
}

// What kube-proxy sets of a Linux node's connection tracking (kubeproxy.conntrack-timeouts).
func TestSetConntrack(t *testing.T) {
	n := host.NewNetfilter()
	usual := n.Timeouts
	SetConntrack(n)
	if n.Timeouts.Open != 24*time.Hour || n.Timeouts.Half != time.Hour || n.Timeouts.Opening != usual.Opening ||
		usual.Open != 5*24*time.Hour || usual.Half != time.Minute {
		t.Errorf("%+v, and without kube-proxy %+v", n.Timeouts, usual)
	}
}
