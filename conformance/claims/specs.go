package claims

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
)

// Spec is a test of the suites for clusters, as far as the ledger has to know it. The
// suites are a module of their own, which this one must not import: a test there
// compares the list with the tests that exist, and writes it.
type Spec struct {
	Name string `yaml:"name"`
	// Title is what it tries, in a sentence without a full stop.
	Title string `yaml:"title"`
	// Claims are those whose checks name it.
	Claims []string `yaml:"claims"`
	// Kubernetes and Windows are the oldest versions on which it can be tried, for
	// example "1.22" and "10.0.17763"; "" for any.
	Kubernetes string `yaml:"kubernetes,omitempty"`
	Windows    string `yaml:"windows,omitempty"`
	// Labels are serial, slow and disruptive, as far as they apply.
	Labels []string `yaml:"labels,omitempty"`
}

//go:embed specs.yaml
var specList []byte

// Specs are the tests that a check may name in cluster.
var Specs = sync.OnceValue(func() []Spec {
	var list struct {
		Specs []Spec `yaml:"specs"`
	}
	// A test reads the file strictly; it is part of the program.
	if err := yaml.Unmarshal(specList, &list); err != nil {
		return nil
	}
	return list.Specs
})

// SpecNamed returns the spec with that name, or nil.
func SpecNamed(name string) *Spec {
	all := Specs()
	if i := slices.IndexFunc(all, func(s Spec) bool { return s.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// spec checks a check that names one.
func (n *linter) spec(k *Check, say func(string, ...any)) {
	if k.Expect != "" || k.Reason != "" {
		say("expect and reason are for checks with packets; a spec must work where the documented status says so")
	}
}

// specOf checks that the spec of a check exists and knows the claim.
func (n *linter) specOf(c *Claim, k *Check, say func(pos, string, ...any)) {
	if n.Specs == nil || k.Cluster == "" {
		return
	}
	i := slices.IndexFunc(n.Specs, func(s Spec) bool { return s.Name == k.Cluster })
	if i < 0 {
		var names []string
		for _, s := range n.Specs {
			names = append(names, s.Name)
		}
		say(k.pos, "there is no spec %q%s", k.Cluster, strict.DidYouMean(k.Cluster, names))
		return
	}
	if !slices.Contains(n.Specs[i].Claims, c.ID) {
		say(k.pos, "the spec %s does not name this claim; add it to the spec in conformance/e2e/suite", k.Cluster)
	}
}

// specs checks that the claims which specs name have them among their checks.
func (n *linter) specs() {
	n.name = "specs.yaml"
	for _, s := range n.Specs {
		// A ledger of its own, as in tests, may have none of the program's claims.
		if !slices.ContainsFunc(s.Claims, func(id string) bool { return n.ledger.Claim(id) != nil }) {
			continue
		}
		for _, id := range s.Claims {
			c := n.ledger.Claim(id)
			switch {
			case c == nil:
				n.add(pos{}, "the spec %s names the claim %q, which does not exist", s.Name, id)
			case !slices.ContainsFunc(c.Checks, func(k Check) bool { return k.Cluster == s.Name }):
				n.add(pos{}, "the spec %s names the claim %s, which has no check %s", s.Name, id, fmt.Sprintf("{cluster: %s}", s.Name))
			}
		}
	}
}
