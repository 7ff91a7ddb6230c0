package kubeproxy

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// identity is what kube-proxy recognises a load balancer by (factIdentity).
type identity struct {
	proto              packet.Proto
	internal, external uint16
	vip                string
	backends           [20]byte
	v6                 bool
}

// wanted is a load balancer that a Service port needs.
type wanted struct {
	role               role
	vip                netip.Addr // the zero Addr for a node port
	internal, external uint16
	backends           []*hns.Endpoint
	source             netip.Addr
	dsr, v6            bool
	// flags are those of the port mapping.
	flags hns.PortFlags
	// why says what is special about it.
	why string
}

func (w *wanted) vipText() string {
	if !w.vip.IsValid() {
		return ""
	}
	return w.vip.String()
}

// identify makes the identity of a load balancer; ids are those of its backends, in the
// case in which they are hashed.
func (p *proxier) identify(proto packet.Proto, internal, external uint16, vip string, ids []string, v6 bool) identity {
	id := identity{proto: proto, internal: internal, external: external, vip: vip, v6: v6 && p.b.familyInHash}
	if p.b.recognise != recogniseByHash {
		id.backends[0], id.backends[1] = byte(len(ids)>>8), byte(len(ids))
		return id
	}
	for _, e := range ids {
		h := sha1.Sum([]byte(e))
		for i := range h {
			id.backends[i] ^= h[i]
		}
	}
	return id
}

func (p *proxier) identityOf(lb *hns.LoadBalancer) identity {
	m := lb.PortMappings[0]
	vip := ""
	if len(lb.FrontendVIPs) > 0 {
		vip = lb.FrontendVIPs[0]
	}
	ids := inCase(lb.HostComputeEndpoints, p.b.listsUpper)
	return p.identify(packet.Proto(m.Protocol), m.InternalPort, m.ExternalPort, vip, ids, lb.IPv6())
}

// hashedIDs are the ids of backends as kube-proxy hashes those that it knows itself.
func (p *proxier) hashedIDs(es []*hns.Endpoint) []string {
	return inCase(endpointIDs(es), p.b.hashesUpper)
}

// inCase writes ids in upper case, or as HNS does, in lower case (kubeproxy.id-case).
func inCase(ids []string, upper bool) []string {
	change := strings.ToLower
	if upper {
		change = strings.ToUpper
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = change(id)
	}
	return all
}

func endpointIDs(es []*hns.Endpoint) []string {
	ids := make([]string, len(es))
	for i, e := range es {
		ids[i] = e.ID
	}
	return ids
}

// listed is the list of load balancers that a sync takes at its start.
type listed map[identity]string

func (p *proxier) listLoadBalancers() listed {
	l := listed{}
	if p.b.recognise == recogniseLive {
		return l
	}
	for _, lb := range p.hns.ListLoadBalancers(nil) {
		l[p.identityOf(lb)] = lb.ID
	}
	return l
}

// existing returns the id of the load balancer that kube-proxy takes for the
// wanted one, "" for none.
func (p *proxier) existing(s *portState, w *wanted, l listed) string {
	id := p.identify(s.port.Proto, w.internal, w.external, w.vipText(), p.hashedIDs(w.backends), w.v6)
	if p.b.recognise != recogniseLive {
		return l[id]
	}
	candidates := p.hns.LoadBalancersAt(w.vipText(), uint32(s.port.Proto), w.external)
	for _, lb := range candidates {
		have := p.identityOf(lb)
		if p.b.wildcardVIP && id.vip == "" {
			have.vip = ""
		}
		if have == id {
			return lb.ID
		}
	}
	return ""
}

// ensure makes one load balancer what it should be, and reports whether the Service
// port can go on (factUpdate, kubeproxy.failed-load-balancer). id is where its id is
// kept.
func (p *proxier) ensure(s *portState, w *wanted, id *string, l listed, create bool, deleteBy []*hns.Endpoint, r *Report) bool {
	entry := Entry{service: s.svc.Key(), port: portName(s.port), role: w.role, object: frontendName(w.vip, w.external, s.port.Proto),
		fact: factOf(w), why: w.why,
		frontends: []Frontend{{w.vip, w.external, s.port.Proto}}}
	if p.updates(*id, w) && create {
		done, ok := p.updateInPlace(s, w, id, l, entry, r)
		if done {
			return ok
		}
	}
	if p.updates(*id, w) {
		entry.what, entry.id, entry.why, entry.fact = kept, *id, "all backends terminate, or none serves: left as it is", factReady
		r.add(entry)
		return true
	}
	p.deleteIfOther(s, w, id, l, deleteBy, r)
	if !create || p.b.skipsEmpty && len(w.backends) == 0 {
		entry.what, entry.fact = skipped, factEmptyLocal
		entry.why = "no backend on this node"
		if !create {
			entry.why, entry.fact = "all backends terminate, or none serves", factReady
		}
		r.add(entry)
		return true
	}
	if found := p.existing(s, w, l); found != "" {
		p.reuse(s, w, id, found, entry, r)
		return true
	}
	lb, err := p.createOrReplace(s, w, l, r)
	if err != nil {
		entry.what, entry.err, entry.why = failed, err, "Policy creation failed"
		if len(w.backends) == 0 {
			entry.why += " (no backend on this node)"
			entry.fact = factEmptyLocal
		}
		r.add(entry)
		return false
	}
	*id, entry.id, entry.what = lb.ID, lb.ID, created
	if p.b.recognise != recogniseLive {
		l[p.identityOf(lb)] = lb.ID
	}
	r.add(entry)
	return true
}

// createOrReplace makes a load balancer. Where its frontend is taken, 1.37 deletes
// the load balancer that has it and tries again (factReplaces).
func (p *proxier) createOrReplace(s *portState, w *wanted, l listed, r *Report) (*hns.LoadBalancer, error) {
	lb, err := p.hns.CreateLoadBalancer(p.object(s, w))
	if !p.b.replaces || !errors.Is(err, hns.ErrAlreadyExists) && !errors.Is(err, hns.ErrPortAlreadyExists) {
		return lb, err
	}
	before := p.hns.LoadBalancer(l.withFrontend(p.identify(s.port.Proto, w.internal, w.external, w.vipText(), nil, w.v6)))
	if before == nil {
		return nil, err
	}
	if err := p.hns.DeleteLoadBalancer(before.ID); err != nil {
		return nil, err
	}
	owner := p.ownerOf(before.ID)
	if owner == nil {
		owner = s
	}
	why := "HNS says that the frontend is taken, and this load balancer uses it"
	if owner.svc.Key() != s.svc.Key() {
		why = "it is made for " + s.svc.Key() + " instead, which wants the same frontend"
	}
	taken := Entry{service: owner.svc.Key(), port: portName(owner.port), role: w.role, object: lbName(before), id: before.ID, what: deleted,
		why: why, fact: factReplaces, frontends: []Frontend{{w.vip, w.external, s.port.Proto}}}
	r.add(taken)
	owner.without = append(owner.without, taken) // its own syncs know it no better
	return p.hns.CreateLoadBalancer(p.object(s, w))
}

// ownerOf is the Service port that a load balancer was made for, nil when none is known.
func (p *proxier) ownerOf(id string) *portState {
	for _, family := range p.families {
		for _, s := range family.services {
			for _, port := range s.ports {
				ids := []string{port.clusterLB, port.nodeLB}
				for _, v := range slices.Concat(port.externals, port.ingresses) {
					ids = append(ids, v.lb, v.health)
				}
				if slices.Contains(ids, id) {
					return port
				}
			}
		}
	}
	return nil
}

// withFrontend returns the id of the only load balancer in the list with the
// frontend and the internal port of id, "" when there is none or several
// (findExistingLBIdByFrontend).
func (l listed) withFrontend(id identity) string {
	found := ""
	for have, lb := range l {
		have.backends = id.backends
		if have != id {
			continue
		}
		if found != "" {
			return ""
		}
		found = lb
	}
	return found
}

// updates reports whether a load balancer is to be changed in place.
func (p *proxier) updates(id string, w *wanted) bool {
	return p.modify && id != "" && len(w.backends) > 0
}

// updateInPlace changes a load balancer. done is false when HNS cannot, and
// kube-proxy goes on as for builds without the feature.
func (p *proxier) updateInPlace(s *portState, w *wanted, id *string, l listed, entry Entry, r *Report) (done, ok bool) {
	entry.id = *id
	if p.existing(s, w, l) != "" {
		entry.what = kept
		r.add(entry)
		return true, true
	}
	lb, err := p.hns.UpdateLoadBalancer(*id, p.object(s, w))
	switch {
	case err == nil:
		entry.what, entry.fact = updated, factUpdate
		l[p.identify(s.port.Proto, w.internal, w.external, w.vipText(), p.hashedIDs(w.backends), w.v6)] = lb.ID
		r.add(entry)
		return true, true
	case isNotImplemented(err):
		p.modify = false
		return false, true
	}
	entry.what, entry.err, entry.why, entry.fact = failed, err, "Update loadbalancer policy failed", factUpdate
	r.add(entry)
	return true, false
}

// deleteIfOther deletes the load balancer that an optimised sync kept, unless
// the list holds the wanted one (deleteExistingLoadBalancer).
func (p *proxier) deleteIfOther(s *portState, w *wanted, id *string, l listed, by []*hns.Endpoint, r *Report) {
	if !s.optimised || *id == "" || p.b.deletes == deleteNever {
		return
	}
	want := p.identify(s.port.Proto, w.internal, w.external, w.vipText(), p.hashedIDs(by), w.v6)
	if p.b.deletes == deleteBySourceVIP {
		want.internal, want.external, want.vip = s.target, s.port.Port, ""
		if w.source.IsValid() {
			want.vip = w.source.String()
		}
	}
	if _, found := l[want]; !found {
		p.deleteLB(id, s, w.role, r)
	}
}

// reuse takes a load balancer that was found. It may be one that this sync has
// deleted (factDeletedReused), or another frontend's (factWildcardVIP).
func (p *proxier) reuse(s *portState, w *wanted, id *string, found string, entry Entry, r *Report) {
	entry.id, entry.what = found, reused
	lb := p.hns.LoadBalancer(found)
	switch {
	case lb == nil:
		entry.what, entry.fact = failed, factDeletedReused
		entry.why = "kube-proxy found it in its list from the start of this sync, but has deleted it since: it is missing until the next change"
	case len(lb.FrontendVIPs) > 0 && !w.vip.IsValid():
		entry.what, entry.fact = failed, factWildcardVIP
		entry.why = fmt.Sprintf("kube-proxy mistakes the load balancer of %s for it, because ports and number of backends are the same",
			lbName(lb))
	case *id == found:
		entry.what = kept
	default:
		entry.fact = factIdentity
	}
	*id = found
	r.add(entry)
}

// object is the load balancer as kube-proxy sends it to HNS.
func (p *proxier) object(s *portState, w *wanted) hns.LoadBalancer {
	lb := hns.LoadBalancer{
		HostComputeEndpoints: endpointIDs(w.backends), SchemaVersion: hns.SchemaVersion{Major: 2}, Origin: originOf(s.svc),
		PortMappings: []hns.LBPortMapping{{Protocol: uint32(s.port.Proto), InternalPort: w.internal, ExternalPort: w.external, Flags: w.flags}},
	}
	if w.source.IsValid() {
		lb.SourceVIP = w.source.String()
	}
	if w.vip.IsValid() {
		lb.FrontendVIPs = []string{w.vip.String()}
	}
	if w.dsr {
		lb.Flags |= hns.LBFlagDSR
	}
	if w.v6 {
		lb.Flags |= hns.LBFlagIPv6
	}
	if p.b.affinity && s.svc.ClientIPAffinity && w.role != roleHealthCheck {
		lb.PortMappings[0].DistributionType = hns.DistributionSourceIP
	}
	return lb
}

// lbName is "10.96.0.10:80/TCP" or "node:30080/TCP".
func lbName(lb *hns.LoadBalancer) string {
	m := lb.PortMappings[0]
	var a netip.Addr
	if len(lb.FrontendVIPs) > 0 {
		a, _ = netip.ParseAddr(lb.FrontendVIPs[0])
	}
	return frontendName(a, m.ExternalPort, packet.Proto(m.Protocol))
}
