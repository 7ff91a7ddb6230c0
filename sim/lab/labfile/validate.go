package labfile

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// PluginRRAS is the 1.5 design, in which no program makes the pod network.
const PluginRRAS = "rras"

// Plugins are the network plugins a lab can name.
var Plugins = []string{"antrea", "azure-vnet", "calico", "flannel", "nat", "ovn-kubernetes", "ovs-l3", "rras", "sdnbridge", "vpc-bridge",
	"win-bridge", "win-overlay"}

// proxyModes are the modes of kube-proxy a lab can name.
var proxyModes = []string{"kernelspace", "userspace", "none"}

// validator checks the values of a lab and remembers where each was written.
type validator struct {
	of    *File
	file  string
	root  *yaml.Node
	lab   *Lab
	found strict.Mistakes
	// form are the mistakes of form that were found before. A value that has one
	// is not reported again.
	form map[position]bool
	// who is there, for the names in flows; nil while it is not known.
	names func() map[string][]string
}

// position is a place in a file.
type position struct {
	file         string
	line, column int
}

func newValidator(f *File, root *yaml.Node, form strict.Mistakes) *validator {
	v := &validator{of: f, file: f.Path, root: root, lab: f.Lab, form: map[position]bool{}}
	for _, m := range form {
		v.form[position{m.File, m.Line, m.Column}] = true
	}
	v.names = sync.OnceValue(f.names)
	return v
}

// misshapen reports whether a mistake of form is somewhere in a node.
func (v *validator) misshapen(n *yaml.Node) bool {
	return len(v.form) > 0 && (v.form[position{n.HeadComment, n.Line, n.Column}] || slices.ContainsFunc(n.Content, v.misshapen))
}

// nodeAt finds the node of a value by keys and positions; the deepest that exists.
func (v *validator) nodeAt(path ...any) *yaml.Node {
	n := v.root
	for _, p := range path {
		var next *yaml.Node
		switch p := p.(type) {
		case string:
			next = child(n, p)
		case int:
			if n.Kind == yaml.SequenceNode && p < len(n.Content) {
				next = n.Content[p]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

func (v *validator) add(path []any, format string, args ...any) {
	n := v.nodeAt(path...)
	if v.misshapen(n) {
		return
	}
	file := n.HeadComment
	if file == "" {
		file = v.file
	}
	v.found = append(v.found, strict.Mistake{File: file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

func p(parts ...any) []any { return append([]any{"spec"}, parts...) }

func sub(base []any, parts ...any) []any { return append(slices.Clone(base), parts...) }

// check validates the whole lab.
func (v *validator) check() {
	s := &v.lab.Spec
	if v.lab.Metadata.Name == "" {
		v.add([]any{"metadata"}, "metadata.name is missing; give the lab a name")
	}
	v.version(p("kubernetes"), s.Kubernetes)
	v.network(s)
	v.files(s)
	v.proxy(p("proxy"), s.Proxy, s.Kubernetes, s)
	v.components(s)
	v.fabric(s)
	v.nodes(s)
	v.pods(s)
	v.hosts(s)
	v.links(p("links"), s.Links, s)
	v.dns(s)
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		v.param(name, s.Params[name])
	}
	v.calls(p("hns"), s.HNS)
	v.settings(s)
	v.variants(s)
	v.steps(s)
	v.flows(p("flows"), s.Flows)
	v.connections(s)
}

func (v *validator) version(path []any, text string) {
	if _, err := kube.ParseVersion(text); err != nil {
		v.add(path, "%v", err)
	}
}

func (v *validator) network(s *Spec) {
	v.oneOf(p("network", "plugin"), "plugin", s.Network.Plugin, Plugins)
	if a := s.Network.PolicyAgent; a != "" {
		v.oneOf(p("network", "policyAgent"), "agent for policies", a, cni.Agents())
		if !slices.Contains(cni.Names(), s.Network.Plugin) {
			v.add(p("network", "policyAgent"), "a policyAgent beside plugin %s is not modelled; policyAgent is only for %s", s.Network.Plugin,
				strings.Join(cni.Names(), ", "))
		}
	}
	v.prefix(p("network", "clusterCIDR"), s.Network.ClusterCIDR)
	v.prefix(p("network", "serviceCIDR"), s.Network.ServiceCIDR)
	v.addr(p("network", "dnsIP"), s.Network.DNSIP)
	if sc, err := netip.ParsePrefix(s.Network.ServiceCIDR); err == nil {
		if a, err := netip.ParseAddr(s.Network.DNSIP); err == nil && !sc.Contains(a) {
			v.add(p("network", "dnsIP"), "the cluster DNS address %s is outside the service range %s", a, sc)
		}
		if cc, err := netip.ParsePrefix(s.Network.ClusterCIDR); err == nil && cc.Overlaps(sc) {
			v.add(p("network", "clusterCIDR"), "the pod range %s overlaps the service range %s", cc, sc)
		}
	}
	v.prefixOrNone(p("network", "ipv6ClusterCIDR"), s.Network.IPv6ClusterCIDR)
	v.prefixOrNone(p("network", "ipv6ServiceCIDR"), s.Network.IPv6ServiceCIDR)
	v.family6(p("network", "ipv6ClusterCIDR"), s.Network.IPv6ClusterCIDR)
	v.family6(p("network", "ipv6ServiceCIDR"), s.Network.IPv6ServiceCIDR)
}

func (v *validator) settings(s *Spec) {
	for i, set := range s.Settings {
		v.version(p("settings", i, "kubernetes"), set.Kubernetes)
		if set.Build != "" {
			v.build(p("settings", i, "build"), set.Build)
		}
		if set.Proxy != nil {
			v.proxy(p("settings", i, "proxy"), *set.Proxy, set.Kubernetes, s)
		}
	}
}

func (v *validator) variants(s *Spec) {
	names := map[string]bool{}
	for i, va := range s.Variants {
		if va.Name == "" || names[va.Name] {
			v.add(p("variants", i), "a variant needs a name of its own")
		}
		names[va.Name] = true
	}
}

func (v *validator) oneOf(path []any, what, got string, want []string) {
	if !slices.Contains(want, got) {
		v.add(path, "there is no %s %q%s", what, got, strict.DidYouMean(got, want))
	}
}

func (v *validator) addr(path []any, text string) {
	if _, err := netip.ParseAddr(text); err != nil {
		v.add(path, "%q is not an address; write it as 192.168.1.10", text)
	}
}

func (v *validator) prefix(path []any, text string) {
	pre, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		v.add(path, "%q is not a prefix; write it as 10.244.0.0/16", text)
	case pre != pre.Masked():
		v.add(path, "%s has host bits set; did you mean %s?", pre, pre.Masked())
	}
}

func (v *validator) build(path []any, text string) {
	ver, err := builds.Parse(text)
	if err == nil {
		_, err = builds.Lookup(ver)
	}
	if err != nil {
		v.add(path, "%v", err)
	}
}

func (v *validator) prefixOrNone(path []any, text string) {
	if text != "" {
		v.prefix(path, text)
	}
}

func (v *validator) fabric(s *Spec) {
	var segs []string
	for i, g := range s.Fabric.Segments {
		at := p("fabric", "segments", i)
		if slices.Contains(segs, g.Name) || g.Name == "" {
			v.add(at, "a segment needs a name of its own")
		}
		segs = append(segs, g.Name)
		v.prefixOrNone(sub(at, "subnet"), g.Subnet)
		v.prefixOrNone(sub(at, "ipv6Subnet"), g.IPv6Subnet)
		v.family6(sub(at, "ipv6Subnet"), g.IPv6Subnet)
		for j, r := range g.Rules {
			v.fabricRule(sub(at, "rules", j), r)
		}
		v.routes(sub(at, "routes"), g.Routes)
		v.mtu(sub(at, "mtu"), g.MTU)
	}
	var routers []string
	for i, r := range s.Fabric.Routers {
		at := p("fabric", "routers", i)
		if r.Name == "" || slices.Contains(routers, r.Name) {
			v.add(at, "a router needs a name of its own; %q is empty or taken", r.Name)
		}
		routers = append(routers, r.Name)
		v.router(at, r, segs, s)
	}
}

func (v *validator) fabricRule(at []any, r FabricRule) {
	v.oneOf(sub(at, "action"), "action", r.Action, []string{"allow", "deny"})
	if r.Protocol != "" {
		v.oneOf(sub(at, "protocol"), "protocol", r.Protocol, []string{"tcp", "udp", "icmp"})
	}
	v.prefixOrNone(sub(at, "from"), r.From)
	v.prefixOrNone(sub(at, "to"), r.To)
	if _, _, err := ParsePorts(r.Ports); err != nil {
		v.add(sub(at, "ports"), "%v", err)
	}
}

func (v *validator) router(at []any, r Router, segs []string, s *Spec) {
	for j, f := range r.Interfaces {
		v.oneOf(sub(at, "interfaces", j, "segment"), "segment", f.Segment, segs)
		address := sub(at, "interfaces", j, "address")
		if pre, err := netip.ParsePrefix(f.Address); err != nil {
			v.add(address, "%q is not an address with a prefix length; write it as 192.168.1.1/24", f.Address)
		} else {
			v.inside(address, pre.Addr().String(), f.Segment, s)
		}
		if f.IPv6Address == "" {
			continue
		}
		address6 := sub(at, "interfaces", j, "ipv6Address")
		if pre, err := netip.ParsePrefix(f.IPv6Address); err != nil {
			v.add(address6, "%q is not an address with a prefix length; write it as fd00:192:168:1::1/64", f.IPv6Address)
		} else {
			v.family6(address6, f.IPv6Address)
			v.inside6(address6, pre.Addr().String(), f.Segment, s)
		}
	}
	v.routes(sub(at, "routes"), r.Routes)
	for j, rule := range r.Rules {
		v.fabricRule(sub(at, "rules", j), rule)
	}
	for j, f := range r.Forward {
		v.addr(sub(at, "forward", j, "address"), f.Address)
		if _, err := netip.ParseAddrPort(f.To); err != nil {
			v.add(sub(at, "forward", j, "to"), "%q is not an address with a port; write it as 192.168.1.11:30080", f.To)
		}
		if f.Protocol != "" {
			v.oneOf(sub(at, "forward", j, "protocol"), "protocol", f.Protocol, []string{"tcp", "udp"})
		}
	}
	for j, n := range r.NAT {
		v.oneOf(sub(at, "nat", j, "outOf"), "segment", n.OutOf, segs)
		for k, src := range n.Sources {
			v.prefix(sub(at, "nat", j, "sources", k), src)
		}
		for k, proto := range n.Protocols {
			v.oneOf(sub(at, "nat", j, "protocols", k), "protocol", proto, []string{"tcp", "udp", "icmp"})
		}
	}
}

func (v *validator) routes(path []any, rs []Route) {
	for i, r := range rs {
		v.prefix(sub(path, i, "to"), r.To)
		if r.Via != "" {
			v.addr(sub(path, i, "via"), r.Via)
		}
	}
}

func (v *validator) nodes(s *Spec) {
	if len(s.Nodes) == 0 {
		v.add(p(), "the lab has no nodes; write nodes: [{name: win1}, ...]")
	}
	names, addrs, addrs6, ranges := map[string]bool{}, map[string]string{}, map[netip.Addr]string{}, &podRanges{}
	for i, n := range s.Nodes {
		at := p("nodes", i)
		if n.Name == "" || names[n.Name] {
			v.add(sub(at, "name"), "a node needs a name of its own; %q is empty or taken", n.Name)
		}
		names[n.Name] = true
		v.system(at, n)
		v.nodeProxy(sub(at, "proxy"), n, s)
		v.addr(sub(at, "address"), n.Address)
		if other, ok := addrs[n.Address]; ok {
			v.add(sub(at, "address"), "%s is already the address of %s", n.Address, other)
		}
		addrs[n.Address] = n.Name
		v.oneOf(sub(at, "segment"), "segment", n.Segment, segmentNames(s))
		v.inside(sub(at, "address"), n.Address, n.Segment, s)
		v.address6(sub(at, "ipv6Address"), n.IPv6Address, n.Segment, "node "+n.Name, addrs6, s)
		v.prefixOrNone(sub(at, "ipv6PodCIDR"), n.IPv6PodCIDR)
		v.family6(sub(at, "ipv6PodCIDR"), n.IPv6PodCIDR)
		v.podRange(sub(at, "podCIDR"), n, s, ranges)
		if n.Gateway != "" {
			v.addr(sub(at, "gateway"), n.Gateway)
			v.inside(sub(at, "gateway"), n.Gateway, n.Segment, s)
		}
		if n.Kubernetes != "" {
			v.version(sub(at, "kubernetes"), n.Kubernetes)
		}
		v.routes(sub(at, "routes"), n.Routes)
		for j, r := range n.Routes {
			if r.Via == "" {
				v.add(sub(at, "routes", j), "the route of %s needs a next hop; write via: ADDRESS", n.Name)
			}
		}
		v.listen(sub(at, "listen"), n.Listen)
		v.faults(at, n)
	}
}

// system complains about what a node runs.
func (v *validator) system(at []any, n Node) {
	v.oneOf(sub(at, "os"), "operating system", n.OS, []string{"windows", "linux"})
	switch {
	case n.OS != "windows":
		if n.Build != "" {
			v.add(sub(at, "build"), "a Linux node cannot have a Windows build")
		}
		if len(n.Builds) > 0 {
			v.add(sub(at, "builds"), "a Linux node cannot have a Windows build")
		}
	case len(n.Builds) > 0:
		if n.Build != "" {
			v.add(sub(at, "builds"), "node %s has both build and builds; write one of the two", n.Name)
		}
		for j := range n.Builds {
			if _, err := builds.Candidates(n.Builds[j : j+1]); err != nil {
				v.add(sub(at, "builds", j), "%v", err)
			}
		}
	case n.Build != builds.Unknown:
		v.build(sub(at, "build"), n.Build)
	}
	for j, q := range n.Quirks {
		v.oneOf(sub(at, "quirks", j), "quirk", q, builds.QuirkIDs())
	}
}

// podRange complains about a node's pod range; ranges are those of the nodes
// before, by their names.
func (v *validator) podRange(path []any, n Node, s *Spec, ranges *podRanges) {
	if n.PodCIDR == "" {
		return
	}
	v.prefix(path, n.PodCIDR)
	pc, err := netip.ParsePrefix(n.PodCIDR)
	if err != nil {
		return
	}
	if cc, err := netip.ParsePrefix(s.Network.ClusterCIDR); err == nil && !cc.Overlaps(pc) && s.Network.Plugin != "nat" {
		v.add(path, "the pod range %s of %s is outside the cluster's %s", pc, n.Name, cc)
	}
	for _, other := range ranges.overlapping(pc) {
		v.add(path, "the pod range %s of %s overlaps %s of %s", pc, n.Name, ranges.of[other], other)
	}
	ranges.add(n.Name, pc)
}

// podRanges are the pod ranges of nodes.
type podRanges struct {
	of map[string]netip.Prefix
	// within has, for each range, those in which it lies, itself with them: few, as ranges of real
	// clusters overlap nowhere, and a thousand nodes need not be compared with each other.
	within map[netip.Prefix]bool
	ranges map[netip.Prefix]bool
}

func (r *podRanges) add(node string, p netip.Prefix) {
	if r.of == nil {
		r.of, r.within, r.ranges = map[string]netip.Prefix{}, map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	}
	r.of[node] = p
	r.ranges[p.Masked()] = true
	for bits := range p.Bits() + 1 {
		r.within[netip.PrefixFrom(p.Addr(), bits).Masked()] = true
	}
}

// overlapping are the nodes with a range that has an address of p, in order of their names.
func (r *podRanges) overlapping(p netip.Prefix) []string {
	overlaps := r.within[p.Masked()]
	for bits := range p.Bits() + 1 {
		overlaps = overlaps || r.ranges[netip.PrefixFrom(p.Addr(), bits).Masked()]
	}
	if !overlaps {
		return nil
	}
	var all []string
	for node, other := range r.of {
		if other.Overlaps(p) {
			all = append(all, node)
		}
	}
	slices.Sort(all)
	return all
}

func segmentNames(s *Spec) []string {
	var segs []string
	for _, g := range s.Fabric.Segments {
		segs = append(segs, g.Name)
	}
	return segs
}

func (v *validator) listen(path []any, ls []string) {
	for i, l := range ls {
		if _, err := ParseListen(l); err != nil {
			v.add(sub(path, i), "%v", err)
		}
	}
}

func (v *validator) pods(s *Spec) {
	seen, addrs, hostPorts := map[string]bool{}, taken(s), map[string]string{}
	for i, pod := range s.Pods {
		at := p("pods", i)
		key := podKey(pod)
		if pod.Name == "" || seen[key] {
			v.add(at, "a pod needs a name of its own in its namespace; %q is empty or taken", pod.Name)
		}
		seen[key] = true
		if pod.Node != "" {
			v.oneOf(sub(at, "node"), "node", pod.Node, s.nodeNames())
		}
		if pod.Address != "" {
			v.addr(sub(at, "address"), pod.Address)
			if other, ok := addrs[pod.Address]; ok {
				v.add(sub(at, "address"), "%s is already the address of %s", pod.Address, other)
			}
			addrs[pod.Address] = "pod " + key
			v.podAddress(sub(at, "address"), pod, s)
		}
		v.listen(sub(at, "listen"), pod.Listen)
		for _, name := range slices.Sorted(maps.Keys(pod.Ports)) {
			if pod.Ports[name] == 0 {
				v.add(sub(at, "ports", name), "a port is a number from 1 to 65535")
			}
		}
		for j, h := range pod.HostPorts {
			hp, err := ParseHostPort(h)
			if err != nil {
				v.add(sub(at, "hostPorts", j), "%v", err)
				continue
			}
			on := fmt.Sprintf("%s %s/%d", pod.Node, hp.Proto, hp.HostPort)
			if other, ok := hostPorts[on]; ok && pod.Node != "" {
				v.add(sub(at, "hostPorts", j), "host port %d of node %s is already taken by pod %s", hp.HostPort, pod.Node, other)
			}
			hostPorts[on] = key
		}
		v.run(sub(at, "run"), pod, s)
	}
}

// run complains about a pod's program.
func (v *validator) run(at []any, pod Pod, s *Spec) {
	if pod.Run != nil && (len(pod.Run) == 0 || pod.Run[0] == "") {
		v.add(at, "run is a program and its arguments: [python3, -m, http.server, \"80\"]")
		return
	}
	for i, arg := range pod.Run {
		if strings.ContainsRune(arg, 0) {
			v.add(sub(at, i), "an argument of a program cannot contain a zero byte")
		}
	}
	i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == pod.Node })
	if i >= 0 && s.Nodes[i].OS == "linux" && IsWindowsProgram(pod.Run) {
		v.add(at, "%s is a program of Windows, and node %s runs Linux", pod.Run[0], pod.Node)
	}
}

// IsWindowsProgram reports whether a command is one of Windows by its name.
func IsWindowsProgram(command []string) bool {
	return len(command) > 0 && strings.EqualFold(filepath.Ext(command[0]), ".exe")
}

// nodeNames are the names of all nodes, in order.
func (s *Spec) nodeNames() []string {
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	return names
}

func (v *validator) param(name, value string) {
	for _, d := range Params() {
		if d.Name != name {
			continue
		}
		if len(d.Values) > 0 && !slices.Contains(d.Values, value) {
			v.add(p("params", name), "parameter %s is one of %s", name, strings.Join(d.Values, ", "))
		}
		if name == ParamVNI {
			if _, err := strconv.ParseUint(value, 10, 24); err != nil {
				v.add(p("params", name), "%q is not a virtual network identifier; write 1 to 16777215", value)
			}
		}
		return
	}
	var names []string
	for _, d := range Params() {
		names = append(names, d.Name)
	}
	v.add(p("params", name), "there is no parameter %q%s", name, strict.DidYouMean(name, names))
}
