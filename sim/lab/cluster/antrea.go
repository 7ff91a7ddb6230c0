package cluster

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// newAntrea makes the bridges' network of a plan whose plugin is antrea.
func (b *builder) newAntrea() {
	p := b.Plan
	a := b.plugin.(interface{ AgentConf() *cni.AntreaAgent }).AgentConf()
	o := ovs.AntreaOptions{Encap: a.Encap, Tunnel: packet.Geneve, Port: a.TunnelPort, MTU: a.MTU, Bridge: a.Bridge, Gateway: a.Gateway,
		NoSNAT:      a.NoSNAT,
		ClusterCIDR: p.ClusterCIDRs, ServiceCIDRs: p.ServiceCIDRs, Origin: a.Origin}
	if a.Tunnel == "vxlan" {
		o.Tunnel = packet.VXLAN
	}
	b.antrea, b.antreaAgent = ovs.NewAntrea(o), a
}

// antreaNode builds a node of either system. A Windows node has its HNS beside the bridge:
// the network and the endpoints are there, and decide nothing about packets.
func (b *builder) antreaNode(n *Node) error {
	o := ovs.AntreaNodeOptions{NodeOptions: b.chassis(n)}
	if n.Plan.Windows() {
		o.ProxyAll = b.antreaAgent.ProxyAll
		n.HNS = b.newHNS(n)
	}
	x, err := b.antrea.AddNode(o, b.Segment(n.Plan.Segment))
	if err != nil {
		return err
	}
	n.machine, n.antrea = x, x
	if n.HNS == nil {
		n.attach = func(p *pod) (attached, error) {
			l, err := b.plugin.Lease(b.Kube, n.Node, &p.Pod.Pod)
			if err != nil {
				return attached{}, refused(err)
			}
			return attached{Compartment: x.Attach(p.object(), p.Name, l.Prefix.Addr(), packet.MAC{}).Compartment}, nil
		}
		return nil
	}
	n.attach = func(p *pod) (attached, error) {
		if n.unprepared != "" {
			return attached{}, refused(fmt.Errorf("%s", n.unprepared))
		}
		r, err := b.plugin.Add(b.Kube, n.Node, &p.Pod.Pod, n.HNS)
		if err != nil {
			return attached{}, refused(err)
		}
		e := n.HNS.Endpoint(r.EndpointID)
		mac, err := packet.ParseMAC(e.MacAddress)
		if err != nil {
			return attached{}, fmt.Errorf("endpoint %s: %w", e.Name, err)
		}
		return attached{x.Attach(p.object(), e.Name, r.Addresses[0].Addr(), mac).Compartment, r.EndpointID, &r.DNS}, nil
	}
	return nil
}

// antreaPrepared lets the agent make its network in HNS.
func (b *builder) antreaPrepared(n *Node) {
	if _, err := b.plugin.Prepare(b.Kube, n.Node, n.HNS); err != nil {
		b.unprepared(n, err)
	}
}

// antreaRestart is what comes back with a node: its network in HNS does not
// (cni.antrea-network), and the agent makes it again.
func (b *builder) antreaRestart(n *Node) error {
	for _, nw := range n.HNS.ListNetworks(func(nw *hns.Network) bool { return nw.Flags&hns.NetworkNonPersistent != 0 }) {
		if err := n.HNS.DeleteNetwork(nw.ID); err != nil {
			return err
		}
	}
	n.HNS.Boot()
	n.unprepared = ""
	b.antreaPrepared(n)
	return nil
}

// antreaServices are the Services that AntreaProxy serves.
func (b *builder) antreaServices() []ovs.AntreaService {
	var all []ovs.AntreaService
	for _, s := range b.Kube.Services {
		name := ""
		if s.ProxyName != nil {
			name = *s.ProxyName
		}
		if s.Headless || s.HeadlessLabel || s.Type == kube.ExternalName || name != b.antreaAgent.ServiceProxy || s.ProxyName != nil &&
			name == "" {
			continue
		}
		if s.ClientIPAffinity {
			b.notice("sessionAffinity of Service "+s.Key(),
				"the endpoint that AntreaProxy has learnt for a client is not modelled: every connection picks an endpoint", s.Origin)
		}
		for _, p := range s.Ports {
			out := ovs.AntreaService{InternalLocal: s.InternalLocal, ExternalLocal: s.ExternalLocal,
				Service: ovs.Service{Name: s.Key(), Proto: p.Proto, Port: p.Port, Addresses: s.ClusterIPs, NodePort: p.NodePort, Origin: s.Origin}}
			out.External = append(append([]netip.Addr(nil), s.ExternalIPs...), s.IngressIPs...)
			for _, e := range s.Endpoints {
				if e.Ready && e.Port(p) != 0 && e.Addr.Is4() {
					out.Backends = append(out.Backends, netip.AddrPortFrom(e.Addr, e.Port(p)))
					out.On = append(out.On, e.Node)
				}
			}
			all = append(all, out)
		}
	}
	return all
}

// antreaPolicies tells every port the NetworkPolicies of its pod.
func (b *builder) antreaPolicies() {
	match := b.matching()
	for _, p := range b.pods {
		m := b.Machine(Ref{PodKind, p.Key()})
		if m == nil || p.HostNetwork {
			continue
		}
		port := b.node(p.Node).antrea.Port(p.in.Compartment)
		if port == nil {
			continue
		}
		var in, out ovs.AntreaPolicies
		for _, np := range byName(match.policiesFor(p)) {
			if np.RestrictsIn {
				addTo(&in, match, p, np, false)
			}
			if np.RestrictsOut {
				addTo(&out, match, p, np, true)
			}
		}
		port.SetPolicies(in, out)
	}
}

// addTo adds what a policy admits in one direction.
func addTo(to *ovs.AntreaPolicies, match *matching, p *pod, np *labfile.Policy, out bool) {
	if to.Restricted {
		to.Names += ", "
	} else {
		to.Origin = np.Origin
	}
	to.Restricted, to.Names = true, to.Names+np.Key()
	for _, a := range match.admissions(p, []*labfile.Policy{np}, out) {
		to.Rules = append(to.Rules, ovs.AntreaRule{Policy: np.Key(), Origin: np.Origin,
			Admits: func(peer netip.Addr, h *packet.Headers) bool { return a.holds(peer, h) }})
	}
}
