package verify

import (
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/claims/placement"
	"github.com/winlab-dev/winlab/conformance/node/doctor"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/kube/resources"
)

// Statics tries every check of the ledger that needs no lab: rules on their
// examples, placements, resources, and the doctor on the folders below nodes.
// With nodes "" the doctor's checks are left out.
func Statics(ctx context.Context, l *claims.Ledger, nodes string) ([]result.Static, error) {
	if err := check.Compiles(l); err != nil {
		return nil, err
	}
	var out []result.Static
	folders := newFolders(nodes)
	for _, c := range l.Claims() {
		for _, rules := range []bool{true, false} { // rules first, as in the report
			for i := range c.Checks {
				if (c.Checks[i].Rule != nil) != rules {
					continue
				}
				if s, ok := tryStatic(ctx, l, c, &c.Checks[i], folders); ok {
					out = append(out, s)
				}
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tryStatic tries one check of a claim; false when it needs a lab or a cluster, or the
// folders of nodes that are left out.
func tryStatic(ctx context.Context, l *claims.Ledger, c *claims.Claim, k *claims.Check, nodes *folders) (result.Static, bool) {
	if k.Rule != nil {
		s := check.Example(c, k)
		s.Scope = k.Scope()
		positions(&s.Check, k.Disputed, false) // a rule is one position, and its examples are its own
		return s, true
	}
	s := result.Static{Claim: c.ID, Kind: k.Kind(), Where: k.Words(), Scope: k.Scope(),
		Check: result.Check{Level: result.Model, What: k.String()}}
	switch {
	case k.Placement != nil:
		s.Input = strings.TrimSpace(k.Placement.Pod)
		place(&s, *k)
	case k.Resources != nil:
		s.Input = inputOf(k.Resources)
		allocate(&s, *k)
	case k.Doctor != nil && nodes.dir != "":
		diagnose(ctx, &s, l, nodes, *k)
	default:
		return s, false
	}
	positions(&s.Check, k.Disputed, otherwise(*k) == "" || otherwise(*k) == s.Got)
	return s, true
}

// versions are the Kubernetes versions that a check is for, oldest first.
func versions(k claims.Check) []string {
	var all []string
	for _, m := range claims.Minors() {
		if (claims.Where{Kubernetes: k.Kubernetes}).Holds(claims.Target{Kubernetes: m}) {
			all = append(all, m)
		}
	}
	return all
}

// inEvery tries a check in every version that it is for. The answer is that of
// the newest version, or of the first in which it is not what is wanted.
func inEvery(s *result.Static, k claims.Check, try func(version string) (got, summary string, err error)) {
	all := versions(k)
	if len(all) == 0 {
		s.Got, s.Summary = "error", "The check covers no version of Kubernetes here."
		return
	}
	for _, v := range all {
		got, summary, err := try(v)
		if err != nil {
			s.Got, s.Summary, s.Pass = "error", err.Error(), false
			return
		}
		s.Got, s.Summary, s.Pass = got, summary, got == s.Expect
		if !s.Pass {
			s.Summary = strings.TrimSpace("With Kubernetes " + v + ". " + summary)
			return
		}
	}
}

func place(s *result.Static, k claims.Check) {
	s.Expect = "fits " + list(k.Placement.Fits) + ", runs on " + list(k.Placement.Runs)
	inEvery(s, k, func(v string) (string, string, error) {
		fits, runs, why, err := placement.Evaluate(v, k.Placement)
		if err != nil {
			return "", "", err
		}
		var reasons []string
		for _, n := range slices.Sorted(maps.Keys(why)) {
			if why[n] != "" {
				reasons = append(reasons, n+": "+why[n])
			}
		}
		return "fits " + list(fits) + ", runs on " + list(runs), strings.Join(reasons, "; "), nil
	})
}

// list is sorted, so that the order in the ledger does not matter.
func list(names []string) string {
	if len(names) == 0 {
		return "nowhere"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

func allocate(s *result.Static, k claims.Check) {
	s.Expect = pairs(k.Resources.Want, k.Resources.Want)
	inEvery(s, k, func(v string) (string, string, error) {
		got, err := resources.Evaluate(v, k.Resources.Capacity, k.Resources.Kubelet, k.Resources.Container)
		return pairs(got, k.Resources.Want), "", err
	})
}

// inputOf writes the input of the kubelet model as text.
func inputOf(r *claims.Resources) string {
	var lines []string
	if len(r.Capacity) > 0 {
		lines = append(lines, "capacity: "+pairs(r.Capacity, r.Capacity))
	}
	if r.Kubelet != "" {
		lines = append(lines, "kubelet: "+strings.TrimSpace(r.Kubelet))
	}
	if len(r.Container) > 0 {
		lines = append(lines, "container: "+pairs(r.Container, r.Container))
	}
	return strings.Join(lines, "\n")
}

// folders are folders taken from nodes, each read once: the ledger looks at a healthy one for
// every cause that must not be found there. What was read does not change.
type folders struct {
	dir  string
	read map[string]*observed.Node // by name below dir
}

func newFolders(dir string) *folders {
	return &folders{dir: dir, read: map[string]*observed.Node{}}
}

func (f *folders) node(ctx context.Context, name string) (*observed.Node, error) {
	if n := f.read[name]; n != nil {
		return n, nil
	}
	n, err := observed.Read(ctx, filepath.Join(f.dir, name))
	if err == nil {
		f.read[name] = n
	}
	return n, err
}

// diagnose lets the doctor look at a folder. The Kubernetes version is that of the
// check's own range; the rest of the setting is what the folder says.
func diagnose(ctx context.Context, s *result.Static, l *claims.Ledger, nodes *folders, k claims.Check) {
	s.Expect, s.Command = "finds nothing of it", "winlab doctor "+path.Join(nodes.dir, k.Doctor.Node)
	if k.Doctor.Finds != "" {
		s.Expect = "finds " + k.Doctor.Finds
	}
	n, err := nodes.node(ctx, k.Doctor.Node)
	if err != nil {
		s.Got, s.Summary = "error", err.Error()
		return
	}
	wrong := doctor.Check(n, claims.Target{}, l, s.Claim, k.Doctor.Finds)
	s.Got, s.Pass = s.Expect, wrong == ""
	if !s.Pass {
		s.Got, s.Summary = "something else", wrong
	}
}

// pairs writes those values whose names are wanted.
func pairs(values, wanted map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(wanted)) {
		v, ok := values[k]
		if !ok {
			v = "nothing"
		}
		parts = append(parts, k+" "+v)
	}
	return strings.Join(parts, ", ")
}
