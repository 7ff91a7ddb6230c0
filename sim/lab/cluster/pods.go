package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var factNoUDP15 = evidence.New("lab.container-udp-1.5", evidence.Stated,
	"With Kubernetes 1.5, programs in Windows containers cannot use UDP.",
	"Kubernetes blog, Windows Server support comes to Kubernetes (1.5), alpha limitations")

// pod is a pod of the plan on its node; given is the address that it got, given6 its
// IPv6 address.
type pod struct {
	*plan.Pod
	given, given6 netip.Addr
	// late pods are in no Service yet; one that leaves terminates.
	late, leaves bool
	// outside: a container runtime has added it, and it is in no Service by its labels.
	outside bool
	// in is its network.
	in       attached
	listened []*host.Listener
}

// podObject begins the name of a pod's stack in traces.
const podObject = "pod/"

func (p *pod) object() string { return podObject + p.Key() }

// attached is what a network made for a pod.
type attached struct {
	*machine.Compartment
	endpoint string
	// resolver is what the plugin's result says of DNS; nil where it says nothing.
	resolver *hns.DNS
}

// attachPods gives every pod its network and starts its programs.
func (b *builder) attachPods(ctx context.Context) error {
	if b.Options.Objects == Outside {
		return nil
	}
	for _, planned := range b.Plan.Pods {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.addPod(&pod{Pod: planned, late: planned.Late}); err != nil {
			return err
		}
	}
	b.sortPods()
	return nil
}

// addPod gives a pod its network and starts its programs. A pod that the plugin refuses
// is left out of the cluster (see WithoutNetwork).
func (b *builder) addPod(p *pod) error {
	n := b.node(p.Node)
	m := &Machine{Ref: Ref{PodKind, p.Key()}, Node: n, Run: p.Run}
	if p.HostNetwork {
		m.Machine, m.Address = machine.NewCompartment(n.machine.Stack(), n.Address), n.Address
	} else if err := b.attach(n, p, m); err != nil {
		if r := asRefusal(err); r != nil {
			b.leaveOut(n, p, r)
			return nil
		}
		return fmt.Errorf("pod %s on %s: %w", p.Key(), n.Name, err)
	}
	b.forgetRefusal(p.Key())
	b.start(m, p)
	p.given, p.given6 = m.Address, m.Stack().Address(true)
	if p.HostNetwork {
		p.given6 = n.Address6
	}
	b.pods = append(b.pods, p)
	b.add(m)
	return nil
}

// attach makes a pod's network.
func (b *builder) attach(n *Node, p *pod, m *Machine) error {
	at, err := n.attach(p)
	if err != nil {
		return err
	}
	if n.Plan.Windows() {
		at.Stack().Refuse = append(at.Stack().Refuse, b.refusals()...)
	}
	m.Machine, m.Address, m.Endpoint, p.in = at.Compartment, at.Address, at.endpoint, at
	cl, err := b.resolverOf(n, p)
	if err != nil {
		return err
	}
	if at.resolver != nil {
		cl.ConnectionSuffix, cl.InterfaceSuffixes = at.resolver.Domain, at.resolver.Search
		origin := p.Origin
		if n.HNS != nil {
			if e := n.HNS.Endpoint(at.endpoint); e != nil {
				origin = e.Origin
			}
		}
		servers, err := addresses(at.resolver.ServerList, "a DNS server of its interface", origin)
		if err != nil {
			return err
		}
		if err := b.setServers(&cl, n, m.Ref.String(), at.endpoint, servers); err != nil {
			return err
		}
		b.notGiven(p, at.resolver)
	}
	m.resolver = &cl
	return nil
}

// resolverOf is the resolver configuration that the kubelet asks for a pod
// (Kubernetes documentation, DNS for Services and Pods; pkg/kubelet/network/dns).
func (b *builder) resolverOf(n *Node, p *pod) (dns.Client, error) {
	k := cni.KubeletDNS(b.Kube, &p.Pod.Pod)
	servers, err := addresses(k.Nameservers, "a DNS server of the kubelet", p.Origin)
	if err != nil {
		return dns.Client{}, err
	}
	c := dns.Client{OS: dns.OnLinux, Servers: servers, Search: k.Search, Ndots: 5,
		GlobalSuffixes: p.DNS.GlobalSuffixes, AppendToMultiLabel: p.DNS.AppendToMultiLabel}
	if p.Resolver.None || p.Resolver.Ndots > 0 {
		c.Ndots = p.Resolver.Ndots
	}
	switch p.DNSPolicy {
	case "", "ClusterFirst", "ClusterFirstWithHostNet", "None":
	default:
		b.notice("dnsPolicy "+p.DNSPolicy+" of pod "+p.Key(), "the resolver of the node is not known; the pod asks the cluster DNS in this lab",
			p.Origin)
	}
	if n.Plan.Windows() {
		c.OS = dns.OnWindows
		if !p.Resolver.None {
			c.InterfaceSuffixes = []string{p.Namespace + ".svc." + b.Plan.Domain}
		}
		c.InterfaceSuffixes = append(c.InterfaceSuffixes, p.Resolver.Search...)
	}
	return c, nil
}

// notGiven says that a pod's interface lacks what its dnsConfig asks for: the runtime
// passes that to plugins whose configuration has the capability dns (cni.plugin-dns).
func (b *builder) notGiven(p *pod, got *hns.DNS) {
	r := p.Resolver
	missing := r.None && len(r.Servers) == 0 && len(got.ServerList) > 0
	for _, a := range r.Servers {
		missing = missing || !slices.Contains(got.ServerList, a.String())
	}
	for _, name := range r.Search {
		missing = missing || !slices.Contains(got.Search, name)
	}
	if missing {
		b.notice("dnsConfig of pod "+p.Key(),
			"the pod's interface does not get it: the runtime passes it only to a plugin whose configuration has the dns capability", p.Origin)
	}
}

// refusals are the protocols that containers of this release cannot use.
func (b *builder) refusals() []host.Refusal {
	if b.Kube.Version.AtLeast(14) {
		return nil
	}
	return []host.Refusal{{Proto: packet.UDP, Text: "programs in Windows containers cannot use UDP with Kubernetes " + b.Kube.Version.String(),
		Fact: factNoUDP15}}
}

// start runs a pod's programs.
func (b *builder) start(m *Machine, p *pod) {
	m.Stack().PortsUnknown = p.PortsUnknown
	for _, l := range p.Listen {
		h := &host.Listener{Name: p.Name, Proto: l.Proto, Port: l.Port, Origin: p.Origin}
		if p.ServesDNS() {
			h.Answer = b.serveNames(m)
		}
		p.listened = append(p.listened, h)
		m.Stack().Listen(h)
	}
}

// attachByCNI lets the plugin attach a pod on a Windows node: its model or its
// program.
func (b *builder) attachByCNI(n *Node, p *pod) (attached, error) {
	var r cni.Result
	var err error
	if n.unprepared != "" {
		return attached{}, refused(errors.New(n.unprepared))
	}
	if b.real != nil && b.real.plugins != nil {
		r, err = b.real.attach(n, &p.Pod.Pod)
	} else {
		r, err = b.plugin.Add(b.Kube, n.Node, &p.Pod.Pod, n.HNS)
		err = refused(err)
	}
	if err != nil {
		return attached{}, err
	}
	c, err := n.windows.Attach(p.object(), r.EndpointID, r.Gateway)
	return attached{c, r.EndpointID, &r.DNS}, err
}

// attachByLease attaches a pod on a Linux node with an address of the plugin's.
func (b *builder) attachByLease(n *Node, p *pod) (attached, error) {
	l, err := b.plugin.Lease(b.Kube, n.Node, &p.Pod.Pod)
	if err != nil {
		return attached{}, refused(err)
	}
	c, err := n.linux.Attach(p.object(), l.Prefix, l.Gateway, b.plugin.Linux(b.Kube, n.Node).PodsInNodeSubnet)
	if err == nil {
		c.Stack().Links[0].MTU = n.podMTU()
	}
	if err == nil && l.Prefix6.IsValid() {
		n.linux.AddAddress(c, l.Prefix6, l.Gateway6)
	}
	return attached{Compartment: c}, err
}

// podMTU is the MTU of pods on a Linux node: that of the tunnel device, as flannel writes
// it into subnet.env (FLANNEL_MTU), else that of the NIC.
func (n *Node) podMTU() int { return cmp.Or(n.tunnelMTU, n.Stack().Links[0].MTU) }

// attachToDocker attaches a pod of a Linux node to Docker's own bridge.
func (b *builder) attachToDocker(n *Node, p *pod, bridge netip.Prefix) (attached, error) {
	addr := p.Address
	for !addr.IsValid() {
		n.leases++
		next := plan.Nth(bridge.Addr(), n.leases)
		if !slices.ContainsFunc(b.Plan.Pods, func(o *plan.Pod) bool { return o.Node == n.Name && o.Address == next }) {
			addr = next
		}
	}
	c, err := n.linux.Attach(p.object(), netip.PrefixFrom(addr, bridge.Bits()), bridge.Addr(), false)
	return attached{Compartment: c}, err
}

// attachFromDump finds the endpoint of a pod in a dump: by its pinned address,
// or by a name that contains the pod's.
func (n *Node) attachFromDump(p *pod) (attached, error) {
	all := n.HNS.ListEndpoints(nil)
	i := slices.IndexFunc(all, func(e *hns.Endpoint) bool {
		return !e.Remote() && isOf(e, p.Pod)
	})
	if i < 0 {
		return attached{}, errors.New("the dump has no local endpoint for it; set the pod's address to that of one of the dump's endpoints")
	}
	match := all[i]
	c, err := n.windows.Attach(p.object(), match.ID, gatewayOf(n, match))
	return attached{Compartment: c, endpoint: match.ID, resolver: dnsOf(match)}, err
}

// gatewayOf is the gateway of an endpoint, else that of its subnet.
func gatewayOf(n *Node, e *hns.Endpoint) netip.Addr {
	gw := e.Gateway(false)
	if nw := n.HNS.Network(e.HostComputeNetwork); nw != nil && !gw.IsValid() {
		for _, s := range nw.Subnets() {
			if s.Prefix().Contains(e.Address(false)) {
				gw = s.Gateway()
			}
		}
	}
	return gw
}
