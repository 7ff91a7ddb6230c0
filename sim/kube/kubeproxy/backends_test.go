package kubeproxy

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// From 1.21 backends come sorted by the text of address and port
// (kubeproxy.backend-order): of a named port the first one's number counts, and the
// last one's from 1.34.
func TestNamedPortOrder(t *testing.T) {
	for minor, target := range map[int]string{20: "8083", 29: "8081", 36: "8082"} {
		l := newLab(t, ws2022, minor, hns.L2Bridge)
		s := web("10.244.2.5", "10.244.1.5", "10.244.2.6")
		s.Ports[0].Target, s.Ports[0].NodePort = 0, 0
		for i, n := range []uint16{8083, 8081, 8082} {
			s.Endpoints[i].Ports = map[string]uint16{s.Ports[0].Name: n}
		}
		l.sync(l.start(), s)
		if got := strings.Join(l.lbs(), "\n"); !strings.Contains(got, "->"+target+" ") {
			t.Errorf("1.%d: want port %s:\n%s", minor, target, got)
		}
	}
}

// Endpoints, which 1.20 reads, have addresses of the first family only.
func TestEndpointsOfTheFirstFamily(t *testing.T) {
	l := newLab(t, ws2022, 20, hns.L2Bridge)
	s := web("10.244.2.7", "fd00::2:7")
	s.ClusterIPs, s.Ports[0].NodePort = append(s.ClusterIPs, ip("fd00:96::10")), 0
	l.sync(l.start("--feature-gates=IPv6DualStack=true"), s)
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.2.7]")
}

// Also on a node without an IPv6 address kube-proxy works for both families, where the
// build can (kubeproxy.dual-stack). 1.20 asks for the gate alone, on any build.
func TestDualStackByBuild(t *testing.T) {
	for _, c := range []struct {
		build   string
		minor   int
		network hns.NetworkType
		gate    bool
		dual    bool
	}{
		{ws2022, 36, hns.L2Bridge, false, true},
		{ws2022, 36, hns.Overlay, false, false},
		{"17763.1432", 36, hns.L2Bridge, false, false},
		{ws2022, 20, hns.L2Bridge, false, false},
		{"17763.1432", 20, hns.L2Bridge, true, true},
	} {
		l := newLab(t, c.build, c.minor, c.network)
		flags := []string{"--source-vip=10.244.1.3"}
		if c.gate {
			flags = append(flags, "--feature-gates=IPv6DualStack=true", "--feature-gates=WinDSR=true")
		}
		if got := len(l.start(flags...).families) == 2; got != c.dual {
			t.Errorf("%+v: dual-stack %t", c, got)
		}
	}
	l := newLab(t, ws2022, 20, hns.Overlay)
	config, err := ParseFlags(ModeKernelspace, []string{"--source-vip=10.244.1.3", "--feature-gates=IPv6DualStack=true"}, l.node.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewKernelspace(config, l.node, l.hns); err == nil || !strings.Contains(err.Error(), "could not find host mac address") {
		t.Errorf("with the gate 1.20 starts on an overlay network: %v", err)
	}
}

// kube-proxy takes the host's name in lower case where no flag says another.
func TestLocalByHostname(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	l.node.Name = "WIN1"
	l.sync(l.start(), web("10.244.1.5", "10.244.1.99"))
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]", "node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5]")
}

// A backend is local when its node has kube-proxy's name, letter for letter; that name
// is in lower case.
func TestLocalByName(t *testing.T) {
	for node, local := range map[string]bool{"win1": true, "WIN1": false, "": false} {
		l := newLab(t, ws2022, 36, hns.L2Bridge)
		s := web("10.244.1.5")
		s.Endpoints = []kube.Endpoint{{Addr: ip("10.244.1.99"), Node: node, Ready: true, Serving: true}}
		r := l.sync(l.start("--hostname-override=WIN1"), s)
		// Only for a backend elsewhere kube-proxy makes an endpoint.
		if got := !strings.Contains(r.String(), "10.244.1.99 created"); got != local {
			t.Errorf("node %q: local %t\n%s", node, got, r)
		}
	}
}
