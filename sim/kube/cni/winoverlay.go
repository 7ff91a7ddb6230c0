package cni

import (
	"fmt"
	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// What flanneld uses on each system where net-conf.json does not say.
const (
	windowsVNI  = 4096
	windowsPort = 4789
	linuxVNI    = 1
	linuxPort   = 8472
)

// overlay is win-overlay, alone or as the delegate of flannel's vxlan.
type overlay struct {
	*base
	network string
	origin  *trace.Origin
	// vni is the Windows nodes' virtual network; linuxVNI and linuxPort are the
	// Linux nodes'.
	vni       uint32
	linuxVNI  uint32
	linuxPort uint16
	// linuxMTU is the MTU of the network below the tunnels of Linux nodes, 0 for that of
	// their NIC.
	linuxMTU  int
	hostRoute bool
	// masq is ipMasq as the plugin is called with it.
	masq      bool
	macPrefix string
	flags     hns.NetworkFlags
}

// winOverlayConf reads what win-overlay reads.
func (r *reader) winOverlayConf(c *Conf, n *yaml.Node) { r.windowsConf(PluginWinOverlay, c, n) }

func newWinOverlay(o Options, b *base) (Plugin, error) {
	v, err := parseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	vni := o.VNI
	if vni == 0 {
		vni = windowsVNI
	}
	if vni < windowsVNI || vni >= 1<<24 {
		return nil, fmt.Errorf("VNI %d: on Windows it must be %d to 16777215", vni, windowsVNI)
	}
	b.release = v
	return &overlay{
		base: b, network: o.Conf.name, origin: o.Conf.origin, vni: vni, linuxVNI: vni, linuxPort: windowsPort,
		hostRoute: o.HostRoute == nil || *o.HostRoute, masq: o.Conf.ipMasq, macPrefix: macPrefix(o.Conf),
	}, nil
}

// macPrefix follows cni.win-overlay-mac.
func macPrefix(c *Conf) string {
	if c.endpointMacPrefix != "" {
		return c.endpointMacPrefix
	}
	return "0E-2A"
}

func (o *overlay) NetworkType() hns.NetworkType { return hns.Overlay }

// Prepare makes the overlay network and a route through the tunnel to every
// other node (flannel pkg/backend/vxlan/device_windows.go and
// vxlan_network_windows.go).
func (o *overlay) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	h, err := o.PrepareLater(c, n, s)
	if err == nil {
		err = h.Peers()
	}
	if err != nil {
		return Host{}, err
	}
	h.Peers = nil
	return h, nil
}

// PrepareLater leaves the routes to the caller.
func (o *overlay) PrepareLater(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	if !s.Build().Has(builds.RemoteSubnet) {
		return Host{}, fmt.Errorf("node %s: platform does not support Remote Subnet policy: %s", n.Name, s.Build())
	}
	prefix, err := podPrefix(n, o.o.Conf)
	if err != nil {
		return Host{}, err
	}
	nw := s.NetworkByName(o.network)
	if nw == nil {
		if nw, err = s.CreateNetwork(o.newNetwork(n, prefix)); err != nil {
			return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, o.network, err)
		}
	}
	if o.hostRoute && s.Build().Has(builds.HostRoute) && len(hns.PoliciesOf(nw.Policies, hns.PolicyHostRoute)) == 0 {
		if err := s.AddNetworkPolicies(nw.ID, hns.NewPolicy(hns.HostRouteSettings{}).From(o.origin)); err != nil {
			return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, o.network, err)
		}
	}
	id := nw.ID
	return Host{Network: id, Peers: func() error {
		if add := o.remoteSubnets(c, n, s.Network(id)); len(add) > 0 {
			if err := s.AddNetworkPolicies(id, add...); err != nil {
				return fmt.Errorf("node %s: network %s: %w", n.Name, o.network, err)
			}
		}
		return nil
	}}, nil
}

func (o *overlay) newNetwork(n *kube.Node, prefix netip.Prefix) hns.Network {
	nw := hns.Network{
		Name: o.network, Type: hns.Overlay, Flags: o.flags, ManagementIP: n.Address, Origin: o.origin,
		Ipams: []hns.Ipam{static(prefix, nth(prefix, 1), hns.NewPolicy(hns.VSIDSettings{IsolationId: o.vni}).From(o.origin))},
	}
	if !n.VtepMAC.IsZero() {
		// HNS chooses it and flannel announces it; here the cluster knows it
		// beforehand, so that all nodes agree.
		nw.Policies = append(nw.Policies, hns.NewPolicy(hns.DrMacAddressSettings{Address: strings.ToUpper(n.VtepMAC.String())}).From(o.origin))
	}
	return nw
}

// remoteSubnets are the routes to other nodes that the network does not have yet
// (cni.flannel-remote-subnets).
func (o *overlay) remoteSubnets(c *kube.Cluster, n *kube.Node, nw *hns.Network) []hns.Policy {
	have := map[string]bool{}
	for v := range hns.EachSettings[hns.RemoteSubnetRouteSettings](nw.Policies) {
		have[v.DestinationPrefix] = true
	}
	var add []hns.Policy
	for _, p := range peers(c, n) {
		vni := o.vni
		if p.node.Windows == nil {
			vni = o.linuxVNI
		}
		if have[p.prefix.String()] || vni < windowsVNI || p.node.VtepMAC.IsZero() { // cni.flannel-small-vni-passed-over
			continue
		}
		add = append(add, hns.NewPolicy(hns.RemoteSubnetRouteSettings{
			// The field has 16 bits in hcsshim, and flannel casts (cni.remote-subnet-vni-16-bit).
			DestinationPrefix: p.prefix.String(), IsolationId: uint16(vni), ProviderAddress: p.node.Address.String(),
			DistributedRouterMacAddress: strings.ToUpper(p.node.VtepMAC.String()),
		}).From(&trace.Origin{What: "route to node " + p.node.Name + " by " + o.origin.What, File: o.origin.File, Line: o.origin.Line}))
	}
	return add
}

// WhyNoIPv6 follows cni.win-bridge-one-address.
func (o *overlay) WhyNoIPv6() (string, *evidence.Fact) {
	return "win-overlay uses only the first address that the IPAM returns, and refuses an IPv6 address (win-overlay doesn't support IPv6 now)",
		factOneAddress
}

func (o *overlay) pool(n *kube.Node) (*pool, error) {
	prefix, err := podPrefix(n, o.o.Conf)
	if err != nil {
		return nil, err
	}
	return o.hostLocal(n, prefix, nth(prefix, 1)), nil
}

func (o *overlay) Lease(_ *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	pl, err := o.pool(n)
	if err != nil {
		return Lease{}, err
	}
	return pl.lease(owner(p), p.Address, nil)
}

func (o *overlay) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := o.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.name, hns.Overlay)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	if conf.apiVersion == 2 && !o.release.atLeast(1, 2, 0) { // cni.win-overlay-v1-only
		return Result{},
			fmt.Errorf(
				"pod %s: failed to find HNSEndpoint %s_%s: win-overlay before release 1.2.0 does not know apiVersion 2, and takes the namespace for that of another container", owner(p), p.Name, conf.name)
	}
	if r, done, err := o.addAgain(n, p, s); done {
		return r, err
	}
	pl, err := o.pool(n)
	if err != nil {
		return Result{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, o.release)
	if conf.apiVersion == 2 { // cni.win-overlay-policy-order
		ps.loopback(s.Build(), l.Prefix.Addr())
	}
	ps.provider(nw.ManagementIP)
	if o.masq && len(nw.Subnets()) > 0 {
		ps.masquerade(nw.Subnets()[0].Prefix(), "ipMasq")
	}
	ps.loopback(s.Build(), l.Prefix.Addr())
	// No hostPorts: cni.win-overlay-no-host-port.
	b := l.Prefix.Addr().As4()
	mac := fmt.Sprintf("%s-%02X-%02X-%02X-%02X", o.macPrefix, b[0], b[1], b[2], b[3])
	r, err := o.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: mac, policies: ps.all, lease: l})
	if err != nil {
		pl.release(owner(p))
	}
	return r, err
}

func (o *overlay) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	l := linuxBridge(c, n)
	v := &LinuxVXLAN{VNI: o.linuxVNI, Port: o.linuxPort, Local: n.Address, MAC: n.VtepMAC, Underlay: o.linuxMTU}
	if l.Bridge.IsValid() {
		v.Address = netip.PrefixFrom(l.Bridge.Masked().Addr(), 32)
	}
	for _, p := range peers(c, n) {
		v.Peers = append(v.Peers, VXLANPeer{Prefix: p.prefix, PA: p.node.Address, MAC: p.node.VtepMAC})
	}
	l.VXLAN = v
	return l
}
