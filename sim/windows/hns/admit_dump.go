package hns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Load restores the objects of a dump with their ids, as HNS does after a
// restart: what a node held is taken as it was, so neither the build's features
// nor HNS's checks apply. Objects that do not fit together are an error: an
// endpoint without its network, the same id twice, more load balancers than
// port blocks. A dump with one network may leave the network's id out of its
// endpoints.
func (s *Service) Load(d *Dump) error {
	s.Settle()
	var errs []error
	bad := func(o fmt.Stringer, format string, args ...any) {
		err := fmt.Errorf(format, args...)
		if at := o.String(); at != "" {
			err = fmt.Errorf("%s: %w", at, err)
		}
		errs = append(errs, err)
	}
	for _, in := range d.Networks {
		n := in.clone()
		if n.ID != "" && s.Network(n.ID) != nil {
			bad(n.Origin, "a network with the id %s exists already", n.ID)
			continue
		}
		if t := canonicalNetworkType(n.Type); t == "" {
			bad(n.Origin, "there is no network type %q; there are %s", n.Type, joined(networkTypes))
			continue
		}
		s.fillNetwork(n)
		s.networks.put(n.ID, n)
		s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Created})
	}
	for _, in := range d.Namespaces {
		if in.ID != "" && s.Namespace(in.ID) != nil {
			errs = append(errs, fmt.Errorf("a namespace with the id %s exists already", in.ID))
			continue
		}
		s.addNamespace(in.clone())
	}
	for _, in := range d.Endpoints {
		s.loadEndpoint(in.clone(), bad)
	}
	for _, in := range d.LoadBalancers {
		s.loadBalancer(in.clone(), bad)
	}
	s.findUnseen()
	for _, in := range d.Routes {
		r := in.clone()
		if r.ID == "" {
			r.ID = s.newID(KindRoute)
		}
		r.ID = normID(r.ID)
		for i, id := range r.HostComputeEndpoints {
			r.HostComputeEndpoints[i] = normID(id)
		}
		s.putRoute(r)
	}
	return errors.Join(errs...)
}

func (s *Service) loadEndpoint(e *Endpoint, bad func(fmt.Stringer, string, ...any)) {
	if e.HostComputeNetwork == "" && s.networks.len() == 1 {
		e.HostComputeNetwork = normID(first(s.networks.list(nil)).ID)
	}
	n := s.Network(e.HostComputeNetwork)
	switch {
	case n == nil && e.HostComputeNetwork == "":
		bad(e.Origin, "the endpoint names no network, and the dump holds %d: add the output of Get-HnsNetwork", s.networks.len())
		return
	case n == nil:
		bad(e.Origin, "network %s of the endpoint is not in the dump: add the output of Get-HnsNetwork", e.HostComputeNetwork)
		return
	case e.ID != "" && s.Endpoint(e.ID) != nil:
		bad(e.Origin, "an endpoint with the id %s exists already", e.ID)
		return
	}
	e.HostComputeNetwork = n.ID
	if e.ID == "" {
		e.ID = s.newID(KindEndpoint)
	}
	e.ID = normID(e.ID)
	e.MacAddress = canonicalMAC(e.MacAddress)
	if !fillPrefixes(n, e, bad) {
		return
	}
	s.loadAttachment(e)
	s.addEndpoint(e)
	s.takeLoopbackPorts(e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Created})
}

// fillPrefixes gives the addresses of a loaded endpoint the prefix length of their
// subnet where they have none.
func fillPrefixes(n *Network, e *Endpoint, bad func(fmt.Stringer, string, ...any)) bool {
	for i, c := range e.IpConfigurations {
		if !c.Prefix().IsValid() {
			bad(e.Origin, "%q is not an address", c.IpAddress)
			return false
		}
		if sub := subnetOf(n, c.Prefix().Addr()); c.PrefixLength == 0 && sub != nil && !e.Remote() {
			e.IpConfigurations[i].PrefixLength = uint8(sub.Prefix().Bits())
		}
	}
	return true
}

// loadAttachment puts a loaded endpoint into its namespace.
func (s *Service) loadAttachment(e *Endpoint) {
	id := e.HostComputeNamespace
	if id == "" && e.Compartment == hostCompartment {
		id = s.HostNamespace().ID
	}
	if id == "" {
		return
	}
	ns := s.Namespace(id)
	switch {
	case ns != nil:
	case e.Compartment == hostCompartment && first(s.namespaces.list(isHostDefault)) != nil:
		ns = s.HostNamespace()
	case e.Compartment == hostCompartment:
		ns = s.addNamespace(&Namespace{ID: id, Type: NamespaceHostDefault})
	default: // people leave out the list of namespaces
		ns = s.addNamespace(&Namespace{ID: id, Type: NamespaceHost, NamespaceId: e.Compartment})
	}
	e.HostComputeNamespace = ns.ID
	if !slices.ContainsFunc(ns.Endpoints(), func(r string) bool { return normID(r) == e.ID }) {
		ns = ns.clone()
		ns.Resources = append(ns.Resources, NamespaceResource{Type: "Endpoint", Data: NamespaceResourceData{Id: e.ID}})
		s.namespaces.put(ns.ID, ns)
	}
}

// InferHost finds the endpoints of the node itself where the dump does not say in
// which compartment an endpoint is, such as flannel's cbr0_ep: nothing else can
// be the gateway of the other endpoints of an l2bridge network
// (hns.gateway-endpoint-is-the-hosts). A notice names each.
func (d *Dump) InferHost() {
	known := map[string]bool{}
	for _, n := range d.Namespaces {
		known[normID(n.ID)] = true
	}
	gateways := map[netip.Addr]bool{}
	for _, e := range d.Endpoints {
		if g := e.Gateway(false); g.IsValid() && !e.Remote() {
			gateways[g] = true
		}
	}
	for i := range d.Endpoints {
		e := &d.Endpoints[i]
		if !e.Attached() || e.Compartment != 0 || known[normID(e.HostComputeNamespace)] || !gateways[e.Address(false)] ||
			len(e.SharedContainers) > 0 {
			continue
		}
		e.Compartment = hostCompartment
		what := label("endpoint", e.Name, e.ID)
		d.Notices = trace.AddNotice(d.Notices, trace.Notice{What: what, At: e.Origin,
			Why: "the dump does not show its compartment; it is the gateway of other endpoints, so winlab assumes the node's own compartment; Get-HnsNamespace shows it"})
	}
}

func isHostDefault(n *Namespace) bool { return n.Type == NamespaceHostDefault }

// HostEndpoints are the attached endpoints that are in the node's own compartment.
func (s *Service) HostEndpoints() []*Endpoint {
	return s.endpoints.list(func(e *Endpoint) bool {
		ns := s.Namespace(e.HostComputeNamespace)
		return e.Attached() && ns != nil && isHostDefault(ns)
	})
}

func (s *Service) loadBalancer(l *LoadBalancer, bad func(fmt.Stringer, string, ...any)) {
	if l.ID != "" && s.LoadBalancer(l.ID) != nil {
		bad(l.Origin, "a load balancer with the id %s exists already", l.ID)
		return
	}
	if l.ID == "" {
		l.ID = s.newID(KindLoadBalancer)
	}
	l.ID = normID(l.ID)
	for _, v := range append(slices.Clone(l.FrontendVIPs), l.SourceVIP) {
		if _, err := netip.ParseAddr(v); v != "" && err != nil {
			bad(l.Origin, "%q of the load balancer is not an address", v)
			return
		}
	}
	for i, id := range l.HostComputeEndpoints {
		l.HostComputeEndpoints[i] = normID(id)
	}
	if err := s.takeBlock("load", l); err != nil {
		bad(l.Origin, "%w", err)
		return
	}
	s.loadBalancers.put(l.ID, l)
	for _, f := range frontendKeys(l) {
		s.addFrontend(f, l.ID)
	}
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Created})
}

// Export returns everything the service holds as HCN v2 JSON, in the order of
// creation. ParseDump reads it.
func (s *Service) Export() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Networks      []*Network
		Endpoints     []*Endpoint
		Namespaces    []*Namespace
		LoadBalancers []*LoadBalancer
		Routes        []*Route
	}{
		notNil(s.networks.list(nil)), notNil(s.endpoints.list(nil)), notNil(s.namespaces.list(nil)),
		notNil(s.loadBalancers.list(nil)), notNil(s.routes.list(nil)),
	})
	return buf.Bytes(), err
}

func notNil[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
