package hns

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// A rule names the line of configuration that it comes from. The rules of the switch
// itself have none.
func TestRulesNameTheirOrigin(t *testing.T) {
	from := func(what string) *trace.Origin { return &trace.Origin{What: what} }
	policies := func(settings ...Settings) (ps []Policy) {
		for _, s := range settings {
			ps = append(ps, NewPolicy(s).From(from(string(s.Type()))))
		}
		return ps
	}
	for _, typ := range []NetworkType{L2Bridge, Overlay} {
		build, err := builds.MustLookup("10.0.26100.4061").WithQuirks([]string{string(builds.LoneACLDeniesRest)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := NewService(build, Options{Node: "win1", ManagementIP: management})
		n := Network{Name: "n", Type: typ, Origin: from("network"), Ipams: subnets("10.244.1.0/24"),
			Policies: policies(NetworkACLSettings{Action: ACLBlock, Direction: ACLOut})}
		n.Ipams[0].Subnets[0].Policies = policies(VSIDSettings{IsolationId: 4096})
		if typ == Overlay {
			n.Policies = append(n.Policies, policies(RemoteSubnetRouteSettings{DestinationPrefix: "10.244.2.0/24", IsolationId: 4096,
				ProviderAddress: "10.1.0.5", DistributedRouterMacAddress: "02-00-00-00-00-01"})...)
		} else {
			n.Ipams[0].Subnets[0].Policies = nil
		}
		made := mustNetwork(t, s, n)
		web := mustEndpoint(t, s, Endpoint{Name: "web", HostComputeNetwork: made.ID, State: StateAttachedSharing, Origin: from("endpoint"),
			IpConfigurations: []IpConfig{{IpAddress: "10.244.1.5"}}, Policies: policies(
				ACLSettings{Action: ACLBlock, Direction: ACLIn, Priority: 5}, TierAclSettings{Name: "t", Direction: ACLIn},
				OutBoundNATSettings{Exceptions: []string{"10.0.0.0/8"}}, OutBoundNATSettings{Destinations: []string{"10.244.1.5"}},
				SDNRouteSettings{DestinationPrefix: "10.96.0.0/12", NeedEncap: true},
				PortMappingSettings{Protocol: 6, InternalPort: 80, ExternalPort: 8080}, L4ProxySettings{}, VLANSettings{IsolationId: 7})})
		far := mustEndpoint(t, s, Endpoint{Name: "far", HostComputeNetwork: made.ID, Flags: EndpointRemote, Origin: from("remote endpoint"),
			IpConfigurations: []IpConfig{{IpAddress: "10.244.2.8"}}, Policies: policies(ProviderAddressSettings{ProviderAddress: "10.1.0.5"})})
		mustEndpoint(t, s, Endpoint{Name: "twin", HostComputeNetwork: made.ID, Flags: EndpointRemote, Origin: from("remote endpoint"),
			IpConfigurations: []IpConfig{{IpAddress: "10.244.1.5"}}, Policies: policies(ProviderAddressSettings{ProviderAddress: "10.1.0.5"})})
		for i, flags := range []LBFlags{0, LBFlagDSR} {
			l := tcp([]string{"10.96.0.50", "10.96.0.51"}[i], 80, flags, web.ID, far.ID)
			l.Origin, l.SourceVIP = from("load balancer"), "10.244.1.2"
			l.PortMappings[0].Flags = PortFlagLocalRoutedVIP
			if _, err := s.CreateLoadBalancer(l); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.CreateRoute(Route{HostComputeEndpoints: []string{web.ID},
			Setting: []SDNRouteSettings{{DestinationPrefix: "198.18.0.0/15", NeedEncap: true}}, Origin: from("route")}); err != nil {
			t.Fatal(err)
		}
		c := NewCompiler(s, View{})
		networks := s.ListNetworks(nil)
		seen := map[string]bool{}
		for _, l := range slices.Concat(c.Endpoint(web), c.Host(networks), c.External(networks)) {
			for _, g := range l.Groups {
				for _, r := range g.Rules {
					own := r.ID == "PA_ROUTE" || strings.HasPrefix(r.ID, "(to web)")
					if (r.Origin == nil) != own {
						t.Errorf("%s: rule %s of layer %s has the origin %v", typ, r.ID, l.Name, r.Origin)
					}
					if r.Origin != nil {
						seen[r.Origin.What] = true
					}
					if lb, ok := r.Action.(vfp.LBNAT); ok && len(lb.Targets) == 0 {
						t.Errorf("rule %s has no targets", r.ID)
					}
				}
			}
		}
		for _, what := range []string{"load balancer", "route", "ACL", "TierAcl", "OutBoundNAT", "SDNRoute", "PortMapping", "L4Proxy", "VLAN",
			"NetworkACL", "network", "remote endpoint"} {
			if !seen[what] {
				t.Errorf("%s: no rule comes from %s", typ, what)
			}
		}
	}
}
