package hns

import (
	"crypto/sha1"
	"fmt"
	"net/netip"
	"slices"
)

// CreateNetwork makes a network. HNS fills in the id, the MAC pool, the
// management address and, for an overlay network, the distributed router's MAC
// address. All mistakes are reported at once.
func (s *Service) CreateNetwork(in Network) (*Network, error) {
	const op = "hcnCreateNetwork"
	n, m := in.clone(), &mistakes{}
	s.checkNetwork(n, m)
	if err := m.err(op); err != nil {
		return nil, err
	}
	s.fillNetwork(n)
	s.networks.put(n.ID, n)
	s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Created})
	return n, nil
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
	if n.Is(Overlay) && n.drMacAddress() == "" { // hns.overlay-dr-mac
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
	for _, e := range s.EndpointsOf(n.ID) { // hns.network-deletion-cascades
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

// subnetOf returns the subnet of the network that holds the address, or nil.
func subnetOf(n *Network, a netip.Addr) *Subnet {
	subnets := n.Subnets()
	i := slices.IndexFunc(subnets, func(s Subnet) bool { p := s.Prefix(); return p.IsValid() && p.Contains(a) })
	if i < 0 {
		return nil
	}
	return &subnets[i]
}
