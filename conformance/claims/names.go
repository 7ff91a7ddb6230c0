package claims

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// The two files of a ledger that hold no claims: they give names to what
// claims refer to again and again.
const (
	sourcesFile = "sources.yaml"
	designsFile = "designs.yaml"
)

// sourceList is the file of sources.
type sourceList struct {
	// DocumentedThrough is the newest version of Kubernetes whose documents were
	// read. It is the end of every source that does not name another one.
	DocumentedThrough string   `yaml:"documentedThrough"`
	Sources           []source `yaml:"sources"`
}

// source is an edition of a document. It is closed (Version), or it goes on
// with every version of Kubernetes whose documents were read (From).
type source struct {
	ID      string `yaml:"id"`
	Doc     string `yaml:"doc"`
	Version string `yaml:"version,omitempty"`
	From    string `yaml:"from,omitempty"`
	// DocumentedThrough is set where this document was read up to another
	// version than the others were.
	DocumentedThrough string `yaml:"documentedThrough,omitempty"`
	// URL is what the addresses of all places in the document begin with.
	URL string `yaml:"url,omitempty"`

	pos pos
}

// designList is the file of sets of designs.
type designList struct {
	Sets []designSet `yaml:"sets"`
}

// designSet is a list of designs or globs that checks name in one word.
type designSet struct {
	Name    string   `yaml:"name"`
	Designs []string `yaml:"designs"`

	pos pos
}

// citation is a place in a document as a claim writes it: in a declared source,
// or in a document that this claim alone cites.
type citation struct {
	Source  string `yaml:"source,omitempty"`
	Doc     string `yaml:"doc,omitempty"`
	Section string `yaml:"section,omitempty"`
	// Version and From are as in [source] and replace those of the source.
	Version string `yaml:"version,omitempty"`
	From    string `yaml:"from,omitempty"`
	// URL is for documents that are not declared; At is what follows the URL of
	// a declared one: "#networking".
	URL string `yaml:"url,omitempty"`
	At  string `yaml:"at,omitempty"`
	// Says is the position of this source in our words, where sources differ.
	Says string `yaml:"says,omitempty"`
	// Covers is a range of versions of Kubernetes that the place speaks of beyond those of
	// its edition: ">=1.15" where it says "since v1.15".
	Covers string `yaml:"covers,omitempty"`
	// Certainty is one of [Certainties]; "" for a source that states it.
	Certainty string `yaml:"certainty,omitempty"`
	// Edit is what we would propose to its authors, where it is wrong.
	Edit string `yaml:"edit,omitempty"`

	pos pos
}

// Certainties are what the certainty of a source may be, but for "": it states it.
//
//	hedged      it may be so: "may fail", "in some cases"
//	announced   it is to come: "is being addressed with", "will be available"
//	own         the source has the facts, and the conclusion is ours
var Certainties = []string{"hedged", "announced", "own"}

// names are the declared names of a ledger.
type names struct {
	through string
	sources []source
	sets    []designSet
	// files are those that declare the sources and the sets; "" for a ledger
	// without its own, which uses those of the program.
	sourcesFile, designsFile string
	used                     map[string]bool
}

// builtin are the names that the program's own ledger declares.
var builtin = sync.OnceValues(func() (names, Mistakes) {
	return readNames(data, []string{"data/" + sourcesFile, "data/" + designsFile})
})

// newest is the newest version that any of the sources was read through.
func (n *names) newest() string {
	newest := n.through
	for _, s := range n.sources {
		if minorOf(s.DocumentedThrough) > minorOf(newest) {
			newest = s.DocumentedThrough
		}
	}
	return newest
}

// isNames reports whether a file of a ledger declares names.
func isNames(file string) bool {
	return path.Base(file) == sourcesFile || path.Base(file) == designsFile
}

// namesOf reads the names that a ledger declares. What it does not declare is
// the program's own.
func namesOf(fsys fs.FS, files []string) (names, Mistakes) {
	own, found := readNames(fsys, files)
	if own.sourcesFile != "" && own.designsFile != "" {
		return own, found
	}
	program, more := builtin()
	if own.sourcesFile == "" {
		own.through, own.sources = program.through, program.sources
	}
	if own.designsFile == "" {
		own.sets = program.sets
	}
	return own, append(found, more...)
}

func readNames(fsys fs.FS, files []string) (names, Mistakes) {
	n := names{used: map[string]bool{}}
	var found Mistakes
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			found = append(found, Mistake{File: file, Message: err.Error()})
			continue
		}
		switch path.Base(file) {
		case sourcesFile:
			var l sourceList
			found = append(found, decode(file, text, &l)...)
			n.sourcesFile, n.through, n.sources = file, l.DocumentedThrough, l.Sources
		case designsFile:
			var l designList
			found = append(found, decode(file, text, &l)...)
			n.designsFile, n.sets = file, l.Sets
		}
	}
	return n, found
}

// resolve replaces the names in a file of claims by what they mean, and
// ends the ranges that are open.
func (n *names) resolve(f *File) Mistakes {
	var found Mistakes
	for i := range f.Claims {
		c := &f.Claims[i]
		through := ""
		c.sources = nil
		for _, cite := range c.Sources {
			s, end, wrong := n.place(cite)
			if wrong != "" {
				found = append(found, Mistake{File: f.name, Line: cite.pos.line, Column: cite.pos.column,
					Message: fmt.Sprintf("claim %s: %s", c.ID, wrong)})
			}
			c.sources = append(c.sources, s)
			if minorOf(end) > minorOf(through) {
				through = end
			}
		}
		through = cmp.Or(through, n.through)
		for j := range c.Support {
			n.resolveWhere(&c.Support[j].Where, through)
		}
		for j := range c.Checks {
			n.resolveWhere(&c.Checks[j].Where, through)
		}
	}
	return found
}

// place is what a citation leads to, with the version that its source was read
// through; "" when the edition is closed.
func (n *names) place(c citation) (s result.Source, through, wrong string) {
	d, wrong := n.document(c)
	if wrong != "" {
		return s, "", wrong
	}
	if c.Version != "" && c.From != "" {
		return s, "", "version is for an edition that is closed, from for one that goes on; write one of them"
	}
	if c.Version != "" || c.From != "" {
		d.Version, d.From = c.Version, c.From
	}
	s = result.Source{Doc: d.Doc, Section: c.Section, Version: d.Version, URL: d.URL + c.At, Says: c.Says, Certainty: c.Certainty,
		Edit: c.Edit}
	if d.From != "" {
		through = cmp.Or(d.DocumentedThrough, n.through)
		s.Version = d.From
		if d.From != through {
			s.Version += "-" + through
		}
	}
	return s, through, ""
}

// document is the declared source that a citation names, or the document that it
// has in place.
func (n *names) document(c citation) (d source, wrong string) {
	switch {
	case (c.Source == "") == (c.Doc == ""):
		return d, "a source has the name of a declared one (source) or a title (doc), and this one has both or neither"
	case c.Source == "" && c.At != "":
		return d, "at follows the url of a declared source; write url"
	case c.Source == "":
		return source{Doc: c.Doc, URL: c.URL}, ""
	}
	i := slices.IndexFunc(n.sources, func(s source) bool { return s.ID == c.Source })
	if i < 0 {
		return d, fmt.Sprintf("no source is called %q%s", c.Source, strict.DidYouMean(c.Source, n.sourceIDs()))
	}
	n.used["source "+c.Source] = true
	d = n.sources[i]
	switch {
	case c.URL != "":
		return d, fmt.Sprintf("the source %s has its url in %s; write what follows it in at", c.Source, sourcesFile)
	case c.At != "" && d.URL == "":
		return d, fmt.Sprintf("the source %s has no url that at could follow", c.Source)
	}
	return d, ""
}

func (n *names) sourceIDs() []string {
	ids := make([]string, len(n.sources))
	for i, s := range n.sources {
		ids[i] = s.ID
	}
	return ids
}

// resolveWhere replaces the sets of designs by their designs, and ends an open range.
func (n *names) resolveWhere(w *Where, through string) {
	if end := closed(w.Kubernetes, through); end != w.Kubernetes {
		w.Kubernetes, w.open = end, w.Kubernetes
	}
	var designs []string
	for _, d := range w.Designs {
		i := slices.IndexFunc(n.sets, func(s designSet) bool { return s.Name == d })
		if i < 0 {
			designs = append(designs, d)
			continue
		}
		n.used["set "+d] = true
		designs = append(designs, n.sets[i].Designs...)
	}
	w.Designs = designs
}

// closed ends each alternative of a range that has no end. A range that cannot
// be read stays as it is; the linter reports it.
func closed(rng, through string) string {
	r, err := ParseRange(rng)
	if err != nil || len(r) == 0 {
		return rng
	}
	alternatives := strings.Split(rng, "||")
	for i, bounds := range r {
		alternatives[i] = strings.TrimSpace(alternatives[i])
		if !slices.ContainsFunc(bounds, func(b versions.Bound) bool { return !strings.HasPrefix(b.Op, ">") }) {
			alternatives[i] += " <=" + through
		}
	}
	return strings.Join(alternatives, " || ")
}

// minorOf is the second number of a version, 36 for "1.36"; -1 without one.
func minorOf(s string) int {
	v, err := ParseVersion(s)
	if err != nil || len(v) < 2 {
		return -1
	}
	return v[1]
}

// UnmarshalYAML decodes a source and remembers where it is.
func (s *source) UnmarshalYAML(n *yaml.Node) error {
	type plain source
	err := n.Decode((*plain)(s))
	s.pos = pos{n.Line, n.Column}
	return err
}

// UnmarshalYAML decodes a set and remembers where it is.
func (s *designSet) UnmarshalYAML(n *yaml.Node) error {
	type plain designSet
	err := n.Decode((*plain)(s))
	s.pos = pos{n.Line, n.Column}
	return err
}

// UnmarshalYAML decodes a citation and remembers where it is.
func (c *citation) UnmarshalYAML(n *yaml.Node) error {
	type plain citation
	err := n.Decode((*plain)(c))
	c.pos = pos{n.Line, n.Column}
	return err
}
