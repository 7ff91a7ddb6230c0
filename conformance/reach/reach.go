// Package reach answers who reaches whom on which port in a cluster of a lab, and what
// another version or policy would change of that. It puts pods that differ only in their
// names and addresses into one class and sends one flow for each pair of classes and each
// placement (on one node, on two); its answer holds for all such pairs.
//
// It must not know what any device does with a packet: whether pods are equal follows from the
// plan and the compiled rules, and every verdict comes from a trace.
package reach

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Options choose what is asked.
type Options struct {
	// From and To are patterns as [path.Match] has them: "pod/web-*", "pod/shop/*",
	// "svc/web:80", "node/*", "host/internet". None: all.
	From, To []string
	// Ports are asked for instead of those on which pods, nodes and hosts listen: "80",
	// "udp/53".
	Ports []string
	// Ping asks for an echo request as well.
	Ping bool
}

// Result is the answer with its flows.
type Result struct {
	*doc.Matrix
	asked *asked
	cells map[*group]*doc.Cell
}

// Run asks a cluster.
func Run(ctx context.Context, c *lab.Cluster, o Options) (*Result, error) {
	v := viewWithoutClasses(c)
	few, err := o.asksForFew(v)
	if err != nil {
		return nil, err
	}
	if !few {
		v = look(c)
	}
	return run(ctx, c, o, v)
}

// perFlow is how many pods are compared in the time of a flow, about: in a cluster of 5,000 nodes
// and 10,000 Services comparing takes 0.2 ms a pod, and the first flow of a node, which programs
// all Services there, 250 ms (CPU time).
const perFlow = 1000

// asksForFew reports whether so few flows are asked for that sending each costs less than finding out
// which of them are equal.
func (o Options) asksForFew(v *view) (bool, error) {
	from, to, err := o.filters(v)
	if err != nil || from == nil || to == nil {
		return false, err
	}
	limit := len(v.c.Plan.Pods) / perFlow
	sources, nodes := 0, 0
	for _, ref := range v.refs {
		e := v.ends[ref]
		if e.kind == doc.Node {
			nodes++
		}
		if e.kind != doc.Service && from(e) {
			sources++
		}
	}
	flows := 0
	for _, ref := range v.refs {
		e := v.ends[ref]
		if !to(e) {
			continue
		}
		flows += sources * len(o.ports(&class{kind: e.kind, members: []*end{e}}))
		if e.service != nil {
			for _, p := range e.service.Ports {
				if p.NodePort != 0 {
					flows += sources * nodes
				}
			}
		}
		if flows > limit {
			return false, nil
		}
	}
	return true, nil
}

// run asks a cluster as it is seen.
func run(ctx context.Context, c *lab.Cluster, o Options, v *view) (*Result, error) {
	q, err := ask(o, v)
	if err != nil {
		return nil, err
	}
	r := &Result{Matrix: &doc.Matrix{Schema: doc.Schema, Lab: c.Info(), Classes: q.document(), NotAsked: q.skipped}, asked: q,
		cells: map[*group]*doc.Cell{}}
	if len(q.list) > 0 {
		r.Cells = make([]doc.Cell, len(q.list))
	}
	for i, g := range q.list {
		r.Pairs += g.pairs
		r.cells[g] = &r.Cells[i]
	}
	kinds, first := v.shares(q.list)
	if err := r.trace(ctx, c, first); err != nil {
		return nil, err
	}
	if err := r.trace(ctx, c, v.shareOut(kinds, r.cells)); err != nil {
		return nil, err
	}
	r.NotModelled = c.NotModelled
	return r, nil
}

// trace traces a flow of each group.
func (r *Result) trace(ctx context.Context, c *lab.Cluster, list []*group) error {
	r.Traced += len(list)
	return c.TraceAll(ctx, len(list), func(i int) lab.Request { return list[i].request() }, func(i int, t *trace.Trace, err error) error {
		g := list[i]
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("%s to %s: %w", g.a.ref, g.request().To, err)
		}
		*r.cells[g] = cellOf(g, t)
		return nil
	})
}

// document lists the classes.
func (q *asked) document() []doc.Class {
	var all []doc.Class
	seen := map[*class]bool{}
	add := func(c *class) {
		if c == nil || seen[c] {
			return
		}
		seen[c] = true
		all = append(all, doc.Class{ID: c.id, Kind: c.kind, Title: Title(c.refs()), Members: c.refs(), System: c.members[0].system})
	}
	for _, g := range q.list {
		add(g.from)
		add(g.to)
		add(g.entry)
	}
	order := []string{doc.Pod, doc.Service, doc.Node, doc.Host}
	slices.SortStableFunc(all, func(a, b doc.Class) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return all
}

// cellOf is what a trace says of its group.
func cellOf(g *group, t *trace.Trace) doc.Cell {
	c := doc.Cell{From: g.from.id, To: g.to.id, Where: g.text, Protocol: g.protocol, Port: g.port, Pairs: g.pairs,
		Verdict: t.Verdict, Reason: t.Reason, Summary: t.Summary, Open: t.Open,
		Example: doc.Example{From: g.a.ref, To: g.request().To, Command: t.Command}}
	if g.entry != nil {
		c.Entry = g.entry.id
	}
	if s := decides(t); s != nil {
		c.Decides = doc.StepOf(s)
	}
	return c
}

// decides is the first step with a reason, of the path that carries the verdict; nil for none.
func decides(t *trace.Trace) *trace.Step {
	if t.Verdict == trace.Delivered {
		return nil
	}
	i := slices.IndexFunc(t.Paths, func(p trace.Path) bool { return p.Verdict == t.Verdict && p.Reason == t.Reason })
	if i < 0 {
		i = slices.IndexFunc(t.Paths, func(p trace.Path) bool { return p.Verdict != trace.Delivered })
	}
	if i < 0 {
		return nil
	}
	steps := t.Paths[i].Steps
	if j := slices.IndexFunc(steps, func(s trace.Step) bool { return s.Reason != "" }); j >= 0 {
		return &steps[j]
	}
	return nil
}

// BadPattern is a mistake in [Options]: the text of what is wrong, and what to write.
type BadPattern struct{ error }

// filter chooses ends.
type filter func(*end) bool

// filters reads the patterns. One that chooses nothing is a mistake.
func (o Options) filters(v *view) (from, to filter, err error) {
	from, errFrom := filterOf("--from", o.From, v)
	to, errTo := filterOf("--to", o.To, v)
	return from, to, errors.Join(errFrom, errTo)
}

func filterOf(flag string, patterns []string, v *view) (filter, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	chosen := map[string]bool{}
	var errs []error
	for _, text := range patterns {
		p, err := parsePattern(text)
		if err != nil {
			errs = append(errs, BadPattern{fmt.Errorf("%s %s: %w", flag, text, err)})
			continue
		}
		found := false
		for _, ref := range v.refs {
			if ok, _ := path.Match(p, ref); ok {
				chosen[ref], found = true, true
			}
		}
		if !found {
			errs = append(errs, BadPattern{fmt.Errorf("%s %s: nothing in the lab has that name; it has for example %s", flag, text,
				strings.Join(v.refs[:min(5, len(v.refs))], ", "))})
		}
	}
	return func(e *end) bool { return chosen[e.ref] }, errors.Join(errs...)
}

// parsePattern reads "pod/[NAMESPACE/]NAME", "svc/...", "node/NAME" or "host/NAME", each with
// wildcards.
func parsePattern(text string) (string, error) {
	kind, rest, _ := strings.Cut(text, "/")
	if _, err := path.Match(text, ""); err != nil {
		return "", fmt.Errorf("%w; *, ? and [a-z] are wildcards", err)
	}
	switch kind {
	case doc.Pod, doc.Service:
		if rest != "" && !strings.Contains(rest, "/") {
			rest = "default/" + rest
		}
	case doc.Node, doc.Host:
	default:
		return "", fmt.Errorf("write pod/NAME, pod/NAMESPACE/NAME, svc/NAME, node/NAME or host/NAME; * stands for any characters")
	}
	if rest == "" || strings.Contains(rest, ":") {
		return "", fmt.Errorf("write a name without a port; --port chooses ports")
	}
	return kind + "/" + rest, nil
}

// ports are those that are asked for of a class.
func (o Options) ports(d *class) []port {
	list := portsOf(d.members[0].listen)
	if d.kind == doc.Service {
		return list
	}
	if len(o.Ports) > 0 {
		list = nil
		for _, text := range o.Ports {
			p, _ := parsePort(text)
			list = append(list, p)
		}
	}
	if o.Ping {
		list = append(list, port{"ping", 0})
	}
	return list
}

// CheckPort says what is wrong with a port of [Options].
func CheckPort(text string) error {
	_, err := parsePort(text)
	return err
}

// parsePort reads "80", "tcp/80" or "udp/53".
func parsePort(text string) (port, error) {
	protocol, number, ok := strings.Cut(text, "/")
	if !ok {
		protocol, number = "tcp", text
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || protocol != "tcp" && protocol != "udp" {
		return port{}, fmt.Errorf("%q is not a port; write 80, tcp/80 or udp/53", text)
	}
	return port{protocol, uint16(n)}, nil
}

// Title names ends for people: one by its name, several by what their names begin with.
func Title(refs []string) string {
	short := func(s string) string {
		kind, rest, _ := strings.Cut(s, "/")
		if kind == doc.Pod || kind == doc.Service {
			rest = strings.TrimPrefix(rest, "default/")
		}
		return kind + "/" + rest
	}
	if len(refs) == 1 {
		return short(refs[0])
	}
	head := short(refs[0])
	for _, r := range refs[1:] {
		r = short(r)
		n := 0
		for n < len(head) && n < len(r) && head[n] == r[n] {
			n++
		}
		head = head[:n]
	}
	return fmt.Sprintf("%s* (%d)", head, len(refs))
}
