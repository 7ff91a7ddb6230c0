package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Event tells how far a run is.
type Event struct {
	Done, Total int
	// What was done last, Failed how many checks or flows went otherwise than expected.
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
	// Tool and Command are noted in the document.
	Tool, Command string
	// Nodes is the folder with folders taken from nodes that the ledger's doctor
	// checks name; "" leaves these checks out.
	Nodes string
	// Ledger replaces the ledger of the program.
	Ledger *claims.Ledger
	// Components says what attaches pods and programs Services on Windows nodes:
	// lab.Model, lab.Real (the programs themselves, wherever there are some), Both,
	// which puts one beside the other, or "" for what each lab says.
	Components string
}

// Both runs each lab with the models, and once more with real components where
// there are some.
const Both = "both"

// ComponentKinds are the values of Options.Components.
var ComponentKinds = []string{lab.Model, lab.Real, Both}

// Run checks every claim that applies to the labs and every flow that the labs
// expect something of. The error is about input; what went otherwise than
// expected is in the document.
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
	if o.Components == Both || o.Components == lab.Real {
		// Once, and not for each lab.
		if err := components.Available(); err != nil {
			return nil, fmt.Errorf("real components: %w", err)
		}
	}
	jobs, err := plan(files, o.Components)
	if err != nil {
		return nil, err
	}
	pool, err := components.NewPool("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	doc := &result.Document{Schema: result.Schema, Tool: o.Tool, Command: o.Command, Areas: ledger.Areas(), Claims: ledger.Results(), Traces: map[string]*trace.Trace{}}
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
	work := make(chan *job)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	if o.Components == Both || o.Components == lab.Real {
		workers *= 4 // real components wait more than they work
	}
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range work {
				if ctx.Err() == nil {
					j.run(ctx, ledger, pool)
				}
				finished(j)
			}
		}()
	}
	for _, j := range jobs {
		work <- j
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var errs []error
	for _, j := range jobs {
		errs = append(errs, j.err)
		j.into(doc)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.claims }) {
		// With the labs of the documents' designs a run is about the documents, and
		// not about one incident.
		if doc.Statics, err = Statics(ctx, ledger, o.Nodes); err != nil {
			return nil, err
		}
		if doc.Systems, err = ledger.Systems(); err != nil {
			return nil, err
		}
	}
	facts(doc)
	result.Summarise(doc)
	return doc, nil
}

// find lists the lab files of paths, sorted, each once. Files in folders named
// "common" are parts of other labs.
func find(paths []string) ([]string, error) {
	var files []string
	var errs []error
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: there is no such file or folder", p))
			continue
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		err = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "common":
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".yaml":
				return nil
			}
			if isLab(path) {
				files = append(files, path)
			}
			return nil
		})
		errs = append(errs, err)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no lab in %s; a lab is a .yaml file with kind: Lab", strings.Join(paths, ", "))
	}
	return files, nil
}

// isLab looks for the head of a lab without reading the whole file as one.
func isLab(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(data), "apiVersion: "+lab.APIVersion) && strings.Contains(string(data), "kind: "+lab.Kind)
}

// job is one lab in one setting or variant.
type job struct {
	file    *lab.File
	setting *lab.Setting
	variant string
	// claims is set for the designs that claims speak of.
	claims bool
	// components is as in Options, without Both.
	components string
	// model is the job with the models that this one runs beside; nil for others.
	// Without a real component it has nothing to add.
	model *job
	// compared is set for both of them.
	compared bool

	err    error
	level  result.Level
	failed int
	column result.Setting
	cells  []result.Cell
	flows  []result.FlowResult
	traces map[string]*trace.Trace
	// objects are for a comparison of two jobs; nil without one.
	objects *objects
}

func (j *job) name() string {
	n := j.file.Lab.Metadata.Name
	if j.variant != "" {
		n += " " + j.variant
	}
	if j.setting != nil {
		n += " " + j.setting.Kubernetes + " " + j.setting.Build
	}
	if j.components == lab.Real {
		n += " real"
	}
	return n
}

// plan reads the labs and lists what is to be run.
func plan(files []string, kind string) ([]*job, error) {
	var jobs []*job
	var errs []error
	for _, path := range files {
		f, err := lab.Load(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := f.Lab
		isDesign := slices.ContainsFunc(claims.Designs, func(d claims.Design) bool { return d.Name == l.Metadata.Name })
		if isDesign {
			if len(l.Spec.Settings) == 0 {
				jobs = append(jobs, &job{file: f, claims: true})
			}
			for i := range l.Spec.Settings {
				jobs = append(jobs, &job{file: f, setting: &l.Spec.Settings[i], claims: true})
			}
		}
		if len(l.Spec.Flows) > 0 || !isDesign && len(l.Spec.Variants) == 0 {
			jobs = append(jobs, &job{file: f})
		}
		for _, v := range l.Spec.Variants {
			jobs = append(jobs, &job{file: f, variant: v.Name})
		}
	}
	if kind != Both {
		for _, j := range jobs {
			j.components = kind
		}
		return jobs, errors.Join(errs...)
	}
	for _, j := range slices.Clone(jobs) {
		j.components, j.compared = lab.Model, true
		other := *j
		other.components, other.model = lab.Real, j
		jobs = append(jobs, &other)
	}
	return jobs, errors.Join(errs...)
}

// build makes the cluster. A lab without a real component runs with the models,
// unless that is done already: then there is none.
func (j *job) build(ctx context.Context, pool *components.Pool) (*lab.Cluster, error) {
	o := lab.Options{Variant: j.variant, Setting: j.setting, Components: j.components, Pool: pool}
	c, err := lab.Build(ctx, j.file, o)
	switch {
	case !errors.Is(err, lab.ErrNoComponents):
		return c, err
	case j.model != nil:
		return nil, nil
	}
	o.Components = lab.Model
	return lab.Build(ctx, j.file, o)
}

// run builds the lab and tries everything.
func (j *job) run(ctx context.Context, ledger *claims.Ledger, pool *components.Pool) {
	c, err := j.build(ctx, pool)
	if err != nil || c == nil {
		j.err = err
		return
	}
	if j.model != nil && len(c.Components) == 0 {
		return // no program had anything to do: all would be the model's once more
	}
	j.traces = map[string]*trace.Trace{}
	j.column = column(c)
	j.level = result.Model
	if len(c.Components) > 0 {
		j.level = result.Components
	}
	if j.compared {
		j.objects = objectsOf(c)
	}
	if j.claims {
		ch := &checker{c: c, job: j, seen: map[string]string{}}
		for _, cl := range ledger.Claims() {
			j.cell(ch, cl)
		}
		return
	}
	for _, f := range c.File.Lab.Spec.Flows {
		j.flow(c, f)
	}
}

// column describes a cluster as a column of the matrix.
func column(c *lab.Cluster) result.Setting {
	meta := c.File.Lab.Metadata
	s := result.Setting{Design: meta.Name, Title: meta.Title, File: c.File.Path, Variant: c.Options.Variant, Network: c.NetType, Plugin: c.Plugin,
		Proxy: c.ProxyName(), Kubernetes: c.Kube.Version.String(), Components: c.Components}
	for i, n := range c.Kube.Nodes {
		if n.Windows == nil {
			continue
		}
		if b := c.File.Lab.Spec.Nodes[i].Build; !slices.Contains(s.Builds, b) {
			s.Builds = append(s.Builds, b)
		}
	}
	s.ID = s.Design + "/" + s.Kubernetes
	if len(s.Builds) > 0 {
		s.ID += "-" + strings.TrimPrefix(s.Builds[0], "10.0.")
	}
	if strings.Contains(s.Proxy, "DSR") {
		s.ID += "-dsr"
	}
	return s
}

// cell tries all checks of a claim that apply.
func (j *job) cell(ch *checker, cl *claims.Claim) {
	checks := cl.ChecksAt(j.column)
	if len(checks) == 0 {
		return
	}
	cell := result.Cell{Claim: cl.ID, Setting: j.column.ID}
	cell.Documented, cell.Basis = cl.Documented(checks)
	if s, ok := cl.SupportAt(j.column); ok {
		cell.Status = s.Status
	}
	asks, differs, excused, hole, failed := false, false, false, false, false
	for _, k := range checks {
		r, ok := ch.check(k)
		cell.Checks = append(cell.Checks, r)
		switch {
		case !ok:
			failed = true
		case !k.Asks():
		case r.Pass:
			asks = true
		case r.Got == string(trace.Unknown):
			asks, hole = true, true
		case k.Disputed || cl.Disputed:
			asks, excused = true, true
		default:
			asks, differs = true, true
		}
	}
	switch {
	case failed:
		cell.Outcome = result.Failed
	case differs:
		cell.Outcome = result.Differs
	case hole:
		cell.Outcome = result.Hole
	case excused || cl.Disputed:
		cell.Outcome = result.Disputed
	case !asks:
		cell.Outcome = result.Own
	default:
		cell.Outcome = result.Agrees
	}
	if failed || differs {
		j.failed++
	}
	j.cells = append(j.cells, cell)
}

// flow runs one of the lab's own flows.
func (j *job) flow(c *lab.Cluster, f lab.Flow) {
	meta := c.File.Lab.Metadata
	fr := result.FlowResult{Lab: meta.Name, File: c.File.Path, Title: meta.Title, Variant: j.variant, Incident: meta.Incident, Name: f.Name}
	what := f.From + " -> " + f.To
	if f.Protocol != "" {
		what += " (" + f.Protocol + ")"
	}
	if f.Resolve != "" {
		what = f.From + " resolves " + f.To + " with " + f.Resolve
	}
	if fr.Name == "" {
		fr.Name = what
	}
	fr.Check = result.Check{Level: j.level, What: what, Expect: f.Expect}
	o, err := c.Run(f)
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

// keep stores a trace and returns its key.
func (j *job) keep(t *trace.Trace) string {
	key := fmt.Sprintf("%s#%d", j.name(), len(j.traces)+1)
	for i := range t.Paths {
		slim(t.Paths[i].Steps)
	}
	for _, n := range t.Names {
		for _, q := range n.Queries {
			if q.Path != nil {
				slim(q.Path.Steps)
			}
		}
	}
	j.traces[key] = t
	return key
}

// slim leaves out the picture of the packet where the step before has the same:
// a document holds thousands of traces.
func slim(steps []trace.Step) {
	last := ""
	for i := range steps {
		if steps[i].Packet == last {
			steps[i].Packet = ""
		} else {
			last = steps[i].Packet
		}
	}
}

// into adds the job's part to the document.
func (j *job) into(doc *result.Document) {
	if j.err != nil || j.level == "" {
		return
	}
	if j.model != nil {
		j.besideModel(doc)
	} else {
		if j.claims {
			doc.Settings = append(doc.Settings, j.column)
		}
		doc.Cells = append(doc.Cells, j.cells...)
	}
	doc.Flows = append(doc.Flows, j.flows...)
	for k, t := range j.traces {
		doc.Traces[k] = t
	}
}

// besideModel puts the checks of a job into the cells that the model's job has made.
func (j *job) besideModel(doc *result.Document) {
	for i := range doc.Settings {
		if doc.Settings[i].ID == j.column.ID {
			s := &doc.Settings[i]
			s.Components = j.column.Components
			s.ObjectsApart, s.Objects = j.objects.apart(j.model.objects)
		}
	}
	theirs := map[string]*result.Cell{}
	for i := range j.cells {
		theirs[j.cells[i].Claim] = &j.cells[i]
	}
	for i := range doc.Cells {
		if c := &doc.Cells[i]; c.Setting == j.column.ID && theirs[c.Claim] != nil {
			c.Add(theirs[c.Claim])
		}
	}
}

// facts collects what the traces cite.
func facts(doc *result.Document) {
	doc.Facts = map[string]*evidence.Fact{}
	add := func(id string) {
		if f := evidence.Lookup(id); f != nil {
			doc.Facts[id] = f
		}
	}
	for _, t := range doc.Traces {
		for _, p := range t.Paths {
			for _, s := range p.Steps {
				add(s.Evidence)
			}
		}
		for _, n := range t.Names {
			for _, q := range n.Queries {
				add(q.Evidence)
				if q.Path != nil {
					for _, s := range q.Path.Steps {
						add(s.Evidence)
					}
				}
			}
		}
	}
}

// lookupTrace makes a trace of a name resolution, so that a report can show it.
func lookupTrace(c *lab.Cluster, from, name string, l trace.Lookup) *trace.Trace {
	t := &trace.Trace{Schema: trace.Schema, Verdict: l.Verdict, Reason: l.Reason, Summary: l.Summary, Lab: c.Info(),
		Flow:  trace.Flow{From: from, To: name, Protocol: "udp", DstPort: 53},
		Names: []trace.Lookup{l}, Command: c.ResolveCommand(from, name, l.Tool)}
	for _, q := range l.Queries {
		if q.Grade.Weaker(t.Grade) {
			t.Grade = q.Grade
		}
	}
	return t
}
