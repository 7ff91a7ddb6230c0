package build

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
	"github.com/winlab-dev/winlab/sim/lab/spec"
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

// real are the programs of a lab's Windows nodes while it is built.
type real struct {
	b        *builder
	ctx      context.Context
	pool     *components.Pool
	ownPool  bool
	programs *components.Programs
	plugins  *components.Program // nil: the model attaches pods
	proxy    bool
	nodes    map[string]*realNode
}

type realNode struct {
	*components.Node
	service *hcn.Service
	conf    components.NetConf
}

// wanted decides what of a lab is run for real: what it says itself, or with
// Options.Components Real whatever it does not forbid.
func (b *builder) wanted() (plugin, proxy bool) {
	s := b.Plan.File.Lab.Spec
	switch b.Options.Components {
	case spec.Model:
		return false, false
	case spec.Real:
		return slices.Contains(cni.ProgramNames(), s.Network.Plugin) && s.Network.Components != spec.Model,
			s.Proxy.Mode == kubeproxy.ModeKernelspace && s.Proxy.Components != spec.Model
	}
	return s.Network.Components == spec.Real, s.Proxy.Components == spec.Real
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
	asked := b.Options.Components == spec.Real
	if !plugin && !proxy {
		if asked {
			return fmt.Errorf("%w: plugin %s, kube-proxy in mode %s; there are programs of %s, and of kube-proxy in mode %s", ErrNoComponents,
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
			return fmt.Errorf("%w: plugin %s %s, kube-proxy %s; the pinned programs are the plugins %s and kube-proxy %s", ErrNoComponents, b.Plan.Network.Plugin, b.pluginVersion(),
				b.Kube.Version, strings.Join(programs.Versions("cni-plugins"), ", "), strings.Join(programs.Versions("kube-proxy"), ", "))
		}
	}
	if err := b.canStep(plugin, proxy); err != nil {
		return err
	}
	b.real = &real{b: b, ctx: ctx, pool: b.Options.Pool, programs: programs, proxy: proxy, nodes: map[string]*realNode{}}
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
		if err := r.node(n); err != nil {
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
	n := &realNode{service: hcn.New(k.HNS, hcn.Options{})}
	adapter := components.Adapter{Name: "Ethernet", MAC: dashed(k.MAC), Addresses: hostAddresses(k.Node)}
	n.Node, err = host.Node(r.ctx, components.NodeConfig{HNS: n.service, Adapters: []components.Adapter{adapter}})
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
			return fmt.Errorf("the source VIP: host-local gave %s instead of %s", got, want)
		}
	}
	return nil
}

func dashed(m packet.MAC) string { return strings.ToUpper(strings.ReplaceAll(m.String(), ":", "-")) }

// stop stops all programs. The HNS of each node is the lab's alone again.
func (r *real) stop() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, node := range r.b.Nodes {
		if n := r.nodes[node.Name]; n != nil {
			errs = append(errs, n.Close(), n.service.Close())
		}
	}
	if r.ownPool {
		errs = append(errs, r.pool.Close())
	}
	return errors.Join(errs...)
}

// attach lets the plugin's program attach a pod.
func (r *real) attach(k *Node, p *kube.Pod) (cni.Result, error) {
	d := cni.KubeletDNS(r.b.Kube, p)
	n := r.nodes[k.Name]
	a, err := n.AttachPod(r.ctx, r.plugins.Binaries, n.conf, p, components.DNS{Servers: d.Nameservers, Searches: d.Search, Options: d.Options})
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
	res := cni.Result{EndpointID: a.Endpoint, Addresses: a.Addresses, Gateway: a.Gateway}
	n.service.With(func(s *hns.Service) {
		e := s.Endpoint(a.Endpoint)
		res.DNS = e.Dns
		e.Origin = p.Origin
		if e.Origin == nil {
			e.Origin = &trace.Origin{What: fmt.Sprintf("endpoint of pod %s/%s", p.Namespace, p.Name)}
		}
	})
	return res, nil
}

// runningProxy is a kube-proxy of a node with the API server that it watches.
type runningProxy struct {
	*components.RunningKubeProxy
	api  *apiserver.Server
	node *kube.Node
	// ended: it has ended by itself.
	ended bool
}

func (p *runningProxy) stop() error {
	if p.RunningKubeProxy != nil {
		p.Stop()
	}
	return p.api.Close()
}

// proxies runs kube-proxy on all nodes at once until it has brought HNS in line with
// the Services, in each of their states.
func (r *real) proxies(states [][]*kube.Service) (err error) {
	var running []*runningProxy
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	for _, n := range r.b.Nodes {
		if r.nodes[n.Name] == nil || n.Plan.Proxy.Mode != kubeproxy.ModeKernelspace {
			continue
		}
		if n.unprepared != "" {
			r.b.trouble(n, kubeProxy, "it does not start: "+n.unprepared, nil, nil)
			continue
		}
		p, err := r.startProxy(n, states[0])
		if p != nil {
			running = append(running, p)
		}
		if err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	if err := r.waitSynced(running, time.Time{}); err != nil {
		return err
	}
	for _, state := range states[1:] {
		since := time.Now()
		for _, p := range running {
			if err := p.api.SetServices(state); err != nil {
				return err
			}
		}
		if err := r.waitSynced(running, since); err != nil {
			return err
		}
	}
	return r.readErrors(running)
}

// waitSynced waits until all that run have brought HNS in line with the Services. One
// that ends by itself, and says why, leaves a node on which no kube-proxy runs.
func (r *real) waitSynced(running []*runningProxy, since time.Time) error {
	for _, p := range running {
		if p.ended {
			continue
		}
		err := p.synced(r.ctx, since)
		if errors.Is(err, components.ErrEnded) {
			words, readErr := p.LastWords()
			if readErr == nil && words != "" {
				p.ended = true
				r.b.trouble(r.b.node(p.node.Name), kubeProxy, "it has ended: "+words, factProxyEnds, nil)
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
	"A kube-proxy that ends leaves the load balancers that it has made in HNS; it deletes those of an earlier one when it starts, before it makes its own.",
	"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go (NewProxier, CleanupLeftovers)")

// readErrors keeps what the programs complained about.
func (r *real) readErrors(running []*runningProxy) error {
	for _, p := range running {
		if p.ended {
			continue
		}
		errors, err := p.Errors()
		if err != nil {
			return err
		}
		for _, e := range errors {
			n := r.b.node(p.node.Name)
			r.b.trouble(n, kubeProxy, e, nil, func(f kubeproxy.Frontend) bool { return !hasLoadBalancer(n.HNS, f) })
		}
		r.nodes[p.node.Name].service.With(func(s *hns.Service) { err = r.b.serviceOrigins(s) })
		if err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", p.node.Name, err)
		}
	}
	return nil
}

func (p *runningProxy) synced(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	return p.WaitSynced(ctx, since)
}

func (r *real) startProxy(k *Node, services []*kube.Service) (*runningProxy, error) {
	program, err := r.programs.KubeProxy(r.ctx, k.Version)
	if err != nil {
		return nil, err
	}
	network := k.Plan.Proxy.NetworkName
	if network == "" {
		if network, err = k.onlyNetwork(); err != nil {
			return nil, err
		}
	}
	p := &runningProxy{node: k.Node}
	if p.api, err = apiserver.Start(r.ctx, log.New(io.Discard, "", 0)); err != nil {
		return nil, err
	}
	if err := errors.Join(p.api.Apply(apiserver.NodeObject(k.Node)), p.api.SetServices(services)); err != nil {
		return p, err
	}
	p.RunningKubeProxy, err = r.nodes[k.Name].StartKubeProxy(r.ctx, components.KubeProxy{Binaries: program.Binaries, API: p.api, Node: k.Name, Network: network, Flags: k.Plan.ProxyFlags})
	if err != nil {
		return p, err
	}
	r.b.note(program.String())
	return p, nil
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
