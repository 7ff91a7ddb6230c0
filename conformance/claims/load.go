package claims

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/reports/result"

	"github.com/winlab-dev/winlab/internal/strict"
)

//go:embed data/*.yaml
var data embed.FS

// Ledger is every claim, area by area.
type Ledger struct {
	// Files are the areas in the order of the report.
	Files []File

	names names
	byID  map[string]place
	sum   string
}

// Sum is the SHA-256 of the ledger's files in the order of their names, in hexadecimal
// digits; "" for a ledger that was parsed from memory.
func (l *Ledger) Sum() string { return l.sum }

type place struct{ file, claim int }

// Load reads the ledger that is part of the program. The error, if any, is
// [Mistakes] and holds everything that is wrong.
func Load() (*Ledger, error) { return LoadFS(data, "data/*.yaml") }

// LoadFS reads the files of fsys that match a glob as a ledger: one for each
// area, and sources.yaml and designs.yaml with names; a ledger without these has
// the names of the program's own. It decodes strictly but does not lint; the
// error, if any, is [Mistakes].
func LoadFS(fsys fs.FS, glob string) (*Ledger, error) {
	all, err := fs.Glob(fsys, glob)
	if err != nil {
		return nil, Mistakes{{File: glob, Message: err.Error()}}
	}
	var declaring, areas []string
	for _, name := range all {
		if isNames(name) {
			declaring = append(declaring, name)
		} else {
			areas = append(areas, name)
		}
	}
	if len(areas) == 0 {
		return nil, Mistakes{{File: glob, Message: "no file of claims here; write one per area, for example flows.yaml"}}
	}
	declared, found := namesOf(fsys, declaring)
	// Every command that looks at claims waits for this: the files are read side
	// by side.
	files := make([]File, len(areas))
	mistakes := make([]Mistakes, len(areas))
	var wg sync.WaitGroup
	for i, name := range areas {
		wg.Go(func() {
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				mistakes[i] = Mistakes{{File: name, Message: err.Error()}}
				return
			}
			files[i], mistakes[i] = parse(name, text)
		})
	}
	wg.Wait()
	l, err := newLedger(files, declared, append(found, slices.Concat(mistakes...)...))
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, name := range all {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, Mistakes{{File: name, Message: err.Error()}}
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	l.sum = hex.EncodeToString(h.Sum(nil))
	return l, nil
}

// Parse reads one file of claims, which may use the names of the program's
// ledger. The error, if any, is [Mistakes].
func Parse(name string, text []byte) (*Ledger, error) {
	declared, found := namesOf(nil, nil)
	f, more := parse(name, text)
	return newLedger([]File{f}, declared, append(found, more...))
}

func parse(name string, text []byte) (File, Mistakes) {
	f := File{name: name, pos: pos{1, 1}}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return f, Mistakes{{File: name, Line: 1, Column: 1, Message: "the file is empty; write area, title and claims"}}
	} else if err != nil {
		return f, Mistakes{strict.SyntaxMistake(name, err)}
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return f, Mistakes{{File: name, Line: second.Line, Column: second.Column, Message: "a second document; write one area per file"}}
	} else if !errors.Is(err, io.EOF) {
		return f, Mistakes{strict.SyntaxMistake(name, err)}
	}
	root := doc.Content[0]
	s := &strict.Checker{File: name}
	s.Check(root, reflect.TypeFor[File](), "the file")
	if len(s.Found) > 0 {
		return f, s.Found
	}
	if err := root.Decode(&f); err != nil {
		return f, Mistakes{strict.SyntaxMistake(name, err)}
	}
	f.pos = pos{root.Line, root.Column}
	return f, nil
}

// newLedger replaces names by what they mean and sorts the areas, unless
// something was found wrong before. Of claims with the same id, which the linter
// reports, the first is found by id.
func newLedger(files []File, declared names, found Mistakes) (*Ledger, error) {
	if len(found) == 0 {
		for i := range files {
			found = append(found, declared.resolve(&files[i])...)
		}
	}
	if err := found.AsError(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Area, b.Area))
	})
	l := &Ledger{Files: files, names: declared, byID: map[string]place{}}
	for i, f := range files {
		for j, c := range f.Claims {
			if _, ok := l.byID[c.ID]; !ok {
				l.byID[c.ID] = place{i, j}
			}
		}
	}
	return l, nil
}

// Claims returns every claim in the order of the report.
func (l *Ledger) Claims() []*Claim {
	var all []*Claim
	for i := range l.Files {
		for j := range l.Files[i].Claims {
			all = append(all, &l.Files[i].Claims[j])
		}
	}
	return all
}

// Claim returns the claim with that id, or nil.
func (l *Ledger) Claim(id string) *Claim {
	p, ok := l.byID[id]
	if !ok {
		return nil
	}
	return &l.Files[p.file].Claims[p.claim]
}

// AreaOf returns the area of the claim with that id, or "".
func (l *Ledger) AreaOf(id string) string {
	p, ok := l.byID[id]
	if !ok {
		return ""
	}
	return l.Files[p.file].Area
}

// Areas returns the headings in the order of the report.
func (l *Ledger) Areas() []result.Area {
	areas := make([]result.Area, len(l.Files))
	for i, f := range l.Files {
		areas[i] = result.Area{ID: f.Area, Title: f.Title}
	}
	return areas
}

// Results returns every claim as the report's rows.
func (l *Ledger) Results() []result.Claim {
	var rows []result.Claim
	for _, f := range l.Files {
		for i := range f.Claims {
			c := &f.Claims[i]
			rows = append(rows, result.Claim{ID: c.ID, Area: f.Area, Title: c.Title, Text: c.Text, Sources: c.sources,
				Disputed: c.Disputed(), Unchecked: c.Unchecked, Needs: c.Needs, CheckedBy: c.CheckedBy(), Trouble: (*result.Trouble)(c.Trouble),
				History: c.History(), Asks: c.asks()})
		}
	}
	return rows
}

// CheckedBy lists the kinds of the claim's checks, each once, in the order of
// the fields of [Check].
func (c *Claim) CheckedBy() []string {
	var kinds []string
	for _, kind := range CheckKinds {
		if slices.ContainsFunc(c.Checks, func(k Check) bool { return k.Kind() == kind }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// ChecksAt returns the checks with packets that apply in a setting, in the
// order of the file. Those with an open range are tried in versions after the
// claim's documents, too, and only observe there: what to expect has not been
// read yet.
func (c *Claim) ChecksAt(s result.Setting) []Check {
	var checks []Check
	for _, k := range c.Checks {
		switch {
		case k.Static(), k.Cluster != "":
		case k.Matches(s):
			checks = append(checks, k)
		case k.open != "" && k.inLab(s) && k.further().Matches(s):
			if k, ok := k.observing(); ok {
				checks = append(checks, k)
			}
		}
	}
	return checks
}

// observing is a check that tries the same and asks for nothing; false for one
// that cannot.
func (k Check) observing() (Check, bool) {
	k.Expect, k.Reason, k.Basis, k.Condition, k.Disputed = "", "", "", "", nil
	switch {
	case k.Flow != nil:
		flow := *k.Flow
		flow.SeenAs = ""
		k.Flow = &flow
	case k.HNS != nil:
		query := *k.HNS
		query.Want = ""
		k.HNS = &query
	}
	return k, k.Wire == nil // what a frame must look like is all that it asks
}

// Disputed reports whether sources of the claim contradict each other somewhere: in a
// status, or in what a check asks for.
func (c *Claim) Disputed() bool {
	return slices.ContainsFunc(c.Support, func(p Support) bool { return p.Status == saysDisputed }) ||
		slices.ContainsFunc(c.Checks, func(k Check) bool { return k.Disputed != nil })
}

// SupportAt returns the documented status in a setting and whether there is one.
func (c *Claim) SupportAt(s result.Setting) (Support, bool) {
	if l, ok := labNamed(s.Design); ok {
		s.Design = l.Of
	}
	for _, p := range c.Support {
		if p.Matches(s) {
			return p, true
		}
	}
	return Support{}, false
}

// String says what the check tries, "pod/client -> pod/peer:80 (tcp)".
func (k Check) String() string {
	switch {
	case k.Flow != nil:
		return k.Flow.String()
	case k.Resolve != nil:
		s := k.Resolve.From + " resolves " + k.Resolve.Name
		if k.Resolve.Tool != "" {
			s += " with " + k.Resolve.Tool
		}
		return s
	case k.Wire != nil:
		switch k.Wire.At {
		case "none":
			return k.Wire.String() + " stays on the node"
		case "pod":
			return k.Wire.String() + " as a pod gets it"
		}
		return k.Wire.String() + " on the wire"
	case k.HNS != nil:
		return fmt.Sprintf("HNS of %s: %s", k.HNS.Node, k.HNS.Query)
	case k.Rule != nil:
		return k.Rule.String()
	case k.Placement != nil:
		return "a pod is placed among " + strings.Join(k.Placement.Nodes, ", ")
	case k.Resources != nil:
		return "a node's resources: " + strings.Join(slices.Sorted(maps.Keys(k.Resources.Want)), ", ")
	case k.Doctor != nil:
		return "the doctor looks at " + k.Doctor.Node
	case k.Cluster != "":
		return "on a cluster: " + k.Cluster
	}
	return ""
}

// CheckKinds are the names of the fields of [Check] that say what is tried.
var CheckKinds = []string{"flow", "resolve", "wire", "hns", "rule", "placement", "resources", "doctor", "cluster"}

// Kind is which of [CheckKinds] the check is, the first where several are set.
func (k Check) Kind() string {
	if kinds := k.kinds(); len(kinds) > 0 {
		return kinds[0]
	}
	return ""
}

// kinds are those of [CheckKinds] that are set.
func (k Check) kinds() []string {
	var kinds []string
	for i, is := range []bool{k.Flow != nil, k.Resolve != nil, k.Wire != nil, k.HNS != nil, k.Rule != nil, k.Placement != nil,
		k.Resources != nil, k.Doctor != nil, k.Cluster != ""} {
		if is {
			kinds = append(kinds, CheckKinds[i])
		}
	}
	return kinds
}

// Static reports whether the check needs neither a lab nor a cluster.
func (k Check) Static() bool {
	return k.Rule != nil || k.Placement != nil || k.Resources != nil || k.Doctor != nil
}

// String is "pod: spec.hostNetwork is true".
func (r *Rule) String() string {
	switch {
	case r.Test != "":
		return r.On + ": " + r.Test
	case r.Field != "":
		return r.On + ": " + r.Field + " " + cmp.Or(r.When, "set")
	}
	return r.On
}

// String is "pod/client -> pod/peer:80 (tcp)".
func (f Flow) String() string {
	protocol := cmp.Or(f.Protocol, "tcp")
	if f.Family == "ipv6" {
		protocol += ", IPv6"
	}
	return fmt.Sprintf("%s -> %s (%s)", f.From, f.To, protocol)
}

// UnmarshalYAML decodes a claim and remembers where it is.
func (c *Claim) UnmarshalYAML(n *yaml.Node) error {
	type plain Claim
	err := n.Decode((*plain)(c))
	c.pos = pos{n.Line, n.Column}
	return err
}

// UnmarshalYAML decodes a status and remembers where it is.
func (p *Support) UnmarshalYAML(n *yaml.Node) error {
	type plain Support
	err := n.Decode((*plain)(p))
	p.pos = pos{n.Line, n.Column}
	return err
}

// UnmarshalYAML decodes a check and remembers where it is.
func (k *Check) UnmarshalYAML(n *yaml.Node) error {
	type plain Check
	err := n.Decode((*plain)(k))
	k.pos = pos{n.Line, n.Column}
	return err
}
