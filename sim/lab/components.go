package lab

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
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// ErrNoComponents says that no program of a lab can be run: its plugin has none
// here, and its kube-proxy is not pinned or is none.
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
	s := b.spec
	switch b.Options.Components {
	case Model:
		return false, false
	case Real:
		return slices.Contains(cni.ProgramNames(), s.Network.Plugin) && s.Network.Components != Model,
			s.Proxy.Mode == kubeproxy.ModeKernelspace && s.Proxy.Components != Model
	}
	return s.Network.Components == Real, s.Proxy.Components == Real
}

// pluginVersion is the release of the CNI plugins that the lab asks for, "" for any:
// network.version is flannel's own where flannel calls them.
func (b *builder) pluginVersion() string {
	if cni.Name(b.spec.Network.Plugin) == cni.PluginFlannel {
		return ""
	}
	return b.spec.Network.Version
}

// proxyVersions are the versions of kube-proxy on the Windows nodes.
func (b *builder) proxyVersions() []kube.Version {
	var all []kube.Version
	for i, n := range b.spec.Nodes {
		if v := b.Kube.Nodes[i].Version; n.OS == "windows" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// startReal makes a node for the programs of each Windows node.
func (b *builder) startReal(ctx context.Context) error {
	plugin, proxy := b.wanted()
	asked := b.Options.Components == Real
	if !plugin && !proxy {
		if asked {
			return fmt.Errorf("%w: plugin %s, kube-proxy in mode %s; programs can be run of %s, and of kube-proxy in mode %s", ErrNoComponents,
				b.spec.Network.Plugin, b.spec.Proxy.Mode, strings.Join(cni.ProgramNames(), ", "), kubeproxy.ModeKernelspace)
		}
		return nil
	}
	if err := components.Available(); err != nil {
		return fmt.Errorf("real components: %w", err)
	}
	programs, err := components.FindPrograms(b.File.Dir())
	if err != nil {
		return err
	}
	if asked {
		// Whatever is pinned.
		plugin = plugin && programs.HasPlugins(b.pluginVersion())
		proxy = proxy && !slices.ContainsFunc(b.proxyVersions(), func(v kube.Version) bool { return !programs.HasKubeProxy(v) })
		if !plugin && !proxy {
			return fmt.Errorf("%w: plugin %s %s, kube-proxy %s; pinned are the plugins %s and kube-proxy %s", ErrNoComponents, b.spec.Network.Plugin, b.pluginVersion(),
				b.Kube.Version, strings.Join(programs.Versions("cni-plugins"), ", "), strings.Join(programs.Versions("kube-proxy"), ", "))
		}
	}
	r := &real{b: b, ctx: ctx, pool: b.Options.Pool, programs: programs, proxy: proxy, nodes: map[string]*realNode{}}
	if plugin {
		if r.plugins, err = programs.Plugins(ctx, b.pluginVersion()); err != nil {
			return err
		}
	}
	if proxy {
		// Building takes a minute the first time: now, and not while others wait.
		for _, v := range b.proxyVersions() {
			if _, err := programs.KubeProxy(ctx, v); err != nil {
				return err
			}
		}
	}
	b.real = r
	if r.pool == nil {
		if r.pool, err = components.NewPool(""); err != nil {
			return err
		}
		r.ownPool = true
	}
	for i, n := range b.spec.Nodes {
		if b.windows[n.Name] == nil || len(n.HNSDump) > 0 {
			continue // what is there came from a dump
		}
		if err := r.node(b.Kube.Nodes[i]); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// node starts the HNS service and what the programs of one node need.
func (r *real) node(k *kube.Node) error {
	host, err := r.pool.Host(r.ctx, k.Windows)
	if err != nil {
		return err
	}
	n := &realNode{service: hcn.New(r.b.hns[k.Name], hcn.Options{})}
	adapter := components.Adapter{Name: "Ethernet", MAC: dashed(k.MAC), Addresses: []netip.Prefix{netip.PrefixFrom(k.Address, k.Subnet.Bits())}}
	if k.Address6.IsValid() {
		adapter.Addresses = append(adapter.Addresses, netip.PrefixFrom(k.Address6, 64))
	}
	n.Node, err = host.Node(r.ctx, components.NodeConfig{HNS: n.service, Adapters: []components.Adapter{adapter}})
	if err != nil {
		return errors.Join(err, n.service.Close())
	}
	r.nodes[k.Name] = n
	if r.plugins == nil {
		return nil
	}
	bin, err := cni.NewBinary(r.b.pluginOptions, k)
	if err != nil {
		return err
	}
	n.conf = components.NetConf(*bin)
	for _, want := range r.b.pluginOptions.Reserved {
		if !slices.ContainsFunc(k.PodCIDRs, func(p netip.Prefix) bool { return p.Contains(want) }) {
			continue // another node's
		}
		got, err := n.ReserveAddress(r.ctx, r.plugins.Binaries, n.conf, "source-vip", want)
		if err != nil {
			return fmt.Errorf("the source VIP: %w", err)
		}
		if got != want {
			return fmt.Errorf("the source VIP: host-local gave %s in place of %s", got, want)
		}
	}
	return nil
}

func dashed(m packet.MAC) string { return strings.ToUpper(strings.ReplaceAll(m.String(), ":", "-")) }

// end stops all programs. The HNS of each node is the lab's alone again.
func (r *real) end() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, n := range r.nodes {
		errs = append(errs, n.Close(), n.service.Close())
	}
	if r.ownPool {
		errs = append(errs, r.pool.Close())
	}
	return errors.Join(errs...)
}

// add lets the plugin's program attach a pod.
func (r *real) add(k *kube.Node, p *kube.Pod) (cni.Result, error) {
	d := cni.KubeletDNS(r.b.Kube, p)
	n := r.nodes[k.Name]
	a, err := n.AttachPod(r.ctx, r.plugins.Binaries, n.conf, p, components.DNS{Servers: d.Nameservers, Searches: d.Search, Options: d.Options})
	if err != nil {
		return cni.Result{}, err
	}
	for _, refusal := range a.Refusals {
		r.b.Log = append(r.b.Log, fmt.Sprintf("pod %s/%s on %s: the kubelet tries again, since %v", p.Namespace, p.Name, k.Name, refusal))
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

// note adds to the names of what was run.
func (c *Cluster) note(program string) {
	if !slices.Contains(c.Components, program) {
		c.Components = append(c.Components, program)
		slices.Sort(c.Components)
	}
}

// runningProxy is a kube-proxy of a node with the API server that it watches.
type runningProxy struct {
	*components.RunningKubeProxy
	api  *apiserver.Server
	node *kube.Node
}

func (p *runningProxy) stop() error {
	if p.RunningKubeProxy != nil {
		p.Stop()
	}
	return p.api.Close()
}

// proxies runs kube-proxy on all nodes at once until it has brought HNS in line with
// the Services, in each of their states.
func (r *real) proxies() (err error) {
	var running []*runningProxy
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	states := r.b.syncs()
	for i, n := range r.b.spec.Nodes {
		k := r.b.Kube.Nodes[i]
		if r.nodes[n.Name] == nil {
			continue
		}
		p, err := r.startProxy(k, states[0])
		if p != nil {
			running = append(running, p)
		}
		if err != nil {
			return fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
		}
	}
	since := time.Time{}
	for i, state := range states {
		if i > 0 {
			since = time.Now()
		}
		for _, p := range running {
			if i > 0 {
				if err := p.api.SetServices(state); err != nil {
					return err
				}
			}
		}
		for _, p := range running {
			if err := p.synced(r.ctx, since); err != nil {
				return fmt.Errorf("kube-proxy on %s: %w", p.node.Name, err)
			}
		}
	}
	for _, p := range running {
		errors, err := p.Errors()
		if err != nil {
			return err
		}
		for _, e := range errors {
			r.b.Log = append(r.b.Log, "kube-proxy on "+p.node.Name+": "+e)
		}
		r.nodes[p.node.Name].service.With(r.b.serviceOrigins)
	}
	return nil
}

func (p *runningProxy) synced(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	return p.WaitSynced(ctx, since)
}

func (r *real) startProxy(k *kube.Node, services []*kube.Service) (*runningProxy, error) {
	program, err := r.programs.KubeProxy(r.ctx, k.Version)
	if err != nil {
		return nil, err
	}
	cfg, err := r.b.proxyConfig(k)
	if err != nil {
		return nil, err
	}
	network := cfg.NetworkName
	if network == "" {
		if network, err = r.b.onlyNetwork(k); err != nil {
			return nil, err
		}
	}
	p := &runningProxy{node: k}
	if p.api, err = apiserver.Start(r.ctx, log.New(io.Discard, "", 0)); err != nil {
		return nil, err
	}
	if err := errors.Join(p.api.Apply(apiserver.NodeObject(k)), p.api.SetServices(services)); err != nil {
		return p, err
	}
	var flags []string
	for _, f := range r.b.spec.Proxy.Flags {
		flags = append(flags, r.b.tokens(f, k))
	}
	p.RunningKubeProxy, err = r.nodes[k.Name].StartKubeProxy(r.ctx, components.KubeProxy{Binaries: program.Binaries, API: p.api, Node: k.Name, Network: network, Flags: flags})
	if err != nil {
		return p, err
	}
	r.b.note(program.String())
	return p, nil
}

// onlyNetwork is the HNS network that a start script would put into KUBE_NETWORK.
func (b *builder) onlyNetwork(k *kube.Node) (string, error) {
	all := b.hns[k.Name].ListNetworks(nil)
	if len(all) != 1 {
		return "", fmt.Errorf("the node has %d HNS networks; write --network-name in proxy.flags", len(all))
	}
	return all[0].Name, nil
}

// serviceOrigins notes for each load balancer which Service it belongs to: the
// program has not said.
func (b *builder) serviceOrigins(s *hns.Service) {
	for _, lb := range s.ListLoadBalancers(func(l *hns.LoadBalancer) bool { return l.Origin == nil }) {
		vips := []netip.Addr{s.ManagementIP()}
		if len(lb.FrontendVIPs) > 0 {
			vips = addrs(lb.FrontendVIPs)
		}
		for _, vip := range vips {
			for _, m := range lb.PortMappings {
				if svc := b.frontend(vip, m.ExternalPort, packet.Proto(m.Protocol)); svc != nil && lb.Origin == nil {
					lb.Origin = svc.Origin
				}
			}
		}
	}
}
