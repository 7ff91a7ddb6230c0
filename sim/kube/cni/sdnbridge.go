package cni

import (
	"net/netip"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// sdnBridge is sdnbridge, Microsoft's plugin for l2bridge networks
// (microsoft/windows-container-networking). With enableDualStack it gives pods an
// address of each family.
type sdnBridge struct{ *bridge }

// sdnFlags are the optionalFlags of sdnbridge.
type sdnFlags struct {
	dualStack, localRouted, allowACL, loopbackDSR bool
}

// sdnBridgeConf reads what sdnbridge reads (cni/cni.go NetworkConfig). It writes
// policies in the form of HCN v2.
func (r *reader) sdnBridgeConf(c *Conf, n *yaml.Node) {
	r.fields(string(PluginSDNBridge), string(PluginSDNBridge), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	if f := r.get(n, "optionalFlags"); f != nil && r.object("optionalFlags", f.val) {
		r.fields("optionalFlags", "sdnbridge.optionalFlags", f.val)
		c.sdn = sdnFlags{
			dualStack: isTrue(r.flag(f.val, "enableDualStack")), localRouted: isTrue(r.flag(f.val, "localRoutedPortMapping")),
			allowACL: isTrue(r.flag(f.val, "allowAclPortMapping")), loopbackDSR: isTrue(r.flag(f.val, "loopbackDSR")),
		}
		r.flag(f.val, "forceBridgeGateway")
		r.flag(f.val, "gatewayFromAdditionalRoutes")
	}
	r.dns(c, n)
	r.ipam(c, n, PluginSDNBridge, "host-local")
	if !c.sdn.dualStack {
		r.handedOn(r.get(n, "ipam"))
	}
	if f := r.get(n, "AdditionalArgs"); f != nil {
		r.policies(c, f, 2)
	}
}

// handedOn follows cni.sdnbridge-ipam.
func (r *reader) handedOn(ipam *field) {
	if ipam == nil || ipam.val.Kind != yaml.MappingNode {
		return
	}
	if f := r.get(ipam.val, "ranges"); f != nil && !isNull(f.val) && r.text(ipam.val, "subnet") == "" {
		r.errorf(f.key,
			"sdnbridge does not pass ranges to the IPAM program, which fails with \"no IP ranges specified\"; write the range as subnet, or set enableDualStack among optionalFlags")
	}
}

func newSDNBridge(o Options, b *base) (Plugin, error) {
	if _, err := parseVersion(o.Version); err != nil {
		return nil, err
	}
	return &sdnBridge{&bridge{base: b, hostEndpoint: "cbr0", network: o.Conf.name, origin: o.Conf.origin, dual: o.Conf.sdn.dualStack}}, nil
}

// WhyNoIPv6 follows cni.sdnbridge-dual-stack.
func (b *sdnBridge) WhyNoIPv6() (string, *evidence.Fact) {
	if !b.dual {
		return "the configuration of sdnbridge does not have enableDualStack among its optionalFlags", factSDNBridge
	}
	return "", nil
}

func (b *sdnBridge) lease(n *kube.Node, p *kube.Pod, taken func(netip.Addr) bool) (Lease, error) {
	pl, err := b.pool(n)
	if err != nil {
		return Lease{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken)
	if err != nil || !b.dual {
		return l, err
	}
	gateway := 2 // cni.sdnbridge-gateway
	if n.Windows == nil {
		gateway = 1
	}
	return b.lease6(l, n, p, gateway, taken)
}

func (b *sdnBridge) Lease(_ *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	return b.lease(n, p, nil)
}

func (b *sdnBridge) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := b.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.name, hns.L2Bridge)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	l, err := b.lease(n, p, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, version{})
	b.hostPorts(ps, p)
	if conf.sdn.loopbackDSR && s.Build().Has(builds.DSR) {
		ps.add(hns.OutBoundNATSettings{Destinations: []string{l.Prefix.Addr().String()}}, "loopbackDSR")
	}
	r, err := b.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: hostMAC(l.Prefix.Addr()), policies: ps.all,
		lease: l})
	if err != nil {
		b.release4and6(n, p)
	}
	return r, err
}

// hostPorts follows cni.sdnbridge-host-port.
func (b *sdnBridge) hostPorts(ps *policySet, p *kube.Pod) {
	var flags hns.NatFlags
	if ps.conf.sdn.localRouted {
		flags = hns.NatFlagLocalRoutedVIP
	}
	ps.ports(p, flags, true)
	if b.dual {
		ps.ports6(p, flags|hns.NatFlagIPv6, func(kube.HostPort) bool { return true })
	}
	if !ps.conf.sdn.allowACL || !ps.conf.Capabilities["portMappings"] {
		return
	}
	for _, hp := range p.HostPorts {
		if hp.Proto == packet.TCP || hp.Proto == packet.UDP {
			ps.allowIn(hp)
		}
	}
}

// Linux is the node with cni0, which has addresses of both families where pods have.
func (b *sdnBridge) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	l := b.bridge.Linux(c, n)
	if six := podPrefix6(n); b.dual && six.IsValid() {
		l.Bridge6 = netip.PrefixFrom(nth(six, 1), six.Bits())
		for _, p := range c.ClusterCIDRs {
			if p.Addr().Is6() {
				l.MasqueradeNot = append(l.MasqueradeNot, p)
			}
		}
	}
	return l
}
