package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

var factNoUDP15 = evidence.New("lab.container-udp-1.5", evidence.Stated,
	"With Kubernetes 1.5, programs in Windows containers cannot use UDP.", "Kubernetes blog, Windows Server support comes to Kubernetes (1.5), alpha limitations")

// Options choose a state and versions of a lab.
type Options struct {
	// Variant is the name of one of the lab's variants.
	Variant string
	// Setting puts other versions in place of the lab's own.
	Setting *Setting
	// Components is Model or Real for whatever can be run; "" is what the lab says.
	Components string
	// Pool has the hosts for real components; nil is one for this build alone.
	Pool *components.Pool
}

// Cluster is a lab that was built: machines, switches and programs, ready for
// flows.
type Cluster struct {
	File    *File
	Options Options
	Kube    *kube.Cluster
	Proxy   kubeproxy.Config
	Plugin  string // "flannel 0.12.0"
	NetType string // HNS network type, lower case
	// Components are the programs that ran in the place of their models, with their
	// versions: "kube-proxy 1.36.3". Empty: all is the model's.
	Components []string

	segments map[string]*wire.Segment
	windows  map[string]*node.Windows
	linux    map[string]*machine.Linux
	ovn      map[string]*ovs.Node
	hosts    map[string]*machine.Linux
	pods     map[string]*pod // "namespace/name"
	podOrder []string
	hns      map[string]*hns.Service
	dns      *dns.Cluster
	dnsOf    map[*host.Stack]dns.Client
	orig     *File
	// Log holds what programs said that is worth knowing: kube-proxy's
	// failures, a plugin's warnings.
	Log   []string
	named trace.Lab
	dirty bool
}

// pod is a pod on its node.
type pod struct {
	*machine.Compartment
	Node     string
	Endpoint string // HNS endpoint id, "" without one
}

// attached is what a network plugin made for a pod.
type attached struct {
	*machine.Compartment
	endpoint string
}

// Build makes the cluster of a lab. It can be interrupted: real components take
// seconds.
func Build(ctx context.Context, f *File, o Options) (*Cluster, error) {
	fv, err := f.Variant(o.Variant)
	if err != nil {
		return nil, err
	}
	if o.Setting != nil {
		fv = fv.WithSetting(o.Setting)
	}
	c := &Cluster{File: fv, orig: f, Options: o, segments: map[string]*wire.Segment{}, windows: map[string]*node.Windows{}, linux: map[string]*machine.Linux{},
		ovn: map[string]*ovs.Node{}, hosts: map[string]*machine.Linux{}, pods: map[string]*pod{}, hns: map[string]*hns.Service{}, dnsOf: map[*host.Stack]dns.Client{}}
	b := &builder{Cluster: c, spec: &fv.Lab.Spec, orig: f, leases: map[string]int{}}
	if err := errors.Join(b.run(ctx), b.real.end()); err != nil {
		return nil, err
	}
	return c, nil
}

// builder carries what is needed only while building.
type builder struct {
	*Cluster
	spec   *Spec
	orig   *File
	man    *spec.Manifests
	plugin cni.Plugin
	// pluginOptions are what plugin was made of.
	pluginOptions cni.Options
	real          *real // nil without real components
	ovnNet        *ovs.Network
	workloads     []*workload
	macs          uint32
	leases        map[string]int
}

func (b *builder) run(ctx context.Context) error {
	var err error
	startReal := func() error { return b.startReal(ctx) }
	steps := []func() error{b.cluster, b.fabric, b.outside, b.readPlugin, b.nodes, startReal, b.placePods, b.services, b.proxies, b.names, b.hnsCalls}
	for _, step := range steps {
		if err = step(); err != nil {
			return b.in(err)
		}
	}
	return nil
}

// in puts the lab's name before an error that has no file.
func (b *builder) in(err error) error {
	var ms strict.Mistakes
	if errors.As(err, &ms) || strings.HasPrefix(err.Error(), b.File.Path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", b.File.Path, err)
}

func (b *builder) mac() packet.MAC {
	b.macs++
	return packet.MAC{0x00, 0x15, 0x5d, 0x00, byte(b.macs >> 8), byte(b.macs)}
}

func mustPrefix(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p
}

func mustAddr(s string) netip.Addr {
	a, _ := netip.ParseAddr(s)
	return a
}

// cluster fills in what is the same for all nodes.
func (b *builder) cluster() error {
	s := b.spec
	ver, _ := kube.ParseVersion(s.Kubernetes)
	b.Kube = &kube.Cluster{Version: ver, Domain: s.DNS.Domain, DNSIP: mustAddr(s.Network.DNSIP),
		ClusterCIDRs: []netip.Prefix{mustPrefix(s.Network.ClusterCIDR)}, ServiceCIDRs: []netip.Prefix{mustPrefix(s.Network.ServiceCIDR)}}
	if s.Network.IPv6ClusterCIDR != "" {
		b.Kube.ClusterCIDRs = append(b.Kube.ClusterCIDRs, mustPrefix(s.Network.IPv6ClusterCIDR))
	}
	if s.Network.IPv6ServiceCIDR != "" {
		b.Kube.ServiceCIDRs = append(b.Kube.ServiceCIDRs, mustPrefix(s.Network.IPv6ServiceCIDR))
	}
	for _, n := range s.Nodes {
		k := &kube.Node{Name: n.Name, Address: mustAddr(n.Address), Gateway: mustAddr(n.Gateway), Version: ver, MAC: b.mac(), VtepMAC: b.mac(), Subnet: b.subnet(n.Segment, n.Address)}
		k.VtepMAC[0], k.VtepMAC[1], k.VtepMAC[2] = 0x02, 0x11, 0x22
		if m, err := packet.ParseMAC(n.VTEPMAC); err == nil {
			k.VtepMAC = m
		}
		if n.Kubernetes != "" {
			k.Version, _ = kube.ParseVersion(n.Kubernetes)
		}
		if n.PodCIDR != "" {
			k.PodCIDRs = append(k.PodCIDRs, mustPrefix(n.PodCIDR))
		}
		if n.IPv6PodCIDR != "" {
			k.PodCIDRs = append(k.PodCIDRs, mustPrefix(n.IPv6PodCIDR))
		}
		if n.IPv6Address != "" {
			k.Address6 = mustAddr(n.IPv6Address)
		}
		if n.OS == "windows" {
			v, err := builds.Parse(n.Build)
			if err != nil {
				return err
			}
			if k.Windows, err = builds.Lookup(v); err != nil {
				return err
			}
			if len(n.Quirks) > 0 {
				if k.Windows, err = k.Windows.WithQuirks(n.Quirks, nil); err != nil {
					return err
				}
			}
		}
		b.Kube.Nodes = append(b.Kube.Nodes, k)
	}
	return nil
}

// subnet is the network of a segment, or the /24 of an address.
func (b *builder) subnet(segment, addr string) netip.Prefix {
	for _, g := range b.spec.Fabric.Segments {
		if g.Name == segment && g.Subnet != "" {
			return mustPrefix(g.Subnet)
		}
	}
	p, _ := mustAddr(addr).Prefix(24)
	return p
}

// readPlugin reads the plugin's configuration files.
func (b *builder) readPlugin() error {
	net := b.spec.Network
	b.Plugin = net.Plugin
	if net.Version != "" {
		b.Plugin += " " + net.Version
	}
	if !slices.Contains(cni.Names(), net.Plugin) {
		b.NetType = "transparent"
		if net.Plugin == "ovn-kubernetes" || net.Plugin == "ovs-l3" {
			b.ovnNet = ovs.NewNetwork(ovs.Options{Name: net.Plugin, Encap: "geneve", Params: b.spec.Params, ClusterCIDR: b.Kube.ClusterCIDRs[0], ServiceCIDR: b.Kube.ServiceCIDRs[0]})
		}
		return nil
	}
	o := cni.Options{Plugin: cni.Name(net.Plugin), Version: net.Version}
	masq, route := b.spec.Param("flannel-ip-masq") == "on", b.spec.Param("overlay-host-route") == "yes"
	o.IPMasq, o.HostRoute = &masq, &route
	vni, err := strconv.ParseUint(b.spec.Param("winlab-vni"), 10, 24)
	if err != nil {
		return fmt.Errorf("parameter winlab-vni: %q is not a virtual network identifier", b.spec.Param("winlab-vni"))
	}
	o.VNI = uint32(vni)
	if net.Conf == "" {
		return fmt.Errorf("plugin %s needs its configuration: write network: {conf: FILE}", net.Plugin)
	}
	file := b.File.PathOf(net.Conf)
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if o.Conf, err = cni.ParseConf(file, data); err != nil {
		return err
	}
	if net.NetConf != "" {
		file := b.File.PathOf(net.NetConf)
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if o.NetConf, err = cni.ParseNetConf(file, data); err != nil {
			return err
		}
	}
	for i := range b.Kube.Nodes {
		if cfg, err := b.proxyConfig(b.Kube.Nodes[i]); err == nil && cfg.SourceVIP.IsValid() {
			o.Reserved = append(o.Reserved, cfg.SourceVIP)
		}
	}
	if b.plugin, err = cni.New(o); err != nil {
		return err
	}
	b.pluginOptions = o
	b.NetType = strings.ToLower(b.plugin.NetworkType())
	b.Log = append(b.Log, b.plugin.Warnings()...)
	return nil
}

// refusals are the protocols that containers of this release cannot use.
func (b *builder) refusals() []host.Refusal {
	if b.Kube.Version.AtLeast(14) {
		return nil
	}
	return []host.Refusal{{Proto: packet.UDP, Text: "programs in Windows containers cannot use UDP with Kubernetes " + b.Kube.Version.String(), Fact: factNoUDP15}}
}

// nodes builds the machines of the cluster.
func (b *builder) nodes() error {
	for i, n := range b.spec.Nodes {
		k := b.Kube.Nodes[i]
		var err error
		switch {
		case b.ovnNet != nil:
			err = b.ovnNode(n, k)
		case n.OS == "windows":
			err = b.windowsNode(n, k)
		default:
			err = b.linuxNode(n, k)
		}
		if err != nil {
			return err
		}
		stack := b.stackOf(n.Name)
		if err := b.finishNode(n, k, stack); err != nil {
			return err
		}
	}
	// Plugins on every node know all peers only now.
	for _, n := range b.spec.Nodes {
		if b.windows[n.Name] != nil && len(n.HNSDump) == 0 {
			if err := b.prepare(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) stackOf(name string) *host.Stack {
	switch {
	case b.windows[name] != nil:
		return b.windows[name].Stack()
	case b.linux[name] != nil:
		return b.linux[name].Stack()
	case b.ovn[name] != nil:
		return b.ovn[name].Stack()
	}
	return nil
}

// finishNode adds routes and programs that every node has.
func (b *builder) finishNode(n Node, k *kube.Node, st *host.Stack) error {
	if k.Gateway.IsValid() {
		if err := st.AddRoute(host.Route{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: k.Gateway}); err != nil {
			return err
		}
	}
	for _, r := range n.Routes {
		rt := host.Route{To: mustPrefix(r.To), Via: mustAddr(r.Via)}
		rt.Origin = b.File.Origin("route of node "+n.Name, "spec", "nodes")
		if err := st.AddRoute(rt); err != nil {
			return err
		}
	}
	st.Listen(&host.Listener{Name: "kubelet", Proto: packet.TCP, Port: 10250})
	for _, l := range n.Listen {
		lp, _ := spec.ParseListen(l)
		st.Listen(&host.Listener{Name: "a program of the node", Proto: lp.Proto, Port: lp.Port})
	}
	return nil
}

func (b *builder) ovnNode(n Node, k *kube.Node) error {
	seg := b.segments[n.Segment]
	o := ovs.NodeOptions{Name: n.Name, Windows: n.OS == "windows", NIC: "Ethernet", MAC: k.MAC, Address: k.Address, Subnet: k.Subnet, Gateway: k.Gateway}
	if len(k.PodCIDRs) > 0 {
		o.Compartments = k.PodCIDRs[0]
	}
	x, err := b.ovnNet.AddNode(o, seg)
	if err != nil {
		return err
	}
	b.ovn[n.Name] = x
	return nil
}

func (b *builder) windowsNode(n Node, k *kube.Node) error {
	o := hns.Options{Node: n.Name, ManagementIP: k.Address, HostMAC: k.MAC.String(), Seed: b.File.Lab.Metadata.Name}
	if n.DynamicPorts != "" {
		var err error
		if o.PortRangeFirst, o.PortRangeLast, err = spec.ParsePortRange(n.DynamicPorts); err != nil {
			return err
		}
	}
	o.SharePortPools = b.spec.Param("share-port-pools") == "yes"
	svc := hns.NewService(k.Windows, o)
	b.hns[n.Name] = svc
	w := node.NewWindows(n.Name, svc, node.Options{HostDSR: b.spec.Param("host-to-dsr-service"), KeepLoopback: b.spec.Param("loopback-hairpin") == "deliver", Missing: breaks(n.Faults)})
	b.windows[n.Name] = w
	addrs := []netip.Prefix{netip.PrefixFrom(k.Address, k.Subnet.Bits())}
	if k.Address6.IsValid() {
		addrs = append(addrs, netip.PrefixFrom(k.Address6, 64))
	}
	w.AddAdapter("Ethernet", k.MAC, b.segments[n.Segment], addrs...)
	if b.spec.Network.Plugin == "rras" {
		return b.rrasNode(n, k, w)
	}
	if len(n.HNSDump) > 0 {
		return b.loadDump(n, svc)
	}
	return nil
}

// prepare lets the plugin's agent set up a Windows node.
func (b *builder) prepare(n Node) error {
	if b.plugin == nil {
		return nil
	}
	k := b.Kube.Node(n.Name)
	w := b.windows[n.Name]
	h, err := b.plugin.Prepare(b.Kube, k, b.hns[n.Name])
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	w.Refresh()
	w.Stack().Forwarding = w.Stack().Forwarding || h.Forwarding
	for _, id := range h.HostEndpoints {
		if err := w.AttachHost(id); err != nil {
			return err
		}
	}
	for _, r := range h.Routes {
		rt := host.Route{To: r.To, Via: r.Via, Origin: r.Origin}
		if err := w.Stack().AddRoute(rt); err != nil {
			// The agent names the interface itself, so Windows takes a next hop
			// that is on no network of the node (flannel-io/flannel
			// pkg/backend/route_network_windows.go).
			rt.Link = w.Stack().Links[0]
			if err := w.Stack().AddRoute(rt); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadDump fills a node's HNS from what was taken from a real one.
func (b *builder) loadDump(n Node, svc *hns.Service) error {
	var all hns.Dump
	for _, name := range n.HNSDump {
		file := b.File.PathOf(name)
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		d, err := hns.ParseDump(file, data)
		if err != nil {
			return err
		}
		all.Add(d)
	}
	for _, i := range all.Ignored {
		b.Log = append(b.Log, fmt.Sprintf("node %s: the dump's field %s has no meaning in the model", n.Name, i))
	}
	return svc.Load(&all)
}

// dockerBridge is docker0 as Docker makes it.
var dockerBridge = netip.MustParsePrefix("172.17.0.1/16")

func (b *builder) linuxNode(n Node, k *kube.Node) error {
	l := machine.NewLinux(n.Name, n.Name)
	b.linux[n.Name] = l
	l.Stack().NAT = host.NewNetfilter()
	l.Stack().StrictReversePath = b.spec.Param("linux-reverse-path-filter") == "strict"
	addrs := []netip.Prefix{netip.PrefixFrom(k.Address, k.Subnet.Bits())}
	if k.Address6.IsValid() {
		addrs = append(addrs, netip.PrefixFrom(k.Address6, 64))
	}
	eth := l.AddAdapter("eth0", k.MAC, b.segments[n.Segment], addrs...)
	if b.spec.Network.Plugin == "rras" {
		return b.rrasLinux(n, k, l)
	}
	set := b.plugin.Linux(b.Kube, k)
	if cni.Name(b.spec.Network.Plugin) == cni.PluginNAT {
		// Linux containers on a network of the same kind: Docker's bridge.
		set = cni.LinuxSetup{Forwarding: true, Bridge: dockerBridge, MasqueradeNot: []netip.Prefix{dockerBridge.Masked()}}
		k.PodCIDRs = []netip.Prefix{dockerBridge.Masked()}
	}
	l.Stack().Forwarding = set.Forwarding
	if set.Bridge.IsValid() || set.PodsInNodeSubnet {
		l.AddBridge("cni0", set.Bridge)
	}
	for _, r := range set.Routes {
		if err := l.Stack().AddRoute(host.Route{To: r.To, Via: r.Via, Origin: r.Origin}); err != nil {
			// Linux refuses such a route, and flannel goes on without it
			// (flannel-io/flannel pkg/backend/route_network.go).
			b.Log = append(b.Log, fmt.Sprintf("node %s: %v", n.Name, err))
		}
	}
	if v := set.VXLAN; v != nil {
		vt := &host.VTEP{Kind: packet.VXLAN, VNI: v.VNI, Port: v.Port, Local: v.Local, Link: &host.Link{Name: "flannel.1", MAC: v.MAC, Addrs: []netip.Prefix{v.Address}}}
		for _, p := range v.Peers {
			vt.Peers = append(vt.Peers, host.Peer{Prefix: p.Prefix, Addr: p.PA, MAC: p.MAC})
		}
		l.Stack().AddVTEP(vt)
	}
	if len(set.MasqueradeNot) > 0 {
		src := slices.Clone(k.PodCIDRs)
		if set.PodsInNodeSubnet {
			src = nil
		}
		l.Stack().NAT.Rules = append(l.Stack().NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "POSTROUTING/IP-MASQ", Src: src, NotSrc: []netip.Prefix{netip.PrefixFrom(k.Address, 32)},
			NotDst: set.MasqueradeNot, OutLink: eth, Masquerade: true, Origin: &trace.Origin{What: "ip-masq of " + b.Plugin}})
	}
	return nil
}

// placePods gives every pod a node, attaches it and starts its programs.
func (b *builder) placePods() error {
	var err error
	if b.man, err = b.File.Manifests(); err != nil {
		return err
	}
	for _, m := range b.man.Workloads {
		b.workloads = append(b.workloads, &workload{Workload: *m, ready: true})
	}
	if !b.spec.DNS.Off {
		b.workloads = append(b.workloads, &workload{ready: true, Workload: spec.Workload{Namespace: "kube-system", Name: "coredns-0", OS: "linux", Labels: map[string]string{"k8s-app": "kube-dns"},
			Listen: []spec.ListenPort{{Proto: packet.UDP, Port: 53}, {Proto: packet.TCP, Port: 53}}, Origin: &trace.Origin{What: "Deployment coredns"}}})
	}
	if err := b.pinPods(); err != nil {
		return err
	}
	if err := b.schedule(); err != nil {
		return err
	}
	b.serveTargets()
	for _, w := range b.workloads {
		if err := b.attach(w); err != nil {
			return err
		}
	}
	return nil
}

// pinPods adds the lab's own pods and applies what it says of others.
func (b *builder) pinPods() error {
	for i, p := range b.spec.Pods {
		ns := p.Namespace
		if ns == "" {
			ns = "default"
		}
		j := slices.IndexFunc(b.workloads, func(w *workload) bool { return w.Namespace == ns && w.Name == p.Name })
		var w *workload
		if j >= 0 {
			w = b.workloads[j]
		} else {
			w = &workload{ready: true, Workload: spec.Workload{Namespace: ns, Name: p.Name, Labels: map[string]string{}, Ports: map[string]uint16{}, Origin: b.File.Origin("pod "+p.Name, "spec", "pods", i)}}
			b.workloads = append(b.workloads, w)
		}
		if p.Node != "" {
			w.Node = p.Node
		}
		if p.Address != "" {
			w.address = mustAddr(p.Address)
		}
		if p.Ready != nil {
			w.ready = *p.Ready
		}
		w.terminating = p.Terminating
		w.late, w.dns = p.Late, p.DNS
		for k, v := range p.Labels {
			if w.Labels == nil {
				w.Labels = map[string]string{}
			}
			w.Labels[k] = v
		}
		for _, l := range p.Listen {
			lp, _ := spec.ParseListen(l)
			w.Listen = append(w.Listen, lp)
		}
		for _, h := range p.HostPorts {
			hp, _ := spec.ParseHostPort(h)
			w.HostPorts = append(w.HostPorts, hp)
		}
	}
	return nil
}

// schedule spreads pods without a node over the nodes of their system.
func (b *builder) schedule() error {
	next := map[string]int{}
	for _, w := range b.workloads {
		if w.Node != "" {
			if b.Kube.Node(w.Node) == nil {
				return fmt.Errorf("pod %s/%s: there is no node %q", w.Namespace, w.Name, w.Node)
			}
			continue
		}
		var fit []string
		for _, n := range b.spec.Nodes {
			if w.OS == "" || w.OS == n.OS {
				fit = append(fit, n.Name)
			}
		}
		if len(fit) == 0 {
			return fmt.Errorf("pod %s/%s: no node runs %s", w.Namespace, w.Name, w.OS)
		}
		key := w.Namespace + "/" + strings.TrimRight(w.Name, "0123456789")
		w.Node = fit[next[key]%len(fit)]
		next[key]++
	}
	return nil
}

// serveTargets lets pods that declare no port serve what Services expect of
// them, as the program in the source documents' manifest does.
func (b *builder) serveTargets() {
	for _, w := range b.workloads {
		if len(w.Listen) > 0 {
			continue
		}
		for _, s := range b.man.Services {
			if !s.Selects(w.Namespace, w.Labels) {
				continue
			}
			for _, sp := range s.Ports {
				w.Listen = append(w.Listen, spec.ListenPort{Proto: sp.Proto, Port: sp.Target})
			}
		}
	}
}

// attach gives a pod its network, by the plugin of its node, and starts its programs.
func (b *builder) attach(w *workload) error {
	if w.HostNetwork {
		st := b.stackOf(w.Node)
		b.start(st, w)
		b.addPod(w, &pod{Compartment: machine.NewCompartment(st, b.Kube.Node(w.Node).Address), Node: w.Node})
		return nil
	}
	kp := &kube.Pod{Namespace: w.Namespace, Name: w.Name, Node: w.Node, Address: w.address, HostPorts: w.HostPorts, Labels: w.Labels, Origin: w.Origin}
	k := b.Kube.Node(w.Node)
	var at attached
	var err error
	object := "pod/" + w.Namespace + "/" + w.Name
	cl := b.clientFor(w, k)
	switch {
	case b.ovnNet != nil:
		at.Compartment, err = b.ovn[w.Node].Attach(object, w.Namespace+"_"+w.Name, kp.Address)
	case b.spec.Network.Plugin == "rras":
		at, err = b.rrasPod(object, kp, k)
	case k.Windows != nil && len(b.spec.Nodes[b.index(w.Node)].HNSDump) > 0:
		at, err = b.podOfDump(object, w, kp)
	case k.Windows != nil:
		var r cni.Result
		if b.real != nil && b.real.plugins != nil {
			r, err = b.real.add(k, kp)
		} else {
			r, err = b.plugin.Add(b.Kube, k, kp, b.hns[w.Node])
		}
		if err == nil {
			cl.InterfaceSuffixes = r.DNS.Search
			cl.Servers = addrs(r.DNS.ServerList)
			at.endpoint = r.EndpointID
			at.Compartment, err = b.windows[w.Node].Attach(object, r.EndpointID, r.Gateway)
		}
	case cni.Name(b.spec.Network.Plugin) == cni.PluginNAT:
		b.leases[w.Node]++
		addr := nth(dockerBridge.Addr(), b.leases[w.Node])
		at.Compartment, err = b.linux[w.Node].Attach(object, netip.PrefixFrom(addr, dockerBridge.Bits()), dockerBridge.Addr(), false)
	default:
		var l cni.Lease
		if l, err = b.plugin.Lease(b.Kube, k, kp); err == nil {
			at.Compartment, err = b.linux[w.Node].Attach(object, l.Prefix, l.Gateway, b.plugin.Linux(b.Kube, k).PodsInNodeSubnet)
		}
	}
	if err != nil {
		return fmt.Errorf("pod %s/%s on %s: %w", w.Namespace, w.Name, w.Node, err)
	}
	if k.Windows != nil {
		at.Stack().Refuse = append(at.Stack().Refuse, b.refusals()...)
	}
	cl.GlobalSuffixes, cl.AppendToMultiLabel = w.dns.GlobalSuffixes, w.dns.AppendToMultiLabel
	b.dnsOf[at.Stack()] = cl
	b.start(at.Stack(), w)
	b.addPod(w, &pod{Compartment: at.Compartment, Node: w.Node, Endpoint: at.endpoint})
	return nil
}

func addrs(list []string) []netip.Addr {
	var as []netip.Addr
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			as = append(as, a)
		}
	}
	return as
}

func (b *builder) index(name string) int {
	return slices.IndexFunc(b.spec.Nodes, func(n Node) bool { return n.Name == name })
}

func (b *builder) addPod(w *workload, p *pod) {
	key := w.Namespace + "/" + w.Name
	b.pods[key] = p
	b.podOrder = append(b.podOrder, key)
	sort.Strings(b.podOrder)
	w.address = p.Address
}

// clientFor is the resolver configuration that kubelet asks for a pod.
func (b *builder) clientFor(w *workload, k *kube.Node) dns.Client {
	c := dns.Client{OS: dns.OnLinux, Servers: []netip.Addr{b.Kube.DNSIP}, Search: cni.KubeletDNS(b.Kube, &kube.Pod{Namespace: w.Namespace}).Search, Ndots: 5}
	if k.Windows != nil {
		c.OS = "windows"
		c.InterfaceSuffixes = []string{w.Namespace + ".svc." + b.spec.DNS.Domain}
	}
	return c
}

// start runs a pod's programs on a stack.
func (b *builder) start(st *host.Stack, w *workload) {
	for _, l := range w.Listen {
		h := &host.Listener{Name: w.Name, Proto: l.Proto, Port: l.Port, Origin: w.Origin}
		if w.Namespace == "kube-system" && w.Labels["k8s-app"] == "kube-dns" {
			h.Answer = func(q []byte) []byte { return b.dns.Answer(q) }
		}
		st.Listen(h)
	}
}

// podOfDump finds the endpoint of a pod in a dump: by its pinned address or by
// a name that holds the pod's.
func (b *builder) podOfDump(object string, w *workload, kp *kube.Pod) (attached, error) {
	svc := b.hns[w.Node]
	var match *hns.Endpoint
	for _, e := range svc.ListEndpoints(nil) {
		if e.Remote() {
			continue
		}
		if kp.Address.IsValid() && slices.Contains(e.Addresses(), kp.Address) || !kp.Address.IsValid() && strings.Contains(e.Name, w.Name) {
			match = e
			break
		}
	}
	if match == nil {
		return attached{}, fmt.Errorf("the dump has no local endpoint for it; pin the pod's address to one of the dump's endpoints")
	}
	gw := match.Gateway(false)
	if !gw.IsValid() {
		for _, s := range svc.Network(match.HostComputeNetwork).Subnets() {
			if s.Prefix().Contains(match.Address(false)) {
				gw = s.Gateway()
			}
		}
	}
	c, err := b.windows[w.Node].Attach(object, match.ID, gw)
	return attached{c, match.ID}, err
}
