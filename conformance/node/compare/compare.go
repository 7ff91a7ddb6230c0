package compare

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxFlows bounds the flows of a bundle that are sent through the model.
const maxFlows = 500

// Bundle compares what a bundle shows of its nodes with the model. The error is about the bundle
// as a whole.
func Bundle(ctx context.Context, b *bundle.Bundle) (d *doc.Document, err error) {
	dir, err := os.MkdirTemp("", "winlab-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := importer.In(ctx, b, dir)
	if err != nil {
		return nil, err
	}
	f, err := lab.Parse(filepath.Join(dir, "bundle.yaml"), r.Lab)
	if err != nil {
		return nil, err
	}
	c, err := lab.Build(ctx, f, lab.Options{})
	if err != nil {
		return nil, err
	}
	return Cluster(ctx, c, b, r.Nodes)
}

// Cluster compares what a bundle shows with a cluster; nodes are the Windows nodes of which it
// has files.
func Cluster(ctx context.Context, c *lab.Cluster, b *bundle.Bundle, nodes []importer.Node) (*doc.Document, error) {
	info := c.Info()
	x := &comparison{c: c, b: b, nodes: nodes, counted: map[ruleAt]counted{}, doc: &doc.Document{
		Schema: doc.Schema, Kubernetes: info.Kubernetes, Network: info.Network,
		Read: []doc.Read{}, Ports: []doc.Port{}, Flows: []doc.Flow{},
	}}
	x.doc.Hidden = x.names()
	e, err := x.read(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if ports := e.ports[n.Name]; len(ports) > 0 {
			x.ports(n, ports)
		}
	}
	if err := x.flows(ctx, e.sightings); err != nil {
		return nil, err
	}
	for _, t := range e.tuples {
		if err := x.tuple(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, p := range x.doc.Ports {
		x.doc.Differences += len(p.Diffs)
	}
	for _, f := range x.doc.Flows {
		if f.Result == doc.Differs {
			x.doc.Differences++
		}
	}
	return x.doc, nil
}

// names are all names of the cluster.
func (x *comparison) names() (all []doc.Name) {
	add := func(names ...string) {
		for _, n := range names {
			all = append(all, doc.Name(n))
		}
	}
	for _, k := range []cluster.Kind{cluster.NodeKind, cluster.PodKind, cluster.HostKind, cluster.RouterKind} {
		for _, m := range x.c.Machines(k) {
			add(m.Name)
		}
	}
	for _, s := range x.c.Plan.Services {
		add(s.Namespace, s.Name)
	}
	for _, n := range x.nodes {
		add(n.Name)
		if h := x.c.HNS(n.Name); h != nil {
			for _, w := range h.ListNetworks(nil) {
				if w.Name != "nat" { // Windows' own
					add(w.Name)
				}
			}
			for _, e := range h.ListEndpoints(nil) {
				add(e.Name)
			}
		}
	}
	return all
}

// comparison is one that is being made.
type comparison struct {
	c     *lab.Cluster
	b     *bundle.Bundle
	nodes []importer.Node
	doc   *doc.Document
	// counted are the rules of nodes whose counters were listed, by the model's names for them.
	counted map[ruleAt]counted
}

// ruleAt is a rule of a port of a node in the model.
type ruleAt struct{ node, port, rule string }

// counted is such a rule as the node lists it. A name that two rules of a port share does not count.
type counted struct {
	rule *dump.Rule
	port doc.Name
}

// nodeOf is the node in whose folder a file is, "" where that is not known.
func (x *comparison) nodeOf(file string) string {
	best, name := -1, ""
	for _, n := range x.nodes {
		if in := n.Folder == "" || strings.HasPrefix(file, n.Folder+"/"); in && len(n.Folder) > best {
			best, name = len(n.Folder), n.Name
		}
	}
	if name == "" && len(x.nodes) == 1 {
		return x.nodes[0].Name
	}
	return name
}

// machine finds the node of the lab with a name.
func (x *comparison) machine(name string) *cluster.Machine {
	all := x.c.Machines(cluster.NodeKind)
	if i := slices.IndexFunc(all, func(m *cluster.Machine) bool { return m.Node.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func (x *comparison) notRead(file string, line int, node, why string) {
	x.doc.NotRead = append(x.doc.NotRead, doc.NotRead{Place: x.place(file, line), Node: doc.Name(node), Why: why})
}

func (x *comparison) place(file string, line int) doc.Place {
	return doc.Place{File: doc.Name(file), Line: line}
}

// endOf is how a path ends, in the words of a document.
func endOf(p *trace.Path) (verdict, reason string) {
	return string(p.Verdict), cmp.Or(string(p.Reason), "ok")
}
