package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// The JSON form differs from the types of this package in what would be said thousands of
// times. A full run has 4,800 traces, of which 2,100 differ in more than their lab and
// their command: a trace is kept once, without these two, by the hash of what it holds.
// Its lab is an item of a list, its command that of the check, and the beginning of a
// command that the checks of a setting share is in the setting.

// wireDocument is [Document] as JSON.
type wireDocument struct {
	Document
	Settings []wireSetting `json:"settings"`
	Cells    []wireCell    `json:"cells"`
	Statics  []wireStatic  `json:"statics,omitempty"`
	Flows    []wireFlow    `json:"flows,omitempty"`
	// Labs are the labs of traces, by their number from 0.
	Labs []trace.Lab `json:"labs,omitempty"`
	// Traces are the traces by their hash, TraceFile is the name of the file beside this
	// one that has them instead.
	Traces    map[string]*wireTrace `json:"traces,omitempty"`
	TraceFile string                `json:"traceFile,omitempty"`
}

type wireSetting struct {
	Setting
	// Command is the beginning of commands: that of a check with args is this, a space
	// and the args.
	Command string `json:"command,omitempty"`
	// Labs has the number of the lab of the setting's traces, by level of evidence.
	Labs map[Level]int `json:"labs,omitempty"`
}

// wireCheck is what a check has in JSON beside the fields of [Check].
type wireCheck struct {
	// Args end a command that begins as the setting's.
	Args string `json:"args,omitempty"`
	// TraceLab is the number of the lab of the check's trace, where it is not that of the
	// setting.
	TraceLab *int `json:"traceLab,omitempty"`
}

type wireCellCheck struct {
	Check
	wireCheck
}

type wireCell struct {
	Cell
	Checks []wireCellCheck `json:"checks"`
}

type wireStatic struct {
	Static
	wireCheck
}

type wireFlow struct {
	FlowResult
	wireCheck
}

// wireTrace is a trace without its lab, and without its command where that is the check's.
type wireTrace struct {
	trace.Trace
	Lab *trace.Lab `json:"lab,omitempty"`
}

// packer turns a document into its JSON form.
type packer struct {
	doc      *Document
	out      wireDocument
	labs     map[string]int      // by their JSON
	distinct map[string]*content // by hash
	// commanded has those contents that say their command, as one key of [Traces] each.
	commanded *Traces
	err       error
}

// pack returns the JSON form of a document, without its traces, and the traces by hash.
func pack(doc *Document) (*wireDocument, map[string]*content, error) {
	p := &packer{doc: doc, labs: map[string]int{}, distinct: map[string]*content{}, commanded: NewTraces()}
	if doc.Traces != nil {
		p.err = doc.Traces.err
	}
	d := *doc
	d.Areas = some(d.Areas)
	d.Claims = each(d.Claims, func(c *Claim) { c.Sources = some(c.Sources) })
	if d.Summary.Outcomes == nil {
		d.Summary.Outcomes = map[string]int{}
	}
	d.Facts = maps.Clone(d.Facts)
	maps.DeleteFunc(d.Facts, func(_ string, f *evidence.Fact) bool { return f == nil })
	p.out.Document = d
	p.settings()
	p.out.Cells = make([]wireCell, 0, len(d.Cells))
	of := map[string]*wireSetting{}
	for i := range p.out.Settings {
		of[p.out.Settings[i].ID] = &p.out.Settings[i]
	}
	for _, c := range d.Cells {
		w := wireCell{Cell: c, Checks: make([]wireCellCheck, 0, len(c.Checks))}
		w.Cell.Checks = nil
		for _, k := range c.Checks {
			x := wireCellCheck{Check: k}
			p.check(&x.Check, &x.wireCheck, of[c.Setting])
			w.Checks = append(w.Checks, x)
		}
		p.out.Cells = append(p.out.Cells, w)
	}
	for _, k := range d.Statics {
		x := wireStatic{Static: k}
		p.check(&x.Check, &x.wireCheck, nil)
		p.out.Statics = append(p.out.Statics, x)
	}
	for _, f := range d.Flows {
		x := wireFlow{FlowResult: f}
		p.check(&x.Check, &x.wireCheck, nil)
		p.out.Flows = append(p.out.Flows, x)
	}
	return &p.out, p.distinct, p.err
}

// settings finds out what the checks of each setting share.
func (p *packer) settings() {
	commands := map[string]map[string]int{}
	for _, c := range p.doc.Cells {
		for _, k := range c.Checks {
			if head, _, ok := cutCommand(k.Command); ok {
				if commands[c.Setting] == nil {
					commands[c.Setting] = map[string]int{}
				}
				commands[c.Setting][head]++
			}
		}
	}
	p.out.Settings = make([]wireSetting, 0, len(p.doc.Settings))
	for _, s := range p.doc.Settings {
		s.Builds = some(s.Builds)
		w := wireSetting{Setting: s}
		heads := commands[s.ID]
		if len(heads) > 0 {
			w.Command = slices.MaxFunc(slices.Sorted(maps.Keys(heads)), func(a, b string) int { return cmp.Compare(heads[a], heads[b]) })
		}
		p.out.Settings = append(p.out.Settings, w)
	}
}

// cutCommand cuts a command before what says which flow it is about: its sender.
func cutCommand(command string) (head, args string, ok bool) {
	const from = " --from"
	i := strings.Index(command, from+" ")
	if i < 0 {
		return "", "", false
	}
	i += len(from)
	return command[:i], command[i+1:], true
}

// check replaces what is said elsewhere by hashes and numbers. set is nil for checks
// without a setting.
func (p *packer) check(k *Check, w *wireCheck, set *wireSetting) {
	if raw, ok := p.doc.Traces.Raw(k.Trace); k.Trace != "" && ok {
		k.Trace = p.trace(k.Trace, &raw, k.Command)
		lab := p.lab(raw.Lab)
		at, ok := 0, false
		if set != nil {
			if at, ok = set.Labs[k.Level]; !ok {
				if set.Labs == nil {
					set.Labs = map[Level]int{}
				}
				set.Labs[k.Level], at, ok = lab, lab, true
			}
		}
		if !ok || at != lab {
			w.TraceLab = &lab
		}
	}
	if set != nil && set.Command != "" {
		if args, ok := strings.CutPrefix(k.Command, set.Command+" "); ok && args != "" {
			k.Command, w.Args = "", args
		}
	}
}

// lab returns the number of a lab.
func (p *packer) lab(l trace.Lab) int {
	b, err := json.Marshal(l)
	if err != nil {
		p.fail(err)
	}
	i, ok := p.labs[string(b)]
	if !ok {
		i = len(p.out.Labs)
		p.labs[string(b)] = i
		p.out.Labs = append(p.out.Labs, l)
	}
	return i
}

// trace notes a trace that a check with this command refers to, and returns its hash.
func (p *packer) trace(key string, raw *Raw, command string) string {
	if raw.Command != command {
		// Its command is in the trace: the check has another one.
		if !p.commanded.Has(key) {
			b, err := contentOf(p.doc.Traces.Get(key), raw.Command)
			if err == nil {
				err = p.commanded.put(key, hashOf(b), b, nil, &raw.Lab, raw.Command)
			}
			if err != nil {
				p.fail(err)
				return ""
			}
		}
		other, _ := p.commanded.Raw(key)
		raw = &other
	}
	p.distinct[raw.Content] = raw.content
	return raw.Content
}

func (p *packer) fail(err error) {
	if p.err == nil {
		p.err = fmt.Errorf("results: %w", err)
	}
}

// encode returns v as JSON on one line, without a newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// normalTrace replaces nil by empty where the schema wants a list. It copies what it
// changes.
func normalTrace(t *trace.Trace) {
	steps := func(p *trace.Path) { p.Steps = some(p.Steps) }
	if t.Paths != nil {
		t.Paths = each(t.Paths, steps)
	}
	if t.Names != nil {
		t.Names = each(t.Names, func(l *trace.Lookup) {
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
}

// unpack is the opposite of pack. Traces of the document get keys of their own: two checks
// share one where hash, lab and command are the same. Of a hash that has no trace the
// check says so, where strict, and has none otherwise.
func (w *wireDocument) unpack(traces map[string]*readTrace, strict bool) (*Document, error) {
	d := w.Document
	d.Traces = NewTraces()
	u := &unpacker{wire: w, traces: traces, strict: strict, doc: &d}
	of := map[string]*wireSetting{}
	for i := range w.Settings {
		of[w.Settings[i].ID] = &w.Settings[i]
		d.Settings = append(d.Settings, w.Settings[i].Setting)
	}
	for _, c := range w.Cells {
		cell := c.Cell
		cell.Checks = nil
		for _, k := range c.Checks {
			cell.Checks = append(cell.Checks, u.check(k.Check, k.wireCheck, of[c.Setting], "cell of claim %q and setting %q", c.Claim, c.Setting))
		}
		d.Cells = append(d.Cells, cell)
	}
	for _, k := range w.Statics {
		k.Check = u.check(k.Check, k.wireCheck, nil, "a static check of claim %q", k.Claim)
		d.Statics = append(d.Statics, k.Static)
	}
	for _, f := range w.Flows {
		f.Check = u.check(f.Check, f.wireCheck, nil, "flow %q of lab %q", f.Name, f.Lab)
		d.Flows = append(d.Flows, f.FlowResult)
	}
	return &d, errors.Join(u.errs...)
}

type unpacker struct {
	wire   *wireDocument
	traces map[string]*readTrace
	strict bool
	doc    *Document
	errs   []error
}

func (u *unpacker) bad(where string, a []any, format string, b ...any) {
	u.errs = append(u.errs, fmt.Errorf("results: "+where+": "+format, slices.Concat(a, b)...))
}

func (u *unpacker) check(k Check, w wireCheck, set *wireSetting, where string, a ...any) Check {
	if w.Args != "" {
		switch {
		case set == nil || set.Command == "":
			u.bad(where, a, "args %q, and no setting with a command to put before them", w.Args)
		case k.Command != "":
			u.bad(where, a, "has both command and args; write one")
		default:
			k.Command = set.Command + " " + w.Args
		}
	}
	if k.Trace == "" {
		return k
	}
	t := u.traces[k.Trace]
	if t == nil {
		if u.strict {
			u.bad(where, a, "trace %q is not in traces", k.Trace)
		}
		k.Trace = ""
		return k
	}
	lab, said := 0, w.TraceLab != nil
	if said {
		lab = *w.TraceLab
	} else if set != nil {
		lab, said = set.Labs[k.Level], has(set.Labs, k.Level)
	}
	of, command := trace.Lab{}, k.Command
	switch {
	case t.full != nil && t.full.Lab != nil:
		of = *t.full.Lab
	case !said:
		u.bad(where, a, "trace %q has no lab: neither the check nor its setting names one", k.Trace)
	case lab < 0 || lab >= len(u.wire.Labs):
		u.bad(where, a, "lab %d, and labs has %d", lab, len(u.wire.Labs))
	default:
		of = u.wire.Labs[lab]
	}
	if t.full != nil && t.full.Command != "" {
		command = t.full.Command
	}
	about, err := encode(of)
	if err != nil {
		u.bad(where, a, "%w", err)
	}
	hash := k.Trace
	k.Trace += "-" + hashOf(append(about, command...))
	switch {
	case u.doc.Traces.Has(k.Trace):
	case t.full != nil:
		full := t.full.Trace
		full.Lab, full.Command = of, command
		u.doc.Traces.Put(k.Trace, &full)
	default:
		if err := u.doc.Traces.put(k.Trace, hash, nil, t.content, &of, command); err != nil {
			u.bad(where, a, "%w", err)
		}
	}
	return k
}

// inside are the traces that the document itself has.
func (w *wireDocument) inside() map[string]*readTrace {
	all := map[string]*readTrace{}
	for hash, t := range w.Traces {
		if t != nil {
			all[hash] = &readTrace{full: t}
		}
	}
	return all
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}
