package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// Kind says where a spec comes from.
type Kind string

// The kinds of specs.
const (
	// Packets is a flow of the ledger, Names a name that is resolved, Refusals a rule on
	// what the API server refuses. InGo is a spec in Go.
	Packets  Kind = "flow"
	Names    Kind = "resolve"
	Refusals Kind = "rule"
	InGo     Kind = "cluster"
)

// Spec is one thing to try for one claim.
type Spec struct {
	Kind Kind
	// Name is unique: the claim and what is tried.
	Name  string
	Claim *claims.Claim
	Area  string
	// What is the check as the report shows it, the same as in a run without a cluster.
	What string
	// Check is one of the ledger's checks that the spec stands for; they try the same.
	Check claims.Check
	// Kubernetes and Windows are the oldest versions that can be tried, "" for any.
	Kubernetes, Windows string
	Serial, Slow        bool
	Disruptive          bool
	// try is set for written specs.
	try func(ctx context.Context, e *Env) error
}

// written is a spec in Go, for one or several claims.
type written struct {
	name, title         string
	claims              []string
	kubernetes, windows string
	serial, slow        bool
	disruptive          bool
	// try returns nil when the feature works and an error that says how it does not.
	// What keeps it from being tried at all is a failure of the spec (e.Must, e.Skip).
	try func(ctx context.Context, e *Env) error
}

// Written lists the specs in Go as the ledger has to know them.
func Written() []claims.Spec {
	var list []claims.Spec
	for _, w := range allWritten() {
		s := claims.Spec{Name: w.name, Title: w.title, Claims: w.claims, Kubernetes: w.kubernetes, Windows: w.windows}
		for _, l := range []struct {
			is   bool
			name string
		}{{w.serial, "serial"}, {w.slow, "slow"}, {w.disruptive, "disruptive"}} {
			if l.is {
				s.Labels = append(s.Labels, l.name)
			}
		}
		list = append(list, s)
	}
	return list
}

func allWritten() []written {
	all := slices.Concat(controllerSpecs, podSpecs, serviceSpecs, storageSpecs, securitySpecs, nodeSpecs, workloadSpecs, networkSpecs)
	slices.SortFunc(all, func(a, b written) int { return strings.Compare(a.name, b.name) })
	return all
}

// Specs are all specs of a ledger, in the order of its claims. An error names a check
// whose spec does not exist.
func Specs(l *claims.Ledger) ([]Spec, error) {
	inGo := map[string]written{}
	for _, w := range allWritten() {
		inGo[w.name] = w
	}
	var all []Spec
	for _, c := range l.Claims() {
		type key struct{ what, seenAs string }
		at := map[key]int{}
		ranges := map[key][]claims.Where{}
		for _, k := range c.Checks {
			s, ok, err := specOf(l, c, k, inGo)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			id := key{s.Name, ""}
			ranges[id] = append(ranges[id], k.Where)
			if _, there := at[id]; !there {
				at[id] = len(all)
				all = append(all, s)
			}
			if s.Kind != InGo {
				all[at[id]].Kubernetes, all[at[id]].Windows = claims.OldestKubernetes(ranges[id]), claims.OldestBuild(ranges[id])
			}
		}
	}
	return all, nil
}

// specOf is the spec of a check; false for one that no cluster can show.
func specOf(l *claims.Ledger, c *claims.Claim, k claims.Check, inGo map[string]written) (Spec, bool, error) {
	s := Spec{Claim: c, Area: l.AreaOf(c.ID), What: k.String(), Check: k}
	s.Name = c.ID + ": " + s.What
	switch {
	case k.Lab != "":
		return s, false, nil // a cluster does not have what that lab has
	case k.Flow != nil:
		s.Kind = Packets
		if k.Flow.SeenAs != "" {
			s.Name += ", seen as " + k.Flow.SeenAs
		}
	case k.Resolve != nil:
		s.Kind = Names
	case k.Rule != nil && k.Rule.Effect == "rejected-by-api":
		s.Kind = Refusals
	case k.Cluster != "":
		w, ok := inGo[k.Cluster]
		if !ok {
			return s, false, fmt.Errorf("claim %s names the spec %q, which does not exist", c.ID, k.Cluster)
		}
		s.Kind, s.Kubernetes, s.Windows = InGo, w.kubernetes, w.windows
		s.Serial, s.Slow, s.Disruptive, s.try = w.serial, w.slow, w.disruptive, w.try
	default:
		return s, false, nil
	}
	return s, true, nil
}

// seenAs is the source that the receiver of a flow must see.
func (s *Spec) seenAs() string {
	if s.Check.Flow == nil {
		return ""
	}
	return s.Check.Flow.SeenAs
}

// labels are those of Ginkgo's filter language: claim, area, kind and how it may run.
func (s *Spec) labels() []string {
	all := []string{"claim:" + s.Claim.ID, "area:" + s.Area, "kind:" + string(s.Kind)}
	for _, l := range []struct {
		is   bool
		name string
	}{{s.Serial, "Serial"}, {s.Slow, "Slow"}, {s.Disruptive, "Disruptive"}} {
		if l.is {
			all = append(all, l.name)
		}
	}
	return all
}

// Documented is what the ledger asks for on a cluster.
func (s *Spec) Documented(targets []claims.Target) claims.Documented {
	return s.Claim.DocumentedOn(s.What, s.seenAs(), targets)
}
