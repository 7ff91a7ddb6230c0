package components

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// podsBehind makes two pods behind one load balancer, in the order of names.
func podsBehind(t *testing.T, seed string, change func(*hns.Endpoint), names ...string) *hns.Snapshot {
	t.Helper()
	s := hns.NewService(builds.MustLookup("2022"), hns.Options{Node: "n", Seed: seed, ManagementIP: netip.MustParseAddr("192.168.1.11")})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := s.CreateNetwork(hns.Network{Name: "cbr0", Type: hns.L2Bridge, Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{
		IpAddressPrefix: "10.244.1.0/24", Routes: []hns.NetRoute{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}},
	}}}}})
	must(err)
	var ids []string
	for _, name := range names {
		e := hns.Endpoint{Name: name + "_cbr0", HostComputeNetwork: n.ID,
			IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1." + name[len(name)-1:]}}}
		change(&e)
		made, err := s.CreateEndpoint(e)
		must(err)
		ns, err := s.CreateNamespace(hns.Namespace{})
		must(err)
		must(s.AttachEndpoint(made.ID, ns.ID))
		ids = append(ids, made.ID)
	}
	_, err = s.CreateLoadBalancer(hns.LoadBalancer{HostComputeEndpoints: ids, FrontendVIPs: []string{"10.96.0.10"}, SourceVIP: "10.244.1.2",
		PortMappings: []hns.LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: 80}}})
	must(err)
	return s.Snapshot()
}

// Ids, order, MAC addresses of the pool, compartments and container ids make no
// difference; everything else does.
func TestNormalise(t *testing.T) {
	same := func(*hns.Endpoint) {}
	a := Normalise(podsBehind(t, "1", same, "pod5", "pod6"))
	b := Normalise(podsBehind(t, "2", same, "6f6f6", "5e5e5"), "5e5e5_", "pod5_", "6f6f6_", "pod6_")
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("-one +other\n%s", d)
	}
	if guid.MatchString(strings.Join(a, "\n")) || !slices.Contains(a, "endpoint pod5_cbr0: HostComputeNetwork = <network cbr0>") {
		t.Errorf("ids are not names:\n%s", strings.Join(a, "\n"))
	}
	for name, change := range map[string]func(*hns.Endpoint){
		"address":           func(e *hns.Endpoint) { e.IpConfigurations[0].IpAddress += "1" },
		"MAC of the caller": func(e *hns.Endpoint) { e.MacAddress = "0E-2A-0A-F4-01-05" },
		"policy": func(e *hns.Endpoint) {
			e.Policies = []hns.Policy{hns.NewPolicy(hns.OutBoundNATSettings{Exceptions: []string{"10.0.0.0/8"}})}
		},
		"suffix": func(e *hns.Endpoint) { e.Dns.Search = []string{"x"} },
	} {
		only5 := func(e *hns.Endpoint) {
			if e.Name == "pod5_cbr0" {
				change(e)
			}
		}
		if cmp.Equal(a, Normalise(podsBehind(t, "1", only5, "pod5", "pod6"))) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}
