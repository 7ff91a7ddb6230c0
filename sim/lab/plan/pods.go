package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Pod is a pod with its node.
type Pod struct {
	// Pod has the address that the lab pins, or none.
	kube.Pod
	HostNetwork bool
	Listen      []labfile.ListenPort
	// PortsUnknown says why it is not known on which other ports it listens.
	PortsUnknown string
	// Ports are the named ports of its containers.
	Ports                    map[string]uint16
	Ready, Terminating, Late bool
	DNS                      labfile.PodDNS
	// Hostname and Subdomain are its name below a Service with that name.
	Hostname, Subdomain string
	DNSPolicy           string
	// Run is the program that runs in it while the lab is up, nil for none.
	Run []string

	os string
	// owner is what makes it, "" for a pod of its own; implied says that it serves
	// what Services expect of it.
	owner   string
	implied bool
}

// Key is "namespace/name".
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// ServesDNS reports whether the pod is one of the cluster DNS.
func (p *Pod) ServesDNS() bool {
	return p.Namespace == "kube-system" && p.Labels["k8s-app"] == "kube-dns"
}

// pods reads the manifests, adds the lab's own pods and gives every pod a node.
func (p *Plan) pods(s *labfile.Spec) error {
	man, err := p.File.Manifests()
	if err != nil {
		return err
	}
	p.Services, p.Policies, p.Namespaces, p.Ingresses = man.Services, man.Policies, man.Namespaces, man.Ingresses
	p.AdminPolicies, p.OwnPolicies = man.AdminPolicies, man.OwnPolicies
	p.Slices = p.slices(man.Slices, man.Services)
	p.NotModelled = append(p.NotModelled, man.NotModelled...)
	for _, w := range man.Workloads {
		p.Pods = append(p.Pods, newPod(w))
	}
	if !s.DNS.Off {
		p.Pods = append(p.Pods, &Pod{Pod: kube.Pod{Namespace: "kube-system", Name: "coredns-0", Labels: map[string]string{"k8s-app": "kube-dns"},
			Origin: &trace.Origin{What: "Deployment coredns"}},
			Listen: []labfile.ListenPort{{Proto: packet.UDP, Port: 53}, {Proto: packet.TCP, Port: 53}}, Ready: true, os: "linux"})
	}
	if err := p.pinPods(s); err != nil {
		return err
	}
	if err := p.schedule(s, p.Pods); err != nil {
		return err
	}
	serveTargets(p.Pods, p.Services)
	for i, in := range s.Pods {
		if in.Run == nil {
			continue
		}
		at := p.File.Origin("run of pod "+in.Name, "spec", "pods", i, "run")
		if err := p.canRun(p.Pods, joined(in), at); err != nil {
			return err
		}
		p.noticeAt(at.What, notTraced, at)
	}
	return nil
}

const notTraced = "winlab up starts the program; traces do not know what it does and assume that it serves the ports under listen"

// canRun says why the program of a pod cannot run on the pod's node.
func (p *Plan) canRun(pods []*Pod, name string, at *trace.Origin) error {
	i := slices.IndexFunc(pods, func(pod *Pod) bool { return pod.Key() == PodKey(name) })
	if i < 0 {
		return nil
	}
	if pods[i].HostNetwork {
		return fmt.Errorf("%s:%d: %s: the pod uses the network of its node; winlab exec node/%s runs a program there", at.File, at.Line, at.What,
			pods[i].Node)
	}
	if !labfile.IsWindowsProgram(pods[i].Run) {
		return nil
	}
	if n := p.Node(pods[i].Node); n != nil && !n.Windows() {
		return fmt.Errorf("%s:%d: %s: %s is a program of Windows, and node %s runs Linux", at.File, at.Line, at.What, pods[i].Run[0],
			pods[i].Node)
	}
	return nil
}

// slices keeps the endpoints that a user wrote for Services of the lab.
func (p *Plan) slices(all []*labfile.Slice, services []*labfile.Service) []*labfile.Slice {
	var kept []*labfile.Slice
	for _, s := range all {
		i := slices.IndexFunc(services, func(v *labfile.Service) bool { return v.Namespace == s.Namespace && v.Name == s.Service })
		why := ""
		switch {
		case i < 0:
			why = "there is no Service " + s.Namespace + "/" + s.Service + " in the lab's manifests"
		case services[i].Type == kube.ExternalName:
			why = "a Service of type ExternalName has no endpoints"
		case len(services[i].Selector) > 0 && strings.HasPrefix(s.Origin.What, "Endpoints "):
			why = "the Service has a selector, so its controller replaces these endpoints with the pods that it selects"
		}
		if why != "" {
			p.NotModelled = trace.AddNotice(p.NotModelled, trace.Notice{What: s.Origin.What, Why: why, At: s.Origin})
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// newPod is a pod of a manifest.
func newPod(w *labfile.Workload) *Pod {
	return &Pod{Pod: kube.Pod{Namespace: w.Namespace, Name: w.Name, Node: w.Node, HostPorts: slices.Clone(w.HostPorts),
		Labels: maps.Clone(w.Labels), Origin: w.Origin,
		Resolver: kube.Resolver{None: w.DNSPolicy == "None", Servers: w.DNS.Servers, Search: w.DNS.Search, Ndots: w.DNS.Ndots}},
		HostNetwork: w.HostNetwork, Listen: slices.Clone(w.Listen), Ports: w.Ports, Ready: true, os: w.OS, owner: w.Owner,
		Hostname: w.Hostname, Subdomain: w.Subdomain, DNSPolicy: w.DNSPolicy}
}

// pinPods adds the lab's own pods and applies what it says of others.
func (p *Plan) pinPods(s *labfile.Spec) error {
	var r reader
	for i, in := range s.Pods {
		ns := in.Namespace
		if ns == "" {
			ns = "default"
		}
		j := slices.IndexFunc(p.Pods, func(pod *Pod) bool { return pod.Namespace == ns && pod.Name == in.Name })
		if j < 0 {
			j = len(p.Pods)
			p.Pods = append(p.Pods, &Pod{Pod: kube.Pod{Namespace: ns, Name: in.Name, Origin: p.File.Origin("pod "+in.Name, "spec", "pods", i)},
				Ready: true})
		}
		p.Pods[j].pin(&r, in)
	}
	return r.err()
}

// pin applies what the lab says of a pod.
func (p *Pod) pin(r *reader, in labfile.Pod) {
	if in.Node != "" {
		p.Node = in.Node
	}
	if a := r.addr(in.Address); a.IsValid() {
		p.Address = a
	}
	if in.Ready != nil {
		p.Ready = *in.Ready
	}
	p.PortsUnknown = in.PortsUnknown
	if len(in.Ports) > 0 {
		named := maps.Clone(in.Ports) // what a workload says is not changed
		for name, port := range p.Ports {
			if _, ok := named[name]; !ok {
				named[name] = port
			}
		}
		p.Ports = named
	}
	p.Terminating, p.Late, p.DNS = in.Terminating, in.Late, in.DNS
	if in.Run != nil {
		p.Run = in.Run
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	maps.Copy(p.Labels, in.Labels)
	p.Listen = append(p.Listen, r.listen(in.Listen)...)
	for _, text := range in.HostPorts {
		hp, err := labfile.ParseHostPort(text)
		r.note(err)
		p.HostPorts = append(p.HostPorts, hp)
	}
}

// schedule spreads pods without a node over the nodes of their system.
func (p *Plan) schedule(s *labfile.Spec, pods []*Pod) error {
	if p.scheduled == nil {
		p.scheduled = map[string]int{}
	}
	next := p.scheduled
	for _, pod := range pods {
		if pod.Node != "" {
			if p.Node(pod.Node) == nil {
				return fmt.Errorf("pod %s: there is no node %q", pod.Key(), pod.Node)
			}
			continue
		}
		var fit []string
		for _, n := range s.Nodes {
			if pod.os == "" || pod.os == n.OS {
				fit = append(fit, n.Name)
			}
		}
		if len(fit) == 0 {
			return fmt.Errorf("pod %s: no node runs %s", pod.Key(), pod.os)
		}
		workload := strings.TrimRight(pod.Key(), "0123456789")
		pod.Node = fit[next[workload]%len(fit)]
		next[workload]++
	}
	return nil
}

// serveTargets lets pods that declare no port serve what Services expect of
// them, as the program in the source documents' manifest does.
func serveTargets(pods []*Pod, services []*labfile.Service) {
	for _, pod := range pods {
		if len(pod.Listen) > 0 && !pod.implied {
			continue
		}
		for _, s := range services {
			if !s.Selects(pod.Namespace, pod.Labels) {
				continue
			}
			for _, sp := range s.Ports {
				if l := (labfile.ListenPort{Proto: sp.Proto, Port: sp.Target}); !slices.Contains(pod.Listen, l) {
					pod.Listen, pod.implied = append(pod.Listen, l), true
				}
			}
		}
	}
}

// firstNodePort is where the API server begins to give node ports here.
const firstNodePort = 30000

// given are the addresses and node ports that the API server gave to Services. next6
// is invalid in a cluster without an IPv6 service range.
type given struct {
	next, next6 netip.Addr
	nodePort    uint16
	used        map[netip.Addr]bool
}

// services gives every Service the addresses and node ports that its manifest
// leaves to the API server.
func (p *Plan) services(*labfile.Spec) error {
	sc := p.ServiceCIDRs[0].Addr()
	p.given = &given{next: Nth(sc, 50), nodePort: firstNodePort, used: map[netip.Addr]bool{p.DNSIP: true, sc.Next(): true}}
	for _, c := range p.ServiceCIDRs {
		if c.Addr().Is6() && sc.Is4() {
			p.given.next6 = Nth(c.Addr(), 50)
		}
	}
	for _, n := range p.given.complete(p.Services) {
		p.NotModelled = trace.AddNotice(p.NotModelled, n)
	}
	return nil
}

// families are the families that a Service is to have, the first one first, and what
// the API server objects to, "" for nothing (Kubernetes documentation, IPv4/IPv6
// dual-stack, Services).
func (g *given) families(s *labfile.Service) (v6 []bool, why string) {
	for _, f := range s.Families {
		v6 = append(v6, f == "IPv6")
	}
	for _, a := range s.ClusterIPs[min(len(v6), len(s.ClusterIPs)):] {
		v6 = append(v6, a.Is6())
	}
	if len(v6) == 0 {
		v6 = []bool{false}
	}
	dual := g.next6.IsValid()
	switch {
	case len(s.ClusterIPs) == 0 && !dual && slices.Contains(v6, true):
		return []bool{false}, "the API server refuses the Service: the cluster has no IPv6 service range (network: ipv6ServiceCIDR)"
	case s.FamilyPolicy == "RequireDualStack" && !dual && len(s.ClusterIPs) < 2:
		return v6, "the API server refuses the Service: the cluster has no IPv6 service range (network: ipv6ServiceCIDR)"
	case s.FamilyPolicy != "" && s.FamilyPolicy != "SingleStack" && dual && len(v6) == 1:
		v6 = append(v6, !v6[0])
	}
	return v6, ""
}

// take is the next free address of a family.
func (g *given) take(v6 bool) netip.Addr {
	next := &g.next
	if v6 {
		next = &g.next6
	}
	for g.used[*next] {
		*next = next.Next()
	}
	g.used[*next] = true
	return *next
}

// complete gives what Services lack.
func (g *given) complete(services []*labfile.Service) (notices []trace.Notice) {
	for _, s := range services {
		for _, ip := range s.ClusterIPs {
			g.used[ip] = true
		}
	}
	for _, s := range services {
		v6, why := g.families(s)
		if why != "" {
			what := "ipFamilyPolicy and ipFamilies of Service " + s.Key()
			notices = append(notices, trace.Notice{What: what, Why: why + "; here it has an IPv4 address", At: s.Origin})
		}
		s.Families = nil
		for i, six := range v6 {
			s.Families = append(s.Families, map[bool]string{false: "IPv4", true: "IPv6"}[six])
			if s.Type != kube.ExternalName && !s.Headless && i >= len(s.ClusterIPs) {
				s.ClusterIPs = append(s.ClusterIPs, g.take(six))
			}
		}
		for j := range s.Ports {
			if (s.Type == kube.NodePort || s.Type == kube.LoadBalancer && !s.NoNodePorts) && s.Ports[j].NodePort == 0 {
				s.Ports[j].NodePort = g.nodePort
				g.nodePort++
			}
		}
	}
	return notices
}
