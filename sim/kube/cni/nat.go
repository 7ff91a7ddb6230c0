package cni

import (
	"fmt"
	"net/netip"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// nat is the plugin nat of microsoft/windows-container-networking: containers
// behind the node's WinNAT. It has no part in a cluster's pod network; labs use
// it to show what does not work.
type nat struct{ *base }

// natConf reads what nat reads.
func (r *reader) natConf(c *Conf, n *yaml.Node) { r.windowsConf(PluginNAT, c, n) }

func newNAT(o Options, b *base) (Plugin, error) {
	if s := o.Conf.ipam.subnet; !s.IsValid() || !s.Addr().Is4() || s.Bits() > 28 {
		return nil, fmt.Errorf("%s: ipam.subnet is %q; nat needs an IPv4 prefix of at most /28 there", o.Conf.file, s)
	}
	return &nat{b}, nil
}

func (t *nat) NetworkType() hns.NetworkType { return hns.NAT }

// prefix follows cni.nat-prefix.
func (t *nat) prefix(c *kube.Cluster, n *kube.Node) netip.Prefix {
	p := t.o.Conf.ipam.subnet
	if p.Bits() > 22 {
		return p
	}
	b := p.Addr().As4()
	for i, other := range c.Nodes {
		if other.Name == n.Name {
			i++
			b[2] += byte(i % (1 << (24 - max(p.Bits(), 16))))
		}
	}
	return netip.PrefixFrom(netip.AddrFrom4(b), 24)
}

// gateway is the node's own address on the internal switch.
func (t *nat) gateway(prefix netip.Prefix) netip.Addr {
	if g := t.o.Conf.ipam.gateway; prefix.Contains(g) {
		return g
	}
	return nth(prefix, 1)
}

func (t *nat) Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	name := t.o.Conf.name
	if nw := s.NetworkByName(name); nw != nil {
		return Host{Network: nw.ID}, nil
	}
	prefix := t.prefix(c, n)
	nw, err := s.CreateNetwork(hns.Network{
		Name: name, Type: hns.NAT, Ipams: []hns.Ipam{static(prefix, t.gateway(prefix))}, Origin: t.o.Conf.origin,
	})
	if err != nil {
		return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, name, err)
	}
	return Host{Network: nw.ID}, nil
}

func (t *nat) pool(c *kube.Cluster, n *kube.Node) (*pool, error) {
	if n.Windows == nil {
		prefix, err := podPrefix(n, t.o.Conf)
		if err != nil {
			return nil, err
		}
		return t.hostLocal(n, prefix, nth(prefix, 1)), nil
	}
	prefix := t.prefix(c, n)
	p := t.hostLocal(n, prefix, t.gateway(prefix))
	p.reserve("the gateway", t.gateway(prefix))
	return p, nil
}

// WhyNoIPv6 follows cni.win-bridge-one-address.
func (t *nat) WhyNoIPv6() (string, *evidence.Fact) {
	return "the nat plugin asks HNS only for an IPv4 address", factNATOneAddress
}

func (t *nat) Lease(c *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	pl, err := t.pool(c, n)
	if err != nil {
		return Lease{}, err
	}
	return pl.lease(owner(p), p.Address, nil)
}

func (t *nat) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := t.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.name, hns.NAT)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	pl, err := t.pool(c, n)
	if err != nil {
		return Result{}, err
	}
	l, err := pl.lease(owner(p), p.Address, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, version{})
	ps.ports(p, 0, true)
	r, err := t.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: hostMAC(l.Prefix.Addr()), policies: ps.all,
		lease: l})
	if err != nil {
		pl.release(owner(p))
	}
	return r, err
}

func (t *nat) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup { return linuxBridge(c, n) }
