package hns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Add takes the objects of another dump of the same node. An object that both
// have is one: people save the same list in several forms, and HNS v1 and HCN
// v2 show different fields of it. What the first lacks is filled in from the
// second; where they disagree, the first counts, and a notice says so.
func (d *Dump) Add(o *Dump) {
	m := merger{d}
	for _, n := range o.Networks {
		m.network(n)
	}
	for _, e := range o.Endpoints {
		m.endpoint(e)
	}
	for _, n := range o.Namespaces {
		m.namespace(n)
	}
	for _, l := range o.LoadBalancers {
		m.loadBalancer(l)
	}
	for _, r := range o.Routes {
		if i := sameID(d.Routes, r.ID, func(r *Route) string { return r.ID }); i < 0 {
			d.Routes = append(d.Routes, r)
		}
	}
	for _, n := range o.Notices {
		d.Notices = trace.AddNotice(d.Notices, n)
	}
	d.Ignored = append(d.Ignored, o.Ignored...)
	slices.Sort(d.Ignored)
	d.Ignored = slices.Compact(d.Ignored)
}

// merger puts objects into a dump.
type merger struct{ d *Dump }

// sameID is the index of the object with an id, -1 when there is none or the id is empty.
func sameID[T any](all []T, id string, of func(*T) string) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(all, func(x T) bool { return normID(of(&x)) == normID(id) })
}

// differ notes that two files show an object differently.
func (m merger) differ(what string, first, second *trace.Origin, field string) {
	m.d.Notices = trace.AddNotice(m.d.Notices, trace.Notice{What: what, At: second,
		Why: fmt.Sprintf("its %s differ from those in %s, which takes precedence; collect all files at the same time", field, first.Place())})
}

func (m merger) network(n Network) {
	i := sameID(m.d.Networks, n.ID, func(n *Network) string { return n.ID })
	if i < 0 {
		m.d.Networks = append(m.d.Networks, n)
		return
	}
	old := &m.d.Networks[i]
	if !old.ManagementIP.IsValid() {
		old.ManagementIP = n.ManagementIP
	}
	if old.DNSServerCompartment == 0 {
		old.DNSServerCompartment = n.DNSServerCompartment
	}
	if len(old.Extensions) == 0 {
		old.Extensions = n.Extensions
	}
	whole := len(old.NotShown) > 0 && len(n.NotShown) == 0 && len(n.Ipams) > 0
	if len(old.Ipams) == 0 || whole {
		old.Ipams, old.NotShown = n.Ipams, n.NotShown
	}
	if len(old.MacPool.Ranges) == 0 {
		old.MacPool = n.MacPool
	}
	if len(n.Policies) > 0 && len(old.Policies) == 0 || whole || hidden(old.Policies) && !hidden(n.Policies) {
		old.Policies = n.Policies
	} else if len(n.Policies) > 0 && !samePolicies(old.Policies, n.Policies) {
		m.differ(label("network", n.Name, n.ID), old.Origin, n.Origin, "policies")
	}
}

func (m merger) endpoint(e Endpoint) {
	i := sameID(m.d.Endpoints, e.ID, func(e *Endpoint) string { return e.ID })
	if i < 0 {
		m.d.Endpoints = append(m.d.Endpoints, e)
		return
	}
	old := &m.d.Endpoints[i]
	switch {
	case len(e.Policies) > 0 && len(old.Policies) == 0, (hidden(old.Policies) || len(old.NotShown) > 0) && !hidden(e.Policies) &&
		len(e.NotShown) == 0:
		old.Policies, old.NotShown = e.Policies, e.NotShown
	case len(e.Policies) > 0 && !samePolicies(old.Policies, e.Policies):
		m.differ(label("endpoint", e.Name, e.ID), old.Origin, e.Origin, "policies")
	}
	// Only HNS v1 shows a state; HCN v2 shows the namespace.
	if e.Stated && !old.Stated {
		old.State, old.Stated = e.State, true
	}
	for _, f := range []struct{ to, from *string }{{&old.HostComputeNamespace, &e.HostComputeNamespace},
		{&old.HostComputeNetwork, &e.HostComputeNetwork}, {&old.MacAddress, &e.MacAddress}, {&old.Name, &e.Name}} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	if old.Compartment == 0 {
		old.Compartment = e.Compartment
	}
	if len(old.SharedContainers) == 0 {
		old.SharedContainers = e.SharedContainers
	}
	if len(old.IpConfigurations) == 0 {
		old.IpConfigurations = e.IpConfigurations
	}
	if len(old.Routes) == 0 {
		old.Routes = e.Routes
	}
	old.Flags |= e.Flags
}

func (m merger) namespace(n Namespace) {
	i := sameID(m.d.Namespaces, n.ID, func(n *Namespace) string { return n.ID })
	if i < 0 {
		m.d.Namespaces = append(m.d.Namespaces, n)
		return
	}
	old := &m.d.Namespaces[i]
	if old.NamespaceId == 0 {
		old.NamespaceId = n.NamespaceId
	}
	if n.Type == NamespaceHostDefault {
		old.Type = n.Type
	}
	if len(old.Resources) == 0 {
		old.Resources = n.Resources
	}
}

func (m merger) loadBalancer(l LoadBalancer) {
	i := sameID(m.d.LoadBalancers, l.ID, func(l *LoadBalancer) string { return l.ID })
	if i < 0 {
		m.d.LoadBalancers = append(m.d.LoadBalancers, l)
		return
	}
	old := &m.d.LoadBalancers[i]
	if old.NotReady == "" {
		old.NotReady = l.NotReady
	}
	if !slices.Equal(normIDs(old.HostComputeEndpoints), normIDs(l.HostComputeEndpoints)) {
		m.differ("load balancer "+l.ID, old.Origin, l.Origin, "endpoints")
	}
	// HNS v1 shows fewer flags than HCN v2.
	old.Flags |= l.Flags
	for k := range old.PortMappings {
		if k < len(l.PortMappings) && old.PortMappings[k].ExternalPort == l.PortMappings[k].ExternalPort {
			old.PortMappings[k].Flags |= l.PortMappings[k].Flags
			old.PortMappings[k].DistributionType = max(old.PortMappings[k].DistributionType, l.PortMappings[k].DistributionType)
		}
	}
}

func normIDs(ids []string) []string {
	var all []string
	for _, id := range ids {
		all = append(all, normID(id))
	}
	slices.Sort(all)
	return all
}

// hidden reports whether a dump cut settings of a policy off.
func hidden(ps []Policy) bool {
	return slices.ContainsFunc(ps, func(p Policy) bool { return len(p.NotShown) > 0 })
}

// samePolicies compares policies by what they mean, in their order: HNS v1 and
// HCN v2 spell them differently.
func samePolicies(a, b []Policy) bool {
	key := func(ps []Policy) []string {
		var all []string
		for _, p := range ps {
			if hasSettings(p.typ) {
				all = append(all, fmt.Sprintf("%s %v", strings.ToLower(string(p.typ)), p.settings))
			}
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(key(a), key(b))
}

// Hidden are what a lab cannot do without and the dump does not show, as errors
// with their places: policies of networks and endpoints, the VSID of an overlay
// network that has endpoints.
func (d *Dump) Hidden() []error {
	var errs []error
	policies := func(at *trace.Origin, fields []string, what, cmdlet string) {
		if slices.Contains(fields, "Policies") {
			errs = append(errs, fmt.Errorf("%s:%d:1: not all policies of %s are shown: %s", at.File, at.Line, what,
				strings.ReplaceAll(CutHint, "HnsEndpoint", cmdlet)))
		}
	}
	for _, n := range d.Networks {
		policies(n.Origin, n.NotShown, label("network", n.Name, n.ID), "HnsNetwork")
	}
	for _, e := range d.Endpoints {
		policies(e.Origin, e.NotShown, label("endpoint", e.Name, e.ID), "HnsEndpoint")
	}
	for _, n := range d.Networks {
		if _, ok := n.VSID(); ok || !n.Is(Overlay) || len(n.NotShown) == 0 {
			continue
		}
		if slices.ContainsFunc(d.Endpoints, func(e Endpoint) bool { return normID(e.HostComputeNetwork) == normID(n.ID) && !e.Remote() }) {
			errs = append(errs, fmt.Errorf("%s:%d:1: the policies of the subnets of network %s, which hold its VSID, were cut off: %s",
				n.Origin.File, n.Origin.Line, n.Name, strings.ReplaceAll(CutHint, "HnsEndpoint", "HnsNetwork")))
		}
	}
	return errs
}

// Remove takes the object with an id out of the dump.
func (d *Dump) Remove(id string) {
	id = normID(id)
	d.Networks = slices.DeleteFunc(d.Networks, func(x Network) bool { return normID(x.ID) == id })
	d.Endpoints = slices.DeleteFunc(d.Endpoints, func(x Endpoint) bool { return normID(x.ID) == id })
	d.LoadBalancers = slices.DeleteFunc(d.LoadBalancers, func(x LoadBalancer) bool { return normID(x.ID) == id })
	d.Routes = slices.DeleteFunc(d.Routes, func(x Route) bool { return normID(x.ID) == id })
}

// IDs are the ids of all objects but namespaces; those without an id, which are
// requests and no objects yet, are taken out.
func (d *Dump) IDs() []string {
	d.Remove("")
	var all []string
	for _, x := range d.Networks {
		all = append(all, x.ID)
	}
	for _, x := range d.Endpoints {
		all = append(all, x.ID)
	}
	for _, x := range d.LoadBalancers {
		all = append(all, x.ID)
	}
	for _, x := range d.Routes {
		all = append(all, x.ID)
	}
	return all
}
