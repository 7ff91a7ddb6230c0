package kubeproxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func TestRemoteEndpointMAC(t *testing.T) {
	l := newLab(t, ws2019, 20, hns.L2Bridge)
	l.sync(l.start(), web("10.244.2.7"))
	e := l.hns.EndpointsByAddress(ip("10.244.2.7"))[0]
	if !e.Remote() || e.MacAddress != "02-11-0A-F4-02-07" || e.ProviderAddress().IsValid() {
		t.Errorf("remote endpoint %+v", e)
	}
	// Of an IPv6 address the last four bytes count, the last one first.
	if got := conjureMAC(ip("fd00::1122:3344")); got != "02-11-44-33-22-11" {
		t.Errorf("IPv6: %s", got)
	}
}

func TestOverlay(t *testing.T) {
	overlay := []string{"--source-vip=10.244.1.3", "--network-name=cbr0", "--feature-gates=WinOverlay=true"}
	for _, c := range []struct {
		name     string
		minor    int
		backends []string
		source   string
		pa       string // of the last backend
	}{
		{"pods", 20, []string{"10.244.1.5", "10.244.2.7"}, "10.244.1.3", "192.168.1.12"},
		{"a node, 1.14 keeps the overlay's source", 14, []string{"192.168.1.12"}, "10.244.1.3", "192.168.1.12"},
		{"a node, from 1.18 the node is the source", 18, []string{"192.168.1.12"}, "192.168.1.11", "192.168.1.12"},
		{"a node, 1.36", 36, []string{"10.244.1.5", "192.168.1.12"}, "192.168.1.11", "192.168.1.12"},
		{"a public address", 14, []string{"203.0.113.9"}, "192.168.1.11", "192.168.1.11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2019, c.minor, hns.Overlay)
			flags := overlay
			if c.minor >= 34 {
				flags = overlay[:2]
			}
			k := l.start(flags...)
			s := web(c.backends...)
			s.Ports[0].NodePort = 0
			l.sync(k, s)
			l.want(fmt.Sprintf("10.96.0.10:80/TCP->8080 src=%s flags=0/0 dist=0 %v", c.source, c.backends))
			e := l.hns.EndpointsByAddress(ip(c.backends[len(c.backends)-1]))[0]
			if got := e.ProviderAddress().String(); got != c.pa {
				t.Errorf("provider address %s, want %s", got, c.pa)
			}
			v := l.hns.EndpointsByAddress(ip("10.96.0.10"))
			if len(v) != 1 || !v[0].Remote() || v[0].MacAddress != l.hns.HostMAC() || v[0].ProviderAddress() != l.node.Address {
				t.Errorf("endpoint of the cluster IP: %+v", v)
			}
			if v := l.hns.EndpointsByAddress(ip("10.244.1.3")); len(v) != 1 || v[0].Remote() || v[0].MacAddress != l.hns.HostMAC() {
				t.Errorf("source VIP: %+v", v)
			}
			if r := l.sync(k, s); r.changed() {
				t.Errorf("the second sync changed something:\n%s", r)
			}
		})
	}
}

// TestNodeSourceOnCreationOnly: before 1.19 the second Service with a node as
// its backend finds the remote endpoint made and keeps the overlay's source.
func TestNodeSourceOnCreationOnly(t *testing.T) {
	for minor, second := range map[int]string{18: "10.244.1.3", 19: "192.168.1.11"} {
		l := newLab(t, ws2019, minor, hns.Overlay)
		k := l.start("--source-vip=10.244.1.3", "--feature-gates=WinOverlay=true")
		a, b := web("192.168.1.12"), web("192.168.1.12")
		b.Name, b.ClusterIPs = "api", []netip.Addr{ip("10.96.0.11")}
		a.Ports[0].NodePort, b.Ports[0].NodePort = 0, 0
		l.sync(k, a, b)
		l.want("10.96.0.10:80/TCP->8080 src=192.168.1.11 flags=0/0 dist=0 [192.168.1.12]",
			"10.96.0.11:80/TCP->8080 src="+second+" flags=0/0 dist=0 [192.168.1.12]")
	}
}

// lookups are which of a local and a remote endpoint with one address kube-proxy takes
// when HNS lists the local one first, and when it lists the remote one first; and whether
// it deletes the remote one (kubeproxy.endpoint-lookup).
var lookups = []struct {
	versions                string
	localFirst, remoteFirst string
	deletes                 bool
}{
	{"1.20.15 1.22.11 1.23.8", "local", "remote", false},
	{"1.22.12 1.23.9 1.24.17 1.25.16 1.30.14 1.31.8 1.32.4 1.33.0", "remote", "local", false},
	{"1.31.9 1.31.14 1.32.5 1.32.13 1.33.1 1.33.13 1.34.0 1.34.7 1.35.4 1.36.0", "remote", "remote", false},
	{"1.34.8 1.34.11 1.35.5 1.35.8 1.36.1 1.36.4 1.37.2", "local", "local", true},
}

// endpointLeft names the one of two endpoints that a load balancer has.
func (l *lab) endpointLeft(remote string) string {
	if l.hns.ListLoadBalancers(nil)[0].HostComputeEndpoints[0] == remote {
		return "remote"
	}
	return "local"
}

// TestLookup: HNS has a local and a remote endpoint with one address.
func TestLookup(t *testing.T) {
	for _, c := range lookups {
		for version := range strings.FieldsSeq(c.versions) {
			l := newLabAt(t, ws2022, version, hns.L2Bridge)
			dup, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: l.net.ID, Flags: hns.EndpointRemote,
				IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.5"}}})
			if err != nil {
				t.Fatal(err)
			}
			l.sync(l.start(), web("10.244.1.5"))
			if got := l.endpointLeft(dup.ID); got != c.localFirst {
				t.Errorf("%s takes the %s one", version, got)
			}
			if gone := l.hns.Endpoint(dup.ID) == nil; gone != c.deletes {
				t.Errorf("%s deleted the duplicate: %t", version, gone)
			}
		}
	}
}

// Two Services, and two ports of one, have a backend on another node. Versions that forget
// what they made in the same sync make an endpoint for each port; each goes with its Service
// (kubeproxy.endpoint-made-twice).
func TestRemoteEndpointMadeTwice(t *testing.T) {
	for _, c := range []struct {
		versions string
		each     bool
	}{
		{"1.20.15 1.22.11 1.23.8 1.24.10 1.25.6 1.26.1 1.30.14 1.36.4", false},
		{"1.22.12 1.22.17 1.23.9 1.23.17 1.24.9 1.25.5 1.26.0", true},
	} {
		for version := range strings.FieldsSeq(c.versions) {
			for _, network := range []hns.NetworkType{hns.L2Bridge, hns.Overlay} {
				l := newLabAt(t, ws2022, version, network)
				k := l.start("--source-vip=10.244.1.3")
				a, b := web("10.244.2.7"), web("10.244.2.7")
				a.Ports[0].NodePort, b.Ports[0].NodePort = 0, 0
				a.Ports = append(a.Ports, kube.ServicePort{Name: "tls", Proto: packet.TCP, Port: 443, Target: 8443})
				b.Name, b.ClusterIPs = "api", []netip.Addr{ip("10.96.0.11")}
				l.sync(k, a, b)
				want := 1
				if c.each {
					want = 3
				}
				if got := l.hns.EndpointsByAddress(ip("10.244.2.7")); len(got) != want {
					t.Errorf("%s on %s: %d remote endpoints with the backend's address, want %d", version, network, len(got), want)
				}
				// That of the cluster IP is in the list, which the second port finds.
				if got := l.hns.EndpointsByAddress(ip("10.96.0.10")); network == hns.Overlay && len(got) != 1 {
					t.Errorf("%s: %d endpoints of the cluster IP", version, len(got))
				}
				if r := l.sync(k, a, b); r.changed() {
					t.Errorf("%s on %s: a sync without a change changes something:\n%s", version, network, r)
				}
				l.sync(k, b)
				l.sync(k)
				if got := l.hns.EndpointsByAddress(ip("10.244.2.7")); len(got) != 0 {
					t.Errorf("%s on %s: %d remote endpoints stay", version, network, len(got))
				}
			}
		}
	}
}

// The remote endpoint is older than the pod's: another node had the address before.
func TestLookupOfAReusedAddress(t *testing.T) {
	for _, c := range lookups {
		for version := range strings.FieldsSeq(c.versions) {
			l := newLabAt(t, ws2022, version, hns.L2Bridge)
			stale, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: l.net.ID, Flags: hns.EndpointRemote,
				IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.8"}}})
			if err != nil {
				t.Fatal(err)
			}
			l.addPod("10.244.1.8")
			l.sync(l.start(), web("10.244.1.8"))
			if got := l.endpointLeft(stale.ID); got != c.remoteFirst {
				t.Errorf("%s takes the %s one", version, got)
			}
			if gone := l.hns.Endpoint(stale.ID) == nil; gone != c.deletes {
				t.Errorf("%s deleted the remote endpoint: %t", version, gone)
			}
			if l.hns.Endpoint(l.pods["10.244.1.8"].ID) == nil {
				t.Errorf("%s deleted the pod's endpoint", version)
			}
		}
	}
}

// The hash over backends is the XOR of the ids' hashes (hashEndpoints): their order does
// not matter, and an id that is there twice does not count.
func TestHashOfBackends(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	hash := func(ids ...string) identity {
		return l.start().families[0].identify(packet.TCP, 8080, 80, "10.96.0.10", ids, false)
	}
	if hash("A", "B") != hash("B", "A") || hash("A", "B") == hash("A") || hash("A", "B", "B") != hash("A") {
		t.Error("the hash is not the XOR of its parts")
	}
}

// With the first lists of endpoints only the first address of one counts: the IPv6 address
// of a pod here is not found, and its backend is left out (kubeproxy.endpoint-lookup).
func TestFirstAddress(t *testing.T) {
	for version, found := range map[string]bool{"1.21.14": true, "1.22.17": false, "1.24.11": false, "1.24.12": true, "1.26.2": false,
		"1.26.3": true, "1.36.4": true} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		if err := l.hns.DeleteEndpoint(l.pods["10.244.1.5"].ID); err != nil {
			t.Fatal(err)
		}
		if err := l.hns.DeleteEndpoint(l.pods["10.244.1.6"].ID); err != nil {
			t.Fatal(err)
		}
		l.drop()
		net, err := l.hns.CreateNetwork(hns.Network{Name: "cbr0", Type: hns.L2Bridge,
			Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24"}, {IpAddressPrefix: "fd00::1:0/112"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: net.ID,
			IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.5"}, {IpAddress: "fd00::1:5"}}}); err != nil {
			t.Fatal(err)
		}
		s := web("10.244.1.5", "fd00::1:5")
		s.ClusterIPs, s.Ports[0].NodePort = append(s.ClusterIPs, ip("fd00:96::10")), 0
		r := l.sync(l.start(), s)
		if got := len(l.lbs()) == 2; got != found {
			t.Errorf("%s: %v\n%s", version, l.lbs(), r)
		}
	}
}

// HNS refuses the endpoint of a cluster IP, since the node's MAC address is invalid: the
// Service port is left out, and everything about it says why.
func TestRefusedClusterIPEndpoint(t *testing.T) {
	l := newLabWith(t, ws2022, "1.36.4", hns.Overlay, hns.Options{Node: "win1", ManagementIP: ip("192.168.1.11"), HostMAC: "x"})
	if _, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: l.net.ID,
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.3"}}}); err != nil {
		t.Fatal(err) // the source VIP
	}
	s := web("10.244.1.5")
	everywhere(s)
	r := l.sync(l.start("--source-vip=10.244.1.3"), s)
	l.want()
	if len(r.entries) != 1 || r.entries[0].role != roleVIPEndpoint || r.entries[0].what != failed || r.entries[0].fact != factVIPEndpoint ||
		len(r.entries[0].frontends) != 4 {
		t.Errorf("report %s", r)
	}
	for _, a := range []netip.Addr{{}, ip("10.96.0.10"), ip("198.51.100.1"), ip("198.51.100.2")} {
		because, made := r.Missing("win1", s, s.Ports[0], a)
		if made || !strings.HasPrefix(because, "kube-proxy gave up on this port of the Service before it came to ") ||
			!strings.Contains(because, ": endpoint of the cluster IP 10.96.0.10 failed: hcnCreateEndpoint failed") {
			t.Errorf("%s: %q", a, because)
		}
	}
}
