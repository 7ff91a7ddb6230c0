package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func TestEndpointsChange(t *testing.T) {
	for _, c := range []struct {
		version string
		build   string
		what    outcome // of the cluster IP's load balancer in the second sync
		after   string
	}{
		{"1.14", ws2019old, created, "[10.244.1.5 10.244.1.6]"},
		{"1.20", ws2019, created, "[10.244.1.5 10.244.1.6]"},
		{"1.23", ws2019, created, "[10.244.1.5 10.244.1.6]"},
		{"1.25", ws2022, created, "[10.244.1.5 10.244.1.6]"},
		{"1.36", ws2022, created, "[10.244.1.5 10.244.1.6]"},
		// HNS 15.4: hnslib 0.0.8 asks for 15.4, and HNS changes nothing.
		{"1.31.14", "26100.1742", updated, "[10.244.1.5 gone]"},
		{"1.32.5", "26100.1742", updated, "[10.244.1.5 gone]"},
		{"1.33.1", "26100.1742", updated, "[10.244.1.5 gone]"},
		// hnslib 0.1.1 and 0.1.2 ask for 15.5: kube-proxy deletes and creates.
		{"1.32.6", "26100.1742", created, "[10.244.1.5 10.244.1.6]"},
		{"1.33.2", "26100.1742", created, "[10.244.1.5 10.244.1.6]"},
		{"1.36", "26100.1742", created, "[10.244.1.5 10.244.1.6]"},
	} {
		t.Run(c.version+" on "+c.build, func(t *testing.T) {
			l := newLabAt(t, c.build, c.version, hns.L2Bridge)
			k := l.start()
			s := web("10.244.1.5", "10.244.2.7")
			s.Ports[0].NodePort = 0
			l.sync(k, s)
			set(s, "10.244.1.5", "10.244.1.6")
			r := l.sync(k, s)
			i := slices.IndexFunc(r.entries, func(e Entry) bool { return e.role == roleClusterIP && e.what == c.what })
			if i < 0 {
				t.Errorf("cluster IP not %s:\n%s", c.what, r)
			}
			if got := l.lbs(); len(got) != 1 || !strings.HasSuffix(got[0], c.after) {
				t.Errorf("load balancers %v, want backends %s", got, c.after)
			}
			if es := l.hns.EndpointsByAddress(ip("10.244.2.7")); len(es) != 0 {
				t.Errorf("the remote endpoint stays: %+v", es)
			}
			l.sync(k)
			l.want()
		})
	}
}

// TestUnchangedIsThere: only a remote backend changes, so the node port's list of
// local backends stays the same. Its load balancer is there in all versions; 1.24.10 to
// 1.30 make it again (kubeproxy.id-case).
func TestUnchangedIsThere(t *testing.T) {
	for minor, again := range map[int]bool{25: true, 30: true, 31: false, 36: false} {
		l := newLab(t, ws2022, minor, hns.L2Bridge)
		k := l.start()
		s := web("10.244.1.5", "10.244.2.7")
		s.ExternalLocal = true
		l.sync(k, s)
		set(s, "10.244.1.5", "10.244.2.8")
		r := l.sync(k, s)
		if !slices.ContainsFunc(l.lbs(), func(lb string) bool { return strings.HasPrefix(lb, "node:30080") }) {
			t.Errorf("1.%d: no node port\n%s", minor, r)
		}
		if len(r.Failures()) > 0 {
			t.Errorf("1.%d: failures\n%s", minor, r)
		}
		made := slices.ContainsFunc(r.entries, func(e Entry) bool { return e.what == created && e.role == roleNodePort })
		if made != again {
			t.Errorf("1.%d: node port made again: %t\n%s", minor, made, r)
		}
	}
}

// TestInternalLocalLost is the same for a cluster IP with local backends only.
func TestInternalLocalLost(t *testing.T) {
	for version, lost := range map[string]bool{"1.25": false, "1.31.13": true, "1.31.14": false, "1.33.5": true, "1.33.6": false,
		"1.34.1": true, "1.36": false} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		k := l.start()
		s := web("10.244.1.5", "10.244.2.7")
		s.InternalLocal, s.Ports[0].NodePort = true, 0
		l.sync(k, s)
		set(s, "10.244.1.5", "10.244.2.8")
		r := l.sync(k, s)
		if got := len(l.lbs()) == 0; got != lost {
			t.Errorf("%s: lost: %t\n%s", version, got, r)
		}
		// The next change brings it back.
		set(s, "10.244.1.5")
		l.sync(k, s)
		l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]")
	}
}

func TestDisabledOptimisation(t *testing.T) {
	l := newLab(t, ws2022, 25, hns.L2Bridge)
	k := l.start()
	s := web("10.244.1.5", "10.244.2.7")
	s.ExternalLocal, s.Annotations = true, map[string]string{"winProxyOptimization": "disabled"}
	l.sync(k, s)
	set(s, "10.244.1.5", "10.244.2.8")
	l.sync(k, s)
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.8]", "node:30080/TCP->8080 src= flags=1/18 dist=0 [10.244.1.5]")
}

func TestNetworkChanged(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	k := l.start()
	s := web("10.244.2.7")
	l.sync(k, s)
	old := *l.net
	if err := l.hns.DeleteNetwork(old.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Sync([]*kube.Service{s}); err == nil || !strings.Contains(err.Error(), "cbr0 is gone") {
		t.Errorf("error %v", err)
	}
	old.ID = ""
	if _, err := l.hns.CreateNetwork(old); err != nil {
		t.Fatal(err)
	}
	l.sync(k, s)
	l.want()
	l.sync(k, s)
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.2.7]", "node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.2.7]")
}

// Two Services claim one external address: HNS refuses the second. From 1.37 it takes
// the frontend from the first (factReplaces), which is not made again before it changes.
func TestTakenFrontend(t *testing.T) {
	for _, c := range []struct {
		name   string
		minor  int
		target uint16 // of the second Service
		has    string // the backend of the external address
	}{
		{"1.36: the first keeps it", 36, 8080, "[10.244.1.5]"},
		{"1.37: the last one has it", 37, 8080, "[10.244.1.6]"},
		{"1.37, another internal port: the first keeps it", 37, 9090, "[10.244.1.5]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2022, c.minor, hns.L2Bridge)
			k := l.start()
			a, b := web("10.244.1.5"), web("10.244.1.6")
			b.Name, b.ClusterIPs, b.Ports[0].Target = "api", []netip.Addr{ip("10.96.0.11")}, c.target
			for _, s := range []*kube.Service{a, b} {
				s.ExternalIPs, s.Ports[0].NodePort = []netip.Addr{ip("198.51.100.1")}, 0
			}
			for range 2 {
				r := l.sync(k, a, b)
				if !slices.ContainsFunc(l.lbs(), func(s string) bool {
					return strings.HasPrefix(s, "198.51.100.1:80/TCP") && strings.HasSuffix(s, c.has)
				}) {
					t.Errorf("%v, want the external address with backend %s\n%s", l.lbs(), c.has, r)
				}
			}
		})
	}
}

// With several load balancers in the list that could have it, 1.37 deletes none.
func TestTakenFrontendByOneOfSeveral(t *testing.T) {
	l := newLab(t, ws2022, 37, hns.L2Bridge)
	var all []*kube.Service
	for i, backend := range []string{"10.244.1.5", "10.244.1.6", "10.244.2.7"} {
		s := web(backend)
		s.Name, s.ClusterIPs = fmt.Sprint("s", i), []netip.Addr{ip(fmt.Sprint("10.96.0.1", i))}
		s.ExternalIPs, s.Ports[0].NodePort = []netip.Addr{ip("198.51.100.1")}, 0
		all = append(all, s)
	}
	r := l.sync(l.start(), all...)
	if fs := r.Failures(); len(fs) != 1 || fs[0].service != "default/s2" || !strings.Contains(fs[0].err.Error(), "0xb7") {
		t.Errorf("the third Service must fail: the list has the load balancers of both before it\n%s", r)
	}
}

// Each field of a Service that matters leads to new load balancers when it changes.
func TestServiceChanges(t *testing.T) {
	const (
		cluster = "10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"
		node    = "node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5 10.244.2.7]"
	)
	for _, c := range []struct {
		name   string
		change func(*kube.Service)
		want   []string
	}{
		{"cluster IP", func(s *kube.Service) { s.ClusterIPs[0] = ip("10.96.0.99") },
			[]string{strings.Replace(cluster, "0.10:", "0.99:", 1), node}},
		{"port", func(s *kube.Service) { s.Ports[0].Port = 8000 }, []string{strings.Replace(cluster, ":80/", ":8000/", 1), node}},
		{"node port", func(s *kube.Service) { s.Ports[0].NodePort = 0 }, []string{cluster}},
		{"affinity", func(s *kube.Service) { s.ClientIPAffinity = true },
			[]string{strings.Replace(cluster, "dist=0", "dist=2", 1), strings.Replace(node, "dist=0", "dist=2", 1)}},
		{"internalTrafficPolicy", func(s *kube.Service) { s.InternalLocal = true },
			[]string{strings.Replace(cluster, " 10.244.2.7", "", 1), node}},
		{"externalTrafficPolicy", func(s *kube.Service) { s.ExternalLocal = true },
			[]string{cluster, "node:30080/TCP->8080 src= flags=1/18 dist=0 [10.244.1.5]"}},
		{"external address", func(s *kube.Service) { s.ExternalIPs = []netip.Addr{ip("198.51.100.1")} },
			[]string{cluster, node, "198.51.100.1:80/TCP->8080 src= flags=0/16 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"load balancer address", func(s *kube.Service) { s.IngressIPs = []netip.Addr{ip("198.51.100.2")} },
			[]string{cluster, node, "198.51.100.2:80/TCP->8080 src= flags=0/16 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"annotation", func(s *kube.Service) { s.Annotations = map[string]string{"preserve-destination": "true"} },
			[]string{cluster, "node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5]"}},
		{"headless", func(s *kube.Service) { s.Headless = true }, nil},
		{"another proxy's", func(s *kube.Service) { s.ProxyName = new(string) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2022, 36, hns.L2Bridge)
			k := l.start()
			l.sync(k, web("10.244.1.5", "10.244.2.7"))
			s := web("10.244.1.5", "10.244.2.7")
			c.change(s)
			l.sync(k, s)
			l.want(c.want...)
		})
	}
}

// A Service can name a node that is not where the backend runs: its address is that of a
// local endpoint, which kube-proxy must not delete when the backend goes. Some patches
// do (kubeproxy.stale-remote-endpoints).
func TestLocalEndpointIsNotDeleted(t *testing.T) {
	for version, gone := range map[string]bool{"1.14": false, "1.18": false, "1.20": false, "1.25": false, "1.30": false, "1.31.8": true,
		"1.31.9": false,
		"1.32.4": true, "1.32.5": false, "1.33.0": true, "1.33.1": false, "1.37": false} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		k := l.start()
		s := web("10.244.1.5")
		s.Endpoints[0].Node = "win2"
		l.sync(k, s)
		set(s, "10.244.1.6")
		l.sync(k, s)
		l.sync(k)
		if got := len(l.hns.EndpointsByAddress(ip("10.244.1.5"))) == 0; got != gone {
			t.Errorf("%s deleted the endpoint of a pod: %t", version, got)
		}
	}
}

// Two Services lose a remote backend each in one sync; some patches forget the first's
// (kubeproxy.stale-remote-endpoints).
func TestStaleRemoteEndpoints(t *testing.T) {
	for version, left := range map[string]int{"1.30": 0, "1.31": 1, "1.32.9": 1, "1.32.10": 0, "1.33.5": 1, "1.33.6": 0, "1.34.1": 1,
		"1.34.2": 0, "1.37": 0} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		k := l.start()
		a, b := web("10.244.1.5", "10.244.2.7"), web("10.244.1.5", "10.244.2.8")
		b.Name, b.ClusterIPs, b.Ports[0].NodePort = "api", []netip.Addr{ip("10.96.0.11")}, 0
		l.sync(k, a, b)
		set(a, "10.244.1.5")
		set(b, "10.244.1.5")
		r := l.sync(k, a, b)
		if got := len(l.hns.EndpointsByAddress(ip("10.244.2.7"))) + len(l.hns.EndpointsByAddress(ip("10.244.2.8"))); got != left {
			t.Errorf("%s: %d remote endpoints stay, want %d\n%s", version, got, left, r)
		}
	}
}

// The load balancer of a load balancer address is not deleted with its Service
// (kubeproxy.load-balancer-ip-leaks).
func TestIngressLeaks(t *testing.T) {
	for version, leaks := range map[string]bool{"1.23": false, "1.24.2": true, "1.24.6": true, "1.24.7": false, "1.25.2": true,
		"1.25.3": false, "1.26.0": false} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		k := l.start()
		s := web("10.244.1.5")
		s.IngressIPs = []netip.Addr{ip("198.51.100.2")}
		l.sync(k, s)
		r := l.sync(k)
		if got := len(l.lbs()) > 0; got != leaks {
			t.Errorf("%s: %v\n%s", version, l.lbs(), r)
		}
	}
}

// Without a backend on the node some patches leave a load balancer's cluster IP out when
// externalTrafficPolicy is Local (kubeproxy.ready-endpoints).
func TestClusterIPWithoutLocalBackends(t *testing.T) {
	for version, there := range map[string]bool{"1.24.9": true, "1.24.10": true, "1.26.1": false, "1.26.2": false, "1.26.3": true,
		"1.27": true} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		s := web("10.244.2.7")
		s.ExternalLocal, s.IngressIPs = true, []netip.Addr{ip("198.51.100.2")}
		r := l.sync(l.start(), s)
		if got := slices.ContainsFunc(l.lbs(), func(lb string) bool { return strings.HasPrefix(lb, "10.96.0.10:") }); got != there {
			t.Errorf("%s: the cluster IP has a load balancer: %t\n%s", version, got, r)
		}
	}
}

func TestReferences(t *testing.T) {
	for minor, dangling := range map[int]bool{18: true, 20: false, 36: false} {
		l := newLab(t, ws2019, minor, hns.L2Bridge)
		k := l.start()
		a, b := web("10.244.2.7"), web("10.244.2.7")
		b.Name, b.ClusterIPs, b.Ports[0].NodePort = "api", []netip.Addr{ip("10.96.0.11")}, 0
		l.sync(k, a, b)
		l.sync(k, b)
		if got := slices.ContainsFunc(l.lbs(), func(s string) bool { return strings.Contains(s, "gone") }); got != dangling {
			t.Errorf("1.%d: %v", minor, l.lbs())
		}
	}
}

// Sources do not agree on the code with which HNS refuses a taken frontend
// (hns.taken-frontend-code). No version goes on otherwise after the one than after the
// other: what a flow meets does not depend on it, so no cluster is built twice.
func TestDisputedCodeDecidesNothing(t *testing.T) {
	for minor := 14; minor <= 37; minor++ {
		run := func(code string) (lbs []string, r string) {
			l := newLabWith(t, ws2022, fmt.Sprintf("1.%d", minor), hns.L2Bridge, hns.Options{Node: "win1", ManagementIP: ip("192.168.1.11"),
				Pinned: map[string]string{"hns-code-taken-frontend": code}})
			k := l.start()
			a, b := web("10.244.1.5"), web("10.244.1.5", "10.244.1.6")
			b.Name, b.ClusterIPs = "api", []netip.Addr{ip("10.96.0.11")}
			for _, s := range []*kube.Service{a, b} {
				s.ExternalIPs, s.Ports[0].NodePort = []netip.Addr{ip("198.51.100.1")}, 0
			}
			for range 2 {
				r += l.sync(k, a, b).String()
			}
			return l.lbs(), r
		}
		one, first := run("0xb7")
		two, second := run("0x803b0013")
		if !slices.Equal(one, two) {
			t.Errorf("1.%d: %v after 0xb7, %v after 0x803b0013\n%s\n%s", minor, one, two, first, second)
		}
		if taken := strings.Contains(first, "(0xb7)"); taken != strings.Contains(second, "(0x803b0013)") || taken != (minor < 37) {
			t.Errorf("1.%d: HNS was to refuse a frontend before 1.37, and 1.37 to replace\n%s\n%s", minor, first, second)
		}
	}
}
