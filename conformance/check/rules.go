package check

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// rule is a rule of the ledger with its fields and conditions parsed.
type rule struct {
	claim *claims.Claim
	check *claims.Check
	*claims.Rule
	paths      []strict.Path
	cond       claims.Condition
	unless     []strict.Path
	unlessCond claims.Condition
	test       *subject.Test
	// fixed is set when its words are the same in every setting.
	fixed bool
}

// tests are all conditions written in Go, by their names.
func tests() []subject.Test {
	all := slices.Concat(manifest.Tests(), nodeconf.Tests())
	slices.SortFunc(all, func(a, b subject.Test) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// byName finds a test by subject and name.
var byName = sync.OnceValue(func() map[[2]string]*subject.Test {
	m := map[[2]string]*subject.Test{}
	for _, t := range tests() {
		for _, on := range t.On {
			m[[2]string{on, t.Name}] = &t
		}
	}
	return m
})

func testNamed(on, name string) *subject.Test { return byName()[[2]string{on, name}] }

// compile reads the rules of a ledger, in its order. The error names every
// rule that cannot be read; the linter does so with more words.
func compile(l *claims.Ledger) ([]*rule, error) {
	var rules []*rule
	var bad []string
	for _, c := range l.Claims() {
		for i := range c.Checks {
			if c.Checks[i].Rule == nil {
				continue
			}
			r, err := newRule(c, &c.Checks[i])
			if err != nil {
				bad = append(bad, fmt.Sprintf("claim %s: %v", c.ID, err))
				continue
			}
			rules = append(rules, r)
		}
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("rules that cannot be read:\n%s", strings.Join(bad, "\n"))
	}
	return rules, nil
}

func newRule(c *claims.Claim, k *claims.Check) (*rule, error) {
	r := &rule{claim: c, check: k, Rule: k.Rule}
	r.fixed = !slices.ContainsFunc([]string{"{kubernetes}", "{windows}", "{build}"},
		func(of string) bool { return strings.Contains(r.Says+r.Write, of) })
	var err error
	if r.cond, err = claims.ParseCondition(r.When); err != nil {
		return nil, err
	}
	if r.Field != "" {
		if r.paths, err = paths(r.On, r.Field); err != nil {
			return nil, err
		}
	}
	if r.Test != "" {
		if r.test = testNamed(r.On, r.Test); r.test == nil {
			return nil, fmt.Errorf("there is no test %q on %s", r.Test, r.On)
		}
	}
	if r.Unless != "" {
		field, cond := claims.SplitUnless(r.Unless)
		if r.unlessCond, err = claims.ParseCondition(cond); err != nil {
			return nil, err
		}
		if r.unless, err = paths(r.On, field); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// paths reads a field. In pods, the path of the containers means that of all
// three lists of them.
func paths(on, field string) ([]strict.Path, error) {
	fields := []string{field}
	if rest, ok := strings.CutPrefix(field, "spec.containers[*]"); ok && on == "pod" {
		fields = append(fields, "spec.initContainers[*]"+rest, "spec.ephemeralContainers[*]"+rest)
	}
	var all []strict.Path
	for _, f := range fields {
		p, err := strict.ParsePath(f)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// applies reports whether the rule is about a subject at all.
func (r *rule) applies(s *subject.Subject) bool {
	if r.On != s.On {
		return false
	}
	if s.On != "pod" {
		return true
	}
	switch r.Pods {
	case "":
		return s.Pods == "windows"
	case "windows":
		return s.Pods == "windows" || s.Pods == "hostprocess"
	case "any":
		return true
	}
	return r.Pods == s.Pods
}
