package claims

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/result"
)

//go:embed rows/*.yaml
var rowData embed.FS

//go:embed systems.yaml
var systemData []byte

// Row is one statement of the source documents as it was counted when they
// were taken apart, in our words, and what became of it. Exactly one of
// Claims, Merged and Excluded is set.
type Row struct {
	// Row is the number, "S001" to "S520".
	Row string `yaml:"row"`
	// Says is the statement, in our words.
	Says string `yaml:"says"`
	// Claims cover the row: each says at least what the row says.
	Claims []string `yaml:"claims,omitempty"`
	// Merged is the claim that the row is a part of.
	Merged string `yaml:"merged,omitempty"`
	// Excluded is the reason why no claim says it.
	Excluded string `yaml:"excluded,omitempty"`

	file string
	pos  pos
}

// Rows returns the list of the documents' statements, in the order of their
// numbers. The error, if any, is [Mistakes].
func Rows() ([]Row, error) {
	names, _ := fs.Glob(rowData, "rows/*.yaml")
	var all []Row
	var found Mistakes
	for _, name := range names {
		text, _ := rowData.ReadFile(name)
		var rows []Row
		if ms := decode(name, text, &rows); ms != nil {
			found = append(found, ms...)
			continue
		}
		for _, r := range rows {
			r.file = name
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Row) int { return strings.Compare(a.Row, b.Row) })
	return all, found.AsError()
}

// UnmarshalYAML decodes a row and remembers where it is.
func (r *Row) UnmarshalYAML(n *yaml.Node) error {
	type plain Row
	err := n.Decode((*plain)(r))
	r.pos = pos{n.Line, n.Column}
	return err
}

// decode reads one YAML document strictly.
func decode(name string, text []byte, into any) Mistakes {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil {
		return Mistakes{strict.SyntaxMistake(name, err)}
	}
	s := &strict.Checker{File: name}
	s.Check(doc.Content[0], reflect.TypeOf(into).Elem(), "the file")
	if len(s.Found) > 0 {
		return s.Found
	}
	if err := doc.Content[0].Decode(into); err != nil {
		return Mistakes{strict.SyntaxMistake(name, err)}
	}
	return nil
}

var rowForm = lazyregexp.New(`^S\d{3}$`)

// JoinRows checks the list of rows against the ledger: every number from S001
// to the last occurs once, and leads to a claim or has a reason. The error,
// if any, is [Mistakes].
func (l *Ledger) JoinRows(rows []Row, last int) error {
	var found Mistakes
	say := func(r Row, format string, args ...any) {
		found = append(found, Mistake{File: r.file, Line: r.pos.line, Column: r.pos.column, Message: r.Row + ": " + fmt.Sprintf(format, args...)})
	}
	seen := map[string]bool{}
	for _, r := range rows {
		switch {
		case !rowForm.MatchString(r.Row):
			say(r, "a row has a number such as S001")
		case seen[r.Row]:
			say(r, "the row occurs twice")
		}
		seen[r.Row] = true
		if strings.TrimSpace(r.Says) == "" {
			say(r, "says is empty; write the statement in our words")
		}
		ways := 0
		for _, is := range []bool{len(r.Claims) > 0, r.Merged != "", r.Excluded != ""} {
			if is {
				ways++
			}
		}
		if ways != 1 {
			say(r, "exactly one of claims, merged and excluded says what became of it")
		}
		for _, id := range append(slices.Clone(r.Claims), r.Merged) {
			if id != "" && l.Claim(id) == nil {
				say(r, "no claim is called %q", id)
			}
		}
	}
	for n := 1; n <= last; n++ {
		if row := fmt.Sprintf("S%03d", n); !seen[row] {
			found = append(found, Mistake{File: "rows", Message: row + " is missing"})
		}
	}
	return found.AsError()
}

// system is one of the systems that the documents describe and that a model
// of them must cover.
type system struct {
	Number int    `yaml:"number"`
	ID     string `yaml:"id"`
	Group  string `yaml:"group"`
	Title  string `yaml:"title"`
	Text   string `yaml:"text"`
	// Claims are ids or globs of ids of the ledger, or whole areas,
	// "area:scheduling"; Designs the labs that build
	// the system, names or globs; Code the packages that model it.
	Claims  []string `yaml:"claims"`
	Designs []string `yaml:"designs,omitempty"`
	Code    []string `yaml:"code,omitempty"`
	// Missing is what of the system is not there, in words.
	Missing string `yaml:"missing,omitempty"`
}

// Systems returns the systems in the order of their numbers, with their globs
// resolved to ids and names. The error, if any, is [Mistakes].
func (l *Ledger) Systems() ([]result.System, error) {
	var systems []system
	if ms := decode("systems.yaml", systemData, &systems); ms != nil {
		return nil, ms
	}
	var found Mistakes
	var out []result.System
	for _, s := range systems {
		r := result.System{Number: s.Number, ID: s.ID, Group: s.Group, Title: s.Title, Text: s.Text, Code: s.Code, Missing: s.Missing}
		leads := func(globs []string, what string, of func(glob string) []string) []string {
			var all []string
			for _, g := range globs {
				ids := of(g)
				if len(ids) == 0 {
					found = append(found, Mistake{File: "systems.yaml", Message: fmt.Sprintf("system %s: no %s is called %q", s.ID, what, g)})
				}
				for _, id := range ids {
					if !slices.Contains(all, id) {
						all = append(all, id)
					}
				}
			}
			return all
		}
		r.Designs = leads(s.Designs, "design", designsLike)
		r.Claims = leads(s.Claims, "claim or area", l.claimsLike)
		out = append(out, r)
	}
	return out, found.AsError()
}

// designsLike are the designs whose names match a glob.
func designsLike(glob string) []string {
	var names []string
	for _, d := range Designs {
		if matchAny([]string{glob}, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// claimsLike are the claims whose ids match a glob, or those of "area:NAME".
func (l *Ledger) claimsLike(glob string) []string {
	var ids []string
	area, whole := strings.CutPrefix(glob, "area:")
	for _, c := range l.Claims() {
		if whole && l.AreaOf(c.ID) == area || !whole && matchAny([]string{glob}, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// LastRow is the number of the last row: the documents make so many statements.
const LastRow = 520
