package labfile

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// names lists who can be an end of a flow, by kind: "pod" and "svc" with their
// namespaces. Kinds whose members are not known yet are left out.
func (f *File) names() map[string][]string {
	s := &f.Lab.Spec
	m := map[string][]string{"node": s.nodeNames()}
	for _, h := range s.Hosts {
		m["host"] = append(m["host"], h.Name)
	}
	man, err := f.readManifests()
	if err != nil {
		// Build reports it with the manifest's own lines.
		return m
	}
	f.man.Store(man)
	m["svc"] = []string{"default/kubernetes"}
	if !s.DNS.Off {
		m["pod"] = []string{"kube-system/coredns-0"}
		m["svc"] = append(m["svc"], "kube-system/kube-dns")
	}
	for _, w := range man.Workloads {
		m["pod"] = append(m["pod"], w.Namespace+"/"+w.Name)
	}
	for _, p := range s.Pods {
		m["pod"] = append(m["pod"], podKey(p))
	}
	for _, sv := range man.Services {
		m["svc"] = append(m["svc"], sv.Key())
	}
	f.namesOfSteps(m)
	return m
}

func podKey(p Pod) string {
	return namespaceOr(p.Namespace) + "/" + p.Name
}

// target complains about an end of a flow that cannot be read or does not exist.
func (v *validator) target(path []any, text string) {
	t, err := ParseTarget(text)
	if err != nil {
		v.add(path, "%v", err)
		return
	}
	all, known := v.names()[string(t.Kind)]
	name := strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
	if !known && t.Kind != HostTarget || t.Kind == AddressTarget || t.Kind == LocalhostTarget || slices.Contains(all, name) {
		return
	}
	hint := "; this lab has none"
	if len(all) > 0 {
		hint = strict.DidYouMean(name, all)
	}
	v.add(path, "%s: there is no %s %s in this lab%s", text, kindNames[string(t.Kind)], name, hint)
}

var kindNames = map[string]string{"pod": "pod", "svc": "Service", "node": "node", "host": "host"}

func (v *validator) flows(path []any, fs []Flow) {
	for i, f := range fs {
		at := sub(path, i)
		v.ends(at, f)
		if f.Resolve != "" {
			var tools []string
			for _, t := range dns.Tools {
				tools = append(tools, string(t))
			}
			v.oneOf(sub(at, "resolve"), "tool", f.Resolve, tools)
		}
		if f.Protocol != "" {
			v.oneOf(sub(at, "protocol"), "protocol", f.Protocol, []string{"tcp", "udp", "ping"})
		}
		if f.Family != "" {
			v.oneOf(sub(at, "family"), "family", f.Family, []string{FamilyIPv4, FamilyIPv6})
		}
		v.expected(at, f)
		v.size(at, f)
		if f.Idle != "" {
			if d, err := time.ParseDuration(f.Idle); err != nil || d < 0 {
				v.add(sub(at, "idle"), "%q is not a time; write it as 300s", f.Idle)
			}
		}
		v.calls(sub(at, "meanwhile"), f.Meanwhile)
	}
}

// MaxSize is the largest payload of a flow: it still fits into one packet in a tunnel.
const MaxSize = 58000

// size complains about the size of a flow.
func (v *validator) size(at []any, f Flow) {
	switch {
	case f.Size < 0 || f.Size > MaxSize:
		v.add(sub(at, "size"), "size %d: write 1 to %d bytes of payload", f.Size, MaxSize)
	case f.Size != 0 && (f.Resolve != "" || f.Connections > 1 || f.Connection != "" || f.Idle != "" || len(f.Meanwhile) > 0):
		v.add(sub(at, "size"),
			"a flow with a size is one packet or one connection with data; it cannot have resolve, connections, connection, idle or meanwhile")
	case f.DontFragment && (f.Size == 0 || f.Protocol != "ping" && f.Protocol != "udp"):
		v.add(sub(at, "dontFragment"), "dontFragment is for a ping or a datagram with a size; TCP always sets it")
	}
}

// mtu complains about an MTU that no network has.
func (v *validator) mtu(path []any, n int) {
	if n != 0 && (n < minMTU || n > maxMTU) {
		v.add(path, "mtu %d: write %d to %d bytes", n, minMTU, maxMTU)
	}
}

// The bounds of an MTU in bytes: what each IPv4 host takes (RFC 791), and what an IP
// packet can have.
const (
	minMTU = 576
	maxMTU = 65535
)

// ends complains about the ends of a flow.
func (v *validator) ends(at []any, f Flow) {
	if (f.From == "" || f.To == "") && f.Connection == "" {
		v.add(at, "a flow needs from and to, such as pod/client and svc/web:80")
	}
	if f.From != "" {
		v.target(sub(at, "from"), f.From)
	}
	if f.To != "" && f.Resolve == "" {
		v.target(sub(at, "to"), f.To)
	}
}

// expected complains about what is expected of a flow.
func (v *validator) expected(at []any, f Flow) {
	v.verdict(sub(at, "expect"), f.Expect)
	for _, name := range slices.Sorted(maps.Keys(f.Backends)) {
		if f.Backends[name] != NotChosen {
			v.verdict(sub(at, "backends", name), f.Backends[name])
		}
	}
	if f.Reason != "" {
		if _, ok := trace.Explain(trace.Reason(f.Reason)); !ok {
			v.add(sub(at, "reason"), "there is no reason code %q; winlab explain lists them", f.Reason)
		}
	}
	if f.Spread != "" {
		v.oneOf(sub(at, "spread"), "spread", f.Spread, []string{"one", "several"})
	}
	if f.Connections < 0 || f.Connections > maxConnections || (f.Connections > 1) != (f.Spread != "") {
		v.add(at, "connections and spread go together: connections: 2 to %d, spread: one or several", maxConnections)
	}
	if f.SeenAs != "" {
		v.target(sub(at, "seenAs"), f.SeenAs)
	}
}

func (v *validator) verdict(path []any, text string) {
	if text == "" || text == NotDelivered {
		return
	}
	switch verdict, err := trace.ParseVerdict(text); {
	case err != nil:
		v.add(path, "%v; or %s", err, NotDelivered)
	case string(verdict) != text:
		v.add(path, "no verdict %q; write %s", text, verdict)
	}
}

// hnsKinds are the kinds of objects that a lab can call for, those that have
// policies first.
var hnsKinds = []string{"network", "endpoint", "loadBalancer"}

func (v *validator) calls(path []any, cs []HNSCall) {
	for i, c := range cs {
		at := sub(path, i)
		v.oneOf(sub(at, "node"), "node", c.Node, v.lab.Spec.nodeNames())
		n := 0
		for _, set := range []bool{c.Delete != nil, c.RemovePolicy != nil, c.AddPolicy != nil, c.UpdatePolicy != nil, c.Create != nil,
			c.Restart} {
			if set {
				n++
			}
		}
		if n != 1 {
			v.add(at, "an HNS call must have exactly one of delete, removePolicy, addPolicy, updatePolicy, create and restart; this one has %d", n)
		}
		if c.Delete != nil {
			v.oneOf(sub(at, "delete", "kind"), "kind", c.Delete.Kind, hnsKinds)
			v.selector(sub(at, "delete"), *c.Delete)
			v.idleSelectors(sub(at, "delete"), *c.Delete)
		}
		v.policyCall(sub(at, "removePolicy"), c.RemovePolicy, "match")
		v.policyCall(sub(at, "addPolicy"), c.AddPolicy, "settings")
		v.policyCall(sub(at, "updatePolicy"), c.UpdatePolicy, "settings")
		if c.Create != nil {
			v.oneOf(sub(at, "create", "kind"), "kind", c.Create.Kind, hnsKinds)
			if c.Create.Count < 0 || c.Create.Count > maxCreate {
				v.add(sub(at, "create", "count"), "count is %d; write 1 to %d", c.Create.Count, maxCreate)
			}
		}
		if c.Error != "" {
			if _, err := ParseErrorCode(c.Error); err != nil {
				v.add(sub(at, "error"), "%v", err)
			}
		}
	}
}

// policyCall complains about a call that changes policies; reads is the one of match
// and settings that has a meaning for it.
func (v *validator) policyCall(at []any, c *HNSPolicyCall, reads string) {
	if c == nil {
		return
	}
	v.oneOf(sub(at, "kind"), "kind", c.Kind, hnsKinds[:2])
	if c.Type == "" {
		v.add(at, "type is missing; write the policy type of HCN v2, such as OutBoundNAT")
	}
	if c.Match != nil && reads != "match" {
		v.add(sub(at, "match"), "match is for removePolicy: it picks among existing policies")
	}
	if c.Settings != nil && reads != "settings" {
		v.add(sub(at, "settings"), "settings are for addPolicy and updatePolicy; removePolicy picks policies by match")
	}
	v.selector(at, c.HNSSelector)
	v.idleSelectors(at, c.HNSSelector)
}

// idleSelectors complains about fields of a selector that select nothing among the
// objects of its kind.
func (v *validator) idleSelectors(path []any, s HNSSelector) {
	set := map[string]bool{"name": s.Name != "", "pod": s.Pod != "", "address": s.Address != "", "vip": s.VIP != "", "port": s.Port != 0}
	by := map[string][]string{"network": {"name"}, "endpoint": {"name", "pod", "address"}, "loadBalancer": {"vip", "port"}}[s.Kind]
	for _, field := range []string{"name", "pod", "address", "vip", "port"} {
		if set[field] && by != nil && !slices.Contains(by, field) {
			v.add(sub(path, field), "%s cannot select objects of kind %s; select them by %s", field, s.Kind, strings.Join(by, ", "))
		}
	}
	if set["pod"] && (set["address"] || set["name"]) || set["address"] && set["name"] {
		v.add(path, "an endpoint is selected by one of name, pod and address")
	}
}

// AnyError is the error of a call that HNS must refuse, with whatever code.
const AnyError = "any"

// ParseErrorCode reads the error code of an HNS call; 0 stands for any.
func ParseErrorCode(text string) (uint32, error) {
	if text == AnyError {
		return 0, nil
	}
	code, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not an error code; write it as 0x803b0013, or any", text)
	}
	return uint32(code), nil
}

// NotDelivered is the expectation that a flow fails, however: documents often
// say no more. NotChosen is the expectation for a backend that gets no flow.
const (
	NotDelivered = "not-delivered"
	NotChosen    = "not-chosen"
)

// maxConnections bounds how many connections a flow opens.
const maxConnections = 256

// maxCreate bounds how often an HNS call repeats a creation: more objects than
// ports of a node mean nothing.
const maxCreate = 1 << 16

func (v *validator) selector(path []any, s HNSSelector) {
	if s.Pod != "" {
		v.target(sub(path, "pod"), "pod/"+strings.TrimPrefix(s.Pod, "pod/"))
	}
	if s.Address != "" {
		v.addr(sub(path, "address"), s.Address)
	}
	if s.VIP != "" {
		v.addr(sub(path, "vip"), s.VIP)
	}
}

// taken are the addresses of machines, which no pod may have.
func taken(s *Spec) map[string]string {
	m := map[string]string{}
	for _, n := range s.Nodes {
		m[n.Address] = "node " + n.Name
	}
	for _, h := range s.Hosts {
		m[h.Address] = "host " + h.Name
	}
	for _, r := range s.Fabric.Routers {
		for _, i := range r.Interfaces {
			if pre, err := netip.ParsePrefix(i.Address); err == nil {
				m[pre.Addr().String()] = "router " + r.Name
			}
		}
	}
	return m
}
