package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
)

// services turns Service manifests and pods into what proxies and the DNS see.
func (b *builder) services() error {
	sc := b.Kube.ServiceCIDRs[0]
	next := nth(sc.Addr(), 50)
	nodePort := uint16(30000)
	used := map[netip.Addr]bool{b.Kube.DNSIP: true, sc.Addr().Next(): true}
	for _, s := range b.man.Services {
		for _, ip := range s.ClusterIPs {
			used[ip] = true
		}
	}
	b.builtinServices()
	for _, s := range b.man.Services {
		k := &s.Service
		if k.Type != "ExternalName" && !k.Headless && len(k.ClusterIPs) == 0 {
			for used[next] {
				next = next.Next()
			}
			k.ClusterIPs = []netip.Addr{next}
			used[next] = true
		}
		for j := range k.Ports {
			if (k.Type == "NodePort" || k.Type == "LoadBalancer") && k.Ports[j].NodePort == 0 {
				k.Ports[j].NodePort = nodePort
				nodePort++
			}
		}
		for _, w := range b.workloads {
			if s.Selects(w.Namespace, w.Labels) {
				k.Endpoints = append(k.Endpoints, b.endpoint(w, s))
			}
		}
		b.Kube.Services = append(b.Kube.Services, k)
	}
	return nil
}

// nth is the address n after a.
func nth(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}

// builtinServices are those that every cluster has.
func (b *builder) builtinServices() {
	api := &kube.Service{Namespace: "default", Name: "kubernetes", Type: "ClusterIP", ClusterIPs: []netip.Addr{b.Kube.ServiceCIDRs[0].Addr().Next()},
		Ports: []kube.ServicePort{{Name: "https", Proto: packet.TCP, Port: 443, Target: 6443}}, Origin: &trace.Origin{What: "Service kubernetes (of every cluster)"}}
	for i, n := range b.spec.Nodes {
		if slices.Contains(n.Listen, "tcp/6443") {
			api.Endpoints = append(api.Endpoints, kube.Endpoint{Addr: b.Kube.Nodes[i].Address, Ready: true, Serving: true})
		}
	}
	b.Kube.Services = append(b.Kube.Services, api)
	if b.spec.DNS.Off {
		return
	}
	d := &kube.Service{Namespace: "kube-system", Name: "kube-dns", Type: "ClusterIP", ClusterIPs: []netip.Addr{b.Kube.DNSIP},
		Ports:  []kube.ServicePort{{Name: "dns", Proto: packet.UDP, Port: 53, Target: 53}, {Name: "dns-tcp", Proto: packet.TCP, Port: 53, Target: 53}},
		Origin: &trace.Origin{What: "Service kube-dns (of every cluster)"}}
	for _, w := range b.workloads {
		if w.Namespace == "kube-system" && w.Labels["k8s-app"] == "kube-dns" {
			d.Endpoints = append(d.Endpoints, kube.Endpoint{Addr: w.address, Node: w.Node, Pod: "kube-system/" + w.Name, Ready: true, Serving: true})
		}
	}
	b.Kube.Services = append(b.Kube.Services, d)
}

func (b *builder) endpoint(w *workload, s *spec.Service) kube.Endpoint {
	e := kube.Endpoint{Addr: w.address, Node: w.Node, Pod: w.Namespace + "/" + w.Name, Hostname: w.Name,
		Ready: w.ready && !w.terminating, Serving: w.ready, Terminating: w.terminating, Ports: map[string]uint16{}}
	for port, name := range s.TargetNames {
		if n, ok := w.Ports[name]; ok {
			e.Ports[port] = n
		}
	}
	return e
}

// tokens replaces the per-node values that deployment scripts put into
// kube-proxy's command line.
func (b *builder) tokens(flag string, k *kube.Node) string {
	vip := ""
	if len(k.PodCIDRs) > 0 {
		vip = nth(k.PodCIDRs[0].Addr(), 2).String()
	}
	return strings.NewReplacer("{{nodeName}}", k.Name, "{{managementIP}}", k.Address.String(), "{{sourceVIP}}", vip).Replace(flag)
}

func (b *builder) proxyConfig(k *kube.Node) (kubeproxy.Config, error) {
	var flags []string
	for _, f := range b.spec.Proxy.Flags {
		flags = append(flags, b.tokens(f, k))
	}
	return kubeproxy.ParseFlags(b.spec.Proxy.Mode, flags, k.Version)
}

// proxies lets kube-proxy program every node.
func (b *builder) proxies() error {
	if b.ovnNet != nil {
		b.ovnNet.SetServices(ovnServices(b.Kube.Services))
		b.Proxy = kubeproxy.Config{Mode: "none"}
		return nil
	}
	for i, n := range b.spec.Nodes {
		k := b.Kube.Nodes[i]
		if k.Windows == nil {
			l := b.linux[n.Name]
			// kube-proxy's rules come before the plugin's masquerading.
			l.Stack().NAT.Rules = append(kubeproxy.Iptables(b.Kube, k, b.Kube.Services), l.Stack().NAT.Rules...)
			continue
		}
		cfg, err := b.proxyConfig(k)
		if err != nil {
			o := b.File.Origin("kube-proxy", "spec", "proxy")
			return fmt.Errorf("%s:%d: %s on %s: %w", o.File, o.Line, o.What, n.Name, err)
		}
		b.Proxy = cfg
		switch cfg.Mode {
		case kubeproxy.ModeKernelspace:
			if len(n.HNSDump) > 0 || b.real != nil && b.real.proxy {
				// The dump holds what the proxy of that node made, or the program
				// itself will do it.
				continue
			}
			p, err := kubeproxy.NewKernelspace(cfg, k, b.hns[n.Name])
			if err != nil {
				return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
			}
			for _, services := range b.syncs() {
				rep, err := p.Sync(services)
				if err != nil {
					return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
				}
				for _, e := range rep.Failures() {
					b.Log = append(b.Log, "kube-proxy on "+n.Name+": "+e.String())
				}
			}
		case kubeproxy.ModeUserspace:
			if err := b.userspace(cfg, k); err != nil {
				return err
			}
		}
	}
	if b.real != nil && b.real.proxy {
		return b.real.proxies()
	}
	return nil
}

// ovnServices are the load balancers that OVN Kubernetes asks for: one for each
// port of a Service with a cluster address, with the endpoints that are ready.
func ovnServices(services []*kube.Service) []ovs.Service {
	var all []ovs.Service
	for _, s := range services {
		if s.Headless || s.Type == "ExternalName" {
			continue
		}
		for _, p := range s.Ports {
			o := ovs.Service{Name: s.Key(), Proto: p.Proto, Port: p.Port, Addresses: s.ClusterIPs, External: s.ExternalIPs, NodePort: p.NodePort, Origin: s.Origin}
			for _, e := range s.Endpoints {
				if e.Ready {
					o.Backends = append(o.Backends, netip.AddrPortFrom(e.Addr, e.Port(p)))
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// syncs are the states of the Services that kube-proxy sees one after the
// other: without the late pods, if there are any, then with them.
func (b *builder) syncs() [][]*kube.Service {
	late := map[string]bool{}
	for _, w := range b.workloads {
		if w.late {
			late[w.Namespace+"/"+w.Name] = true
		}
	}
	if len(late) == 0 {
		return [][]*kube.Service{b.Kube.Services}
	}
	var first []*kube.Service
	for _, s := range b.Kube.Services {
		early := *s
		early.Endpoints = slices.DeleteFunc(slices.Clone(s.Endpoints), func(e kube.Endpoint) bool { return late[e.Pod] })
		first = append(first, &early)
	}
	return [][]*kube.Service{first, b.Kube.Services}
}

// userspace starts the user-space proxy of a Windows node.
func (b *builder) userspace(cfg kubeproxy.Config, k *kube.Node) error {
	u, err := kubeproxy.Userspace(cfg, b.Kube, k, b.Kube.Services)
	if err != nil {
		return fmt.Errorf("kube-proxy on %s: %w", k.Name, err)
	}
	st := b.windows[k.Name].Stack()
	// The service addresses go to the interface that the container network
	// made (INTERFACE_TO_ADD_SERVICE_IP).
	l := st.Links[len(st.Links)-1]
	for _, a := range u.Addresses {
		l.Addrs = append(l.Addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, ls := range u.Listeners {
		st.Listen(ls)
	}
	return nil
}

// names fills the cluster DNS.
func (b *builder) names() error {
	d := &dns.Cluster{Domain: b.spec.DNS.Domain, External: map[string]netip.Addr{}, Pods: true}
	for _, s := range b.Kube.Services {
		ds := dns.Service{Namespace: s.Namespace, Name: s.Name, ClusterIPs: s.ClusterIPs, Headless: s.Headless, ExternalName: s.ExternalName}
		for _, p := range s.Ports {
			ds.Ports = append(ds.Ports, dns.Port{Name: p.Name, Proto: p.Proto.String(), Number: p.Port})
		}
		for _, e := range s.Endpoints {
			if e.Ready {
				ds.Endpoints = append(ds.Endpoints, dns.Endpoint{Addr: e.Addr, Hostname: e.Hostname})
			}
		}
		d.Services = append(d.Services, ds)
	}
	for _, w := range b.workloads {
		if !slices.Contains(d.Namespaces, w.Namespace) {
			d.Namespaces = append(d.Namespaces, w.Namespace)
		}
	}
	for _, h := range b.spec.Hosts {
		if h.DNSName != "" {
			d.External[h.DNSName] = mustAddr(h.Address)
		}
	}
	for name, a := range b.spec.DNS.Records {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			return fmt.Errorf("dns record %s: %q is not an address", name, a)
		}
		d.External[name] = addr
	}
	b.dns = d
	return nil
}

// serviceOf finds a Service.
func (c *Cluster) serviceOf(ns, name string) *kube.Service {
	for _, s := range c.Kube.Services {
		if s.Namespace == ns && s.Name == name {
			return s
		}
	}
	return nil
}

// frontend reports whether an address and port belong to a Service, and which.
func (c *Cluster) frontend(a netip.Addr, port uint16, proto packet.Proto) *kube.Service {
	for _, s := range c.Kube.Services {
		for _, p := range s.Ports {
			if p.Proto != proto {
				continue
			}
			if p.Port == port && (slices.Contains(s.ClusterIPs, a) || slices.Contains(s.ExternalIPs, a) || slices.Contains(s.IngressIPs, a)) {
				return s
			}
			if p.NodePort != 0 && p.NodePort == port && slices.ContainsFunc(c.Kube.Nodes, func(n *kube.Node) bool { return n.Address == a || n.Address6 == a }) {
				return s
			}
		}
	}
	return nil
}
