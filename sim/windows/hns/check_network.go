package hns

import (
	"net"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// canonicalNetworkType returns the spelling of HCN v2, or "".
func canonicalNetworkType(t NetworkType) NetworkType {
	for _, known := range networkTypes {
		if strings.EqualFold(string(known), string(t)) {
			return known
		}
	}
	return ""
}

// checkNetwork checks n and brings its type into the spelling of HCN v2.
func (s *Service) checkNetwork(n *Network, m *mistakes) {
	if t := canonicalNetworkType(n.Type); t == "" {
		m.add(ErrInvalidNetworkType, "there is no network type %q; there are %s", n.Type, joined(networkTypes))
	} else {
		n.Type = t
	}
	if n.ID != "" && s.Network(n.ID) != nil {
		m.add(ErrNetworkAlreadyExists, "the id %s is taken", n.ID)
	}
	if n.Name != "" && s.NetworkByName(n.Name) != nil {
		m.add(ErrNetworkAlreadyExists, "the name %q is taken", n.Name) // hns.network-name-unique
	}
	if n.Flags&NetworkDisableHostPort != 0 && !s.build.Has(builds.DisableHostPort) {
		m.add(ErrNotImplemented, "flag 1024: %s cannot do without the host port", s.build)
	}
	s.checkSubnets(n, m)
	s.newPolicyCheck(m, onNetwork, n).checkAll(n.Policies)
	for _, r := range n.MacPool.Ranges {
		a, err1 := net.ParseMAC(r.StartMacAddress)
		b, err2 := net.ParseMAC(r.EndMacAddress)
		if err1 != nil || err2 != nil || len(a) != 6 || len(b) != 6 || macNumber(a) > macNumber(b) {
			m.add(ErrInvalidNetwork, "MacPool range %s to %s is not a range of MAC addresses", r.StartMacAddress, r.EndMacAddress)
		}
	}
}

func (s *Service) checkSubnets(n *Network, m *mistakes) {
	count := 0
	for i := range n.Ipams {
		for j := range n.Ipams[i].Subnets {
			s.checkSubnet(n, &n.Ipams[i].Subnets[j], m)
			count++
		}
	}
	if n.Is(Overlay) && count == 0 {
		m.add(ErrInvalidNetwork, "an overlay network needs a subnet")
	}
}

func (s *Service) checkSubnet(n *Network, sub *Subnet, m *mistakes) {
	p, err := netip.ParsePrefix(sub.IpAddressPrefix)
	if err != nil {
		m.add(ErrInvalidPrefix, "subnet %q is not a prefix such as 10.244.1.0/24", sub.IpAddressPrefix)
		return
	}
	if p.Addr().Is6() && (n.Is(Overlay) || !s.build.Has(builds.IPv6DualStack)) {
		m.add(ErrNotImplemented, "subnet %s: %s networks of %s carry no IPv6", sub.IpAddressPrefix, n.Type, s.build)
	}
	for _, r := range sub.Routes {
		if r.NextHop == "" {
			continue
		}
		if hop, err := netip.ParseAddr(r.NextHop); err != nil {
			m.add(ErrInvalidIP, "subnet %s: next hop %q is not an address", sub.IpAddressPrefix, r.NextHop)
		} else if !p.Masked().Contains(hop) {
			m.add(ErrInvalidIP, "subnet %s: next hop %s is outside", sub.IpAddressPrefix, hop)
		}
	}
	s.newPolicyCheck(m, onSubnet, n).checkAll(sub.Policies)
	if n.Is(Overlay) && len(PoliciesOf(sub.Policies, PolicyVSID)) == 0 {
		m.add(ErrInvalidPolicy, "subnet %s of an overlay network has no VSID policy", sub.IpAddressPrefix) // hns.overlay-needs-vsid
	}
}
