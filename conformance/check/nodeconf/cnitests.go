package nodeconf

import (
	"net/netip"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/cni"
)

var cniTests = []subject.Test{
	{
		On: []string{"cni", "net-conf"}, Name: "refused-by-plugin", Vars: []string{"problem"},
		Doc:  "The plugin, or flanneld on a Windows node, refuses the configuration.",
		Find: refusedByPlugin,
	},
	{
		On: []string{"cni", "net-conf"}, Name: "ignored-by-plugin", Vars: []string{"problem"},
		Doc:  "The plugin, or flanneld on a Windows node, passes over a part of the configuration.",
		Find: ignoredByPlugin,
	},
	{
		On: []string{"cni"}, Name: "version-with-check", Vars: []string{"version", "plugin"},
		Doc:  "The cniVersion is one that has the verb CHECK, with win-bridge or win-overlay.",
		Find: versionWithCheck,
	},
	{
		On: []string{"cni"}, Name: "exceptions-lack", Args: []string{"range", "network"}, Vars: []string{"range", "from"},
		Doc:  "The exceptions of outbound NAT do not hold a range that the configuration names: range is cluster, service or management.",
		Find: exceptionsLack,
	},
	{
		On: []string{"cni"}, Name: "exceptions-hold-outside", Args: []string{"everything"}, Vars: []string{"value"},
		Doc:  "The exceptions of outbound NAT hold addresses outside of the cluster: all of them (everything: true), or public ones that nothing else in the files names.",
		Find: exceptionsHoldOutside,
	},
	{
		On: []string{"cni"}, Name: "dns-outside-services", Vars: []string{"value", "range", "from"},
		Doc:  "A name server of the configuration is an address of the pods' network, where no Service can be.",
		Find: dnsInPods,
	},
	{
		On: []string{"kubelet", "kubelet-config", "service-manager"}, Name: "dns-outside-services", Vars: []string{"value", "range", "from"},
		Doc:  "The address of the cluster DNS is in the pods' network, or outside of the Services' network where that is known.",
		Find: dnsInPods,
	},
}

func refusedByPlugin(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	refused, _ := remarksOn(s)
	return hitsOf(refused)
}

func ignoredByPlugin(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	_, ignored := remarksOn(s)
	return hitsOf(ignored)
}

// remarksOn is what sim/kube/cni says about the file of a subject.
func remarksOn(s *subject.Subject) (refused, ignored strict.Mistakes) {
	switch v := s.Value.(type) {
	case *CNI:
		return v.Refused, v.ignored
	case *NetConf:
		return v.refused, v.ignored
	case *Agent:
		return v.refused, nil
	}
	return nil, nil
}

func versionWithCheck(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	c, ok := s.Value.(*CNI)
	plugin := c.calls()
	n := nodeAt(s, "cniVersion")
	if !ok || plugin != "win-bridge" && plugin != "win-overlay" || !hasCheck(strict.Text(n)) {
		return nil
	}
	return []subject.Hit{{At: n, Field: "cniVersion", Vars: map[string]string{"version": strict.Text(n), "plugin": plugin}}}
}

func exceptionsLack(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	conf, ok := s.Value.(*CNI)
	lists, held := exceptions(s)
	if !ok || len(lists) == 0 || conf.Type == "azure-vnet" || args["network"] != "" && conf.Network != args["network"] {
		return nil
	}
	if conf.Type == string(cni.PluginCalico) && args["range"] == "cluster" {
		return nil // the plugin adds the IP pools (cni.calico-nat)
	}
	var known []fact
	switch args["range"] {
	case "cluster":
		known = clusterRanges(c.All)
	case "service":
		known = serviceRanges(c.All)
	case "management":
		known = append(managementAddresses(c.All), ownRoutes(s)...)
	}
	for _, f := range known {
		// What another CNI configuration says is about its own nodes.
		if f.in.On == "cni" && f.in != s || covered(held, f.prefix) {
			continue
		}
		return []subject.Hit{{At: lists[0], Field: "ExceptionList", Vars: map[string]string{"range": rangeText(f.prefix), "from": f.from}}}
	}
	return nil
}

func exceptionsHoldOutside(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	conf, ok := s.Value.(*CNI)
	if !ok || conf.Type == "azure-vnet" {
		return nil
	}
	inside := inside(c.All, s)
	var hits []subject.Hit
	for _, l := range allLists(s) {
		for _, e := range l.Content {
			for _, p := range prefixes(strict.Text(e)) {
				everything := p.Bits() <= 1
				if everything != (args["everything"] == "true") || !everything && !outside(p, inside) {
					continue
				}
				hits = append(hits, subject.Hit{At: e, Field: "ExceptionList", Vars: map[string]string{"value": strict.Text(e)}})
			}
		}
	}
	return hits
}

// hitsOf makes hits of remarks.
func hitsOf(all strict.Mistakes) (hits []subject.Hit) {
	for _, m := range all {
		hits = append(hits, subject.Hit{At: &yaml.Node{Line: m.Line, Column: m.Column}, Vars: map[string]string{"problem": m.Message}})
	}
	return hits
}

// calls is the plugin that does the work.
func (c *CNI) calls() string {
	switch {
	case c == nil:
		return ""
	case c.delegate != "":
		return c.delegate
	}
	return c.Type
}

// hasCheck reports whether a version of the specification has CHECK: 0.4.0 and later.
func hasCheck(version string) bool {
	return version != "" && !slices.Contains([]string{"0.1.0", "0.2.0", "0.3.0", "0.3.1"}, version) && version[0] >= '0' && version[0] <= '9'
}

// allLists are the lists of exceptions, in the form of HNS v1 or HCN v2.
func allLists(s *subject.Subject) []*yaml.Node {
	var out []*yaml.Node
	for _, p := range Policies(s) {
		lists, _ := p.OutboundNAT()
		out = append(out, lists...)
	}
	return out
}

// exceptions are the lists and what they hold; none when an entry cannot be
// read, because then what is missing is unknown.
func exceptions(s *subject.Subject) (lists []*yaml.Node, held []netip.Prefix) {
	lists = allLists(s)
	for _, l := range lists {
		for _, e := range l.Content {
			p := prefixes(strict.Text(e))
			if len(p) == 0 {
				return nil, nil
			}
			held = append(held, p...)
		}
	}
	return lists, held
}

// ownRoutes are the routes to single addresses: the start scripts write one to
// the node's own address.
func ownRoutes(s *subject.Subject) []fact {
	var out []fact
	for _, f := range routes(s) {
		if f.prefix.IsSingleIP() && f.prefix.Addr().IsPrivate() {
			out = append(out, f)
		}
	}
	return out
}

// routes are the destinations of ROUTE policies: Services and the node.
func routes(s *subject.Subject) []fact {
	var out []fact
	for _, p := range Policies(s) {
		n := p.Route()
		for _, prefix := range prefixes(strict.Text(n)) {
			out = append(out, fact{prefix, "cni ROUTE", n, s})
		}
	}
	return out
}

// inside are all ranges that some file names as the cluster's or the node's.
func inside(all []*subject.Subject, s *subject.Subject) []netip.Prefix {
	var out []netip.Prefix
	for _, f := range slices.Concat(clusterRanges(all), serviceRanges(all), managementAddresses(all), routes(s)) {
		out = append(out, f.prefix)
	}
	return out
}

// local are the addresses that no provider routes (RFC 1918, 6598, 3927, 4193,
// 4291); 168.63.129.16 is Azure's platform address.
var local = prefixes(
	"10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,169.254.0.0/16,127.0.0.0/8,168.63.129.16/32,fc00::/7,fe80::/10,::1/128")

func outside(p netip.Prefix, inside []netip.Prefix) bool {
	return !covered(local, p) && !covered(inside, p) && !slices.ContainsFunc(inside, func(i netip.Prefix) bool { return p.Overlaps(i) })
}

func rangeText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

// dnsInPods finds name servers that cannot be a Service's address.
func dnsInPods(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	var hits []subject.Hit
	for _, f := range serviceRanges([]*subject.Subject{s}) {
		// A cache on the node itself has a link-local address.
		if !f.prefix.IsSingleIP() || f.prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		for _, cluster := range clusterRanges(c.All) {
			if cluster.prefix.Masked().Contains(f.prefix.Addr()) {
				hits = append(hits, dnsHit(f, "inside the pods' network", cluster))
				break
			}
		}
		if len(hits) > 0 {
			continue
		}
		for _, services := range facts(c.All, []string{"service-manager", "-ServiceCIDR"}) {
			if !services.prefix.Masked().Contains(f.prefix.Addr()) && services.prefix.Addr().Is4() == f.prefix.Addr().Is4() {
				hits = append(hits, dnsHit(f, "outside of the Services' network", services))
				break
			}
		}
	}
	return hits
}

func dnsHit(f fact, what string, other fact) subject.Hit {
	return subject.Hit{At: f.at, Vars: map[string]string{"value": f.prefix.Addr().String(), "range": what + " " + rangeText(other.prefix),
		"from": other.from}}
}
