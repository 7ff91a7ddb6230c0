package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// nodes builds the machines of the cluster.
func (b *builder) nodes(context.Context) error {
	for i, p := range b.Plan.Nodes {
		n := &Node{Node: b.Kube.Nodes[i], Plan: p}
		var err error
		switch {
		case b.ovs != nil:
			err = b.ovsNode(n)
		case b.antrea != nil && p.Dump == nil:
			err = b.antreaNode(n)
		case p.Windows():
			err = b.windowsNode(n)
		default:
			err = b.linuxNode(n)
		}
		if err != nil {
			return err
		}
		if err := b.finish(n); err != nil {
			return err
		}
		b.Nodes = append(b.Nodes, n)
		b.add(&Machine{Machine: n.machine, Ref: Ref{NodeKind, n.Name}, Address: n.Address, Node: n})
	}
	return nil
}

// finish adds routes and programs that every node has. A dump that shows routes
// shows all of them.
func (b *builder) finish(n *Node) error {
	st := n.machine.Stack()
	shown := n.Plan.Dump != nil && n.HNS != nil && b.dumpRoutes(n)
	if n.Plan.Dump != nil && n.HNS != nil && len(n.Plan.Routes) == 0 && (!shown || n.Plan.Dump.OnlyGateways) {
		st.RoutesUnknown = "the dump of " + n.Name +
			" does not show the node's routes, and there may be routes to other nodes' pods; add the output of: route print, or list the routes under routes of the node"
	}
	if n.Plan.RoutesUnknown != "" {
		st.RoutesUnknown = n.Plan.RoutesUnknown
	}
	if shown {
		// the table has a default route or none
	} else if n.Gateway.IsValid() {
		if err := st.AddRoute(host.Route{To: host.Everywhere(netip.IPv4Unspecified()), Via: n.Gateway}); err != nil {
			return err
		}
	}
	if n.Gateway6.IsValid() {
		if err := st.AddRoute(host.Route{To: host.Everywhere(n.Gateway6), Via: n.Gateway6}); err != nil {
			return err
		}
	}
	for _, r := range n.Plan.Routes {
		if err := st.AddRoute(host.Route{To: r.To, Via: r.Via, Origin: r.Origin}); err != nil {
			return err
		}
	}
	st.Listen(&host.Listener{Name: "kubelet", Proto: packet.TCP, Port: KubeletPort})
	for _, l := range n.Plan.Listen {
		st.Listen(&host.Listener{Name: "a program of the node", Proto: l.Proto, Port: l.Port})
	}
	return nil
}

// KubeletPort is where every kubelet listens.
const KubeletPort = 10250

// hostAddresses are a node's own addresses with the prefixes of its network.
func hostAddresses(k *kube.Node) []netip.Prefix {
	all := []netip.Prefix{netip.PrefixFrom(k.Address, k.Subnet.Bits())}
	if k.Address6.IsValid() {
		all = append(all, netip.PrefixFrom(k.Address6, k.Subnet6.Bits()))
	}
	return all
}

// ownAddresses are a node's own addresses, each as a prefix.
func ownAddresses(k *kube.Node) []netip.Prefix {
	all := hostAddresses(k)
	for i, p := range all {
		all[i] = netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
	}
	return all
}

func (b *builder) ovsNode(n *Node) error {
	x, err := b.ovs.AddNode(b.chassis(n), b.Segment(n.Plan.Segment))
	if err != nil {
		return err
	}
	n.machine = x
	n.attach = func(p *pod) (attached, error) {
		c, err := x.Attach(p.object(), p.Namespace+"_"+p.Name, p.Address)
		return attached{Compartment: c}, err
	}
	return nil
}

// chassis describes a node with Open vSwitch.
func (b *builder) chassis(n *Node) ovs.NodeOptions {
	o := ovs.NodeOptions{Name: n.Name, Windows: n.Plan.Windows(), NIC: "Ethernet", MAC: n.MAC, Address: n.Address, Subnet: n.Subnet,
		Gateway: n.Gateway}
	if len(n.PodCIDRs) > 0 {
		o.Compartments = n.PodCIDRs[0]
	}
	return o
}

// newHNS is the HNS of a Windows node.
func (b *builder) newHNS(n *Node) *hns.Service {
	p := b.Plan
	return hns.NewService(n.Windows, hns.Options{Node: n.Name, ManagementIP: n.Address, ManagementIP6: n.Address6, HostMAC: n.MAC.String(),
		Seed:           p.File.Lab.Metadata.Name,
		PortRangeFirst: n.Plan.PortFirst, PortRangeLast: n.Plan.PortLast, SharePortPools: p.Params.SharePortPools, Pinned: p.Params.Pinned,
		ExcludedPorts: append(excluded(n.Plan.Excluded), dumpExcluded(n.Plan.Dump)...)})
}

func (b *builder) windowsNode(n *Node) error {
	p := b.Plan
	n.HNS = b.newHNS(n)
	n.HNS.OnChange(func(hns.Change) { b.changes() })
	w := node.NewWindows(n.Name, n.HNS, node.Options{KeepLoopback: p.Params.KeepLoopback, Broken: n.broken(), Dumped: n.Plan.Dump != nil})
	n.windows, n.machine = w, w
	w.AddAdapter("Ethernet", n.MAC, b.Segment(n.Plan.Segment), hostAddresses(n.Node)...)
	switch {
	case p.Network.Design == plan.RRAS:
		n.attach = n.attachTransparent
		return b.rrasWindows(n)
	case n.Plan.Dump != nil:
		n.attach = n.attachFromDump
		return b.loadDump(n)
	}
	n.attach = func(p *pod) (attached, error) { return b.attachByCNI(n, p) }
	return nil
}

// prepare lets the plugin's agent set up the Windows nodes, after all nodes: the
// agent on each knows all peers.
func (b *builder) prepare(context.Context) error {
	for _, n := range b.Nodes {
		if n.antrea != nil && n.HNS != nil {
			b.antreaPrepared(n)
		}
		if b.plugin == nil || n.windows == nil || n.Plan.Dump != nil {
			continue
		}
		n.later = b.canWait(n)
		if err := b.prepareNode(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// prepareNode lets the plugin's agent set up one Windows node. When it cannot, the node
// has no network for pods.

func (b *builder) prepareNode(n *Node) error {
	prepare := b.plugin.Prepare
	if d, ok := b.plugin.(cni.Deferring); ok && n.later {
		prepare = d.PrepareLater
	}
	h, err := prepare(b.Kube, n.Node, n.HNS)
	n.unprepared = ""
	if err != nil {
		b.unprepared(n, err)
		return nil
	}
	n.windows.Refresh()
	st := n.windows.Stack()
	st.Forwarding = st.Forwarding || h.Forwarding
	for _, id := range h.HostEndpoints {
		if err := n.windows.AttachHost(id); err != nil {
			return err
		}
	}
	for _, p := range h.Links {
		st.AppendRoutes(host.Route{To: p, Link: st.Links[0], Origin: &trace.Origin{What: "route of " + b.Plan.Network.Name}})
	}
	peers := b.peers(n, h)
	if peers == nil {
		return nil
	}
	if n.later {
		n.peers = peers
		return nil
	}
	return peers()
}

// peers tells a node the ways to the others, nil where there is nothing to tell.
func (b *builder) peers(n *Node, h cni.Host) func() error {
	if h.Routes == nil && h.Peers == nil {
		return nil
	}
	st := n.windows.Stack()
	before := st.Unowned()
	return func() error {
		if h.Peers != nil {
			if err := h.Peers(); err != nil {
				return err
			}
		}
		if h.Routes == nil {
			return nil
		}
		all := h.Routes()
		routes := make([]host.Route, len(all))
		for i, r := range all {
			// The agent names the interface itself, so Windows takes a next hop
			// that is on no network of the node (flannel-io/flannel
			// pkg/backend/route_network_windows.go).
			routes[i] = host.Route{To: r.To, Via: r.Via, Origin: r.Origin, Link: cmp.Or(st.LinkTo(r.Via), st.Links[0])}
		}
		st.InsertRoutes(before, routes)
		return nil
	}
}

func (b *builder) linuxNode(n *Node) error {
	l := machine.NewLinux(n.Name, n.Name)
	n.linux, n.machine = l, l
	st := l.Stack()
	st.NAT = host.NewNetfilter()
	st.ReversePathOpen = true
	eth := l.AddAdapter("eth0", n.MAC, b.Segment(n.Plan.Segment), hostAddresses(n.Node)...)
	eth.MTU = cmp.Or(n.Plan.MTU, host.EthernetMTU)
	if b.Plan.Network.Design == plan.RRAS {
		n.attach = n.attachToBridge
		return b.rrasLinux(n)
	}
	set := b.plugin.Linux(b.Kube, n.Node)
	n.attach = func(p *pod) (attached, error) { return b.attachByLease(n, p) }
	if bridge := b.Plan.Network.Bridge; bridge.IsValid() {
		set = cni.LinuxSetup{Forwarding: true, Bridge: bridge, MasqueradeNot: []netip.Prefix{bridge.Masked()}}
		n.attach = func(p *pod) (attached, error) { return b.attachToDocker(n, p, bridge) }
	}
	b.setUpLinux(n, set)
	if len(set.MasqueradeNot) > 0 {
		src := slices.Clone(n.PodCIDRs)
		if set.PodsInNodeSubnet {
			src = nil
		}
		st.NAT.Rules = append(st.NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "POSTROUTING/IP-MASQ", Src: src,
			NotSrc: ownAddresses(n.Node),
			NotDst: set.MasqueradeNot, OutLink: eth, Masquerade: true, Origin: &trace.Origin{What: "ip-masq of " + b.Plan.Network.Name}})
	}
	return nil
}

// setUpLinux does what the plugin does on a Linux node.
func (b *builder) setUpLinux(n *Node, set cni.LinuxSetup) {
	st := n.linux.Stack()
	st.Forwarding = set.Forwarding
	if set.Bridge.IsValid() || set.PodsInNodeSubnet {
		n.linux.AddBridge("cni0", set.Bridge, valid(set.Bridge6)...)
	}
	for _, r := range set.Routes {
		if err := st.AddRoute(host.Route{To: r.To, Via: r.Via, Origin: r.Origin}); err != nil {
			// Linux refuses such a route, and flannel goes on without it
			// (flannel-io/flannel pkg/backend/route_network.go).
			b.Log = append(b.Log, fmt.Sprintf("node %s: %v", n.Name, err))
		}
	}
	if v := set.VXLAN; v != nil {
		vt := &host.VTEP{Kind: packet.VXLAN, VNI: v.VNI, Port: v.Port, Local: v.Local,
			Link: &host.Link{Name: "flannel.1", MAC: v.MAC, Addrs: []netip.Prefix{v.Address}}}
		if n.Plan.VXLANPort != 0 {
			vt.Port = n.Plan.VXLANPort
		}
		vt.Link.MTU = cmp.Or(v.Underlay, st.Links[0].MTU) - host.VXLANOverhead
		n.tunnelMTU = vt.Link.MTU
		vt.SpoilsChecksums = n.Plan.BrokenTunnelChecksums
		for _, p := range v.Peers {
			vt.Peers = append(vt.Peers, host.Peer{Prefix: p.Prefix, Addr: p.PA, MAC: p.MAC})
		}
		st.AddVTEP(vt)
	}
}
