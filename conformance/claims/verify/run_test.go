package verify

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// TestRunAndSingleClaims: what a run says about a claim is what the claim says
// when it is tried by itself, in whatever order, so that selecting one claim with
// -run gives the same result as a full run.
func TestRunAndSingleClaims(t *testing.T) {
	t.Parallel()
	paths := []string{"../../../fixtures/labs/overlay-flannel-vxlan.yaml"}
	var events []Event
	doc, err := Run(t.Context(), Options{Paths: paths, Progress: func(e Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := plan(paths, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != len(jobs) || events[len(events)-1].Done != len(jobs) || events[0].Total != len(jobs) {
		t.Errorf("the progress of %d jobs is %v", len(jobs), events)
	}
	var alone []result.Cell
	for _, j := range jobs {
		c, err := j.build(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		j.traces, j.column, j.level = result.NewTraces(), column(c), result.Model
		ch := &checker{c: c, job: j, seen: map[string]seen{}}
		var cells []result.Cell
		for _, cl := range slices.Backward(ledger.Claims()) {
			if cell, ok := ch.cell(t.Context(), cl); ok {
				cells = append(cells, cell)
			}
		}
		slices.Reverse(cells)
		alone = append(alone, cells...)
	}
	if diff := cmp.Diff(doc.Cells, alone, cmpopts.IgnoreFields(result.Check{}, "Trace", "Millis")); diff != "" {
		t.Errorf("in a run (-) and alone (+):\n%s", diff)
	}
	if len(alone) < 500 || len(doc.Statics) == 0 || len(doc.Systems) == 0 || len(doc.Facts) == 0 {
		t.Errorf("%d cells, %d checks without a lab, %d systems, %d facts", len(alone), len(doc.Statics), len(doc.Systems), len(doc.Facts))
	}
}

// TestChecksHaveTheirTraces: what a check refers to is the trace of its own flow, also in
// a design that has flows of its own beside the claims in it.
func TestChecksHaveTheirTraces(t *testing.T) {
	t.Parallel()
	doc, err := Run(t.Context(), Options{Paths: []string{"../../../fixtures/labs/l2bridge-azure-cni-dual-stack.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	same := func(what string, k result.Check) {
		if k.Trace == "" || k.Command == "" {
			return
		}
		n++
		if of := doc.Traces.Get(k.Trace); of.Command != k.Command {
			t.Errorf("%s: %q has the trace of %q", what, k.Command, of.Command)
		}
	}
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			same(c.Claim+" in "+c.Setting, k)
		}
	}
	for _, f := range doc.Flows {
		same("flow "+f.Name, f.Check)
	}
	if n < 100 || len(doc.Flows) == 0 {
		t.Errorf("%d checks with a trace, %d flows of the lab", n, len(doc.Flows))
	}
}

// TestOutcome: the outcome of a cell is the gravest among its checks.
func TestOutcome(t *testing.T) {
	t.Parallel()
	const asks = true
	pass, differs, unknown := result.Check{Pass: true}, result.Check{Got: "dropped"}, result.Check{Got: "unknown"}
	explained := result.Check{Got: "dropped", Explained: true}
	for _, c := range []struct {
		name string
		add  func(*tally)
		want string
	}{
		{"nothing is asked for", func(t *tally) { t.add(differs, true, !asks) }, result.Own},
		{"all pass", func(t *tally) { t.add(pass, true, asks) }, result.Agrees},
		{"one differs", func(t *tally) { t.add(pass, true, asks); t.add(differs, true, asks) }, result.Differs},
		{"one differs in a dispute", func(t *tally) { t.add(pass, true, asks); t.add(explained, true, asks) }, result.Disputed},
		{"a dispute does not make the unknown known", func(t *tally) { t.add(unknown, true, asks); t.add(explained, true, asks) },
			result.Unknown},
		{"a difference counts more than the unknown", func(t *tally) { t.add(unknown, true, asks); t.add(differs, true, asks) }, result.Differs},
		{"what could not be tried counts most", func(t *tally) { t.add(differs, true, asks); t.add(result.Check{}, false, asks) }, result.Failed},
	} {
		var all tally
		c.add(&all)
		if got := all.outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
