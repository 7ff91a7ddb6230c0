package hns

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
)

// V1Subnet is a subnet of HNS v1.
type V1Subnet struct {
	AddressPrefix  string            `json:"AddressPrefix,omitempty"`
	GatewayAddress string            `json:"GatewayAddress,omitempty"`
	Policies       []json.RawMessage `json:"Policies,omitempty"`
	Flags          uint32            `json:"Flags,omitempty"`
}

// V1Network is a network as HNS v1 and Get-HnsNetwork show it.
type V1Network struct {
	ID                   string            `json:"ID,omitempty"`
	Name                 string            `json:"Name,omitempty"`
	Type                 NetworkType       `json:"Type,omitempty"`
	NetworkAdapterName   string            `json:"NetworkAdapterName,omitempty"`
	SourceMac            string            `json:"SourceMac,omitempty"`
	Policies             []json.RawMessage `json:"Policies,omitempty"`
	MacPools             []MacRange        `json:"MacPools,omitempty"`
	Subnets              []V1Subnet        `json:"Subnets,omitempty"`
	DNSSuffix            string            `json:"DNSSuffix,omitempty"`
	DNSServerList        string            `json:"DNSServerList,omitempty"`
	DNSServerCompartment uint32            `json:"DNSServerCompartment,omitempty"`
	ManagementIP         string            `json:"ManagementIP,omitempty"`
	AutomaticDNS         bool              `json:"AutomaticDNS,omitempty"`
	DrMacAddress         string            `json:"DrMacAddress,omitempty"`
	Flags                NetworkFlags      `json:"Flags,omitempty"`
	Extensions           switchExtensions  `json:"Extensions,omitempty"`
}

// V1Endpoint is an endpoint as HNS v1 and Get-HnsEndpoint show it.
type V1Endpoint struct {
	ID                 string            `json:"ID,omitempty"`
	Name               string            `json:"Name,omitempty"`
	VirtualNetwork     string            `json:"VirtualNetwork,omitempty"`
	VirtualNetworkName string            `json:"VirtualNetworkName,omitempty"`
	Policies           []json.RawMessage `json:"Policies,omitempty"`
	MacAddress         string            `json:"MacAddress,omitempty"`
	IPAddress          string            `json:"IPAddress,omitempty"`
	IPv6Address        string            `json:"IPv6Address,omitempty"`
	DNSSuffix          string            `json:"DNSSuffix,omitempty"`
	DNSServerList      string            `json:"DNSServerList,omitempty"`
	DNSDomain          string            `json:"DNSDomain,omitempty"`
	GatewayAddress     string            `json:"GatewayAddress,omitempty"`
	GatewayAddressV6   string            `json:"GatewayAddressV6,omitempty"`
	EnableInternalDNS  bool              `json:"EnableInternalDNS,omitempty"`
	DisableICC         bool              `json:"DisableICC,omitempty"`
	PrefixLength       uint8             `json:"PrefixLength,omitempty"`
	IPv6PrefixLength   uint8             `json:"IPv6PrefixLength,omitempty"`
	IsRemoteEndpoint   bool              `json:"IsRemoteEndpoint,omitempty"`
	Namespace          *V1Namespace      `json:"Namespace,omitempty"`
	EncapOverhead      uint16            `json:"EncapOverhead,omitempty"`
	SharedContainers   []string          `json:"SharedContainers,omitempty"`
	State              EndpointState     `json:"State,omitempty"`
}

// V1Namespace is where a v1 endpoint is attached.
type V1Namespace struct {
	ID              string `json:"ID,omitempty"`
	CompartmentId   uint32 `json:"CompartmentId,omitempty"`
	CompartmentGuid string `json:"CompartmentGuid,omitempty"`
}

// V1PolicyList is a policy list of HNS v1: a load balancer (ELB policies) or
// routes for endpoints. References are "/endpoints/<id>".
type V1PolicyList struct {
	ID         string            `json:"ID,omitempty"`
	References []string          `json:"References,omitempty"`
	Policies   []json.RawMessage `json:"Policies,omitempty"`
	// HostComputeNetwork, State and IsApplied are what newer builds show.
	HostComputeNetwork string `json:"HostComputeNetwork,omitempty"`
	State              uint32 `json:"State,omitempty"`
	IsApplied          *bool  `json:"IsApplied,omitempty"`
}

// v1ELB is the load balancer policy of a policy list.
type v1ELB struct {
	Type           string   `json:"Type"`
	SourceVIP      string   `json:"SourceVIP,omitempty"`
	VIPs           []string `json:"VIPs,omitempty"`
	ILB            bool     `json:"ILB,omitempty"`
	IsDSR          bool     `json:"IsDSR,omitempty"`
	LocalRoutedVip bool     `json:"LocalRoutedVip,omitempty"`
	UseMUX         bool     `json:"UseMUX,omitempty"`
	PreserveDIP    bool     `json:"PreserveDIP,omitempty"`
	// How HNS v1 shows the distribution, a frontend of IPv6 and an external address
	// is not published; these are HCN v2's names.
	DistributionType Distribution `json:"DistributionType,omitempty"`
	IPv6             bool         `json:"IPv6,omitempty"`
	VipExternalIP    bool         `json:"VipExternalIP,omitempty"`
	Protocol         uint32       `json:"Protocol,omitempty"`
	InternalPort     uint16       `json:"InternalPort"`
	ExternalPort     uint16       `json:"ExternalPort"`
}

func (p v1ELB) portMapping() LBPortMapping {
	m := LBPortMapping{Protocol: p.Protocol, InternalPort: p.InternalPort, ExternalPort: p.ExternalPort, DistributionType: p.DistributionType}
	for _, f := range []struct {
		on   bool
		flag PortFlags
	}{{p.ILB, PortFlagILB}, {p.LocalRoutedVip, PortFlagLocalRoutedVIP}, {p.UseMUX, PortFlagUseMux}, {p.PreserveDIP, PortFlagPreserveDIP},
		{p.VipExternalIP, PortFlagVipExternalIP}} {
		if f.on {
			m.Flags |= f.flag
		}
	}
	return m
}

const noGUID = "00000000-0000-0000-0000-000000000000"

// FromNetworkV1 converts a v1 network.
func FromNetworkV1(v V1Network) (Network, error) {
	n := Network{ID: v.ID, Name: v.Name, Type: v.Type, Flags: v.Flags, DNSServerCompartment: v.DNSServerCompartment}
	if t := canonicalNetworkType(v.Type); t != "" {
		n.Type = t
	}
	n.ManagementIP, _ = netip.ParseAddr(v.ManagementIP)
	n.Extensions = slices.Clone([]SwitchExtension(v.Extensions))
	n.MacPool.Ranges = slices.Clone(v.MacPools)
	n.Dns = DNS{Search: list(v.DNSSuffix), ServerList: list(v.DNSServerList)}
	var err error
	if n.Policies, err = fromPoliciesV1(v.Policies); err != nil {
		return n, err
	}
	add := func(s Settings) {
		if len(PoliciesOf(n.Policies, s.Type())) == 0 {
			n.Policies = append(n.Policies, NewPolicy(s))
		}
	}
	if v.SourceMac != "" {
		add(SourceMacAddressSettings{v.SourceMac})
	}
	if v.NetworkAdapterName != "" {
		add(NetAdapterNameSettings{v.NetworkAdapterName})
	}
	if v.AutomaticDNS {
		add(AutomaticDNSSettings{true})
	}
	if v.DrMacAddress != "" {
		add(DrMacAddressSettings{v.DrMacAddress})
	}
	if len(v.Subnets) > 0 {
		ipam := Ipam{Type: "Static"}
		for _, s := range v.Subnets {
			sub := Subnet{IpAddressPrefix: s.AddressPrefix, Flags: s.Flags}
			if sub.Policies, err = fromPoliciesV1(s.Policies); err != nil {
				return n, err
			}
			if s.GatewayAddress != "" {
				sub.Routes = []NetRoute{{NextHop: s.GatewayAddress, DestinationPrefix: defaultRoute(s.GatewayAddress)}}
			}
			ipam.Subnets = append(ipam.Subnets, sub)
		}
		n.Ipams = []Ipam{ipam}
	}
	return n, nil
}

func defaultRoute(gateway string) string {
	if a, err := netip.ParseAddr(gateway); err == nil && a.Is6() {
		return "::/0"
	}
	return "0.0.0.0/0"
}

// NetworkV1 is the v1 view of a network.
func NetworkV1(n *Network) V1Network {
	v := V1Network{
		ID: strings.ToUpper(n.ID), Name: n.Name, Type: n.Type, Flags: n.Flags, DNSServerCompartment: n.DNSServerCompartment,
		MacPools: slices.Clone(n.MacPool.Ranges), DNSSuffix: strings.Join(n.Dns.Search, ","), DNSServerList: strings.Join(n.Dns.ServerList, ","),
		DrMacAddress: n.drMacAddress(), Extensions: switchExtensions(slices.Clone(n.Extensions)),
	}
	if n.ManagementIP.IsValid() {
		v.ManagementIP = n.ManagementIP.String()
	}
	for _, p := range n.Policies {
		switch s := p.settings.(type) {
		case SourceMacAddressSettings:
			v.SourceMac = s.SourceMacAddress
		case NetAdapterNameSettings:
			v.NetworkAdapterName = s.NetworkAdapterName
		case AutomaticDNSSettings:
			v.AutomaticDNS = s.Enable
		case DrMacAddressSettings:
		default:
			v.Policies = append(v.Policies, toPolicyV1(p))
		}
	}
	for _, s := range n.Subnets() {
		sub := V1Subnet{AddressPrefix: s.IpAddressPrefix, Flags: s.Flags}
		if g := s.Gateway(); g.IsValid() {
			sub.GatewayAddress = g.String()
		}
		for _, p := range s.Policies {
			sub.Policies = append(sub.Policies, toPolicyV1(p))
		}
		v.Subnets = append(v.Subnets, sub)
	}
	return v
}

// FromEndpointV1 converts a v1 endpoint.
func FromEndpointV1(v V1Endpoint) (Endpoint, error) {
	e := Endpoint{
		ID: v.ID, Name: v.Name, HostComputeNetwork: normID(v.VirtualNetwork), MacAddress: canonicalMAC(v.MacAddress),
		State: v.State, SharedContainers: slices.Clone(v.SharedContainers), EnableInternalDNS: v.EnableInternalDNS, DisableICC: v.DisableICC,
		Dns: DNS{Domain: v.DNSDomain, Search: list(v.DNSSuffix), ServerList: list(v.DNSServerList)},
	}
	if v.IsRemoteEndpoint {
		e.Flags |= EndpointRemote
	}
	if v.IPAddress != "" {
		e.IpConfigurations = append(e.IpConfigurations, IpConfig{v.IPAddress, v.PrefixLength})
	}
	if v.IPv6Address != "" {
		e.IpConfigurations = append(e.IpConfigurations, IpConfig{v.IPv6Address, v.IPv6PrefixLength})
	}
	for _, g := range []string{v.GatewayAddress, v.GatewayAddressV6} {
		if g != "" {
			e.Routes = append(e.Routes, NetRoute{NextHop: g, DestinationPrefix: defaultRoute(g)})
		}
	}
	if v.Namespace != nil && v.Namespace.ID != noGUID {
		e.HostComputeNamespace = normID(v.Namespace.ID)
	}
	var err error
	if e.Policies, err = fromPoliciesV1(v.Policies); err != nil {
		return e, err
	}
	if v.EncapOverhead != 0 && len(PoliciesOf(e.Policies, PolicyEncapOverhead)) == 0 {
		e.Policies = append(e.Policies, NewPolicy(EncapOverheadSettings{v.EncapOverhead}))
	}
	return e, nil
}

// EndpointV1 is the v1 view of an endpoint on a network.
func EndpointV1(e *Endpoint, n *Network) V1Endpoint {
	v := V1Endpoint{
		ID: strings.ToUpper(e.ID), Name: e.Name, VirtualNetwork: strings.ToUpper(e.HostComputeNetwork), MacAddress: e.MacAddress,
		DNSDomain: e.Dns.Domain, DNSSuffix: strings.Join(e.Dns.Search, ","), DNSServerList: strings.Join(e.Dns.ServerList, ","),
		IsRemoteEndpoint: e.Remote(), SharedContainers: slices.Clone(e.SharedContainers), State: e.State,
		EnableInternalDNS: e.EnableInternalDNS, DisableICC: e.DisableICC,
	}
	if n != nil {
		v.VirtualNetworkName = n.Name
	}
	for _, c := range e.IpConfigurations {
		if a, err := netip.ParseAddr(c.IpAddress); err == nil && a.Is6() {
			v.IPv6Address, v.IPv6PrefixLength = c.IpAddress, c.PrefixLength
		} else {
			v.IPAddress, v.PrefixLength = c.IpAddress, c.PrefixLength
		}
	}
	if g := e.Gateway(false); g.IsValid() {
		v.GatewayAddress = g.String()
	}
	if g := e.Gateway(true); g.IsValid() {
		v.GatewayAddressV6 = g.String()
	}
	if e.HostComputeNamespace != "" {
		v.Namespace = &V1Namespace{ID: strings.ToUpper(e.HostComputeNamespace)}
	}
	for _, p := range e.Policies {
		if s, ok := SettingsOf[EncapOverheadSettings](p); ok {
			v.EncapOverhead = s.Overhead
			continue
		}
		v.Policies = append(v.Policies, toPolicyV1(p))
	}
	return v
}

// FromPolicyListV1 converts a v1 policy list: the load balancer of its ELB
// policies, the route of its ROUTE policies, or nil for each that it does not
// have.
func FromPolicyListV1(v V1PolicyList) (*LoadBalancer, *Route, error) {
	var ids []string
	for _, r := range v.References {
		ids = append(ids, normID(r[strings.LastIndexByte(r, '/')+1:]))
	}
	var lb *LoadBalancer
	var route *Route
	for _, raw := range v.Policies {
		var p v1ELB
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, nil, err
		}
		switch {
		case strings.EqualFold(p.Type, "ELB"):
			if lb == nil {
				lb = &LoadBalancer{ID: v.ID, HostComputeEndpoints: ids, SourceVIP: p.SourceVIP, FrontendVIPs: p.VIPs}
			}
			if p.IsDSR {
				lb.Flags |= LBFlagDSR
			}
			if p.IPv6 {
				lb.Flags |= LBFlagIPv6
			}
			lb.PortMappings = append(lb.PortMappings, p.portMapping())
		case strings.EqualFold(p.Type, "ROUTE"):
			if route == nil {
				route = &Route{ID: v.ID, HostComputeEndpoints: ids}
			}
			var s SDNRouteSettings
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, nil, err
			}
			route.Setting = append(route.Setting, s)
		}
	}
	return lb, route, nil
}

// PolicyListV1 is the v1 view of a load balancer.
func PolicyListV1(l *LoadBalancer) V1PolicyList {
	v := V1PolicyList{ID: strings.ToUpper(l.ID)}
	for _, id := range l.HostComputeEndpoints {
		v.References = append(v.References, "/endpoints/"+strings.ToUpper(id))
	}
	for _, p := range l.PortMappings {
		raw, _ := json.Marshal(v1ELB{
			Type: "ELB", SourceVIP: l.SourceVIP, VIPs: l.FrontendVIPs, IsDSR: l.DSR(), Protocol: p.Protocol,
			InternalPort: p.InternalPort, ExternalPort: p.ExternalPort, ILB: p.Flags&PortFlagILB != 0,
			LocalRoutedVip: p.Flags&PortFlagLocalRoutedVIP != 0, UseMUX: p.Flags&PortFlagUseMux != 0, PreserveDIP: p.Flags&PortFlagPreserveDIP != 0,
			DistributionType: p.DistributionType, IPv6: l.IPv6(), VipExternalIP: p.Flags&PortFlagVipExternalIP != 0,
		})
		v.Policies = append(v.Policies, raw)
	}
	return v
}

// RoutePolicyListV1 is the v1 view of a route.
func RoutePolicyListV1(r *Route) V1PolicyList {
	v := PolicyListV1(&LoadBalancer{ID: r.ID, HostComputeEndpoints: r.HostComputeEndpoints})
	for _, s := range r.Setting {
		raw, _ := json.Marshal(struct {
			Type string
			SDNRouteSettings
		}{"ROUTE", s})
		v.Policies = append(v.Policies, raw)
	}
	return v
}
