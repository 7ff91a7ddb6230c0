package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube"
)

// maxPodsInSubnet is how many addresses of its subnet a node holds for pods (AKS's
// default of 30 pods for each node with Azure CNI).
const maxPodsInSubnet = 30

// inSubnet is a plugin whose pods have addresses of the node's own subnet, which a
// cloud gives to the node's interface: azure-vnet, vpc-bridge.
type inSubnet struct{ *base }

func (a inSubnet) check(n *kube.Node) error {
	switch {
	case !n.Subnet.IsValid() || !n.Subnet.Contains(n.Address):
		return fmt.Errorf("node %s: its address %s must be in a subnet; %s gives pods addresses of it", n.Name, n.Address, a.o.Plugin)
	case !n.Gateway.IsValid():
		return fmt.Errorf("node %s has no gateway; %s gives it to pods", n.Name, a.o.Plugin)
	}
	return nil
}

// pool is the block of addresses after the node's own, without those of other nodes
// (cni.azure-addresses, cni.vpc-bridge-addresses). Blocks may overlap; lease gives no
// address twice.
func (a inSubnet) pool(c *kube.Cluster, n *kube.Node) (*pool, error) {
	if p := a.pools[n.Name]; p != nil {
		return p, nil
	}
	if err := a.check(n); err != nil {
		return nil, err
	}
	others := a.addressesOfNodes(c)
	end := last(n.Subnet)
	first, to := n.Address.Next(), netip.Addr{}
	for a, i := first, 0; i < maxPodsInSubnet && a != end && n.Subnet.Contains(a); a = a.Next() {
		if others[a] == "" {
			to = a
			i++
		}
	}
	if !to.IsValid() {
		return nil, errors.New("node " + n.Name + ": its subnet has no free address after the node's own, so there is none for pods")
	}
	p := newPool("node "+n.Name, netip.PrefixFrom(n.Subnet.Addr(), n.Subnet.Bits()), first, to, n.Gateway)
	p.reserve("the gateway", n.Gateway)
	p.nodes = others
	p.reserved = a.reserved
	a.pools[n.Name] = p
	return p, nil
}

// lease refuses an address that another node gave out already.
func (a inSubnet) lease(c *kube.Cluster, n *kube.Node, p *kube.Pod, taken func(netip.Addr) bool) (Lease, error) {
	pl, err := a.pool(c, n)
	if err != nil {
		return Lease{}, err
	}
	elsewhere := func(addr netip.Addr) string {
		for _, other := range c.Nodes {
			if q := a.pools[other.Name]; q != nil && q != pl && q.used[addr] != "" {
				return q.used[addr]
			}
		}
		return ""
	}
	if p.Address.IsValid() {
		if by := elsewhere(p.Address); by != "" {
			return Lease{}, fmt.Errorf("pod %s: requested IP address %s is not available: it is taken by %s", owner(p), p.Address, by)
		}
	}
	return pl.lease(owner(p), p.Address, func(addr netip.Addr) bool {
		return elsewhere(addr) != "" || taken != nil && taken(addr)
	})
}

// linux is the plugin's side on a Linux node, which answers for the addresses of its
// pods; what they send to outside these prefixes leaves with the node's address.
func (inSubnet) linux(c *kube.Cluster, n *kube.Node, more ...netip.Prefix) LinuxSetup {
	not := append(notMasqueraded(c.ClusterCIDRs), more...)
	if n.Subnet.IsValid() {
		not = append([]netip.Prefix{n.Subnet.Masked()}, not...)
	}
	return LinuxSetup{Forwarding: true, PodsInNodeSubnet: true, MasqueradeNot: dedupe(not)}
}

func dedupe(ps []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range ps {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
