package importer

import (
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// antreaThere reports whether the cluster has Antrea.
func (im *importing) antreaThere() bool {
	m, _ := im.configMap(antreaConfig)
	return m != nil || slices.ContainsFunc(im.confs(), func(f string) bool {
		data, _ := im.b.Read(f)
		return cni.TypeOf(pluginOf(data)) == cni.PluginAntrea
	})
}

// antreaOff says where the extension of Open vSwitch is off on a node, "" where nothing shows that: the
// cluster then does not run as Antrea makes it, and what it does is unknown.
func (im *importing) antreaOff() string {
	for _, c := range im.nodes {
		if c.why != "" || c.dump == nil || c.dump.HNS == nil {
			continue
		}
		for i := range c.dump.HNS.Networks {
			x := &c.dump.HNS.Networks[i]
			if e := x.Extension(hns.OpenVSwitchExtension); e != nil && !e.IsEnabled && x.Origin != nil {
				return fmt.Sprintf("%s:%d: the extension of Open vSwitch is not enabled on the switch of network %s of %s", x.Origin.File,
					x.Origin.Line, comment(x.Name), c.name)
			}
		}
	}
	return ""
}

// openVSwitch reports whether the flows of Open vSwitch decide about the packets of a node of Antrea,
// and not its HNS, which then is not in the lab (docs/decisions/network-plugins.md).
// Only HNS v1 shows the extensions of a switch.
func (im *importing) openVSwitch(n *labNode) bool {
	if !im.antreaThere() || im.antreaOff() != "" {
		return false
	}
	for i := range n.got.dump.HNS.Networks {
		x := &n.got.dump.HNS.Networks[i]
		if !x.Is(hns.Transparent) || x.Origin == nil {
			continue
		}
		at := fmt.Sprintf("%s:%d", x.Origin.File, x.Origin.Line)
		why := "the extension of Open vSwitch is enabled on the switch of its network " + x.Name + " (" + at + ")"
		if x.Extension(hns.OpenVSwitchExtension) == nil {
			why = "its network " + x.Name + " (" + at +
				") is on a switch of which no file shows the extensions, and Antrea enables that of Open vSwitch"
		}
		why += ", so HNS decides nothing there, and no bundle has the flows of Open vSwitch"
		n.doubts = append(n.doubts, comment(why))
		im.r.conclude("the data plane of "+n.name, "Open vSwitch as Antrea programs it", comment(why))
		im.r.miss("the flows of Open vSwitch on node "+n.name,
			"they are assumed to be what Antrea makes, and verdicts of flows that meet the node say so",
			"ovs-ofctl dump-flows br-int, on the node; winlab does not read it")
		for j := range im.r.Nodes {
			if im.r.Nodes[j].Name == n.name {
				im.r.Nodes[j].Why = why
			}
		}
		return true
	}
	return false
}
