package kubeproxy

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// pod is a backend of a Service in one of the states that an EndpointSlice knows.
func pod(addr string, state string) kube.Endpoint {
	e := kube.Endpoint{Addr: ip(addr), Node: "win2"}
	if addr == "10.244.1.5" || addr == "10.244.1.6" {
		e.Node = "win1"
	}
	switch state {
	case "ready":
		e.Ready, e.Serving = true, true
	case "not ready":
	case "terminating": // ends, and still answers
		e.Serving, e.Terminating = true, true
	case "ended": // ends, and no longer answers
		e.Terminating = true
	case "published": // ends; publishNotReadyAddresses keeps it ready
		e.Ready, e.Terminating = true, true
	default:
		panic("no such state " + state)
	}
	return e
}

// Which backends are used follows readiness, traffic policies and, for Services with
// load balancer addresses, the gate ProxyTerminatingEndpoints (factReady).
func TestReadiness(t *testing.T) {
	const (
		cluster = "10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 "
		node    = "node:30080/TCP->8080 src= flags=0/18 dist=0 "
		ingress = "198.51.100.2:80/TCP->8080 src= flags=0/16 dist=0 "
	)
	gate := []string{"--feature-gates=ProxyTerminatingEndpoints=true"}
	type pods map[string]string
	for _, c := range []struct {
		name  string
		minor int
		flags []string
		lb    bool // the Service has a load balancer address
		pods  pods
		want  []string
	}{
		{"a pod that ends is left out", 33, nil, true, pods{"10.244.1.5": "ready", "10.244.2.7": "terminating"},
			[]string{cluster + "[10.244.1.5]", node + "[10.244.1.5]", ingress + "[10.244.1.5]"}},
		{"ready and ending is ending", 33, nil, false, pods{"10.244.1.5": "ready", "10.244.2.7": "published"},
			[]string{cluster + "[10.244.1.5]", node + "[10.244.1.5]"}},
		{"all end: cluster IP and load balancer keep those that serve", 33, nil, true, pods{"10.244.1.5": "terminating", "10.244.2.7": "ended"},
			[]string{cluster + "[10.244.1.5]", ingress + "[10.244.1.5]"}},
		{"all end, ready counts as serving", 33, nil, true, pods{"10.244.1.5": "published", "10.244.2.7": "ended"},
			[]string{cluster + "[10.244.1.5]", ingress + "[10.244.1.5]"}},
		{"all end, no load balancer address: nothing is left", 33, nil, false, pods{"10.244.1.5": "terminating"}, nil},
		{"none serves: cluster IP and load balancer keep all", 33, nil, true, pods{"10.244.1.5": "ended", "10.244.2.7": "not ready"},
			[]string{cluster + "[10.244.1.5 10.244.2.7]", ingress + "[10.244.1.5 10.244.2.7]"}},
		{"none serves, 1.23", 23, nil, true, pods{"10.244.1.5": "ended", "10.244.2.7": "not ready"}, nil},
		{"all end, 1.25 without the gate", 25, nil, true, pods{"10.244.1.5": "terminating"}, nil},
		{"all end, 1.25 with the gate", 25, gate, true, pods{"10.244.1.5": "terminating"},
			[]string{cluster + "[10.244.1.5]", ingress + "[10.244.1.5]"}},
		{"all end, 1.26 has the gate on", 26, nil, true, pods{"10.244.1.5": "terminating"},
			[]string{cluster + "[10.244.1.5]", ingress + "[10.244.1.5]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2022, c.minor, hns.L2Bridge)
			s := web()
			for _, addr := range []string{"10.244.1.5", "10.244.2.7"} {
				if state, ok := c.pods[addr]; ok {
					s.Endpoints = append(s.Endpoints, pod(addr, state))
				}
			}
			if c.lb {
				s.IngressIPs = []netip.Addr{ip("198.51.100.2")}
			}
			l.sync(l.start(c.flags...), s)
			l.want(c.want...)
		})
	}
}

// With externalTrafficPolicy Local only the pods of this node say whether all end.
func TestReadinessOfThisNode(t *testing.T) {
	l := newLab(t, ws2022, 33, hns.L2Bridge)
	s := web()
	s.ExternalLocal, s.IngressIPs = true, []netip.Addr{ip("198.51.100.2")}
	s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "terminating"), pod("10.244.2.7", "ready")}
	l.sync(l.start(), s)
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
		"198.51.100.2:80/TCP->8080 src= flags=1/16 dist=0 [10.244.1.5]")
}

// With both traffic policies Local backends elsewhere are not even looked up.
func TestBothPoliciesLocal(t *testing.T) {
	l := newLab(t, ws2022, 33, hns.L2Bridge)
	s := web("10.244.1.5", "10.244.2.7")
	s.ExternalLocal, s.InternalLocal = true, true
	l.sync(l.start(), s)
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]", "node:30080/TCP->8080 src= flags=1/18 dist=0 [10.244.1.5]")
	if es := l.hns.EndpointsByAddress(ip("10.244.2.7")); len(es) != 0 {
		t.Errorf("a remote endpoint for a backend that cannot be used: %v", es)
	}
}
