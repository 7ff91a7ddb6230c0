package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/agree"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Event is the progress of a run.
type Event struct {
	Done, Total int
	// What was done last, Failed how many checks or flows are unexpected.
	What   string
	Failed int
}

// Options say what to run.
type Options struct {
	// Paths are lab files and folders with lab files.
	Paths []string
	// Progress, when set, is called after every lab in a setting or variant,
	// from one goroutine at a time.
	Progress func(Event)
	// Tool, Command and Date (RFC 3339) are noted in the document.
	Tool, Command, Date string
	// Nodes is the folder with folders taken from nodes that the ledger's doctor
	// checks name; "" leaves these checks out.
	Nodes string
	// Ledger replaces the ledger of the program.
	Ledger *claims.Ledger
	// Components says what attaches pods and programs Services on Windows nodes:
	// spec.Model, spec.Real (the programs themselves, wherever there are some), "both",
	// which compares the two, or "" for what each lab says.
	Components string
	// Live makes every flow with real sockets, too, and holds what comes back against
	// its trace; see package agree.
	Live bool
}

// both runs each lab with the models, and again with real components where there
// are any.
const both = "both"

// ComponentKinds are the values of Options.Components.
var ComponentKinds = []string{labfile.Model, labfile.Real, both}

// Run checks every claim that applies to the labs and every flow that the labs
// expect something of. The error is about input; what is unexpected is in the
// document.
func Run(ctx context.Context, o Options) (_ *result.Document, err error) {
	ledger := o.Ledger
	if ledger == nil {
		if ledger, err = claims.Load(); err != nil {
			return nil, err
		}
	}
	files, err := find(o.Paths)
	if err != nil {
		return nil, err
	}
	if o.real() {
		// Once, and not for each lab.
		if err := components.Available(); err != nil {
			return nil, fmt.Errorf("real components: %w", err)
		}
	}
	if o.Live {
		if err := agree.Available(); err != nil {
			return nil, fmt.Errorf("live flows: %w", err)
		}
	}
	jobs, err := plan(files, o.Components)
	if err != nil {
		return nil, err
	}
	if o.Live {
		for _, j := range jobs {
			j.live = &liveFlows{}
		}
	}
	pool, err := components.NewPool("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	traces := result.NewTraces()
	for _, j := range jobs {
		j.traces = traces
	}
	o.runAll(ctx, jobs, func(j *job) { j.run(ctx, ledger, pool) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return o.document(ctx, ledger, jobs, traces)
}

// real reports whether real components run.
func (o Options) real() bool { return o.Components == both || o.Components == labfile.Real }

// runAll runs the jobs side by side and reports the progress.
func (o Options) runAll(ctx context.Context, jobs []*job, run func(*job)) {
	var mu sync.Mutex
	done, failed := 0, 0
	finished := func(j *job) {
		mu.Lock()
		defer mu.Unlock()
		done++
		failed += j.failed
		if o.Progress != nil {
			o.Progress(Event{Done: done, Total: len(jobs), What: j.name(), Failed: failed})
		}
	}
	workers := runtime.GOMAXPROCS(0)
	if o.real() || o.Live {
		workers *= 4 // real components mostly wait, and so do programs for what does not come
	}
	work := make(chan *job)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range work {
				if ctx.Err() == nil {
					run(j)
				}
				finished(j)
			}
		})
	}
	for _, j := range jobs {
		work <- j
	}
	close(work)
	wg.Wait()
}

// document joins what the jobs have found.
func (o Options) document(ctx context.Context, ledger *claims.Ledger, jobs []*job, traces *result.Traces) (*result.Document, error) {
	doc := &result.Document{Schema: result.Schema, Tool: o.Tool, Command: o.Command, Date: o.Date, Versions: claims.Minors(),
		Designs: claims.ResultDesigns(), Areas: ledger.Areas(), Claims: ledger.Results(), Traces: traces, Facts: map[string]*evidence.Fact{}}
	var errs []error
	for _, j := range jobs {
		errs = append(errs, j.err)
		j.addTo(doc)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.claims }) {
		// With the labs of the documents' designs a run is about the documents, and
		// not about one incident.
		var err error
		if doc.Statics, err = Statics(ctx, ledger, o.Nodes); err != nil {
			return nil, err
		}
		if doc.Systems, err = ledger.Systems(); err != nil {
			return nil, err
		}
	}
	if err := inputs(doc, ledger, jobs); err != nil {
		return nil, err
	}
	result.Summarise(doc)
	return doc, nil
}

// inputs notes what the run was given.
func inputs(doc *result.Document, ledger *claims.Ledger, jobs []*job) error {
	if sum := ledger.Sum(); sum != "" {
		doc.Inputs = append(doc.Inputs, result.Input{Name: "ledger", SHA256: sum})
	}
	labs, seen := map[string]bool{}, map[string]bool{}
	for _, j := range jobs {
		if labs[j.file.Path] {
			continue
		}
		labs[j.file.Path] = true
		files, err := j.file.Inputs()
		if err != nil {
			return err
		}
		for _, f := range files {
			if !seen[f.Path] {
				seen[f.Path] = true
				doc.Inputs = append(doc.Inputs, result.Input{Name: f.Path, SHA256: f.SHA256})
			}
		}
	}
	return nil
}
