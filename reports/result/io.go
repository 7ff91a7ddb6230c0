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
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("results: "+format, a...)) }
	areas, claims, settings := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, a := range d.Areas {
		if areas[a.ID] {
			bad("area %q is there twice", a.ID)
		}
		areas[a.ID] = true
	}
	for _, s := range d.Settings {
		if settings[s.ID] {
			bad("setting %q is there twice", s.ID)
		}
		settings[s.ID] = true
	}
	for _, c := range d.Claims {
		if claims[c.ID] {
			bad("claim %q is there twice", c.ID)
		}
		claims[c.ID] = true
		if !areas[c.Area] {
			bad("claim %q is in area %q, which is not in areas", c.ID, c.Area)
		}
	}
	type key struct{ claim, setting string }
	cells := map[key]bool{}
	for _, c := range d.Cells {
		if !claims[c.Claim] {
			bad("a cell is about claim %q, which is not in claims", c.Claim)
		}
		if !settings[c.Setting] {
			bad("a cell of claim %q is about setting %q, which is not in settings", c.Claim, c.Setting)
		}
		if cells[key{c.Claim, c.Setting}] {
			bad("the cell of claim %q and setting %q is there twice", c.Claim, c.Setting)
		}
		cells[key{c.Claim, c.Setting}] = true
		if !known(c.Outcome) {
			bad("cell of claim %q and setting %q: outcome %q; want one of %v", c.Claim, c.Setting, c.Outcome, Outcomes)
		}
		for _, k := range c.Checks {
			if k.Trace != "" && d.Traces[k.Trace] == nil {
				bad("cell of claim %q and setting %q: trace %q is not in traces", c.Claim, c.Setting, k.Trace)
			}
		}
	}
	for _, k := range d.Statics {
		if !claims[k.Claim] {
			bad("a static check (%s) is about claim %q, which is not in claims", k.What, k.Claim)
		}
		if k.Trace != "" && d.Traces[k.Trace] == nil {
			bad("a static check of claim %q: trace %q is not in traces", k.Claim, k.Trace)
		}
	}
	systems := map[string]bool{}
	for _, s := range d.Systems {
		if systems[s.ID] {
			bad("system %q is there twice", s.ID)
		}
		systems[s.ID] = true
		for _, id := range s.Claims {
			if !claims[id] {
				bad("system %q has claim %q, which is not in claims", s.ID, id)
			}
		}
	}
	for _, f := range d.Flows {
		if f.Trace != "" && d.Traces[f.Trace] == nil {
			bad("flow %q of lab %q: trace %q is not in traces", f.Name, f.Lab, f.Trace)
		}
	}
	return errors.Join(errs...)
}
