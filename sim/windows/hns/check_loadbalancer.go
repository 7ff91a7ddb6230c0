package hns

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// frontendKey is what no two load balancers can share. The VIP "" means the
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

// checkLoadBalancer checks l; self is its id when it exists already.
func (s *Service) checkLoadBalancer(l *LoadBalancer, self string, m *mistakes) {
	if l.DSR() && !s.build.Has(builds.DSR) {
		m.add(ErrNotImplemented, "flag 1 (DSR): %s cannot do it", s.build)
	}
	if l.IPv6() && !s.build.Has(builds.IPv6DualStack) {
		m.add(ErrNotImplemented, "flag 2 (IPv6): %s cannot do it", s.build)
	}
	checkVIPs(l, m)
	checkPortMappings(l.PortMappings, m)
	s.checkBackends(l, m)
	s.checkFrontends(l, self, m)
}

func checkVIPs(l *LoadBalancer, m *mistakes) {
	for i, v := range l.FrontendVIPs {
		if _, err := netip.ParseAddr(v); err != nil {
			m.add(ErrInvalidIP, "FrontendVIPs[%d] %q is not an address", i, v)
		}
	}
	if _, err := netip.ParseAddr(l.SourceVIP); l.SourceVIP != "" && err != nil {
		m.add(ErrInvalidIP, "SourceVIP %q is not an address", l.SourceVIP)
	}
}

func checkPortMappings(ps []LBPortMapping, m *mistakes) {
	if len(ps) == 0 {
		m.add(ErrInvalidParam, "PortMappings must hold at least one mapping")
	}
	for i, p := range ps {
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
}

// checkBackends brings the backends' ids into the form of the tables.
func (s *Service) checkBackends(l *LoadBalancer, m *mistakes) {
	for i, id := range l.HostComputeEndpoints {
		e := s.Endpoint(id)
		switch {
		case e == nil:
			m.add(ErrEndpointNotFound, "HostComputeEndpoints[%d]: no endpoint has the id %s", i, id)
		case !e.Remote() && (e.State == StateDetached || e.State == StateDestroyed):
			m.add(ErrPortNotFound, "HostComputeEndpoints[%d]: endpoint %s is detached", i, nameAndID(e.Name, e.ID))
		default:
			l.HostComputeEndpoints[i] = e.ID
		}
	}
	most := s.build.Limits.LoadBalancerBackends
	if s.opts.MaxBackends > 0 {
		most = s.opts.MaxBackends
	}
	switch n := len(l.HostComputeEndpoints); {
	case n == 0: // hns.load-balancer-needs-a-backend
		m.add(ErrInvalidParam, "Unable to initialize VFP LB rule: invalid number of destinations (none)")
	case n > most && !l.DSR(): // hns.backend-limit
		m.add(ErrInvalidParam, "Unable to initialize VFP LB rule: invalid number of destinations (%d, at most %d)", n, most)
	}
}

// checkFrontends follows hns.duplicate-frontend and hns.taken-frontend-code.
func (s *Service) checkFrontends(l *LoadBalancer, self string, m *mistakes) {
	seen := map[frontendKey]bool{}
	for _, f := range frontendKeys(l) {
		if by := s.frontends[f]; by != "" && by != self {
			m.add(s.code(takenFrontend), "%s belongs to load balancer %s", f, by)
		} else if seen[f] {
			m.add(s.code(takenFrontend), "%s is given twice", f)
		} else if f.vip == "" { // hns.node-port-in-port-block
			if by := s.pool.holder(f.port); by != "" {
				m.add(ErrPortAlreadyExists, "port %d of the node is in a block of ports that %s translates sources with", f.port, by)
			}
		}
		seen[f] = true
	}
}
