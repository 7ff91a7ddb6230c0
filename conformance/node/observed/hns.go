package observed

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsObject takes an HNS network or endpoint, v1 or v2, out of a tree,
// however it was printed. Field names are those of hcsshim internal/hns and
// hcn.
func (r *reader) hnsObject(o *yaml.Node) bool {
	if out := dump.Child(o, "Output"); out != nil && dump.Has(o, "Success") {
		ok := false
		for _, e := range dump.Items(out) {
			ok = r.hnsObject(e) || ok
		}
		return ok
	}
	if r.hnsLists(o) {
		return true
	}
	switch {
	case dump.Str(o, "ID") == "" && dump.Str(o, "Name") == "":
		return false
	case dump.Child(o, "FrontendVIPs", "HostComputeEndpoints", "References") != nil:
		r.loadBalancer(o)
	case dump.Child(o, "VirtualNetwork", "VirtualNetworkName", "HostComputeNetwork", "IpConfigurations") != nil &&
		!dump.Has(o, "FrontendVIPs"):
		r.endpoint(o)
	case isNetworkType(dump.Str(o, "Type")) && selected(o):
		// Get-HnsNetwork | Select Name, Type, Id, ...
		n := Network{ID: dump.Str(o, "ID"), Name: dump.Str(o, "Name"), Type: strings.ToLower(dump.Str(o, "Type")), Place: r.placeOf(o.Line)}
		if p := dump.Prefix(dump.Str(o, "AddressPrefix")); p.IsValid() {
			n.Subnets = []netip.Prefix{p}
		}
		r.addNetwork(n)
	case isNetworkType(dump.Str(o, "Type")) && dump.Child(o, "Subnets", "Ipams", "ManagementIP", "MacPool", "MacPools", "LayeredOn") != nil:
		r.network(o)
	default:
		return false
	}
	return true
}

// hnsLists takes an object with lists, as hnsdiag list all -d and winlab's own export
// print one.
func (r *reader) hnsLists(o *yaml.Node) bool {
	if o.Kind != yaml.MappingNode {
		return false
	}
	lists := false
	for i := 0; i+1 < len(o.Content); i += 2 {
		switch strings.ToLower(o.Content[i].Value) {
		case "networks":
			r.node.list(ListNetworks, r.placeOf(o.Content[i].Line))
		case "endpoints":
			r.node.list(listEndpoints, r.placeOf(o.Content[i].Line))
		case "loadbalancers", "policylists":
			r.node.list(ListLoadBalancers, r.placeOf(o.Content[i].Line))
		case "namespaces":
		default:
			continue
		}
		if o.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		lists = true
		for _, e := range o.Content[i+1].Content {
			r.hnsObject(e)
		}
	}
	return lists
}

// isNetworkType knows the types of hcn/hcnnetwork.go.
func isNetworkType(s string) bool {
	switch strings.ToLower(s) {
	case "nat", "transparent", "l2bridge", "l2tunnel", "ics", "private", "overlay", "internal", "mirrored":
		return true
	}
	return false
}

// selected reports whether an object has only what people select of a network.
func selected(o *yaml.Node) bool {
	for i := 0; i < len(o.Content); i += 2 {
		switch strings.ToLower(o.Content[i].Value) {
		case "name", "type", "id", "addressprefix":
		default:
			return false
		}
	}
	return dump.Has(o, "Name", "Type")
}

// parsed reads an object with the parser that labs read dumps with.
func (r *reader) parsed(o *yaml.Node) *hns.Dump {
	d, mistakes := dump.Objects(r.file, o)
	r.node.Mistakes = append(r.node.Mistakes, mistakes...)
	for _, x := range d.Notices {
		if strings.Contains(x.Why, "-Depth") {
			r.node.Cut = append(r.node.Cut, Text{Value: x.What + ": " + x.Why, Place: r.placeOf(o.Line)})
		}
	}
	return d
}

// loadBalancer takes what Get-HnsPolicyList and HCN v2 show.
func (r *reader) loadBalancer(o *yaml.Node) {
	if c := dump.Child(o, "HostComputeNetwork"); c != nil && c.Value != "" {
		r.node.OfNetworks = append(r.node.OfNetworks, Text{Value: c.Value, Place: r.placeOf(c.Line)})
	}
	for _, x := range r.parsed(o).LoadBalancers {
		l := LoadBalancer{ID: x.ID, DSR: x.DSR(), Place: r.placeOf(o.Line)}
		for _, v := range x.FrontendVIPs {
			if a := dump.Addr(v); a.IsValid() {
				l.VIPs = append(l.VIPs, a)
			}
		}
		for _, m := range x.PortMappings {
			l.Ports = append(l.Ports, LBPort{int(m.Protocol), int(m.ExternalPort), int(m.InternalPort)})
		}
		for _, e := range x.HostComputeEndpoints {
			l.Endpoints = append(l.Endpoints, strings.ToLower(e))
		}
		if c := dump.Child(o, "ID"); c != nil {
			l.Place = r.placeOf(c.Line)
		}
		r.node.list(ListLoadBalancers, l.Place)
		r.node.LoadBalancers = append(r.node.LoadBalancers, l)
		r.addKind(ListLoadBalancers)
	}
}

// switchPort is the port of the switch that HNS says an endpoint has.
func switchPort(o *yaml.Node) string {
	for _, a := range dump.Items(dump.Child(dump.Child(o, "Resources"), "Allocators")) {
		if p := dump.Str(a, "EndpointPortGuid"); p != "" {
			return p
		}
	}
	return ""
}

func (r *reader) network(o *yaml.Node) {
	for _, x := range r.parsed(o).Networks {
		n := Network{ID: x.ID, Name: x.Name, Type: strings.ToLower(string(x.Type)), managementIP: x.ManagementIP, NATName: dump.Str(o, "NatName"),
			complete: true, Place: r.placeOf(o.Line)}
		if ext := x.Extension(hns.OpenVSwitchExtension); ext != nil {
			n.OVSOff = !ext.IsEnabled
		}
		for _, s := range x.Subnets() {
			if p := dump.Prefix(s.IpAddressPrefix); p.IsValid() {
				n.Subnets = append(n.Subnets, p)
			}
		}
		for s := range hns.EachSettings[hns.RemoteSubnetRouteSettings](x.Policies) {
			if d := dump.Prefix(s.DestinationPrefix); d.IsValid() {
				n.Remote = append(n.Remote, d)
			}
		}
		for s := range hns.EachSettings[hns.NetAdapterNameSettings](x.Policies) {
			n.adapter = s.NetworkAdapterName
		}
		for s := range hns.EachSettings[hns.ProviderAddressSettings](x.Policies) {
			n.managementIP = dump.Addr(s.ProviderAddress)
		}
		if n.Name != "" {
			n.Place = r.placeOf(dump.Child(o, "Name").Line)
		}
		r.addNetwork(n)
	}
}

func (r *reader) addNetwork(n Network) {
	r.node.Printed = r.printed && n.complete && (r.node.Printed || len(r.node.Networks) == 0)
	r.node.list(ListNetworks, n.Place)
	r.node.Networks = append(r.node.Networks, n)
	r.addKind(ListNetworks)
}

func (r *reader) endpoint(o *yaml.Node) {
	for _, x := range r.parsed(o).Endpoints {
		e := Endpoint{ID: x.ID, Name: x.Name, Network: dump.Str(o, "VirtualNetworkName", "VirtualNetwork", "HostComputeNetwork"),
			Remote: x.Remote(), State: int(x.State), Port: switchPort(o), Place: r.placeOf(o.Line)}
		if all := x.Addresses(); len(all) > 0 {
			e.Address = all[0]
		}
		if c := dump.Child(o, "IPAddress"); c != nil {
			e.Place = r.placeOf(c.Line)
		} else if all := dump.Items(dump.Child(o, "IpConfigurations")); len(all) > 0 {
			e.Place = r.placeOf(all[0].Line)
		}
		e.Policies = len(x.Policies) > 0 && !slices.Contains(x.NotShown, "Policies")
		for _, p := range hns.PoliciesOf(x.Policies, hns.PolicyOutBoundNAT) {
			if len(p.NotShown) > 0 { // the list form does not show them
				e.NAT, e.Policies, e.Exceptions = false, false, nil
				break
			}
			e.NAT = true
			s, _ := hns.SettingsOf[hns.OutBoundNATSettings](p)
			for _, w := range s.Exceptions {
				if d := dump.Prefix(w); d.IsValid() {
					e.Exceptions = append(e.Exceptions, d)
				}
			}
		}
		r.ranges(cmp.Or(e.Name, e.ID), false, x.Policies, e.Place)
		r.addEndpoint(e)
	}
}

func (r *reader) addEndpoint(e Endpoint) {
	r.node.list(listEndpoints, e.Place)
	r.node.Endpoints = append(r.node.Endpoints, e)
	r.addKind(listEndpoints)
}

// hnsdiag takes what hnsdiag list all shows.
func (r *reader) hnsdiag(l dump.Lines) {
	items, sections := dump.Hnsdiag(l)
	for kind, at := range sections {
		switch kind {
		case "Network":
			r.node.list(ListNetworks, at)
			r.addKind(ListNetworks)
		case "Endpoint":
			r.node.list(listEndpoints, at)
			r.addKind(listEndpoints)
		}
	}
	for _, i := range items {
		switch i.Kind {
		case "Network":
			n := Network{ID: i.ID, Name: i.Name, Type: strings.ToLower(i.Fields["type"]), Place: i.Place}
			if p := dump.Prefix(i.Fields["subnet address"]); p.IsValid() {
				n.Subnets = []netip.Prefix{p}
			}
			r.addNetwork(n)
		case "Endpoint":
			r.addEndpoint(Endpoint{ID: i.ID, Name: i.Name, Address: dump.Addr(i.Fields["ip address"]), Network: i.Network, Place: i.Place})
		}
	}
}
