package components

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Normalise writes HNS objects as lines, "endpoint web_cbr0: Routes[0].NextHop =
// 10.244.1.2", so that the objects of two programs compare as text. What only the
// order of calls decides is taken out: ids and what holds them become the names
// of the objects, compartments, MAC addresses of the network's pool and the
// numbers of port blocks are left out, objects are sorted. Lists inside an object
// keep their order, as HNS keeps it. Absent and empty fields are the same.
//
// renames are pairs of an old and a new part of strings, for names that hold an
// id of the caller's, such as that of a container.
func Normalise(s *hns.Snapshot, renames ...string) []string {
	n := &normaliser{names: strings.NewReplacer(renames...), label: map[string]string{}}
	var networks, endpoints, namespaces, balancers, routes []object
	for _, v := range s.Networks {
		networks = append(networks, object{v.V2.ID, v.V2.Name, n.tree(v.V2,
			map[string]any{"ManagementIP": v.ManagementIP, "DNSServerCompartment": v.DNSServerCompartment})})
	}
	n.add("network", networks)
	for _, v := range s.Endpoints {
		name := v.V2.Name
		if name == "" {
			name = fmt.Sprint(v.V2.Addresses())
		}
		endpoints = append(endpoints, object{v.V2.ID, name, n.tree(v.V2, map[string]any{
			"State": v.State, "SharedContainers": v.SharedContainers, "EnableInternalDNS": v.EnableInternalDNS, "DisableICC": v.DisableICC,
		})})
	}
	n.add("endpoint", endpoints)
	for _, v := range s.Namespaces {
		v.Resources = slices.Clone(v.Resources)
		slices.SortFunc(v.Resources, func(a, b hns.NamespaceResource) int {
			return strings.Compare(n.text(a.Type+a.Data.Id), n.text(b.Type+b.Data.Id))
		})
		name := v.Type + " of"
		for _, r := range v.Resources {
			name += " " + n.text(r.Data.Id)
		}
		namespaces = append(namespaces, object{v.ID, name, n.tree(v, nil)})
	}
	n.add("namespace", namespaces)
	for _, v := range s.LoadBalancers {
		// The order of the backends is that of a map in kube-proxy.
		behind := slices.Clone(v.V2.HostComputeEndpoints)
		slices.SortFunc(behind, func(a, b string) int { return strings.Compare(n.text(a), n.text(b)) })
		v.V2.HostComputeEndpoints = behind
		name := fmt.Sprintf("%v %v flags %d to %v", v.V2.FrontendVIPs, v.V2.PortMappings, v.V2.Flags, n.text(fmt.Sprint(behind)))
		balancers = append(balancers, object{v.V2.ID, name, n.tree(v.V2, map[string]any{"HasPorts": v.Ports != hns.PortBlock{}})})
	}
	n.add("load balancer", balancers)
	for _, v := range s.Routes {
		routes = append(routes, object{v.ID, fmt.Sprint(v.Setting), n.tree(v, nil)})
	}
	n.add("route", routes)
	var lines []string
	for _, o := range n.objects {
		lines = append(lines, o.name+": exists")
		for _, l := range n.flatten(nil, "", o.tree) {
			lines = append(lines, o.name+": "+l)
		}
	}
	blocks := map[string]int{}
	for _, owner := range s.PortOwners {
		blocks[n.text(owner)]++
	}
	for owner, count := range blocks {
		lines = append(lines, fmt.Sprintf("ports of %s: blocks = %d", owner, count))
	}
	slices.Sort(lines)
	return lines
}

// object is one HNS object before its id has a name.
type object struct {
	id, name string
	tree     map[string]any
}

type normaliser struct {
	names *strings.Replacer
	label map[string]string // by id
	// objects have their labels for names.
	objects []object
}

var guid = lazyregexp.New(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// text replaces ids by names.
func (n *normaliser) text(s string) string {
	return guid.ReplaceAllStringFunc(n.names.Replace(s), func(id string) string {
		if l := n.label[strings.ToLower(id)]; l != "" {
			return "<" + l + ">"
		}
		return "<id>"
	})
}

// tree is a value as JSON has it, with fields that JSON leaves out.
func (n *normaliser) tree(v any, more map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range []any{v, more} {
		raw, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(raw, &all)
		}
		if err != nil {
			// Objects of a service were JSON when they came in.
			panic(fmt.Sprintf("components: an HNS object is not JSON: %v", err))
		}
	}
	for _, numbered := range []string{"ID", "NamespaceId", "NamespaceGuid"} {
		delete(all, numbered)
	}
	return all
}

// add names the objects of one kind. Those with the same name are numbered in
// the order of their contents.
func (n *normaliser) add(kind string, all []object) {
	flat := func(o object) string {
		return strings.Join(n.flatten(nil, "", o.tree), "\n")
	}
	slices.SortStableFunc(all, func(a, b object) int {
		if c := strings.Compare(n.text(a.name), n.text(b.name)); c != 0 {
			return c
		}
		return strings.Compare(flat(a), flat(b))
	})
	count := map[string]int{}
	labels := make([]string, len(all))
	for i, o := range all {
		labels[i] = kind + " " + n.text(o.name)
		if count[labels[i]]++; count[labels[i]] > 1 {
			labels[i] += fmt.Sprintf(" #%d", count[labels[i]])
		}
	}
	for i, o := range all {
		n.label[strings.ToLower(o.id)] = labels[i]
		all[i].name = labels[i]
	}
	n.objects = append(n.objects, all...)
}

func (n *normaliser) flatten(lines []string, path string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			lines = n.flatten(lines, strings.TrimPrefix(path+"."+k, "."), v[k])
		}
	case []any:
		for i, item := range v {
			lines = n.flatten(lines, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case nil:
	case string:
		switch {
		case v == "":
		case strings.HasSuffix(path, "MacAddress") && strings.HasPrefix(strings.ToUpper(v), "00-15-5D-"):
			// Microsoft's prefix: HNS took it from its pool.
			lines = append(lines, path+" = <of the pool>")
		default:
			lines = append(lines, path+" = "+n.text(v))
		}
	default:
		lines = append(lines, fmt.Sprintf("%s = %v", path, v))
	}
	return lines
}
