package nodeconf

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// literal reports whether a value is one, and not something that a person or a
// shell still has to put in.
func literal(s string) bool { return s != "" && !strings.ContainsAny(s, "$%<>{}`") }

// fact is something that a file says about the cluster or the node, with the
// place.
type fact struct {
	prefix netip.Prefix
	from   string
	at     *yaml.Node
	in     *subject.Subject
}

// prefixes reads a list of prefixes or addresses.
func prefixes(text string) []netip.Prefix {
	var out []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if p, err := netip.ParsePrefix(part); err == nil {
			out = append(out, p)
		} else if a, err := netip.ParseAddr(part); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// nodeAt follows keys from a subject's root.
func nodeAt(s *subject.Subject, keys ...string) *yaml.Node {
	n := s.Root
	for _, k := range keys {
		n = strict.Child(n, k)
	}
	return n
}

// facts collects what fields of subjects say.
func facts(all []*subject.Subject, fields ...[]string) []fact {
	var out []fact
	for _, s := range all {
		for _, f := range fields {
			if s.On != f[0] {
				continue
			}
			n := nodeAt(s, f[1:]...)
			for _, p := range prefixes(strict.Text(n)) {
				out = append(out, fact{p, f[0] + " " + strings.Join(f[1:], "."), n, s})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.in.File, b.in.File), cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	return out
}

// clusterRanges are what the files say about the addresses of pods.
func clusterRanges(all []*subject.Subject) []fact {
	return facts(all,
		[]string{"net-conf", "Network"}, []string{"subnet-env", "FLANNEL_NETWORK"}, []string{"kube-proxy", "--cluster-cidr"},
		[]string{"kube-proxy-config", "clusterCIDR"}, []string{"service-manager", "-ClusterCIDR"}, []string{"cni", "ipMasqNetwork"},
		[]string{"cni", "delegate", "ipMasqNetwork"}, []string{"cni", "ipam", "subnet"})
}

// serviceRanges are what the files say about the addresses of Services: a
// range, or the address of the cluster DNS, which is one of them.
func serviceRanges(all []*subject.Subject) []fact {
	out := facts(all, []string{"service-manager", "-ServiceCIDR"}, []string{"kubelet", "--cluster-dns"},
		[]string{"service-manager", "-KubeDnsServiceIP"})
	for _, s := range all {
		var list *yaml.Node
		from := s.On + " "
		switch s.On {
		case "kubelet-config":
			list, from = nodeAt(s, "clusterDNS"), from+"clusterDNS"
		case "cni":
			if list = nodeAt(s, "dns", "nameservers"); list == nil {
				list = nodeAt(s, "delegate", "dns", "nameservers")
			}
			from += "dns.nameservers"
		}
		if list == nil {
			continue
		}
		for i, n := range list.Content {
			for _, p := range prefixes(strict.Text(n)) {
				if from == "cni dns.nameservers" && (i > 0 || !p.Addr().IsPrivate()) {
					continue // a server outside of the cluster
				}
				out = append(out, fact{p, from, n, s})
			}
		}
	}
	return out
}

// managementAddresses are what the files say about the node's own address.
func managementAddresses(all []*subject.Subject) []fact {
	return facts(all, []string{"flanneld", "--iface"}, []string{"flanneld", "--public-ip"}, []string{"kubelet", "--node-ip"},
		[]string{"service-manager", "-ManagementIP"})
}

// covered reports whether one of the prefixes holds all of p.
func covered(list []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(list, func(e netip.Prefix) bool {
		return e.Addr().Is4() == p.Addr().Is4() && e.Bits() <= p.Bits() && e.Masked().Contains(p.Addr())
	})
}

// minor is the minor version of a target; without one, the newest.
func minor(kubernetes string) int {
	parts := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
	if len(parts) > 1 {
		if n, err := strconv.Atoi(parts[1]); err == nil {
			return n
		}
	}
	return newestMinor
}

// gateValues reads "A=true,B=false".
func gateValues(text string) map[string]bool {
	values := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if on, err := strconv.ParseBool(strings.TrimSpace(strings.Trim(value, `'"`))); ok && err == nil {
			values[strings.Trim(strings.TrimSpace(name), `'"`)] = on
		}
	}
	return values
}

// get is one value of kube-proxy, from its command line or from its file.
func (p proxyConf) get(flag string, keys ...string) *yaml.Node {
	if p.s.On == "kube-proxy" {
		return nodeAt(p.s, flag)
	}
	return nodeAt(p.s, keys...)
}

// proxyConf is kube-proxy's command line or its configuration.
type proxyConf struct{ s *subject.Subject }

// gate reports what is set for a feature gate.
func (p proxyConf) gate(name string) (value, set bool, node *yaml.Node) {
	if p.s.On == "kube-proxy" {
		node = nodeAt(p.s, "--feature-gates")
		value, set = gateValues(strict.Text(node))[name]
		return value, set, node
	}
	node = nodeAt(p.s, "featureGates", name)
	v, err := strconv.ParseBool(strict.Text(node))
	return v, node != nil && err == nil, node
}

// unseen reports whether a part of the configuration is elsewhere: in a file
// that --config names, or in a variable.
func (p proxyConf) unseen() bool {
	if c, ok := p.s.Value.(*commandLine); ok && c.incomplete {
		return true
	}
	return nodeAt(p.s, "--config") != nil
}

// network is the HNS network type that a command line is for, as far as it
// says so itself.
func (c *commandLine) network(root *yaml.Node) string {
	if c.branch != "" {
		return c.branch
	}
	name := strict.Text(root, "--network-name") + " " + strict.Text(root, "$KUBE_NETWORK")
	gates := gateValues(strict.Text(root, "--feature-gates"))
	switch {
	case strict.Child(root, "--source-vip") != nil, gates["WinOverlay"], strings.Contains(strings.ToLower(name), "vxlan"),
		strings.Contains(name, "flannel."):
		return "overlay"
	case strings.TrimSpace(name) == "cbr0":
		return "l2bridge"
	}
	return ""
}

// isFor reports whether a subject is for nodes with a network. What is in
// one way of a condition, or beside a line for the other network, is for its
// own only; otherwise the setting decides.
func isFor(c *subject.Context, s *subject.Subject, network string) bool {
	cmd, _ := s.Value.(*commandLine)
	own := ""
	if cmd != nil {
		if cmd.branch != "" {
			return cmd.branch == network
		}
		own = cmd.network(s.Root)
	}
	if own != "" && own != c.Setting().Network {
		for _, o := range c.All {
			if other, ok := o.Value.(*commandLine); ok && o != s && o.On == s.On && other.network(o.Root) == c.Setting().Network {
				return own == network
			}
		}
	}
	if c.Setting().Network != "" {
		return c.Setting().Network == network
	}
	return own == network
}
