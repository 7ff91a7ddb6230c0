package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// cell tries the checks of a claim that apply in the setting of the cluster;
// false when there is none.
func (ch *checker) cell(ctx context.Context, cl *claims.Claim) (result.Cell, bool) {
	column := ch.job.column
	checks := cl.ChecksAt(column)
	if len(checks) == 0 {
		return result.Cell{}, false
	}
	cell := result.Cell{Claim: cl.ID, Setting: column.ID}
	cell.Documented, cell.Basis = cl.Documented(checks)
	if s, ok := cl.SupportAt(column); ok {
		cell.Status = s.Status
	}
	var all tally
	for _, k := range checks {
		began := time.Now()
		r, ok := ch.check(ctx, k)
		r.Millis = millis(began)
		cell.Checks = append(cell.Checks, r)
		all.add(r, ok, k.Asks())
	}
	cell.Outcome = all.outcome()
	return cell, true
}

// millis is the time since then in milliseconds.
func millis(then time.Time) float64 { return float64(time.Since(then)) / float64(time.Millisecond) }

// tally sums up the results of a cell's checks.
type tally struct {
	asks     bool // some check expects something
	failed   bool // a check could not be tried
	differs  bool // the model differs from what is expected
	disputed bool // the model differs, and a dispute explains it
	unknown  bool // the model does not know

	notChecked bool // nothing reached what the check is about
}

// add counts a check. tried says that it could be tried, asks that it expects
// something.
func (t *tally) add(r result.Check, tried, asks bool) {
	switch {
	case !tried:
		t.failed = true
		return
	case r.NotChecked != "":
		t.notChecked = true
		t.asks = t.asks || asks
		return
	case !asks:
		return
	}
	t.asks = true
	switch {
	case r.Pass:
	case r.Got == string(trace.Unknown), len(r.Open) > 0:
		t.unknown = true
	case r.Explained:
		t.disputed = true
	default:
		t.differs = true
	}
}

// outcome is the one that needs attention most.
func (t tally) outcome() string {
	switch {
	case t.failed:
		return result.Failed
	case t.differs:
		return result.Differs
	case t.unknown:
		return result.Unknown
	case t.disputed:
		return result.Disputed
	case t.notChecked:
		return result.NotChecked
	case !t.asks:
		return result.Own
	}
	return result.Agrees
}

// positions notes who disputes what a check asks for. Where the ledger says that the model
// follows the other source, a difference is explained if it is the one that this source
// describes; and if there is none, the ledger is wrong and the check fails.
func positions(r *result.Check, d *claims.Dispute, otherwise bool) {
	if d == nil {
		return
	}
	r.Dispute = &result.Dispute{By: d.By, Against: d.Against, Otherwise: d.Otherwise, Model: d.Model}
	switch {
	case d.Model != claims.FollowsAgainst:
	case r.Pass:
		r.Pass = false
		r.Summary = fmt.Sprintf("The ledger says that the model follows source %d of the claim here, and it does what source %d says. %s",
			d.Against, d.By, r.Summary)
	default:
		r.Explained = otherwise && r.Got != string(trace.Unknown) && r.Got != "error" && len(r.Open) == 0
	}
}

// flow runs one of the lab's own flows.
func (j *job) flow(ctx context.Context, c *lab.Cluster, f labfile.Flow) {
	fr := j.flowResult(f.At, flowName(f))
	fr.Expected = f.Expects()
	fr.Check = result.Check{Level: j.level, What: whatOf(f), Expect: expected(f)}
	began := time.Now()
	o, err := c.Run(ctx, f)
	fr.Millis = millis(began)
	if err != nil {
		fr.Got, fr.Summary = "error", err.Error()
		j.failed++
		j.flows = append(j.flows, fr)
		return
	}
	fr.Got, fr.Reason, fr.Summary, fr.Pass = string(o.Verdict), string(o.Reason), o.Summary, o.Pass
	if o.Why != "" {
		fr.Summary = o.Why + ". " + fr.Summary
	}
	if !o.Pass {
		j.failed++
		fr.Wanted, fr.Came = asked(f), fr.Got+": "+o.Why
	}
	t := o.Trace
	if o.Lookup != nil {
		t = lookupTrace(c, f.From, f.To, *o.Lookup)
	}
	fr.Grade, fr.Command, fr.Ways = t.Grade, t.Command, ways(t)
	fr.Trace = j.keep(t)
	j.live.noteTraced(fr.Trace, f, t, o.Lookup)
	j.flows = append(j.flows, fr)
}

// flowResult is the head of a flow's result.
func (j *job) flowResult(step, name string) result.FlowResult {
	meta := j.file.Lab.Metadata
	fr := result.FlowResult{Lab: meta.Name, File: j.file.Path, Title: meta.Title, Variant: j.variant, Incident: meta.Incident,
		Story: story(meta), Step: step, Name: name, VariantTitle: j.variantTitle(j.file)}
	if j.setting != nil {
		_, fr.Setting, _ = strings.Cut(j.column.ID, "/")
	}
	return fr
}

// story is that of an incident.
func story(m labfile.Metadata) string {
	if m.Incident == "" {
		return ""
	}
	return strings.TrimSpace(m.Story)
}

// tryFlows judges the lab's flows step by step. A step that cannot be done is a
// failure of its own, and ends the story of this variant only.
func (j *job) tryFlows(ctx context.Context, c *lab.Cluster) {
	s := &c.Plan.File.Lab.Spec
	flows, steps := s.AllFlows(), append([]string{""}, s.StepNames()...)
	for i, step := range steps {
		if err := c.GoTo(ctx, cmp.Or(step, labfile.Start)); err != nil {
			if j.err = ctx.Err(); j.err == nil {
				j.notDone(step, err, flows, steps[i:])
			}
			return
		}
		for _, f := range flows {
			if f.At != step {
				continue
			}
			if j.err = ctx.Err(); j.err != nil {
				return
			}
			j.flow(ctx, c, f)
		}
	}
}

// notDone notes a step that could not be done ("" for the start), and the flows that
// therefore were not judged: those of this step and of later ones.
func (j *job) notDone(step string, err error, flows []labfile.Flow, steps []string) {
	fail := func(fr result.FlowResult, what, expect, why string) {
		fr.Check = result.Check{Level: j.level, What: what, Expect: expect, Got: "error", Summary: why}
		j.failed++
		j.flows = append(j.flows, fr)
	}
	if step != "" {
		fail(j.flowResult(step, "step "+step), "step "+step, "done", err.Error())
	}
	for _, f := range flows {
		if slices.Contains(steps, f.At) {
			fail(j.flowResult(f.At, flowName(f)), whatOf(f), expected(f), err.Error())
		}
	}
}

// whatOf says what a flow of a lab tries: "pod/client -> host/internet (ping)".
func whatOf(f labfile.Flow) string {
	switch {
	case f.Connection != "" && f.From == "":
		return strings.TrimSpace("connection " + f.Connection + " " + cmp.Or(f.Send, labfile.SendData) + " " + cond(f.By != "", "by "+f.By))
	case f.Connection != "":
		return f.From + " -> " + f.To + ", connection " + f.Connection
	case f.Resolve != "":
		return f.From + " resolves " + f.To + " with " + f.Resolve
	}
	var how []string
	if f.Protocol != "" {
		how = append(how, f.Protocol)
	}
	if f.Size != 0 {
		how = append(how, fmt.Sprintf("%d bytes", f.Size))
	}
	if f.DontFragment {
		how = append(how, "DF")
	}
	if len(how) > 0 {
		return f.From + " -> " + f.To + " (" + strings.Join(how, ", ") + ")"
	}
	return f.From + " -> " + f.To
}

func flowName(f labfile.Flow) string { return cmp.Or(f.Name, whatOf(f)) }

// expected is what a lab expects of a flow in a few words, "" for nothing.
func expected(f labfile.Flow) string {
	switch {
	case f.Expect != "":
		return f.Expect
	case f.Reason != "":
		return f.Reason
	case len(f.Backends) > 0:
		return "by backend"
	case f.SeenAs != "":
		return "seen as " + f.SeenAs
	case f.Spread != "":
		return f.Spread + " of the backends"
	}
	return ""
}

// asked is everything that a lab asks of a flow.
func asked(f labfile.Flow) string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(f.Expect != "", f.Expect)
	add(f.Reason != "", "the reason "+f.Reason)
	add(f.SeenAs != "", "the source "+f.SeenAs)
	for _, b := range slices.Sorted(maps.Keys(f.Backends)) {
		add(true, "backend "+b+": "+f.Backends[b])
	}
	add(f.Spread != "", f.Spread+" of the backends")
	return strings.Join(parts, ", ")
}

func cond(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
