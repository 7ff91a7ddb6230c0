package result

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// JSONSchema is the JSON Schema (2020-12) of [Document].
//
//go:embed schema.json
var JSONSchema []byte

// Write writes the document as JSON on one line with a final newline: a full run
// has thousands of traces, and indentation would be a third of them. The same
// document gives the same bytes: maps are sorted, lists that may not be absent
// are written as [] when empty, and the order of lists is the caller's. An
// empty Schema is filled in; another one than [Schema] is an error.
func Write(w io.Writer, doc *Document) error {
	d := *doc
	if d.Schema == "" {
		d.Schema = Schema
	}
	if d.Schema != Schema {
		return fmt.Errorf("results: schema is %q, this winlab writes %q", d.Schema, Schema)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(normal(d)); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// normal replaces nil by empty where the schema wants a list or a map. It
// copies what it changes.
func normal(d Document) Document {
	d.Settings = each(d.Settings, func(s *Setting) { s.Builds = some(s.Builds) })
	d.Areas = some(d.Areas)
	d.Claims = each(d.Claims, func(c *Claim) { c.Sources = some(c.Sources) })
	d.Cells = each(d.Cells, func(c *Cell) { c.Checks = some(c.Checks) })
	if d.Summary.Outcomes == nil {
		d.Summary.Outcomes = map[string]int{}
	}
	traces := make(map[string]*trace.Trace, len(d.Traces))
	for k, t := range d.Traces {
		if t == nil {
			continue
		}
		c := *t
		if c.Schema == "" {
			c.Schema = trace.Schema
		}
		steps := func(p *trace.Path) { p.Steps = some(p.Steps) }
		if c.Paths != nil {
			c.Paths = each(c.Paths, steps)
		}
		if c.Names != nil {
			c.Names = each(c.Names, func(l *trace.Lookup) {
				if l.Queries == nil {
					return
				}
				l.Queries = each(l.Queries, func(q *trace.Query) {
					if q.Path != nil {
						p := *q.Path
						steps(&p)
						q.Path = &p
					}
				})
			})
		}
		traces[k] = &c
	}
	d.Traces = traces
	d.Facts = maps.Clone(d.Facts)
	maps.DeleteFunc(d.Facts, func(_ string, f *evidence.Fact) bool { return f == nil })
	return d
}

func some[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func each[T any](s []T, f func(*T)) []T {
	out := append(make([]T, 0, len(s)), s...)
	for i := range out {
		f(&out[i])
	}
	return out
}

// Read reads a document as [Write] wrote it. The error says what is wrong and
// where: another schema, a syntax error with line and column, a field that this
// version does not know, or references that lead nowhere (all of them).
func Read(r io.Reader) (*Document, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, locate(b, err)
	}
	switch head.Schema {
	case Schema:
	case "":
		return nil, fmt.Errorf("results: not a results document: it has no \"schema\"; want %q", Schema)
	default:
		return nil, fmt.Errorf("results: schema is %q, this winlab reads %q; write the document again with `winlab run`", head.Schema, Schema)
	}
	var doc Document
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, locate(b, err)
	}
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	return &doc, nil
}

// locate adds line and column to errors that know their offset.
func locate(b []byte, err error) error {
	off := int64(-1)
	var se *json.SyntaxError
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &se):
		off = se.Offset
	case errors.As(err, &te):
		off = te.Offset
	}
	if off < 0 || off > int64(len(b)) {
		return fmt.Errorf("results: %w", err)
	}
	before := b[:off]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Errorf("results: %d:%d: %w", line, len(before)-bytes.LastIndexByte(before, '\n')-1, err)
}

// Validate reports every identifier that is used twice, every reference that
// leads nowhere and every value outside its closed set, joined into one error.
func (d *Document) Validate() error {
	v := validator{doc: d}
	areas := ids(&v, "area", d.Areas, func(a Area) string { return a.ID })
	settings := ids(&v, "setting", d.Settings, func(s Setting) string { return s.ID })
	claims := ids(&v, "claim", d.Claims, func(c Claim) string { return c.ID })
	for _, c := range d.Claims {
		if !areas[c.Area] {
			v.bad("claim %q is in area %q, which is not in areas", c.ID, c.Area)
		}
	}
	v.cells(claims, settings)
	for _, k := range d.Statics {
		if !claims[k.Claim] {
			v.bad("a static check (%s) is about claim %q, which is not in claims", k.What, k.Claim)
		}
		v.trace(k.Trace, "a static check of claim %q", k.Claim)
	}
	ids(&v, "system", d.Systems, func(s System) string { return s.ID })
	for _, s := range d.Systems {
		for _, id := range s.Claims {
			if !claims[id] {
				v.bad("system %q has claim %q, which is not in claims", s.ID, id)
			}
		}
	}
	for _, f := range d.Flows {
		v.trace(f.Trace, "flow %q of lab %q", f.Name, f.Lab)
	}
	return errors.Join(v.errs...)
}

type validator struct {
	doc  *Document
	errs []error
}

func (v *validator) bad(format string, a ...any) {
	v.errs = append(v.errs, fmt.Errorf("results: "+format, a...))
}

// ids collects the identifiers of a list.
func ids[T any](v *validator, what string, list []T, id func(T) string) map[string]bool {
	seen := map[string]bool{}
	for _, x := range list {
		if seen[id(x)] {
			v.bad("%s %q is there twice", what, id(x))
		}
		seen[id(x)] = true
	}
	return seen
}

// trace looks for a trace that something refers to.
func (v *validator) trace(key, format string, a ...any) {
	if key != "" && v.doc.Traces[key] == nil {
		v.bad("%s: trace %q is not in traces", fmt.Sprintf(format, a...), key)
	}
}

func (v *validator) cells(claims, settings map[string]bool) {
	type key struct{ claim, setting string }
	seen := map[key]bool{}
	for _, c := range v.doc.Cells {
		if !claims[c.Claim] {
			v.bad("a cell is about claim %q, which is not in claims", c.Claim)
		}
		if !settings[c.Setting] {
			v.bad("a cell of claim %q is about setting %q, which is not in settings", c.Claim, c.Setting)
		}
		if seen[key{c.Claim, c.Setting}] {
			v.bad("the cell of claim %q and setting %q is there twice", c.Claim, c.Setting)
		}
		seen[key{c.Claim, c.Setting}] = true
		if !known(c.Outcome) {
			v.bad("cell of claim %q and setting %q: outcome %q; want one of %v", c.Claim, c.Setting, c.Outcome, Outcomes)
		}
		for _, k := range c.Checks {
			v.trace(k.Trace, "cell of claim %q and setting %q", c.Claim, c.Setting)
		}
	}
}
