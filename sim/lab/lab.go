// Package lab is the entry point for programs that use the simulator: tests of
// a network plugin, a command line, a report. A lab is read from a file or made
// in Go, it is built, and flows are sent through it:
//
//	f, err := lab.Load("l2bridge.yaml")
//	c, err := lab.Build(ctx, f, lab.Options{})
//	t, err := c.Trace(ctx, lab.Request{From: "pod/client", To: "svc/web:80"})
//	if t.Verdict != trace.Delivered { ... t.Summary says why ... }
//
// Between building and sending, [Cluster.HNS] is the HNS of a node, to which
// calls can be made as a plugin makes them; the next packet meets the rules that
// follow.
//
// The package must not do anything itself: reading and checking is in lab/spec,
// deciding on addresses and versions in lab/plan, building in lab/build,
// sending and judging in lab/flow. A single node without a lab is a
// [node.Windows] with an [hns.Service]; see the example there.
package lab

import (
	"context"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/real/components"
)

// File is a lab that was read, with all its variants checked. Its fields are
// explained in [spec.Spec].
type File = labfile.File

// Cluster is a cluster that was built, ready for flows.
type Cluster = flow.Cluster

// Request is a flow to trace.
type Request = flow.Request

// Load reads a lab file and its bases. All mistakes are in the error, each with
// file, line and column.
func Load(path string) (*File, error) { return labfile.Load(path) }

// LoadShown is [Load] for a lab that was made of something else, which the origins of its objects
// name.
func LoadShown(path string, shown labfile.Shown) (*File, error) {
	return labfile.LoadShown(path, shown)
}

// Parse reads a lab from memory; path is its name, and names of files in the lab
// are relative to its folder.
func Parse(path string, data []byte) (*File, error) { return labfile.Parse(path, data) }

// New makes a lab of a specification. What it leaves out has the same defaults as
// in a file, and it is checked in the same way; names of files are relative to the
// working folder.
func New(name string, s labfile.Spec) (*File, error) { return labfile.New(name, s) }

// Options choose a state and versions of a lab.
type Options struct {
	// Variant is the name of one of the lab's variants.
	Variant string
	// Setting replaces the lab's own versions.
	Setting *labfile.Setting
	// Components is spec.Model, or spec.Real for whatever can be run; "" is what
	// the lab says.
	Components string
	// Pool has the hosts for real components; nil is one for this build alone.
	Pool *components.Pool
	// Keep lets real components stay until the cluster's Close: steps can need them, and
	// a live network has them.
	Keep bool
	// Later, with Keep, leaves it to a live network to start kube-proxy: until then no
	// Service of a node whose kube-proxy is a program works.
	Later bool
	// Objects and Proxies are [cluster.Outside] for a cluster whose pods and Services come
	// from an API server, and whose kube-proxy on Windows nodes the caller starts.
	Objects, Proxies string
}

// Build builds the cluster of a lab. It can be interrupted: real components take
// seconds.
func Build(ctx context.Context, f *File, o Options) (*Cluster, error) {
	p, err := plan.New(f, o.Variant, o.Setting)
	if err != nil {
		return nil, err
	}
	if open := p.OpenBuilds(); len(open) > 0 && (o.Keep || o.Components == labfile.Real || o.Components == "" &&
		p.File.Lab.Spec.Proxy.Components == labfile.Real || o.Objects != "" || o.Proxies != "") {
		return nil, p.Wrap(&flow.ErrBuilds{Nodes: open}) // programs run on one cluster
	}
	c, err := cluster.New(ctx, p, cluster.Options{Components: o.Components, Pool: o.Pool, Keep: o.Keep, Later: o.Later, Objects: o.Objects,
		Proxies: o.Proxies})
	if err != nil {
		return nil, err
	}
	return flow.New(c), nil
}
