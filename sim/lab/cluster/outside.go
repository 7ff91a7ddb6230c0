package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Outside is the value of [Options.Objects] and [Options.Proxies] for what is not the
// lab's: an API server has the objects, a container runtime adds and removes pods, and
// kube-proxy programs HNS by itself.
const Outside = "outside"

// ErrRefused says that the network plugin has refused a pod: CNI ADD has failed, and DEL
// was called. The error that wraps it has the plugin's words.
var ErrRefused = errors.New("the network plugin refuses the pod")

// leaveObjects leaves the lab's own pods, Services and policies out of a cluster whose
// objects come from outside.
func (b *builder) leaveObjects() {
	pods := slices.DeleteFunc(slices.Clone(b.Plan.Pods), func(p *plan.Pod) bool { return p.ServesDNS() && p.Origin.File == "" })
	var what []string
	for _, x := range []struct {
		n    int
		noun string
	}{{len(pods), "pods"}, {len(b.lists), "Services"}, {len(b.admit), "NetworkPolicies"}, {len(b.slices), "EndpointSlices"}} {
		if x.n > 0 {
			what = append(what, fmt.Sprintf("%d %s", x.n, x.noun))
		}
	}
	if len(what) > 0 {
		b.notice("the lab's "+strings.Join(what, ", "), "in this cluster pods and Services come from an API server; apply the manifests there",
			nil)
	}
	b.lists, b.admit, b.slices = nil, nil, nil
}

// AddPod gives a pod of a container runtime its network, beside the steps of the plan:
// the plugin attaches it, and its error wraps [ErrRefused] when it does not. Such a pod is
// an endpoint of what [Cluster.SetServices] says and of nothing else. What it needs to be
// whole is its namespace, name and node.
//
// The caller holds the lock. While the plugin's program runs, others may have it, also to
// add or remove another pod.
func (c *Cluster) AddPod(ctx context.Context, p *plan.Pod) (*Machine, error) {
	c.changes()
	defer c.changes()
	b := c.b
	key := p.Key()
	n := b.node(p.Node)
	switch {
	case p.Namespace == "" || p.Name == "":
		return nil, fmt.Errorf("pod %q needs a namespace and a name", key)
	case n == nil:
		return nil, fmt.Errorf("pod %s: there is no node %q in this lab; there are %s", key, p.Node, strings.Join(b.nodeNames(), ", "))
	case n.Plan.Dump != nil:
		return nil, fmt.Errorf("pod %s: node %s was read from a dump, so no plugin runs there", key, n.Name)
	case b.pod(key) != nil || b.changing[key]:
		return nil, fmt.Errorf("pod %s is already on node %s; remove it first", key, n.Name)
	case b.real != nil && b.real.stopped && b.real.plugins != nil:
		return nil, fmt.Errorf("pod %s: the plugin's program has ended with the build; build with Options.Keep", key)
	}
	b.reserve(key)
	defer delete(b.changing, key)
	if b.real != nil {
		b.real.ctx = ctx
	}
	q := &pod{Pod: p, outside: true}
	if q.Origin == nil {
		q.Origin = &trace.Origin{What: "pod " + key}
	}
	m := &Machine{Ref: Ref{PodKind, key}, Node: n}
	if p.HostNetwork {
		m.Machine, m.Address = machine.NewCompartment(n.machine.Stack(), n.Address), n.Address
	} else if err := b.attach(n, q, m); err != nil {
		if asRefusal(err) == nil {
			return nil, fmt.Errorf("pod %s on %s: %w", key, n.Name, err)
		}
		if err := b.undo(n, q); err != nil {
			b.log(fmt.Sprintf("%s on %s: DEL of pod %s: %v", b.pluginName(), n.Name, key, err))
		}
		return nil, fmt.Errorf("%w: %s on %s: %s", ErrRefused, b.pluginName(), n.Name, strings.TrimPrefix(err.Error(), "pod "+key+": "))
	}
	b.start(m, q)
	if q.given, q.given6 = m.Address, m.Stack().Address(true); p.HostNetwork {
		q.given6 = n.Address6
	}
	if of, ok := b.podsOf[key]; ok {
		q.Labels, q.Ports = of.Labels, of.Ports
	}
	b.pods = append(b.pods, q)
	b.add(m)
	b.sortPods()
	delete(b.gone, podObject+key)
	if b.dns != nil && !slices.Contains(b.dns.Namespaces, p.Namespace) {
		b.dns.Namespaces = append(b.dns.Namespaces, p.Namespace)
	}
	return m, b.enforce(ctx)
}

// RemovePod takes the network of a pod ("namespace/name") down that AddPod has made. It is not an
// error when the pod is not there: a runtime may ask twice. After an error of the plugin the pod is
// gone all the same. The lock is as for AddPod.
func (c *Cluster) RemovePod(ctx context.Context, key string) error {
	c.changes()
	defer c.changes()
	b := c.b
	p := b.pod(key)
	if p == nil || b.changing[key] {
		return nil
	}
	if !p.outside {
		return fmt.Errorf("pod %s belongs to the lab; delete it with a step", key)
	}
	b.reserve(key)
	defer delete(b.changing, key)
	if b.real != nil {
		b.real.ctx = ctx
	}
	err := b.takeDown(p)
	b.leave(podObject+key, p.given)
	if err = errors.Join(err, b.enforce(ctx)); err != nil {
		return fmt.Errorf("pod %s on %s: %w", key, p.Node, err)
	}
	return nil
}

// reserve keeps others away from a pod while its network comes or goes.
func (b *builder) reserve(key string) {
	if b.changing == nil {
		b.changing = map[string]bool{}
	}
	b.changing[key] = true
}

func (b *builder) nodeNames() []string {
	var names []string
	for _, n := range b.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// ResolverOf is what a pod asks of its resolver when a runtime is given name servers and
// a search list for it: those of the policy ClusterFirst are the plugin's default
// (cni.KubeletDNS), all others are the pod's own.
func (c *Cluster) ResolverOf(namespace string, servers []netip.Addr, search []string, ndots int) kube.Resolver {
	p := kube.Pod{Namespace: namespace}
	def := cni.KubeletDNS(c.Kube, &p)
	if len(servers) == 1 && len(def.Nameservers) == 1 && servers[0].String() == def.Nameservers[0] && len(search) >= len(def.Search) &&
		slices.Equal(search[:len(def.Search)], def.Search) {
		r := kube.Resolver{Search: search[len(def.Search):]}
		if ndots != 5 {
			r.Ndots = ndots
		}
		return r
	}
	return kube.Resolver{None: true, Servers: servers, Search: search, Ndots: ndots}
}

// SetServices replaces the Services by those that an API server has, with their
// endpoints as its EndpointSlices say: whether they are ready, serve or terminate, and on
// which nodes they are. The models of kube-proxy (on Linux nodes always, on Windows nodes
// but with Options.Proxies Outside), Open vSwitch's and the cluster DNS follow, and traces
// know the Services. The caller holds the lock; the list is the cluster's afterwards.
//
// Hints of endpoints for zones are not in [kube.Endpoint], and no model follows them; see
// [Cluster.SetNotices].
func (c *Cluster) SetServices(ctx context.Context, list []*kube.Service) error {
	c.changes()
	defer c.changes()
	b := c.b
	if c.Options.Objects != Outside {
		return errors.New("this cluster has the Services of its lab; change them with a step, or build it with Options.Objects build.Outside")
	}
	b.given = slices.Clone(list)
	for _, s := range b.given {
		if s.Origin == nil {
			s.Origin = &trace.Origin{What: "Service " + s.Key()}
		}
	}
	b.forget(b.ofServices)
	before := len(b.NotModelled)
	err := errors.Join(b.services(ctx), b.names(ctx), b.sync(), b.adopt())
	b.nameServers()
	b.unusedProxyName()
	b.unusedHeadlessLabel()
	b.ofServices = slices.Clone(b.NotModelled[before:])
	return err
}

// nameServers lets traces through pods that the API server has as endpoints of the cluster
// DNS go on with the answer of its model: what their program would say is not known. Where
// a program listens there, packets of a live network are the program's all the same.
func (b *builder) nameServers() {
	for _, s := range b.given {
		if !slices.Contains(s.ClusterIPs, b.Kube.DNSIP) {
			continue
		}
		for _, e := range s.Endpoints {
			p, m := b.pod(e.Pod), b.Machine(Ref{PodKind, e.Pod})
			if p == nil || m == nil || p.HostNetwork || len(p.listened) > 0 {
				continue
			}
			for _, port := range s.Ports {
				if n := e.Port(port); n != 0 {
					l := &host.Listener{Name: "the cluster DNS", Proto: port.Proto, Port: n, Origin: s.Origin, Answer: b.serveNames(m)}
					p.listened = append(p.listened, l)
					m.Stack().Listen(l)
				}
			}
		}
	}
}

// PolicyPod is what NetworkPolicies look at in a pod: its labels, and the numbers of the
// ports that its containers give a name.
type PolicyPod struct {
	Labels map[string]string
	Ports  map[string]uint16
}

// Policies are the NetworkPolicies of an API server, with the labels of namespaces by
// name, and of pods by "namespace/name".
type Policies struct {
	List       []*labfile.Policy
	Namespaces map[string]map[string]string
	Pods       map[string]PolicyPod
}

// SetPolicies replaces the NetworkPolicies by those that an API server has. They count as
// those of a lab do: a connection that none of a pod's policies admits meets them, and goes
// on where the network plugin is known to enforce none. Each has a notice. The caller holds
// the lock.
func (c *Cluster) SetPolicies(ctx context.Context, p Policies) error {
	c.changes()
	defer c.changes()
	b := c.b
	if c.Options.Objects != Outside {
		return errors.New("this cluster has the NetworkPolicies of its lab; build it with Options.Objects build.Outside")
	}
	had := len(b.admit) > 0
	b.podsOf = p.Pods
	for _, q := range b.pods {
		if of, ok := p.Pods[q.Key()]; ok && q.outside {
			q.Labels, q.Ports = of.Labels, of.Ports
		}
	}
	b.forget(b.policyNotices())
	b.admit, b.namespaces = p.List, p.Namespaces
	if !had {
		return b.enforce(ctx)
	}
	return b.policies(ctx)
}

// enforce lets the NetworkPolicies of an API server, where there are any, and an agent that
// has rules for every pod follow the pods.
func (b *builder) enforce(ctx context.Context) error {
	if len(b.admit) == 0 && b.agent == nil {
		return nil
	}
	b.forget(b.policyNotices())
	return b.policies(ctx)
}

// policyNotices are those of the NetworkPolicies that there are.
func (b *builder) policyNotices() []trace.Notice {
	return slices.DeleteFunc(slices.Clone(b.NotModelled), func(n trace.Notice) bool {
		return !slices.ContainsFunc(b.admit, func(p *labfile.Policy) bool { return n.At == p.Origin })
	})
}

// SetNotices replaces what was said in the last call of it: notices for what objects of an
// API server say and nothing follows. The caller holds the lock.
func (c *Cluster) SetNotices(list []trace.Notice) {
	b := c.b
	b.forget(b.told)
	b.told = nil
	for _, n := range list {
		before := len(c.NotModelled)
		if c.NotModelled = trace.AddNotice(c.NotModelled, n); len(c.NotModelled) > before {
			b.told = append(b.told, n)
		}
	}
}

// forget takes notices back.
func (b *builder) forget(list []trace.Notice) {
	b.NotModelled = slices.DeleteFunc(slices.Clone(b.NotModelled), func(n trace.Notice) bool { return slices.Contains(list, n) })
}

// adopt notes which Services the load balancers of a kube-proxy that winlab does not run belong to.
func (b *builder) adopt() error {
	if b.Options.Proxies != Outside {
		return nil
	}
	for _, n := range b.Nodes {
		if n.HNS == nil {
			continue
		}
		if err := b.serviceOrigins(n.HNS); err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	return nil
}

// Adopt is for after calls to HNS by programs that winlab did not start: traces then name
// the Services of their load balancers. The caller holds the lock.
func (c *Cluster) Adopt() error {
	c.changes()
	defer c.changes()
	if c.b == nil {
		return nil
	}
	return c.b.adopt()
}

// outsiders refuses what a step asks of pods, Services and programs that are not the
// lab's.
func (b *builder) outsiders(s *plan.Step) error {
	if b.Options.Objects == Outside && len(s.Pods)+len(s.Services)+len(s.Slices)+len(s.DeletePods)+len(s.DeleteServices) > 0 {
		return errors.New("pods, Services and EndpointSlices of this cluster come from an API server; change them there")
	}
	for _, p := range slices.Concat(s.Stop, s.Restart) {
		if n := b.node(p.Node); n != nil && p.Program == labfile.ProgramKubeProxy && b.proxyOutside(n) {
			return fmt.Errorf("%s: the lab does not run this kube-proxy; stop or start it where you started it", p)
		}
	}
	return nil
}

// proxyOutside reports whether the kube-proxy of a node is a program that winlab does not run.
func (b *builder) proxyOutside(n *Node) bool {
	return b.Options.Proxies == Outside && n.Plan.Windows() && b.ovs == nil && n.Plan.Proxy.Mode != kubeproxy.ModeNone
}

var _ = evidence.New("lab.pods-of-a-runtime", evidence.Code,
	"A container runtime sets up a pod's network with CNI ADD when it runs the pod's sandbox and removes it with CNI DEL when it stops the sandbox, whatever the pod's Services are. Services follow the pod's status in the API server.",
	"containerd/containerd internal/cri/server/sandbox_run.go (RunPodSandbox)",
	"containerd/containerd internal/cri/server/sandbox_stop.go (stopPodSandbox)")
