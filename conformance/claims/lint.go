package claims

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Statuses are the words that Support.Status may be.
var Statuses = []string{"stable", "beta", "alpha", "unsupported", "undocumented", "disputed"}

// LintOptions says what exists outside the ledger.
type LintOptions struct {
	// Designs are the network designs that Where may select.
	Designs []Design
	// Actors are what flows may name, as in [Actors].
	Actors []string
	// Test finds a test of rules by subject and name, with what it fills into
	// texts; Tests lists those of a subject; Field says what is wrong with a
	// field of a subject. Nil leaves these out.
	Test  func(on, name string) (vars []string, ok bool)
	Tests func(on string) []string
	Field func(on, field string) error
	// Specs are those that a check may name; nil leaves them out.
	Specs []Spec
}

// Lint checks what the types cannot: that every claim is checked or says why
// not, that references lead somewhere, that ranges do not overlap. The error,
// if any, is [Mistakes] and holds everything that is wrong.
func (l *Ledger) Lint(o LintOptions) error {
	n := &linter{LintOptions: o, ids: map[string]place{}, areas: map[string]string{}, ledger: l}
	n.declared()
	for i := range l.Files {
		n.file(i)
	}
	n.repeated()
	n.specs()
	return n.found.AsError()
}

type linter struct {
	LintOptions
	ledger *Ledger
	ids    map[string]place
	areas  map[string]string
	name   string
	found  Mistakes
}

func (n *linter) add(p pos, format string, args ...any) {
	n.found = append(n.found, Mistake{File: n.name, Line: p.line, Column: p.column, Message: fmt.Sprintf(format, args...)})
}

var idForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (n *linter) file(i int) {
	f := &n.ledger.Files[i]
	n.name = f.name
	if !idForm.MatchString(f.Area) {
		n.add(f.pos, "area %q: write a word in lower case with dashes, for example node-access", f.Area)
	} else if other, ok := n.areas[f.Area]; ok {
		n.add(f.pos, "area %q is also in %s; one file per area", f.Area, other)
	} else {
		n.areas[f.Area] = f.name
	}
	if f.Title == "" {
		n.add(f.pos, "the area has no title")
	}
	if len(f.Claims) == 0 {
		n.add(f.pos, "the area has no claims")
	}
	for j := range f.Claims {
		c := &f.Claims[j]
		switch first, ok := n.ids[c.ID]; {
		case !idForm.MatchString(c.ID):
			n.add(c.pos, "id %q: write lower case letters, digits and dashes", c.ID)
		case ok:
			n.add(c.pos, "claim %s exists already in %s:%d; ids are unique", c.ID,
				n.ledger.Files[first.file].name, n.ledger.Files[first.file].Claims[first.claim].pos.line)
		default:
			n.ids[c.ID] = place{i, j}
		}
		n.claim(c)
	}
}

func (n *linter) claim(c *Claim) {
	say := func(p pos, format string, args ...any) {
		n.add(p, "claim %s: %s", c.ID, fmt.Sprintf(format, args...))
	}
	if c.Title == "" || c.Text == "" {
		say(c.pos, "title and text are required")
	}
	n.sources(c, say)
	n.ranges(c, say)
	n.needs(c, say)
	switch {
	case len(c.Checks) == 0 && c.Unchecked == "":
		say(c.pos, "nothing checks it; write checks, or unchecked: and the reason")
	case len(c.Checks) > 0 && c.Unchecked != "":
		say(c.pos, "it has checks and a reason for having none; remove one")
	}
	if len(c.Support) == 0 {
		say(c.pos, "no support; write at least one status with the versions it holds for")
	}
	for i := range c.Support {
		p := &c.Support[i]
		if !slices.Contains(Statuses, p.Status) {
			say(p.pos, "status %q%s", p.Status, strict.DidYouMean(p.Status, Statuses))
		}
		n.checkWhere(p.Where, p.pos, say)
		for j := range i {
			if n.overlap(p.Where, c.Support[j].Where) {
				say(p.pos, "this status overlaps the one on line %d; narrow one of them", c.Support[j].pos.line)
			}
		}
	}
	for i := range c.Checks {
		k := &c.Checks[i]
		n.checkWhere(k.Where, k.pos, say)
		n.check(k, func(format string, args ...any) { say(k.pos, format, args...) })
		n.dispute(c, k, func(format string, args ...any) { say(k.pos, format, args...) })
		n.specOf(c, k, say)
	}
}

func (n *linter) sources(c *Claim, say func(pos, string, ...any)) {
	positions := 0
	for i, s := range c.sources {
		if s.Doc == "" || s.Version == "" {
			say(c.pos, "source %d needs doc and version", i+1)
		}
		if s.Certainty != "" && !slices.Contains(Certainties, s.Certainty) {
			say(c.Sources[i].pos, "certainty %q%s", s.Certainty, strict.DidYouMean(s.Certainty, Certainties))
		}
		if s.Says != "" {
			positions++
		}
	}
	if len(c.Sources) == 0 {
		say(c.pos, "no sources; a claim is what a document says")
	}
	if c.Disputed() && positions < 2 {
		say(c.pos, "it is disputed, so at least two sources need says: with their positions")
	}
}

// checkWhere checks that the ranges can be read and that some design is selected.
func (n *linter) checkWhere(w Where, p pos, say func(pos, string, ...any)) {
	whereWords(w, p, say)
	ok := true
	for _, rng := range []string{w.Kubernetes, w.Build, w.PluginVersion, w.RuntimeVersion} {
		if _, err := ParseRange(rng); err != nil {
			say(p, "%v", err)
			ok = false
		}
	}
	for _, x := range w.Proxies {
		if known := n.proxies(); !slices.Contains(known, x) {
			say(p, "no design has the proxy %q; write one of %s", x, strings.Join(known, ", "))
			ok = false
		}
	}
	for _, list := range []struct {
		field string
		globs []string
		of    func(Design) string
	}{
		{"designs", w.Designs, func(d Design) string { return d.Name }},
		{"networks", w.Networks, func(d Design) string { return d.Network }},
		{"plugins", w.Plugins, func(d Design) string { return d.Plugin }},
	} {
		for _, g := range list.globs {
			if _, err := path.Match(g, ""); err != nil {
				say(p, "%s: %q is not a glob", list.field, g)
				ok = false
			} else if !slices.ContainsFunc(n.Designs, func(d Design) bool { return matchAny([]string{g}, list.of(d)) }) {
				say(p, "%s: nothing is called %q%s", list.field, g, strict.DidYouMean(g, n.known(list.field, list.of)))
				ok = false
			}
		}
	}
	if ok && !slices.ContainsFunc(n.Designs, func(d Design) bool { return selects(w, d) }) {
		say(p, "no design fits all of where at once: %s", w.Words())
	}
}

// whereWords checks names that do not depend on the designs.
func whereWords(w Where, p pos, say func(pos, string, ...any)) {
	for _, r := range w.Releases {
		if !slices.ContainsFunc(Releases(), func(x Release) bool { return x.Name == r }) {
			say(p, "no release of Windows Server is called %q here", r)
		}
	}
	for _, r := range w.Runtimes {
		if !slices.Contains([]string{"docker", "containerd"}, r) {
			say(p, "runtime %q; write docker or containerd", r)
		}
	}
}

// known are the names that a list of Where may have.
func (n *linter) known(field string, of func(Design) string) []string {
	var names []string
	for _, d := range n.Designs {
		names = append(names, of(d))
	}
	if field == "designs" {
		for _, s := range n.ledger.names.sets {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (n *linter) proxies() []string {
	var all []string
	for _, d := range n.Designs {
		all = append(all, d.Proxies...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// selects reports whether w may select some setting of the design.
func selects(w Where, d Design) bool {
	return w.matchesDesign(d) && overlap(w.Kubernetes, d.Kubernetes) &&
		(len(w.Proxies) == 0 || slices.ContainsFunc(w.Proxies, func(x string) bool { return slices.Contains(d.Proxies, x) }))
}

// overlap of two Where: some design has a setting that both select.
func (n *linter) overlap(a, b Where) bool {
	return overlap(a.Kubernetes, b.Kubernetes) && overlap(a.Build, b.Build) && overlap(a.PluginVersion, b.PluginVersion) &&
		overlap(a.RuntimeVersion, b.RuntimeVersion) && meet(a.Releases, b.Releases) && meet(a.Runtimes, b.Runtimes) &&
		slices.ContainsFunc(n.Designs, func(d Design) bool {
			return selects(a, d) && selects(b, d) &&
				slices.ContainsFunc(d.Proxies, func(x string) bool {
					return (len(a.Proxies) == 0 || slices.Contains(a.Proxies, x)) && (len(b.Proxies) == 0 || slices.Contains(b.Proxies, x))
				})
		})
}

// meet reports whether two lists of names have one in common; an empty list
// has all.
func meet(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// overlap of two ranges as text; one that cannot be read overlaps nothing and
// is reported at its place.
func overlap(a, b string) bool {
	x, err1 := ParseRange(a)
	y, err2 := ParseRange(b)
	return err1 == nil && err2 == nil && x.Overlaps(y)
}
