package cni

import (
	"fmt"
	"net/netip"
)

// pool gives out the addresses of one node, as host-local does: one after the
// other, beginning again at the first when the last was given. What is free
// depends only on the order of the calls.
type pool struct {
	who      string
	prefix   netip.Prefix // carries the prefix length of the result
	from, to netip.Addr
	gateway  netip.Addr
	used     map[netip.Addr]string
	// reserved are addresses that are never assigned, the same for the pools of all nodes.
	reserved map[netip.Addr]bool
	// nodes are addresses of nodes, where pods have some of the same subnet.
	nodes   map[netip.Addr]string
	byOwner map[string]netip.Addr
	last    netip.Addr
}

func newPool(who string, prefix netip.Prefix, from, to, gateway netip.Addr) *pool {
	return &pool{
		who: who, prefix: prefix, from: from, to: to, gateway: gateway,
		used: map[netip.Addr]string{}, byOwner: map[string]netip.Addr{},
	}
}

// ownerOf says who has an address; "" for nobody.
func (p *pool) ownerOf(a netip.Addr) string {
	switch by := p.used[a]; {
	case by != "":
		return by
	case p.nodes[a] != "":
		return "node " + p.nodes[a]
	case p.reserved[a]:
		return "reserved"
	}
	return ""
}

// reserve keeps addresses from being given out.
func (p *pool) reserve(why string, addrs ...netip.Addr) {
	for _, a := range addrs {
		if p.used[a] == "" {
			p.used[a] = why
		}
	}
}

// lease gives owner an address: the one that it has, the one that it wants, or
// the next free one.
func (p *pool) lease(owner string, want netip.Addr, taken func(netip.Addr) bool) (Lease, error) {
	if a, ok := p.byOwner[owner]; ok && (!want.IsValid() || want == a) {
		return p.leaseOf(a), nil
	}
	if want.IsValid() {
		if err := p.check(owner, want); err != nil {
			return Lease{}, err
		}
		p.take(owner, want)
		return p.leaseOf(want), nil
	}
	a, ok := p.next(taken)
	if !ok {
		return Lease{}, fmt.Errorf("pod %s: error while executing IPAM addition: no IP addresses available in range set: %s-%s (%s)", owner,
			p.from, p.to, p.who)
	}
	p.take(owner, a)
	p.last = a
	return p.leaseOf(a), nil
}

// check refuses an address that somebody wants and cannot have.
func (p *pool) check(owner string, want netip.Addr) error {
	switch by := p.ownerOf(want); {
	case !p.prefix.Contains(want):
		return fmt.Errorf("pod %s: requested IP address %s is not available in range set %s-%s (%s)", owner, want, p.from, p.to, p.who)
	case by != "":
		return fmt.Errorf("pod %s: requested IP address %s is not available: it is taken by %s", owner, want, by)
	case want == p.prefix.Masked().Addr() || want == last(p.prefix):
		return fmt.Errorf("pod %s: requested IP address %s is the first or last of %s", owner, want, p.prefix)
	}
	return nil
}

// next is the free address after the last one given, beginning again at the first.
func (p *pool) next(taken func(netip.Addr) bool) (netip.Addr, bool) {
	start := p.from
	if p.last.IsValid() && p.last.Less(p.to) {
		start = p.last.Next()
	}
	for a, first := start, true; first || a != start; first = false {
		if p.ownerOf(a) == "" && (taken == nil || !taken(a)) {
			return a, true
		}
		if a = a.Next(); p.to.Less(a) {
			a = p.from
		}
	}
	return netip.Addr{}, false
}

func (p *pool) take(owner string, a netip.Addr) {
	p.used[a] = owner
	p.byOwner[owner] = a
}

func (p *pool) leaseOf(a netip.Addr) Lease {
	return Lease{Prefix: netip.PrefixFrom(a, p.prefix.Bits()), Gateway: p.gateway}
}

// release gives an address back, after HNS refused the endpoint.
func (p *pool) release(owner string) {
	delete(p.used, p.byOwner[owner])
	delete(p.byOwner, owner)
}
