package hns

import (
	"fmt"
	"net/netip"
	"strings"
)

// Snapshot is everything a Service holds, for a program that keeps it when it
// restarts. Unlike [Service.Export] it has what HCN v2 JSON does not: states,
// management addresses and the counters that ids and compartments come from.
// Origins are not kept.
type Snapshot struct {
	Counter       uint64
	Compartment   uint32
	Restarts      int
	Networks      []NetworkSnapshot      `json:",omitempty"`
	Endpoints     []EndpointSnapshot     `json:",omitempty"`
	Namespaces    []Namespace            `json:",omitempty"`
	LoadBalancers []LoadBalancerSnapshot `json:",omitempty"`
	Routes        []Route                `json:",omitempty"`
	// PortOwners says who holds which block of the node's ports, by number.
	PortOwners map[int]string `json:",omitempty"`
	// ManagementMACs are those of [Service.ManagementMACs].
	ManagementMACs []string `json:",omitempty"`
}

// LoadBalancerSnapshot is a load balancer with its port block.
type LoadBalancerSnapshot struct {
	V2    LoadBalancer
	Ports PortBlock `json:",omitzero"`
}

// NetworkSnapshot is a network with its fields of HNS v1. NextMAC is where the
// search for a free MAC address goes on, 0 for the start of the pool.
type NetworkSnapshot struct {
	V2                   Network
	ManagementIP         netip.Addr `json:",omitzero"`
	DNSServerCompartment uint32     `json:",omitempty"`
	NextMAC              uint64     `json:",omitempty"`
}

// EndpointSnapshot is an endpoint with its fields of HNS v1.
type EndpointSnapshot struct {
	V2                Endpoint
	State             EndpointState `json:",omitempty"`
	SharedContainers  []string      `json:",omitempty"`
	EnableInternalDNS bool          `json:",omitempty"`
	DisableICC        bool          `json:",omitempty"`
}

// Snapshot returns what the service holds. It shares memory with the service's
// objects, which never change once they are handed out.
func (s *Service) Snapshot() *Snapshot {
	s.Settle()
	p := &Snapshot{Counter: s.counter, Compartment: s.compartment, Restarts: s.restarts, ManagementMACs: s.managementMACs}
	for _, n := range s.networks.list(nil) {
		p.Networks = append(p.Networks, NetworkSnapshot{*n, n.ManagementIP, n.DNSServerCompartment, s.macs[n.ID]})
	}
	for _, e := range s.endpoints.list(nil) {
		p.Endpoints = append(p.Endpoints, EndpointSnapshot{*e, e.State, e.SharedContainers, e.EnableInternalDNS, e.DisableICC})
	}
	for _, n := range s.namespaces.list(nil) {
		p.Namespaces = append(p.Namespaces, *n)
	}
	for _, l := range s.loadBalancers.list(nil) {
		p.LoadBalancers = append(p.LoadBalancers, LoadBalancerSnapshot{*l, l.Ports})
	}
	for _, r := range s.routes.list(nil) {
		p.Routes = append(p.Routes, *r)
	}
	for i, owner := range s.pool.owner {
		if owner != "" {
			if p.PortOwners == nil {
				p.PortOwners = map[int]string{}
			}
			p.PortOwners[i] = owner
		}
	}
	return p
}

// Restore puts a snapshot into a service that holds nothing. Objects that do
// not fit together are an error, as with [Service.Load].
func (s *Service) Restore(p *Snapshot) error {
	s.Settle()
	if s.networks.len()+s.endpoints.len()+s.namespaces.len()+s.loadBalancers.len()+s.routes.len() > 0 {
		return fmt.Errorf("a snapshot can only be restored into a service without objects")
	}
	d := &Dump{Namespaces: p.Namespaces, Routes: p.Routes}
	for _, n := range p.Networks {
		v := n.V2
		v.ManagementIP, v.DNSServerCompartment = n.ManagementIP, n.DNSServerCompartment
		d.Networks = append(d.Networks, v)
	}
	for _, e := range p.Endpoints {
		v := e.V2
		v.State, v.SharedContainers, v.EnableInternalDNS, v.DisableICC = e.State, e.SharedContainers, e.EnableInternalDNS, e.DisableICC
		d.Endpoints = append(d.Endpoints, v)
	}
	if err := s.Load(d); err != nil {
		return err
	}
	clear(s.pool.owner)
	s.pool.full = 0
	for i, owner := range p.PortOwners {
		if i < 0 || i >= len(s.pool.owner) {
			return fmt.Errorf("port block %d of the snapshot is outside the node's port range of %d blocks", i, len(s.pool.owner))
		}
		s.pool.owner[i] = owner
		if vip, ok := strings.CutPrefix(owner, sharedOwner); ok {
			s.sharedPools[vip] = s.pool.block(i)
		}
	}
	for _, l := range p.LoadBalancers {
		v := l.V2.clone()
		if v.ID = normID(v.ID); v.ID == "" || s.LoadBalancer(v.ID) != nil {
			return fmt.Errorf("load balancer id %q is missing or given twice", v.ID)
		}
		v.Ports = l.Ports
		s.loadBalancers.put(v.ID, v)
		for _, f := range frontendKeys(v) {
			s.addFrontend(f, v.ID)
		}
		s.changed(Change{Kind: KindLoadBalancer, ID: v.ID, What: Created})
	}
	for _, n := range p.Networks {
		if n.NextMAC != 0 {
			s.macs[normID(n.V2.ID)] = n.NextMAC
		}
	}
	s.managementMACs = p.ManagementMACs
	s.counter, s.compartment, s.restarts = max(s.counter, p.Counter), max(s.compartment, p.Compartment), p.Restarts
	return nil
}
