package hns

import (
	"net"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// checkEndpoint checks an endpoint that is to be on network n.
func (s *Service) checkEndpoint(n *Network, e *Endpoint, m *mistakes) {
	for i := range e.IpConfigurations {
		s.checkAddress(n, e, &e.IpConfigurations[i], m)
	}
	if e.MacAddress != "" {
		if hw, err := net.ParseMAC(e.MacAddress); err != nil || len(hw) != 6 {
			m.add(ErrInvalidEndpoint, "MacAddress %q is not a MAC address such as 0E-2A-0A-F4-01-05", e.MacAddress)
		}
		e.MacAddress = canonicalMAC(e.MacAddress)
	}
	for _, r := range e.Routes {
		if _, err := netip.ParseAddr(r.NextHop); r.NextHop != "" && err != nil {
			m.add(ErrInvalidIP, "route to %s: next hop %q is not an address", r.DestinationPrefix, r.NextHop)
		}
		if _, err := netip.ParsePrefix(r.DestinationPrefix); r.DestinationPrefix != "" && err != nil {
			m.add(ErrInvalidPrefix, "route destination %q is not a prefix", r.DestinationPrefix)
		}
	}
	s.newPolicyCheck(m, onEndpoint, n).checkAll(e.Policies)
	s.checkPublished(n, e.ID, e.Policies, m)
}

// checkAddress checks one address and fills in its prefix length. It follows
// hns.address-in-subnet.
func (s *Service) checkAddress(n *Network, e *Endpoint, c *IpConfig, m *mistakes) {
	a, err := netip.ParseAddr(c.IpAddress)
	if err != nil {
		m.add(ErrInvalidIP, "%q is not an address", c.IpAddress)
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
	if !e.Remote() && sub == nil && len(n.Subnets()) > 0 {
		var all []string
		for _, s := range n.Subnets() {
			all = append(all, s.IpAddressPrefix)
		}
		m.add(ErrInvalidIP, "%s is in no subnet of network %s %v", a, n.Name, all)
		return
	}
	if e.Remote() || sub == nil {
		// A network without subnets (transparent with DHCP) takes any address.
		if c.PrefixLength == 0 {
			c.PrefixLength = uint8(a.BitLen())
		}
		return
	}
	if c.PrefixLength == 0 {
		c.PrefixLength = uint8(sub.Prefix().Bits())
	}
	s.checkReserved(*sub, a, c.PrefixLength, m)
	s.checkTaken(n, e.ID, a, m)
}

// checkReserved follows hns.reserved-address.
func (s *Service) checkReserved(sub Subnet, a netip.Addr, length uint8, m *mistakes) {
	p := sub.Prefix()
	if int(length) == a.BitLen() && p.Bits() != a.BitLen() && !s.build.Has(builds.Slash32EndpointPrefixes) {
		m.add(ErrNotImplemented, "%s/%d: %s takes no endpoints with a full-length prefix", a, length, s.build)
	}
	if p.Bits() < a.BitLen()-1 && (a == p.Addr() || a.Is4() && a == lastAddr(p)) {
		m.add(ErrAddressInvalidReserved, "%s is the first or last address of %s", a, p)
	}
	if a == sub.Gateway() && sub.Flags&SubnetDoNotReserveGateway == 0 {
		m.add(ErrAddressInvalidReserved, "%s is the gateway of %s", a, p)
	}
}

// checkTaken follows hns.remote-and-local-same-address and hns.local-address-unique.
func (s *Service) checkTaken(n *Network, self string, a netip.Addr, m *mistakes) {
	for _, other := range s.EndpointsByAddress(a) {
		if !other.Remote() && normID(other.HostComputeNetwork) == n.ID && other.ID != normID(self) {
			m.add(ErrObjectExists, "%s is the address of endpoint %s", a, nameAndID(other.Name, other.ID))
		}
	}
}

// checkPublished follows hns.host-port-unique and hns.taken-host-port-code.
func (s *Service) checkPublished(n *Network, self string, ps []Policy, m *mistakes) {
	if len(PoliciesOf(ps, PolicyPortMapping)) == 0 {
		return
	}
	taken := map[published]string{}
	for _, e := range s.endpoints.list(nil) {
		if e.ID == normID(self) {
			continue
		}
		for v := range EachSettings[PortMappingSettings](e.Policies) {
			taken[v.published()] = nameAndID(e.Name, e.ID)
		}
	}
	for v := range EachSettings[PortMappingSettings](ps) {
		if by, ok := taken[v.published()]; ok {
			code := ErrPortAlreadyExists
			if n != nil && n.Is(NAT) {
				code = s.code(takenHostPort)
			}
			m.add(code, "port %d (protocol %d) is published by endpoint %s", v.ExternalPort, v.Protocol, by)
		}
		taken[v.published()] = "this one"
	}
}
