package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// tree is a map of the lab file that is being written, with comments.
type tree struct{ n *yaml.Node }

func newTree() tree { return tree{&yaml.Node{Kind: yaml.MappingNode}} }

// set adds a field; from is where its value comes from, "" where that needs no word.
func (t tree) set(key string, value any, from string) {
	var v yaml.Node
	switch value := value.(type) {
	case tree:
		v = *value.n
	case []tree:
		v = yaml.Node{Kind: yaml.SequenceNode}
		for _, x := range value {
			v.Content = append(v.Content, x.n)
		}
	default:
		if err := v.Encode(value); err != nil {
			return // texts, numbers and lists of texts can be written
		}
		if v.Kind == yaml.SequenceNode {
			v.Style = yaml.FlowStyle
		}
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Value: key}
	if from != "" {
		if v.Kind == yaml.ScalarNode {
			v.LineComment = "# " + comment(from)
		} else {
			k.HeadComment = "# " + comment(from)
		}
	}
	t.n.Content = append(t.n.Content, k, &v)
}

// labNode is a node of the lab while it is made.
type labNode struct {
	name, os string
	address  netip.Addr
	kube     *kubeNode
	got      *collected
	pods     string       // its podCIDR, "" for none
	prefix   netip.Prefix // of its segment
	gateway  netip.Addr
	tree     tree
	// loaded says that its HNS is that of its files, vtep is the MAC address of its tunnel device.
	loaded bool
	vtep   string
	// doubts are the reasons why the node may differ from what the lab makes.
	doubts []string
}

// lab writes the lab.
func (im *importing) lab(name string) error {
	im.sorted()
	nodes := im.labNodes()
	if len(nodes) == 0 {
		return fmt.Errorf("%s has no node that can be imported: %s%s", im.b.Path, strings.Join(im.r.LeftOut, "; "), im.describeUnusable())
	}
	s := newTree()
	im.version(s, nodes)
	plugin := im.network(s, nodes)
	im.r.plugin = plugin
	im.fabric(s, nodes, plugin)
	var list []tree
	for _, n := range nodes {
		if len(n.doubts) > 0 {
			if im.guess != "" {
				n.doubts = append(n.doubts, im.guess)
			}
			if im.noPolicies != "" {
				n.doubts = append(n.doubts, im.noPolicies)
			}
			n.tree.set("assumed", strings.Join(n.doubts, "; "), "")
		}
		list = append(list, n.tree)
		im.drift(n)
	}
	s.set("nodes", list, "")
	im.labPods(s, nodes)
	if err := im.manifest(s); err != nil {
		return err
	}
	dns := newTree()
	dns.set("off", true, "")
	s.set("dns", dns, "names are not resolved here: write flows with pods, Services and addresses")
	root, meta := newTree(), newTree()
	root.set("apiVersion", labfile.APIVersion, "")
	root.set("kind", labfile.Kind, "")
	meta.set("name", name, "")
	meta.set("title", "imported from "+comment(im.b.Path), "")
	root.set("metadata", meta, "")
	root.set("spec", s, "")
	var out bytes.Buffer
	out.WriteString("# Made by winlab import. A comment says where a value was read, or from what it was concluded.\n")
	for _, m := range im.r.Missing {
		fmt.Fprintf(&out, "# Missing: %s. %s.", comment(m.What), comment(m.Leaves))
		if m.Settle != "" {
			fmt.Fprintf(&out, " To settle it: %s", comment(m.Settle))
		}
		out.WriteByte('\n')
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root.n); err != nil {
		return err
	}
	im.r.Lab = out.Bytes()
	return nil
}

// labNodes are the nodes of Kubernetes, and those that only the bundle's files know.
func (im *importing) labNodes() []*labNode {
	var all []*labNode
	taken := map[*collected]bool{}
	for i := range im.kube {
		k := &im.kube[i]
		n := &labNode{name: k.Name, os: systemOf(&k.Node), kube: k, address: internalIP(&k.Node)}
		for _, c := range im.nodes {
			if !taken[c] && strings.EqualFold(c.name, k.Name) {
				n.got, taken[c] = c, true
			}
		}
		if n.os == "" && n.got != nil {
			n.os = "windows" // only nodes with Windows are collected
		}
		all = append(all, n)
	}
	for _, c := range im.nodes {
		if !taken[c] {
			all = append(all, &labNode{name: c.name, os: "windows", got: c})
		}
	}
	all = slices.DeleteFunc(all, func(n *labNode) bool { return !im.node(n) })
	return all
}

// systemOf is the operating system of a node as its kubelet says it, in the node's status or in
// its labels; "" where neither says it.
func systemOf(n *corev1.Node) string {
	return strings.ToLower(cmp.Or(n.Status.NodeInfo.OperatingSystem, n.Labels[corev1.LabelOSStable], n.Labels["beta.kubernetes.io/os"]))
}

// node fills a node in, and reports whether the lab can have it.
func (im *importing) node(n *labNode) bool {
	n.tree = newTree()
	at := func(what, value string) string {
		if n.kube == nil {
			return ""
		}
		return im.r.fact(what+" of "+n.name, value, n.kube.at.File, n.kube.at.Line)
	}
	n.tree.set("name", n.name, at("name", n.name))
	if n.os != "windows" && n.os != "linux" {
		said := "nothing says"
		if n.os != "" {
			said = fmt.Sprintf("%q says", n.os)
		}
		im.r.miss("the operating system of node "+n.name, said+
			" whether it has Windows or Linux: the node and its pods are not in the lab, and flows to its address are unknown", "kubectl get node "+
			n.name+" -o jsonpath='{.status.nodeInfo.operatingSystem}'")
		im.r.LeftOut = append(im.r.LeftOut, "node "+n.name+": "+said+" which operating system it has")
		return false
	}
	n.tree.set("os", n.os, "")
	from := ""
	switch {
	case n.address.IsValid():
		from = at("InternalIP", n.address.String())
	case n.got != nil && n.got.dump != nil && n.got.dump.HNS != nil:
		n.address, from = im.ownAddress(n)
	}
	if !n.address.IsValid() {
		im.r.miss("the address of node "+n.name, "the node is not in the lab", "kubectl get nodes -o json")
		im.r.LeftOut = append(im.r.LeftOut, "node "+n.name+
			": no address of it is known; take one with: kubectl get nodes -o json, or ipconfig /all and Get-HnsNetwork on the node")
		return false
	}
	n.tree.set("address", n.address.String(), from)
	if p, from := im.block(n); p.IsValid() {
		n.pods = p.String()
		n.tree.set("podCIDR", n.pods, from)
	} else if n.pods = im.podCIDR(n); n.pods != "" {
		n.tree.set("podCIDR", n.pods, at("podCIDR", n.pods))
	}
	im.vtep(n)
	im.vpcSubnet(n)
	if n.os == "linux" {
		var ports []string
		if _, ok := n.kube.Labels["node-role.kubernetes.io/control-plane"]; ok {
			ports = append(ports, "tcp/6443")
			im.r.conclude("listen of "+n.name, "tcp/6443", "it has the role control-plane")
		} else {
			ports = append(ports, "tcp/10250")
		}
		n.tree.set("listen", ports, "")
		n.doubts = append(n.doubts, "no bundle has the state of a Linux node")
		im.network4(n)
	} else {
		im.windows(n)
	}
	return true
}

// podCIDR is the IPv4 range of a node's pods, "" where it has no range, or where its pods have addresses
// of another one: the controller manager gives nodes ranges that plugins with addresses of their own
// (Amazon's, Azure's, Calico's IPAM) do not use.
func (im *importing) podCIDR(n *labNode) string {
	if n.kube == nil {
		return ""
	}
	var found netip.Prefix
	for _, text := range append([]string{n.kube.Spec.PodCIDR}, n.kube.Spec.PodCIDRs...) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() && !found.IsValid() {
			found = p
		}
	}
	for i := range im.pods {
		p := &im.pods[i]
		a, err := netip.ParseAddr(p.Status.PodIP)
		if err != nil || !a.Is4() || p.Spec.NodeName != n.name || p.Spec.HostNetwork || !running(p) || p.unsure != "" || !found.IsValid() ||
			found.Contains(a) {
			continue
		}
		im.r.conclude("podCIDR of "+n.name, "none", fmt.Sprintf("pod %s/%s has %s there, outside of the node's %s (%s:%d)", p.Namespace, p.Name,
			a, found, p.at.File, p.at.Line))
		return ""
	}
	if !found.IsValid() {
		return ""
	}
	return found.String()
}

// backendData is the annotation in which flanneld says the MAC address of a node's tunnel device
// (flannel-io/flannel pkg/subnet/kube/annotations.go).
const backendData = "flannel.alpha.coreos.com/backend-data"

// vtep takes the MAC address of a node's tunnel device.
func (im *importing) vtep(n *labNode) {
	var d struct{ VtepMAC string }
	if n.kube != nil && json.Unmarshal([]byte(n.kube.Annotations[backendData]), &d) == nil && d.VtepMAC != "" {
		n.vtep = d.VtepMAC
		n.tree.set("vtepMAC", d.VtepMAC, im.r.fact("VtepMAC of "+n.name, d.VtepMAC, n.kube.at.File, n.kube.at.Line))
	}
}

// ownAddress is a node's address as its own files say it.
func (im *importing) ownAddress(n *labNode) (netip.Addr, string) {
	for _, x := range n.got.dump.HNS.Networks {
		if x.ManagementIP.IsValid() && x.ManagementIP.Is4() {
			o := x.Origin
			if o == nil {
				return x.ManagementIP, ""
			}
			return x.ManagementIP, im.r.fact("ManagementIP of "+n.name, x.ManagementIP.String(), o.File, o.Line)
		}
	}
	for _, r := range n.got.dump.Routes {
		if r.To.Bits() != 0 || !r.Via.Is4() {
			continue
		}
		for _, a := range n.got.dump.Adapters {
			for _, p := range a.Addresses {
				if p.Masked().Contains(r.Via) {
					return p.Addr(), im.r.fact("address of "+n.name+" on the way to its gateway", p.Addr().String(), a.Place.File, a.Place.Line)
				}
			}
		}
	}
	return netip.Addr{}, ""
}

// windows fills in what a Windows node has.
func (im *importing) windows(n *labNode) {
	im.build(n)
	im.network4(n)
	if n.got == nil || n.got.why != "" {
		why := "the bundle has no files of it"
		if n.got != nil {
			why = n.got.why
		}
		n.doubts = append(n.doubts, comment(why))
		im.r.miss("HNS of node "+n.name, why+
			": winlab assumes that it is as its plugin and kube-proxy make it, and verdicts of flows that meet it say so", "winlab.exe collect "+
			n.name+".zip, on the node")
		return
	}
	if im.openVSwitch(n) {
		return
	}
	n.loaded = true
	var refs []string
	for _, f := range n.got.files {
		refs = append(refs, im.ref(f))
		if d := im.read[f]; d != nil && len(d.Files) > 0 {
			im.r.fact(strings.Join(d.Files[0].As, ", ")+" of "+n.name, "as it is", im.b.Shown(f), 1)
		}
	}
	n.tree.set("hnsDump", refs, "")
	im.noBalancers(n)
	if len(n.got.dump.Routes) == 0 || n.got.dump.OnlyGateways {
		im.r.miss("routes of node "+n.name, "packets that its own stack passes on take the routes that follow from its addresses", "route print")
	}
	if !slices.ContainsFunc(n.got.dump.Interfaces, func(i dump.Interface) bool { return i.Shown }) {
		im.r.miss("whether node "+n.name+" forwards between its interfaces", "flows that its own stack would have to pass on are unknown",
			"Get-NetIPInterface | Select-Object ifIndex,InterfaceAlias,AddressFamily,Forwarding")
	}
}

// build says which build of Windows a node has, or what is known of it.
func (im *importing) build(n *labNode) {
	what, leaves := "the build of Windows of node "+n.name,
		"a flow that comes to the node is followed on every build that it may have, and unknown where they differ"
	settle := "kubectl get node " + n.name +
		" -o jsonpath='{.status.nodeInfo.kernelVersion}', or on the node: cmd /c ver; then --windows BUILD, or build: in the lab"
	var strange string
	for _, s := range buildSources(n) {
		text := strings.TrimSpace(s.text)
		all, err := builds.Candidates([]string{text})
		switch {
		case err != nil:
			strange = cmp.Or(strange, text)
			continue
		case len(all) == 1 && all[0].Build.Version == all[0].Last:
			im.r.Facts = append(im.r.Facts, Fact{"build of " + n.name, text, s.from})
			n.tree.set("build", text, s.from)
		default:
			im.r.Facts = append(im.r.Facts, Fact{"build of " + n.name + " without its revision", text, s.from})
			n.tree.set("builds", []string{text}, s.from+", without the revision")
			im.r.miss("the revision of "+what, leaves, settle)
		}
		return
	}
	if strange != "" {
		what += fmt.Sprintf(" (%q is not known to winlab)", strange)
		n.doubts = append(n.doubts, fmt.Sprintf("its build %s is not known to winlab; assuming that it behaves like the known builds",
			comment(strange)))
	}
	if at := hcnV2(n); at != nil && strange == "" {
		because := fmt.Sprintf("HNS shows objects of the HCN v2 API (%s:%d), which Windows Server 2019 is the first to have", at.File, at.Line)
		n.tree.set("builds", []string{">=10.0.17763"}, im.r.conclude("build of "+n.name, ">=10.0.17763", because))
	} else {
		n.tree.set("build", builds.Unknown, "nothing in the bundle says it")
	}
	im.r.miss(what, leaves, settle)
}

// noBalancers notes that it is unknown whether a node has load balancers when no file shows one:
// what one script lists and another does not looks alike. The collector lists them always.
func (im *importing) noBalancers(n *labNode) {
	if len(n.got.dump.HNS.LoadBalancers) > 0 || len(im.services) == 0 || im.b.Manifest != nil {
		return
	}
	const settle = "Get-HnsPolicyList | ConvertTo-Json -Depth 20"
	n.doubts = append(n.doubts, "no file shows a load balancer of it; whether it has any is unknown; take: "+settle)
	if !slices.ContainsFunc(im.r.Missing, func(m Missing) bool { return m.What == "load balancers of node "+n.name }) {
		im.r.miss("load balancers of node "+n.name,
			"no file shows one: either it has none, or they were not listed; verdicts of flows that come to the node say so", settle)
	}
}

// hcnV2 is where a node's files show an object that HCN v2 made, nil where they show none: HNS v1 writes no
// version of a schema with a major number of 2 (microsoft/hcsshim hcn/hcnglobals.go V2ApiSupport).
func hcnV2(n *labNode) *trace.Origin {
	if n.got == nil || n.got.dump == nil || n.got.dump.HNS == nil {
		return nil
	}
	d := n.got.dump.HNS
	for i := range d.Endpoints {
		if e := &d.Endpoints[i]; e.SchemaVersion.Major == 2 && e.Origin != nil {
			return e.Origin
		}
	}
	for i := range d.Networks {
		if x := &d.Networks[i]; x.SchemaVersion.Major == 2 && x.Origin != nil {
			return x.Origin
		}
	}
	return nil
}

// network4 finds a node's network and its gateway.
func (im *importing) network4(n *labNode) {
	if n.got == nil || n.got.dump == nil {
		return
	}
	for _, a := range n.got.dump.Adapters {
		for _, p := range a.Addresses {
			if p.Addr() == n.address && p.Bits() < 32 {
				n.prefix = p.Masked()
				im.r.fact("network of "+n.name, n.prefix.String(), a.Place.File, a.Place.Line)
			}
		}
	}
	for _, r := range n.got.dump.Routes {
		if r.To.Bits() == 0 && r.Via.Is4() && !r.Via.IsUnspecified() {
			n.gateway = r.Via
			im.r.fact("default gateway of "+n.name, r.Via.String(), r.Place.File, r.Place.Line)
			break
		}
	}
}

// version is that of the newest kubelet, with others at their nodes.
func (im *importing) version(s tree, nodes []*labNode) {
	minor := func(n *labNode) string {
		if n.kube == nil {
			return ""
		}
		parts := strings.SplitN(strings.TrimPrefix(n.kube.Status.NodeInfo.KubeletVersion, "v"), ".", 3)
		if len(parts) < 2 {
			return ""
		}
		return parts[0] + "." + strings.TrimRight(parts[1], "+")
	}
	first := ""
	for _, n := range nodes {
		v := minor(n)
		switch {
		case v == "":
		case first == "":
			first = v
			s.set("kubernetes", v, im.r.fact("kubelet of "+n.name, n.kube.Status.NodeInfo.KubeletVersion, n.kube.at.File, n.kube.at.Line))
		case v != first:
			n.tree.set("kubernetes", v, im.r.fact("kubelet of "+n.name, n.kube.Status.NodeInfo.KubeletVersion, n.kube.at.File, n.kube.at.Line))
		}
	}
	if first == "1.5" || first == "1.6" || first == "1.7" {
		// pkg/proxy/winkernel is in kubernetes/kubernetes since 1.8 (pull request 51064).
		p := newTree()
		p.set("mode", "userspace", "")
		s.set("proxy", p, im.r.conclude("mode of kube-proxy", "userspace", "on Windows kube-proxy "+first+" has no other"))
	}
	if first == "" {
		im.r.miss("the version of Kubernetes", "it is winlab's default; HNS objects of nodes are as they are, whatever the version",
			"kubectl get nodes -o json")
	}
}

// subnets finds the networks of nodes.
func (im *importing) subnets(nodes []*labNode) (prefixes []netip.Prefix) {
	for _, n := range nodes {
		if n.prefix.IsValid() && !slices.Contains(prefixes, n.prefix) {
			prefixes = append(prefixes, n.prefix)
		}
	}
	for _, n := range nodes {
		if n.prefix.IsValid() {
			continue
		}
		if i := slices.IndexFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(n.address) }); i >= 0 {
			n.prefix = prefixes[i]
			im.r.conclude("network of "+n.name, n.prefix.String(), "its address is in the network of another node")
			continue
		}
		n.prefix, _ = n.address.Prefix(24)
		prefixes = append(prefixes, n.prefix)
		im.r.conclude("network of "+n.name, n.prefix.String(), "nothing says how long it is; most are /24")
	}
	return prefixes
}

// fabric writes the segments of the nodes, and their gateways as routers that were not observed.
func (im *importing) fabric(s tree, nodes []*labNode, plugin string) {
	prefixes := im.prefixes
	var segments, routers []tree
	azure := plugin == string(cni.PluginAzure) && !im.azureOverlay()
	if azure {
		im.r.conclude("the nodes' network", "a virtual network of Azure", "azure-vnet gives pods addresses of one")
		im.r.miss("security groups and user-defined routes of the virtual network", "the network carries everything, and routes by address",
			"az network nsg list, az network route-table list")
	}
	if plugin == string(cni.PluginVPCBridge) {
		im.r.miss("security groups and route tables of the VPC", "the network carries everything, and no node's source addresses are checked",
			"aws ec2 describe-security-groups, describe-route-tables")
	}
	names := map[netip.Prefix]string{}
	for i, p := range prefixes {
		names[p] = "nodes"
		if i > 0 {
			names[p] = fmt.Sprintf("nodes%d", i+1)
		}
		g := newTree()
		g.set("name", names[p], "")
		g.set("subnet", p.String(), "")
		g.set("unknown", "the bundle does not say what else is in the network "+p.String()+
			" of the nodes; collect on the node that has the address, or ask who runs the network", "")
		if azure {
			g.set("azure", true, "concluded: azure-vnet gives pods addresses of a virtual network of Azure")
		}
		segments = append(segments, g)
	}
	seen := map[netip.Addr]bool{}
	for _, n := range nodes {
		n.tree.set("segment", names[n.prefix], "")
		gw := n.gateway
		if !gw.IsValid() { // of another node there
			for _, o := range nodes {
				if o.prefix == n.prefix && o.gateway.IsValid() {
					gw = o.gateway
				}
			}
		}
		if !gw.IsValid() || !n.prefix.Contains(gw) {
			continue
		}
		n.tree.set("gateway", gw.String(), "")
		if seen[gw] {
			continue
		}
		seen[gw] = true
		r, leg := newTree(), newTree()
		leg.set("segment", names[n.prefix], "")
		leg.set("address", netip.PrefixFrom(gw, n.prefix.Bits()).String(), "")
		r.set("name", "gw-"+strings.ReplaceAll(gw.String(), ".", "-"), "")
		r.set("interfaces", []tree{leg}, "")
		r.set("unknown", "the bundle does not say what "+gw.String()+", the gateway of "+n.name+
			", does with packets; ask who runs the network for its routes and rules, or trace there: Test-NetConnection ADDRESS -TraceRoute", "")
		routers = append(routers, r)
	}
	f := newTree()
	f.set("segments", segments, "")
	if len(routers) > 0 {
		f.set("routers", routers, "")
		im.r.miss("the network around the nodes: routes and rules of their gateways",
			"flows that leave the nodes' network are unknown from there on", "the routes and rules of the network, from who runs it")
	}
	s.set("fabric", f, "")
}

// manifest writes Services, and what else of Kubernetes a lab reads, into a file beside it.
func (im *importing) manifest(s tree) error {
	var out bytes.Buffer
	selectors := map[string]bool{}
	add := func(o object, keep ...string) error {
		var v map[string]any
		if err := json.Unmarshal(o.raw, &v); err != nil {
			return err
		}
		if m, ok := v["metadata"].(map[string]any); ok {
			v["metadata"] = map[string]any{"name": m["name"], "namespace": m["namespace"], "labels": m["labels"],
				"annotations": annotations(m["annotations"])}
		}
		for k := range v {
			if !slices.Contains(append(keep, "apiVersion", "kind", "metadata", "spec"), k) {
				delete(v, k)
			}
		}
		text, err := sigsyaml.Marshal(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "---\n# %s:%d\n%s", comment(o.File), o.Line, text)
		return nil
	}
	for _, o := range im.services {
		var v corev1.Service
		if err := json.Unmarshal(o.raw, &v); err != nil {
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: a Service that cannot be read: %s", o.File, o.Line, comment(err.Error())))
			continue
		}
		if v.Namespace == "default" && v.Name == "kubernetes" {
			continue // every lab has it
		}
		if why := im.backendsUnknown(); why != "" && len(v.Spec.Selector) > 0 {
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: Service %s/%s: which pods are behind it is not known: %s", o.File, o.Line,
				v.Namespace, v.Name, why))
			continue
		}
		if p, name := im.unnamed(&v); p != nil {
			im.r.LeftOut = append(im.r.LeftOut,
				fmt.Sprintf(
					"%s:%d: Service %s/%s: its targetPort is %s, and the table of pods at %s:%d does not show which port of pod %s that is; take: kubectl get pods -A -o json", o.File, o.Line, v.Namespace, v.Name, comment(name), p.at.File, p.at.Line, p.Name))
			continue
		}
		selectors[v.Namespace+"/"+v.Name] = len(v.Spec.Selector) > 0
		im.r.fact("Service "+v.Namespace+"/"+v.Name, v.Spec.ClusterIP, o.File, o.Line)
		if err := add(o, "status"); err != nil {
			return err
		}
	}
	for _, o := range append(slices.Clone(im.slices), im.others...) {
		if err := add(o, "addressType", "endpoints", "ports", "subsets", "status"); err != nil {
			return err
		}
	}
	if why := im.backendsUnknown(); why != "" && len(im.services) > 0 {
		im.r.miss("the pods behind Services", why+
			": Services that choose pods by them are not in the lab, and their load balancers are not compared with them",
			"kubectl get pods -A -o json")
	}
	if out.Len() > 0 {
		im.r.Extra["cluster.yaml"] = out.Bytes()
		s.set("manifests", []string{im.beside("cluster.yaml")}, "")
	} else {
		im.r.miss("Services", "a flow to a Service by its name is not possible; one to its address meets the load balancers that HNS has",
			"kubectl get services,endpointslices -A -o json")
	}
	return nil
}

// annotations leaves out what kubectl apply keeps, which is the object once more.
func annotations(v any) any {
	if m, ok := v.(map[string]any); ok {
		delete(m, "kubectl.kubernetes.io/last-applied-configuration")
	}
	return v
}
