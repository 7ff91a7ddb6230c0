package kubeproxy

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
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

// TestLookup: HNS has a local and a remote endpoint with one address.
func TestLookup(t *testing.T) {
	for minor, remote := range map[int]bool{20: false, 25: true, 36: false} {
		l := newLab(t, ws2022, minor, hns.L2Bridge)
		dup, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: l.net.ID, Flags: hns.EndpointRemote, IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.5"}}})
		if err != nil {
			t.Fatal(err)
		}
		l.sync(l.start(), web("10.244.1.5"))
		lb := l.hns.ListLoadBalancers(nil)[0]
		if got := lb.HostComputeEndpoints[0] == dup.ID; got != remote {
			t.Errorf("1.%d uses the remote endpoint: %t", minor, got)
		}
		if gone := l.hns.Endpoint(dup.ID) == nil; gone != (minor == 36) {
			t.Errorf("1.%d deleted the duplicate: %t", minor, gone)
		}
	}
}

// The remote endpoint is older than the pod's: another node had the address before. From
// 1.36 the pod's is taken and the remote one deleted, in whatever order HNS lists them.
func TestLookupOfAReusedAddress(t *testing.T) {
	for minor, remote := range map[int]bool{20: true, 25: false, 36: false} {
		l := newLab(t, ws2022, minor, hns.L2Bridge)
		stale, err := l.hns.CreateEndpoint(hns.Endpoint{HostComputeNetwork: l.net.ID, Flags: hns.EndpointRemote, IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.8"}}})
		if err != nil {
			t.Fatal(err)
		}
		l.addPod("10.244.1.8")
		l.sync(l.start(), web("10.244.1.8"))
		if got := l.hns.ListLoadBalancers(nil)[0].HostComputeEndpoints[0] == stale.ID; got != remote {
			t.Errorf("1.%d uses the remote endpoint: %t", minor, got)
		}
		if gone := l.hns.Endpoint(stale.ID) == nil; gone != (minor == 36) {
			t.Errorf("1.%d deleted the remote endpoint: %t", minor, gone)
		}
		if l.hns.Endpoint(l.pods["10.244.1.8"].ID) == nil {
			t.Errorf("1.%d deleted the pod's endpoint", minor)
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
