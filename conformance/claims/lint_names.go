package claims

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
)

// declared checks the names of sources and sets of designs, as far as this
// ledger declares them itself.
func (n *linter) declared() {
	if n.name = n.ledger.names.sourcesFile; n.name != "" {
		n.sourceNames()
	}
	if n.name = n.ledger.names.designsFile; n.name != "" {
		n.setNames()
	}
}

func (n *linter) sourceNames() {
	declared := n.ledger.names
	if minorOf(declared.through) < 0 {
		n.add(pos{1, 1}, "documentedThrough is %q; write the newest version of Kubernetes whose documents were read", declared.through)
	}
	seen := map[string]bool{}
	for _, s := range declared.sources {
		say := func(format string, args ...any) { n.add(s.pos, "source %s: %s", s.ID, fmt.Sprintf(format, args...)) }
		switch {
		case !idForm.MatchString(strings.ReplaceAll(s.ID, ".", "-")):
			n.add(s.pos, "id %q: write lower case letters, digits, dots and dashes", s.ID)
			continue
		case seen[s.ID]:
			say("it is declared twice")
		case !declared.used["source "+s.ID]:
			say("no claim cites it; remove it")
		}
		seen[s.ID] = true
		if s.Doc == "" {
			say("it needs doc: the title of the document")
		}
		n.edition(s, say)
	}
}

// edition checks the versions of a declared source.
func (n *linter) edition(s source, say func(string, ...any)) {
	switch {
	case (s.Version == "") == (s.From == ""):
		say("write version for an edition that is closed, or from for one that goes on")
	case s.Version != "" && s.DocumentedThrough != "":
		say("an edition that is closed has no documentedThrough")
	case s.From != "" && minorOf(s.From) < 0:
		say("from is %q; write a version of Kubernetes", s.From)
	case s.DocumentedThrough != "" && minorOf(s.DocumentedThrough) < minorOf(s.From):
		say("documentedThrough is %q; write a version of Kubernetes from %s on", s.DocumentedThrough, s.From)
	}
}

func (n *linter) setNames() {
	seen := map[string]bool{}
	for _, s := range n.ledger.names.sets {
		say := func(format string, args ...any) { n.add(s.pos, "set %s: %s", s.Name, fmt.Sprintf(format, args...)) }
		switch {
		case !idForm.MatchString(strings.ReplaceAll(s.Name, ".", "-")):
			n.add(s.pos, "name %q: write lower case letters, digits, dots and dashes", s.Name)
			continue
		case seen[s.Name]:
			say("it is declared twice")
		case slices.ContainsFunc(n.Designs, func(d Design) bool { return d.Name == s.Name }):
			say("a design has this name")
		case !n.ledger.names.used["set "+s.Name]:
			say("no check or status names it; remove it")
		}
		seen[s.Name] = true
		for _, g := range s.Designs {
			if _, err := path.Match(g, ""); err != nil || !slices.ContainsFunc(n.Designs,
				func(d Design) bool { return matchAny([]string{g}, d.Name) }) {
				say("no design is called %q%s", g, strict.DidYouMean(g, n.known("", func(d Design) string { return d.Name })))
			}
		}
		if len(s.Designs) == 0 {
			say("it has no designs")
		}
	}
}

// repeated finds documents that several claims cite without a name.
func (n *linter) repeated() {
	if n.ledger.names.sourcesFile == "" {
		return
	}
	type edition struct{ doc, version, from, url string }
	first := map[edition]string{}
	for _, f := range n.ledger.Files {
		n.name = f.name
		for _, c := range f.Claims {
			for _, s := range c.Sources {
				if s.Source != "" {
					continue
				}
				url, _, _ := strings.Cut(s.URL, "#")
				e := edition{s.Doc, s.Version, s.From, url}
				if other, ok := first[e]; ok && other != c.ID {
					n.add(s.pos, "claim %s: claim %s cites this edition of %q, too; declare it in %s", c.ID, other, s.Doc, sourcesFile)
				}
				first[e] = c.ID
			}
		}
	}
}
