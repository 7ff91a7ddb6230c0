package diagnose

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/sim/lab"
	build "github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// The claim that a node breaks whose endpoints are other ones than its CNI configuration makes.
const claimExceptions = "trouble-exceptions"

// configured compares the endpoints of pods with those that the plugin makes of the CNI
// configuration that the node has: what of a packet's way is in an endpoint and in no object of
// Kubernetes, whose address it has outside and what goes to the host. Only nodes are compared
// whose own files have the configuration; a concluded one proves nothing.
func (x *tries) configured(ctx context.Context, dir string, r *importer.Result) error {
	nodes := map[string]bool{}
	for _, n := range r.Nodes {
		if n.Configured && n.Why == "" {
			nodes[n.Name] = true
		}
	}
	if len(nodes) == 0 || x.c == nil {
		return nil
	}
	made, err := asConfigured(ctx, dir, r, nodes)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.d.NotExamined = append(x.d.NotExamined, "endpoints beside the CNI configuration: "+
			strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
		return nil
	}
	compared := 0
	all := map[string]*difference{}
	var order []string
	for _, m := range x.c.Machines(build.PodKind) {
		if !nodes[m.Node.Name] {
			continue
		}
		has, okHas := policiesOf(m)
		want, okWant := policiesOf(made.Machine(m.Ref))
		if !okHas || !okWant {
			continue
		}
		compared++
		for what := range has {
			if slices.Equal(has[what], want[what]) {
				continue
			}
			d := difference{node: m.Node.Name, what: policyKind(what), has: has[what], makes: want[what]}
			k := fmt.Sprintf("%+v", d)
			if all[k] == nil {
				all[k] = &d
				order = append(order, k)
			}
			all[k].pods = append(all[k].pods, m.Ref.String())
		}
	}
	for _, k := range order {
		x.differs(all[k], r.ConfigFrom)
	}
	if compared > 0 && len(all) == 0 {
		x.d.Healthy = append(x.d.Healthy, fmt.Sprintf("the endpoints of %d pods have the OutBoundNAT and the routes that the plugin makes of %s",
			compared, r.ConfigFrom))
	}
	return nil
}

// asConfigured is the lab of a bundle in which the plugin makes the endpoints of nodes.
func asConfigured(ctx context.Context, dir string, r *importer.Result, nodes map[string]bool) (*lab.Cluster, error) {
	f, err := lab.Parse(filepath.Join(dir, "bundle.yaml"), r.Lab)
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "configured.conf")
	if err := outfile.WriteFile(conf, r.Config, 0o600); err != nil {
		return nil, err
	}
	s := f.Lab.Spec
	// lab.New takes names of files from the working folder.
	whole := func(all []string) (out []string) {
		for _, name := range all {
			out = append(out, f.PathOf(name))
		}
		return out
	}
	s.Network.Conf, s.Manifests, s.Nodes = conf, whole(s.Manifests), slices.Clone(s.Nodes)
	if s.Network.NetConf != "" {
		s.Network.NetConf = f.PathOf(s.Network.NetConf)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.HNSDump = whole(n.HNSDump); nodes[n.Name] {
			n.HNSDump, n.Forwarding, n.RoutesUnknown, n.Assumed = nil, nil, "", ""
		}
	}
	if f, err = lab.New("configured", s); err != nil {
		return nil, err
	}
	return lab.Build(ctx, f, lab.Options{})
}

// policyKind is what of an endpoint is compared.
type policyKind int

const (
	outBoundNAT policyKind = iota
	routes
	kinds
)

func (k policyKind) String() string { return [...]string{"OutBoundNAT", "routes"}[k] }

// policiesOf are the policies of a pod's endpoint as sorted texts; ok is false where it has no
// endpoint, or a list cut them off.
func policiesOf(m *build.Machine) (all [kinds][]string, ok bool) {
	if m == nil || m.Endpoint == "" || m.Node == nil || m.Node.HNS == nil {
		return all, false
	}
	e := m.Node.HNS.Endpoint(m.Endpoint)
	if e == nil || slices.Contains(e.NotShown, "Policies") || slices.ContainsFunc(e.Policies,
		func(p hns.Policy) bool { return len(p.NotShown) > 0 }) {
		return all, false
	}
	for s := range hns.EachSettings[hns.OutBoundNATSettings](e.Policies) {
		except, to := sorted(s.Exceptions), sorted(s.Destinations)
		text := "OutBoundNAT"
		if except != "" {
			text += " except to " + except
		}
		if to != "" {
			text += " to " + to
		}
		if except+to != "" || len(s.Exceptions)+len(s.Destinations) == 0 {
			all[outBoundNAT] = append(all[outBoundNAT], text)
		}
	}
	for s := range hns.EachSettings[hns.SDNRouteSettings](e.Policies) {
		if strings.Contains(s.DestinationPrefix, ":") {
			continue
		}
		text := "a route to " + s.DestinationPrefix
		if s.NextHop != "" {
			text += " by " + s.NextHop
		}
		if s.NeedEncap {
			text += " through the host"
		}
		all[routes] = append(all[routes], text)
	}
	for k := range all {
		slices.Sort(all[k])
		all[k] = slices.Compact(all[k])
	}
	return all, true
}

// sorted is a list of ranges of IPv4: of IPv6 an import does not know what nodes have.
func sorted(list []string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return strings.Contains(s, ":") })
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// difference is what endpoints of a node have and what the plugin makes.
type difference struct {
	node       string
	what       policyKind
	has, makes []string
	pods       []string
}

func (x *tries) differs(d *difference, from string) {
	says := func(all []string) string {
		if len(all) == 0 {
			return "no " + strings.Replace(d.what.String(), "routes", "route", 1)
		}
		return strings.Join(all, "; ")
	}
	of := d.pods[0]
	if more := len(d.pods) - 1; more > 0 {
		of += fmt.Sprintf(" and of %d more", more)
	}
	f := findings.Finding{Subject: d.node, CauseID: "endpoint-not-as-configured", Level: "warning", Effect: "fails",
		Message: fmt.Sprintf("the endpoint of %s has %s; of %s the plugin makes %s", of, says(d.has), from, says(d.makes)),
		Cause:   "an endpoint is not as the CNI configuration makes it",
		File:    from, Line: 1,
		Evidence: []string{from + ": " + says(d.makes), "HNS of " + d.node + ": " + says(d.has)},
		Symptom:  "packets of the pod leave with another address or by another path than they should",
		Write:    "delete the pod, so that its successor gets a new endpoint; if the new one is the same, the node reads another configuration or another version of the plugin"}
	x.finding(claimExceptions, f)
}
