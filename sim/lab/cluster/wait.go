package cluster

import (
	"context"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// A cluster of thousands of nodes would hold every Service and every other node on each
// of them, and a trace visits a handful. What grows with nodes times nodes and nodes
// times Services waits: the ways to the other nodes, and what the model of kube-proxy
// programs. It is made, in the order in which it would have been, before anybody looks at
// the node's HNS or sends it a packet (hns.Service.Later, and Stack.OnUse). Pods and what
// their plugin may refuse are made at once. See docs/reference/speed.md.

// canWait reports whether a node may do the rest when it is used: its programs are models, and
// nothing else watches its HNS.
func (b *builder) canWait(n *Node) bool {
	o := b.Options
	plugin, proxy := b.wanted()
	return !o.Eager && !plugin && !proxy && !o.Keep && o.Objects == "" && o.Proxies == "" &&
		b.Plan.Network.Design == plan.CNI && n.windows != nil && n.Plan.Dump == nil && len(n.Plan.Faults) == 0
}

// proxyCanWait reports whether a node's kube-proxy may follow the Services later: nothing
// that HNS answers it becomes a notice of the cluster. That is the code with which HNS
// refuses a frontend that is taken, on which sources do not agree.
func (b *builder) proxyCanWait(n *Node) bool {
	return n.later && n.proxy != nil && n.unprepared == "" && b.index.servicesOf(b.Kube.Services).distinct &&
		n.proxy.Distinct(b.Kube.Services) &&
		(len(n.states) == 0 || !n.proxy.DeletesPods())
}

// wait lets a node's kube-proxy follow the Services as they are now when the node is used.
func (b *builder) wait(n *Node) {
	if n.states = append(n.states, b.Kube.Services); len(n.states) == 1 {
		n.HNS.Later(func() { b.catchUp(n) })
	}
}

// catchUp does the deferred work on a node.
func (b *builder) catchUp(n *Node) {
	before := b.config
	defer func() { b.waited += b.config - before }()
	peers, states := n.peers, n.states
	n.peers, n.states = nil, nil
	if peers != nil {
		if err := peers(); err != nil { // HNS takes such a route on every node, or on none
			b.unprepared(n, err)
		}
	}
	for _, s := range states {
		b.syncKernelspace(n, s)
	}
	b.settled++
}

// catchUpNow does the deferred work on a node whose HNS has not been used.
func (b *builder) catchUpNow(n *Node) {
	if n.HNS.Settle(); n.peers != nil {
		b.catchUp(n) // while the cluster is being built, nothing asks
	}
}

// settle does what waits on a node, and brings its switches in line.
func (n *Node) settle() {
	if n.windows != nil && n.HNS.Waits() {
		n.windows.Refresh()
	}
}

// Settle does the deferred work on a node. Before that only the stacks of its pods, and its
// addresses, are what they will be.
func (c *Cluster) Settle(n *Node) { n.settle() }

// SettleAll does the deferred work on all nodes.
func (c *Cluster) SettleAll() {
	for _, n := range c.Nodes {
		n.settle()
	}
}

// Settled is how many nodes have been used since the cluster was built, of those on which
// something waited.
func (c *Cluster) Settled() int { return c.settled }

// arm lets nodes wait that know no peers yet, and whose kube-proxy does not.
func (b *builder) arm(context.Context) error {
	for _, n := range b.Nodes {
		if n.peers != nil && len(n.states) == 0 {
			n.HNS.Later(func() { b.catchUp(n) })
		}
	}
	return nil
}

// unuse forgets who was used while the cluster was built: no packet was sent, and a node
// on which something waits is not to be looked at.
func (c *Cluster) unuse() {
	for _, m := range c.used {
		if m.Kind == NodeKind && m.Node.HNS != nil && m.Node.HNS.Waits() {
			m.Stack().Reset()
		} else {
			m.Reset()
		}
	}
	clear(c.used)
	c.used = c.used[:0]
}

// distinct reports whether no two ports of Services want the same frontend.
func distinct(all []*kube.Service) bool {
	seen := map[kubeproxy.Frontend]bool{}
	add := func(a netip.Addr, port uint16, p kube.ServicePort) bool {
		f := kubeproxy.Frontend{Addr: a, Port: port, Proto: p.Proto}
		was := seen[f]
		seen[f] = true
		return !was
	}
	for _, s := range all {
		for _, p := range s.Ports {
			for _, a := range slices.Concat(s.ClusterIPs, s.ExternalIPs, s.IngressIPs) {
				if !add(a, p.Port, p) {
					return false
				}
			}
			if p.NodePort != 0 && !add(netip.Addr{}, p.NodePort, p) {
				return false
			}
		}
	}
	return true
}
