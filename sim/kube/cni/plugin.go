package cni

import (
	"net/netip"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// HostRoute is an entry of a node's own route table.
type HostRoute struct {
	To  netip.Prefix
	Via netip.Addr
	// Origin says who added it.
	Origin *trace.Origin
}

// Host is what a plugin or its agent changes on a Windows node's own stack.
type Host struct {
	// Forwarding is set when it turns on IP forwarding for the node's
	// interfaces.
	Forwarding bool
	// Routes, when set, makes its routes to the other nodes: there are as many as nodes.
	Routes func() []HostRoute
	// Peers, when set, tells HNS the ways to the other nodes; see [Deferring].
	Peers func() error
	// Links are prefixes that the node reaches on the link of its adapter.
	Links []netip.Prefix
	// HostEndpoints are the ids of the HNS endpoints that it attaches to the
	// node's own compartment.
	HostEndpoints []string
	// Network is the id of the HNS network that pods are put on.
	Network string
}

// Deferring is a plugin whose agent tells HNS of every other node. PrepareLater is its
// Prepare without that, which is Host.Peers: nothing else that the plugin does depends on
// it, and most nodes of a large cluster are never used.
type Deferring interface {
	PrepareLater(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error)
}

// Result is what CNI ADD answers.
type Result struct {
	EndpointID string
	// Namespace is the id of the pod's HNS namespace.
	Namespace string
	// Addresses carry the prefix length of the pod's subnet; the IPv6 one, if there
	// is one, is the second. Gateway is that of IPv4.
	Addresses []netip.Prefix
	Gateway   netip.Addr
	// DNS holds the settings of the container's interface: Search are the
	// suffixes, ServerList the name servers.
	DNS hns.DNS
}

// Lease is an address of a pod.
type Lease struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
	// Prefix6 and Gateway6 are those of IPv6, zero for none.
	Prefix6  netip.Prefix
	Gateway6 netip.Addr
}

// prefixes are the pod's addresses, IPv4 first.
func (l Lease) prefixes() []netip.Prefix {
	if l.Prefix6.IsValid() {
		return []netip.Prefix{l.Prefix, l.Prefix6}
	}
	return []netip.Prefix{l.Prefix}
}

// Plugin is one network plugin with its configuration, for all nodes of one
// cluster. It remembers the addresses that it gave out, and is not safe for
// concurrent use.
type Plugin interface {
	// Name is the plugin's name in the registry.
	Name() Name
	// Version is the version that the model follows, "" where behaviour does
	// not depend on it.
	Version() string
	// NetworkType is the HNS network type: hns.L2Bridge.
	NetworkType() hns.NetworkType
	// Prepare does what happens on a Windows node before its first pod: the
	// start script or the plugin's agent makes the HNS network. It is called
	// once for each node, and may be called again after a peer was added: then
	// it only adds what is missing.
	Prepare(c *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error)
	// Add is CNI ADD on a Windows node: it makes the pod's endpoint and
	// attaches it to a namespace of its own. Of c it may use only what the real
	// plugin is given on the node: DNSIP and Domain, which the kubelet passes on,
	// and Nodes where an address must be unique in the cluster (azure-vnet). It must
	// not use Services; the cluster's prefixes come from the configuration.
	Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error)
	// Del is CNI DEL on a Windows node: the pod's endpoint and the namespace that
	// Add made are deleted, and its address is free again. A pod that is not
	// there is not an error. On a Linux node s is nil, and only the address is
	// given back.
	Del(n *kube.Node, p *kube.Pod, s *hns.Service) error
	// Lease gives a pod its address, on a node of either system. Add calls it
	// itself; a Linux node calls it for its pods.
	Lease(c *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error)
	// Linux is the plugin's side on a Linux node.
	Linux(c *kube.Cluster, n *kube.Node) LinuxSetup
	// WhyNoIPv6 says why pods get no IPv6 address in this configuration, by which fact,
	// "" when they do on nodes that have an IPv6 range.
	WhyNoIPv6() (string, *evidence.Fact)
	// Warnings are remarks on the configuration; none of them is an error.
	Warnings() strict.Mistakes
}

// LinuxSetup is what the plugin has set up on a Linux node.
type LinuxSetup struct {
	Forwarding bool
	Routes     []HostRoute
	// Bridge is the address of cni0 with its prefix; zero without a bridge. Bridge6 is
	// its IPv6 address, zero for none.
	Bridge, Bridge6 netip.Prefix
	VXLAN           *LinuxVXLAN
	// MasqueradeNot: what pods send to outside these prefixes leaves with the
	// node's address. Empty: nothing is masqueraded.
	MasqueradeNot []netip.Prefix
	// PodsInNodeSubnet is set when pods have addresses of the node's own subnet
	// and the node answers for them.
	PodsInNodeSubnet bool
}

// LinuxVXLAN is the tunnel device of a Linux node.
type LinuxVXLAN struct {
	VNI  uint32
	Port uint16
	// Local is the node's address, the outer source; Address and MAC are those
	// of the device (10.244.0.0/32).
	Local   netip.Addr
	Address netip.Prefix
	MAC     packet.MAC
	// Underlay is the MTU of the network below it, 0 for that of the node's NIC.
	Underlay int
	Peers    []VXLANPeer
}

// VXLANPeer is another node as a tunnel device knows it.
type VXLANPeer struct {
	Prefix netip.Prefix
	// PA is the node's address, the outer destination; MAC its device's.
	PA  netip.Addr
	MAC packet.MAC
}

// Options say which plugin and how it is configured.
type Options struct {
	Plugin Name
	// Version is the plugin's, "0.12.0"; "" is the newest.
	Version string
	// DelegateVersion is that of win-bridge or win-overlay under flannel, a
	// release of containernetworking/plugins; "" is the newest. Without flannel
	// Version says it.
	DelegateVersion string
	// Conf is the CNI configuration of the Windows nodes.
	Conf *Conf
	// NetConf is flannel's net-conf.json.
	NetConf *NetConf
	// Agent is antrea-agent.conf; nil is that without a setting.
	Agent *AntreaAgent
	// IPMasq is flanneld's --ip-masq; nil is on, as the start scripts have it.
	IPMasq *bool
	// VNI is the virtual network of win-overlay without flannel, which its
	// configuration does not say; 0 is 4096.
	VNI uint32
	// HostRoute says whether the script that makes win-overlay's network adds
	// the HostRoute policy; nil is yes.
	HostRoute *bool
	// Reserved are addresses that no pod may get from the IPAM: the source VIP
	// of kube-proxy, which start scripts take from the same IPAM.
	Reserved []netip.Addr
}
