package hns

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// The rules of a load balancer name addresses, not endpoints. An endpoint that is
// deleted stays in them (hns.endpoint-deletion-leaves-load-balancer), until the load
// balancer is made again or HNS restarts (hns.restart-drops-stale-backends).

// keepStale remembers a deleted endpoint for the load balancers that name it.
func (s *Service) keepStale(e *Endpoint) {
	if s.named(e.ID) {
		if s.stale == nil {
			s.stale = map[string]*Endpoint{}
		}
		s.stale[e.ID] = e
	}
}

// forgetStale drops the deleted endpoints that no load balancer names any more.
func (s *Service) forgetStale() {
	for id := range s.stale {
		if !s.named(id) {
			delete(s.stale, id)
		}
	}
}

// named reports whether a load balancer has the endpoint with that id as a backend.
func (s *Service) named(id string) bool {
	return first(s.loadBalancers.list(func(l *LoadBalancer) bool {
		return slices.ContainsFunc(l.HostComputeEndpoints, func(b string) bool { return normID(b) == id })
	})) != nil
}

// backend is a backend of a load balancer as VFP's rules have it.
type backend struct {
	*Endpoint
	// deleted is set when the endpoint is gone and the rules still have it.
	deleted bool
}

// isLocal reports whether the rules have the backend as one of this node. A local
// endpoint that was detached or deleted since then still is; one that is not known
// may be.
func (b backend) isLocal() bool {
	return b.Endpoint == nil || b.Attached() || !b.Remote() && (b.deleted || b.State == StateDetached)
}

// backend finds a backend by the id that a load balancer has. Its Endpoint is nil for
// an id that this service has never seen: one of a dump that is not complete.
func (s *Service) backend(id string) (b backend, ok bool) {
	if e := s.Endpoint(id); e != nil {
		return backend{e, false}, true
	}
	if e := s.stale[normID(id)]; e != nil {
		return backend{e, true}, true
	}
	return backend{}, s.unseen[normID(id)]
}

// findUnseen notes the backends of loaded load balancers that were not loaded.
func (s *Service) findUnseen() {
	s.unseen = map[string]bool{}
	for _, l := range s.loadBalancers.list(nil) {
		for _, id := range l.HostComputeEndpoints {
			if s.Endpoint(id) == nil {
				s.unseen[normID(id)] = true
			}
		}
	}
}

// staleTarget says of a destination what a trace must say of it.
func (c *Compiler) staleTarget(t vfp.Target, b backend) vfp.Target {
	t.Note, t.Fact = "its HNS endpoint "+nameAndID(b.Name, b.ID)+" was deleted, but the rule still has it", factStaleBackend
	if holder := c.localAt(t.Addr); holder != nil {
		t.Note += "; endpoint " + nameAndID(holder.Name, holder.ID) + " has the address now"
	}
	return t
}

// unseenTarget stands for a backend whose address is not known.
func unseenTarget(id string, port uint16) vfp.Target {
	return vfp.Target{Port: port, Unknown: true, Fact: factUnseenBackend,
		Note: "the endpoint " + id +
			", which the load balancer names, is not among the node's endpoints: VFP may still send to its former address"}
}

// macOf is where the frame for a local backend goes: to the endpoint that has the
// address, else to the one that had it.
func (c *Compiler) macOf(t vfp.Target, b backend) packet.MAC {
	if b.deleted {
		if holder := c.localAt(t.Addr); holder != nil {
			return mac(holder.MacAddress)
		}
	}
	return mac(b.MacAddress)
}
