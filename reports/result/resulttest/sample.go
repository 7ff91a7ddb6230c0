// Package resulttest makes results documents for tests of the reports. The
// documents look like real ones but nothing in them was simulated, so they
// must not be used as evidence of anything. They are the same on every call.
package resulttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// design is one lab of the sample.
type design struct {
	name, title, network, plugin, proxy, cni string
	k8s                                      []string
	build                                    string
	vni                                      uint32
	node                                     map[string]string
}

var nodes = map[string]string{"win1": "192.168.1.11", "win2": "192.168.1.12"}

var designs = []design{
	{"ovs-l3", "Open vSwitch, layer 3", "transparent", "ovn 1.5", "userspace", "fixtures/cni/ovs.conf", []string{"1.5"}, "10.0.14393.1198", 0,
		nodes},
	{"l2bridge-flannel-host-gw", "flannel host-gw", "l2bridge", "flannel", "kernelspace", "fixtures/cni/flannel-host-gw.conf",
		[]string{"1.14", "1.20"}, "10.0.17763.1432", 0, nodes},
	{"l2bridge-azure-cni", "Azure CNI", "l2bridge", "azure", "kernelspace", "fixtures/cni/azure.conflist", []string{"1.20"}, "10.0.17763.1432",
		0, nodes},
	{"overlay-win-overlay", "win-overlay", "overlay", "win-overlay", "kernelspace", "fixtures/cni/win-overlay.conf", []string{"1.14", "1.20"},
		"10.0.17763.1432", 4096, nodes},
	{"overlay-flannel-vxlan", "flannel VXLAN", "overlay", "flannel", "kernelspace, DSR", "fixtures/cni/flannel-vxlan.conf", []string{"1.20"},
		"10.0.19041.508", 4096, nodes},
	{"transparent-ovn-kubernetes", "OVN-Kubernetes", "transparent", "ovn-kubernetes", "none", "fixtures/cni/ovn.conf", []string{"1.20"},
		"10.0.17763.1432", 0, nodes},
	{"nat-winnat", "WinNAT", "nat", "nat", "kernelspace", "fixtures/cni/nat.conf", []string{"1.20"}, "10.0.20348.2340", 0, nodes},
}

var facts = func() map[string]*evidence.Fact {
	m := map[string]*evidence.Fact{}
	for _, f := range []*evidence.Fact{
		{ID: "vfp.icmp-has-no-nat", Grade: evidence.Stated, Says: "OutBoundNAT becomes rules for TCP and UDP only.",
			Sources: []string{"Windows containers in Kubernetes, Networking, limitations"}},
		{ID: "vfp.acl-default-allow", Grade: evidence.Inferred, Says: "An endpoint without ACL policies lets everything pass.",
			Param: "acl.default"},
		{ID: "vfp.acl-priority", Grade: evidence.Stated, Says: "The ACL rule with the smallest priority number decides.",
			Sources: []string{"hcsshim internal/hns/hnspolicy.go"}},
		{ID: "vfp.dynnat-blocks-of-64", Grade: evidence.Code, Says: "Dynamic NAT takes ports in blocks of 64.",
			Sources: []string{"microsoft/SDN Kubernetes/windows/debug/VFP.psm1"}},
		{ID: "vfp.unified-flow-reverses", Grade: evidence.Stated, Says: "The flow of a translated packet translates its answers back.",
			Sources: []string{"VFP, NSDI 2017, section 5"}},
		{ID: "hns.remote-subnet-route", Grade: evidence.Code, Says: "A RemoteSubnetRoute becomes an encapsulation rule.",
			Sources: []string{"hcsshim hcn/hcnnetwork.go"}},
		{ID: "hns.vni-must-be-known", Grade: evidence.Stated, Says: "A tunnel packet whose VNI belongs to no network is dropped.",
			Sources: []string{"flannel, Documentation/backends.md"}},
		{ID: "hns.outboundnat-exceptions", Grade: evidence.Code, Says: "Destinations in the ExceptionList are not translated.",
			Sources: []string{"containernetworking/plugins, pkg/hns/netconf_windows.go"}},
		{ID: "hns.l2bridge-mac-rewrite", Grade: evidence.Stated, Says: "l2bridge rewrites the MAC address and keeps the IP address.",
			Sources: []string{"Windows container network drivers"}},
		{ID: "kubeproxy.non-dsr-uses-source-vip", Grade: evidence.Code,
			Says:    "Without DSR the load balancer translates the source to the source VIP.",
			Sources: []string{"kubernetes/kubernetes, pkg/proxy/winkernel/proxier.go"}},
		{ID: "fabric.router-drops-without-route", Grade: evidence.Stated, Says: "A router without a route for the destination drops the packet.",
			Sources: []string{"RFC 1812, section 5.2"}},
		{ID: "windows.own-address-is-internal", Grade: evidence.Stated, Says: "Traffic to the node's own address does not reach the vSwitch.",
			Sources: []string{"KB4571748"}},
		{ID: "ovs.icmp-in-extension", Grade: evidence.Unknown, Says: "Whether the extension passes ICMP."},
	} {
		m[f.ID] = f
	}
	return m
}()

// spec is one claim of the sample: what is tried and what the documents say by
// network. The letters of docs are for transparent 1.5, l2bridge, overlay,
// transparent and nat: + works, - fails, c conditional, d disputed, . silent,
// blank no cell.
type spec struct {
	area, id, title, text, flow, docs string
}

var specs = []spec{
	{"flows", "pod-to-pod-same-node", "Pod to pod, same node", "Two pods on one Windows node reach each other over TCP.", "ok", "+++++"},
	{"flows", "pod-to-pod-cross-node", "Pod to pod, other node",
		"A pod reaches a pod on another Windows node over TCP, and its address is kept.", "ok", "++++."},
	{"flows", "pod-to-pod-udp", "Pod to pod, UDP", "UDP between pods works from Windows Server 2019 on; with Kubernetes 1.5 it does not.",
		"udp", "-++++"},
	{"flows", "pod-to-outside-tcp", "Pod to outside, TCP", "A pod reaches hosts outside the cluster; its address is translated to the node's.",
		"outside", "+++++"},
	{"flows", "pod-to-lan", "Pod to the management network",
		"A pod reaches hosts in the node's own network without translation when the exception list has it.", "ok", ".cc.."},
	{"flows", "pod-to-node", "Pod to node", "A pod reaches the address of a Windows node.", "ok", ".+d+."},
	{"flows", "node-to-local-pod", "Node to local pod", "A Windows node reaches its own pods.", "ok", ".+c++"},
	{"flows", "node-to-remote-pod", "Node to pod on another node",
		"A Windows node reaches pods of another node; with flannel VXLAN it does not.", "blocked", ".+-+."},
	{"icmp", "ping-pod-to-pod", "Pod to pod, ping", "Echo requests between pods are answered.", "ping", ".++.."},
	{"icmp", "ping-outside", "Pod to outside, ping",
		"Echo requests to hosts outside the cluster get no answer: only TCP and UDP are translated.", "pingout", ".--.."},
	{"icmp", "ping-service", "Ping of a Service address", "A Service address answers no echo requests.", "pingout", ".--.."},
	{"icmp", "ping-node", "Pod to node, ping", "A pod can ping the node it runs on.", "ping", "....."},
	{"services", "clusterip", "Pod to ClusterIP", "A pod reaches a Service by its cluster address; every backend is used.", "service",
		"+++++"},
	{"services", "clusterip-source", "ClusterIP keeps the client's address",
		"The backend sees the client's address, with direct server return only.", "service", " -c+ "},
	{"services", "clusterip-split", "ClusterIP, backend on another node", "The choice of backend makes no difference.", "split", " ++  "},
	{"services", "nodeport-other", "NodePort from another machine", "A NodePort is reachable from other machines.", "service", ".++++"},
	{"services", "nodeport-own", "NodePort from the node itself", "A Windows node does not reach its own NodePort.", "own", ".----"},
	{"services", "clusterip-from-node", "Node to ClusterIP", "A Windows node does not reach a Service by its cluster address.", "own",
		".--- "},
	{"services", "etp-local", "externalTrafficPolicy Local",
		"With Local the client's address is kept and nodes without a backend do not answer.", "service", " cc  "},
	{"services", "loadbalancer", "External load balancer", "Traffic from a load balancer outside reaches the backends.", "service", ".+++ "},
	{"services", "affinity", "Session affinity", "A client stays with one backend for the time that the Service asks for.", "service",
		" ++  "},
	{"services", "hairpin", "Service to itself", "A pod reaches itself through its own Service.", "split", " d-  "},
	{"dns", "dns-single-label", "Single label", "The name of a Service in the same namespace resolves.", "ok", ".++++"},
	{"dns", "dns-partial", "Name with a dot", "name.namespace does not resolve on Windows: a name with a dot gets no suffix.", "name",
		".----"},
	{"dns", "dns-fqdn", "Full name", "The full name of a Service resolves.", "ok", ".++++"},
	{"dns", "dns-nslookup", "nslookup and the suffix list", "nslookup tries the suffixes that other tools do not try.", "name", ".dd.."},
	{"drivers", "driver-mac", "MAC address on the wire", "l2bridge replaces the source MAC by the host's and keeps the IP address.", "wire",
		" +   "},
	{"drivers", "driver-vxlan", "Outer header", "overlay puts a VXLAN header with VNI 4096 and UDP port 4789 before the frame.", "wire",
		"  +  "},
	{"drivers", "driver-nat", "Address translation on the wire", "nat replaces the MAC and the IP address.", "wire", "    +"},
	{"drivers", "driver-vnet-overhead", "Overhead of the tunnel", "VXLAN makes a frame 50 bytes longer.", "wire", "  .  "},
	{"ipv6", "ipv6-pod-to-pod", "Pod to pod, IPv6", "IPv6 needs l2bridge and dual-stack; overlay has none.", "hole", ".c-.."},
	{"ipv6", "ipv6-service", "IPv6 Service", "A Service with an IPv6 address works with dual-stack only.", "hole", ".c-  "},
	{"limits", "vni-fixed", "VNI of flannel", "The VNI must be 4096 and the port 4789 when there are Windows nodes.", "wire", "  +  "},
	{"limits", "exception-list", "Exception list",
		"Without the cluster's networks in the exception list, answers between pods are translated.", "blocked", " -   "},
	{"limits", "acl-default", "ACL default", "An endpoint without ACL policies lets everything pass.", "ok", "....."},
	{"limits", "routing-loop", "Route for unused pod networks", "A packet for a pod network that no node has is not sent in circles.", "loop",
		".+ . "},
	{"cni15", "ovs-udp", "UDP with Open vSwitch", "UDP does not work inside containers with Kubernetes 1.5.", "udp", "-    "},
	{"cni15", "ovs-ping", "Ping with Open vSwitch", "What happens with ICMP is not documented.", "hole", ".    "},
	{"cni15", "rras-forwarding", "Forwarding through RRAS", "Nodes forward between their two networks with RRAS.", "", ""},
	{"limits", "max-endpoints", "Backends of one load balancer", "A load balancer takes at most 64 backends on older builds.", "", ""},
}

var areas = []result.Area{{ID: "flows", Title: "Flows"}, {ID: "icmp", Title: "ICMP"},
	{ID: "services", Title: "Services and load balancing"}, {ID: "dns", Title: "Names"},
	{ID: "drivers", Title: "Network drivers on the wire"}, {ID: "ipv6", Title: "IPv6"}, {ID: "limits", Title: "Limits of plugins"},
	{ID: "cni15", Title: "Kubernetes 1.5 designs"}}

// Sample returns the document that most tests use: ten settings, 47 claims,
// every outcome and every verdict, static checks of every kind, systems.
func Sample() *result.Document { return build(designs) }

// Small returns a document of two settings for golden files.
func Small() *result.Document {
	d := build([]design{designs[1], designs[4]})
	keep := map[string]bool{"ping-outside": true, "clusterip-split": true, "pod-to-node": true, "rras-forwarding": true, "driver-mac": true,
		"hostnetwork": true, "trouble-source-vip": true, "windows-build-label": true}
	var claims []result.Claim
	var cells []result.Cell
	used := result.NewTraces()
	for _, c := range d.Claims {
		if keep[c.ID] {
			claims = append(claims, c)
		}
	}
	for _, c := range d.Cells {
		if !keep[c.Claim] {
			continue
		}
		cells = append(cells, c)
		for _, k := range c.Checks {
			if k.Trace != "" {
				used.Put(k.Trace, d.Traces.Get(k.Trace))
			}
		}
	}
	d.Flows = d.Flows[:2]
	for _, f := range d.Flows {
		used.Put(f.Trace, d.Traces.Get(f.Trace))
	}
	d.Statics = slices.DeleteFunc(d.Statics, func(k result.Static) bool { return !keep[k.Claim] })
	d.Systems = slices.Clone(d.Systems)
	for i := range d.Systems {
		d.Systems[i].Claims = slices.DeleteFunc(slices.Clone(d.Systems[i].Claims), func(id string) bool { return !keep[id] })
	}
	d.Claims, d.Cells, d.Traces = claims, cells, used
	result.Summarise(d)
	return d
}

// Big returns a document with at least n distinct traces, to measure with.
func Big(n int) *result.Document {
	var ds []design
	for i := 0; ; i++ {
		for _, d := range designs[1:6] {
			d.name = fmt.Sprintf("%s-%d", d.name, i)
			d.node = map[string]string{"win1": fmt.Sprintf("192.168.%d.11", i+1), "win2": fmt.Sprintf("192.168.%d.12", i+1)}
			ds = append(ds, d)
		}
		if doc := build(ds); doc.Traces.Len() >= n {
			return doc
		}
		if i == 0 {
			one := build(ds).Traces.Len()
			for i = 1; i < n/one; i++ {
				for _, d := range designs[1:6] {
					d.name = fmt.Sprintf("%s-%d", d.name, i)
					d.node = map[string]string{"win1": fmt.Sprintf("192.168.%d.11", i+1), "win2": fmt.Sprintf("192.168.%d.12", i+1)}
					ds = append(ds, d)
				}
			}
		}
	}
}

func build(ds []design) *result.Document {
	doc := &result.Document{Schema: result.Schema, Tool: "winlab v0.1.0-sample", Command: "winlab run", Areas: areas,
		Traces: result.NewTraces(), Facts: facts}
	for _, d := range ds {
		for _, k := range d.k8s {
			doc.Settings = append(doc.Settings, result.Setting{ID: d.name + "/" + k, Design: d.name, Title: d.title, File: "fixtures/labs/" +
				d.name + ".yaml",
				Network: d.network, Plugin: d.plugin, Proxy: d.proxy, Kubernetes: k, Builds: []string{d.build}})
			if s := &doc.Settings[len(doc.Settings)-1]; d.network == "l2bridge" {
				s.Components, s.Objects = []string{"kube-proxy " + k + ".15", "win-bridge 1.9.1"}, 214
				if k == "1.14" {
					s.ObjectsApart = []result.ObjectDifference{{Node: "win1", Only: result.Components,
						Line: "endpoint web_cbr0: Dns.Search[1] = svc.cluster.local"}}
				}
			}
		}
	}
	for _, s := range specs {
		doc.Claims = append(doc.Claims, claim(s))
		if s.flow == "" {
			continue
		}
		for _, d := range ds {
			for _, k := range d.k8s {
				if c, ok := cell(doc, s, d, k); ok {
					doc.Cells = append(doc.Cells, c)
				}
			}
		}
	}
	incidents(doc, ds)
	addStatics(doc)
	doc.Systems = systems
	result.Summarise(doc)
	return doc
}

func claim(s spec) result.Claim {
	c := result.Claim{ID: s.id, Area: s.area, Title: s.title, Text: s.text,
		Sources: []result.Source{{Doc: "Windows containers in Kubernetes", Section: "Networking", Version: "1.20",
			URL: "https://kubernetes.io/docs/setup/production-environment/windows/"}},
		History: []result.Status{{Where: "Kubernetes 1.5", Status: "undocumented"}, {Where: "Kubernetes 1.14 to 1.20", Status: "stable"}}}
	if strings.Contains(s.docs, "d") {
		c.Disputed = true
		c.Sources[0].Says = "It works on every network."
		c.Sources = append(c.Sources, result.Source{Doc: "flannel, Documentation/windows.md", Section: "Limitations", Says: "It does not work."})
		c.History = append(c.History, result.Status{Where: "Kubernetes 1.15, overlay", Status: "disputed",
			Says: "Two pages of one release contradict each other."})
	}
	if s.flow == "" {
		c.Unchecked = "needs a real Windows node: the lab has no such object yet"
	}
	return c
}

var columns = map[string]int{"l2bridge": 1, "overlay": 2, "transparent": 3, "nat": 4}

// words are what the letters of a spec say of the documents.
var words = map[byte]string{'+': "works", '-': "fails", 'c': "conditional", 'd': "disputed", '.': "silent"}

// flows are the kinds of flow that a spec can ask for.
var flows = map[string]struct {
	proto, from, to string
	paths           func(d design, k8s string) []trace.Path
}{
	"ok":      {"tcp", "pod/client", "pod/peer:80", func(d design, _ string) []trace.Path { return ok(d, "tcp") }},
	"wire":    {"tcp", "pod/client", "pod/peer:80", func(d design, _ string) []trace.Path { return ok(d, "tcp") }},
	"udp":     {"udp", "pod/client", "pod/peer:53", changedAt("1.5", func(d design) []trace.Path { return ok(d, "udp") }, blocked)},
	"ping":    {"ping", "pod/client", "pod/peer", changedAt("1.5", func(d design) []trace.Path { return ok(d, "ping") }, unknown)},
	"outside": {"tcp", "pod/client", "host/internet:443", func(d design, _ string) []trace.Path { return outside(d) }},
	"pingout": {"ping", "pod/client", "host/internet", func(d design, _ string) []trace.Path { return pingOutside(d) }},
	"service": {"tcp", "pod/client", "svc/win-webserver:80", func(d design, _ string) []trace.Path { return service(d, false) }},
	"split":   {"tcp", "pod/client", "svc/win-webserver:80", func(d design, _ string) []trace.Path { return service(d, d.vni != 0) }},
	"own":     {"tcp", "node/win1", "node/win1:30080", func(d design, _ string) []trace.Path { return ownNodePort(d) }},
	"blocked": {"tcp", "pod/client", "pod/peer:80", func(d design, _ string) []trace.Path { return blocked(d) }},
	"loop":    {"udp", "pod/client", "10.244.9.9:53", func(d design, _ string) []trace.Path { return loop(d) }},
	"hole":    {"tcp", "pod/client", "pod/peer:80", func(d design, _ string) []trace.Path { return unknown(d) }},
	"name":    {"tcp", "pod/client", "name/win-webserver.default:80", func(design, string) []trace.Path { return nil }},
}

// changedAt has one outcome up to a version and another one after it.
func changedAt(version string, after, upTo func(design) []trace.Path) func(design, string) []trace.Path {
	return func(d design, k8s string) []trace.Path {
		if k8s == version {
			return upTo(d)
		}
		return after(d)
	}
}

func cell(doc *result.Document, s spec, d design, k8s string) (result.Cell, bool) {
	col := columns[d.network]
	if k8s == "1.5" {
		col = 0
	}
	said := s.docs[col]
	if said == ' ' {
		return result.Cell{}, false
	}
	c := result.Cell{Claim: s.id, Setting: d.name + "/" + k8s, Status: "stable", Documented: words[said], Basis: basis(said)}
	k, t := checkOf(doc, s, d, k8s)
	judge(&c, &k, said, t)
	if s.id == "routing-loop" && d.network == "transparent" {
		c.Outcome, k.NotChecked = result.NotChecked, "No packet is sent: the pod has no address."
	}
	c.Checks = checks(c, k, d, k8s)
	if s.id == "pod-to-outside-tcp" && d.network == "nat" {
		c.Outcome = result.Failed
	}
	return c, true
}

func basis(said byte) string {
	switch said {
	case '.':
		return ""
	case 'c':
		return "implied"
	}
	return "stated"
}

// checkOf traces the flow of a claim, and adds the trace to the document.
func checkOf(doc *result.Document, s spec, d design, k8s string) (result.Check, *trace.Trace) {
	f := flows[s.flow]
	t := newTrace(d, k8s, f.from, f.to, f.proto, f.paths(d, k8s))
	key := d.name + "/" + k8s + " " + f.from + " " + f.to + " " + f.proto
	for i, first := 2, key; doc.Traces.Has(key) && doc.Traces.Get(key).Verdict != t.Verdict; i++ {
		key = fmt.Sprintf("%s %d", first, i)
	}
	doc.Traces.Put(key, t)
	k := result.Check{Level: result.Model, What: f.from + " -> " + f.to + " (" + f.proto + ")", Got: string(t.Verdict),
		Reason: string(t.Reason), Summary: t.Summary, Grade: t.Grade, Pass: true, Trace: key, Command: t.Command}
	if s.flow == "wire" {
		k.What, k.Got, k.Expect, k.Reason, k.Summary = "first frame on the fabric: tunnel, vni, udpPort", "vxlan 4096 4789", "vxlan 4096 4789",
			"", ""
		if d.vni == 0 {
			k.What, k.Got, k.Expect = "first frame on the fabric: src MAC", "00-15-5d-00-01-0b", "00-15-5d-00-01-0b"
		}
	}
	return k, t
}

// judge compares what happened with what the documents say.
func judge(c *result.Cell, k *result.Check, said byte, t *trace.Trace) {
	works := t.Verdict == trace.Delivered
	switch {
	case t.Verdict == trace.Unknown:
		c.Outcome = result.Unknown
	case said == '.':
		c.Outcome, c.Status = result.Own, "undocumented"
	case said == 'd':
		c.Outcome, c.Status = result.Disputed, "disputed"
		k.Expect, k.Pass = "delivered", works
		k.Dispute, k.Explained = &result.Dispute{By: 1, Against: 2, Otherwise: "not-delivered", Model: "against"}, !works
		if works {
			c.Outcome, k.Dispute.Model = result.Agrees, "by"
		}
	case (said == '-') == works && said != 'c':
		c.Outcome, k.Pass = result.Differs, false
		k.Expect = "delivered"
		if said == '-' {
			k.Expect = "no-reply"
		}
	default:
		c.Outcome = result.Agrees
		k.Expect = cmp.Or(k.Expect, k.Got)
	}
}

// checks are those of a cell: one, but for a few claims that show what else there is.
func checks(c result.Cell, k result.Check, d design, k8s string) []result.Check {
	switch {
	case c.Claim == "pod-to-outside-tcp" && d.network == "nat":
		return []result.Check{{Level: result.Model, What: k.What, Expect: "delivered", Got: "error",
			Summary: "fixtures/cni/nat.conf:7:3: unknown field \"natNetwork\"", Command: k.Command}}
	case c.Claim == "clusterip" && d.network == "l2bridge":
		return []result.Check{k, {Level: result.Components, What: "kube-proxy.exe programs 10.96.0.50:80", Expect: "2 backends",
			Got: "2 backends", Grade: evidence.Code, Pass: true}}
	case c.Claim == "ping-node" && d.network == "l2bridge":
		// The same again with real components; in one setting the outcome is another.
		again := k
		again.Level, again.Trace = result.Components, ""
		if d.name == "l2bridge-flannel-host-gw" && k8s == "1.14" {
			again.Got, again.Reason = "no-reply", "timeout"
		}
		return []result.Check{k, again}
	}
	return []result.Check{k}
}

func newTrace(d design, k8s, from, to, proto string, paths []trace.Path) *trace.Trace {
	t := &trace.Trace{Schema: trace.Schema,
		Lab: trace.Lab{Name: d.name, File: "fixtures/labs/" + d.name + ".yaml", Kubernetes: k8s, Network: d.plugin + " on " + d.network,
			Proxy: d.proxy, Builds: map[string]string{"win1": d.build, "win2": d.build}},
		Flow: trace.Flow{From: from, To: to, Protocol: proto, Src: "10.244.1.4", Dst: "10.244.2.7", SrcPort: 49158, DstPort: 80, Node: "win1",
			Build: d.build},
		Assumed: []trace.Assumption{{What: "source port", Value: "49158", Flag: "--source-port"}, {What: "ttl", Value: "128", Flag: "--ttl"}},
		Hints:   []string{"winlab explain " + "no-reply"}, Paths: paths}
	t.Command = "winlab trace " + t.Lab.File + " --kubernetes " + k8s + " --from " + from + " --to " + to
	if proto != "tcp" {
		t.Command += " --" + proto
	}
	if len(paths) == 0 {
		server := "10.96.0.10"
		q := pathOf(ok(d, "udp"))
		q.Steps = q.Steps[:6]
		t.Verdict, t.Reason, t.Grade = trace.Unresolved, trace.NameNotCompleted, evidence.Stated
		t.Summary = "win-webserver.default has a dot, so Windows adds no suffix, and the name as it stands does not exist."
		t.Flow.Dst, t.Flow.DstPort = "", 0
		t.Names = []trace.Lookup{{Name: "win-webserver.default", Tool: "Resolve-DnsName", Verdict: trace.Unresolved,
			Reason: trace.NameNotCompleted, Summary: t.Summary,
			Queries: []trace.Query{{Name: "win-webserver.default.", Type: "A", Server: server, RCode: "NXDOMAIN", Path: &q}}}}
		return t
	}
	f := paths[0]
	t.Verdict, t.Reason, t.Summary, t.Grade = f.Verdict, f.Reason, f.Summary, f.Grade
	t.Flow.Src, t.Flow.Dst = "10.244.1.4", "10.244.2.7"
	for _, p := range paths[1:] {
		if p.Verdict != f.Verdict {
			t.Verdict, t.Reason, t.Summary = trace.Varies, trace.SplitVerdict, "1 of 2 backends works; the other is on another node."
		} else {
			t.Summary = "Both backends answer."
		}
	}
	return t
}

func pathOf(p []trace.Path) trace.Path { return p[0] }

func incidents(doc *result.Document, ds []design) {
	over := ds[len(ds)-1]
	for _, d := range ds {
		if d.vni != 0 {
			over = d
			break
		}
	}
	add := func(lab, title, incident, variant, name, expect string, paths []trace.Path) {
		t := newTrace(over, over.k8s[0], "pod/client", "svc/win-webserver:80", "tcp", paths)
		t.Lab.Name, t.Lab.File, t.Lab.Variant = lab, "fixtures/incidents/"+lab+".yaml", variant
		t.Command = "winlab trace " + t.Lab.File + " --variant " + variant + " --from pod/client --to svc/win-webserver:80"
		key := lab + "/" + variant + " " + name
		doc.Traces.Put(key, t)
		doc.Flows = append(doc.Flows, result.FlowResult{Lab: lab, File: t.Lab.File, Title: title, Variant: variant, Incident: incident,
			Name: name, Expected: expect != "",
			Check: result.Check{Level: result.Model, What: "pod/client -> svc/win-webserver:80 (tcp)", Expect: expect, Got: string(t.Verdict),
				Reason: string(t.Reason), Summary: t.Summary, Grade: t.Grade, Pass: expect == string(t.Verdict), Trace: key, Command: t.Command}})
	}
	add("i-04-remote-backends", "Service works for local backends only", "kubernetes/kubernetes#96517", "broken", "client to Service",
		"varies", service(over, true))
	add("i-04-remote-backends", "Service works for local backends only", "kubernetes/kubernetes#96517", "fixed", "client to Service",
		"delivered", service(over, false))
	add("i-31-acl-priority", "A deny rule wins over a later allow", "Azure/AKS#2031", "broken", "client to peer", "dropped", blocked(over))
	add("i-31-acl-priority", "A deny rule wins over a later allow", "Azure/AKS#2031", "fixed", "client to peer", "delivered", blocked(over))
	add("l2bridge-flannel-host-gw", "", "", "", "client to peer", "delivered", ok(over, "tcp"))
	policy := trace.Notice{What: "NetworkPolicy default/deny-all", Why: "objects of this kind are not simulated",
		At: &trace.Origin{What: "NetworkPolicy default/deny-all", File: "fixtures/manifests/policy.yaml", Line: 12}}
	doc.NotModelled = append(doc.NotModelled, result.Notice{Lab: over.name, Settings: []string{doc.Settings[0].ID}, Notice: policy},
		result.Notice{Lab: "i-31-acl-priority", Variant: "broken", Notice: policy})
	for key, t := range doc.Traces.All() {
		if strings.HasPrefix(key, "i-31-acl-priority/broken") {
			t.NotModelled = []trace.Notice{policy}
			doc.Traces.Put(key, t)
		}
	}
}
