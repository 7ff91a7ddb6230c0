package doctor

import (
	"fmt"
	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/internal/strict"
)

// argument returns a flag of a command line, or a variable as "$NAME".
func argument(s *subject.Subject, name string) (value string, place observed.Place, ok bool) {
	n := strict.Child(s.Root, name)
	if n == nil || n.Kind != yaml.ScalarNode {
		return "", observed.Place{}, false
	}
	value = strings.Trim(strings.TrimSpace(n.Value), `"'`)
	return value, observed.Place{File: s.File, Line: n.Line, Text: fmt.Sprintf("%s=%s", name, value)}, true
}

// placeOf points at the beginning of a subject.
func placeOf(s *subject.Subject, text string) observed.Place {
	line := 0
	if s.Root != nil {
		line = s.Root.Line
	}
	return observed.Place{File: s.File, Line: line, Text: text}
}

// variable matches values that are filled in later: $(hostname), <hostname>,
// %COMPUTERNAME%, {{...}}.
func variable(s string) bool { return strings.ContainsAny(s, "$<>%{}") }

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// fold is strict.Child without regard to case, as Go's JSON decoder reads keys.
func fold(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, key) {
			return n.Content[i+1]
		}
	}
	return nil
}

func program(s string) string {
	s = strings.ToLower(s)
	return strings.TrimSuffix(s, ".exe")
}

// cniFacts finds the plugin.
func (x *nodeFacts) cniFacts() {
	for _, s := range x.subjects("cni") {
		if t := program(text(fold(s.Root, "type"))); t != "" && x.plugin == "" {
			x.plugin = t
			x.delegate = program(text(fold(fold(s.Root, "delegate"), "type")))
			if x.plugin == "flannel" && x.delegate == "" {
				x.delegate = "win-bridge" // flannel-io/cni-plugin flannel_windows.go
			}
		}
	}
}

// exceptions are the ranges of OutBoundNAT policies, with their places.
func exceptions(s *subject.Subject) (list []known, has bool) {
	for _, p := range nodeconf.Policies(s) {
		lists, ok := p.OutboundNAT()
		has = has || ok
		for _, l := range lists {
			for _, e := range l.Content {
				if r, err := netip.ParsePrefix(strings.TrimSpace(e.Value)); err == nil {
					list = append(list, known{r.Masked(), observed.Place{File: s.File, Line: e.Line, Text: e.Value}})
				}
			}
		}
	}
	return list, has
}

// ranges finds the cluster's networks. Of each the first that is found counts, so the
// order of the sources is that of their authority.
func (x *nodeFacts) ranges() {
	x.rangesOfFiles()
	x.rangesOfCommands()
	x.rangesOfRoutes()
	for _, n := range x.pods {
		for _, p := range n.Subnets {
			x.subnet.set(p.String(), n.Place)
		}
	}
	if x.me != nil {
		for _, p := range x.me.PodCIDRs {
			x.subnet.set(p.String(), x.me.Place)
		}
	}
	x.managementRange()
}

// set takes an IPv4 range, unless one is known already.
func (k *known) set(value string, place observed.Place) {
	p, err := netip.ParsePrefix(strings.TrimSpace(value))
	if err == nil && !k.prefix.IsValid() && p.Addr().Is4() {
		*k = known{p.Masked(), place}
	}
}

// setField takes the range that a field of a file holds.
func (k *known) setField(s *subject.Subject, key string) {
	if n := fold(s.Root, key); n != nil {
		k.set(text(n), observed.Place{File: s.File, Line: n.Line, Text: key + " " + text(n)})
	}
}

// rangesOfFiles reads flannel's and kube-proxy's own configuration.
func (x *nodeFacts) rangesOfFiles() {
	for _, s := range x.subjects("net-conf") {
		x.cluster.setField(s, "Network")
	}
	for _, s := range x.subjects("subnet-env") {
		x.cluster.setField(s, "FLANNEL_NETWORK")
		x.subnet.setField(s, "FLANNEL_SUBNET")
	}
	for _, s := range x.subjects("kube-proxy") {
		v, p, _ := argument(s, "--cluster-cidr")
		x.cluster.set(v, p)
	}
	for _, s := range x.subjects("kube-proxy-config") {
		x.cluster.setField(s, "clusterCIDR")
	}
}

// rangesOfCommands reads the ranges on the command lines that start the node.
func (x *nodeFacts) rangesOfCommands() {
	for _, c := range x.n.Commands {
		f := strings.Fields(c.Text)
		for i := 0; i+1 < len(f); i++ {
			switch {
			case strings.EqualFold(f[i], "-ClusterCIDR"):
				x.cluster.set(strings.Trim(f[i+1], `"'`), c.Place)
			case strings.EqualFold(f[i], "-ServiceCIDR"):
				x.service.set(strings.Trim(f[i+1], `"'`), c.Place)
			}
		}
	}
}

// rangesOfRoutes reads the routes of CNI configurations: win-bridge and win-overlay are
// told the Service range as one.
func (x *nodeFacts) rangesOfRoutes() {
	for _, s := range x.subjects("cni") {
		for _, p := range nodeconf.Policies(s) {
			d := p.Route()
			r, err := netip.ParsePrefix(text(d))
			if err != nil || r.Bits() >= 32 || x.cluster.prefix.IsValid() && x.cluster.prefix.Overlaps(r) {
				continue
			}
			x.service.set(text(d), observed.Place{File: s.File, Line: d.Line, Text: "DestinationPrefix " + text(d)})
		}
	}
}

// managementRange is the network of the adapter that leads out.
func (x *nodeFacts) managementRange() {
	for _, a := range x.n.Adapters {
		if a.VM != "" || len(a.Gateways) == 0 {
			continue
		}
		for _, p := range a.Addresses {
			if p.Addr().Is4() && p.Bits() < 32 && !x.inSubnet(p.Addr()) {
				x.management = known{p.Masked(), a.Place}
				x.management.place.Text = fmt.Sprintf("%s on %s", p, a.Name)
				return
			}
		}
	}
}

func (x *nodeFacts) inSubnet(a netip.Addr) bool {
	return x.subnet.prefix.IsValid() && x.subnet.prefix.Contains(a)
}

func (k known) contains(a netip.Addr) bool { return k.prefix.IsValid() && k.prefix.Contains(a) }

// covers reports whether one range of a list holds all of p.
func covers(list []known, p netip.Prefix) bool {
	for _, e := range list {
		if e.prefix.Bits() <= p.Bits() && e.prefix.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// outside reports whether an address is in none of the cluster's networks, as
// far as they are known, and not on the node's own network.
func (x *nodeFacts) outside(a netip.Addr) bool {
	return a.IsValid() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !x.cluster.contains(a) && !x.service.contains(a) &&
		!x.subnet.contains(a) && !x.management.contains(a) && !x.hasAddress(a)
}
