package cni

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/trace"
)

// reader reads typed values out of a JSON tree and collects all that there is to say about
// the file, each with its place.
type reader struct {
	file string
	Remarks
	// known says for objects which fields the plugin reads of them.
	known map[*yaml.Node]func(name string) bool
}

// Remarks are what there is to say about a configuration file. A lab with the file fails for those of
// the first three and has the others as notices; a check of the file says what the programs do with it.
type Remarks struct {
	// NotJSON is why no program can read the file, and Refused why the plugin or its daemon does not
	// take it on a Windows node.
	NotJSON, Refused strict.Mistakes
	// Unmodelled is what the plugin may take and winlab has no model of.
	Unmodelled strict.Mistakes
	// Ignored is what the plugin passes over: a misspelt field, a policy that it does not read.
	Ignored strict.Mistakes
	// NoEffect is what winlab's model does not follow, though on a node something may depend on it.
	NoEffect strict.Mistakes
}

// Err is why a lab cannot have the file: all mistakes at once.
func (r Remarks) Err() error {
	return slices.Concat(r.NotJSON, r.Refused, r.Unmodelled).AsError()
}

// Warnings are the remarks that keep nothing from working, in the order of the file.
func (r Remarks) Warnings() strict.Mistakes { return slices.Concat(r.Ignored, r.NoEffect).Sorted() }

// maxConf bounds a configuration in bytes; real ones have two thousand.
const maxConf = 64 << 10

// tree reads a file as JSON; nil when that is not possible.
func (r *reader) tree(data []byte) *yaml.Node {
	if len(data) > maxConf {
		r.Unmodelled = strict.Mistakes{{File: r.file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the file has %d bytes; winlab reads configurations of up to %d", len(data), maxConf)}}
		return nil
	}
	var root *yaml.Node
	root, r.NotJSON, r.Ignored = strict.JSON(r.file, data)
	return root
}

// field is a field of an object.
type field struct{ key, val *yaml.Node }

// fieldsOf are the fields of an object.
func fieldsOf(n *yaml.Node) []field {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var all []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, field{n.Content[i], n.Content[i+1]})
	}
	return all
}

// get returns the field with that name as Go's encoding/json finds it: an exact
// match first, else one without regard to case; the last one wins.
//
// It finds no field that the object's table does not have (fields.go): a plugin ignores it.
func (r *reader) get(n *yaml.Node, name string) *field {
	if reads := r.known[n]; reads != nil && !reads(name) {
		return nil
	}
	var found *field
	exact := false
	for _, f := range fieldsOf(n) {
		if f.key.Value == name || !exact && strings.EqualFold(f.key.Value, name) {
			exact = f.key.Value == name
			found = &f
		}
	}
	return found
}

func isNull(n *yaml.Node) bool { return n.Tag == "!!null" }
func isText(n *yaml.Node) bool { return n.Tag == "!!str" }
func isBool(n *yaml.Node) bool { return n.Tag == "!!bool" }
func truth(n *yaml.Node) bool  { return n.Value == "true" }

// describe says what a value is.
func describe(n *yaml.Node) string {
	switch n.Tag {
	case "!!map":
		return "an object"
	case "!!seq":
		return "a list"
	case "!!str":
		return fmt.Sprintf("the string %q", n.Value)
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!null":
		return "null"
	}
	return n.Value
}

func (r *reader) mistake(at *yaml.Node, format string, args ...any) strict.Mistake {
	return strict.Mistake{File: r.file, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
}

// errorf notes why the plugin refuses the file, unmodelledf what winlab has no model of.
func (r *reader) errorf(at *yaml.Node, format string, args ...any) {
	r.Refused = append(r.Refused, r.mistake(at, format, args...))
}

func (r *reader) unmodelledf(at *yaml.Node, format string, args ...any) {
	r.Unmodelled = append(r.Unmodelled, r.mistake(at, format, args...))
}

// warnf notes what the plugin ignores, noEffectf what the model does.
func (r *reader) warnf(at *yaml.Node, format string, args ...any) {
	r.Ignored = append(r.Ignored, r.mistake(at, format, args...))
}

func (r *reader) noEffectf(at *yaml.Node, format string, args ...any) {
	r.NoEffect = append(r.NoEffect, r.mistake(at, format, args...))
}

func (r *reader) origin(what string, at *yaml.Node) *trace.Origin {
	return &trace.Origin{What: what, File: r.file, Line: at.Line}
}

// object reports whether n is an object, and complains if not.
func (r *reader) object(what string, n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		r.errorf(n, "%s is %s; it must be an object {...}", what, describe(n))
	}
	return n.Kind == yaml.MappingNode
}

// unknown warns of fields that the plugin does not read: it ignores them, so a
// misspelt one is easily missed.
func (r *reader) unknown(what string, n *yaml.Node, known ...string) {
	r.known[n] = func(name string) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	}
	for _, f := range fieldsOf(n) {
		if !r.known[n](f.key.Value) {
			r.warnf(f.key, "%s ignores %q; it reads %s", what, f.key.Value, strings.Join(known, ", "))
		}
	}
}

func (r *reader) text(n *yaml.Node, name string) string {
	f := r.get(n, name)
	if f == nil || isNull(f.val) {
		return ""
	}
	if !isText(f.val) {
		r.errorf(f.val, "%s is %s; it must be a string", f.key.Value, describe(f.val))
		return ""
	}
	return f.val.Value
}

func (r *reader) flag(n *yaml.Node, name string) *bool {
	f := r.get(n, name)
	if f == nil || isNull(f.val) {
		return nil
	}
	if !isBool(f.val) {
		r.errorf(f.val, "%s is %s; it must be true or false", f.key.Value, describe(f.val))
		return nil
	}
	on := truth(f.val)
	return &on
}

// number reads an integer of 0 to top.
func (r *reader) number(n *yaml.Node, name string, top uint64) (uint64, bool) {
	f := r.get(n, name)
	if f == nil || isNull(f.val) {
		return 0, false
	}
	v, err := strconv.ParseUint(f.val.Value, 10, 64)
	if f.val.Tag != "!!int" || err != nil || v > top {
		r.errorf(f.val, "%s is %s; it must be a number of 0 to %d", f.key.Value, describe(f.val), top)
		return 0, false
	}
	return v, true
}

func (r *reader) texts(n *yaml.Node, name string) []string {
	f := r.get(n, name)
	if f == nil || isNull(f.val) {
		return nil
	}
	if f.val.Kind != yaml.SequenceNode {
		r.errorf(f.val, "%s is %s; it must be a list of strings", f.key.Value, describe(f.val))
		return nil
	}
	all := make([]string, 0, len(f.val.Content))
	for _, i := range f.val.Content {
		if !isText(i) {
			r.errorf(i, "%s holds %s; it must hold strings", f.key.Value, describe(i))
			continue
		}
		all = append(all, i.Value)
	}
	return all
}

// prefix reads an optional prefix.
func (r *reader) prefix(n *yaml.Node, name string) netip.Prefix {
	s := r.text(n, name)
	if s == "" {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		r.errorf(r.get(n, name).val, "%s is %q, which is not a prefix such as 10.244.0.0/16", name, s)
		return netip.Prefix{}
	}
	return p.Masked()
}

// checkPrefixes complains of items of a list that are neither prefix nor address.
func (r *reader) checkPrefixes(n *yaml.Node, name string) {
	f := r.get(n, name)
	if f == nil || f.val.Kind != yaml.SequenceNode {
		return
	}
	for _, i := range f.val.Content {
		if !isText(i) {
			continue
		}
		p, err := netip.ParsePrefix(i.Value)
		if err != nil {
			if _, err := netip.ParseAddr(i.Value); err != nil {
				r.errorf(i, "%s holds %q, which is not a prefix such as 10.244.0.0/16", f.key.Value, i.Value)
			}
			continue
		}
		if p != p.Masked() {
			r.warnf(i, "%s holds %s, which has bits set beyond its prefix length; newer builds may refuse it, write %s", f.key.Value, i.Value,
				p.Masked())
		}
	}
}
