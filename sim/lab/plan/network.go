package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// Design is how a cluster's pod network is made.
type Design int

// The designs.
const (
	CNI  Design = iota // a plugin of sim/kube/cni programs HNS
	OVS                // OVN programs Open vSwitch
	RRAS               // an administrator, by the guide of Kubernetes 1.5
)

// dockerBridge is docker0 as Docker makes it.
var dockerBridge = netip.MustParsePrefix("172.17.0.1/16")

// Network is the pod network.
type Network struct {
	Design  Design
	Plugin  string
	Version string
	// Name is the plugin with its version: "flannel 0.12.0". Type is the HNS
	// network type, in lower case.
	Name, Type string
	// PolicyAgent enforces NetworkPolicies, "" for the plugin's own agent or none.
	PolicyAgent cni.Agent
	// CNI is what the plugin is made of, for design CNI.
	CNI cni.Options
	// Bridge is where Linux containers are on a node without a plugin there, the
	// zero Prefix where the plugin serves Linux, too.
	Bridge netip.Prefix
}

// design says how the pod network is made.
func (p *Plan) design(s *labfile.Spec) error {
	in := s.Network
	p.Network = Network{Design: OVS, Plugin: in.Plugin, Version: in.Version, Name: in.Plugin, Type: "transparent",
		PolicyAgent: cni.Agent(in.PolicyAgent)}
	switch {
	case hasModel(in.Plugin):
		p.Network.Design = CNI
	case in.Plugin == labfile.PluginRRAS:
		p.Network.Design = RRAS
	}
	if in.Version != "" {
		p.Network.Name += " " + in.Version
	}
	return nil
}

// plugin reads what the design needs.
func (p *Plan) plugin(s *labfile.Spec) error {
	switch p.Network.Design {
	case CNI:
		return p.cni(s.Network)
	case RRAS:
		return p.rras()
	}
	return nil
}

// rras gives Windows nodes of the 1.5 design a second NIC.
func (p *Plan) rras() error {
	for _, n := range p.Nodes {
		if len(n.Kube.PodCIDRs) == 0 {
			return fmt.Errorf("node %s: the rras design needs a podCIDR", n.Kube.Name)
		}
		if n.Windows() {
			n.PodNIC = p.nextMAC()
		}
	}
	return nil
}

// cni reads what the model of a plugin is made of.
func (p *Plan) cni(in labfile.Network) error {
	if in.Conf == "" {
		return fmt.Errorf("plugin %s needs its configuration: write network: {conf: FILE}", in.Plugin)
	}
	masq, route := p.Params.IPMasq, p.Params.HostRoute
	o := cni.Options{Plugin: cni.Name(in.Plugin), Version: in.Version, IPMasq: &masq, HostRoute: &route, VNI: p.Params.VNI}
	var err error
	if o.Conf, err = readConf(p.File, in.Conf, cni.ParseConf); err != nil {
		return err
	}
	if in.NetConf != "" && o.Plugin == cni.PluginAntrea {
		if o.Agent, err = readConf(p.File, in.NetConf, cni.ParseAntreaAgent); err != nil {
			return err
		}
	} else if in.NetConf != "" {
		if o.NetConf, err = readConf(p.File, in.NetConf, cni.ParseNetConf); err != nil {
			return err
		}
	}
	for _, n := range p.Nodes {
		if n.Proxy.SourceVIP.IsValid() {
			o.Reserved = append(o.Reserved, n.Proxy.SourceVIP)
		}
	}
	plugin, err := cni.New(o)
	if err != nil {
		return err
	}
	p.Network.CNI, p.Network.Type = o, strings.ToLower(string(plugin.NetworkType()))
	if o.Plugin == cni.PluginNAT {
		p.dockerBridges()
	}
	return nil
}

// dockerBridges puts the pods of Linux nodes onto Docker's bridge: containers on
// a network of the same kind as WinNAT's.
func (p *Plan) dockerBridges() {
	p.Network.Bridge = dockerBridge
	for _, n := range p.Nodes {
		if !n.Windows() {
			n.Kube.PodCIDRs = []netip.Prefix{dockerBridge.Masked()}
		}
	}
}

func readConf[T any](f *labfile.File, name string, parse func(string, []byte) (*T, error)) (*T, error) {
	path := f.PathOf(name)
	data, err := input.ReadFile(path, input.Text)
	if err != nil {
		return nil, err
	}
	return parse(f.Shown(path), data)
}
