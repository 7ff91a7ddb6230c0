//go:build linux

package components

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
)

// proxyBugs is the list. Services and addresses of a row are its own.
func proxyBugs() []proxyBug {
	many := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("10.244.111.%d", i+1))
		}
		return all
	}
	var remote64 []string
	for _, a := range many(64) {
		remote64 = append(remote64, "remote endpoint "+a)
	}
	remote65 := slices.Sorted(slices.Values(append(slices.Clone(remote64), "remote endpoint 10.244.111.65")))
	tooMany := func(t *testing.T, l *proxyLab) {
		l.services(t, clusterIP("10.96.11.1", many(64)...))
		if got := linesOnlyIn(held(l.state(t)), remote64); !slices.ContainsFunc(got,
			func(s string) bool { return strings.HasPrefix(s, "10.96.11.1:80 ") }) {
			t.Errorf("with 64 backends there is no load balancer: %q", got)
		}
		l.services(t, clusterIP("10.96.11.1", many(65)...))
	}
	return []proxyBug{{
		name:   "a change of backends does not reach HNS 15.4",
		thread: "kubernetes/kubernetes issue 131466, PR 131506: hnslib before 0.1.1 takes HNS 15.4 for one that changes load balancers in place",
		build:  ws2025, has: []string{v33}, hasNot: []string{v29, v36},
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.1.1", "10.244.1.5"))
			l.services(t, clusterIP("10.96.1.1", "10.244.1.5", "10.244.1.6"))
		},
		buggy:   [][]string{{"10.96.1.1:80 to port 8080 of pod-10.244.1.5"}},
		healthy: []string{"10.96.1.1:80 to port 8080 of pod-10.244.1.5 pod-10.244.1.6"},
	}, {
		name:   "internalTrafficPolicy Local: a new backend elsewhere deletes the load balancer",
		thread: "kubernetes/kubernetes issue 133928, PR 133953",
		// 1.20 has no internalTrafficPolicy; 1.25 and 1.29: see the pod that is not
		// ready, below.
		build: ws2022, has: []string{v33}, hasNot: []string{v25, v29, v36},
		steps: func(t *testing.T, l *proxyLab) {
			local := func(s *kube.Service) { s.InternalLocal = true }
			l.services(t, change(clusterIP("10.96.2.1", "10.244.1.5", "10.244.102.5"), local))
			l.services(t, change(clusterIP("10.96.2.1", "10.244.1.5", "10.244.102.5", "10.244.102.6"), local))
		},
		buggy:   [][]string{{"remote endpoint 10.244.102.5", "remote endpoint 10.244.102.6"}},
		healthy: []string{"10.96.2.1:80 to port 8080 of pod-10.244.1.5", "remote endpoint 10.244.102.5", "remote endpoint 10.244.102.6"},
	}, {
		name:   "the Service's targetPort, not the backends' port, is the target",
		thread: "kubernetes/kubernetes issue 132646, PR 132647",
		build:  ws2022, has: []string{v20, v25, v29, v33}, hasNot: []string{v36},
		steps: func(t *testing.T, l *proxyLab) {
			// A Service without a selector: its owner writes the EndpointSlice, and
			// the API server has set targetPort to port.
			l.services(t, change(clusterIP("10.96.3.1", "10.244.1.5"), func(s *kube.Service) {
				s.Ports[0].Target = 80
				s.Endpoints[0].Ports = map[string]uint16{"http": 8080}
			}))
		},
		buggy:   [][]string{{"10.96.3.1:80 to port 80 of pod-10.244.1.5"}},
		healthy: []string{"10.96.3.1:80 to port 8080 of pod-10.244.1.5"},
	}, {
		name:   "a pod's own endpoint is deleted instead of the remote one with its address",
		thread: "kubernetes/kubernetes issue 130963, PR 131138: a regression of 1.31",
		build:  ws2022, has: []string{v33}, hasNot: []string{v20, v25, v29, v36},
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.4.1", "10.244.104.5"))
			l.createPod(t, "10.244.104.5") // the pod elsewhere has gone, a new one here has its address
			l.services(t, clusterIP("10.96.4.1", "10.244.104.5 win1"))
		},
		buggy:   [][]string{{"10.96.4.1:80 to port 8080 of nothing", "remote endpoint 10.244.104.5"}},
		healthy: []string{"10.96.4.1:80 to port 8080 of pod-10.244.104.5", "pod-10.244.104.5"},
	}, {
		name:   "of the backends that two Services lose at once one keeps its remote endpoint",
		thread: "kubernetes/kubernetes issue 135144, PR 135146",
		build:  ws2022, has: []string{v33}, hasNot: []string{v36},
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.6.1", "10.244.1.5", "10.244.106.5"), clusterIP("10.96.6.2", "10.244.1.5", "10.244.106.6"))
			// Both changes wait for HNS, which is slow, and are taken by one sync.
			l.pauseHNS(t, func() {
				if err := l.api.SetServices([]*kube.Service{clusterIP("10.96.6.1", "10.244.1.5"), clusterIP("10.96.6.2", "10.244.1.5")}); err != nil {
					t.Fatal(err)
				}
			})
		},
		buggy: [][]string{
			{"10.96.6.1:80 to port 8080 of pod-10.244.1.5", "10.96.6.2:80 to port 8080 of pod-10.244.1.5", "remote endpoint 10.244.106.5"},
			{"10.96.6.1:80 to port 8080 of pod-10.244.1.5", "10.96.6.2:80 to port 8080 of pod-10.244.1.5", "remote endpoint 10.244.106.6"}},
		healthy: []string{"10.96.6.1:80 to port 8080 of pod-10.244.1.5", "10.96.6.2:80 to port 8080 of pod-10.244.1.5"},
	}, {
		name:   "a sync while HNS is down forgets the load balancers, which HNS has again after its restart (0xb7)",
		thread: "kubernetes/kubernetes issue 139519; PR 139503 is in none of these releases",
		build:  ws2022, has: everyVersion,
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.7.1", "10.244.1.5"))
			n := int64(len(l.wrote(t, 0)))
			l.stopHNS(t)
			if err := l.api.SetServices([]*kube.Service{clusterIP("10.96.7.1", "10.244.1.5", "10.244.1.6")}); err != nil {
				t.Fatal(err)
			}
			l.said(t, "The HNS network", n) // "... is not present or has changed since the last sync"
			l.startHNS(t)
			l.services(t, clusterIP("10.96.7.1", "10.244.1.5", "10.244.1.6", "10.244.1.7"))
			l.said(t, "0xb7", n)
		},
		buggy: [][]string{{"10.96.7.1:80 to port 8080 of pod-10.244.1.5"}},
	}, {
		name:   "a load balancer that somebody deletes is not made again",
		thread: "kubernetes/kubernetes issue 135802",
		build:  ws2022, has: everyVersion,
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.8.1", "10.244.1.5"))
			l.deleteLoadBalancer(t, "10.96.8.1")
			l.services(t, clusterIP("10.96.8.1", "10.244.1.5"), clusterIP("10.96.8.2", "10.244.1.6"))
		},
		buggy: [][]string{{"10.96.8.2:80 to port 8080 of pod-10.244.1.6"}},
	}, {
		name:   "a refused load balancer without backends holds up those after it",
		thread: "kubernetes/kubernetes issue 106775, PR 106936; 1.20.15, the last 1.20, was cut without its cherry pick (PR 106963)",
		build:  ws2022, has: []string{v20}, hasNot: []string{v25, v29, v33, v36},
		steps: func(t *testing.T, l *proxyLab) {
			// With preserve-destination the node port has backends of this node only,
			// here none; external addresses have all.
			l.services(t, change(clusterIP("10.96.9.1", "10.244.109.5"), func(s *kube.Service) {
				s.Type, s.Ports[0].NodePort = "NodePort", 30909
				s.ExternalIPs = []netip.Addr{netip.MustParseAddr("198.51.100.9")}
				s.Annotations = map[string]string{"preserve-destination": "true"}
			}))
		},
		buggy: [][]string{{"10.96.9.1:80 to port 8080 of 10.244.109.5", "remote endpoint 10.244.109.5"}},
		healthy: []string{"10.96.9.1:80 to port 8080 of 10.244.109.5", "198.51.100.9:80 to port 8080 of 10.244.109.5",
			"remote endpoint 10.244.109.5"},
	}, {
		name: "a pod that is not ready yet takes nothing from the Service",
		// 1.24 to 1.30 delete the load balancer first (deleteExistingLoadBalancer looks
		// for the SourceVIP instead of the VIP) and would then find it in their list of
		// before, and make none. They do not find it: they compare ids of endpoints in
		// upper case with those that HNS lists, which are lower case (hashEndpoints in
		// pkg/proxy/winkernel/hns.go; 1.31 has both in upper case). An HNS that lists
		// the ids of a load balancer's backends in upper case would show it. 1.20 is
		// not notified of it.
		thread: "pkg/proxy/winkernel/proxier.go, kubernetes/kubernetes PR 124092",
		build:  ws2022, hasNot: []string{v25, v29, v33, v36},
		steps: func(t *testing.T, l *proxyLab) {
			l.services(t, clusterIP("10.96.10.1", "10.244.1.5"))
			l.services(t, clusterIP("10.96.10.1", "10.244.1.5", "10.244.1.6 starting"))
		},
		healthy: []string{"10.96.10.1:80 to port 8080 of pod-10.244.1.5"},
	}, {
		name:   "65 backends: the Service has gone",
		thread: "kubernetes/kubernetes issue 98680, microsoft/Windows-Containers issue 93: HNS refuses, and the load balancer of before is deleted already",
		build:  ws2019, has: []string{v36},
		steps: tooMany,
		buggy: [][]string{remote65},
	}, {
		name:   "65 backends on Windows Server 2022",
		thread: "kubernetes.io, Limitations: 1024 backends",
		build:  ws2022, hasNot: []string{v36},
		steps:   tooMany,
		healthy: append([]string{"10.96.11.1:80 to port 8080 of " + strings.Join(slices.Sorted(slices.Values(many(65))), " ")}, remote65...),
	}}
}
