package kubeproxy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// What a sync says it did, line by line.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		name    string
		build   string
		minor   int
		service func(*kube.Service)
		want    string
	}{
		{"all is made", ws2022, 36, nil, `
default/web:http/TCP: backend 10.244.2.7 created
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created
default/web:http/TCP: NodePort node:30080/TCP created`},
		{"an old version and what it ignores", ws2019, 19, func(s *kube.Service) {
			s.ExternalLocal, s.InternalLocal = true, true
		}, `
default/web:http/TCP: backend 10.244.2.7 created
default/web:http/TCP: service externalTrafficPolicy Local skipped: this kube-proxy ignores it, uses all backends and hides the client's address
default/web:http/TCP: service internalTrafficPolicy Local skipped: this kube-proxy ignores it: all backends are used
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created
default/web:http/TCP: NodePort node:30080/TCP created`},
		{"an old build and what it ignores", ws2019old, 20, func(s *kube.Service) {
			s.ExternalLocal, s.ClientIPAffinity, s.Annotations = true, true, map[string]string{"preserve-destination": "true"}
		}, `
default/web:http/TCP: backend 10.244.2.7 created
default/web:http/TCP: service sessionAffinity ClientIP skipped: Session Affinity is not supported on this version of Windows: load balancers distribute by 5-tuple
default/web:http/TCP: service externalTrafficPolicy Local skipped: this Windows build does not support DSR: all backends are used and the client's address is hidden
default/web:http/TCP: service preserve-destination skipped: this kube-proxy or Windows build ignores the annotation
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created
default/web:http/TCP: NodePort node:30080/TCP created`},
		{"affinity that the version does not pass on", ws2022, 18, func(s *kube.Service) {
			s.ClientIPAffinity, s.Ports[0].NodePort = true, 0
		}, `
default/web:http/TCP: backend 10.244.2.7 created
default/web:http/TCP: service sessionAffinity ClientIP skipped: this kube-proxy does not pass sessionAffinity on: load balancers distribute by 5-tuple
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created`},
		{"local backends only", ws2022, 36, func(s *kube.Service) {
			s.ExternalLocal = true
			set(s, "10.244.2.7")
		}, `
default/web:http/TCP: backend 10.244.2.7 created
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created
default/web:http/TCP: NodePort node:30080/TCP skipped: no backend on this node`},
		{"no backend", ws2022, 36, func(s *kube.Service) { s.Endpoints = nil }, `
default/web:http/TCP: service 10.96.0.10:80/TCP skipped: no backend that can be used: no load balancer`},
		{"backends that cannot be used", ws2022, 36, func(s *kube.Service) {
			s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "not ready"), {Addr: ip("10.244.1.99"), Node: "win1", Ready: true}}
		}, `
default/web:http/TCP: backend 10.244.1.5 skipped: not ready
default/web:http/TCP: backend 10.244.1.99 skipped: Local endpoint not found: HNS has none with this address
default/web:http/TCP: service 10.96.0.10:80/TCP skipped: no backend that can be used: no load balancer`},
		{"headless", ws2022, 36, func(s *kube.Service) { s.Headless = true }, `
default/web:*: service NodePort skipped: the Service is headless`},
		{"another proxy's", ws2022, 36, func(s *kube.Service) { s.ProxyName = &mesh }, `
default/web:*: service NodePort skipped: the Service has the label service.kubernetes.io/service-proxy-name: "mesh", so kube-proxy leaves it to another program, which is not modelled`},
		{"a name only", ws2022, 36, func(s *kube.Service) { s.Type = kube.ExternalName }, `
default/web:*: service ExternalName skipped: Services of type ExternalName are names only`},
		{"without an address", ws2022, 36, func(s *kube.Service) { s.ClusterIPs = nil }, `
default/web:*: service NodePort skipped: the Service has no cluster IP`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.build, c.minor, hns.L2Bridge)
			s := web("10.244.1.5", "10.244.2.7")
			if c.service != nil {
				c.service(s)
			}
			r := l.sync(l.start(), s)
			if got := strings.TrimSpace(r.String()); got != strings.TrimSpace(c.want) {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
			for _, e := range r.entries {
				if e.fact == nil {
					t.Errorf("%s names no fact", e)
				}
			}
		})
	}
}

// A later sync says what stays, what changes and what goes.
func TestReportOfChanges(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	k := l.start()
	s := web("10.244.1.5", "10.244.2.7")
	s.Ports[0].NodePort, s.ExternalIPs = 0, []netip.Addr{ip("198.51.100.1")}
	l.sync(k, s)
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"nothing changes", func() {}, `
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP kept
default/web:http/TCP: ExternalIP 198.51.100.1:80/TCP kept`},
		{"a backend goes", func() { set(s, "10.244.1.5") }, `
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP deleted
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created
default/web:http/TCP: ExternalIP 198.51.100.1:80/TCP deleted
default/web:http/TCP: ExternalIP 198.51.100.1:80/TCP created
backend 10.244.2.7 deleted`},
		{"a policy changes", func() { s.InternalLocal = true }, `
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP deleted
default/web:http/TCP: ExternalIP 198.51.100.1:80/TCP deleted
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created: backends of this node only
default/web:http/TCP: ExternalIP 198.51.100.1:80/TCP created`},
	} {
		step.change()
		got, want := l.sync(k, s).String(), step.want
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: got\n%s\nwant%s", step.name, got, want)
		}
	}
}
