package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// services makes what proxies and the DNS see of the Services: those that every
// cluster has, then the lab's own, all with their endpoints.
func (b *builder) services(context.Context) error {
	defer b.index.forgetServices()
	if b.Options.Objects == Outside {
		b.Kube.Services = b.given
		return nil
	}
	b.Kube.Services = b.builtinServices()
	selectable := b.podsByLabel()
	for _, s := range b.lists {
		k := s.Service
		for _, v6 := range []bool{false, true} {
			if !s.HasFamily(v6) {
				continue
			}
			for _, p := range selectable.candidates(s) {
				if a := p.address(v6); s.Selects(p.Namespace, p.Labels) && (a.IsValid() || !v6) {
					k.Endpoints = append(k.Endpoints, b.endpoint(p, s, a))
				}
			}
		}
		for _, sl := range b.slices {
			if sl.Namespace == s.Namespace && sl.Service == s.Name {
				k.Endpoints = append(k.Endpoints, slices.DeleteFunc(sl.Of(&k), func(e kube.Endpoint) bool {
					p := b.pod(e.Pod)
					return p != nil && p.late
				})...)
			}
		}
		b.Kube.Services = append(b.Kube.Services, &k)
	}
	return nil
}

// label is one label of a pod in a namespace.
type label struct{ namespace, key, value string }

// podsByLabel are the pods that Services select by labels, each list in the order of all
// pods.
type podsByLabel map[label][]*pod

func (b *builder) podsByLabel() podsByLabel {
	all := podsByLabel{}
	for _, p := range b.pods {
		if p.late || p.outside {
			continue
		}
		for k, v := range p.Labels {
			l := label{p.Namespace, k, v}
			all[l] = append(all[l], p)
		}
	}
	return all
}

// candidates are the pods with the label of a Service's selector that the fewest have.
func (all podsByLabel) candidates(s *labfile.Service) []*pod {
	var least []*pod
	first := true
	for k, v := range s.Selector {
		if ps := all[label{s.Namespace, k, v}]; first || len(ps) < len(least) {
			least, first = ps, false
		}
	}
	return least
}

// builtinServices are those that every cluster has.
func (b *builder) builtinServices() []*kube.Service {
	api := &kube.Service{Namespace: "default", Name: "kubernetes", Type: kube.ClusterIP,
		ClusterIPs: []netip.Addr{b.Kube.ServiceCIDRs[0].Addr().Next()},
		Ports:      []kube.ServicePort{{Name: "https", Proto: packet.TCP, Port: 443, Target: APIPort}},
		Origin:     &trace.Origin{What: "Service kubernetes (of every cluster)"}}
	for _, n := range b.Nodes {
		if slices.Contains(n.Plan.Listen, labfile.ListenPort{Proto: packet.TCP, Port: APIPort}) {
			api.Endpoints = append(api.Endpoints, kube.Endpoint{Addr: n.Address, Ready: true, Serving: true})
		}
	}
	if b.Plan.File.Lab.Spec.DNS.Off {
		return []*kube.Service{api}
	}
	d := &kube.Service{Namespace: "kube-system", Name: "kube-dns", Type: kube.ClusterIP, ClusterIPs: []netip.Addr{b.Kube.DNSIP},
		Ports: []kube.ServicePort{{Name: "dns", Proto: packet.UDP, Port: 53, Target: 53},
			{Name: "dns-tcp", Proto: packet.TCP, Port: 53, Target: 53}},
		Origin: &trace.Origin{What: "Service kube-dns (of every cluster)"}}
	for _, p := range b.pods {
		if p.ServesDNS() && !p.late && !p.outside {
			leaves := p.Terminating || p.leaves
			d.Endpoints = append(d.Endpoints, kube.Endpoint{Addr: p.given, Node: p.Node, Pod: p.Key(), Ready: p.Ready && !leaves, Serving: p.Ready,
				Terminating: leaves})
		}
	}
	return []*kube.Service{api, d}
}

func hasIPv6(s *kube.Service) bool {
	return slices.ContainsFunc(s.ClusterIPs, netip.Addr.Is6)
}

// address is the pod's address of a family, the zero Addr for none.
func (p *pod) address(v6 bool) netip.Addr {
	if v6 {
		return p.given6
	}
	return p.given
}

// APIPort is where the API server listens on its node.
const APIPort = 6443

// endpoint is a pod as a backend of a Service. For ports of the Service that name their
// target it needs a container port of that name (EndpointSlice controller, FindPort).
func (b *builder) endpoint(p *pod, s *labfile.Service, a netip.Addr) kube.Endpoint {
	terminating := p.Terminating || p.leaves
	e := kube.Endpoint{Addr: a, Node: p.Node, Pod: p.Key(),
		Ready: p.Ready && !terminating || s.PublishNotReady, Serving: p.Ready, Terminating: terminating, Ports: map[string]uint16{}}
	if p.Subdomain == s.Name {
		e.Hostname = p.Hostname
	}
	for port, name := range s.TargetNames {
		n, ok := p.Ports[name]
		if !ok {
			b.notice(fmt.Sprintf("pod %s as backend of Service %s", p.Key(), s.Key()),
				fmt.Sprintf(
					"the Service's targetPort is %q, but no container of the pod has a port with that name: the pod is not an endpoint of this port",
					name), s.Origin)
			continue
		}
		e.Ports[port] = n
	}
	return e
}

// proxies starts kube-proxy on every node and lets it program the Services: as
// they are without the late pods, if there are any, then with them.
func (b *builder) proxies(ctx context.Context) error {
	for _, n := range b.Nodes {
		if err := b.startProxy(n); err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	if err := b.sync(); err != nil {
		return err
	}
	states := [][]*kube.Service{b.Kube.Services}
	if slices.ContainsFunc(b.pods, func(p *pod) bool { return p.late }) {
		for _, p := range b.pods {
			p.late = false
		}
		if err := b.follow(ctx); err != nil {
			return err
		}
		states = append(states, b.Kube.Services)
	}
	if b.real != nil && b.real.proxy && b.Options.Later {
		b.real.states = states
	} else if b.real != nil && b.real.proxy {
		return b.real.proxies(states)
	}
	return nil
}

// startProxy starts the model of kube-proxy in kernelspace mode on a Windows node,
// where there is no dump of what it did and the program itself will not do it.
func (b *builder) startProxy(n *Node) (err error) {
	if b.ovs != nil || n.antrea != nil {
		b.Proxy = kubeproxy.Config{Mode: kubeproxy.ModeNone}
		return nil
	}
	if !n.Plan.Windows() {
		return nil
	}
	b.Proxy = n.Plan.Proxy
	if why := kubeproxy.NotRead(n.Version); why != "" && n.Plan.Proxy.Mode == kubeproxy.ModeKernelspace {
		b.notice("patch of kube-proxy "+n.Version.String(), why, b.Plan.File.Origin("Kubernetes version", "spec", "kubernetes"))
	}
	if n.Plan.Proxy.Mode != kubeproxy.ModeKernelspace || n.Plan.Dump != nil || b.Options.Proxies == Outside || b.real != nil && b.real.proxy {
		return nil
	}
	n.HNS.Settle()
	n.troubles = kubeproxy.Troubles{}
	if n.proxy, err = kubeproxy.NewKernelspace(n.Plan.Proxy, n.Node, n.HNS); err != nil {
		n.proxy = nil
		b.noTroubles(n, kubeProxy)
		cure := ""
		if errors.Is(err, kubeproxy.ErrNoSourceVIP) {
			cure = "; in a lab, --source-vip={{sourceVIP}} sets one on each node"
		}
		b.trouble(n, kubeProxy, "it does not start: "+oneLine(n, err)+cure, nil, nil)
	}
	return nil
}

// sync lets every kube-proxy that runs follow the Services.
func (b *builder) sync() error {
	if b.ovs != nil {
		b.ovs.SetServices(ovnServices(b.Kube.Services, b.Plan.Network.Plugin == ovnKubernetes))
		return nil
	}
	if b.antrea != nil {
		b.antrea.SetServices(b.antreaServices())
	}
	for _, n := range b.Nodes {
		if n.stopped {
			continue
		}
		if err := b.syncNode(n); err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	if b.real != nil && b.real.proxy {
		return b.real.follow(b.Kube.Services)
	}
	return nil
}

func (b *builder) syncNode(n *Node) error {
	switch {
	case b.proxyOutside(n):
	case !n.Plan.Windows():
		// kube-proxy's rules come before the plugin's masquerading.
		nat, rules := n.machine.Stack().NAT, kubeproxy.Iptables(b.Kube, n.Node, b.Kube.Services)
		nat.Rules, n.iptables = append(rules, nat.Rules[n.iptables:]...), len(rules)
		kubeproxy.SetConntrack(nat)
	case n.Plan.Proxy.Mode == kubeproxy.ModeUserspace:
		return b.userspace(n)
	case n.proxy != nil && b.proxyCanWait(n):
		b.wait(n)
	case n.proxy != nil:
		b.catchUpNow(n)
		b.syncKernelspace(n, b.Kube.Services)
	}
	return nil
}

// syncKernelspace lets the model of kube-proxy in kernelspace mode follow Services.
func (b *builder) syncKernelspace(n *Node, services []*kube.Service) {
	rep, err := n.proxy.Sync(services)
	n.troubles.Note(rep)
	b.noTroubles(n, kubeProxy)
	if err != nil {
		b.trouble(n, kubeProxy, "it programs nothing: "+oneLine(n, err), nil, nil)
		return
	}
	n.synced = &rep
	for _, t := range n.troubles.All() {
		b.addTrouble(Trouble{n.Name, kubeProxy, t.Text, t.Fact, t.About, t.Frontends})
	}
}

const kubeProxy = "kube-proxy"

// oneLine writes an error of kube-proxy as one line, without the node's name.
func oneLine(n *Node, err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), kubeProxy+" on "+n.Name+": "), "\n", "; ")
}

// ovnKubernetes is the Open vSwitch design that leaves Services with the label
// service.kubernetes.io/service-proxy-name alone.
const ovnKubernetes = "ovn-kubernetes"

var _ = evidence.New("ovs.service-proxy-name", evidence.Code,
	"ovn-kubernetes ignores Services with the label service.kubernetes.io/service-proxy-name.",
	"ovn-kubernetes/ovn-kubernetes go-controller/pkg/factory/factory.go (noAlternateProxySelector)")

// ovnServices are the load balancers that OVN Kubernetes asks for: one for each
// port of a Service with a cluster address, with the endpoints that are ready.
// leave: those that another program serves are left out (ovs.service-proxy-name).
func ovnServices(services []*kube.Service, leave bool) []ovs.Service {
	var all []ovs.Service
	for _, s := range services {
		if s.Headless || s.Type == kube.ExternalName || leave && s.ProxyName != nil {
			continue
		}
		for _, p := range s.Ports {
			o := ovs.Service{Name: s.Key(), Proto: p.Proto, Port: p.Port, Addresses: s.ClusterIPs, External: s.ExternalIPs, NodePort: p.NodePort,
				Origin: s.Origin}
			for _, e := range s.Endpoints {
				if e.Ready && e.Port(p) != 0 && e.Addr.Is4() == s.ClusterIPs[0].Is4() {
					o.Backends = append(o.Backends, netip.AddrPortFrom(e.Addr, e.Port(p)))
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// userspace starts the user-space proxy of a Windows node and replaces what it did before.
func (b *builder) userspace(n *Node) error {
	u, err := kubeproxy.Userspace(n.Plan.Proxy, b.Kube, n.Node, b.Kube.Services)
	if err != nil {
		return err
	}
	st := n.windows.Stack()
	// The service addresses go to the interface that the container network
	// made (INTERFACE_TO_ADD_SERVICE_IP).
	l := st.Links[len(st.Links)-1]
	if n.userspace != nil {
		st.Unlisten(n.userspace.Listeners...)
		l.Addrs = slices.DeleteFunc(l.Addrs, func(p netip.Prefix) bool {
			return p.IsSingleIP() &&
				slices.Contains(n.userspace.Addresses, p.Addr())
		})
	}
	n.userspace = &u
	for _, a := range u.Addresses {
		l.Addrs = append(l.Addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, ls := range u.Listeners {
		st.Listen(ls)
	}
	return nil
}
