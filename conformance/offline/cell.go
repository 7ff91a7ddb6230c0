package offline

import (
	"cmp"
	"context"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
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
	all := tally{disputed: cl.Disputed}
	for _, k := range checks {
		r, ok := ch.check(ctx, k)
		cell.Checks = append(cell.Checks, r)
		all.add(r, ok, k.Asks(), k.Disputed || cl.Disputed)
	}
	cell.Outcome = all.outcome()
	return cell, true
}

// tally sums up the results of a cell's checks.
type tally struct {
	asks     bool // some check expects something
	failed   bool // a check could not be tried
	differs  bool // the model differs from what is expected
	disputed bool // the claim is disputed, or the model differs where a check is
	unknown  bool // the model does not know
}

// add counts a check. tried says that it could be tried, asks that it expects
// something, disputed that a difference does not fail the run.
func (t *tally) add(r result.Check, tried, asks, disputed bool) {
	switch {
	case !tried:
		t.failed = true
		return
	case !asks:
		return
	}
	t.asks = true
	switch {
	case r.Pass:
	case r.Got == string(trace.Unknown), len(r.Open) > 0:
		t.unknown = true
	case disputed:
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
	case !t.asks:
		return result.Own
	}
	return result.Agrees
}

// flow runs one of the lab's own flows.
func (j *job) flow(ctx context.Context, c *lab.Cluster, f spec.Flow) {
	meta := c.Plan.File.Lab.Metadata
	fr := result.FlowResult{Lab: meta.Name, File: c.Plan.File.Path, Title: meta.Title, Variant: j.variant, Incident: meta.Incident, Name: flowName(f)}
	fr.VariantTitle = j.variantTitle(c.Plan.File)
	if j.setting != nil {
		_, fr.Setting, _ = strings.Cut(j.column.ID, "/")
	}
	fr.Expected = f.Expects()
	fr.Check = result.Check{Level: j.level, What: whatOf(f), Expect: f.Expect}
	o, err := c.Run(ctx, f)
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
	}
	t := o.Trace
	if o.Lookup != nil {
		t = lookupTrace(c, f.From, f.To, *o.Lookup)
	}
	fr.Grade, fr.Command = t.Grade, t.Command
	fr.Trace = j.keep(t)
	j.flows = append(j.flows, fr)
}

// whatOf says what a flow of a lab tries: "pod/client -> host/internet (ping)".
func whatOf(f spec.Flow) string {
	switch {
	case f.Resolve != "":
		return f.From + " resolves " + f.To + " with " + f.Resolve
	case f.Protocol != "":
		return f.From + " -> " + f.To + " (" + f.Protocol + ")"
	}
	return f.From + " -> " + f.To
}

func flowName(f spec.Flow) string { return cmp.Or(f.Name, whatOf(f)) }
