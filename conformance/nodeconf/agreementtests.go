package nodeconf

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/subject"
)

// agreementTests hold one piece of configuration against another.
func agreementTests() []subject.Test {
	return []subject.Test{
		{
			On: []string{"subnet-env"}, Name: "subnet-outside", Vars: []string{"value", "network"},
			Doc: "FLANNEL_SUBNET is not a part of FLANNEL_NETWORK.",
			Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				n := at(s, "FLANNEL_SUBNET")
				subnet, network := prefixes(text(n)), prefixes(text(at(s, "FLANNEL_NETWORK")))
				if len(subnet) != 1 || len(network) == 0 || covered(network, subnet[0].Masked()) {
					return nil
				}
				return []subject.Hit{{At: n, Field: "FLANNEL_SUBNET", Vars: map[string]string{"value": text(n), "network": text(at(s, "FLANNEL_NETWORK"))}}}
			},
		},
		{
			On: []string{"subnet-env"}, Name: "not-a-prefix", Vars: []string{"value", "field"},
			Doc: "FLANNEL_NETWORK or FLANNEL_SUBNET is no address with a length.",
			Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				var hits []subject.Hit
				for _, key := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET"} {
					for _, part := range strings.Split(text(at(s, key)), ",") {
						if _, err := netip.ParsePrefix(strings.TrimSpace(part)); err != nil && at(s, key) != nil && literal(part) {
							hits = append(hits, subject.Hit{At: at(s, key), Field: key, Vars: map[string]string{"value": text(at(s, key)), "field": key}})
						}
					}
				}
				return hits
			},
		},
		{
			On: []string{"kube-proxy"}, Name: "cluster-range-differs", Vars: []string{"value", "other", "from"},
			Doc: "The pods' network is another one than other files say.",
			Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				for _, mine := range clusterRanges([]*subject.Subject{s}) {
					for _, f := range clusterRanges(c.All) {
						if f.in == s || f.in.On == "cni" || f.prefix.Addr().Is4() != mine.prefix.Addr().Is4() || f.prefix.Masked() == mine.prefix.Masked() {
							continue
						}
						// A cluster may have several ranges; they differ when they have nothing in common.
						if f.prefix.Overlaps(mine.prefix) {
							continue
						}
						return []subject.Hit{{At: mine.at, Vars: map[string]string{"value": rangeText(mine.prefix), "other": rangeText(f.prefix), "from": f.from}}}
					}
				}
				return nil
			},
		},
		{
			On: []string{"kube-proxy", "flanneld"}, Name: "hostname-differs", Vars: []string{"value", "other"},
			Doc: "kube-proxy or flanneld has another node name than the kubelet in the same file.",
			Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				key := "--hostname-override"
				if s.On == "flanneld" {
					key = "$NODE_NAME"
				}
				mine := text(at(s, key))
				for _, o := range c.All {
					other := text(at(o, "--hostname-override"))
					if o.On != "kubelet" || o.File != s.File || !literal(mine) || !literal(other) || strings.EqualFold(mine, other) {
						continue
					}
					return []subject.Hit{{At: at(s, key), Field: key, Vars: map[string]string{"value": mine, "other": other}}}
				}
				return nil
			},
		},
		{
			On: []string{"kube-proxy"}, Name: "network-name-differs", Vars: []string{"value", "other", "from"},
			Doc: "kube-proxy is told to use a network that neither the CNI configuration nor net-conf.json names.",
			Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				n := at(s, "--network-name")
				if n == nil {
					n = at(s, "$KUBE_NETWORK")
				}
				if !literal(text(n)) {
					return nil
				}
				cmd, _ := s.Value.(*Command)
				other, from, found := "", "", false
				for _, o := range c.All {
					name := ""
					if v, ok := o.Value.(*CNI); ok && cmd != nil && cmd.Branch != "" && v.Network != cmd.Branch {
						continue // the line is for nodes with the other network
					}
					switch {
					case o.On == "cni" && !strings.Contains(text(at(o, "type")), "azure"):
						name = text(at(o, "name"))
					case o.On == "net-conf":
						name = text(at(o, "Backend", "Name"))
					}
					if literal(name) && other == "" {
						other, from = name, o.Name
					}
					found = found || strings.EqualFold(name, text(n))
				}
				if other == "" || found || strings.Contains(text(n), "*") {
					return nil
				}
				return []subject.Hit{{At: n, Vars: map[string]string{"value": text(n), "other": other, "from": from}}}
			},
		},
		{
			On: []string{"service-manager"}, Name: "mode-differs", Vars: []string{"value", "backend"},
			Doc: "The network mode of the script does not fit flannel's backend in net-conf.json.",
			Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				v, ok := s.Value.(*Service)
				if !ok || v.Manager != "script" || v.Incomplete {
					return nil
				}
				mode := "l2bridge"
				n := at(s, "-NetworkMode")
				if n != nil {
					mode = strings.ToLower(text(n))
				} else {
					n = s.Root
				}
				wants := map[string]string{"l2bridge": "host-gw", "overlay": "vxlan"}[mode]
				for _, o := range c.All {
					backend := strings.ToLower(text(at(o, "Backend", "Type")))
					if o.On == "net-conf" && wants != "" && slices.Contains([]string{"host-gw", "vxlan"}, backend) && backend != wants {
						return []subject.Hit{{At: n, Field: "-NetworkMode", Vars: map[string]string{"value": mode, "backend": backend}}}
					}
				}
				return nil
			},
		},
		{
			On: []string{"service-manager"}, Name: "default-differs", Vars: []string{"parameter", "default", "other", "from"},
			Doc: "A parameter of the script is left out, and its default is not what other files say.",
			Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
				v, ok := s.Value.(*Service)
				if !ok || v.Manager != "script" || v.Incomplete {
					return nil
				}
				var hits []subject.Hit
				for _, d := range []struct {
					parameter, value string
					known            []fact
				}{
					{"-ClusterCIDR", "10.244.0.0/16", clusterRanges(c.All)},
					{"-KubeDnsServiceIP", "10.96.0.10", facts(c.All, []string{"service-manager", "-ServiceCIDR"})},
				} {
					value := prefixes(d.value)[0]
					if at(s, d.parameter) != nil {
						continue
					}
					for _, f := range d.known {
						if f.prefix.Addr().Is4() && !f.prefix.Overlaps(value) {
							hits = append(hits, subject.Hit{Field: d.parameter, Vars: map[string]string{"parameter": d.parameter, "default": d.value, "other": rangeText(f.prefix), "from": f.from}})
							break
						}
					}
				}
				return hits
			},
		},
		{
			On: []string{"flanneld"}, Name: "backend-differs", Vars: []string{"backend", "plugin"},
			Doc: "flannel's backend in net-conf.json and the plugin that a CNI configuration delegates to belong to different networks.",
			Find: func(c *subject.Context, _ *subject.Subject, _ map[string]string) []subject.Hit {
				for _, conf := range c.All {
					if conf.On != "net-conf" {
						continue
					}
					n := at(conf, "Backend", "Type")
					plugin := map[string]string{"host-gw": "win-bridge", "vxlan": "win-overlay"}[strings.ToLower(text(n))]
					for _, o := range c.All {
						if v, ok := o.Value.(*CNI); ok && v.Type == "flannel" && plugin != "" && v.Delegate != plugin {
							return []subject.Hit{{Vars: map[string]string{"backend": text(n), "plugin": v.Delegate}}}
						}
					}
				}
				return nil
			},
		},
	}
}
