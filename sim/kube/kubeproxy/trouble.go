package kubeproxy

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Frontend is an address and port of a Service. The zero Addr is a node port, on all
// addresses of the node.
type Frontend struct {
	Addr  netip.Addr
	Port  uint16
	Proto packet.Proto
}

// Trouble is why kube-proxy has made no load balancer for some frontends, or has taken
// one away.
type Trouble struct {
	// Service is "namespace/name", "" where it is about all Services.
	Service string
	// Frontends are those that it is about; none is all of all Services.
	Frontends []Frontend
	// Text says what happened, with the error of HNS, in one line.
	Text string
	Fact *evidence.Fact
	// backend: the load balancers are there, and lack a backend.
	backend bool
}

// About reports whether it is about a frontend.
func (t Trouble) About(f Frontend) bool {
	return len(t.Frontends) == 0 || slices.Contains(t.Frontends, f)
}

// Troubles follows what became of each frontend through a node's syncs.
type Troubles struct{ all []Trouble }

// Note takes in the report of the next sync: what succeeds now is no longer a trouble, and
// neither is what a Service wanted that is gone.
func (ts *Troubles) Note(r Report) {
	programmed, there := map[string]bool{}, map[string]bool{}
	if len(ts.all) > 0 {
		for _, e := range r.entries {
			if e.role.isLoadBalancer() && e.what != kept {
				programmed[e.service] = true
			}
		}
		for _, s := range r.services {
			there[s] = true
		}
	}
	ts.all = slices.DeleteFunc(ts.all, func(t Trouble) bool {
		return t.backend && programmed[t.Service] || t.Service != "" && !there[t.Service]
	})
	// of are the Services that may have a trouble: most have none to look for.
	of := map[string]bool{}
	for _, t := range ts.all {
		of[t.Service] = true
	}
	for _, e := range r.entries {
		t := Trouble{Service: e.service, Frontends: e.frontends, Fact: e.fact, backend: e.role == roleBackend}
		about := func(u Trouble) bool {
			return !u.backend && u.Service == e.service && slices.ContainsFunc(u.Frontends,
				func(f Frontend) bool { return slices.Contains(e.frontends, f) })
		}
		bad := t.backend || e.what == failed || e.what == skipped || e.what == deleted
		if len(e.frontends) == 0 || !bad && !of[e.service] {
			continue
		}
		if !t.backend && of[e.service] {
			ts.all = slices.DeleteFunc(ts.all, about)
		}
		if bad {
			t.Text = e.String()
			ts.all = append(ts.all, t)
			of[e.service] = true
		}
	}
}

// All returns those that are left.
func (ts *Troubles) All() []Trouble { return slices.Clone(ts.all) }

// isLoadBalancer reports whether the role is that of a load balancer.
func (r role) isLoadBalancer() bool {
	switch r {
	case roleClusterIP, roleNodePort, roleExternalIP, roleIngress, roleHealthCheck:
		return true
	}
	return false
}

// frontendsOf are all frontends of a Service port.
func (p *proxier) frontendsOf(s *portState) []Frontend {
	all := []Frontend{{s.clusterIP, s.port.Port, s.port.Proto}}
	if s.port.NodePort != 0 {
		all = append(all, Frontend{Port: s.port.NodePort, Proto: s.port.Proto})
	}
	for _, v := range slices.Concat(s.externals, s.ingresses) {
		all = append(all, Frontend{v.addr, s.port.Port, s.port.Proto})
	}
	return all
}
