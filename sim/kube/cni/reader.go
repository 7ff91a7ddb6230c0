package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// reader reads typed values out of a JSON tree and collects everything that is
// wrong, each with its place in the file.
type reader struct {
	file     string
	data     []byte
	errs     []error
	warnings []string
}

func (r *reader) place(at int) string {
	line, column := position(r.data, at)
	return fmt.Sprintf("%s:%d:%d", r.file, line, column)
}

func (r *reader) errorf(at int, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", r.place(at), fmt.Sprintf(format, args...)))
}

func (r *reader) warnf(at int, format string, args ...any) {
	r.warnings = append(r.warnings, r.place(at)+": "+fmt.Sprintf(format, args...))
}

func (r *reader) err() error { return errors.Join(r.errs...) }

func (r *reader) origin(what string, at int) *trace.Origin {
	line, _ := position(r.data, at)
	return &trace.Origin{What: what, File: r.file, Line: line}
}

// object reports whether n is an object, and complains if not.
func (r *reader) object(what string, n *node) bool {
	if n.kind != '{' {
		r.errorf(n.begin, "%s is %s; it must be an object {...}", what, n.kindName())
	}
	return n.kind == '{'
}

// unknown warns of fields that the plugin does not read: it ignores them, so a
// misspelt one is easily missed.
func (r *reader) unknown(what string, n *node, known ...string) {
	n.reads = func(name string) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	}
	for _, f := range n.fields {
		if !n.reads(f.name) {
			r.warnf(f.at, "%s ignores %q; it reads %s", what, f.name, strings.Join(known, ", "))
		}
	}
}

func (r *reader) text(n *node, name string) string {
	f := n.get(name)
	if f == nil || f.val.kind == '0' {
		return ""
	}
	if f.val.kind != 's' {
		r.errorf(f.val.begin, "%s is %s; it must be a string", f.name, f.val.kindName())
		return ""
	}
	return f.val.str
}

func (r *reader) flag(n *node, name string) *bool {
	f := n.get(name)
	if f == nil || f.val.kind == '0' {
		return nil
	}
	if f.val.kind != 'b' {
		r.errorf(f.val.begin, "%s is %s; it must be true or false", f.name, f.val.kindName())
		return nil
	}
	return &f.val.truth
}

// number reads an integer of 0 to top.
func (r *reader) number(n *node, name string, top uint64) (uint64, bool) {
	f := n.get(name)
	if f == nil || f.val.kind == '0' {
		return 0, false
	}
	v, err := strconv.ParseUint(f.val.str, 10, 64)
	if f.val.kind != 'n' || err != nil || v > top {
		r.errorf(f.val.begin, "%s is %s; it must be a number of 0 to %d", f.name, f.val.kindName(), top)
		return 0, false
	}
	return v, true
}

func (r *reader) texts(n *node, name string) []string {
	f := n.get(name)
	if f == nil || f.val.kind == '0' {
		return nil
	}
	if f.val.kind != '[' {
		r.errorf(f.val.begin, "%s is %s; it must be a list of strings", f.name, f.val.kindName())
		return nil
	}
	all := make([]string, 0, len(f.val.items))
	for _, i := range f.val.items {
		if i.kind != 's' {
			r.errorf(i.begin, "%s holds %s; it must hold strings", f.name, i.kindName())
			continue
		}
		all = append(all, i.str)
	}
	return all
}

// prefix reads an optional prefix.
func (r *reader) prefix(n *node, name string) netip.Prefix {
	s := r.text(n, name)
	if s == "" {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		r.errorf(n.get(name).val.begin, "%s is %q, which is not a prefix such as 10.244.0.0/16", name, s)
		return netip.Prefix{}
	}
	return p.Masked()
}

// checkPrefixes complains of items of a list that are neither prefix nor address.
func (r *reader) checkPrefixes(n *node, name string) {
	f := n.get(name)
	if f == nil || f.val.kind != '[' {
		return
	}
	for _, i := range f.val.items {
		if i.kind != 's' {
			continue
		}
		p, err := netip.ParsePrefix(i.str)
		if err != nil {
			if _, err := netip.ParseAddr(i.str); err != nil {
				r.errorf(i.begin, "%s holds %q, which is not a prefix such as 10.244.0.0/16", f.name, i.str)
			}
			continue
		}
		if p != p.Masked() {
			r.warnf(i.begin, "%s holds %s, which has bits set beyond its prefix length; newer builds may refuse it, write %s", f.name, i.str,
				p.Masked())
		}
	}
}
