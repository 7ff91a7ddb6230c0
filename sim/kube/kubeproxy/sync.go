package kubeproxy

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// sync is syncProxyRules of one family.
func (p *proxier) sync(services []*kube.Service, r *Report) {
	p.update(services, r)
	k, l := p.listEndpoints(), p.listLoadBalancers()
	for _, s := range p.services {
		for _, port := range s.ports {
			p.port(port, s.backends[port.port.Name], k, l, r)
		}
	}
	p.dropUnreferenced(k, r)
}

// chosen are the backends of a Service port that HNS knows.
type chosen struct {
	all, local []*hns.Endpoint
	// source is the SourceVIP for these backends.
	source netip.Addr
	// available: node port and external addresses are served.
	available bool
}

// port programs one Service port.
func (p *proxier) port(s *portState, bs []*backend, k *known, l listed, r *Report) {
	if s.applied {
		p.kept(s, r)
		return
	}
	if !p.vipEndpoint(s, k, r) {
		return
	}
	c := p.choose(s, bs, k, r)
	if len(c.all) == 0 {
		if s.optimised {
			p.deleteAll(s, r)
		}
		r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleService, object: frontendName(s.clusterIP, s.port.Port, s.port.Proto),
			what: skipped, why: "no backend that can be used: no load balancer", fact: factEmpty, frontends: p.frontendsOf(s)})
		return
	}
	if s.svc.ClientIPAffinity && !(p.b.affinity && p.hns.Build().Has(builds.SessionAffinity)) {
		why := "Session Affinity is not supported on this version of Windows: load balancers distribute by 5-tuple"
		if !p.b.affinity {
			why = "this kube-proxy does not pass sessionAffinity on: load balancers distribute by 5-tuple"
		}
		r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleService, object: "sessionAffinity ClientIP", what: skipped, why: why,
			fact: factAffinity})
	}
	p.reportIgnored(s, r)
	before := len(r.entries)
	s.applied = p.clusterIP(s, c, l, r) && p.nodePort(s, c, l, r) && p.externalIPs(s, c, l, r) && p.loadBalancerIPs(s, c, l, r)
	s.without = nil
	for _, e := range r.entries[before:] {
		if e.service == s.svc.Key() && e.role.isLoadBalancer() && (e.what == failed || e.what == skipped) {
			s.without = append(s.without, e)
		}
	}
}

// reportIgnored reports what the Service asks for and this version or build
// does not do.
func (p *proxier) reportIgnored(s *portState, r *Report) {
	note := func(object, why string, f *evidence.Fact) {
		r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleService, object: object, what: skipped, why: why, fact: f})
	}
	switch {
	case !s.svc.ExternalLocal || s.external:
	case !p.b.externalLocal:
		note("externalTrafficPolicy Local", "this kube-proxy ignores it, uses all backends and hides the client's address", factExternalLocal)
	default:
		note("externalTrafficPolicy Local", "this Windows build does not support DSR: all backends are used and the client's address is hidden",
			factExternalLocal)
	}
	if s.svc.InternalLocal && !s.internal {
		note("internalTrafficPolicy Local", "this kube-proxy ignores it: all backends are used", factClusterIP)
	}
	if s.svc.Annotations["preserve-destination"] == "true" && !s.preserve {
		note("preserve-destination", "this kube-proxy or Windows build ignores the annotation", factPreserve)
	}
}

// kept reports the load balancers of a port that needed no work, and why others are
// missing: kube-proxy does not try again before something changes.
func (p *proxier) kept(s *portState, r *Report) {
	one := func(id string, role role, a netip.Addr, port uint16) {
		if id == "" {
			return
		}
		e := Entry{service: s.svc.Key(), port: portName(s.port), role: role, object: frontendName(a, port, s.port.Proto), id: id, what: kept,
			fact: factIdentity}
		switch known := slices.ContainsFunc(s.without, func(w Entry) bool { return w.object == e.object }); {
		case p.hns.LoadBalancer(id) != nil:
		case known:
			return // below
		default:
			e.what, e.why, e.frontends = skipped, "HNS no longer has it, and kube-proxy does not recreate it before something changes",
				[]Frontend{{a, port, s.port.Proto}}
		}
		r.add(e)
	}
	one(s.clusterLB, roleClusterIP, s.clusterIP, s.port.Port)
	one(s.nodeLB, roleNodePort, netip.Addr{}, s.port.NodePort)
	for _, v := range s.externals {
		one(v.lb, roleExternalIP, v.addr, s.port.Port)
	}
	for _, v := range s.ingresses {
		one(v.lb, roleIngress, v.addr, s.port.Port)
		one(v.health, roleHealthCheck, v.addr, p.healthCheckPort(s))
	}
	r.entries = append(r.entries, s.without...)
}

// choose finds or makes the HNS endpoints of the backends.
func (p *proxier) choose(s *portState, bs []*backend, k *known, r *Report) chosen {
	terminating, nonServing := p.terminating(s, bs)
	c := chosen{available: !terminating && !nonServing}
	if p.network.Is(hns.Overlay) {
		c.source = p.cfg.SourceVIP
	}
	for _, b := range bs {
		if why, fact := p.unusable(s, b, terminating, nonServing); why != "" {
			r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleBackend, object: b.addr.String(), what: skipped, why: why,
				fact: fact})
			continue
		}
		if s.target == 0 || p.b.lastTargetPort && s.target != b.port {
			s.target = b.port
		}
		e, made := p.endpointOf(s, b, k, r)
		if e == nil {
			continue
		}
		if why := p.needsNodeSource(b, made); why != "" && c.source != p.nodeIP {
			c.source = p.nodeIP
			r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleSourceVIP, object: p.nodeIP.String(), what: kept,
				why: why + ": the SourceVIP is the node's address", fact: factNodeSource})
		}
		b.id = e.ID
		c.all = append(c.all, e)
		if e.Remote() {
			p.reference(b)
		} else {
			c.local = append(c.local, e)
		}
	}
	return c
}

// unusable says why a backend is left out, "" when it is not. When all backends
// terminate, those that still serve are used; when none serves, all are
// (factReady).
func (p *proxier) unusable(s *portState, b *backend, terminating, nonServing bool) (why string, fact *evidence.Fact) {
	switch {
	case s.internal && s.external && !b.local:
		return "both traffic policies are Local and it runs elsewhere", factExternalLocal
	case nonServing:
		return "", nil
	case !terminating && !b.ready:
		return "not ready", factReady
	case !b.serving:
		return "not serving", factReady
	}
	return "", nil
}

// endpointOf returns the HNS endpoint of a backend, nil when there is none and
// none can be made; made says that it is new.
func (p *proxier) endpointOf(s *portState, b *backend, k *known, r *Report) (e *hns.Endpoint, made bool) {
	if e := k.find(b.id, b.addr); e != nil {
		return e, false
	}
	if b.local {
		r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleBackend, object: b.addr.String(), what: skipped,
			why: "Local endpoint not found: HNS has none with this address", fact: factLocalMissing, frontends: p.frontendsOf(s)})
		return nil, false
	}
	return p.remoteEndpoint(s, b, k, r), true
}

// needsNodeSource follows factNodeSource; made says that the backend's remote
// endpoint is new.
func (p *proxier) needsNodeSource(b *backend, made bool) string {
	if !p.network.Is(hns.Overlay) || b.local || p.b.nodeSourceOnCreation && !made {
		return ""
	}
	pa := p.remoteSubnetPA(b.addr)
	switch {
	case !pa.IsValid():
		return b.addr.String() + " is not in any remote subnet"
	case pa == b.addr && p.b.nodeSource:
		return b.addr.String() + " is a node's address"
	}
	return ""
}

// terminating says whether all backends terminate and whether none serves
// (factReady); both are false for Services without load balancer addresses.
func (p *proxier) terminating(s *portState, bs []*backend) (all, nonServing bool) {
	if !p.b.terminating || len(s.ingresses) == 0 {
		return false, false
	}
	if v := p.node.Version; !v.AtLeast(28) && !p.cfg.enabled(gateTerminatingEndpoints, v) {
		return false, false
	}
	all, nonServing = true, true
	for _, b := range bs {
		if s.external && !b.local {
			continue
		}
		if b.serving {
			nonServing = false
		}
		if b.ready {
			all = false
		}
	}
	return all, nonServing
}

// localOnly explains a narrowed list of backends.
const localOnly = "backends of this node only"

func (p *proxier) clusterIP(s *portState, c chosen, l listed, r *Report) bool {
	w := &wanted{role: roleClusterIP, vip: s.clusterIP, internal: s.target, external: s.port.Port, backends: c.all, source: c.source,
		dsr: p.cfg.EnableDSR, v6: p.v6}
	by := c.all
	if s.internal {
		w.backends, w.why = c.local, localOnly
	}
	if !p.b.clusterIPDeletesByAll {
		by = w.backends
	}
	return p.ensure(s, w, &s.clusterLB, l, c.available || !p.b.clusterIPNeedsAvailable, by, r)
}

func (p *proxier) nodePort(s *portState, c chosen, l listed, r *Report) bool {
	if s.port.NodePort == 0 {
		return true
	}
	w := &wanted{role: roleNodePort, internal: s.target, external: s.port.NodePort, backends: c.all, source: c.source,
		dsr: s.external, v6: p.v6, flags: p.externalFlag()}
	if p.b.localRoutedVIP {
		w.flags |= hns.PortFlagLocalRoutedVIP
	}
	if s.preserve && p.b.preserveNodePort || s.external {
		w.backends, w.why = c.local, localOnly
	}
	return p.ensure(s, w, &s.nodeLB, l, c.available, w.backends, r)
}

// externalIPs goes on after a failure: the loop of kube-proxy does.
func (p *proxier) externalIPs(s *portState, c chosen, l listed, r *Report) bool {
	for i := range s.externals {
		w := &wanted{role: roleExternalIP, vip: s.externals[i].addr, internal: s.target, external: s.port.Port, backends: c.all, source: c.source,
			dsr: s.external, v6: p.v6, flags: p.externalFlag()}
		if s.external {
			w.backends, w.why = c.local, localOnly
		}
		p.ensure(s, w, &s.externals[i].lb, l, c.available, w.backends, r)
	}
	return true
}

func (p *proxier) loadBalancerIPs(s *portState, c chosen, l listed, r *Report) bool {
	for i := range s.ingresses {
		v := &s.ingresses[i]
		w := &wanted{role: roleIngress, vip: v.addr, internal: s.target, external: s.port.Port, backends: c.all, source: c.source,
			dsr: s.preserve || s.external || p.b.ingressDSR && p.cfg.EnableDSR, v6: p.v6, flags: p.externalFlag() | preserveFlags(s)}
		if s.preserve || s.external {
			w.backends, w.why = c.local, localOnly
		}
		if !p.ensure(s, w, &v.lb, l, true, w.backends, r) {
			continue
		}
		if p.b.leaksIngress && v.lb != "" {
			r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleIngress, object: frontendName(v.addr, s.port.Port, s.port.Proto),
				id: v.lb, what: kept,
				why: "kube-proxy notes the cluster IP's load balancer instead of this one, and will not delete it", fact: factLeaksIngress})
			v.lb = s.clusterLB
		}
		p.healthCheck(s, v, c, l, r)
	}
	return true
}

// healthCheck follows factHealthCheck.
func (p *proxier) healthCheck(s *portState, v *vip, c chosen, l listed, r *Report) {
	if !p.cfg.forwardHealthCheckVIP || !p.b.healthCheck || !c.available {
		return
	}
	name := p.cfg.rootHnsEndpointName
	if name == "" {
		name = defaultRootEndpoint
	}
	root := p.hns.EndpointByName(name)
	port := p.healthCheckPort(s)
	if root == nil {
		r.add(Entry{service: s.svc.Key(), port: portName(s.port), role: roleHealthCheck, object: frontendName(v.addr, port, s.port.Proto),
			what: skipped,
			why:  "there is no HNS endpoint " + name + " (--root-hnsendpoint-name)", fact: factHealthCheck})
		return
	}
	w := &wanted{role: roleHealthCheck, vip: v.addr, internal: port, external: port, backends: []*hns.Endpoint{root}, source: c.source,
		flags: preserveFlags(s)}
	p.ensure(s, w, &v.health, l, true, w.backends, r)
}

// healthCheckPort is where a Service's health check goes.
func (p *proxier) healthCheckPort(s *portState) uint16 {
	if s.svc.HealthCheckNodePort != 0 {
		return s.svc.HealthCheckNodePort
	}
	return p.healthzPort()
}

func (p *proxier) externalFlag() hns.PortFlags {
	if p.b.vipExternalIP {
		return hns.PortFlagVipExternalIP
	}
	return 0
}

func preserveFlags(s *portState) hns.PortFlags {
	if s.preserve {
		return hns.PortFlagUseMux | hns.PortFlagPreserveDIP
	}
	return 0
}

// factOf is the rule behind a load balancer.
func factOf(w *wanted) *evidence.Fact {
	switch w.role {
	case roleNodePort:
		return factNodePort
	case roleExternalIP:
		return factExternalIP
	case roleIngress:
		return factIngress
	case roleHealthCheck:
		return factHealthCheck
	}
	return factClusterIP
}

// isNotImplemented follows hcn.IsNotImplemented, which looks for the text.
func isNotImplemented(err error) bool {
	return errors.Is(err, hns.ErrNotImplemented) || strings.Contains(strings.ToLower(err.Error()), "not implemented")
}
