package hns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

var management = netip.MustParseAddr("10.1.0.4")

func newService(t *testing.T, build string) *Service {
	t.Helper()
	return NewService(builds.MustLookup(build), Options{Node: "win1", ManagementIP: management})
}

// subnets makes an address space of prefixes whose gateway is the first address.
func subnets(ps ...string) []Ipam {
	ipam := Ipam{Type: "Static"}
	for _, p := range ps {
		gw := netip.MustParsePrefix(p).Masked().Addr().Next()
		ipam.Subnets = append(ipam.Subnets, Subnet{IpAddressPrefix: p,
			Routes: []NetRoute{{NextHop: gw.String(), DestinationPrefix: defaultRoute(gw.String())}}})
	}
	return []Ipam{ipam}
}

func overlayNetwork() Network {
	n := Network{Name: "flannel.4096", Type: Overlay, Ipams: subnets("10.244.1.0/24")}
	n.Ipams[0].Subnets[0].Policies = []Policy{NewPolicy(VSIDSettings{4096})}
	return n
}

func mustNetwork(t *testing.T, s *Service, n Network) *Network {
	t.Helper()
	made, err := s.CreateNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mustEndpoint(t *testing.T, s *Service, e Endpoint) *Endpoint {
	t.Helper()
	made, err := s.CreateEndpoint(e)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// bridge is a service with an l2bridge network and one endpoint.
func bridge(t *testing.T, build string) (*Service, *Network, *Endpoint) {
	t.Helper()
	s := newService(t, build)
	n := mustNetwork(t, s, Network{Name: "cbr0", Type: "l2bridge", Ipams: subnets("10.244.1.0/24")})
	e := mustEndpoint(t, s, Endpoint{Name: "client", HostComputeNetwork: n.ID, IpConfigurations: []IpConfig{{IpAddress: "10.244.1.4"}}})
	return s, n, e
}

func tcp(vip string, external uint16, flags LBFlags, endpoints ...string) LoadBalancer {
	l := LoadBalancer{HostComputeEndpoints: endpoints, Flags: flags,
		PortMappings: []LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: external}}}
	if vip != "" {
		l.FrontendVIPs = []string{vip}
	}
	return l
}

func wantCode(t *testing.T, err error, code *Error, texts ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("error %v, want %s (0x%x)", err, code.Name, code.Code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func TestNetworkIsFilledIn(t *testing.T) {
	s := newService(t, "17763.1432")
	n := mustNetwork(t, s, overlayNetwork())
	if n.ID == "" || n.ManagementIP != management || len(n.MacPool.Ranges) != 1 || n.drMacAddress() == "" || n.SchemaVersion.Major != 2 {
		t.Errorf("network not filled in: %+v", n)
	}
	if v, ok := n.VSID(); !ok || v != 4096 {
		t.Errorf("VSID %d, %v", v, ok)
	}
	e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: strings.ToUpper(n.ID)})
	if got := e.Addresses(); len(got) != 1 || got[0].String() != "10.244.1.2" || e.IpConfigurations[0].PrefixLength != 24 {
		t.Errorf("first free address %v", e.IpConfigurations)
	}
	if e.MacAddress != n.MacPool.Ranges[0].StartMacAddress {
		t.Errorf("MAC %s, want the first of %v", e.MacAddress, n.MacPool)
	}
	if f := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID}); f.MacAddress == e.MacAddress || f.Addresses()[0].String() != "10.244.1.3" {
		t.Errorf("second endpoint got %s %v", f.MacAddress, f.Addresses())
	}
}

func TestNetworkMistakesAllAtOnce(t *testing.T) {
	s := newService(t, "17763.1432")
	mustNetwork(t, s, Network{Name: "nat", Type: NAT})
	n := Network{Name: "NAT", Type: "L3Bridge", Ipams: []Ipam{{Subnets: []Subnet{
		{IpAddressPrefix: "10.0.0.0"}, {IpAddressPrefix: "10.0.0.0/24", Routes: []NetRoute{{NextHop: "10.0.1.1"}}},
	}}}, Policies: []Policy{ParsePolicy("NoSuch", nil), NewPolicy(VxlanPortSettings{8472})}}
	_, err := s.CreateNetwork(n)
	wantCode(t, err, ErrInvalidNetworkType, `"L3Bridge"`, `"NAT" is taken`, `"10.0.0.0" is not a prefix`, "10.0.1.1 is outside",
		`no network policy "NoSuch"`, "VxlanPort: Windows Server 2019")
}

func TestNetworkErrors(t *testing.T) {
	for _, tt := range []struct {
		name, build string
		change      func(*Network)
		want        *Error
	}{
		{"overlay without VSID", "2019", func(n *Network) { n.Ipams[0].Subnets[0].Policies = nil }, ErrInvalidPolicy},
		{"overlay without subnet", "2019", func(n *Network) { n.Ipams = nil }, ErrInvalidNetwork},
		{"overlay with IPv6", "2022", func(n *Network) { n.Ipams[0].Subnets[0].IpAddressPrefix = "fd00::/64" }, ErrNotImplemented},
		{"port on HNS 9", "17763.1432", func(n *Network) { n.Policies = []Policy{NewPolicy(VxlanPortSettings{4789})} }, ErrNotImplemented},
		{"port 0", "2022", func(n *Network) { n.Policies = []Policy{NewPolicy(VxlanPortSettings{})} }, ErrInvalidPolicy},
		{"remote subnet without address", "2022", func(n *Network) {
			n.Policies = []Policy{NewPolicy(RemoteSubnetRouteSettings{DestinationPrefix: "10.244.2.0/24", IsolationId: 4096})}
		}, ErrInvalidPolicy},
		{"no host port on 2022", "2022", func(n *Network) { n.Flags = NetworkDisableHostPort }, ErrNotImplemented},
		{"endpoint policy", "2022", func(n *Network) { n.Policies = []Policy{ParsePolicy(PolicyOutBoundNAT, nil)} }, ErrInvalidPolicyType},
		{"L4Proxy on HNS 9.3", "17763.1432", func(n *Network) { n.Policies = []Policy{ParsePolicy(PolicyL4Proxy, nil)} }, ErrNotImplemented},
		{"bad MAC pool", "2022", func(n *Network) { n.MacPool.Ranges = []MacRange{{"00-15-5D-00-00-02", "00-15-5D-00-00-01"}} },
			ErrInvalidNetwork},
	} {
		n := overlayNetwork()
		tt.change(&n)
		_, err := newService(t, tt.build).CreateNetwork(n)
		t.Run(tt.name, func(t *testing.T) { wantCode(t, err, tt.want) })
	}
	// The same things that are refused above are taken where the build has them.
	n := overlayNetwork()
	n.Flags = NetworkDisableHostPort
	n.Policies = []Policy{NewPolicy(VxlanPortSettings{8472}), ParsePolicy(PolicyL4Proxy, nil), ParsePolicy("HOSTROUTE", nil)}
	made := mustNetwork(t, newService(t, "26100.4061"), n)
	if made.vxlanPort() != 8472 || made.Policies[2].Type() != PolicyHostRoute {
		t.Errorf("got %+v", made.Policies)
	}
}

func TestEndpointErrors(t *testing.T) {
	s, n, _ := bridge(t, "17763.1432")
	at := func(a string, bits uint8) Endpoint {
		return Endpoint{HostComputeNetwork: n.ID, IpConfigurations: []IpConfig{{a, bits}}}
	}
	with := func(ps ...Policy) Endpoint {
		e := at("10.244.1.9", 24)
		e.Policies = ps
		return e
	}
	acl := func(v ACLSettings) Endpoint { return with(NewPolicy(v)) }
	for _, tt := range []struct {
		name string
		in   Endpoint
		want *Error
		text string
	}{
		{"no network", Endpoint{HostComputeNetwork: noGUID}, ErrNetworkNotFound, noGUID},
		{"outside the subnet", at("10.244.2.4", 24), ErrInvalidIP, "10.244.1.0/24"},
		{"no address", at("10.244.1", 24), ErrInvalidIP, "10.244.1"},
		{"the gateway", at("10.244.1.1", 24), ErrAddressInvalidReserved, "gateway"},
		{"the subnet's own address", at("10.244.1.0", 24), ErrAddressInvalidReserved, "first or last"},
		{"broadcast", at("10.244.1.255", 24), ErrAddressInvalidReserved, "first or last"},
		{"multicast", at("224.0.0.1", 24), ErrAddressInvalidReserved, "224.0.0.1"},
		{"taken", at("10.244.1.4", 24), ErrObjectExists, "client"},
		{"prefix too long", at("10.244.1.9", 33), ErrInvalidPrefix, "33"},
		{"bad MAC", Endpoint{HostComputeNetwork: n.ID, MacAddress: "zz"}, ErrInvalidEndpoint, "zz"},
		{"remote without address", Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote}, ErrInvalidIP, "address"},
		{"no namespace", Endpoint{HostComputeNetwork: n.ID, HostComputeNamespace: noGUID}, ErrElementNotFound, noGUID},
		{"bad exception", with(NewPolicy(OutBoundNATSettings{Exceptions: []string{"10.0.0.0/40"}})), ErrInvalidPolicy, "10.0.0.0/40"},
		{"bad VIP", with(NewPolicy(OutBoundNATSettings{VirtualIP: "x"})), ErrInvalidPolicy, "VirtualIP"},
		{"route without prefix", with(ParsePolicy(PolicySDNRoute, nil)), ErrInvalidPolicy, "DestinationPrefix"},
		{"settings of another type", with(ParsePolicy(PolicyOutBoundNAT, []byte(`{"Exceptions":"10.0.0.0/8"}`))), ErrInvalidPolicy,
			"OutBoundNAT"},
		{"acl action", acl(ACLSettings{Action: "Deny", Direction: "In"}), ErrInvalidPolicy, "Allow or Block"},
		{"acl pass before 14.0", acl(ACLSettings{Action: "Pass", Direction: "In"}), ErrInvalidPolicy, "Allow or Block"},
		{"acl direction", acl(ACLSettings{Action: "Allow"}), ErrInvalidPolicy, "In or Out"},
		{"acl any", acl(ACLSettings{Action: "Allow", Direction: "In", RemoteAddresses: "Any"}), ErrInvalidPolicy, "leave it empty"},
		{"acl address", acl(ACLSettings{Action: "Allow", Direction: "In", RemoteAddresses: "10.0.0.0/8,web"}), ErrInvalidPolicy, `"web"`},
		{"acl ports", acl(ACLSettings{Action: "Allow", Direction: "In", LocalPorts: "90-80"}), ErrInvalidPolicy, "90-80"},
		{"acl protocol", acl(ACLSettings{Action: "Allow", Direction: "In", Protocols: "TCP"}), ErrInvalidPolicy, "TCP"},
		{"acl vxlan", acl(ACLSettings{Action: "Allow", Direction: "In", Protocols: "252"}), ErrNotImplemented, "252"},
		{"acl rule type", acl(ACLSettings{Action: "Allow", Direction: "In", RuleType: "VFP"}), ErrInvalidPolicy, "VFP"},
		{"host port without port", with(NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 80})), ErrInvalidPolicy, "ExternalPort"},
		{"host port twice", with(NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 80, ExternalPort: 8080}),
			NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 81, ExternalPort: 8080})), ErrPortAlreadyExists, "8080"},
		{"tier on HNS 9", with(ParsePolicy(PolicyTierAcl, nil)), ErrNotImplemented, "TierAcl"},
		{"unknown type", with(ParsePolicy("ROUTE", nil)), ErrInvalidPolicyType, "ROUTE"},
	} {
		_, err := s.CreateEndpoint(tt.in)
		t.Run(tt.name, func(t *testing.T) { wantCode(t, err, tt.want, tt.text) })
	}
	if got := len(s.EndpointsOf(n.ID)); got != 1 {
		t.Errorf("%d endpoints after refusals, want 1", got)
	}
}

// TestNotPrevented: HNS takes a remote endpoint with the address of a local one.
func TestNotPrevented(t *testing.T) {
	s, n, e := bridge(t, "2019")
	remote := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote,
		IpConfigurations: []IpConfig{{IpAddress: "10.244.1.4"}}, MacAddress: "02-11-0a-f4-01-04"})
	if got := s.EndpointsByAddress(e.Addresses()[0]); len(got) != 2 || remote.MacAddress != "02-11-0A-F4-01-04" {
		t.Errorf("got %d endpoints, MAC %s", len(got), remote.MacAddress)
	}
	// A remote endpoint may be outside every subnet: a backend on the node network.
	mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote, IpConfigurations: []IpConfig{{IpAddress: "10.1.0.5"}}})
}

func TestSlash32Endpoint(t *testing.T) {
	for build, want := range map[string]*Error{"17763.437": ErrNotImplemented, "17763.1432": nil, "18362.1256": ErrNotImplemented,
		"2022": nil} {
		s, n, _ := bridge(t, build)
		_, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, IpConfigurations: []IpConfig{{"10.244.1.9", 32}}})
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", build, err, want)
		}
	}
}

func TestSetsInACL(t *testing.T) {
	s := newService(t, "2022")
	n := mustNetwork(t, s, Network{Name: "azure", Type: L2Bridge, Ipams: subnets("10.240.0.0/24"), Policies: []Policy{
		NewPolicy(SetPolicySettings{Id: "azure-npm-1", Name: "web", PolicyType: "IPSET", Values: "10.240.0.9"}),
	}})
	rule := func(set string) Endpoint {
		return Endpoint{HostComputeNetwork: n.ID, Policies: []Policy{
			NewPolicy(ACLSettings{Action: "Allow", Direction: "In", RemoteAddresses: set})}}
	}
	mustEndpoint(t, s, rule("azure-npm-1"))
	_, err := s.CreateEndpoint(rule("azure-npm-2"))
	wantCode(t, err, ErrInvalidPolicy, "azure-npm-2")
	wantCode(t, s.AddNetworkPolicies(n.ID, NewPolicy(SetPolicySettings{Id: "n", PolicyType: "NESTEDIPSET"})), ErrNotImplemented)
}

func TestLoadBalancerErrors(t *testing.T) {
	s, _, e := bridge(t, "17763.437")
	if _, err := s.CreateLoadBalancer(tcp("10.96.5.5", 80, 0, e.ID)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		in   LoadBalancer
		want *Error
		text string
	}{
		{"duplicate frontend", tcp("10.96.5.5", 80, 0, e.ID), ErrAlreadyExists, "10.96.5.5 port 80"},
		{"unknown endpoint", tcp("10.96.5.6", 80, 0, noGUID), ErrEndpointNotFound, noGUID},
		{"no endpoint", tcp("10.96.5.6", 80, 0), ErrInvalidParam, "invalid number of destinations"},
		{"DSR before KB4571748", tcp("10.96.5.6", 80, LBFlagDSR, e.ID), ErrNotImplemented, "DSR"},
		{"IPv6", tcp("10.96.5.6", 80, LBFlagIPv6, e.ID), ErrNotImplemented, "IPv6"},
		{"bad VIP", tcp("web", 80, 0, e.ID), ErrInvalidIP, `"web"`},
		{"no port", tcp("10.96.5.6", 0, 0, e.ID), ErrInvalidParam, "ExternalPort"},
		{"no mapping", LoadBalancer{HostComputeEndpoints: []string{e.ID}}, ErrInvalidParam, "PortMappings"},
		{"bad source", LoadBalancer{SourceVIP: "?", HostComputeEndpoints: []string{e.ID}, PortMappings: tcp("", 1, 0).PortMappings}, ErrInvalidIP,
			"SourceVIP"},
	} {
		_, err := s.CreateLoadBalancer(tt.in)
		t.Run(tt.name, func(t *testing.T) { wantCode(t, err, tt.want, tt.text) })
	}
	// kubernetes/kubernetes issue 78574: a ClusterIP and a NodePort load
	// balancer with the same port are two.
	if _, err := s.CreateLoadBalancer(tcp("", 80, 0, e.ID)); err != nil {
		t.Errorf("the same port on the management address: %v", err)
	}
	// A detached backend has no switch port.
	if err := s.DetachEndpoint(e.ID); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateLoadBalancer(tcp("10.96.5.7", 80, 0, e.ID))
	wantCode(t, err, ErrPortNotFound)
}

func manyEndpoints(t *testing.T, s *Service, n *Network, count int) []string {
	t.Helper()
	var ids []string
	for i := range count {
		e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote,
			IpConfigurations: []IpConfig{{IpAddress: fmt.Sprintf("10.245.%d.%d", i/250, i%250+1)}}})
		ids = append(ids, e.ID)
	}
	return ids
}

// TestBackendLimit is kubernetes/kubernetes issue 98680.
func TestBackendLimit(t *testing.T) {
	s, n, _ := bridge(t, "17763.1432")
	ids := manyEndpoints(t, s, n, 65)
	_, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, ids...))
	wantCode(t, err, ErrInvalidParam, "(0x57)", "invalid number of destinations")
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, ids[:64]...)); err != nil {
		t.Errorf("64 backends: %v", err)
	}
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.2", 80, LBFlagDSR, ids...)); err != nil {
		t.Errorf("65 backends with DSR: %v", err)
	}
	s, n, _ = bridge(t, "2022")
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, manyEndpoints(t, s, n, 65)...)); err != nil {
		t.Errorf("65 backends on Windows Server 2022: %v", err)
	}
}

// TestPortBlocks is Azure/AKS issue 1375.
func TestPortBlocks(t *testing.T) {
	s, _, e := bridge(t, "17763.1432")
	var first *LoadBalancer
	for i := range 256 {
		l, err := s.CreateLoadBalancer(tcp("10.96.0.1", uint16(1000+i), 0, e.ID))
		if err != nil {
			t.Fatalf("load balancer %d: %v", i+1, err)
		}
		if i == 0 {
			first = l
		}
	}
	if first.Ports.String() != "49152-49215" || s.pool.free() != 0 {
		t.Errorf("first block %s, %d free", first.Ports, s.pool.free())
	}
	_, err := s.CreateLoadBalancer(tcp("10.96.0.1", 3000, 0, e.ID))
	wantCode(t, err, ErrPortAlreadyExists, "The specified port already exists. (0x803b0013)")
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 3000, LBFlagDSR, e.ID)); err != nil {
		t.Errorf("DSR needs no block: %v", err)
	}
	if _, err := s.reservePorts("client"); !errors.Is(err, ErrPortAlreadyExists) {
		t.Errorf("reservePorts: %v", err)
	}
	if err := s.DeleteLoadBalancer(first.ID); err != nil {
		t.Fatal(err)
	}
	l, err := s.CreateLoadBalancer(tcp("10.96.0.1", 3001, 0, e.ID))
	if err != nil || l.Ports != first.Ports {
		t.Errorf("the freed block was not used: %v %v", l, err)
	}
}

// Blocks keep away from excluded ports and from node ports, and a node port cannot be
// taken out of a block that is in use.
func TestPortBlocksKeepAway(t *testing.T) {
	first := func(excluded []PortBlock, nodePorts ...uint16) (string, error) {
		s := NewService(builds.MustLookup("17763.1432"), Options{PortRangeFirst: 33000, PortRangeLast: 33300, ExcludedPorts: excluded})
		n := mustNetwork(t, s, Network{Type: L2Bridge, Ipams: subnets("10.244.1.0/24")})
		e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID})
		var blocks []string
		for _, p := range nodePorts {
			l := tcp("", p, 0, e.ID)
			l.FrontendVIPs = nil
			made, err := s.CreateLoadBalancer(l)
			if err != nil {
				return strings.Join(blocks, " "), err
			}
			blocks = append(blocks, made.Ports.String())
		}
		l, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
		if err == nil {
			blocks = append(blocks, l.Ports.String())
		}
		return strings.Join(blocks, " "), err
	}
	for name, c := range map[string]struct {
		excluded []PortBlock
		ports    []uint16
		want     string
		code     *Error
	}{
		"nothing excluded":                {want: "33000-33063"},
		"inside the first":                {excluded: []PortBlock{{33010, 33010}}, want: "33011-33074"},
		"its last port":                   {excluded: []PortBlock{{33063, 33063}}, want: "33064-33127"},
		"behind it":                       {excluded: []PortBlock{{33064, 33100}}, want: "33000-33063"},
		"its first port, two ranges":      {excluded: []PortBlock{{33050, 33060}, {32000, 33000}}, want: "33061-33124"},
		"all but 63 ports":                {excluded: []PortBlock{{33000, 33237}}, code: ErrPortAlreadyExists},
		"all but 64 ports":                {excluded: []PortBlock{{33000, 33236}}, want: "33237-33300"},
		"a node port in the first":        {ports: []uint16{33001}, want: "33064-33127 33128-33191"},
		"a node port outside the range":   {ports: []uint16{30000}, want: "33000-33063 33064-33127"},
		"a node port in a block":          {ports: []uint16{30000, 33063}, want: "33000-33063", code: ErrPortAlreadyExists},
		"a node port at a block's start":  {ports: []uint16{30000, 33000}, want: "33000-33063", code: ErrPortAlreadyExists},
		"a node port behind the block":    {ports: []uint16{30000, 33064}, want: "33000-33063 33128-33191 33192-33255"},
		"no block is left by a node port": {excluded: []PortBlock{{33064, 33300}}, ports: []uint16{33001}, code: ErrPortAlreadyExists},
	} {
		got, err := first(c.excluded, c.ports...)
		if got != c.want || (err == nil) != (c.code == nil) || c.code != nil && !errors.Is(err, c.code) {
			t.Errorf("%s: blocks %q, error %v; want %q, %v", name, got, err, c.want, c.code)
		}
	}
}

func TestPortRangeAndSharing(t *testing.T) {
	for share, want := range map[bool]int{false: 0, true: 1} {
		s := NewService(builds.MustLookup("17763.1432"), Options{PortRangeFirst: 50000, PortRangeLast: 50127, SharePortPools: share})
		n := mustNetwork(t, s, Network{Type: L2Bridge, Ipams: subnets("10.244.1.0/24")})
		e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID})
		for i := range 2 {
			if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", uint16(80+i), 0, e.ID)); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.pool.free(); got != want {
			t.Errorf("sharing %v: %d free blocks, want %d", share, got, want)
		}
	}
}

// TestLoopbackDSRExhaustsPorts is containernetworking/plugins PR 613.
func TestLoopbackDSRExhaustsPorts(t *testing.T) {
	loopback := NewPolicy(OutBoundNATSettings{Destinations: []string{"10.244.1.9"}})
	for build, want := range map[string]*Error{"17763.1431": ErrOutOfMemory, "17763.1432": nil} {
		s, n, e := bridge(t, build)
		loop := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, IpConfigurations: []IpConfig{{"10.244.1.9", 24}},
			Policies: []Policy{loopback}})
		_, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
		if want != nil {
			wantCode(t, err, want, "(0xe)")
		} else if err != nil {
			t.Errorf("%s: %v", build, err)
		}
		if err := s.DeleteEndpoint(loop.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 81, 0, e.ID)); err != nil {
			t.Errorf("%s: after the endpoint is gone: %v", build, err)
		}
	}
}

// TestUpdateLoadBalancer is kubernetes/kubernetes issue 131466.
func TestUpdateLoadBalancer(t *testing.T) {
	later, err := builds.MustLookup("26100.4061").WithQuirks(nil, []string{"modify-loadbalancer-ignored"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		build    *builds.Build
		want     *Error
		backends int
	}{
		{"before 15.4", builds.MustLookup("2022"), ErrNotImplemented, 1},
		{"15.4 says yes and does nothing", builds.MustLookup("26100.4061"), nil, 1},
		{"without the bug", later, nil, 2},
	} {
		s := NewService(tt.build, Options{})
		n := mustNetwork(t, s, Network{Type: L2Bridge, Ipams: subnets("10.244.1.0/24")})
		a, b := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID}), mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID})
		l, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, a.ID))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.UpdateLoadBalancer(l.ID, tcp("10.96.0.1", 80, 0, a.ID, b.ID))
		if tt.want != nil {
			wantCode(t, err, tt.want)
		} else if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := len(s.LoadBalancer(l.ID).HostComputeEndpoints); got != tt.backends {
			t.Errorf("%s: %d backends, want %d", tt.name, got, tt.backends)
		}
		if len(l.HostComputeEndpoints) != 1 {
			t.Errorf("%s: the snapshot changed", tt.name)
		}
	}
}

// TestRestart is kubernetes/kubernetes issue 139519.
func TestRestart(t *testing.T) {
	s, _, e := bridge(t, "2022")
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID)); err != nil {
		t.Fatal(err)
	}
	var got []Change
	s.OnChange(func(c Change) { got = append(got, c) })
	s.Restart()
	if len(got) != 1 || got[0] != (Change{Kind: KindService, What: Restarted}) || s.restarts != 1 {
		t.Errorf("changes %v", got)
	}
	_, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
	wantCode(t, err, ErrAlreadyExists, "(0xb7 or 0x803b0013, sources disagree", "Cannot create a file when that file already exists.")
}

func TestDeletion(t *testing.T) {
	s, n, e := bridge(t, "2022")
	l, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
	if err != nil {
		t.Fatal(err)
	}
	var got []Change
	s.OnChange(func(c Change) { got = append(got, c) })
	if err := s.DeleteNetwork(n.ID); err != nil {
		t.Fatal(err)
	}
	if s.Endpoint(e.ID) != nil || s.Network(n.ID) != nil {
		t.Error("endpoint or network is still there")
	}
	if s.LoadBalancer(l.ID) == nil {
		t.Error("the load balancer went with its endpoint")
	}
	if !slices.Equal(got, []Change{{Kind: KindEndpoint, ID: e.ID, What: Deleted}, {Kind: KindNetwork, ID: n.ID, What: Deleted}}) {
		t.Errorf("changes %v", got)
	}
	for kind, want := range map[Kind]*Error{
		KindNetwork: ErrNetworkNotFound, KindEndpoint: ErrEndpointNotFound, KindLoadBalancer: ErrElementNotFound,
		KindNamespace: ErrElementNotFound, KindRoute: ErrElementNotFound, "vswitch": ErrRequestUnsupported,
	} {
		wantCode(t, s.Delete(kind, noGUID), want)
	}
}

func TestNamespaces(t *testing.T) {
	s, n, e := bridge(t, "17763.1432")
	ns, err := s.CreateNamespace(Namespace{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.NamespaceId != 2 || s.HostNamespace().NamespaceId != 1 || !sameNamespace(s.HostNamespace(), s.HostNamespace()) {
		t.Errorf("compartments %d and %d", ns.NamespaceId, s.HostNamespace().NamespaceId)
	}
	if e.Attached() {
		t.Error("a new endpoint counts as attached")
	}
	req := ModifyRequest{ResourceType: "Endpoint", RequestType: RequestAdd, Settings: []byte(`{"EndpointId":"` + strings.ToUpper(e.ID) + `"}`)}
	if err := s.ModifyNamespace(ns.ID, req); err != nil {
		t.Fatal(err)
	}
	if got := s.Endpoint(e.ID); !got.Attached() || got.HostComputeNamespace != ns.ID ||
		!slices.Equal(s.Namespace(ns.ID).Endpoints(), []string{e.ID}) {
		t.Errorf("endpoint %+v", got)
	}
	wantCode(t, s.AttachEndpoint(e.ID, ns.ID), ErrEndpointAlreadyAttached)
	remote := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote,
		IpConfigurations: []IpConfig{{IpAddress: "10.244.2.4"}}})
	wantCode(t, s.AttachEndpoint(remote.ID, ns.ID), ErrInvalidRemoteEndpointOp)
	wantCode(t, s.AttachContainer(remote.ID, "c1"), ErrInvalidRemoteEndpointOp)
	if err := s.DeleteNamespace(ns.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.Endpoint(e.ID); got.State != StateDetached || got.HostComputeNamespace != "" {
		t.Errorf("endpoint after its namespace: %+v", got)
	}
	old, _, oldEP := bridge(t, "14393.8066")
	_, err = old.CreateNamespace(Namespace{})
	wantCode(t, err, ErrNotImplemented)
	if err := old.AttachContainer(oldEP.ID, "c1"); err != nil || !old.Endpoint(oldEP.ID).Attached() {
		t.Errorf("HNS v1 attach: %v", err)
	}
	wantCode(t, old.AttachContainer(oldEP.ID, "c1"), ErrEndpointAlreadyAttached)
}

func TestModifyPolicies(t *testing.T) {
	s, _, e := bridge(t, "2022")
	origin := &trace.Origin{What: "conf", File: "x.conflist", Line: 7}
	nat := NewPolicy(OutBoundNATSettings{Exceptions: []string{"10.0.0.0/8"}}).From(origin)
	route := NewPolicy(SDNRouteSettings{DestinationPrefix: "10.96.0.0/12", NeedEncap: true})
	node := NewPolicy(SDNRouteSettings{DestinationPrefix: "10.1.0.4/32", NeedEncap: true})
	if err := s.AddEndpointPolicies(e.ID, nat, route, node); err != nil {
		t.Fatal(err)
	}
	if got := s.Endpoint(e.ID).Policies; len(got) != 3 || got[0].Origin != origin || len(e.Policies) != 0 {
		t.Errorf("policies %+v", got)
	}
	var got []Change
	s.OnChange(func(c Change) { got = append(got, c) })
	remove := ModifyRequest{ResourceType: "Policy", RequestType: "remove",
		Settings: []byte(`{"Policies":[{"Type":"SDNRoute","Settings":{"DestinationPrefix":"10.96.0.0/12"}}]}`)}
	if err := s.ModifyEndpoint(e.ID, remove); err != nil {
		t.Fatal(err)
	}
	if ps := s.Endpoint(e.ID).Policies; len(ps) != 2 || ps[1].matches(route) {
		t.Errorf("policies after removal %+v", ps)
	}
	if !slices.Equal(got, []Change{{Kind: KindEndpoint, ID: e.ID, What: Modified, PolicyOnly: true}}) {
		t.Errorf("changes %v", got)
	}
	wantCode(t, s.ModifyEndpoint(e.ID, remove), ErrPolicyNotFound, "10.96.0.0/12")
	if err := s.UpdateEndpointPolicies(e.ID, route); err != nil {
		t.Fatal(err)
	}
	if ps := s.Endpoint(e.ID).Policies; len(ps) != 2 || !ps[1].matches(route) || !ps[0].Is(PolicyOutBoundNAT) {
		t.Errorf("policies after update %+v", ps)
	}
	for _, tt := range []struct {
		req  ModifyRequest
		want *Error
	}{
		{ModifyRequest{ResourceType: "Port"}, ErrRequestUnsupported},
		{ModifyRequest{ResourceType: "Policy", RequestType: "Add"}, ErrInvalidPolicy},
		{ModifyRequest{ResourceType: "Policy", RequestType: "Add", Settings: []byte(`[`)}, ErrInvalidJSON},
		{ModifyRequest{ResourceType: "Policy", RequestType: "Set", Settings: []byte(`{"Policies":[{"Type":"L2Driver"}]}`)},
			ErrRequestUnsupported},
		{ModifyRequest{ResourceType: "Policy", RequestType: "Add", Settings: []byte(`{"Policies":[{"Type":"ACL","Settings":{}}]}`)},
			ErrInvalidPolicy},
	} {
		wantCode(t, s.ModifyEndpoint(e.ID, tt.req), tt.want)
	}
	wantCode(t, s.ModifyEndpoint(noGUID, remove), ErrEndpointNotFound)
	wantCode(t, s.ModifyNetwork(noGUID, remove), ErrNetworkNotFound)
}

// TestHostPortConflict: one node port, one endpoint.
func TestHostPortConflict(t *testing.T) {
	s, n, e := bridge(t, "2022")
	p := NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 80, ExternalPort: 8080})
	if err := s.AddEndpointPolicies(e.ID, p); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, Policies: []Policy{p}})
	wantCode(t, err, ErrPortAlreadyExists, "client")
}

func TestRoutes(t *testing.T) {
	s, _, e := bridge(t, "2022")
	r, err := s.CreateRoute(Route{HostComputeEndpoints: []string{e.ID},
		Setting: []SDNRouteSettings{{DestinationPrefix: "10.96.0.0/12", NeedEncap: true}}})
	if err != nil || s.Route(r.ID) != r {
		t.Fatal(err)
	}
	_, err = s.CreateRoute(Route{HostComputeEndpoints: []string{noGUID}})
	wantCode(t, err, ErrEndpointNotFound, "Setting must hold")
	wantCode(t, s.ModifyRoute(r.ID, ModifyRequest{}), ErrRequestUnsupported)
	if err := s.DeleteRoute(r.ID); err != nil || len(s.ListRoutes(nil)) != 0 {
		t.Errorf("%v, %d routes", err, len(s.ListRoutes(nil)))
	}
}

// TestIDs: ids are GUIDs, the same in every run, different by node and kind.
func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, node := range []string{"win1", "win2"} {
		var ids [2][]string
		for run := range ids {
			s := NewService(builds.MustLookup("2022"), Options{Node: node})
			for _, k := range []Kind{KindNetwork, KindEndpoint, KindEndpoint} {
				ids[run] = append(ids[run], s.newID(k))
			}
		}
		if !slices.Equal(ids[0], ids[1]) {
			t.Errorf("ids differ between runs: %v", ids)
		}
		for _, id := range ids[0] {
			if len(id) != 36 || id != strings.ToLower(id) || seen[id] {
				t.Errorf("id %q", id)
			}
			seen[id] = true
		}
	}
}

func TestCreateJSON(t *testing.T) {
	s, n, _ := bridge(t, "2022")
	data := []byte(`{"Name":"x","HostComputeNetwork":"` + n.ID +
		`","IpConfiguration":[],"IpConfigurations":[{"IpAddress":"10.244.1.7","PrefixLength":24}]}`)
	id, err := s.Create(KindEndpoint, data)
	if err != nil || s.Endpoint(id).Name != "x" {
		t.Errorf("%q, %v", id, err)
	}
	_, err = s.Create(KindEndpoint, []byte(`{"Name":1}`))
	wantCode(t, err, ErrInvalidJSON)
	_, err = s.Create("vswitch", data)
	wantCode(t, err, ErrRequestUnsupported, "vswitch")
}

// allErrors are the codes that a Service can answer with.
var allErrors = []*Error{
	ErrOutOfMemory, ErrInvalidParam, ErrAlreadyExists, ErrElementNotFound, ErrNotImplemented,
	ErrNetworkNotFound, ErrEndpointNotFound, ErrPortNotFound, ErrPolicyNotFound,
	ErrInvalidNetwork, ErrInvalidNetworkType, ErrInvalidEndpoint, ErrInvalidPolicy, ErrInvalidPolicyType,
	ErrInvalidRemoteEndpointOp, ErrNetworkAlreadyExists, ErrPortAlreadyExists, ErrEndpointAlreadyAttached,
	ErrRequestUnsupported, ErrInvalidJSON, ErrInvalidIP, ErrAddressInvalidReserved, ErrInvalidPrefix,
}

func TestErrorForm(t *testing.T) {
	err := ErrPortAlreadyExists.forCall("hcnCreateLoadBalancer", "a", "b")
	if got, want := err.Error(), "hcnCreateLoadBalancer failed in Win32: The specified port already exists. (0x803b0013): a; b"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if errors.Is(err, ErrAlreadyExists) || errors.Is(errors.New("x"), ErrAlreadyExists) {
		t.Error("codes are not told apart")
	}
	codes := map[uint32]bool{}
	for _, e := range allErrors {
		if codes[e.Code] || e.Name == "" || e.Text == "" {
			t.Errorf("%+v", e)
		}
		codes[e.Code] = true
	}
}

// TestAddressIndex: look-ups by address follow creation and deletion.
func TestAddressIndex(t *testing.T) {
	s, n, e := bridge(t, "2022")
	a := e.Addresses()[0]
	remote := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote,
		IpConfigurations: []IpConfig{{IpAddress: a.String()}}})
	if err := s.DeleteEndpoint(e.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.EndpointsByAddress(a); len(got) != 1 || got[0].ID != remote.ID {
		t.Errorf("%d endpoints", len(got))
	}
	if err := s.DeleteEndpoint(remote.ID); err != nil || len(s.EndpointsByAddress(a)) != 0 || len(s.usedMACs) != 0 {
		t.Errorf("%v, %d endpoints, MACs %v", err, len(s.EndpointsByAddress(a)), s.usedMACs)
	}
}

// BenchmarkRemoteEndpoints makes the endpoints of a large cluster on one node.
func BenchmarkRemoteEndpoints(b *testing.B) {
	for b.Loop() {
		s := NewService(builds.MustLookup("2022"), Options{})
		n, err := s.CreateNetwork(Network{Type: L2Bridge, Ipams: subnets("10.244.1.0/24")})
		if err != nil {
			b.Fatal(err)
		}
		a := netip.MustParseAddr("11.0.0.1")
		for range 20000 {
			if _, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote, MacAddress: "02-11-0A-00-00-01",
				IpConfigurations: []IpConfig{{IpAddress: a.String()}}}); err != nil {
				b.Fatal(err)
			}
			a = a.Next()
		}
	}
}

// sameNamespace reports whether two calls gave the same object.
func sameNamespace(a, b *Namespace) bool { return a == b }

// A listener that has stopped is not called any more, and the others are.
func TestOnChangeStops(t *testing.T) {
	s := NewService(builds.MustLookup("20348"), Options{Node: "win1", ManagementIP: netip.MustParseAddr("192.168.1.11")})
	var one, other int
	stop := s.OnChange(func(Change) { one++ })
	s.OnChange(func(Change) { other++ })
	for range 2 {
		if _, err := s.CreateNamespace(Namespace{}); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	if one == 0 || other != 2*one {
		t.Errorf("the one that stopped heard %d changes, the other %d", one, other)
	}
}
