package cni

import (
	"fmt"
	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Calico for Windows: one plugin with two networks, an overlay whose tunnels Felix makes,
// and l2bridge whose routes come by BGP (projectcalico/calico).

// calicoFields are the fields of calico.
type calicoFields struct {
	vni uint32
	// single: the network has the configuration's name; otherwise the block's address is in
	// it.
	single bool
	// noDefaultDeny: a new endpoint lets in what comes before Felix has its rules there.
	noDefaultDeny bool
}

// The modes of calico on Windows that make a network.
const (
	calicoVXLAN = "vxlan"
	calicoBGP   = "windows-bgp"
)

// calicoConf reads what calico reads (cni-plugin/pkg/types/types.go NetConf).
func (r *reader) calicoConf(c *Conf, n *yaml.Node) {
	r.fields(string(PluginCalico), string(PluginCalico), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	c.mode = r.text(n, "mode")
	c.endpointMacPrefix = r.text(n, "vxlan_mac_prefix")
	if p := c.endpointMacPrefix; p != "" && (len(p) != 5 || p[2] != '-' || !isHex(p[:2]) || !isHex(p[3:])) {
		r.errorf(r.get(n, "vxlan_mac_prefix").val, "endpointMacPrefix [%s] is invalid, value must be of the format xx-xx", p)
	}
	c.calico.vni = windowsVNI
	if v, ok := r.number(n, "vxlan_vni", 1<<24-1); ok && v != 0 {
		c.calico.vni = uint32(v)
		if v < windowsVNI {
			r.errorf(r.get(n, "vxlan_vni").val, "Windows does not support VXLANVNI < %d; it is %d", windowsVNI, v)
		}
	}
	c.calico.single = isTrue(r.flag(n, "windows_use_single_network"))
	c.calico.noDefaultDeny = isTrue(r.flag(n, "windows_disable_default_deny_all_policy"))
	c.loopbackDSR = isTrue(r.flag(n, "windows_loopback_DSR"))
	r.dns(c, n)
	if f := r.get(n, "ipam"); f != nil && !isNull(f.val) && r.object("ipam", f.val) {
		r.fields("ipam", string(PluginCalico)+".ipam", f.val)
	}
	if f := r.get(n, "policies"); f != nil {
		// It reads policies in the form of v1 and writes them in both (cni.calico-nat).
		r.policies(c, f, 1)
	}
}

// newCalico returns the model of the network that the mode asks for.
func newCalico(o Options, b *base) (Plugin, error) {
	if _, err := parseVersion(o.Version); err != nil {
		return nil, err
	}
	switch c := o.Conf; c.mode {
	case calicoVXLAN:
		return &calicoOverlay{&overlay{
			base: b, network: c.name, origin: c.origin, vni: c.calico.vni, linuxVNI: c.calico.vni, linuxPort: windowsPort,
			hostRoute: true, macPrefix: macPrefix(c),
		}}, nil
	case calicoBGP:
		return &calicoBridge{&bridge{base: b, network: c.name, hostEndpoint: c.name + "_ep", origin: c.origin, peerRoutes: true}}, nil
	default:
		return nil,
			fmt.Errorf(
				"%s: mode is %q; winlab models vxlan and windows-bgp, the networks that Calico makes on Windows. Beside another plugin Calico has no configuration file: name that plugin, and write policyAgent: calico", c.file, c.mode)
	}
}

// calicoNetworkName is the name of a node's HNS network (cni.calico-network).
func (c *Conf) calicoNetworkName(n *kube.Node) string {
	p := podPrefix4(n)
	if c.calico.single || !p.IsValid() {
		return c.name
	}
	return c.name + "-" + strings.ReplaceAll(p.Addr().String(), ".", "-")
}

func podPrefix4(n *kube.Node) netip.Prefix {
	for _, p := range n.PodCIDRs {
		if p.Addr().Is4() {
			return p.Masked()
		}
	}
	return netip.Prefix{}
}

// calicoPolicies are the policies of an endpoint: those configured, with the pools among
// the exceptions (cni.calico-nat).
func calicoPolicies(conf *Conf, c *kube.Cluster) *policySet {
	ps := newPolicySet(conf, version{})
	var pools []string
	for _, p := range c.ClusterCIDRs {
		if p.Addr().Is4() {
			pools = append(pools, p.Masked().String())
		}
	}
	found := false
	for i, p := range ps.all {
		v, ok := hns.SettingsOf[hns.OutBoundNATSettings](p)
		if !ok {
			continue
		}
		found = true
		v.Exceptions = append(append([]string{}, v.Exceptions...), pools...)
		ps.all[i] = hns.NewPolicy(v).From(p.Origin)
	}
	if !found && len(pools) > 0 {
		ps.add(hns.OutBoundNATSettings{Exceptions: pools}, "IP pools")
	}
	return ps
}

// loopback follows cni.calico-loopback-dsr.
func (ps *policySet) calicoLoopback(pod netip.Addr) {
	if ps.conf.loopbackDSR {
		ps.add(hns.OutBoundNATSettings{Destinations: []string{pod.String()}}, "windows_loopback_DSR")
	}
}

// calicoAdd makes a pod's endpoint and blocks what comes in until Felix has its rules
// there (cni.calico-default-deny).
func (b *base) calicoAdd(c *kube.Cluster, n *kube.Node, conf *Conf, p *kube.Pod, s *hns.Service, e newEndpoint) (Result, error) {
	r, err := b.add(c, n, conf, p, s, e)
	if err != nil {
		b.release4and6(n, p)
		return r, err
	}
	if conf.calico.noDefaultDeny {
		return r, nil
	}
	deny := hns.NewPolicy(hns.ACLSettings{RuleType: hns.ACLRuleSwitch, Action: hns.ACLBlock, Direction: hns.ACLIn, Protocols: anyProtocol,
		Priority: 65500}).From(conf.origin)
	return r, wrap(p, s.UpdateEndpointPolicies(r.EndpointID, deny))
}

// anyProtocol is how agents write that a rule is for all protocols.
const anyProtocol = "256"

// calicoOverlay is calico with mode vxlan.
type calicoOverlay struct{ *overlay }

// Prepare makes the network as the plugin does at its first ADD, and the tunnels as Felix
// does (cni.calico-vxlan).
func (o *calicoOverlay) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	on := *o.overlay
	on.network = o.o.Conf.calicoNetworkName(n)
	h, err := on.Prepare(c, n, s)
	if err != nil {
		return h, err
	}
	name := on.network + "_ep"
	if s.EndpointByName(name) != nil {
		return h, nil
	}
	prefix, err := podPrefix(n, o.o.Conf)
	if err != nil {
		return h, err
	}
	_, err = s.CreateEndpoint(hns.Endpoint{
		Name: name, HostComputeNetwork: h.Network, MacAddress: s.HostMAC(), Flags: hns.EndpointRemote, Origin: o.origin,
		IpConfigurations: []hns.IpConfig{{IpAddress: nth(prefix, 2).String(), PrefixLength: uint8(prefix.Bits())}},
		Policies:         []hns.Policy{hns.NewPolicy(hns.ProviderAddressSettings{ProviderAddress: n.Address.String()}).From(o.origin)},
	})
	if err != nil {
		return h, fmt.Errorf("node %s: endpoint %s: %w", n.Name, name, err)
	}
	return h, nil
}

func (o *calicoOverlay) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := o.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.calicoNetworkName(n), hns.Overlay)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	pl, err := o.pool(n)
	if err != nil {
		return Result{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := calicoPolicies(conf, c)
	ps.add(hns.ProviderAddressSettings{ProviderAddress: nw.ManagementIP.String()}, "mode vxlan")
	ps.calicoLoopback(l.Prefix.Addr())
	a := l.Prefix.Addr().As4()
	mac := fmt.Sprintf("%s-%02X-%02X-%02X-%02X", o.macPrefix, a[0], a[1], a[2], a[3])
	return o.calicoAdd(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: mac, policies: ps.all, lease: l})
}

// WhyNoIPv6 follows cni.calico-ipv4.
func (o *calicoOverlay) WhyNoIPv6() (string, *evidence.Fact) { return calicoIPv4, factCalicoIPv4 }

const calicoIPv4 = "on Windows Calico uses the first address that the IPAM returns, and its policies are for IPv4"

// calicoBridge is calico with mode windows-bgp.
type calicoBridge struct{ *bridge }

// Prepare makes the network, puts the node's own endpoint into it, and adds the routes that
// come by BGP (cni.calico-bgp).
func (b *calicoBridge) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	on := *b.bridge
	on.network = b.o.Conf.calicoNetworkName(n)
	on.hostEndpoint = on.network + "_ep"
	return on.Prepare(c, n, s)
}

func (b *calicoBridge) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := b.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.calicoNetworkName(n), hns.L2Bridge)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	pl, err := b.pool(n)
	if err != nil {
		return Result{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := calicoPolicies(conf, c)
	ps.add(hns.SDNRouteSettings{DestinationPrefix: nw.ManagementIP.String() + "/32", NeedEncap: true}, "the node's address")
	ps.calicoLoopback(l.Prefix.Addr())
	return b.calicoAdd(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: hostMAC(l.Prefix.Addr()), policies: ps.all,
		lease: l})
}

// WhyNoIPv6 follows cni.calico-ipv4.
func (b *calicoBridge) WhyNoIPv6() (string, *evidence.Fact) { return calicoIPv4, factCalicoIPv4 }

var factCalicoIPv4 = evidence.New("cni.calico-ipv4", evidence.Code,
	"On Windows Calico's plugin uses the first address that the IPAM returns, and Felix makes rules only for IPv4.",
	"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go DoNetworking",
	"projectcalico/calico felix/dataplane/windows/policysets/policyset_defs.go")

// What this package holds true about Calico's plugin, by the commit 87c1590 of
// projectcalico/calico (3.34 in the making).
var (
	_ = evidence.New("cni.calico-network", evidence.Code,
		"Calico's plugin creates the HNS network at its first ADD. It is named like the configuration with windows_use_single_network, else with the first address of the node's block (Calico-10-244-1-0).",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go DoNetworking",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go CreateNetworkName")
	_ = evidence.New("cni.calico-external", evidence.Inferred,
		"The network External, which Calico's start script creates so that a switch exists before the first pod, has no pods and is left out.",
		"projectcalico/calico node/windows-packaging/CalicoWindows/node/node-service.ps1")
	_ = evidence.New("cni.calico-blocks", evidence.Inferred,
		"The node's address block is its podCIDR. There is one pool, the cluster's prefix, with natOutgoing.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go lookupIPAMPools")
	_ = evidence.New("cni.calico-vxlan", evidence.Code,
		"With mode vxlan the network is an overlay with the policy HostRoute and a remote endpoint for the third address of the block at the node itself; Felix adds a RemoteSubnetRoute for each block of another node, all with one VNI.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go SetupVxlanNetwork",
		"projectcalico/calico felix/dataplane/windows/vxlan_mgr.go CompleteDeferredWork")
	_ = evidence.New("cni.calico-bgp", evidence.Code,
		"With mode windows-bgp the network is l2bridge; an endpoint with the third address of the block is attached to the node, which forwards. The node's BGP service has a route to each other node's block.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go SetupL2bridgeNetwork",
		"projectcalico/calico confd/windows-packaging/templates/peerings.ps1.template")
	_ = evidence.New("cni.calico-nat", evidence.Code,
		"An endpoint has the configured policies, with the CIDRs of all IP pools added to the ExceptionList of each OutBoundNAT policy, then ProviderAddress (vxlan) or an SDNRoute with NeedEncap to the node's address (windows-bgp).",
		"projectcalico/calico cni-plugin/internal/pkg/utils/winpol/windows_policy.go CalculateEndpointPolicies",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go createAndAttachContainerEP")
	_ = evidence.New("cni.calico-loopback-dsr", evidence.Code,
		"windows_loopback_DSR adds an OutBoundNAT policy whose only destination is the pod itself, whatever the build.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go createAndAttachContainerEP")
	_ = evidence.New("cni.calico-default-deny", evidence.Code,
		"After ADD an endpoint has one ACL, with priority 65500, which blocks everything inbound, unless windows_disable_default_deny_all_policy is set.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go DoNetworking")
	_ = evidence.New("cni.calico-no-host-port", evidence.Code,
		"Calico's plugin ignores hostPorts on Windows.",
		"projectcalico/calico cni-plugin/pkg/dataplane/windows/dataplane_windows.go createAndAttachContainerEP")
	_ = evidence.New("cni.calico-linux-node", evidence.Inferred,
		"A Linux node is modelled with a bridge for its pods; Calico has a routed interface for each pod, which forwards packets in the same way.")
)
