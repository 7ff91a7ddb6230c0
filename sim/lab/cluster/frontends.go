package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// FrontendState is what one node has now for an address and port of a Service.
type FrontendState struct {
	// Known: the rest says something. It is not for nodes whose Services another program
	// than kube-proxy serves.
	Known bool
	// Made: the node has a load balancer for it, with backends or without.
	Made bool
	// Because says why the load balancer does not exist, or why an existing one has no effect, as
	// the end of a sentence; "" where that is not known.
	Because string
}

// FrontendOn is the state of a Service's address and port on a node. svc may be nil,
// for an address that no Service of the lab has: a dumped node may have a load balancer
// for it.
func (c *Cluster) FrontendOn(node string, svc *kube.Service, a netip.Addr, port uint16, proto packet.Proto) FrontendState {
	n := c.node(node)
	switch {
	case n == nil || svc == nil && n.HNS == nil || n.antrea != nil:
		return FrontendState{}
	case n.linux != nil:
		because := kubeproxy.PassedOver(n.Version, svc)
		if because == "" {
			because = kubeproxy.NoBackend(node, svc, !slices.Contains(svc.ClusterIPs, a))
		}
		return FrontendState{Known: true, Made: because == "", Because: because}
	case n.HNS == nil || n.Plan.Proxy.Mode == kubeproxy.ModeUserspace:
		return FrontendState{}
	case hasLoadBalancer(n.HNS, n.frontend(a, port, proto)):
		return n.made(c, a)
	}
	s := FrontendState{Known: true}
	refused := slices.IndexFunc(n.refused, func(r refusal) bool { return serves(&r.lb, n.frontend(a, port, proto)) })
	stopped := slices.IndexFunc(c.troubles, func(t Trouble) bool { return t.Node == node && t.Program == kubeProxy && t.about == nil })
	switch {
	case refused >= 0:
		s.Because = fmt.Sprintf("the lab asked for it, but HNS refused: %v", n.refused[refused].err)
	case n.Plan.Dump != nil:
		s.Because = "the dump of " + node + " does not have one"
	case n.stopped:
		s.Because = "kube-proxy on " + node + " is not running"
	case n.Plan.Proxy.Mode != kubeproxy.ModeKernelspace:
		s.Because = "kube-proxy does not run on " + node
	case stopped >= 0:
		s.Because = "kube-proxy on " + node + ": " + c.troubles[stopped].Text
	case svc != nil && kubeproxy.PassedOver(n.Version, svc) != "":
		s.Because = kubeproxy.PassedOver(n.Version, svc)
	case c.b.proxyOutside(n):
		s.Because = "kube-proxy on " + node + ", which the lab does not run, did not create one"
	case svc == nil || n.synced == nil:
		// Where the program itself ran, only its log says why.
	default:
		s.Because = n.unmade(svc, n.frontend(a, port, proto))
	}
	return s
}

// unmade says why the model of kube-proxy left a frontend without a load balancer.
func (n *Node) unmade(svc *kube.Service, f kubeproxy.Frontend) string {
	i := slices.IndexFunc(svc.Ports, func(p kube.ServicePort) bool {
		return p.Proto == f.Proto && (f.Addr.IsValid() && p.Port == f.Port || !f.Addr.IsValid() && p.NodePort == f.Port)
	})
	if i < 0 {
		return ""
	}
	because, made := n.synced.Missing(n.Name, svc, svc.Ports[i], f.Addr)
	if made {
		return "kube-proxy created it, but HNS no longer has it"
	}
	return because
}

// made is the state of a frontend for which there is a load balancer. For a node
// port of a node without pods there is one, and it does nothing
// (hns.node-port-needs-a-pod).
func (n *Node) made(c *Cluster, a netip.Addr) FrontendState {
	s := FrontendState{Known: true, Made: true}
	if n.owns(a) && !slices.ContainsFunc(c.Machines(PodKind), func(m *Machine) bool { return m.Node == n && m.Endpoint != "" }) {
		s.Because = "no pod of the container network runs there, and a Windows node without one does not forward its node ports"
	}
	return s
}

// refusal is a load balancer that HNS refused.
type refusal struct {
	lb  hns.LoadBalancer
	err error
}

// frontend is an address and port as kube-proxy on the node knows it: one of the node's
// own addresses is a node port.
func (n *Node) frontend(a netip.Addr, port uint16, proto packet.Proto) kubeproxy.Frontend {
	if n.owns(a) {
		a = netip.Addr{}
	}
	return kubeproxy.Frontend{Addr: a, Port: port, Proto: proto}
}

// owns reports whether an address is the node's.
func (n *Node) owns(a netip.Addr) bool { return a == n.Address || a == n.Address6 }

// HostPort is the first pod of a node that asks for a hostPort, "" for none, and whether
// its endpoint publishes it. Only nodes with HNS are asked.
func (c *Cluster) HostPort(node string, port uint16, proto packet.Proto) (pod string, published bool) {
	asks := map[string]bool{}
	for _, p := range c.b.pods {
		if slices.ContainsFunc(p.HostPorts, func(h kube.HostPort) bool { return h.Proto == proto && h.HostPort == port }) {
			asks[p.Key()] = true
		}
	}
	for _, m := range c.Machines(PodKind) {
		if m.Node.Name != node || m.Node.HNS == nil || !asks[m.Name] {
			continue
		}
		e := m.Node.HNS.Endpoint(m.Endpoint)
		if e != nil && e.Publishes(proto, port) {
			return m.Name, true
		}
		pod = cmp.Or(pod, m.Name)
	}
	return pod, false
}
