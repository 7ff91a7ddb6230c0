package hns

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// CreateLoadBalancer makes a load balancer. One without DSR takes a block of the
// node's ports.
func (s *Service) CreateLoadBalancer(in LoadBalancer) (*LoadBalancer, error) {
	const op = "hcnCreateLoadBalancer"
	l, m := in.clone(), &mistakes{}
	if l.ID != "" && s.LoadBalancer(l.ID) != nil {
		m.add(ErrAlreadyExists, "the id %s is taken", l.ID)
	}
	s.checkLoadBalancer(l, "", m)
	if err := s.refusal(m, op); err != nil {
		return nil, err
	}
	if l.ID == "" {
		l.ID = s.newID(KindLoadBalancer)
	}
	l.ID = normID(l.ID)
	if err := s.takeBlock(op, l); err != nil {
		return nil, err
	}
	if l.SchemaVersion == (SchemaVersion{}) {
		l.SchemaVersion = SchemaVersion{Major: 2}
	}
	s.loadBalancers.put(l.ID, l)
	for _, f := range frontendKeys(l) {
		s.addFrontend(f, l.ID)
	}
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Created})
	return l, nil
}

// takeBlock gives a load balancer without DSR its ports (hns.port-block-per-load-balancer,
// hns.port-pool-sharing).
func (s *Service) takeBlock(op string, l *LoadBalancer) error {
	l.Ports = PortBlock{}
	if l.DSR() {
		return nil
	}
	share := s.opts.SharePortPools && s.build.Has(builds.PortPoolSharing)
	if b, ok := s.sharedPools[l.SourceVIP]; ok && share {
		l.Ports = b
		return nil
	}
	owner := blockOwner(l)
	if share {
		owner = sharedOwner + l.SourceVIP
	}
	b, ok := s.pool.take(owner, func(b PortBlock) bool {
		return s.publishes(b) || slices.ContainsFunc(frontendKeys(l), func(f frontendKey) bool { return f.vip == "" && b.Contains(f.port) })
	})
	if !ok {
		if s.loopbackTookPorts() {
			return ErrOutOfMemory.withf(op, "endpoints with OutBoundNAT Destinations have taken every port (%s)",
				builds.LoopbackDSRExhaustsPorts.Fact().Says)
		}
		return ErrPortAlreadyExists.withf(op, "no free block of %d ports in %d-%d", s.pool.size, s.pool.first, s.pool.last)
	}
	if share {
		s.sharedPools[l.SourceVIP] = b
	}
	l.Ports = b
	return nil
}

// sharedOwner begins the owner of a port block that load balancers share.
const sharedOwner = "shared/"

func blockOwner(l *LoadBalancer) string { return "loadBalancer/" + l.ID }

func (s *Service) loopbackTookPorts() bool {
	return slices.ContainsFunc(s.pool.owner, func(o string) bool { return len(o) > 12 && o[:12] == "loopbackDSR/" })
}

// UpdateLoadBalancer changes a load balancer in place. Builds without the
// feature answer E_NOTIMPL; HNS 15.4 says yes and changes nothing.
func (s *Service) UpdateLoadBalancer(id string, in LoadBalancer) (*LoadBalancer, error) {
	const op = "hcnModifyLoadBalancer"
	old := s.LoadBalancer(id)
	if old == nil {
		return nil, ErrElementNotFound.withf(op, "no load balancer has the id %s", id)
	}
	if !s.build.Has(builds.ModifyLoadbalancer) {
		return nil, ErrNotImplemented.withf(op, "%s changes no load balancer in place: delete it and create it again", s.build)
	}
	l, m := in.clone(), &mistakes{}
	s.checkLoadBalancer(l, old.ID, m)
	if err := s.refusal(m, op); err != nil {
		return nil, err
	}
	if s.build.Quirk(builds.ModifyLoadBalancerIgnored) {
		return old, nil
	}
	l.ID, l.Ports = old.ID, old.Ports
	if l.SchemaVersion == (SchemaVersion{}) {
		l.SchemaVersion = old.SchemaVersion
	}
	if l.Origin == nil {
		l.Origin = old.Origin
	}
	if l.DSR() != old.DSR() {
		s.pool.release(blockOwner(old))
		if err := s.takeBlock(op, l); err != nil {
			return nil, err
		}
	}
	for _, f := range frontendKeys(old) {
		s.removeFrontend(f)
	}
	for _, f := range frontendKeys(l) {
		s.addFrontend(f, l.ID)
	}
	s.loadBalancers.put(l.ID, l)
	s.forgetStale()
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Modified})
	return l, nil
}

// DeleteLoadBalancer deletes a load balancer and frees its ports.
func (s *Service) DeleteLoadBalancer(id string) error {
	l := s.LoadBalancer(id)
	if l == nil {
		return ErrElementNotFound.withf("hcnDeleteLoadBalancer", "no load balancer has the id %s", id)
	}
	for _, f := range frontendKeys(l) {
		if s.frontends[f] == l.ID {
			s.removeFrontend(f)
		}
	}
	s.pool.release(blockOwner(l))
	s.loadBalancers.remove(l.ID)
	s.forgetStale()
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Deleted})
	return nil
}
