package cluster

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
)

// index finds what a cluster has by name and address, so that a trace does not look at
// every machine and Service of it. Each part is made when somebody asks for it, and is
// forgotten when the list changes that it is made from.
type index struct {
	byRef  map[Ref]*Machine
	ofKind map[Kind][]*Machine
	// owners are the machines that have an address and whose addresses do not change:
	// pods by place, nodes, hosts. sharing are the pods in the network of their node, by place.
	owners   map[netip.Addr]owner
	sharing  []owner
	nodes    map[string]*Node
	places   map[string]int
	services services
}

type owner struct {
	*Machine
	place int // among the pods
}

// services are those of one list of Services.
type services struct {
	of    []*kube.Service
	named map[string]*kube.Service // by "namespace/name", the first
	// frontends are by address and port, the first; a node port is on the zero Addr.
	frontends map[kubeproxy.Frontend]*frontendOf
	// distinct: no two ports of Services want the same.
	distinct bool
}

type frontendOf struct {
	*kube.Service
	order int
}

// forget forgets what depends on the list of machines.
func (x *index) forget() { x.byRef, x.ofKind, x.owners, x.sharing = nil, nil, nil, nil }

// forgetServices forgets what depends on the Services.
func (x *index) forgetServices() { x.services = services{} }

func (x *index) machines(all []*Machine) {
	if x.byRef != nil {
		return
	}
	x.byRef, x.ofKind = make(map[Ref]*Machine, len(all)), map[Kind][]*Machine{}
	for _, m := range all {
		if x.byRef[m.Ref] == nil {
			x.byRef[m.Ref] = m
		}
		x.ofKind[m.Kind] = append(x.ofKind[m.Kind], m)
	}
}

// Machine finds a machine; nil for none.
func (c *Cluster) Machine(r Ref) *Machine {
	c.index.machines(c.machines)
	return c.index.byRef[r]
}

// Machines lists all machines of a kind: pods by name, others in the lab's order. The
// list is the cluster's own: do not change it.
func (c *Cluster) Machines(k Kind) []*Machine {
	c.index.machines(c.machines)
	return slices.Clip(c.index.ofKind[k])
}

// Owner is the machine that has an address: pods before nodes before hosts; nil for none.
func (c *Cluster) Owner(a netip.Addr) *Machine {
	if a.IsLoopback() { // everybody has it
		for _, k := range []Kind{PodKind, HostKind} {
			if all := c.Machines(k); len(all) > 0 {
				return all[0]
			}
		}
		return nil
	}
	c.index.addresses(c)
	first, ok := c.index.owners[a]
	for _, s := range c.index.sharing {
		if (!ok || first.Kind != PodKind || s.place < first.place) && s.Stack().Owns(a) {
			return s.Machine
		}
	}
	return first.Machine
}

func (x *index) addresses(c *Cluster) {
	if x.owners != nil {
		return
	}
	x.owners, x.sharing = map[netip.Addr]owner{}, nil
	add := func(m *Machine, place int, a netip.Addr) {
		if _, taken := x.owners[a]; !taken && a.IsValid() {
			x.owners[a] = owner{m, place}
		}
	}
	stack := func(m *Machine, place int) {
		for _, l := range m.Stack().Links {
			for _, p := range l.Addrs {
				add(m, place, p.Addr())
			}
		}
	}
	for i, m := range c.Machines(PodKind) {
		if m.Stack() == m.Node.Stack() {
			x.sharing = append(x.sharing, owner{m, i})
		} else {
			stack(m, i)
		}
	}
	for _, m := range c.Machines(NodeKind) {
		add(m, 0, m.Node.Address)
		add(m, 0, m.Node.Address6)
	}
	for _, m := range c.Machines(HostKind) {
		stack(m, 0)
	}
}

func (x *index) node(all []*Node, name string) *Node {
	if len(x.nodes) != len(all) { // nodes are added, and never go
		x.nodes, x.places = make(map[string]*Node, len(all)), make(map[string]int, len(all))
		for i, n := range all {
			x.nodes[n.Name], x.places[n.Name] = n, i
		}
	}
	return x.nodes[name]
}

// place is where a node is in the list.
func (x *index) place(all []*Node, name string) int {
	x.node(all, name)
	return x.places[name]
}

// servicesOf is the index of a list. A cluster makes a new list when Services change.
func (x *index) servicesOf(all []*kube.Service) *services {
	if s := &x.services; s.named != nil && len(s.of) == len(all) && (len(all) == 0 || &s.of[0] == &all[0]) {
		return s
	}
	s := services{of: all, named: make(map[string]*kube.Service, len(all)), frontends: map[kubeproxy.Frontend]*frontendOf{},
		distinct: distinct(all)}
	for i, svc := range all {
		if s.named[svc.Key()] == nil {
			s.named[svc.Key()] = svc
		}
		for _, p := range svc.Ports {
			add := func(a netip.Addr, port uint16) {
				f := kubeproxy.Frontend{Addr: a, Port: port, Proto: p.Proto}
				if s.frontends[f] == nil {
					s.frontends[f] = &frontendOf{svc, i}
				}
			}
			for _, list := range [][]netip.Addr{svc.ClusterIPs, svc.ExternalIPs, svc.IngressIPs} {
				for _, a := range list {
					add(a, p.Port)
				}
			}
			if p.NodePort != 0 {
				add(netip.Addr{}, p.NodePort)
			}
		}
	}
	x.services = s
	return &x.services
}
