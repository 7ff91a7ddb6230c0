package kubeproxy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// known is what a sync knows of the endpoints in HNS: a list from its start, or
// HNS itself (kubeproxy.endpoint-lookup).
type known struct {
	p    *proxier
	byID map[string]*hns.Endpoint
	byIP map[netip.Addr]*hns.Endpoint
	// duplicates are the ids of remote endpoints with the address of a local one, in
	// the order in which they were found.
	duplicates []string
}

func (p *proxier) listEndpoints() *known {
	k := &known{p: p, byID: map[string]*hns.Endpoint{}, byIP: map[netip.Addr]*hns.Endpoint{}}
	if p.b.lookup == lookupFirst {
		return k
	}
	for _, e := range p.hns.EndpointsOf(p.network.ID) {
		for i, a := range e.Addresses() {
			if i > 1 || i > 0 && p.b.firstAddress {
				break
			}
			if k.takes(a, e) {
				k.add(a, e)
			}
		}
	}
	return k
}

// takes reports whether an endpoint takes an address in the list, which another may
// have already (kubeproxy.endpoint-lookup).
func (k *known) takes(a netip.Addr, e *hns.Endpoint) bool {
	before := k.byIP[a]
	switch {
	case before == nil || k.p.b.lookup == lookupLast:
		return true
	case k.p.b.lookup == lookupRemote:
		return e.Remote()
	case before.Remote() && !e.Remote():
		k.duplicates = append(k.duplicates, before.ID)
		delete(k.byID, before.ID)
		return true
	case !before.Remote() && e.Remote():
		k.duplicates = append(k.duplicates, e.ID)
	}
	return false
}

func (k *known) add(a netip.Addr, e *hns.Endpoint) {
	if k.p.b.lookup != lookupFirst {
		k.byID[e.ID], k.byIP[a] = e, e
	}
}

// find looks an endpoint up by the id that the backend had, then by address.
func (k *known) find(id string, a netip.Addr) *hns.Endpoint {
	if k.p.b.lookup != lookupFirst {
		if e := k.byID[id]; e != nil {
			return e
		}
		return k.byIP[a]
	}
	if id != "" {
		if e := k.p.hns.Endpoint(id); e != nil {
			return e
		}
	}
	// The endpoints with an address are in the order of creation, as HNS's list is.
	for _, e := range k.p.hns.EndpointsByAddress(a) {
		if i := slices.Index(e.Addresses(), a); i < 2 && e.HostComputeNetwork == k.p.network.ID {
			return e
		}
	}
	return nil
}

// vipEndpoint makes the remote endpoint of a cluster IP on an overlay network
// (factVIPEndpoint). It reports whether the Service port can go on.
func (p *proxier) vipEndpoint(s *portState, k *known, r *Report) bool {
	if !p.network.Is(hns.Overlay) || k.find("", s.clusterIP) != nil {
		return true
	}
	entry := Entry{service: s.svc.Key(), port: portName(s.port), role: roleVIPEndpoint, object: s.clusterIP.String(), what: created,
		fact: factVIPEndpoint}
	e, err := p.createRemote(s.clusterIP, p.hns.HostMAC(), p.nodeIP,
		&trace.Origin{What: "kube-proxy's endpoint for the cluster IP of " + s.svc.Key()})
	if err != nil {
		entry.what, entry.err, entry.frontends = failed, err, p.frontendsOf(s)
		r.add(entry)
		return false
	}
	entry.id = e.ID
	r.add(entry)
	b := &backend{id: e.ID}
	p.reference(b)
	s.vipEndpoint = b
	k.add(s.clusterIP, e)
	return true
}

// remoteEndpoint makes the endpoint of a backend on another machine
// (factRemoteEndpoint); nil when HNS refuses.
func (p *proxier) remoteEndpoint(s *portState, b *backend, k *known, r *Report) *hns.Endpoint {
	entry := Entry{service: s.svc.Key(), port: portName(s.port), role: roleBackend, object: b.addr.String(), what: created,
		fact: factRemoteEndpoint}
	var pa netip.Addr
	if p.network.Is(hns.Overlay) {
		if pa = p.remoteSubnetPA(b.addr); !pa.IsValid() {
			pa = p.nodeIP
			entry.why = "no remote subnet contains it: kube-proxy assumes a public address and uses this node's provider address"
		}
	}
	o := &trace.Origin{What: fmt.Sprintf("kube-proxy's remote endpoint for backend %s of %s", b.addr, s.svc.Key())}
	if s.svc.Origin != nil {
		o.File, o.Line = s.svc.Origin.File, s.svc.Origin.Line
	}
	e, err := p.createRemote(b.addr, conjureMAC(b.addr), pa, o)
	if err != nil {
		entry.what, entry.err, entry.frontends = failed, err, p.frontendsOf(s)
		r.add(entry)
		return nil
	}
	entry.id = e.ID
	r.add(entry)
	if !p.b.forgetsMade {
		k.add(b.addr, e)
	}
	return e
}

func (p *proxier) createRemote(a netip.Addr, mac string, pa netip.Addr, o *trace.Origin) (*hns.Endpoint, error) {
	e := hns.Endpoint{
		HostComputeNetwork: p.network.ID, MacAddress: mac, Flags: hns.EndpointRemote, SchemaVersion: hns.SchemaVersion{Major: 2},
		IpConfigurations: []hns.IpConfig{{IpAddress: a.String()}}, Origin: o,
	}
	if pa.IsValid() {
		e.Policies = []hns.Policy{hns.NewPolicy(hns.ProviderAddressSettings{ProviderAddress: pa.String()}).From(o)}
	}
	return p.hns.CreateEndpoint(e)
}

// reference counts a reference to a remote endpoint.
func (p *proxier) reference(b *backend) {
	if !p.b.sharedReferences {
		one := uint16(1)
		b.refs = &one
		return
	}
	if p.refs[b.id] == nil {
		p.refs[b.id] = new(uint16)
	}
	b.refs = p.refs[b.id]
	*b.refs++
}

// dropUnreferenced deletes the remote endpoints that nothing refers to any more
// at the end of an optimised sync.
func (p *proxier) dropUnreferenced(k *known, r *Report) {
	switch p.b.deletes {
	case deleteBySourceVIP: // every endpoint that was referred to
		for _, e := range p.hns.EndpointsOf(p.network.ID) {
			if n := p.refs[e.ID]; n != nil && *n == 0 {
				p.deleteEndpoint(e.ID, "", "", r)
			}
		}
	case deleteExact: // those of backends that went away
		for _, a := range p.gone {
			e := k.byIP[a]
			if e == nil || !e.Remote() && !p.b.deletesLocal {
				continue
			}
			if n := p.refs[e.ID]; n == nil || *n == 0 {
				p.deleteStale(e, r)
			}
		}
	}
	for _, id := range k.duplicates {
		p.deleteEndpoint(id, "", "", r)
	}
	maps.DeleteFunc(p.refs, func(_ string, n *uint16) bool { return *n == 0 })
}

// deleteStale deletes the endpoint that has the address of a backend that went away. In
// some versions it can be a pod's own (kubeproxy.stale-remote-endpoints).
func (p *proxier) deleteStale(e *hns.Endpoint, r *Report) {
	if e.Remote() {
		p.deleteEndpoint(e.ID, "", "", r)
		return
	}
	entry := Entry{role: roleBackend, object: addressOf(e), id: e.ID, what: deleted, fact: factStale,
		why: "it is the endpoint of a pod on this node, but kube-proxy mistakes it for the stale remote endpoint with this address"}
	if err := p.hns.DeleteEndpoint(e.ID); err != nil {
		entry.what, entry.err = failed, err
	}
	r.add(entry)
}

// conjureMAC makes the MAC address of a remote endpoint out of its address
// (proxier.go conjureMac).
func conjureMAC(a netip.Addr) string {
	if a.Is4() {
		b := a.As4()
		return fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[0], b[1], b[2], b[3])
	}
	b := a.As16()
	return fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[15], b[14], b[13], b[12])
}
