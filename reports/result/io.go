package result

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// JSONSchema is the JSON Schema (2020-12) of [Document].
//
//go:embed schema.json
var JSONSchema []byte

// Write writes the document as JSON on one line with a final newline, its traces inside:
// see [Save] for a file beside it. The same document gives the same bytes: maps are
// sorted, lists that may not be absent are written as [] when empty, and the order of
// lists is the caller's. Traces are written by the hash of what they hold, and only those
// that a check refers to. An empty Schema is filled in; another one than [Schema] is an
// error.
func Write(w io.Writer, doc *Document) error {
	out, traces, err := prepare(doc)
	if err != nil {
		return err
	}
	// What a trace holds is JSON already.
	full := struct {
		*wireDocument
		Traces map[string]json.RawMessage `json:"traces,omitempty"`
	}{wireDocument: out, Traces: make(map[string]json.RawMessage, len(traces))}
	for hash, c := range traces {
		full.Traces[hash] = c.json()
	}
	return writeLine(w, full)
}

func writeLine(w io.Writer, v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func prepare(doc *Document) (*wireDocument, map[string]*content, error) {
	d := *doc
	if d.Schema == "" {
		d.Schema = Schema
	}
	if d.Schema != Schema {
		return nil, nil, fmt.Errorf("results: schema is %q, this winlab writes %q", d.Schema, Schema)
	}
	return pack(&d)
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
// version does not know, or references that lead nowhere (all of them). A document whose
// traces are in a file of their own has none; [Load] finds them.
func Read(r io.Reader) (*Document, error) {
	w, err := readWire(r)
	if err != nil {
		return nil, err
	}
	return w.document(w.inside(), w.TraceFile == "")
}

func readWire(r io.Reader) (*wireDocument, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var head struct {
		Schema string `json:"schema"`
		Tool   string `json:"tool"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, locate(b, err)
	}
	by := ""
	if head.Tool != "" {
		by = fmt.Sprintf(" (written by winlab %s)", head.Tool)
	}
	switch head.Schema {
	case Schema:
	case "":
		return nil, fmt.Errorf("results: not a results document: it has no \"schema\"; want %q", Schema)
	default:
		return nil,
			fmt.Errorf(
				"results: schema is %q%s, this winlab reads %q; write the document again with `winlab run` of this version, or read it with that one",
				head.Schema, by, Schema)
	}
	var doc wireDocument
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		err = locate(b, err)
		if strings.Contains(err.Error(), "unknown field") {
			err = fmt.Errorf(
				"%w: this winlab does not know it%s; write the document again with `winlab run` of this version, or read it with that one", err, by)
		}
		return nil, err
	}
	return &doc, nil
}

// document is the document with these traces, validated.
func (w *wireDocument) document(traces map[string]*readTrace, strict bool) (*Document, error) {
	doc, err := w.unpack(traces, strict)
	if err == nil {
		err = doc.Traces.err
	}
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	return doc, nil
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
			v.bad("%s %q is listed twice", what, id(x))
		}
		seen[id(x)] = true
	}
	return seen
}

// trace looks for a trace that something refers to.
func (v *validator) trace(key, format string, a ...any) {
	if key != "" && !v.doc.Traces.Has(key) {
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
			v.bad("the cell of claim %q and setting %q is listed twice", c.Claim, c.Setting)
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
