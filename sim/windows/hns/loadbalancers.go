package hns

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// frontendKey is what no two load balancers can share. The VIP "" stands for the
// management address, and is not the same as naming that address: kube-proxy
// compares them as strings too (kubernetes/kubernetes issue 78574). Without a VIP
// each address family has its own (pkg/proxy/winkernel/proxier.go, comment on
// loadBalancerIdentifier).
type frontendKey struct {
	vip      string
	v6       bool
	protocol uint32
	port     uint16
}

func frontendKeys(l *LoadBalancer) []frontendKey {
	vips := l.FrontendVIPs
	if len(vips) == 0 {
		vips = []string{""}
	}
	var all []frontendKey
	for _, v := range vips {
		if a, err := netip.ParseAddr(v); err == nil {
			v = a.String()
		}
		for _, p := range l.PortMappings {
			all = append(all, frontendKey{v, v == "" && l.IPv6(), p.Protocol, p.ExternalPort})
		}
	}
	return all
}

func (f frontendKey) String() string {
	vip := f.vip
	if vip == "" {
		vip = "(management address)"
	}
	return fmt.Sprintf("%s port %d protocol %d", vip, f.port, f.protocol)
}

// CreateLoadBalancer makes a load balancer. One without DSR takes a block of the
// node's ports.
func (s *Service) CreateLoadBalancer(in LoadBalancer) (*LoadBalancer, error) {
	const op = "hcnCreateLoadBalancer"
	l, m := in.clone(), &mistakes{}
	if l.ID != "" && s.LoadBalancer(l.ID) != nil {
		m.add(ErrAlreadyExists, "the id %s is taken", l.ID)
	}
	s.checkLoadBalancer(l, "", m)
	if err := m.err(op); err != nil {
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
		s.frontends[f] = l.ID
	}
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Created})
	return l, nil
}

// checkLoadBalancer checks l; self is its id when it exists already.
func (s *Service) checkLoadBalancer(l *LoadBalancer, self string, m *mistakes) {
	if l.DSR() && !s.build.Has(builds.DSR) {
		m.add(ErrNotImplemented, "flag 1 (DSR): %s cannot do it", s.build)
	}
	if l.IPv6() && !s.build.Has(builds.IPv6DualStack) {
		m.add(ErrNotImplemented, "flag 2 (IPv6): %s cannot do it", s.build)
	}
	for i, v := range l.FrontendVIPs {
		if _, err := netip.ParseAddr(v); err != nil {
			m.add(ErrInvalidIP, "FrontendVIPs[%d] %q is no address", i, v)
		}
	}
	if _, err := netip.ParseAddr(l.SourceVIP); l.SourceVIP != "" && err != nil {
		m.add(ErrInvalidIP, "SourceVIP %q is no address", l.SourceVIP)
	}
	if len(l.PortMappings) == 0 {
		m.add(ErrInvalidParam, "PortMappings must hold at least one mapping")
	}
	for i, p := range l.PortMappings {
		if p.Protocol == 0 || p.Protocol > 255 {
			m.add(ErrInvalidParam, "PortMappings[%d]: protocol %d; it must be an IP protocol number such as 6 (TCP) or 17 (UDP)", i, p.Protocol)
		}
		if p.InternalPort == 0 || p.ExternalPort == 0 {
			m.add(ErrInvalidParam, "PortMappings[%d]: InternalPort and ExternalPort must be given", i)
		}
		if p.DistributionType > DistributionSourceIP {
			m.add(ErrInvalidParam, "PortMappings[%d]: DistributionType %d; it must be 0, 1 or 2", i, p.DistributionType)
		}
	}
	for i, id := range l.HostComputeEndpoints {
		e := s.Endpoint(id)
		switch {
		case e == nil:
			m.add(ErrEndpointNotFound, "HostComputeEndpoints[%d]: no endpoint has the id %s", i, id)
		case !e.Remote() && (e.State == StateDetached || e.State == StateDestroyed):
			m.add(ErrPortNotFound, "HostComputeEndpoints[%d]: endpoint %s is detached", i, or(e.Name, e.ID))
		default:
			l.HostComputeEndpoints[i] = e.ID
		}
	}
	most := s.build.Limits.LoadBalancerBackends
	if s.opts.MaxBackends > 0 {
		most = s.opts.MaxBackends
	}
	switch n := len(l.HostComputeEndpoints); {
	case n == 0: // FactNoBackend
		m.add(ErrInvalidParam, "Unable to initialize VFP LB rule: invalid number of destinations (none)")
	case n > most && !l.DSR(): // FactBackendLimit
		m.add(ErrInvalidParam, "Unable to initialize VFP LB rule: invalid number of destinations (%d, at most %d)", n, most)
	}
	seen := map[frontendKey]bool{}
	for _, f := range frontendKeys(l) { // FactDuplicateFrontend
		if by := s.frontends[f]; by != "" && by != self {
			m.add(ErrAlreadyExists, "%s belongs to load balancer %s", f, by)
		} else if seen[f] {
			m.add(ErrAlreadyExists, "%s is given twice", f)
		}
		seen[f] = true
	}
}

// takeBlock gives a load balancer without DSR its ports (FactPortBlock,
// FactSharedPorts).
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
	b, ok := s.pool.take(owner)
	if !ok {
		if s.loopbackTookPorts() {
			return ErrOutOfMemory.withf(op, "endpoints with OutBoundNAT Destinations have taken every port (%s)",
				builds.QuirkFact("loopback-dsr-exhausts-ports").Says)
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
	if err := m.err(op); err != nil {
		return nil, err
	}
	if s.build.Quirk("modify-loadbalancer-ignored") {
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
		delete(s.frontends, f)
	}
	for _, f := range frontendKeys(l) {
		s.frontends[f] = l.ID
	}
	s.loadBalancers.put(l.ID, l)
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
			delete(s.frontends, f)
		}
	}
	s.pool.release(blockOwner(l))
	s.loadBalancers.remove(l.ID)
	s.changed(Change{Kind: KindLoadBalancer, ID: l.ID, What: Deleted})
	return nil
}
