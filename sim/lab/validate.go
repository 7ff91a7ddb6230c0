package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/strict"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows"
)

// Plugins are the network plugins a lab can name.
var Plugins = []string{"azure-vnet", "flannel", "nat", "ovn-kubernetes", "ovs-l3", "rras", "win-bridge", "win-overlay"}

// ProxyModes are the modes of kube-proxy a lab can name.
var ProxyModes = []string{"kernelspace", "userspace", "none"}

// validator holds a lab against what makes sense, and remembers where each
// value was written.
type validator struct {
	file  string
	root  *yaml.Node
	lab   *Lab
	found strict.Mistakes
}

// at finds the node of a value by keys and positions; the deepest that exists.
func (v *validator) at(path ...any) *yaml.Node {
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
	n := v.at(path...)
	file := n.HeadComment
	if file == "" {
		file = v.file
	}
	v.found = append(v.found, strict.Mistake{File: file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

func p(parts ...any) []any { return append([]any{"spec"}, parts...) }

func sub(base []any, parts ...any) []any { return append(slices.Clone(base), parts...) }

// check goes through the whole lab.
func (v *validator) check() {
	s := &v.lab.Spec
	if v.lab.Metadata.Name == "" {
		v.add([]any{"metadata"}, "metadata.name is missing; give the lab a name")
	}
	if _, err := kube.ParseVersion(s.Kubernetes); err != nil {
		v.add(p("kubernetes"), "%v", err)
	}
	v.oneOf(p("network", "plugin"), "plugin", s.Network.Plugin, Plugins)
	v.oneOf(p("proxy", "mode"), "proxy mode", s.Proxy.Mode, ProxyModes)
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
	for _, f := range []struct{ key, value string }{{"ipv6ClusterCIDR", s.Network.IPv6ClusterCIDR}, {"ipv6ServiceCIDR", s.Network.IPv6ServiceCIDR}} {
		if f.value != "" {
			v.prefix(p("network", f.key), f.value)
		}
	}
	v.fabric(s)
	v.nodes(s)
	v.pods(s)
	v.hosts(s)
	for name, value := range s.Params {
		v.param(name, value)
	}
	v.calls(p("hns"), s.HNS, s)
	for i, set := range s.Settings {
		if _, err := kube.ParseVersion(set.Kubernetes); err != nil {
			v.add(p("settings", i, "kubernetes"), "%v", err)
		}
		if set.Build != "" {
			v.build(p("settings", i, "build"), set.Build)
		}
	}
	names := map[string]bool{}
	for i, va := range s.Variants {
		if va.Name == "" || names[va.Name] {
			v.add(p("variants", i), "a variant needs a name of its own")
		}
		names[va.Name] = true
		v.calls(p("variants", i, "hns"), va.HNS, s)
		v.flows(p("variants", i, "flows"), va.Flows, s)
	}
	v.flows(p("flows"), s.Flows, s)
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
	ver, err := windows.Parse(text)
	if err == nil {
		_, err = windows.Lookup(ver)
	}
	if err != nil {
		v.add(path, "%v", err)
	}
}

func (v *validator) fabric(s *Spec) {
	var segs []string
	for i, g := range s.Fabric.Segments {
		if slices.Contains(segs, g.Name) || g.Name == "" {
			v.add(p("fabric", "segments", i), "a segment needs a name of its own")
		}
		segs = append(segs, g.Name)
		if g.Subnet != "" {
			v.prefix(p("fabric", "segments", i, "subnet"), g.Subnet)
		}
		for j, r := range g.Rules {
			at := p("fabric", "segments", i, "rules", j)
			v.oneOf(sub(at, "action"), "action", r.Action, []string{"allow", "deny"})
			if r.Protocol != "" {
				v.oneOf(sub(at, "protocol"), "protocol", r.Protocol, []string{"tcp", "udp", "icmp"})
			}
			for key, text := range map[string]string{"from": r.From, "to": r.To} {
				if text != "" {
					v.prefix(sub(at, key), text)
				}
			}
		}
		v.routes(p("fabric", "segments", i, "routes"), g.Routes)
	}
	for i, r := range s.Fabric.Routers {
		for j, f := range r.Interfaces {
			v.oneOf(p("fabric", "routers", i, "interfaces", j, "segment"), "segment", f.Segment, segs)
			if _, err := netip.ParsePrefix(f.Address); err != nil {
				v.add(p("fabric", "routers", i, "interfaces", j, "address"), "%q is not an address with a prefix length; write it as 192.168.1.1/24", f.Address)
			}
		}
		v.routes(p("fabric", "routers", i, "routes"), r.Routes)
		for j, f := range r.Forward {
			v.addr(p("fabric", "routers", i, "forward", j, "address"), f.Address)
			if _, err := netip.ParseAddrPort(f.To); err != nil {
				v.add(p("fabric", "routers", i, "forward", j, "to"), "%q is not an address with a port; write it as 192.168.1.11:30080", f.To)
			}
			if f.Protocol != "" {
				v.oneOf(p("fabric", "routers", i, "forward", j, "protocol"), "protocol", f.Protocol, []string{"tcp", "udp"})
			}
		}
		for j, n := range r.NAT {
			v.oneOf(p("fabric", "routers", i, "nat", j, "outOf"), "segment", n.OutOf, segs)
			for k, src := range n.Sources {
				v.prefix(p("fabric", "routers", i, "nat", j, "sources", k), src)
			}
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
	names, addrs := map[string]bool{}, map[string]string{}
	segs := segmentNames(s)
	for i, n := range s.Nodes {
		at := p("nodes", i)
		if n.Name == "" || names[n.Name] {
			v.add(sub(at, "name"), "a node needs a name of its own; %q is empty or taken", n.Name)
		}
		names[n.Name] = true
		v.oneOf(sub(at, "os"), "operating system", n.OS, []string{"windows", "linux"})
		if n.OS == "windows" {
			v.build(sub(at, "build"), n.Build)
		} else if n.Build != "" {
			v.add(sub(at, "build"), "a Linux node has no Windows build")
		}
		v.addr(sub(at, "address"), n.Address)
		if other, ok := addrs[n.Address]; ok {
			v.add(sub(at, "address"), "%s is the address of %s already", n.Address, other)
		}
		addrs[n.Address] = n.Name
		v.oneOf(sub(at, "segment"), "segment", n.Segment, segs)
		if n.PodCIDR != "" {
			v.prefix(sub(at, "podCIDR"), n.PodCIDR)
			cc, err1 := netip.ParsePrefix(s.Network.ClusterCIDR)
			pc, err2 := netip.ParsePrefix(n.PodCIDR)
			if err1 == nil && err2 == nil && !cc.Overlaps(pc) && s.Network.Plugin != "nat" {
				v.add(sub(at, "podCIDR"), "the pod range %s of %s is outside the cluster's %s", pc, n.Name, cc)
			}
		}
		if n.Gateway != "" {
			v.addr(sub(at, "gateway"), n.Gateway)
		}
		if n.Kubernetes != "" {
			if _, err := kube.ParseVersion(n.Kubernetes); err != nil {
				v.add(sub(at, "kubernetes"), "%v", err)
			}
		}
		v.routes(sub(at, "routes"), n.Routes)
		v.listen(sub(at, "listen"), n.Listen)
	}
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
		if _, _, err := parseListen(l); err != nil {
			v.add(sub(path, i), "%v", err)
		}
	}
}

func (v *validator) pods(s *Spec) {
	seen := map[string]bool{}
	for i, pod := range s.Pods {
		at := p("pods", i)
		if pod.Name == "" || seen[pod.Namespace+"/"+pod.Name] {
			v.add(at, "a pod needs a name of its own in its namespace")
		}
		seen[pod.Namespace+"/"+pod.Name] = true
		if pod.Node != "" {
			v.oneOf(sub(at, "node"), "node", pod.Node, nodeNames(s))
		}
		if pod.Address != "" {
			v.addr(sub(at, "address"), pod.Address)
		}
		v.listen(sub(at, "listen"), pod.Listen)
		for j, h := range pod.HostPorts {
			if _, err := parseHostPort(h); err != nil {
				v.add(sub(at, "hostPorts", j), "%v", err)
			}
		}
	}
}

func nodeNames(s *Spec) []string {
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	return names
}

func (v *validator) hosts(s *Spec) {
	for i, h := range s.Hosts {
		at := p("hosts", i)
		if h.Name == "" {
			v.add(at, "a host needs a name")
		}
		v.addr(sub(at, "address"), h.Address)
		v.oneOf(sub(at, "segment"), "segment", h.Segment, segmentNames(s))
		v.listen(sub(at, "listen"), h.Listen)
	}
}

func (v *validator) calls(path []any, cs []HNSCall, s *Spec) {
	for i, c := range cs {
		at := sub(path, i)
		v.oneOf(sub(at, "node"), "node", c.Node, nodeNames(s))
		n := 0
		for _, set := range []bool{c.Delete != nil, c.RemovePolicy != nil, c.AddPolicy != nil, c.Create != nil, c.Restart} {
			if set {
				n++
			}
		}
		if n != 1 {
			v.add(at, "an HNS call is exactly one of delete, removePolicy, addPolicy, create and restart; here are %d", n)
		}
	}
}

func (v *validator) flows(path []any, fs []Flow, s *Spec) {
	for i, f := range fs {
		at := sub(path, i)
		if f.From == "" || f.To == "" {
			v.add(at, "a flow needs from and to, such as pod/client and svc/web:80")
		}
		if f.Protocol != "" {
			v.oneOf(sub(at, "protocol"), "protocol", f.Protocol, []string{"tcp", "udp", "ping"})
		}
		if f.Expect != "" && f.Expect != NotDelivered {
			if _, err := trace.ParseVerdict(f.Expect); err != nil {
				v.add(sub(at, "expect"), "%v", err)
			}
		}
		if f.Reason != "" {
			if _, ok := trace.Explain(trace.Reason(f.Reason)); !ok {
				v.add(sub(at, "reason"), "there is no reason code %q; winlab explain lists them", f.Reason)
			}
		}
		if f.Idle != "" {
			if d, err := time.ParseDuration(f.Idle); err != nil || d < 0 {
				v.add(sub(at, "idle"), "%q is not a time; write it as 300s", f.Idle)
			}
		}
		for key, text := range map[string]string{"from": f.From, "to": f.To} {
			if text == "" || f.Resolve != "" && key == "to" {
				continue
			}
			if _, err := ParseTarget(text); err != nil {
				v.add(sub(at, key), "%v", err)
			}
		}
		v.calls(sub(at, "meanwhile"), f.Meanwhile, s)
	}
}

// NotDelivered is the expectation that a flow fails, however: documents often
// say no more.
const NotDelivered = "not-delivered"

func (v *validator) param(name, value string) {
	for _, d := range Params {
		if d.Name != name {
			continue
		}
		if len(d.Values) > 0 && !slices.Contains(d.Values, value) {
			v.add(p("params", name), "parameter %s is one of %s", name, strings.Join(d.Values, ", "))
		}
		return
	}
	var names []string
	for _, d := range Params {
		names = append(names, d.Name)
	}
	v.add(p("params", name), "there is no parameter %q%s", name, strict.DidYouMean(name, names))
}
