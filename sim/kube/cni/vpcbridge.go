package cni

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// vpcBridge is vpc-bridge, Amazon's plugin for the Windows nodes of EKS
// (aws/amazon-vpc-cni-plugins): pods have addresses of the node's network interface in
// the VPC (ENI).
type vpcBridge struct{ inSubnet }

// vpcConf are the fields of vpc-bridge.
type vpcConf struct {
	// mac is that of the ENI, without separators, as the network's name has it; empty
	// when the file names the adapter instead.
	mac string
	// address is the ENI's first address with its prefix length.
	address netip.Prefix
	gateway netip.Addr
	// cidrs are the ranges of the VPC as the file has them, nil when it does not have any.
	cidrs       []netip.Prefix
	serviceCIDR string
}

// vpcBridgeConf reads what vpc-bridge reads (plugins/vpc-bridge/config/netconfig.go).
func (r *reader) vpcBridgeConf(c *Conf, n *yaml.Node) {
	r.fields(string(PluginVPCBridge), string(PluginVPCBridge), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	r.dns(c, n)
	name, mac := r.text(n, "eniName"), r.text(n, "eniMACAddress")
	if name == "" && mac == "" {
		r.errorf(n, "missing required parameter ENIName or ENIMACAddress")
	}
	if mac != "" {
		hw, err := net.ParseMAC(mac)
		if err != nil {
			r.errorf(r.get(n, "eniMACAddress").val, "invalid ENIMACAddress %s", mac)
		}
		c.vpc.mac = strings.ReplaceAll(hw.String(), ":", "")
	}
	for _, s := range r.texts(n, "eniIPAddresses") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			r.errorf(r.get(n, "eniIPAddresses").val,
				"invalid ENIIPAddress %s; write it with the prefix length of its subnet, such as 10.0.1.20/24", s)
		} else if !c.vpc.address.IsValid() {
			c.vpc.address = p
		}
	}
	for _, s := range r.texts(n, "vpcCIDRs") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			r.errorf(r.get(n, "vpcCIDRs").val, "invalid VPCCIDR %s", s)
			continue
		}
		c.vpc.cidrs = append(c.vpc.cidrs, p.Masked())
	}
	if s := r.text(n, "gatewayIPAddress"); s != "" {
		a, err := netip.ParseAddr(s)
		if err != nil {
			r.errorf(r.get(n, "gatewayIPAddress").val, "invalid GatewayIPAddress %s", s)
		}
		c.vpc.gateway = a
	}
	c.vpc.serviceCIDR = r.text(n, "serviceCIDR")
	if f := r.get(n, "serviceCIDR"); c.vpc.serviceCIDR != "" {
		if _, err := netip.ParsePrefix(c.vpc.serviceCIDR); err != nil {
			r.errorf(f.val, "serviceCIDR is %q, which is not a prefix such as 10.100.0.0/16; the plugin passes it to HNS unchanged",
				c.vpc.serviceCIDR)
		}
	}
	for name, want := range map[string][]string{"bridgeType": {"L2", "L3"}, "interfaceType": {"veth", "tap"}} {
		if s := r.text(n, name); s != "" && !slices.Contains(want, s) {
			r.errorf(r.get(n, name).val, "invalid %s %s; it must be %s", name, s, strings.Join(want, " or "))
		}
	}
}

func newVPCBridge(o Options, b *base) (Plugin, error) {
	if _, err := parseVersion(o.Version); err != nil {
		return nil, err
	}
	v := o.Conf.vpc
	if !v.address.IsValid() {
		return nil,
			fmt.Errorf(
				"%s: eniIPAddresses is missing; on Windows the plugin derives the network's subnet and the pods' exceptions from the first address",
				o.Conf.file)
	}
	if !v.address.Addr().Is4() {
		return nil, fmt.Errorf("%s: eniIPAddresses begins with %s; on Windows the plugin supports only IPv4", o.Conf.file, v.address)
	}
	return &vpcBridge{inSubnet{b}}, nil
}

func (v *vpcBridge) NetworkType() hns.NetworkType { return hns.L2Bridge }

// WhyNoIPv6 follows cni.vpc-bridge-one-address.
func (v *vpcBridge) WhyNoIPv6() (string, *evidence.Fact) {
	return "on Windows vpc-bridge accepts a single IPv4 address for a pod", factVPCOneAddress
}

// network is the name of the HNS network (cni.vpc-bridge-network).
func (c *Conf) vpcNetwork() string { return c.name + "br" + c.vpc.mac }

// Prepare makes the network as the node's bootstrap does, and the plugin itself at its first
// ADD where it is not there (cni.vpc-bridge-network).
func (v *vpcBridge) Prepare(_ *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	if err := v.check(n); err != nil {
		return Host{}, err
	}
	conf, err := v.o.Conf.forNode(n)
	if err != nil {
		return Host{}, err
	}
	name := conf.vpcNetwork()
	if nw := s.NetworkByName(name); nw != nil {
		return Host{Network: nw.ID}, nil
	}
	gateway := conf.vpc.gateway
	if !gateway.IsValid() {
		return Host{}, fmt.Errorf("node %s: %s has no gatewayIPAddress; the plugin gives it to the network", n.Name, conf.file)
	}
	nw, err := s.CreateNetwork(hns.Network{
		Name: name, Type: hns.L2Bridge, ManagementIP: n.Address,
		Ipams: []hns.Ipam{static(conf.vpc.address.Masked(), gateway)}, Origin: conf.origin,
	})
	if err != nil {
		return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, name, err)
	}
	return Host{Network: nw.ID}, nil
}

// Lease follows cni.vpc-bridge-addresses.
func (v *vpcBridge) Lease(c *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	return v.lease(c, n, p, nil)
}

// Add makes the endpoint; its policies follow cni.vpc-bridge-nat, cni.vpc-bridge-host-port
// and cni.vpc-bridge-routes.
func (v *vpcBridge) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	conf, err := v.o.Conf.forNode(n)
	if err != nil {
		return Result{}, err
	}
	nw, err := findNetwork(s, conf.vpcNetwork(), hns.L2Bridge)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	l, err := v.lease(c, n, p, taken(s, nw))
	if err != nil {
		return Result{}, err
	}
	ps := newPolicySet(conf, version{})
	eni := conf.vpc.address
	exceptions := []string{eni.Masked().String()}
	if conf.vpc.cidrs != nil {
		exceptions = nil
		for _, p := range conf.vpc.cidrs {
			exceptions = append(exceptions, p.String())
		}
	}
	service := conf.vpc.serviceCIDR
	if service != "" {
		exceptions = append(exceptions, service)
	}
	ps.add(hns.OutBoundNATSettings{Exceptions: exceptions}, "vpcCIDRs and serviceCIDR")
	anyAddress := *p
	anyAddress.HostPorts = slices.Clone(p.HostPorts)
	for i := range anyAddress.HostPorts {
		anyAddress.HostPorts[i].HostIP = netip.Addr{}
	}
	ps.ports(&anyAddress, hns.NatFlagLocalRoutedVIP, true)
	if service != "" {
		ps.add(hns.SDNRouteSettings{DestinationPrefix: service, NeedEncap: true}, "serviceCIDR")
		ps.add(hns.SDNRouteSettings{DestinationPrefix: eni.Addr().String() + "/32", NeedEncap: true}, "eniIPAddresses")
	}
	r, err := v.add(c, n, conf, p, s, newEndpoint{network: nw, suffix: "_" + conf.name, mac: hostMAC(l.Prefix.Addr()), policies: ps.all,
		lease: l})
	if err != nil {
		v.release4and6(n, p)
	}
	return r, err
}

// vpcDNS follows cni.vpc-bridge-dns.
func (c *Conf) vpcDNS(p *kube.Pod) hns.DNS {
	d := hns.DNS{ServerList: slices.Clone(c.dns.Nameservers)}
	for _, s := range c.dns.Search {
		d.Search = append(d.Search, strings.Replace(s, "{%namespace%}", namespace(p), 1))
	}
	return d
}

// Linux follows cni.vpc-linux.
func (v *vpcBridge) Linux(c *kube.Cluster, n *kube.Node) LinuxSetup {
	return v.linux(c, n, v.o.Conf.vpc.cidrs...)
}

var factVPCOneAddress = evidence.New("cni.vpc-bridge-one-address", evidence.Code,
	"On Windows vpc-bridge refuses an endpoint with more than one address or with an IPv6 address.",
	"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go FindOrCreateEndpoint")

// What this package holds true about vpc-bridge, by the commit be52143 of
// aws/amazon-vpc-cni-plugins.
var (
	_ = evidence.New("cni.vpc-bridge-network", evidence.Code,
		"vpc-bridge finds or makes an l2bridge network of the configuration's name, \"br\" and the ENI's MAC address (vpcbr0e1a2b3c4d5f), with the subnet of the ENI's first address.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go FindOrCreateNetwork")
	_ = evidence.New("cni.vpc-bridge-network-by-mac", evidence.Inferred,
		"The network's name is not compared with the node's adapters, because a node has only one.")
	_ = evidence.New("cni.vpc-bridge-nat", evidence.Code,
		"Each endpoint has an OutBoundNAT policy whose exceptions are vpcCIDRs, or without them the ENI's subnet, and then serviceCIDR.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go FindOrCreateEndpoint")
	_ = evidence.New("cni.vpc-bridge-routes", evidence.Code,
		"Only with serviceCIDR an endpoint has two SDNRoute policies with NeedEncap, for serviceCIDR and for the ENI's own address.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go FindOrCreateEndpoint")
	_ = evidence.New("cni.vpc-bridge-host-port", evidence.Code,
		"vpc-bridge writes a PortMapping policy with the flag LocalRoutedVip for a hostPort, and does not read its hostIP.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go FindOrCreateEndpoint", "aws/amazon-vpc-cni-plugins PR 93")
	_ = evidence.New("cni.vpc-bridge-dns", evidence.Code,
		"vpc-bridge takes name servers and search names from its own configuration, with {%namespace%} replaced by the pod's namespace, and ignores what the kubelet passes.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/config/kubernetes.go parseKubernetesArgs",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/plugin/commands.go Add")
	_ = evidence.New("cni.vpc-bridge-addresses", evidence.Inferred,
		"The VPC resource controller gives pods secondary addresses of the node's ENI; winlab takes the first free ones after the node's own, at most 30.",
		"aws/amazon-vpc-cni-plugins plugins/vpc-bridge/config/kubernetes.go parseKubernetesArgs")
	_ = evidence.New("cni.vpc-linux", evidence.Inferred,
		"A Linux node of EKS answers for its pods' addresses in the VPC, and masquerades only what leaves the VPC.")
)
