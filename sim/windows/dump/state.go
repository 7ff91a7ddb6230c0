package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// State is what a node could print of itself.
type State struct {
	// Name is the host's.
	Name string
	// HNS is nil for a node without one; WithoutHNS says why.
	HNS        *hns.Service
	WithoutHNS string
	Routes     []Route
	Adapters   []Adapter
	Facts
}

// KeepPorts leaves the ports out that are not wanted. It is an error when none is left;
// name is how they were asked for.
func (s *State) KeepPorts(want func(Port) bool, name string) error {
	if s.HNS == nil {
		return errors.New(cmp.Or(s.WithoutHNS, "the node has no HNS"))
	}
	var have []string
	for _, p := range s.Ports {
		have = append(have, p.Friendly)
	}
	if s.Ports = slices.DeleteFunc(s.Ports, func(p Port) bool { return !want(p) }); len(s.Ports) == 0 {
		return fmt.Errorf("there is no port %s on %s; there are %s", name, s.Name, strings.Join(have, ", "))
	}
	return nil
}

// document is a list of objects with the command that prints it.
type document struct {
	command string
	// kind is the heading of hnsdiag list all; "" for what is not HNS.
	kind    string
	objects []any
}

// v1Namespace is a namespace as Get-HnsNamespace shows it.
type v1Namespace struct {
	CompartmentGuid string
	CompartmentId   uint32
	ID              string
	IsDefault       bool
	ResourceList    []hns.NamespaceResource
	State           int
}

// v1 is what HNS v1 shows.
func (s *State) v1() []document {
	var networks, endpoints, namespaces, lists []any
	for _, n := range s.HNS.ListNetworks(nil) {
		networks = append(networks, hns.NetworkV1(n))
	}
	for _, e := range s.HNS.ListEndpoints(nil) {
		v := hns.EndpointV1(e, s.HNS.Network(e.HostComputeNetwork))
		if ns := s.HNS.Namespace(e.HostComputeNamespace); ns != nil && v.Namespace != nil {
			v.Namespace.CompartmentId = ns.NamespaceId
		}
		endpoints = append(endpoints, v)
	}
	for _, n := range s.HNS.ListNamespaces(nil) {
		namespaces = append(namespaces, v1Namespace{CompartmentGuid: strings.ToUpper(n.NamespaceGuid), CompartmentId: n.NamespaceId,
			ID:        strings.ToUpper(n.ID),
			IsDefault: n.Type == hns.NamespaceHostDefault, ResourceList: n.Resources, State: 1})
	}
	for _, l := range s.HNS.ListLoadBalancers(nil) {
		v := hns.PolicyListV1(l)
		v.State = 2
		lists = append(lists, v)
	}
	for _, r := range s.HNS.ListRoutes(nil) {
		lists = append(lists, hns.RoutePolicyListV1(r))
	}
	return []document{{"Get-HnsNetwork", "Networks", networks}, {"Get-HnsEndpoint", "Endpoints", endpoints},
		{"Get-HnsNamespace", "Namespaces", namespaces}, {"Get-HnsPolicyList", "LoadBalancers", lists}}
}

// v2 is what HCN v2 shows.
func (s *State) v2() []document {
	var networks, endpoints, namespaces, lbs, routes []any
	for _, n := range s.HNS.ListNetworks(nil) {
		networks = append(networks, n)
	}
	for _, e := range s.HNS.ListEndpoints(nil) {
		endpoints = append(endpoints, e)
	}
	for _, n := range s.HNS.ListNamespaces(nil) {
		namespaces = append(namespaces, n)
	}
	for _, l := range s.HNS.ListLoadBalancers(nil) {
		lbs = append(lbs, l)
	}
	for _, r := range s.HNS.ListRoutes(nil) {
		routes = append(routes, r)
	}
	all := []document{{"Get-HnsNetwork -Version 2", "Networks", networks}, {"Get-HnsEndpoint -Version 2", "Endpoints", endpoints},
		{"Get-HnsNamespace -Version 2", "Namespaces", namespaces}, {"Get-HnsLoadBalancer -Version 2", "LoadBalancers", lbs}}
	if len(routes) > 0 {
		all = append(all, document{"Get-HnsRoute -Version 2", "Routes", routes})
	}
	return all
}

// netRoute, netInterface and netNAT are the objects of the cmdlets with those
// fields that decide about packets.
type netRoute struct {
	DestinationPrefix, NextHop string
	InterfaceAlias             string
	RouteMetric                int
}

type netInterface struct {
	InterfaceAlias string
	AddressFamily  int
	Forwarding     int
}

type netNAT struct {
	Name                             string
	InternalIPInterfaceAddressPrefix string
	IcmpQueryTimeout                 int
	TcpEstablishedConnectionTimeout  int
	TcpTransientConnectionTimeout    int
	UdpIdleSessionTimeout            int
	Active                           bool
}

// facts are the node's routes, interfaces and NATs.
func (s *State) facts() []document {
	var routes, interfaces, nats []any
	for _, r := range s.Routes {
		hop := "0.0.0.0"
		if r.To.Addr().Is6() {
			hop = "::"
		}
		if r.Via.IsValid() {
			hop = r.Via.String()
		}
		routes = append(routes, netRoute{r.To.String(), hop, r.Interface, r.Metric})
	}
	for _, i := range s.Interfaces {
		x := netInterface{InterfaceAlias: i.Name, AddressFamily: 2}
		if i.Forwarding {
			x.Forwarding = 1
		}
		if i.IPv6 {
			x.AddressFamily = 23
		}
		interfaces = append(interfaces, x)
	}
	for _, n := range s.NATs {
		nats = append(nats, netNAT{n.Name, n.Internal.String(), n.Timeouts.seconds(0), n.Timeouts.seconds(1), n.Timeouts.seconds(2),
			n.Timeouts.seconds(3), !n.Inactive})
	}
	all := []document{{command: "Get-NetRoute", objects: routes},
		{command: "Get-NetIPInterface | Select-Object InterfaceAlias,AddressFamily,Forwarding", objects: interfaces}}
	if len(nats) > 0 {
		all = append(all, document{command: "Get-NetNat", objects: nats})
	}
	return all
}

// marshal writes JSON with the indent of a caller's choice.
func marshal(v any, indent string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return []byte("null\n") // no value here can fail
	}
	return b.Bytes()
}

func notNil(all []any) []any {
	if all == nil {
		return []any{}
	}
	return all
}

// ranges writes what netsh shows of the dynamic ports.
func (s *State) ranges(b *strings.Builder) {
	for _, r := range s.Dynamic {
		fmt.Fprintf(b, "\nProtocol %s Dynamic Port Range\n---------------------------------\nStart Port      : %d\nNumber of Ports : %d\n\n",
			r.Protocol, r.First, r.Last-r.First+1)
	}
}
