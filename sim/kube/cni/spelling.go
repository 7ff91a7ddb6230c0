package cni

import (
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Spelled copies a CNI configuration with its keys spelt as the tables in fields.go have them: Go's
// decoder, with which all these programs read, does not distinguish "Policies" from "policies".
func Spelled(root *yaml.Node) *yaml.Node {
	return below(pluginSpelled(root), map[string]func(*yaml.Node) *yaml.Node{
		"plugins": func(l *yaml.Node) *yaml.Node { return mapSequence(l, pluginSpelled) },
	})
}

// SpelledNetConf is [Spelled] for net-conf.json.
func SpelledNetConf(root *yaml.Node) *yaml.Node {
	keys := spellings()
	return below(spelled(root, keys.netConf), map[string]func(*yaml.Node) *yaml.Node{
		"Backend": func(b *yaml.Node) *yaml.Node { return spelled(b, keys.backend) },
	})
}

// Outline is what a configuration says of one plugin, also where the plugin or winlab refuses it.
type Outline struct{ Type, Delegate, IPAMMode string }

// Outlines are the plugins of a configuration in its order, none for a file that is not one.
func Outlines(data []byte) (all []Outline) {
	root, _, _ := strict.JSON("", data)
	if root == nil {
		return nil
	}
	root = Spelled(root)
	list := []*yaml.Node{root}
	if strict.Text(root, "type") == "" {
		list = strict.Child(root, "plugins").Content
	}
	for _, n := range list {
		all = append(all, Outline{strict.Text(n, "type"), strict.Text(n, "delegate", "type"), strict.Text(n, "ipam", "mode")})
	}
	return all
}

// routeKeys are the fields of a route of ipam, policyKeys those of a policy around its value.
var (
	routeKeys  = []string{"GW", "dst"}
	policyKeys = []string{"name", "value"}
)

// spellings are the names of fields by where they stand, whatever the plugin.
var spellings = sync.OnceValue(func() (s struct{ plugin, ipam, dns, policy, netConf, backend []string }) {
	for part, t := range fieldTables() {
		to := &s.plugin
		switch plugin, below, _ := strings.Cut(part, "."); {
		case part == "dns":
			to = &s.dns
		case part == "net-conf.json":
			to = &s.netConf
		case plugin == "net-conf":
			to = &s.backend
		case below == "ipam":
			to = &s.ipam
		}
		*to = append(*to, t.names()...)
	}
	for _, names := range v1Types {
		s.policy = append(s.policy, names...)
	}
	for _, typ := range hns.PolicyTypes() {
		s.policy = append(s.policy, typ.Fields()...)
	}
	s.policy = append(s.policy, "Settings")
	for _, list := range []*[]string{&s.plugin, &s.ipam, &s.dns, &s.policy, &s.netConf, &s.backend} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return s
})

func pluginSpelled(n *yaml.Node) *yaml.Node {
	keys := spellings()
	return below(spelled(n, keys.plugin), map[string]func(*yaml.Node) *yaml.Node{
		"delegate":       pluginSpelled,
		"dns":            func(n *yaml.Node) *yaml.Node { return spelled(n, keys.dns) },
		"ipam":           ipamSpelled,
		"policies":       policiesSpelled,
		"AdditionalArgs": policiesSpelled,
	})
}

func ipamSpelled(n *yaml.Node) *yaml.Node {
	return below(spelled(n, spellings().ipam), map[string]func(*yaml.Node) *yaml.Node{
		"routes": func(l *yaml.Node) *yaml.Node {
			return mapSequence(l, func(r *yaml.Node) *yaml.Node { return spelled(r, routeKeys) })
		},
	})
}

func policiesSpelled(l *yaml.Node) *yaml.Node {
	keys := spellings().policy
	return mapSequence(l, func(p *yaml.Node) *yaml.Node {
		return below(spelled(p, policyKeys), map[string]func(*yaml.Node) *yaml.Node{
			"value": func(v *yaml.Node) *yaml.Node {
				return below(spelled(v, keys), map[string]func(*yaml.Node) *yaml.Node{
					"Settings": func(v *yaml.Node) *yaml.Node { return spelled(v, keys) },
				})
			},
		})
	})
}

// spelled copies a map with its keys spelt as in names.
func spelled(n *yaml.Node, names []string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	out := *n
	out.Content = slices.Clone(n.Content)
	for i := 0; i < len(out.Content); i += 2 {
		key := *out.Content[i]
		if j := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, key.Value) }); j >= 0 {
			key.Value = names[j]
			out.Content[i] = &key
		}
	}
	return &out
}

// below replaces values of a map that spelled has copied.
func below(n *yaml.Node, change map[string]func(*yaml.Node) *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if f := change[n.Content[i].Value]; f != nil {
			n.Content[i+1] = f(n.Content[i+1])
		}
	}
	return n
}

func mapSequence(n *yaml.Node, f func(*yaml.Node) *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return n
	}
	out := *n
	out.Content = slices.Clone(n.Content)
	for i := range out.Content {
		out.Content[i] = f(out.Content[i])
	}
	return &out
}
