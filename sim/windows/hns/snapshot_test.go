package hns

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// TestSnapshotComesBack takes a snapshot through JSON into a new service, which
// must then hold the same and go on with the same ids, compartments, MAC
// addresses and ports.
func TestSnapshotComesBack(t *testing.T) {
	opts := Options{Node: "n1", ManagementIP: netip.MustParseAddr("192.168.1.11")}
	for _, build := range []string{"10.0.17763.1432", "10.0.17763.1000", "10.0.26100"} {
		t.Run(build, func(t *testing.T) {
			s := NewService(builds.MustLookup(build), opts)
			must := func(_ any, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			n, err := s.CreateNetwork(Network{Name: "cbr0", Type: L2Bridge, Ipams: []Ipam{{Type: "Static", Subnets: []Subnet{{
				IpAddressPrefix: "10.244.1.0/24", Routes: []NetRoute{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}}}}}}})
			must(n, err)
			ns, err := s.CreateNamespace(Namespace{})
			must(ns, err)
			e, err := s.CreateEndpoint(Endpoint{Name: "a", HostComputeNetwork: n.ID})
			must(e, err)
			must(nil, s.AttachEndpoint(e.ID, ns.ID))
			two, err := s.CreateEndpoint(Endpoint{Name: "b", HostComputeNetwork: n.ID})
			must(two, err)
			must(nil, s.AttachContainer(two.ID, "c1"))
			for port := range uint16(3) {
				_, err = s.CreateLoadBalancer(LoadBalancer{HostComputeEndpoints: []string{e.ID}, FrontendVIPs: []string{"10.0.0.1"},
					PortMappings: []LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: 80 + port}}})
				must(nil, err)
			}
			must(nil, s.DeleteLoadBalancer(s.ListLoadBalancers(nil)[1].ID))
			must(s.CreateRoute(Route{HostComputeEndpoints: []string{e.ID}, Setting: []SDNRouteSettings{{DestinationPrefix: "10.1.0.0/16"}}}))
			must(nil, s.AddEndpointPolicies(two.ID, NewPolicy(OutBoundNATSettings{Destinations: []string{"10.244.1.3/32"}})))

			text, err := json.Marshal(s.Snapshot())
			must(nil, err)
			var p Snapshot
			must(nil, json.Unmarshal(text, &p))
			r := NewService(builds.MustLookup(build), opts)
			must(nil, r.Restore(&p))
			again, err := json.Marshal(r.Snapshot())
			must(nil, err)
			if d := cmp.Diff(string(text), string(again)); d != "" {
				t.Errorf("the snapshot of the restored service differs (-before +after):\n%s", d)
			}
			next := Endpoint{Name: "c", HostComputeNetwork: n.ID}
			a, err1 := s.CreateEndpoint(next)
			b, err2 := r.CreateEndpoint(next)
			must(nil, err1)
			must(nil, err2)
			if d := cmp.Diff(a, b); d != "" {
				t.Errorf("the next endpoint differs (-before +after):\n%s", d)
			}
			if err := r.Restore(&p); err == nil {
				t.Error("a snapshot was restored over objects")
			}
		})
	}
}

func TestV1ReplacesPoliciesAndDetachesOneContainer(t *testing.T) {
	s := NewService(builds.MustLookup("10.0.26100"), Options{Node: "n1"})
	n, err := s.CreateNetwork(Network{Name: "nat", Type: NAT, Ipams: []Ipam{{Subnets: []Subnet{{IpAddressPrefix: "10.0.0.0/24"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID,
		Policies: []Policy{ParsePolicy(PolicyOutBoundNAT, nil), ParsePolicy(PolicyPortName, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReplaceEndpointPolicies(e.ID, NewPolicy(EncapOverheadSettings{50})); err != nil {
		t.Fatal(err)
	}
	if ps := s.Endpoint(e.ID).Policies; len(ps) != 1 || !ps[0].Is(PolicyEncapOverhead) {
		t.Errorf("policies are %v; the new list must be all there is", ps)
	}
	if err := s.ModifyEndpoint(e.ID, ModifyRequest{ResourceType: "Policy", RequestType: requestReplace,
		Settings: []byte(`{"Policies":[{"Type":"PortName"}]}`)}); err == nil {
		t.Error("HCN v2 took a request type that it does not have")
	}
	for _, c := range []string{"c1", "c2"} {
		if err := s.AttachContainer(e.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DetachContainer(e.ID, "c1"); err != nil || s.Endpoint(e.ID).State != StateAttachedSharing {
		t.Errorf("state %d, %v; c2 still holds the endpoint", s.Endpoint(e.ID).State, err)
	}
	if err := s.DetachContainer(e.ID, "c1"); err == nil {
		t.Error("c1 was detached twice")
	}
	if err := s.DetachContainer(e.ID, "c2"); err != nil || s.Endpoint(e.ID).State != StateDetached {
		t.Errorf("state %d, %v; no container holds the endpoint", s.Endpoint(e.ID).State, err)
	}
}
