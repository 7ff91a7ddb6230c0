package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// ErrNoComponents says that no program of a lab can be run: its plugin has no
// pinned program, and neither has its kube-proxy.
var ErrNoComponents = errors.New("no real component")

// syncLimit bounds how long a kube-proxy may take for one state of the Services. On
// an overlay network it sleeps ten seconds before it begins.
const syncLimit = 3 * time.Minute

// real are the programs of a lab's Windows nodes.
type real struct {
	b        *builder
	ctx      context.Context // of what is under way: the build, or a step
	life     context.Context // of the programs
	end      context.CancelFunc
	stopped  bool
	pool     *components.Pool
	ownPool  bool
	programs *components.Programs
	plugins  *components.Program // nil: the model attaches pods
	proxy    bool
	nodes    map[string]*realNode
	// states are those of the Services that kube-proxy has seen when the lab is built.
	states [][]*kube.Service
	// place is where kube-proxy of a node runs, nil for the node's host; waiting are the
	// nodes that start again, and whose kube-proxy waits for their place.
	place   func(node string) components.Place
	waiting []*Node
}

type realNode struct {
	*components.Node
	service *hcn.Service
	conf    components.NetConf
	pods    attachedPods
	proxy   *runningProxy // nil: it does not run
}

// wanted decides what of a lab is run for real: what it says itself, or with
// Options.Components Real whatever it does not forbid.
func (b *builder) wanted() (plugin, proxy bool) {
	s := b.Plan.File.Lab.Spec
	switch b.Options.Components {
	case labfile.Model:
		return false, false
	case labfile.Real:
		return slices.Contains(cni.ProgramNames(), s.Network.Plugin) && s.Network.Components != labfile.Model,
			s.Proxy.Mode == kubeproxy.ModeKernelspace && s.Proxy.Components != labfile.Model && b.Options.Proxies != Outside
	}
	return s.Network.Components == labfile.Real, s.Proxy.Components == labfile.Real && b.Options.Proxies != Outside
}

// pluginVersion is the release of the CNI plugins that the lab asks for, "" for any:
// network.version is flannel's own where flannel calls them.
func (b *builder) pluginVersion() string {
	if b.Plan.Network.CNI.Plugin == cni.PluginFlannel {
		return ""
	}
	return b.Plan.Network.Version
}

// proxyVersions are the versions of kube-proxy on the Windows nodes.
func (b *builder) proxyVersions() []kube.Version {
	var all []kube.Version
	for _, n := range b.Nodes {
		if n.Plan.Windows() && !slices.Contains(all, n.Version) {
			all = append(all, n.Version)
		}
	}
	return all
}

// startReal makes a node for the programs of each Windows node.
func (b *builder) startReal(ctx context.Context) error {
	plugin, proxy := b.wanted()
	asked := b.Options.Components == labfile.Real
	if !plugin && !proxy {
		if asked {
			return fmt.Errorf("%w: plugin %s, kube-proxy in mode %s; programs are available for %s, and for kube-proxy in mode %s", ErrNoComponents,
				b.Plan.Network.Plugin, b.Plan.File.Lab.Spec.Proxy.Mode, strings.Join(cni.ProgramNames(), ", "), kubeproxy.ModeKernelspace)
		}
		return nil
	}
	if err := components.Available(); err != nil {
		return fmt.Errorf("real components: %w", err)
	}
	programs, err := components.FindPrograms(b.Plan.File.Dir())
	if err != nil {
		return err
	}
	if asked {
		// Whatever is pinned.
		plugin = plugin && programs.HasPlugins(b.pluginVersion())
		proxy = proxy && !slices.ContainsFunc(b.proxyVersions(), func(v kube.Version) bool { return !programs.HasKubeProxy(v) })
		if !plugin && !proxy {
			return fmt.Errorf("%w: plugin %s %s, kube-proxy %s; the pinned programs are the plugins %s and kube-proxy %s", ErrNoComponents,
				b.Plan.Network.Plugin, b.pluginVersion(),
				b.Kube.Version, strings.Join(programs.Versions("cni-plugins"), ", "), strings.Join(programs.Versions("kube-proxy"), ", "))
		}
	}
	for _, s := range b.Plan.Steps {
		if err := b.canStep(s, plugin, proxy); err != nil {
			return err
		}
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	b.real = &real{b: b, ctx: ctx, life: life, end: end, pool: b.Options.Pool, programs: programs, proxy: proxy, nodes: map[string]*realNode{}}
	return b.real.start(plugin)
}

// start builds the programs and makes their nodes.
func (r *real) start(plugin bool) (err error) {
	if plugin {
		if r.plugins, err = r.programs.Plugins(r.ctx, r.b.pluginVersion()); err != nil {
			return err
		}
	}
	if r.proxy {
		// Building takes a minute the first time: now, and not while others wait.
		for _, v := range r.b.proxyVersions() {
			if _, err := r.programs.KubeProxy(r.ctx, v); err != nil {
				return err
			}
		}
	}
	if r.pool == nil {
		if r.pool, err = components.NewPool(""); err != nil {
			return err
		}
		r.ownPool = true
	}
	for _, n := range r.b.Nodes {
		if n.windows == nil || n.Plan.Dump != nil {
			continue // what is there came from a dump
		}
		if err := r.b.outside(func() error { return r.node(n) }); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// node starts the HNS service and what the programs of one node need.
func (r *real) node(k *Node) error {
	host, err := r.pool.Host(r.ctx, k.Windows)
	if err != nil {
		return err
	}
	n := &realNode{service: hcn.New(k.HNS, hcn.Options{Lock: r.b.Options.Lock.Calls()}), pods: attachedPods{}}
	adapter := components.Adapter{Name: "Ethernet", MAC: dashed(k.MAC), Addresses: hostAddresses(k.Node)}
	n.Node, err = host.Node(r.life, components.NodeConfig{HNS: n.service, Adapters: []components.Adapter{adapter}})
	if err != nil {
		return errors.Join(err, n.service.Close())
	}
	r.nodes[k.Name] = n
	if r.plugins == nil {
		return nil
	}
	bin, err := cni.NewBinary(r.b.Plan.Network.CNI, k.Node)
	if err != nil {
		return err
	}
	n.conf = components.NetConf(*bin)
	for _, want := range r.b.Plan.Network.CNI.Reserved {
		if !slices.ContainsFunc(k.PodCIDRs, func(p netip.Prefix) bool { return p.Contains(want) }) {
			continue // another node's
		}
		got, err := n.ReserveAddress(r.ctx, r.plugins.Binaries, n.conf, "source-vip", want)
		if err != nil {
			return fmt.Errorf("the source VIP: %w", err)
		}
		if got != want {
			return fmt.Errorf("the source VIP: host-local returned %s instead of %s", got, want)
		}
	}
	return nil
}

func dashed(m packet.MAC) string { return strings.ToUpper(strings.ReplaceAll(m.String(), ":", "-")) }

// stop stops all programs. The HNS of each node is the lab's alone again.
func (r *real) stop() error {
	if r == nil || r.stopped {
		return nil
	}
	r.stopped = true
	return r.b.outside(func() error {
		var errs []error
		for _, node := range r.b.Nodes {
			if n := r.nodes[node.Name]; n != nil {
				errs = append(errs, n.proxy.stop(), n.Close(), n.service.Close())
			}
		}
		if r.ownPool {
			errs = append(errs, r.pool.Close())
		}
		r.end()
		return errors.Join(errs...)
	})
}

// attach lets the plugin's program attach a pod.
func (r *real) attach(k *Node, p *kube.Pod) (cni.Result, error) {
	d := cni.KubeletDNS(r.b.Kube, p)
	n, ctx := r.nodes[k.Name], r.ctx // another's, as soon as the lock is given up
	var a *components.Attached
	err := r.b.outside(func() (err error) {
		a, err = n.AttachPod(ctx, r.plugins.Binaries, n.conf, p, components.DNS{Servers: d.Nameservers, Searches: d.Search, Options: d.Options})
		return err
	})
	if components.Refused(err) {
		r.b.note(n.conf.Program + " " + r.plugins.Version)
		return cni.Result{}, refused(err)
	}
	if err != nil {
		return cni.Result{}, err
	}
	for _, no := range a.Refusals {
		r.b.Log = append(r.b.Log, fmt.Sprintf("pod %s/%s on %s: the kubelet tries again, since %v", p.Namespace, p.Name, k.Name, no))
	}
	r.b.note(n.conf.Program + " " + r.plugins.Version)
	n.pods[p.Namespace+"/"+p.Name] = a
	e := k.HNS.Endpoint(a.Endpoint)
	if e == nil {
		return cni.Result{}, fmt.Errorf("endpoint %s, which %s created, is gone", a.Endpoint, n.conf.Program)
	}
	e.Origin = p.Origin
	if e.Origin == nil {
		e.Origin = &trace.Origin{What: fmt.Sprintf("endpoint of pod %s/%s", p.Namespace, p.Name)}
	}
	return cni.Result{EndpointID: a.Endpoint, Addresses: a.Addresses, Gateway: a.Gateway, DNS: e.Dns}, nil
}

// detach lets the plugin's program take the network of a pod down. What it refuses
// stays in HNS, as on a node.
func (r *real) detach(k *Node, p *kube.Pod) error {
	n, key, ctx := r.nodes[k.Name], p.Namespace+"/"+p.Name, r.ctx
	a := n.pods[key]
	if a == nil {
		return fmt.Errorf("%s did not attach the pod", n.conf.Program)
	}
	delete(n.pods, key)
	var no error
	err := r.b.outside(func() (err error) {
		no, err = n.DetachPod(ctx, a)
		return err
	})
	if no != nil {
		r.b.log(fmt.Sprintf("%s on %s refuses to take pod %s down: %v", n.conf.Program, k.Name, key, no))
	}
	return err
}

// runningProxy is a kube-proxy of a node with the API server that it watches.
type runningProxy struct {
	*components.RunningKubeProxy
	api  *apiserver.Server
	node *Node
	name string // with the version
	// ended: it has ended by itself. cut: it did not reach the API server when there was
	// something to follow.
	ended, cut bool
}

// stop stops a kube-proxy, if it runs. It must be called outside.
func (p *runningProxy) stop() error {
	if p == nil {
		return nil
	}
	if p.RunningKubeProxy != nil {
		p.Stop()
	}
	return p.api.Close()
}

// running returns the kube-proxies that are still running.
func (r *real) running() []*runningProxy {
	var all []*runningProxy
	for _, k := range r.b.Nodes {
		if n := r.nodes[k.Name]; n != nil && n.proxy != nil && !n.proxy.ended {
			all = append(all, n.proxy)
		}
	}
	return all
}

// proxies runs kube-proxy on all nodes at once until it has brought HNS in line with
// the Services, in each of their states.
func (r *real) proxies(states [][]*kube.Service) error {
	r.states = states
	for _, n := range r.b.Nodes {
		if err := r.startProxy(n, states[0]); err != nil {
			return err
		}
	}
	if err := r.waitSynced(r.running(), time.Time{}); err != nil {
		return err
	}
	for _, state := range states[1:] {
		if err := r.set(state); err != nil {
			return err
		}
	}
	return r.readErrors(r.running())
}

// set tells every kube-proxy that runs of the Services, and waits until those that see a
// change have followed it.
func (r *real) set(services []*kube.Service) error {
	since := time.Now()
	var see []*runningProxy
	for _, p := range r.running() {
		watched, err := p.api.ChangeServices(services)
		if err != nil {
			return err
		}
		if watched {
			see = append(see, p)
		}
	}
	return r.waitSynced(see, since)
}

// follow is set for a cluster that is built.
func (r *real) follow(services []*kube.Service) error {
	if err := r.set(services); err != nil {
		return err
	}
	return r.readErrors(r.running())
}

// restartProxy starts kube-proxy of a node again, or for the first time.
func (r *real) restartProxy(k *Node) error {
	if err := r.halt(k); err != nil {
		return err
	}
	if err := r.startProxy(k, r.b.Kube.Services); err != nil {
		return err
	}
	if p := r.nodes[k.Name].proxy; p != nil {
		return errors.Join(r.waitSynced([]*runningProxy{p}, time.Time{}), r.readErrors(r.running()))
	}
	return nil
}

// halt stops kube-proxy of a node. Its load balancers stay (lab.kube-proxy-ends).
func (r *real) halt(k *Node) error {
	n := r.nodes[k.Name]
	if n == nil {
		return nil
	}
	p := n.proxy
	n.proxy = nil
	r.b.noTroubles(k, kubeProxy)
	return r.b.outside(p.stop)
}

// waitSynced waits until kube-proxies have brought HNS in line with the Services. One
// that ends by itself, and says why, leaves a node on which no kube-proxy runs.
func (r *real) waitSynced(all []*runningProxy, since time.Time) error {
	for _, p := range all {
		if p.ended {
			continue
		}
		reached := r.b.outside(func() error { return p.ReachesAPI(r.ctx) })
		if p.cut = reached != nil; p.cut {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			r.b.noTroubles(p.node, kubeProxy)
			r.b.trouble(p.node, kubeProxy, "it does not follow changes: it cannot reach the API server: "+reached.Error(), nil,
				func(f kubeproxy.Frontend) bool { return !hasLoadBalancer(p.node.HNS, f) })
			continue
		}
		err := r.b.outside(func() error { return p.synced(r.ctx, since) })
		if errors.Is(err, components.ErrEnded) {
			words, readErr := p.LastWords()
			if readErr == nil && words != "" {
				p.ended = true
				r.b.noTroubles(p.node, kubeProxy)
				r.b.trouble(p.node, kubeProxy, "it has ended: "+words, factProxyEnds, nil)
				continue
			}
			err = errors.Join(err, readErr)
		}
		if err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", p.node.Name, err)
		}
	}
	return nil
}

var factProxyEnds = evidence.New("lab.kube-proxy-ends", evidence.Code,
	"A kube-proxy that ends leaves its load balancers in HNS. When kube-proxy starts, it deletes those of an earlier one before it creates its own.",
	"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go (NewProxier, CleanupLeftovers)")

// readErrors keeps what the programs complained about.
func (r *real) readErrors(all []*runningProxy) error {
	for _, p := range all {
		if p.ended || p.cut {
			continue
		}
		errors, err := p.Errors()
		if err != nil {
			return err
		}
		n := p.node
		r.b.noTroubles(n, kubeProxy)
		for _, e := range errors {
			r.b.trouble(n, kubeProxy, e, nil, func(f kubeproxy.Frontend) bool { return !hasLoadBalancer(n.HNS, f) })
		}
		if err := r.b.serviceOrigins(n.HNS); err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	return nil
}

func (p *runningProxy) synced(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	return p.WaitSynced(ctx, since)
}

// startProxy starts kube-proxy on a node that has one.
func (r *real) startProxy(k *Node, services []*kube.Service) error {
	n := r.nodes[k.Name]
	if n == nil || k.Plan.Proxy.Mode != kubeproxy.ModeKernelspace {
		return nil
	}
	if k.unprepared != "" {
		r.b.trouble(k, kubeProxy, "it does not start: "+k.unprepared, nil, nil)
		return nil
	}
	network := k.Plan.Proxy.NetworkName
	if network == "" {
		var err error
		if network, err = k.onlyNetwork(); err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", k.Name, err)
		}
	}
	p := &runningProxy{node: k}
	var at components.Place
	if r.place != nil {
		at = r.place(k.Name)
	}
	err := r.b.outside(func() error {
		program, err := r.programs.KubeProxy(r.ctx, k.Version)
		if err != nil {
			return err
		}
		p.name = program.String()
		if p.api, err = apiserver.Start(r.life, log.New(io.Discard, "", 0)); err != nil {
			return err
		}
		if err = errors.Join(p.api.Apply(apiserver.NodeObject(k.Node)), p.api.SetServices(services)); err == nil {
			p.RunningKubeProxy, err = n.StartKubeProxy(r.life, components.KubeProxy{Binaries: program.Binaries, API: p.api, Node: k.Name,
				Network: network, Flags: k.Plan.ProxyFlags, Place: at})
		}
		if err != nil {
			return errors.Join(err, p.stop())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("kube-proxy on %s: %w", k.Name, err)
	}
	n.proxy = p
	r.b.note(p.name)
	return nil
}

// onlyNetwork is the HNS network that a start script would put into KUBE_NETWORK.
func (n *Node) onlyNetwork() (string, error) {
	all := n.HNS.ListNetworks(nil)
	if len(all) != 1 {
		return "", fmt.Errorf("the node has %d HNS networks; write --network-name in proxy.flags", len(all))
	}
	return all[0].Name, nil
}

// serviceOrigins notes for each load balancer which Service it belongs to,
// because the program does not say.
func (b *builder) serviceOrigins(s *hns.Service) error {
	for _, lb := range s.ListLoadBalancers(func(l *hns.LoadBalancer) bool { return l.Origin == nil }) {
		vips := []netip.Addr{s.ManagementIP()}
		if len(lb.FrontendVIPs) > 0 {
			var err error
			if vips, err = addresses(lb.FrontendVIPs, "a frontend of load balancer "+lb.ID, lb.Origin); err != nil {
				return err
			}
		}
		for _, vip := range vips {
			for _, m := range lb.PortMappings {
				if svc := b.Frontend(vip, m.ExternalPort, packet.Proto(m.Protocol)); svc != nil && lb.Origin == nil {
					lb.Origin = svc.Origin
				}
			}
		}
	}
	return nil
}
