package nodedump

import (
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"net/netip"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
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
	// hnsdiag list all -d, and Service.Export of winlab, have one object with lists.
	if o.Kind == yaml.MappingNode && len(o.Content) > 0 {
		lists := false
		for i := 0; i+1 < len(o.Content); i += 2 {
			switch strings.ToLower(o.Content[i].Value) {
			case "networks":
				r.node.list(ListNetworks, r.at(o.Content[i].Line))
			case "endpoints":
				r.node.list(listEndpoints, r.at(o.Content[i].Line))
			case "namespaces", "loadbalancers", "policylists":
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
		if lists {
			return true
		}
	}
	switch {
	case dump.Str(o, "ID") == "" && dump.Str(o, "Name") == "":
		return false
	case dump.Child(o, "VirtualNetwork", "VirtualNetworkName", "HostComputeNetwork", "IpConfigurations") != nil && !dump.Has(o, "FrontendVIPs"):
		r.endpoint(o)
	case isNetworkType(dump.Str(o, "Type")) && selected(o):
		// Get-HnsNetwork | Select Name, Type, Id, ...
		n := Network{ID: dump.Str(o, "ID"), Name: dump.Str(o, "Name"), Type: strings.ToLower(dump.Str(o, "Type")), Place: r.at(o.Line)}
		if p := dump.Prefix(dump.Str(o, "AddressPrefix")); p.IsValid() {
			n.Subnets = []netip.Prefix{p}
		}
		r.node.list(ListNetworks, n.Place)
		r.node.Networks = append(r.node.Networks, n)
		r.as(ListNetworks)
	case isNetworkType(dump.Str(o, "Type")) && dump.Child(o, "Subnets", "Ipams", "ManagementIP", "MacPool", "MacPools", "LayeredOn") != nil:
		r.network(o)
	default:
		return false
	}
	return true
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

func (r *reader) network(o *yaml.Node) {
	n := Network{ID: dump.Str(o, "ID"), Name: dump.Str(o, "Name"), Type: strings.ToLower(dump.Str(o, "Type")), managementIP: dump.Addr(dump.Str(o, "ManagementIP")),
		adapter: dump.Str(o, "NetworkAdapterName"), complete: true, Place: r.at(o.Line)}
	subnet := func(s *yaml.Node) {
		if p := dump.Prefix(dump.Str(s, "AddressPrefix", "IpAddressPrefix")); p.IsValid() {
			n.Subnets = append(n.Subnets, p)
		}
	}
	for _, s := range dump.Items(dump.Child(o, "Subnets")) {
		subnet(s)
	}
	for _, ipam := range dump.Items(dump.Child(o, "Ipams")) {
		for _, s := range dump.Items(dump.Child(ipam, "Subnets")) {
			subnet(s)
		}
	}
	for _, p := range dump.Items(dump.Child(o, "Policies")) {
		settings := p
		if s := dump.Child(p, "Settings"); s != nil && s.Kind == yaml.MappingNode {
			settings = s
		}
		switch strings.ToLower(dump.Str(p, "Type")) {
		case "remotesubnetroute":
			if d := dump.Prefix(dump.Str(settings, "DestinationPrefix")); d.IsValid() {
				n.Remote = append(n.Remote, d)
			}
		case "netadaptername":
			n.adapter = dump.Str(settings, "NetworkAdapterName")
		case "provideraddress":
			n.managementIP = dump.Addr(dump.Str(settings, "ProviderAddress"))
		}
	}
	if n.Name != "" {
		n.Place = r.at(dump.Child(o, "Name").Line)
	}
	r.node.list(ListNetworks, n.Place)
	r.node.Networks = append(r.node.Networks, n)
	r.as(ListNetworks)
}

func (r *reader) endpoint(o *yaml.Node) {
	e := Endpoint{id: dump.Str(o, "ID"), name: dump.Str(o, "Name"), Address: dump.Addr(dump.Str(o, "IPAddress")), Network: dump.Str(o, "VirtualNetworkName", "VirtualNetwork", "HostComputeNetwork"),
		Remote: dump.Truth(dump.Str(o, "IsRemoteEndpoint")), Place: r.at(o.Line)}
	if c := dump.Child(o, "IPAddress"); c != nil {
		e.Place = r.at(c.Line)
	}
	if dump.Has(o, "HostComputeNetwork") {
		// EndpointFlagsRemoteEndpoint is 1 (hcsshim hcn/hcnendpoint.go).
		e.Remote = dump.Str(o, "Flags") == "1"
		for _, c := range dump.Items(dump.Child(o, "IpConfigurations")) {
			if !e.Address.IsValid() {
				e.Address = dump.Addr(dump.Str(c, "IpAddress"))
				e.Place = r.at(c.Line)
			}
		}
	}
	policies := dump.Child(o, "Policies")
	for _, p := range dump.Items(policies) {
		if p.Kind != yaml.MappingNode {
			continue
		}
		e.policies = true
		if !strings.EqualFold(dump.Str(p, "Type"), "OutBoundNAT") {
			continue
		}
		e.NAT = true
		settings := p
		if s := dump.Child(p, "Settings"); s != nil && s.Kind == yaml.MappingNode {
			settings = s
		}
		for _, x := range dump.Items(dump.Child(settings, "ExceptionList", "Exceptions")) {
			if x.Value == "System.Object[]" { // the list form does not show them
				e.NAT, e.policies, e.Exceptions = false, false, nil
				break
			}
			for w := range strings.FieldsSeq(x.Value) {
				if d := dump.Prefix(w); d.IsValid() {
					e.Exceptions = append(e.Exceptions, d)
				}
			}
		}
	}
	r.node.list(listEndpoints, e.Place)
	r.node.Endpoints = append(r.node.Endpoints, e)
	r.as(listEndpoints)
}

var hnsdiagItem = regexp.MustCompile(`^(Network|Endpoint)\s+:\s*([0-9A-Fa-f-]{36})\s*$`)

// hnsdiag reads hnsdiag list all, of which two forms are known: sections with
// headings (microsoft/SDN Kubernetes/windows/kubeadm/Kubecluster.md) and, on
// newer builds, blocks "Endpoint : GUID" with indented fields.
func (r *reader) hnsdiag(l dump.Lines) {
	what := ""
	for i := 0; i < len(l.Text); i++ {
		text := l.Text[i]
		if m := hnsdiagItem.FindStringSubmatch(text); m != nil {
			i = r.hnsdiagBlock(l, i, m[1], m[2])
			continue
		}
		switch strings.TrimSpace(text) {
		case "Networks:", "Endpoints:", "Namespaces:", "LoadBalancers:":
			what = strings.TrimSuffix(strings.TrimSpace(text), ":")
			if next := i + 1; next >= len(l.Text) || !strings.Contains(l.Text[next], "ID") {
				what = ""
				continue
			}
			switch what {
			case "Networks":
				r.node.list(ListNetworks, l.Place(i))
				r.as(ListNetworks)
			case "Endpoints":
				r.node.list(listEndpoints, l.Place(i))
				r.as(listEndpoints)
			}
			i++ // the headings
			continue
		case "":
			what = ""
			continue
		}
		f := strings.Fields(text)
		switch {
		case what == "Networks" && len(f) >= 2:
			r.node.Networks = append(r.node.Networks, Network{Name: strings.Join(f[:len(f)-1], " "), ID: f[len(f)-1], Place: l.Place(i)})
		case what == "Endpoints" && len(f) >= 3:
			r.node.Endpoints = append(r.node.Endpoints, Endpoint{name: strings.Join(f[:len(f)-2], " "), id: f[len(f)-2], Network: f[len(f)-1], Place: l.Place(i)})
		}
	}
}

func (r *reader) hnsdiagBlock(l dump.Lines, i int, kind, id string) int {
	at := i
	fields := map[string]string{}
	for i++; i < len(l.Text) && dump.Indent(l.Text[i]) > 0 && strings.Contains(l.Text[i], ":"); i++ {
		key, value, _ := strings.Cut(l.Text[i], ":")
		fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	if kind == "Network" {
		n := Network{ID: id, Name: fields["name"], Type: strings.ToLower(fields["type"]), Place: l.Place(at)}
		if p := dump.Prefix(fields["subnet address"]); p.IsValid() {
			n.Subnets = []netip.Prefix{p}
		}
		r.node.list(ListNetworks, n.Place)
		r.node.Networks = append(r.node.Networks, n)
		r.as(ListNetworks)
	} else {
		e := Endpoint{id: id, name: fields["name"], Address: dump.Addr(fields["ip address"]), Network: fields["virtual network name"], Place: l.Place(at)}
		r.node.list(listEndpoints, e.Place)
		r.node.Endpoints = append(r.node.Endpoints, e)
		r.as(listEndpoints)
	}
	return i - 1
}
