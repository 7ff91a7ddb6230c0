package hns

import (
	"fmt"
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
		return nil, s.refusal(m, op)
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
	s.checkEndpoint(n, e, m)
	if err := s.refusal(m, op); err != nil {
		return nil, err
	}
	s.fillEndpoint(n, e)
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

// fillEndpoint adds what HNS adds to a new endpoint.
func (s *Service) fillEndpoint(n *Network, e *Endpoint) {
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

// takeLoopbackPorts follows hns.loopback-dsr-takes-ports.
func (s *Service) takeLoopbackPorts(e *Endpoint) {
	if !s.build.Quirk(builds.LoopbackDSRExhaustsPorts) {
		return
	}
	for v := range EachSettings[OutBoundNATSettings](e.Policies) {
		if len(v.Destinations) > 0 {
			for ok := true; ok; {
				_, ok = s.pool.take(loopbackOwner(e.ID), s.publishes)
			}
			return
		}
	}
}

func loopbackOwner(id string) string { return "loopbackDSR/" + id }

// DeleteEndpoint deletes an endpoint. Load balancers that name it stay
// (hns.endpoint-deletion-leaves-load-balancer).
func (s *Service) DeleteEndpoint(id string) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnDeleteEndpoint", "no endpoint has the id %s", id)
	}
	if ns := s.Namespace(e.HostComputeNamespace); ns != nil {
		s.dropResource(ns, "Endpoint", e.ID)
	}
	s.pool.release(loopbackOwner(e.ID))
	s.keepStale(e)
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

// nameAndID names an object in a message: "NAME (ID)", or only its id.
func nameAndID(name, id string) string {
	if name != "" {
		return fmt.Sprintf("%s (%s)", name, id)
	}
	return id
}
