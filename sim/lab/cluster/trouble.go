package cluster

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Trouble is what a program of a node could not do. A cluster with troubles is built
// all the same: its flows end as they would end, and say why.
type Trouble struct {
	// Node is where the program runs, Program "kube-proxy" or the plugin's name.
	Node, Program string
	// Text says in one line what happened, with the error of HNS.
	Text string
	Fact *evidence.Fact

	about func(kubeproxy.Frontend) bool
	// frontends are all that it can be about; none are all of all Services.
	frontends []kubeproxy.Frontend
}

// troublesOf finds the troubles with a frontend: where HNS has no ports left a node has one for each of
// thousands of Services.
type troublesOf struct {
	made bool
	by   map[kubeproxy.Frontend][]int32
	any  []int32 // those that may be about every frontend
}

// indicesAbout are the places in all of the troubles that may be about one of two frontends, ascending.
func (x *troublesOf) indicesAbout(all []Trouble, a, b kubeproxy.Frontend) []int32 {
	if !x.made {
		*x = troublesOf{made: true, by: map[kubeproxy.Frontend][]int32{}}
		for i, t := range all {
			if t.about == nil || len(t.frontends) == 0 {
				x.any = append(x.any, int32(i))
			}
			for _, f := range t.frontends {
				x.by[f] = append(x.by[f], int32(i))
			}
		}
	}
	list := slices.Concat(x.any, x.by[a], x.by[b])
	slices.Sort(list)
	return slices.Compact(list)
}

// trouble notes a trouble with some frontends, or with all for nil.
func (c *Cluster) trouble(n *Node, program, text string, f *evidence.Fact, about func(kubeproxy.Frontend) bool) {
	c.addTrouble(Trouble{Node: n.Name, Program: program, Text: text, Fact: f, about: about})
}

func (c *Cluster) addTrouble(t Trouble) {
	c.troubles, c.troublesOf = append(c.troubles, t), troublesOf{}
	c.log(t.Program + " on " + t.Node + ": " + t.Text)
}

// noTroubles forgets those of a program, which has tried again.
func (c *Cluster) noTroubles(n *Node, program string) {
	c.troubles = slices.DeleteFunc(c.troubles, func(t Trouble) bool { return t.Node == n.Name && t.Program == program })
	c.troublesOf = troublesOf{}
}

// Troubles are those that concern a connection to an address, by node: the address is
// one of a Service, or the node's own and the port a node port.
func (c *Cluster) Troubles(to netip.AddrPort, proto packet.Proto) []Trouble {
	whole := kubeproxy.Frontend{Addr: to.Addr(), Port: to.Port(), Proto: proto}
	port := kubeproxy.Frontend{Port: to.Port(), Proto: proto}
	if len(c.troubles) == 0 || !c.isFrontend(whole) && !c.isFrontend(port) {
		return nil
	}
	var all []Trouble
	for _, i := range c.troublesOf.indicesAbout(c.troubles, whole, port) {
		t, f := c.troubles[i], whole
		if n := c.node(t.Node); n != nil && (n.Address == f.Addr || n.Address6 == f.Addr) {
			f = port
		}
		if c.isFrontend(f) && (t.about == nil || t.about(f)) {
			all = append(all, t)
		}
	}
	// A node's kube-proxy is done when the node is used; the list does not tell when.
	slices.SortStableFunc(all, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(btoi(a.Program == kubeProxy), btoi(b.Program == kubeProxy)),
			cmp.Compare(c.index.place(c.Nodes, a.Node), c.index.place(c.Nodes, b.Node)))
	})
	return all
}

// hasLoadBalancer reports whether an HNS has a load balancer for a frontend.
func hasLoadBalancer(s *hns.Service, f kubeproxy.Frontend) bool {
	return len(s.ListLoadBalancers(func(lb *hns.LoadBalancer) bool { return serves(lb, f) })) > 0
}

// serves reports whether a load balancer is for a frontend.
func serves(lb *hns.LoadBalancer, f kubeproxy.Frontend) bool {
	own := !f.Addr.IsValid() && len(lb.FrontendVIPs) == 0 || f.Addr.IsValid() && slices.Contains(lb.FrontendVIPs, f.Addr.String())
	return own && slices.ContainsFunc(lb.PortMappings, func(m hns.LBPortMapping) bool {
		return m.ExternalPort == f.Port &&
			m.Protocol == uint32(f.Proto)
	})
}

// isFrontend reports whether a Service has a frontend.
func (c *Cluster) isFrontend(f kubeproxy.Frontend) bool {
	return f.Port != 0 && c.index.servicesOf(c.Kube.Services).frontends[f] != nil
}
