package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// proxier is kube-proxy for one address family.
type proxier struct {
	*Kernelspace
	v6     bool
	nodeIP netip.Addr

	services []*serviceState // in the order of the last sync
	// refs counts the references to a remote endpoint by its id.
	refs map[string]*uint16
	// gone are addresses of remote backends that the last change took away.
	gone []netip.Addr
}

func newProxier(k *Kernelspace, v6 bool, nodeIP netip.Addr) *proxier {
	return &proxier{Kernelspace: k, v6: v6, nodeIP: nodeIP, refs: map[string]*uint16{}}
}

// serviceState is a Service as the proxier knows it.
type serviceState struct {
	key         string
	fingerprint string // of the Service, to see whether it changed
	ports       []*portState
	// endpointsFingerprint tells whether the endpoints changed; backends are by port.
	endpointsFingerprint string
	backends             map[string][]*backend
}

// portState is one port of a Service and the load balancers made for it.
type portState struct {
	svc       *kube.Service
	port      kube.ServicePort
	clusterIP netip.Addr
	target    uint16
	// flags of the Service
	preserve, external, internal, optimised bool

	clusterLB, nodeLB string
	externals         []vip
	ingresses         []vip
	vipEndpoint       *backend
	applied           bool
	// without are the entries of frontends that have no load balancer though the port
	// is applied.
	without []Entry
}

// vip is an external or load balancer address with its load balancers.
type vip struct {
	addr       netip.Addr
	lb, health string
}

// backend is one endpoint of a Service port.
type backend struct {
	addr                        netip.Addr
	port                        uint16
	local                       bool
	ready, serving, terminating bool
	id                          string // in HNS
	refs                        *uint16
}

func (p *proxier) family(a netip.Addr) bool { return a.IsValid() && a.Is6() == p.v6 }

// update reads the Services and their endpoints and cleans up what was made for
// what changed: first the Services, then the endpoints, as kube-proxy does.
func (p *proxier) update(services []*kube.Service, r *Report) {
	p.gone = nil
	var wanted []*kube.Service
	for _, svc := range services {
		if whySkipped(p.node.Version, svc) == "" && slices.ContainsFunc(svc.ClusterIPs, p.family) {
			wanted = append(wanted, svc)
		}
	}
	states := make([]*serviceState, 0, len(wanted))
	keys, byKey := make([]string, len(wanted)), make(map[string]*kube.Service, len(wanted))
	for i, svc := range wanted {
		keys[i] = svc.Key()
		if byKey[keys[i]] == nil {
			byKey[keys[i]] = svc
		}
	}
	before := make(map[string]*serviceState, len(p.services))
	for _, old := range p.services {
		if byKey[old.key] == nil {
			p.forget(old, r)
		}
		if before[old.key] == nil {
			before[old.key] = old
		}
	}
	for i, svc := range wanted {
		old, fingerprint := before[keys[i]], serviceFingerprint(svc)
		switch {
		case old == nil:
			states = append(states, &serviceState{key: keys[i], fingerprint: fingerprint, ports: p.newPorts(svc)})
			continue
		case old.fingerprint != fingerprint:
			for _, port := range old.ports {
				p.cleanup(port, old.backends[port.port.Name], false, r)
			}
			old.fingerprint, old.ports = fingerprint, p.newPorts(svc)
		}
		states = append(states, old)
	}
	p.services = states
	for _, s := range p.services {
		p.updateEndpoints(s, byKey[s.key], r)
	}
}

func (p *proxier) updateEndpoints(s *serviceState, svc *kube.Service, r *Report) {
	now := p.newBackends(svc)
	fingerprint := endpointsFingerprint(svc, now)
	if s.backends != nil && s.endpointsFingerprint == fingerprint {
		return
	}
	if p.b.forgetsGone {
		p.gone = nil // kubeproxy.stale-remote-endpoints
	}
	current := map[netip.Addr]bool{}
	for _, bs := range now {
		for _, b := range bs {
			current[b.addr] = true
		}
	}
	for _, port := range s.ports {
		for _, b := range s.backends[port.port.Name] {
			if !b.local && !current[b.addr] && !slices.Contains(p.gone, b.addr) {
				p.gone = append(p.gone, b.addr)
			}
		}
		p.cleanup(port, s.backends[port.port.Name], true, r)
	}
	s.backends, s.endpointsFingerprint = now, fingerprint
}

// forget cleans up after a Service that is gone.
func (p *proxier) forget(s *serviceState, r *Report) {
	for _, port := range s.ports {
		bs := s.backends[port.port.Name]
		p.cleanup(port, bs, false, r)
		for _, b := range bs {
			if !b.local && !slices.Contains(p.gone, b.addr) {
				p.gone = append(p.gone, b.addr)
			}
		}
	}
}

// cleanupAll drops all load balancers and the references to endpoints.
func (p *proxier) cleanupAll(r *Report) {
	for _, s := range p.services {
		for _, port := range s.ports {
			p.cleanup(port, s.backends[port.port.Name], false, r)
		}
	}
}

// serviceFingerprint differs when a field differs that kube-proxy uses, endpoints
// aside.
func serviceFingerprint(svc *kube.Service) string {
	return fmt.Sprintf("%s %v %v %v %v %v %v %v %v %v", svc.Type, svc.ClusterIPs, svc.ExternalIPs, svc.IngressIPs, svc.Ports,
		svc.ClientIPAffinity, svc.ExternalLocal, svc.InternalLocal, svc.HealthCheckNodePort, svc.Annotations)
}

func endpointsFingerprint(svc *kube.Service, bs map[string][]*backend) string {
	var s strings.Builder
	for _, p := range svc.Ports {
		fmt.Fprintf(&s, "%s:", p.Name)
		for _, b := range bs[p.Name] {
			fmt.Fprintf(&s, " %s %d %t %t %t %t", b.addr, b.port, b.local, b.ready, b.serving, b.terminating)
		}
	}
	return s.String()
}

// newPorts follows newServiceInfo.
func (p *proxier) newPorts(svc *kube.Service) []*portState {
	dsr := p.hns.Build().Has(builds.DSR)
	copied := *svc
	copied.Endpoints = nil
	var ports []*portState
	for _, sp := range svc.Ports {
		s := &portState{
			svc: &copied, port: sp, target: sp.Target,
			preserve:  p.b.preserve && dsr && svc.Annotations["preserve-destination"] == "true",
			external:  p.b.externalLocal && dsr && svc.ExternalLocal,
			internal:  p.b.internalLocal && svc.InternalLocal,
			optimised: p.b.optimised && !strings.EqualFold(svc.Annotations["winProxyOptimization"], "disabled"),
		}
		if i := slices.IndexFunc(svc.ClusterIPs, p.family); i >= 0 {
			s.clusterIP = svc.ClusterIPs[i]
		}
		s.externals, s.ingresses = p.vips(svc.ExternalIPs), p.vips(svc.IngressIPs)
		ports = append(ports, s)
	}
	return ports
}

// vips are the external or load balancer addresses that are this proxier's: before
// 1.35 those of both families.
func (p *proxier) vips(all []netip.Addr) []vip {
	var vs []vip
	for _, a := range all {
		if !p.b.vipsByFamily || p.family(a) {
			vs = append(vs, vip{addr: a})
		}
	}
	return vs
}

// newBackends follows newEndpointInfo and kubeproxy.backend-order.
func (p *proxier) newBackends(svc *kube.Service) map[string][]*backend {
	all := map[string][]*backend{}
	for _, sp := range svc.Ports {
		for _, e := range svc.Endpoints {
			if e.Port(sp) == 0 || !p.family(e.Addr) || !p.b.endpointSlices && len(svc.ClusterIPs) > 0 && e.Addr.Is6() != svc.ClusterIPs[0].Is6() {
				continue
			}
			all[sp.Name] = append(all[sp.Name], &backend{
				addr: e.Addr, port: e.Port(sp), local: e.Node != "" && e.Node == p.hostname(),
				ready: e.Ready && !e.Terminating, serving: e.Ready || e.Serving, terminating: e.Terminating,
			})
		}
		if p.b.endpointSlices {
			slices.SortStableFunc(all[sp.Name], func(a, b *backend) int {
				return strings.Compare(netip.AddrPortFrom(a.addr, a.port).String(), netip.AddrPortFrom(b.addr, b.port).String())
			})
		}
	}
	return all
}

// cleanup undoes what was made for a Service port (cleanupAllPolicies). When
// only the backends changed, an optimised sync keeps load balancers and remote
// endpoints for now (kubeproxy.optimisation).
func (p *proxier) cleanup(s *portState, bs []*backend, onlyBackends bool, r *Report) {
	keep := onlyBackends && s.optimised
	if !keep {
		p.deleteAll(s, r)
	}
	for _, b := range bs {
		if keep {
			if !b.local && b.refs != nil && *b.refs > 0 {
				*b.refs--
			}
		} else {
			p.release(b, s.svc.Key(), portName(s.port), r)
		}
	}
	if s.vipEndpoint != nil {
		p.release(s.vipEndpoint, s.svc.Key(), portName(s.port), r)
	}
	s.applied = false
}

// release gives up a reference to a remote endpoint and deletes it with the
// last one (Cleanup, kubeproxy.remote-endpoint-references).
func (p *proxier) release(b *backend, service, port string, r *Report) {
	if b.local || b.refs == nil {
		return
	}
	if *b.refs > 0 {
		*b.refs--
	}
	if *b.refs == 0 {
		p.deleteEndpoint(b.id, service, port, r)
		b.id = ""
	}
	b.refs = nil
}

func (p *proxier) deleteEndpoint(id, service, port string, r *Report) {
	e := p.hns.Endpoint(id)
	if e == nil || !e.Remote() {
		return
	}
	entry := Entry{service: service, port: port, role: roleBackend, object: addressOf(e), id: e.ID, what: deleted, fact: factRemoteEndpoint}
	if err := p.hns.DeleteEndpoint(id); err != nil {
		entry.what, entry.err = failed, err
	}
	r.add(entry)
}

// deleteAll deletes the load balancers of a Service port.
func (p *proxier) deleteAll(s *portState, r *Report) {
	p.deleteLB(&s.clusterLB, s, roleClusterIP, r)
	p.deleteLB(&s.nodeLB, s, roleNodePort, r)
	for i := range s.externals {
		p.deleteLB(&s.externals[i].lb, s, roleExternalIP, r)
	}
	for i := range s.ingresses {
		p.deleteLB(&s.ingresses[i].lb, s, roleIngress, r)
		p.deleteLB(&s.ingresses[i].health, s, roleHealthCheck, r)
	}
}

// deleteLB deletes a load balancer and forgets its id. One that HNS does not
// know counts as deleted.
func (p *proxier) deleteLB(id *string, s *portState, role role, r *Report) {
	if *id == "" {
		return
	}
	if lb := p.hns.LoadBalancer(*id); lb != nil {
		e := Entry{service: s.svc.Key(), port: portName(s.port), role: role, object: lbName(lb), id: lb.ID, what: deleted, fact: factUpdate}
		if err := p.hns.DeleteLoadBalancer(*id); err != nil {
			e.what, e.err = failed, err
		}
		r.add(e)
	}
	*id = ""
}

func addressOf(e *hns.Endpoint) string {
	if as := e.Addresses(); len(as) > 0 {
		return as[0].String()
	}
	return e.Name
}
