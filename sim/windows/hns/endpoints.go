package hns

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// CreateEndpoint makes an endpoint on a network. HNS fills in what is missing:
// id, address (the first free one), prefix length and MAC address. All mistakes
// are reported at once.
func (s *Service) CreateEndpoint(in Endpoint) (*Endpoint, error) {
	const op = "hcnCreateEndpoint"
	e, m := in.clone(), &mistakes{}
	n := s.Network(e.HostComputeNetwork)
	if n == nil {
		m.add(ErrNetworkNotFound, "no network has the id %q", e.HostComputeNetwork)
		return nil, m.err(op)
	}
	e.HostComputeNetwork = n.ID
	if e.ID != "" && s.Endpoint(e.ID) != nil {
		m.add(ErrAlreadyExists, "the id %s is taken", e.ID)
	}
	if e.HostComputeNamespace != "" && s.Namespace(e.HostComputeNamespace) == nil {
		m.add(ErrElementNotFound, "no namespace has the id %s", e.HostComputeNamespace)
	}
	if len(e.IpConfigurations) == 0 {
		s.allocate(n, e, m)
	}
	for i := range e.IpConfigurations {
		s.checkAddress(n, e, &e.IpConfigurations[i], m)
	}
	if e.MacAddress != "" {
		if hw, err := net.ParseMAC(e.MacAddress); err != nil || len(hw) != 6 {
			m.add(ErrInvalidEndpoint, "MacAddress %q is no MAC address such as 0E-2A-0A-F4-01-05", e.MacAddress)
		}
		e.MacAddress = canonicalMAC(e.MacAddress)
	}
	for _, r := range e.Routes {
		if _, err := netip.ParseAddr(r.NextHop); r.NextHop != "" && err != nil {
			m.add(ErrInvalidIP, "route to %s: next hop %q is no address", r.DestinationPrefix, r.NextHop)
		}
		if _, err := netip.ParsePrefix(r.DestinationPrefix); r.DestinationPrefix != "" && err != nil {
			m.add(ErrInvalidPrefix, "route destination %q is no prefix", r.DestinationPrefix)
		}
	}
	s.newPolicyCheck(m, onEndpoint, n).all(e.Policies)
	s.checkPublished(e.ID, e.Policies, m)
	if err := m.err(op); err != nil {
		return nil, err
	}
	if e.ID == "" {
		e.ID = s.newID(KindEndpoint)
	}
	e.ID = normID(e.ID)
	if e.MacAddress == "" {
		e.MacAddress = s.nextMAC(n)
	}
	if e.SchemaVersion == (SchemaVersion{}) {
		e.SchemaVersion = SchemaVersion{Major: 2}
	}
	if e.State == StateUninitialized {
		e.State = StateCreated
	}
	ns := e.HostComputeNamespace
	e.HostComputeNamespace = ""
	s.addEndpoint(e)
	s.takeLoopbackPorts(e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Created})
	if ns != "" {
		if err := s.AttachEndpoint(e.ID, ns); err != nil {
			return nil, err
		}
	}
	return s.Endpoint(e.ID), nil
}

// checkAddress follows FactAddressOutside, FactReservedAddress, FactSameAddress
// and FactSameLocalAddress.
func (s *Service) checkAddress(n *Network, e *Endpoint, c *IpConfig, m *mistakes) {
	a, err := netip.ParseAddr(c.IpAddress)
	if err != nil {
		m.add(ErrInvalidIP, "%q is no address", c.IpAddress)
		return
	}
	if int(c.PrefixLength) > a.BitLen() {
		m.add(ErrInvalidPrefix, "%s: prefix length %d is longer than the address", a, c.PrefixLength)
	}
	if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
		m.add(ErrAddressInvalidReserved, "%s cannot be an endpoint's address", a)
		return
	}
	sub := subnetOf(n, a)
	if e.Remote() {
		if c.PrefixLength == 0 {
			c.PrefixLength = uint8(a.BitLen())
		}
		return
	}
	switch {
	case sub == nil && len(n.Subnets()) > 0:
		var all []string
		for _, s := range n.Subnets() {
			all = append(all, s.IpAddressPrefix)
		}
		m.add(ErrInvalidIP, "%s is in no subnet of network %s %v", a, n.Name, all)
		return
	case sub == nil:
		// A network without subnets (transparent with DHCP) takes any address.
		if c.PrefixLength == 0 {
			c.PrefixLength = uint8(a.BitLen())
		}
		return
	}
	p := sub.Prefix()
	if c.PrefixLength == 0 {
		c.PrefixLength = uint8(p.Bits())
	}
	if int(c.PrefixLength) == a.BitLen() && p.Bits() != a.BitLen() && !s.build.Has(builds.Slash32EndpointPrefixes) {
		m.add(ErrNotImplemented, "%s/%d: %s takes no endpoints with a full-length prefix", a, c.PrefixLength, s.build)
	}
	if p.Bits() < a.BitLen()-1 && (a == p.Addr() || a.Is4() && a == lastAddr(p)) {
		m.add(ErrAddressInvalidReserved, "%s is the first or last address of %s", a, p)
	}
	if a == sub.Gateway() && sub.Flags&SubnetDoNotReserveGateway == 0 {
		m.add(ErrAddressInvalidReserved, "%s is the gateway of %s", a, p)
	}
	for _, other := range s.EndpointsByAddress(a) {
		if !other.Remote() && normID(other.HostComputeNetwork) == n.ID && other.ID != normID(e.ID) {
			m.add(ErrAddressInvalidReserved, "%s is the address of endpoint %s", a, or(other.Name, other.ID))
		}
	}
}

// allocate gives the endpoint the first free address of the network's first
// static subnet.
func (s *Service) allocate(n *Network, e *Endpoint, m *mistakes) {
	if e.Remote() {
		m.add(ErrInvalidIP, "a remote endpoint needs an address")
		return
	}
	for _, ipam := range n.Ipams {
		if ipam.Type == "DHCP" {
			continue
		}
		for _, sub := range ipam.Subnets {
			p := sub.Prefix()
			if !p.IsValid() {
				continue
			}
			if a, ok := s.free(n, sub); ok {
				e.IpConfigurations = []IpConfig{{a.String(), uint8(p.Bits())}}
				return
			}
			m.add(ErrInvalidIP, "subnet %s has no free address", p)
			return
		}
	}
}

// checkPublished follows FactPortMappingTaken.
func (s *Service) checkPublished(self string, ps []Policy, m *mistakes) {
	if len(PoliciesOf(ps, PolicyPortMapping)) == 0 {
		return
	}
	taken := map[published]string{}
	for _, e := range s.endpoints.list(nil) {
		if e.ID == normID(self) {
			continue
		}
		for v := range EachSettings[PortMappingSettings](e.Policies) {
			taken[v.published()] = or(e.Name, e.ID)
		}
	}
	for v := range EachSettings[PortMappingSettings](ps) {
		if by, ok := taken[v.published()]; ok {
			m.add(ErrPortAlreadyExists, "port %d (protocol %d) is published by endpoint %s", v.ExternalPort, v.Protocol, by)
		}
		taken[v.published()] = "this one"
	}
}

// takeLoopbackPorts follows FactLoopbackPorts.
func (s *Service) takeLoopbackPorts(e *Endpoint) {
	if !s.build.Quirk("loopback-dsr-exhausts-ports") {
		return
	}
	for v := range EachSettings[OutBoundNATSettings](e.Policies) {
		if len(v.Destinations) > 0 {
			for s.pool.free() > 0 {
				s.pool.take(loopbackOwner(e.ID))
			}
			return
		}
	}
}

func loopbackOwner(id string) string { return "loopbackDSR/" + id }

// DeleteEndpoint deletes an endpoint. Load balancers that name it stay
// (FactDanglingBackend).
func (s *Service) DeleteEndpoint(id string) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnDeleteEndpoint", "no endpoint has the id %s", id)
	}
	if ns := s.Namespace(e.HostComputeNamespace); ns != nil {
		s.dropResource(ns, "Endpoint", e.ID)
	}
	s.pool.release(loopbackOwner(e.ID))
	s.removeEndpoint(e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Deleted})
	return nil
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func or(a, b string) string {
	if a != "" {
		return fmt.Sprintf("%s (%s)", a, b)
	}
	return b
}
