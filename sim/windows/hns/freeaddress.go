package hns

import (
	"net/netip"
	"slices"
)

// freeAddresses finds the lowest free address of a network's subnet, without
// looking at each endpoint: a node may hold tens of thousands of them.
//
// Every address of the subnet below next is taken, or is in freed.
type freeAddresses struct {
	prefix netip.Prefix
	next   netip.Addr
	// freed holds addresses below next that an endpoint gave back, from high to
	// low. Some may be taken again.
	freed []netip.Addr
}

// free returns the lowest address of a subnet that neither HNS nor an endpoint of
// the network has. The first address of the subnet, its gateway and the last are
// HNS's.
func (s *Service) free(n *Network, sub Subnet) (a netip.Addr, ok bool) {
	p := sub.Prefix()
	f := s.freeOf[n.ID]
	if f == nil || f.prefix != p {
		f = &freeAddresses{prefix: p, next: p.Addr().Next()}
		s.freeOf[n.ID] = f
	}
	reserved := func(a netip.Addr) bool { return a == sub.Gateway() || a == lastAddr(p) }
	for len(f.freed) > 0 {
		a := f.freed[len(f.freed)-1]
		if !reserved(a) && !s.taken(n.ID, a) {
			return a, true
		}
		f.freed = f.freed[:len(f.freed)-1]
	}
	for ; f.next.IsValid() && p.Contains(f.next); f.next = f.next.Next() {
		if !reserved(f.next) && !s.taken(n.ID, f.next) {
			return f.next, true
		}
	}
	return netip.Addr{}, false
}

// taken reports whether an endpoint of the network has the address; remote ones count
// too.
func (s *Service) taken(network string, a netip.Addr) bool {
	return slices.ContainsFunc(s.byAddress[a], func(id string) bool {
		return normID(s.endpoints.get(id).HostComputeNetwork) == network
	})
}

// giveBack notes that an endpoint of the network no longer has the address.
func (s *Service) giveBack(network string, a netip.Addr) {
	f := s.freeOf[network]
	if f == nil || !f.prefix.Contains(a) || a == f.prefix.Addr() || f.next.IsValid() && !a.Less(f.next) {
		return
	}
	i, found := slices.BinarySearchFunc(f.freed, a, func(x, a netip.Addr) int { return a.Compare(x) })
	if !found {
		f.freed = slices.Insert(f.freed, i, a)
	}
}
