package cni

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// ManagementIPToken is written in a configuration file instead of the node's address; see
// the package's documentation.
const ManagementIPToken = "{{managementIP}}"

// ManagementIP6Token is written instead of the node's IPv6 address.
const ManagementIP6Token = "{{managementIPv6}}"

// anyNode is put in the tokens' places where no node is known yet (RFC 5737, RFC 3849).
var anyNode = &kube.Node{Address: netip.MustParseAddr("192.0.2.1"), Address6: netip.MustParseAddr("2001:db8::1")}

// Conf is a CNI configuration file of a Windows node: a conf, or the first
// plugin of a conflist that this package models. For a conf of type flannel,
// the fields from apiVersion on are those of its delegate.
type Conf struct {
	file       string
	cniVersion string
	name       string
	// Type is the plugin: "flannel", "win-bridge", "azure-vnet", "nat".
	Type Name
	// delegate is the plugin that flannel calls; it is win-bridge unless the
	// delegate names another. Empty for other types.
	delegate Name
	// apiVersion is 1 (HNS) or 2 (HCN).
	apiVersion int
	policies   []confPolicy
	// hcnPolicyArgs are win-bridge's policies of apiVersion 2 before release 1.0.0
	// (cni.win-bridge-old-v2).
	hcnPolicyArgs []confPolicy
	dns           DNSConf
	ipam          ipamConf
	loopbackDSR   bool
	Capabilities  map[string]bool
	// ipMasq and ipMasqNetwork are win-overlay's and win-bridge's.
	ipMasq            bool
	ipMasqNetwork     netip.Prefix
	endpointMacPrefix string
	// mode is azure-vnet's: "bridge" or "tunnel"; ipv6Mode "" or "ipv6nat".
	mode, ipv6Mode string
	// podSubnet: azure-vnet's pods have addresses of a subnet of their own (cni.azure-pod-subnet).
	podSubnet bool
	// sdn are the optionalFlags of sdnbridge.
	sdn sdnFlags
	// vpc are the fields of vpc-bridge.
	vpc vpcConf
	// calico are the fields of calico.
	calico calicoFields
	// master is the adapter under a nat network.
	master string
	// origin is the file and the line of the network's name.
	origin *trace.Origin
	// Remarks are what there is to say about the file.
	Remarks Remarks

	// data is the file, and root its tree; both have the tokens.
	data []byte
	root *yaml.Node
	// nodes is the file as it is on nodes: every pod of a node asks for it.
	nodes sync.Map // of tokenValues to *Conf
}

// tokenValues is what tokens are replaced by.
type tokenValues struct{ v4, v6 netip.Addr }

// confPolicy is one endpoint policy of a configuration file, in the form of HCN v2.
type confPolicy struct {
	hns.Policy
	// v1 is set when the file has it in the form of HNS v1.
	v1 bool
}

// DNSConf is the member dns of a configuration.
type DNSConf struct {
	Nameservers, Search, Options []string
	Domain                       string
}

// ipamConf is the member ipam of a configuration.
type ipamConf struct {
	subnet netip.Prefix
	origin *trace.Origin // of subnet
	// mode is azure-vnet's.
	mode string
	// gateway is the GW of the first route.
	gateway netip.Addr
}

// PodRange is the pod range that the file itself says (ipam.subnet), with its place; the
// zero Prefix for none.
func (c *Conf) PodRange() (netip.Prefix, *trace.Origin) { return c.ipam.subnet, c.ipam.origin }

// forNode returns the configuration as it is on a node. It is read once for each node's
// addresses, and must not be changed.
func (c *Conf) forNode(n *kube.Node) (*Conf, error) {
	if !bytes.Contains(c.data, []byte(ManagementIPToken)) && !bytes.Contains(c.data, []byte(ManagementIP6Token)) {
		return c, nil
	}
	if !n.Address6.IsValid() && bytes.Contains(c.data, []byte(ManagementIP6Token)) {
		return nil, fmt.Errorf("%s: %s: node %s has no IPv6 address (ipv6Address)", c.file, ManagementIP6Token, n.Name)
	}
	key := tokenValues{n.Address, n.Address6}
	if known, ok := c.nodes.Load(key); ok {
		return known.(*Conf), nil
	}
	of := confOf(&reader{file: c.file}, c.data, c.root, n)
	if err := of.Remarks.Err(); err != nil {
		return nil, err
	}
	known, _ := c.nodes.LoadOrStore(key, of)
	return known.(*Conf), nil
}

// ParseConf reads a CNI configuration file of a Windows node, a conf or a
// conflist. It refuses what the plugins refuse, with all mistakes at once; what
// they ignore is in Remarks.
func ParseConf(file string, data []byte) (*Conf, error) {
	c, _ := ReadConf(file, data)
	if err := c.Remarks.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// ReadConf is ParseConf for those who ask why a file is refused: the remarks of the configuration say
// it, and the rest of the configuration is what could be read. root is the file's tree, nil where it
// has none.
func ReadConf(file string, data []byte) (c *Conf, root *yaml.Node) {
	r := &reader{file: file}
	root = r.tree(data)
	if root == nil || len(r.NotJSON) > 0 {
		return &Conf{file: file, Remarks: r.Remarks}, root
	}
	return confOf(r, bytes.Clone(data), root, anyNode), root
}

// confOf is a configuration as it is on a node.
func confOf(r *reader, data []byte, root *yaml.Node, of *kube.Node) *Conf {
	r.known = map[*yaml.Node]func(string) bool{}
	c := &Conf{file: r.file, data: data, root: root}
	onNode := withoutTokens(root, tokens(of))
	if n := holder(onNode, "{{"); n != nil {
		r.errorf(n, "only %s and %s are replaced in a configuration file", ManagementIPToken, ManagementIP6Token)
	} else {
		r.conf(c, onNode)
	}
	c.Remarks = r.Remarks
	return c
}

// tokens replaces tokens by the addresses of a node.
func tokens(of *kube.Node) *strings.Replacer {
	return strings.NewReplacer(ManagementIPToken, of.Address.String(), ManagementIP6Token, of.Address6.String())
}

// holder is the first text of a tree that has a part, nil for none.
func holder(n *yaml.Node, part string) *yaml.Node {
	if strings.Contains(n.Value, part) {
		return n
	}
	for _, c := range n.Content {
		if h := holder(c, part); h != nil {
			return h
		}
	}
	return nil
}

// withoutTokens is a tree with its tokens replaced.
func withoutTokens(n *yaml.Node, r *strings.Replacer) *yaml.Node {
	out := *n
	out.Value, out.Content = r.Replace(n.Value), make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = withoutTokens(c, r)
	}
	return &out
}
