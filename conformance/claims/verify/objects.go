package verify

import (
	"cmp"
	"maps"
	"slices"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// objects are what the HNS of a cluster's nodes holds.
type objects struct {
	nodes map[string]*hns.Snapshot
	// names are the names of the pods' endpoints and containers, of which a plugin
	// makes the first of the sandbox's id, its model of the pod's name.
	names map[string]string
}

func objectsOf(c *lab.Cluster) *objects {
	o := &objects{nodes: map[string]*hns.Snapshot{}, names: map[string]string{}}
	for _, n := range c.Kube.Nodes {
		s := c.HNS(n.Name)
		if s == nil {
			continue
		}
		o.nodes[n.Name] = s.Snapshot()
		for _, p := range c.Pods() {
			if e := s.Endpoint(c.PodEndpoint(p)); e != nil {
				o.names[p] = e.Name
				for _, c := range e.SharedContainers {
					o.names[p+" container"] = c
				}
			}
		}
	}
	return o
}

// apart compares the objects that real components have made with those of the
// models: the lines that only one of them has, and how many there are.
func (o *objects) apart(model *objects) (different []result.ObjectDifference, compared int) {
	// Long names come first: one may begin like another.
	var renames []string
	for _, p := range slices.SortedFunc(maps.Keys(o.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(o.names[b]), len(o.names[a])), cmp.Compare(a, b))
	}) {
		renames = append(renames, o.names[p], model.names[p])
	}
	for _, node := range slices.Sorted(maps.Keys(o.nodes)) {
		ours, theirs := components.Normalise(o.nodes[node], renames...), components.Normalise(model.nodes[node])
		compared += len(ours)
		for _, l := range ours {
			if !slices.Contains(theirs, l) {
				different = append(different, result.ObjectDifference{Node: node, Only: result.Components, Line: l})
			}
		}
		for _, l := range theirs {
			if !slices.Contains(ours, l) {
				different = append(different, result.ObjectDifference{Node: node, Only: result.Model, Line: l})
			}
		}
	}
	return different, compared
}
