package importer

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// network says which plugin the cluster has. Nodes that were collected have what their HNS has,
// whatever it is; it decides about Linux nodes, and about Windows nodes that were not.
func (im *importing) network(s tree, nodes []*labNode) string {
	t := newTree()
	im.prefixes = im.subnets(nodes)
	c := im.plugin(nodes)
	var pods []netip.Prefix
	for _, n := range nodes {
		if n.kube != nil {
			if p, err := netip.ParsePrefix(n.pods); err == nil {
				pods = append(pods, p)
			}
		}
	}
	ranges := newTree()
	cluster := im.clusterCIDR(ranges, pods)
	switch c.name {
	case string(cni.PluginFlannel):
		if c.netConf, c.netFrom = im.netConf(cluster); c.netConf == "" {
			c = im.withoutNetConf(nodes)
		}
	case string(cni.PluginCalico):
		im.calicoRest(cluster)
	case string(cni.PluginVPCBridge):
		im.vpcGateways(nodes)
	}
	t.set("plugin", c.name, c.from)
	if c.conf != "" {
		t.set("conf", c.conf, "")
	}
	t.n.Content = append(t.n.Content, ranges.n.Content...)
	if c.netConf != "" {
		t.set("netConf", c.netConf, c.netFrom)
	}
	services, dns := im.serviceRange()
	if services.IsValid() {
		t.set("serviceCIDR", services.String(), im.r.conclude("serviceCIDR", services.String(), "the ClusterIPs are in it"))
	}
	if dns != "" {
		t.set("dnsIP", dns, "")
	}
	s.set("network", t, "")
	im.ways(nodes, c.name)
	if im.vni != 0 {
		p := newTree()
		p.set(labfile.ParamVNI, fmt.Sprint(im.vni), im.vniFrom)
		s.set("params", p, "")
	}
	return c.name
}

// around is a prefix that holds all others, with bits at most; invalid for none.
func around(all []netip.Prefix, bits int) netip.Prefix {
	if len(all) == 0 {
		return netip.Prefix{}
	}
	for ; bits >= 8; bits-- {
		p, err := all[0].Addr().Prefix(bits)
		if err == nil && !slices.ContainsFunc(all, func(o netip.Prefix) bool { return !p.Contains(o.Addr()) }) {
			return p
		}
	}
	return netip.Prefix{}
}

// plugin finds the plugin and its configuration: in a file, in objects of Kubernetes, in HNS.
func (im *importing) plugin(nodes []*labNode) chosen {
	for _, f := range im.confs() {
		if c, ok := im.given(f, nodes); ok {
			return c
		}
	}
	for _, find := range []func([]*labNode) (chosen, bool){im.antrea, im.calicoNetwork, im.vpcBridge} {
		before := im.guess
		if c, ok := find(nodes); ok {
			return c
		}
		im.guess = before
	}
	for _, n := range nodes {
		if n.got == nil || n.got.why != "" {
			continue
		}
		for i := range n.got.dump.HNS.Networks {
			if x := &n.got.dump.HNS.Networks[i]; !x.Is(hns.NAT) || len(n.got.dump.HNS.Networks) == 1 {
				return im.byType(n, x)
			}
		}
	}
	if c, ok := im.flannel(); ok {
		return c
	}
	plugin, why := "win-bridge", "nothing in the bundle says which network plugin the cluster has"
	if other, from := im.otherPlugin(); other != "" {
		why = other + " is there (" + from + "), and nothing in the bundle says what it makes on Windows nodes"
	}
	im.doubt(why + ": assuming " + plugin)
	im.r.miss("the network plugin", why+": nodes without files are assumed to be as "+plugin+
		" makes them, and verdicts of flows that meet one say so", `the configuration in C:\etc\cni\net.d or C:\k\cni\config`)
	return im.made(plugin, "cbr0", "")
}

// confs are the CNI configurations of the bundle: those of nodes first, then those that stand alone.
func (im *importing) confs() (all []string) {
	for _, n := range im.nodes {
		if n.conf != "" {
			all = append(all, n.conf)
		}
	}
	for _, f := range im.b.Files {
		if !slices.Contains(all, f) && im.cniConf(f) {
			all = append(all, f)
		}
	}
	return all
}

// withoutNetConf chooses a plugin instead of flannel when its backend is unknown, since no lab can be made then.
// The network that HNS has says what kind it is.
func (im *importing) withoutNetConf(nodes []*labNode) chosen {
	const why = "flannel is there, and nothing says its backend"
	for _, n := range nodes {
		if n.got == nil || n.got.why != "" {
			continue
		}
		for i := range n.got.dump.HNS.Networks {
			if x := &n.got.dump.HNS.Networks[i]; x.Is(hns.Overlay) || x.Is(hns.L2Bridge) {
				c := im.byType(n, x)
				im.doubt(why + ": assuming " + c.name)
				return c
			}
		}
	}
	im.doubt(why + ": assuming win-bridge")
	return im.made("win-bridge", "cbr0", "")
}

// flannelBackend is the annotation by which a node shows flannel's backend (flannel-io/flannel
// pkg/subnet/kube/annotations.go).
const flannelBackend = "flannel.alpha.coreos.com/backend-type"

// flannel finds flannel by the annotations of nodes. Its configuration for Windows nodes is in
// no object of Kubernetes as nodes have it: kube-flannel-windows-cfg of sig-windows-tools is a
// form that a script on each node fills in.
func (im *importing) flannel() (c chosen, ok bool) {
	backend, from := im.backend()
	plugin := map[string]string{"host-gw": "win-bridge", "vxlan": "win-overlay"}[backend]
	if plugin == "" {
		return c, false
	}
	im.doubt("nothing in the bundle has flannel's configuration for Windows nodes: assuming one without policies")
	im.r.miss("flannel's configuration for Windows nodes",
		"nodes without files have endpoints without policies: no address translation and no routes of the plugin",
		`the files in C:\etc\cni\net.d or C:\k\cni\config`)
	data, _ := json.MarshalIndent(map[string]any{"cniVersion": "0.3.0", "name": "cbr0", "type": "flannel",
		"delegate": map[string]any{"type": plugin}}, "", "  ")
	return chosen{name: string(cni.PluginFlannel), conf: im.beside(im.extra("cni.conf", data)), from: from}, true
}

// otherPlugin recognises plugins of whose configuration nothing usable is there by what they leave in
// a cluster.
func (im *importing) otherPlugin() (name, from string) {
	for i := range im.kube {
		if n := &im.kube[i]; n.Annotations[calicoAddress] != "" {
			return "Calico", "annotation " + calicoAddress + " of node " + comment(n.Name)
		}
	}
	for _, name := range []struct{ configMap, plugin string }{{antreaConfig, "Antrea"}, {"calico-windows-config", "Calico"}} {
		if m, _ := im.configMap(name.configMap); m != nil {
			return name.plugin, "ConfigMap " + comment(m.Name)
		}
	}
	return "", ""
}

// byType concludes the plugin from a network of HNS.
func (im *importing) byType(n *labNode, x *hns.Network) chosen {
	because := fmt.Sprintf("network %s of %s is of type %s, and no configuration of a plugin is there", x.Name, n.name, x.Type)
	plugin := "win-bridge"
	switch {
	case x.Is(hns.Overlay):
		plugin = "win-overlay"
	case x.Is(hns.NAT):
		plugin = "nat"
	case x.Is(hns.Transparent) && n.kube != nil && oldRouting(n.kube.Status.NodeInfo.KubeletVersion):
		// Two guides of Kubernetes 1.5 are for Windows; the other one, Open vSwitch, has its
		// adapters in a bridge of its own, which is not in HNS.
		im.r.miss("the configuration of the network plugin", "nodes without files have routes as the guide of Kubernetes 1.5 for RRAS makes them",
			"route print on each node")
		return chosen{name: "rras", from: im.r.conclude("network plugin", "rras", because+
			", and Kubernetes 1.5 has guides for RRAS and Open vSwitch alone")}
	case x.Is(hns.L2Tunnel), strings.HasPrefix(strings.ToLower(x.Name), "azure"):
		plugin = "azure-vnet"
	case !x.Is(hns.L2Bridge):
		im.doubt(because + ": assuming " + plugin)
	}
	im.r.miss("the configuration of the network plugin", "Linux nodes, and Windows nodes without files, are assumed to be as "+plugin+
		" makes them", `the files in C:\etc\cni\net.d or C:\k\cni\config`)
	return im.made(plugin, x.Name, im.r.conclude("network plugin", plugin, because))
}

// oldRouting reports whether a version is the one of the guides without a network plugin.
func oldRouting(kubelet string) bool { return strings.HasPrefix(kubelet, "v1.5.") }

// made writes a configuration that says as little as possible.
func (im *importing) made(plugin, network, from string) chosen {
	v := map[string]any{"cniVersion": "0.3.0", "name": network, "type": plugin, "ipam": map[string]any{"type": "host-local"}}
	switch plugin {
	case "azure-vnet":
		v = map[string]any{"cniVersion": "0.3.0", "name": network,
			"plugins": []any{map[string]any{"type": plugin, "mode": "bridge", "bridge": "azure0",
				"ipam": map[string]any{"type": "azure-vnet-ipam"}}}}
	case "nat":
		v["ipam"] = map[string]any{"subnet": "172.20.0.0/16"}
	}
	data, _ := json.MarshalIndent(v, "", "  ") // maps of texts
	return chosen{name: plugin, conf: im.beside(im.extra("cni.conf", data)), from: from}
}

// netConf is flannel's own configuration: of its ConfigMap, or of a node, or what follows from
// the annotations of nodes and the range of pods.
func (im *importing) netConf(cluster netip.Prefix) (name, from string) {
	for _, o := range im.config {
		var c corev1.ConfigMap
		if json.Unmarshal(o.raw, &c) == nil && c.Data["net-conf.json"] != "" {
			im.r.Extra["net-conf.json"] = []byte(c.Data["net-conf.json"])
			return im.beside("net-conf.json"), im.r.fact("net-conf.json of flannel", "as it is", o.File, o.Line)
		}
	}
	for _, f := range im.b.Files {
		if strings.HasPrefix(path.Base(f), "net-conf") && path.Ext(f) == ".json" {
			return im.ref(f), im.r.fact("net-conf.json of flannel", "as it is", im.b.Shown(f), 1)
		}
	}
	const settle = "kubectl get configmap -n kube-flannel kube-flannel-cfg -o json"
	backend, from := im.backend()
	if backend == "" || !cluster.IsValid() {
		im.r.miss("net-conf.json of flannel", "the backend of flannel is not known", settle)
		return "", ""
	}
	im.r.miss("net-conf.json of flannel", "its backend is "+backend+
		", the rest (the range of pods, VNI, port) is assumed to have its defaults", settle)
	data, _ := json.MarshalIndent(map[string]any{"Network": cluster.String(), "Backend": map[string]any{"Type": backend}}, "", "  ")
	im.r.Extra["net-conf.json"] = append(data, '\n')
	return im.beside("net-conf.json"), from
}

// delegates are flannel's backends by the plugin that its CNI plugin delegates to on Windows
// (kubernetes-sigs/sig-windows-tools hostprocess/flannel: vxlan with win-overlay or sdnoverlay;
// host-gw networks are l2bridge, those of win-bridge and sdnbridge).
var delegates = map[string]string{"win-bridge": "host-gw", "sdnbridge": "host-gw", "win-overlay": "vxlan", "sdnoverlay": "vxlan"}

// backend is flannel's by the annotations of nodes, else by the configuration of its CNI
// plugin, "" where neither says it.
func (im *importing) backend() (name, from string) {
	for i := range im.kube {
		if n := &im.kube[i]; n.Annotations[flannelBackend] != "" {
			name = strings.ToLower(n.Annotations[flannelBackend])
			return name, im.r.fact("backend of flannel", name, n.at.File, n.at.Line)
		}
	}
	for _, f := range im.confs() {
		data, _ := im.b.Read(f)
		if to := delegateOf(data); delegates[to] != "" {
			name = delegates[to]
			return name, im.r.conclude("backend of flannel", name, "its CNI plugin delegates to "+to+" ("+comment(im.b.Shown(f))+")")
		}
	}
	return "", ""
}

// azureOverlay reports whether azure-vnet gives pods addresses outside of the virtual network
// (Azure/azure-container-networking cni/network, ipam mode): what that network does with them is set
// outside of the cluster.
func (im *importing) azureOverlay() bool {
	for _, f := range im.confs() {
		data, _ := im.b.Read(f)
		for _, p := range cni.Outlines(data) {
			if p.Type == string(cni.PluginAzure) && strings.Contains(strings.ToLower(p.IPAMMode), "overlay") {
				return true
			}
		}
	}
	return false
}

// delegateOf is the plugin that a CNI configuration delegates to, "" for none.
func delegateOf(conf []byte) string {
	for _, p := range cni.Outlines(conf) {
		if p.Delegate != "" {
			return p.Delegate
		}
	}
	return ""
}

// clusterCIDR is what kube-proxy has for it, which decides whose connections to a Service it
// masquerades.
func (im *importing) clusterCIDR(t tree, pods []netip.Prefix) netip.Prefix {
	for _, o := range im.config {
		var c corev1.ConfigMap
		var conf struct {
			ClusterCIDR string `json:"clusterCIDR"`
		}
		if json.Unmarshal(o.raw, &c) != nil || yaml.Unmarshal([]byte(c.Data["config.conf"]), &conf) != nil {
			continue
		}
		first, _, _ := strings.Cut(conf.ClusterCIDR, ",")
		if p, err := netip.ParsePrefix(first); err == nil {
			t.set("clusterCIDR", p.String(), im.r.fact("clusterCIDR of kube-proxy", conf.ClusterCIDR, o.File, o.Line))
			return p
		}
	}
	if pools := im.calicoPools(); len(pools) == 1 {
		if p, err := netip.ParsePrefix(pools[0].Spec.CIDR); err == nil {
			t.set("clusterCIDR", p.Masked().String(), im.r.fact("IP pool of Calico", p.Masked().String(), pools[0].at.File, pools[0].at.Line))
			im.r.miss("--cluster-cidr of kube-proxy", "whose connections to a Service Linux nodes masquerade follows from the IP pool of Calico",
				"kubectl get configmap -n kube-system kube-proxy -o json")
			return p.Masked()
		}
	}
	because := "the nodes' podCIDRs are in it"
	if len(pods) == 0 {
		because = "the pods' addresses are in it"
		for i := range im.pods {
			if a, err := netip.ParseAddr(im.pods[i].Status.PodIP); err == nil && a.Is4() && !im.pods[i].Spec.HostNetwork {
				pods = append(pods, netip.PrefixFrom(a, 32))
			}
		}
	}
	c := around(pods, 16)
	if c.IsValid() {
		t.set("clusterCIDR", c.String(), im.r.conclude("clusterCIDR", c.String(), because))
		im.r.miss("--cluster-cidr of kube-proxy",
			"whose connections to a Service Linux nodes masquerade follows from the range that was concluded",
			"kubectl get configmap -n kube-system kube-proxy -o json")
	}
	return c
}
