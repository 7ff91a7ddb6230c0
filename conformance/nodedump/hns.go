package nodedump

import (
	"net/netip"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// hnsObject takes an HNS network or endpoint, v1 or v2, out of a tree,
// however it was printed. Field names are those of hcsshim internal/hns and
// hcn.
func (r *reader) hnsObject(o *yaml.Node) bool {
	if out := child(o, "Output"); out != nil && has(o, "Success") {
		ok := false
		for _, e := range items(out) {
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
	case str(o, "ID") == "" && str(o, "Name") == "":
		return false
	case child(o, "VirtualNetwork", "VirtualNetworkName", "HostComputeNetwork", "IpConfigurations") != nil && !has(o, "FrontendVIPs"):
		r.endpoint(o)
	case isNetworkType(str(o, "Type")) && selected(o):
		// Get-HnsNetwork | Select Name, Type, Id, ...
		n := Network{ID: str(o, "ID"), Name: str(o, "Name"), Type: strings.ToLower(str(o, "Type")), Place: r.at(o.Line)}
		if p := prefix(str(o, "AddressPrefix")); p.IsValid() {
			n.Subnets = []netip.Prefix{p}
		}
		r.node.list(ListNetworks, n.Place)
		r.node.Networks = append(r.node.Networks, n)
		r.as(ListNetworks)
	case isNetworkType(str(o, "Type")) && child(o, "Subnets", "Ipams", "ManagementIP", "MacPool", "MacPools", "LayeredOn") != nil:
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
	return has(o, "Name", "Type")
}

func (r *reader) network(o *yaml.Node) {
	n := Network{ID: str(o, "ID"), Name: str(o, "Name"), Type: strings.ToLower(str(o, "Type")), managementIP: addr(str(o, "ManagementIP")),
		adapter: str(o, "NetworkAdapterName"), complete: true, Place: r.at(o.Line)}
	subnet := func(s *yaml.Node) {
		if p := prefix(str(s, "AddressPrefix", "IpAddressPrefix")); p.IsValid() {
			n.Subnets = append(n.Subnets, p)
		}
	}
	for _, s := range items(child(o, "Subnets")) {
		subnet(s)
	}
	for _, ipam := range items(child(o, "Ipams")) {
		for _, s := range items(child(ipam, "Subnets")) {
			subnet(s)
		}
	}
	for _, p := range items(child(o, "Policies")) {
		settings := p
		if s := child(p, "Settings"); s != nil && s.Kind == yaml.MappingNode {
			settings = s
		}
		switch strings.ToLower(str(p, "Type")) {
		case "remotesubnetroute":
			if d := prefix(str(settings, "DestinationPrefix")); d.IsValid() {
				n.Remote = append(n.Remote, d)
			}
		case "netadaptername":
			n.adapter = str(settings, "NetworkAdapterName")
		case "provideraddress":
			n.managementIP = addr(str(settings, "ProviderAddress"))
		}
	}
	if n.Name != "" {
		n.Place = r.at(child(o, "Name").Line)
	}
	r.node.list(ListNetworks, n.Place)
	r.node.Networks = append(r.node.Networks, n)
	r.as(ListNetworks)
}

func (r *reader) endpoint(o *yaml.Node) {
	e := Endpoint{id: str(o, "ID"), name: str(o, "Name"), Address: addr(str(o, "IPAddress")), Network: str(o, "VirtualNetworkName", "VirtualNetwork", "HostComputeNetwork"),
		Remote: truth(str(o, "IsRemoteEndpoint")), Place: r.at(o.Line)}
	if c := child(o, "IPAddress"); c != nil {
		e.Place = r.at(c.Line)
	}
	if has(o, "HostComputeNetwork") {
		// EndpointFlagsRemoteEndpoint is 1 (hcsshim hcn/hcnendpoint.go).
		e.Remote = str(o, "Flags") == "1"
		for _, c := range items(child(o, "IpConfigurations")) {
			if !e.Address.IsValid() {
				e.Address = addr(str(c, "IpAddress"))
				e.Place = r.at(c.Line)
			}
		}
	}
	policies := child(o, "Policies")
	for _, p := range items(policies) {
		if p.Kind != yaml.MappingNode {
			continue
		}
		e.policies = true
		if !strings.EqualFold(str(p, "Type"), "OutBoundNAT") {
			continue
		}
		e.NAT = true
		settings := p
		if s := child(p, "Settings"); s != nil && s.Kind == yaml.MappingNode {
			settings = s
		}
		for _, x := range items(child(settings, "ExceptionList", "Exceptions")) {
			if x.Value == "System.Object[]" { // the list form does not show them
				e.NAT, e.policies, e.Exceptions = false, false, nil
				break
			}
			for w := range strings.FieldsSeq(x.Value) {
				if d := prefix(w); d.IsValid() {
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
func (r *reader) hnsdiag(l lines) {
	what := ""
	for i := 0; i < len(l.text); i++ {
		text := l.text[i]
		if m := hnsdiagItem.FindStringSubmatch(text); m != nil {
			i = r.hnsdiagBlock(l, i, m[1], m[2])
			continue
		}
		switch strings.TrimSpace(text) {
		case "Networks:", "Endpoints:", "Namespaces:", "LoadBalancers:":
			what = strings.TrimSuffix(strings.TrimSpace(text), ":")
			if next := i + 1; next >= len(l.text) || !strings.Contains(l.text[next], "ID") {
				what = ""
				continue
			}
			switch what {
			case "Networks":
				r.node.list(ListNetworks, l.place(i))
				r.as(ListNetworks)
			case "Endpoints":
				r.node.list(listEndpoints, l.place(i))
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
			r.node.Networks = append(r.node.Networks, Network{Name: strings.Join(f[:len(f)-1], " "), ID: f[len(f)-1], Place: l.place(i)})
		case what == "Endpoints" && len(f) >= 3:
			r.node.Endpoints = append(r.node.Endpoints, Endpoint{name: strings.Join(f[:len(f)-2], " "), id: f[len(f)-2], Network: f[len(f)-1], Place: l.place(i)})
		}
	}
}

func (r *reader) hnsdiagBlock(l lines, i int, kind, id string) int {
	at := i
	fields := map[string]string{}
	for i++; i < len(l.text) && indent(l.text[i]) > 0 && strings.Contains(l.text[i], ":"); i++ {
		key, value, _ := strings.Cut(l.text[i], ":")
		fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	if kind == "Network" {
		n := Network{ID: id, Name: fields["name"], Type: strings.ToLower(fields["type"]), Place: l.place(at)}
		if p := prefix(fields["subnet address"]); p.IsValid() {
			n.Subnets = []netip.Prefix{p}
		}
		r.node.list(ListNetworks, n.Place)
		r.node.Networks = append(r.node.Networks, n)
		r.as(ListNetworks)
	} else {
		e := Endpoint{id: id, name: fields["name"], Address: addr(fields["ip address"]), Network: fields["virtual network name"], Place: l.place(at)}
		r.node.list(listEndpoints, e.Place)
		r.node.Endpoints = append(r.node.Endpoints, e)
		r.as(listEndpoints)
	}
	return i - 1
}
