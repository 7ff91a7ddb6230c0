package hns

import (
	"crypto/sha1"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// canonicalNetworkType returns the spelling of HCN v2, or "".
func canonicalNetworkType(t string) string {
	for _, known := range strings.Split(networkTypeList, ", ") {
		if strings.EqualFold(known, t) {
			return known
		}
	}
	return ""
}

// CreateNetwork makes a network. HNS fills in the id, the MAC pool, the
// management address and, for an overlay network, the distributed router's MAC
// address. All mistakes are reported at once.
func (s *Service) CreateNetwork(in Network) (*Network, error) {
	const op = "hcnCreateNetwork"
	n, m := in.clone(), &mistakes{}
	if t := canonicalNetworkType(n.Type); t == "" {
		m.add(ErrInvalidNetworkType, "there is no network type %q; there are %s", n.Type, networkTypeList)
	} else {
		n.Type = t
	}
	if n.ID != "" && s.Network(n.ID) != nil {
		m.add(ErrNetworkAlreadyExists, "the id %s is taken", n.ID)
	}
	if n.Name != "" && s.NetworkByName(n.Name) != nil {
		m.add(ErrNetworkAlreadyExists, "the name %q is taken", n.Name) // FactNetworkName
	}
	if n.Flags&NetworkDisableHostPort != 0 && !s.build.Has(builds.DisableHostPort) {
		m.add(ErrNotImplemented, "flag 1024: %s cannot do without the host port", s.build)
	}
	s.checkSubnets(n, m)
	s.newPolicyCheck(m, onNetwork, n).all(n.Policies)
	for i := range n.MacPool.Ranges {
		r := &n.MacPool.Ranges[i]
		a, err1 := net.ParseMAC(r.StartMacAddress)
		b, err2 := net.ParseMAC(r.EndMacAddress)
		if err1 != nil || err2 != nil || len(a) != 6 || len(b) != 6 || macNumber(a) > macNumber(b) {
			m.add(ErrInvalidNetwork, "MacPool range %s to %s is no range of MAC addresses", r.StartMacAddress, r.EndMacAddress)
		}
	}
	if err := m.err(op); err != nil {
		return nil, err
	}
	s.fillNetwork(n)
	s.networks.put(n.ID, n)
	s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Created})
	return n, nil
}

func (s *Service) checkSubnets(n *Network, m *mistakes) {
	count := 0
	for i := range n.Ipams {
		for j := range n.Ipams[i].Subnets {
			sub := &n.Ipams[i].Subnets[j]
			count++
			p, err := netip.ParsePrefix(sub.IpAddressPrefix)
			if err != nil {
				m.add(ErrInvalidPrefix, "subnet %q is no prefix such as 10.244.1.0/24", sub.IpAddressPrefix)
				continue
			}
			if p.Addr().Is6() && (n.Is(Overlay) || !s.build.Has(builds.IPv6DualStack)) {
				m.add(ErrNotImplemented, "subnet %s: %s networks of %s carry no IPv6", sub.IpAddressPrefix, n.Type, s.build)
			}
			for _, r := range sub.Routes {
				if r.NextHop == "" {
					continue
				}
				if hop, err := netip.ParseAddr(r.NextHop); err != nil {
					m.add(ErrInvalidIP, "subnet %s: next hop %q is no address", sub.IpAddressPrefix, r.NextHop)
				} else if !p.Masked().Contains(hop) {
					m.add(ErrInvalidIP, "subnet %s: next hop %s is outside", sub.IpAddressPrefix, hop)
				}
			}
			s.newPolicyCheck(m, onSubnet, n).all(sub.Policies)
			if n.Is(Overlay) && len(PoliciesOf(sub.Policies, PolicyVSID)) == 0 {
				m.add(ErrInvalidPolicy, "subnet %s of an overlay network has no VSID policy", sub.IpAddressPrefix) // FactOverlayVSID
			}
		}
	}
	if n.Is(Overlay) && count == 0 {
		m.add(ErrInvalidNetwork, "an overlay network needs a subnet")
	}
}

// fillNetwork adds what HNS adds to a new network.
func (s *Service) fillNetwork(n *Network) {
	if n.ID == "" {
		n.ID = s.newID(KindNetwork)
	} else {
		n.ID = normID(n.ID)
	}
	if n.SchemaVersion == (SchemaVersion{}) {
		n.SchemaVersion = SchemaVersion{Major: 2}
	}
	if !n.ManagementIP.IsValid() && n.Is(L2Bridge, L2Tunnel, Overlay, Transparent) {
		n.ManagementIP = s.opts.ManagementIP
	}
	h := sha1.Sum([]byte("macpool/" + n.ID))
	if len(n.MacPool.Ranges) == 0 {
		// HNS takes 4,096 addresses under Microsoft's prefix (dumps of Get-HnsNetwork).
		// 00-15-5D-00 is left to the adapters of machines.
		if h[0] == 0 {
			h[0] = 0xff
		}
		n.MacPool.Ranges = []MacRange{{
			fmt.Sprintf("00-15-5D-%02X-%X0-00", h[0], h[1]&0xf), fmt.Sprintf("00-15-5D-%02X-%XF-FF", h[0], h[1]&0xf),
		}}
	}
	if n.Is(Overlay) && n.DrMacAddress() == "" { // FactDrMac
		n.Policies = append(n.Policies, NewPolicy(
			DrMacAddressSettings{Address: fmt.Sprintf("00-15-5D-%02X-%02X-%02X", h[2], h[3], h[4])}))
	}
}

// DeleteNetwork deletes a network and its endpoints.
func (s *Service) DeleteNetwork(id string) error {
	n := s.Network(id)
	if n == nil {
		return ErrNetworkNotFound.withf("hcnDeleteNetwork", "no network has the id %s", id)
	}
	for _, e := range s.EndpointsOf(n.ID) { // FactCascade
		if err := s.DeleteEndpoint(e.ID); err != nil {
			return err
		}
	}
	s.networks.remove(n.ID)
	delete(s.macs, n.ID)
	delete(s.freeOf, n.ID)
	s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Deleted})
	return nil
}

// nextMAC takes the next free address of the network's pool.
func (s *Service) nextMAC(n *Network) string {
	for _, r := range n.MacPool.Ranges {
		first, err1 := net.ParseMAC(r.StartMacAddress)
		last, err2 := net.ParseMAC(r.EndMacAddress)
		if err1 != nil || err2 != nil || len(first) != 6 || len(last) != 6 {
			continue
		}
		for v := max(macNumber(first), s.macs[n.ID]); v <= macNumber(last); v++ {
			if s.usedMACs[formatMAC(v)] == 0 {
				s.macs[n.ID] = v + 1
				return formatMAC(v)
			}
		}
	}
	return ""
}

func macNumber(hw net.HardwareAddr) uint64 {
	var v uint64
	for _, b := range hw {
		v = v<<8 | uint64(b)
	}
	return v
}

func formatMAC(v uint64) string {
	return fmt.Sprintf("%02X-%02X-%02X-%02X-%02X-%02X", byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// canonicalMAC writes a MAC address as HNS prints it, or returns it unchanged
// when it is malformed.
func canonicalMAC(s string) string {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return s
	}
	return formatMAC(macNumber(hw))
}

// subnetOf returns the subnet of the network that holds the address, or nil.
func subnetOf(n *Network, a netip.Addr) *Subnet {
	subnets := n.Subnets()
	i := slices.IndexFunc(subnets, func(s Subnet) bool { p := s.Prefix(); return p.IsValid() && p.Contains(a) })
	if i < 0 {
		return nil
	}
	return &subnets[i]
}
