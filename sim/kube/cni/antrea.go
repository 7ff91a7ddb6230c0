package cni

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// antrea is Antrea on Windows: HNS has a transparent network and an endpoint for each pod,
// and everything that happens to packets is in Open vSwitch, the extension of that
// network's switch, which its agent programs. That part is not in this package.
type antrea struct{ *base }

// antreaConf reads what antrea reads (antrea-io/antrea pkg/agent/cniserver/types).
func (r *reader) antreaConf(c *Conf, n *yaml.Node) {
	r.fields(string(PluginAntrea), string(PluginAntrea), n)
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	if f := r.get(n, "ipam"); f != nil && !isNull(f.val) && r.object("ipam", f.val) {
		r.fields("ipam", string(PluginAntrea)+".ipam", f.val)
		r.addressPlugin(f.val, "host-local")
	}
}

func newAntrea(o Options, b *base) (Plugin, error) {
	if _, err := parseVersion(o.Version); err != nil {
		return nil, err
	}
	if b.o.Agent == nil {
		a, err := ParseAntreaAgent("antrea-agent.conf", nil)
		if err != nil {
			return nil, err
		}
		b.o.Agent = a
	}
	b.warnings = append(b.warnings, b.o.Agent.Remarks.Warnings()...)
	return &antrea{b}, nil
}

// AgentConf is the configuration of its agent.
func (a *antrea) AgentConf() *AntreaAgent { return a.o.Agent }

func (a *antrea) NetworkType() hns.NetworkType { return hns.Transparent }

// antreaNetwork is the name of the HNS network, whatever the configuration's is.
const antreaNetwork = "antrea-hnsnetwork"

// Prepare follows cni.antrea-network.
func (a *antrea) Prepare(_ *kube.Cluster, n *kube.Node, s *hns.Service) (Host, error) {
	prefix := podPrefix4(n)
	if !prefix.IsValid() {
		return Host{}, fmt.Errorf("node %s has no podCIDR; antrea-agent takes the range of pods from the Node", n.Name)
	}
	if nw := s.NetworkByName(antreaNetwork); nw != nil {
		return Host{Network: nw.ID}, nil
	}
	nw, err := s.CreateNetwork(hns.Network{
		Name: antreaNetwork, Type: hns.Transparent, ManagementIP: n.Address, Flags: hns.NetworkNonPersistent,
		Extensions: []hns.SwitchExtension{{ID: hns.OpenVSwitchExtension, IsEnabled: true, Name: "Open vSwitch Extension"}},
		Ipams:      []hns.Ipam{static(prefix, nth(prefix, 1))}, Origin: a.o.Conf.origin,
	})
	if err != nil {
		return Host{}, fmt.Errorf("node %s: network %s: %w", n.Name, antreaNetwork, err)
	}
	return Host{Network: nw.ID}, nil
}

func (a *antrea) Lease(_ *kube.Cluster, n *kube.Node, p *kube.Pod) (Lease, error) {
	prefix := podPrefix4(n)
	if !prefix.IsValid() {
		return Lease{}, fmt.Errorf("node %s has no podCIDR; antrea-agent takes the range of pods from the Node", n.Name)
	}
	pl := a.pools[n.Name]
	if pl == nil { // the gateway is the only address that is not a pod's
		pl = newPool("node "+n.Name, prefix, nth(prefix, 2), last(prefix).Prev(), nth(prefix, 1))
		pl.reserve("the gateway", nth(prefix, 1))
		pl.reserved = a.reserved
		a.pools[n.Name] = pl
	}
	return pl.lease(owner(p), p.Address, nil)
}

// Add follows cni.antrea-endpoint.
func (a *antrea) Add(c *kube.Cluster, n *kube.Node, p *kube.Pod, s *hns.Service) (Result, error) {
	nw, err := findNetwork(s, antreaNetwork, hns.Transparent)
	if err != nil {
		return Result{}, wrap(p, err)
	}
	l, err := a.Lease(c, n, p)
	if err != nil {
		return Result{}, err
	}
	sum := sha1.Sum([]byte(owner(p))) // cni.antrea-endpoint-name
	r, err := a.add(c, n, a.o.Conf, p, s, newEndpoint{network: nw, suffix: "-" + hex.EncodeToString(sum[:3]), mac: hostMAC(l.Prefix.Addr()),
		lease: l})
	if err != nil {
		a.release4and6(n, p)
	}
	return r, err
}

// Linux is empty: a Linux node has the same bridge as a Windows node.
func (*antrea) Linux(*kube.Cluster, *kube.Node) LinuxSetup { return LinuxSetup{Forwarding: true} }

// WhyNoIPv6 follows cni.antrea-ipv4.
func (*antrea) WhyNoIPv6() (string, *evidence.Fact) {
	return "Antrea gives pods of Windows nodes only IPv4 addresses, and so does the model for pods of Linux nodes", factAntreaIPv4
}

var factAntreaIPv4 = evidence.New("cni.antrea-ipv4", evidence.Code,
	"Antrea's plugin on Windows uses only a pod's IPv4 address.",
	"antrea-io/antrea pkg/agent/cniserver/interface_configuration_windows.go findContainerIPConfig", "antrea-io/antrea#5162")

// What this package holds true about Antrea on Windows, by the commit fc70f2b of
// antrea-io/antrea.
var (
	_ = evidence.New("cni.antrea-network", evidence.Code,
		"antrea-agent creates the HNS network antrea-hnsnetwork of type Transparent with the node's podCIDR and its first address as gateway, enables the Open vSwitch extension on its switch, and recreates the network after a restart of the node.",
		"antrea-io/antrea pkg/agent/util/net_windows.go CreateHNSNetwork", "antrea-io/antrea pkg/agent/agent_windows.go",
		"antrea-io/antrea docs/windows.md")
	_ = evidence.New("cni.antrea-endpoint", evidence.Code,
		"antrea creates an endpoint with the address from host-local and with the gateway and DNS of its result, without a policy, and attaches it to the sandbox's namespace.",
		"antrea-io/antrea pkg/agent/cniserver/interface_configuration_windows.go createContainerLink")
	_ = evidence.New("cni.antrea-endpoint-name", evidence.Inferred,
		"An endpoint's name ends with a hash that includes the sandbox's id; winlab hashes the pod's name instead. The MAC address is assumed to come from HNS.",
		"antrea-io/antrea pkg/agent/util/net.go GenerateContainerInterfaceName")
)
