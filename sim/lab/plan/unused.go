package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// unused notes what the lab says of its pod network and this design does not read.
func (p *Plan) unused(s *labfile.Spec) error {
	net, design := s.Network, p.Network
	if design.Design != CNI && net.Conf != "" {
		p.notice("conf "+net.Conf, "the design "+net.Plugin+" reads no CNI configuration", "spec", "network", "conf")
	}
	if net.Plugin != string(cni.PluginFlannel) && net.Plugin != string(cni.PluginAntrea) && net.NetConf != "" {
		p.notice("netConf "+net.NetConf, "only flannel and antrea read such a file; the plugin is "+net.Plugin, "spec", "network", "netConf")
	}
	if net.Version != "" && (design.Design != CNI || net.Plugin == string(cni.PluginNAT)) {
		p.notice("version "+net.Version+" of "+net.Plugin, "the model is the same for all its versions", "spec", "network", "version")
	}
	p.unusedRange()
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if why := p.paramUnused(name, s); why != "" {
			p.notice("parameter "+name, why, "spec", "params", name)
		}
	}
	return nil
}

// unusedRange notes a pod range of the CNI configuration that is not the node's.
func (p *Plan) unusedRange() {
	conf := p.Network.CNI.Conf
	if conf == nil || slices.Contains([]cni.Name{cni.PluginNAT, cni.PluginAzure, cni.PluginVPCBridge}, p.Network.CNI.Plugin) {
		return // nat takes it; the reader has a warning for the others
	}
	prefix, at := conf.PodRange()
	if !prefix.IsValid() {
		return
	}
	var others []string
	for _, n := range p.Nodes {
		if n.Windows() && len(n.Kube.PodCIDRs) > 0 && !slices.Contains(n.Kube.PodCIDRs, prefix) {
			others = append(others, fmt.Sprintf("%s has %s", n.Kube.Name, n.Kube.PodCIDRs[0]))
		}
	}
	if len(others) > 0 {
		p.noticeAt(fmt.Sprintf("ipam.subnet %s", prefix), "the pod range of a node is its podCIDR: "+strings.Join(others, ", "), at)
	}
}

// paramUnused says why nothing follows from a parameter in this design, "" if something
// can. Of a question that no flow meets nothing needs to be said.
func (p *Plan) paramUnused(name string, s *labfile.Spec) string {
	overlay := func(plugin cni.Name) bool { return s.Network.Plugin == string(plugin) && p.Network.Type == "overlay" }
	var reads bool
	var where string
	switch name {
	case labfile.ParamIPMasq:
		reads, where = overlay(cni.PluginFlannel), "win-overlay under flannel"
	case labfile.ParamHostRoute, labfile.ParamVNI:
		reads, where = overlay(cni.PluginWinOverlay), "win-overlay without flannel"
	case labfile.ParamIPForwarding:
		reads, where = slices.ContainsFunc(p.Segments, func(g Segment) bool { return g.Azure }), "a segment of Azure"
	case labfile.ParamSharePortPools:
		reads, where = p.Network.Design == CNI && slices.ContainsFunc(p.Nodes, func(n *Node) bool {
			return n.Windows() && (n.Kube.Windows.Has(builds.PortPoolSharing) ||
				slices.ContainsFunc(n.Candidates, func(c builds.Candidate) bool { return c.Build.Has(builds.PortPoolSharing) }))
		}), "a Windows build that can share them"
	case labfile.ParamLoopback:
		reads, where = p.Network.Design != OVS, "a design with VFP"
	default:
		reads, where = !strings.HasPrefix(name, "ovn-") || p.Network.Design == OVS, "a design with Open vSwitch"
	}
	if reads {
		return ""
	}
	return "only " + where + " uses it, and this lab does not have one"
}
