package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Every plugin that winlab models can be in the lab of a bundle, with its configuration from a
// node's files or from the object of Kubernetes out of which nodes get it. What a configuration
// says only in part is filled in as the plugin's own scripts do, and what is still open is said.

// chosen is the network plugin of a lab.
type chosen struct {
	name string
	// conf is its CNI configuration, netConf the second file that flannel and Antrea have, as the
	// lab names them; from and netFrom say where they come from.
	conf, from, netConf, netFrom string
}

// given takes the configuration in a file of the bundle.
func (im *importing) given(f string, nodes []*labNode) (c chosen, ok bool) {
	raw, _ := im.b.Read(f)
	data := bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	p := cni.TypeOf(pluginOf(data))
	if p == "" {
		im.r.conclude("network plugin", pluginOf(data), "winlab has no model of "+pluginOf(data)+
			": collected nodes are what their HNS has, other nodes what a plugin with such a network makes")
		return c, false
	}
	c = chosen{name: string(p), from: im.b.Shown(f) + ":1"}
	if p == cni.PluginAntrea && !im.withAgent(&c) || !im.taken(p, im.b.Shown(f), data, c) {
		im.doubt("the configuration of " + string(p) + " in " + comment(im.b.Shown(f)) + " is refused, by the plugin or by winlab's model of it")
		return c, false
	}
	im.r.fact("network plugin", string(p), im.b.Shown(f), 1)
	c.conf = im.forAll(f, data, nodes)
	im.configured(f, data, nodes)
	return c, true
}

// configured notes which nodes have the configuration that was taken.
func (im *importing) configured(f string, data []byte, nodes []*labNode) {
	own := func(n *labNode, data []byte) []byte {
		if !n.address.IsValid() {
			return data
		}
		return replaceAddress(data, n.address, cni.ManagementIPToken)
	}
	for _, n := range nodes {
		if n.got != nil && n.got.conf == f {
			im.r.Config, im.r.ConfigFrom = own(n, data), im.b.Shown(f)
		}
	}
	for _, n := range nodes {
		if n.got == nil || n.got.conf == "" || im.r.Config == nil {
			continue
		}
		raw, _ := im.b.Read(n.got.conf)
		same := bytes.Equal(own(n, bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))), im.r.Config)
		for i := range im.r.Nodes {
			if x := &im.r.Nodes[i]; x.Name == n.name {
				x.Configured = same
			}
		}
	}
}

// taken reports whether a configuration is one that the plugin takes and winlab has a model of.
func (im *importing) taken(p cni.Name, from string, data []byte, c chosen) bool {
	conf, err := cni.ParseConf(from, data)
	if err == nil && p != cni.PluginFlannel { // which is nothing without its net-conf.json
		o := cni.Options{Plugin: p, Conf: conf}
		if c.netConf != "" {
			o.Agent = im.agent
		}
		_, err = cni.New(o)
	}
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			im.r.LeftOut = append(im.r.LeftOut, comment(line))
		}
	}
	return err == nil
}

// forAll makes of a node's configuration one of all nodes: the node's own address in it, which
// scripts write there, is each node's own.
func (im *importing) forAll(f string, data []byte, nodes []*labNode) string {
	if !slices.ContainsFunc(nodes, func(n *labNode) bool { return n.os == "windows" && !n.loaded }) {
		return im.ref(f)
	}
	for _, n := range nodes {
		if n.got == nil || n.got.conf != f || !n.address.IsValid() {
			continue
		}
		if own := replaceAddress(data, n.address, cni.ManagementIPToken); !bytes.Equal(own, data) {
			im.r.conclude("the CNI configuration of nodes without files", comment(im.b.Shown(f)), "that of "+n.name+
				" has the node's own address, which is replaced by theirs")
			return im.beside(im.extra("cni.conf", own))
		}
	}
	return im.ref(f)
}

// replaceAddress replaces an address by a text, but not inside of a longer address.
func replaceAddress(data []byte, a netip.Addr, by string) []byte {
	text, of := string(data), a.String()
	part := func(c byte) bool { return c >= '0' && c <= '9' || c == '.' }
	var out strings.Builder
	for {
		i := strings.Index(text, of)
		if i < 0 {
			out.WriteString(text)
			return []byte(out.String())
		}
		end := i + len(of)
		if i > 0 && part(text[i-1]) || end < len(text) && part(text[end]) {
			out.WriteString(text[:end])
		} else {
			out.WriteString(text[:i] + by)
		}
		text = text[end:]
	}
}

// extra keeps a file that is beside the lab.
func (im *importing) extra(name string, data []byte) string {
	im.r.Extra[name] = append(bytes.TrimRight(data, "\n"), '\n')
	return name
}

// configMap finds a ConfigMap by the beginning of its name, and where it stands: Antrea's older
// manifests end the name with a hash.
func (im *importing) configMap(name string) (c *corev1.ConfigMap, at object) {
	for _, o := range im.config {
		var v corev1.ConfigMap
		if json.Unmarshal(o.raw, &v) == nil && (v.Name == name || strings.HasPrefix(v.Name, name+"-")) && (c == nil || v.Name == name) {
			c, at = &v, o
		}
	}
	return c, at
}

// fits reports whether the HNS that was seen has networks of a type, or none at all: what an object
// says of another plugin is not what these nodes have.
func (im *importing) fits(plugin, from string, nodes []*labNode, types ...hns.NetworkType) bool {
	for _, n := range nodes {
		if n.got == nil || n.got.why != "" || n.got.dump == nil || n.got.dump.HNS == nil {
			continue
		}
		all := slices.DeleteFunc(slices.Clone(n.got.dump.HNS.Networks), func(x hns.Network) bool { return x.Is(hns.NAT, hns.ICS) })
		if len(all) > 0 && !slices.ContainsFunc(all, func(x hns.Network) bool { return x.Is(types...) }) {
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s: it is of %s, and HNS of %s has no network of type %s", comment(from), plugin,
				n.name, types[0]))
			return false
		}
	}
	return true
}

// antreaConfig is the ConfigMap of Windows nodes with antrea-agent.conf and antrea-cni.conflist, and
// antreaLinux that of Linux nodes (antrea-io/antrea build/charts/antrea-windows/templates/configmaps,
// commit 83c7617).
const (
	antreaConfig = "antrea-windows-config"
	antreaLinux  = "antrea-config"
)

// antrea finds Antrea by the ConfigMap from which its Windows nodes have their configuration.
func (im *importing) antrea(nodes []*labNode) (c chosen, ok bool) {
	m, at := im.configMap(antreaConfig)
	if m == nil {
		return c, false
	}
	from := fmt.Sprintf("%s:%d", at.File, at.Line)
	text := m.Data["antrea-cni.conflist"]
	if text == "" {
		im.r.miss("the CNI configuration of Antrea", "it is as its manifest has it", `C:\etc\cni\net.d\10-antrea.conflist of a node`)
		text = `{"cniVersion": "0.3.0", "name": "antrea", "plugins": [{"type": "antrea", "ipam": {"type": "host-local"}, "capabilities": {"dns": true}}]}`
	}
	c = chosen{name: string(cni.PluginAntrea), from: from}
	if !im.fits("Antrea", from, nodes, hns.Transparent) || !im.withAgent(&c) || !im.taken(cni.PluginAntrea, from, []byte(text), c) {
		return c, false
	}
	im.r.fact("network plugin", c.name, at.File, at.Line)
	c.conf = im.beside(im.extra("cni.conf", []byte(text)))
	return c, true
}

// withAgent finds antrea-agent.conf, and reports whether winlab has a model of what it says. A lab has
// one for all nodes (cni.antrea-linux-conf).
func (im *importing) withAgent(c *chosen) bool {
	if off := im.antreaOff(); off != "" {
		im.r.LeftOut = append(im.r.LeftOut, off+", though the cluster has Antrea: its model is not used")
		return false
	}
	const name = "antrea-agent.conf"
	settle := "kubectl get configmap -n kube-system " + antreaConfig + " " + antreaLinux + " -o json"
	windows, at := im.configMap(antreaConfig)
	linux, linuxAt := im.configMap(antreaLinux)
	var text []byte
	switch i := slices.IndexFunc(im.b.Files, func(f string) bool { return path.Base(f) == name }); {
	case i >= 0:
		text, _ = im.b.Read(im.b.Files[i])
		c.netFrom = im.r.fact(name, "as it is", im.b.Shown(im.b.Files[i]), 1)
	case windows != nil && windows.Data[name] != "":
		text, c.netFrom = []byte(windows.Data[name]), im.r.fact(name+" of Windows nodes", "as it is", at.File, at.Line)
	case linux != nil && linux.Data[name] != "":
		text, c.netFrom = []byte(linux.Data[name]), im.r.fact(name+" of Linux nodes", "as it is", linuxAt.File, linuxAt.Line)
		im.open(name+" of Windows nodes",
			"that of Linux nodes stands for it: whether Windows nodes have the same mode, and proxyAll, is not shown", settle)
	default:
		im.open(name,
			"nothing shows the mode, the tunnel and proxyAll of Antrea: assuming encap with Geneve, and that AntreaProxy does not serve connections of the host itself", settle)
		return true
	}
	a, err := cni.ParseAntreaAgent(name, text)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			im.r.LeftOut = append(im.r.LeftOut, comment(c.netFrom+": "+line))
		}
		return false
	}
	if linux != nil && linux.Data[name] != "" {
		b, err := cni.ParseAntreaAgent(name, []byte(linux.Data[name]))
		if err != nil {
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: %s", linuxAt.File, linuxAt.Line, comment(err.Error())))
			return false
		}
		if a.Encap != b.Encap || a.Tunnel != b.Tunnel || a.TunnelPort != b.TunnelPort || a.NoSNAT != b.NoSNAT {
			im.r.LeftOut = append(im.r.LeftOut,
				fmt.Sprintf(
					"%s:%d: Linux nodes have the mode %s with %s (port %d, noSNAT %v), Windows nodes %s with %s (port %d, noSNAT %v): winlab models one for all", linuxAt.File, linuxAt.Line,
					b.Encap, b.Tunnel, b.TunnelPort, b.NoSNAT, a.Encap, a.Tunnel, a.TunnelPort, a.NoSNAT))
			return false
		}
		if b.ProxyAll && len(text) > 0 {
			im.open("proxyAll of Linux nodes",
				"AntreaProxy serves connections of Linux nodes themselves there, and the model has kube-proxy for these", settle)
		}
	}
	im.agent = a
	c.netConf = im.beside(im.extra(name, text))
	return true
}

// open notes what the bundle leaves open about a plugin: nodes that were not observed say so.
func (im *importing) open(what, leaves, settle string) {
	im.r.miss(what, leaves, settle)
	im.doubt(leaves)
}

// doubt adds a reason why nodes of which there are no files may not be as the lab makes them.
func (im *importing) doubt(why string) {
	if im.guess != "" {
		im.guess += "; "
	}
	im.guess += why
}

// vpcAddress is what the VPC resource controller writes on a pod of a Windows node, with the prefix
// length of the subnet (aws/amazon-vpc-cni-plugins plugins/vpc-bridge/config/kubernetes.go
// vpcResourceNameIPAddress).
const vpcAddress = "vpc.amazonaws.com/PrivateIPv4Address"

// vpcSubnet takes the subnet of a node of EKS from an annotation of one of its pods.
func (im *importing) vpcSubnet(n *labNode) {
	for i := range im.pods {
		p := &im.pods[i]
		s, err := netip.ParsePrefix(p.Annotations[vpcAddress])
		if err != nil || p.Spec.NodeName != n.name || n.prefix.IsValid() || !s.Masked().Contains(n.address) || s.Bits() > 30 {
			continue
		}
		n.prefix = s.Masked()
		im.r.fact("network of "+n.name, n.prefix.String(), p.at.File, p.at.Line)
	}
}

// vpcGateways gives nodes the router of their subnet.
func (im *importing) vpcGateways(nodes []*labNode) {
	for _, n := range nodes {
		if !n.gateway.IsValid() && n.prefix.IsValid() {
			n.gateway = n.prefix.Masked().Addr().Next()
			im.r.conclude("default gateway of "+n.name, n.gateway.String(),
				"the first address of a subnet of a VPC is its router (Amazon VPC User Guide, Subnet CIDR blocks)")
		}
	}
}

// vpcBridge finds EKS with its own addresses for pods of Windows nodes, by the ConfigMap that turns them
// on. The plugin's configuration is written on each node (fixtures: vpc-bridge.conf in
// C:\ProgramData\Amazon\EKS\cni\config) and is in no object.
func (im *importing) vpcBridge(nodes []*labNode) (c chosen, ok bool) {
	m, at := im.configMap("amazon-vpc-cni")
	if m == nil || m.Data["enable-windows-ipam"] != "true" {
		return c, false
	}
	from := fmt.Sprintf("%s:%d", at.File, at.Line)
	if !im.fits("vpc-bridge", from, nodes, hns.L2Bridge) {
		return c, false
	}
	bits, gateway := 0, netip.Addr{}
	im.vpcGateways(nodes)
	var others []string
	for _, n := range nodes {
		switch {
		case n.os != "windows" || n.loaded:
		case bits == 0:
			bits, gateway = n.prefix.Bits(), n.gateway
		case n.prefix.Bits() != bits || n.gateway != gateway:
			others = append(others, n.name)
		}
	}
	v := map[string]any{"cniVersion": "0.4.0", "name": "vpc", "type": "vpc-bridge", "capabilities": map[string]any{"portMappings": true},
		"eniName":        "Ethernet",
		"eniIPAddresses": []string{fmt.Sprintf("%s/%d", cni.ManagementIPToken, max(bits, 1))}}
	if gateway.IsValid() {
		v["gatewayIPAddress"] = gateway.String()
	}
	service, dns := im.serviceRange()
	if service.IsValid() {
		v["serviceCIDR"] = service.String()
		im.r.conclude("serviceCIDR of vpc-bridge", service.String(), "the ClusterIPs are in it")
	}
	if dns != "" {
		v["dns"] = map[string]any{"nameservers": []string{dns}, "search": []string{"{%namespace%}.svc.cluster.local", "svc.cluster.local",
			"cluster.local"}}
	}
	const conf = `C:\ProgramData\Amazon\EKS\cni\config\vpc-bridge.conf`
	im.open("vpcCIDRs of vpc-bridge",
		"nothing shows which ranges the VPC has: connections of pods to other subnets of it leave with the node's address, as without them", conf+
			" of a node, or: aws ec2 describe-vpcs")
	if !service.IsValid() {
		im.open("serviceCIDR of vpc-bridge", "nothing shows the range of Services, so pods have no exception and no route for it", conf+
			" of a node, or: aws eks describe-cluster")
	}
	if len(others) > 0 {
		im.open("the gateways of "+strings.Join(others, ", "),
			"they are in another subnet than the first Windows node, and a lab has one gateway for all", conf+" of each")
	}
	data, _ := json.MarshalIndent(v, "", "  ")
	c = chosen{name: string(cni.PluginVPCBridge), from: from}
	if !im.taken(cni.PluginVPCBridge, from, data, c) {
		return c, false
	}
	im.r.fact("network plugin", c.name, at.File, at.Line)
	c.conf = im.beside(im.extra("cni.conf", data))
	return c, true
}

// serviceRange is the range around the ClusterIPs, and the address of the cluster DNS.
func (im *importing) serviceRange() (all netip.Prefix, dns string) {
	var services []netip.Prefix
	for _, o := range im.services {
		var v corev1.Service
		if json.Unmarshal(o.raw, &v) != nil {
			continue
		}
		if a, err := netip.ParseAddr(v.Spec.ClusterIP); err == nil && a.Is4() {
			services = append(services, netip.PrefixFrom(a, 32))
			if v.Labels["k8s-app"] == "kube-dns" {
				dns = a.String()
			}
		}
	}
	return around(services, 12), dns
}
