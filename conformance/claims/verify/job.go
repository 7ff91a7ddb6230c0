package verify

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	labplan "github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace"
)

// job is one lab in one setting or variant.
type job struct {
	file    *lab.File
	setting *labfile.Setting
	variant string
	// claims is set for the designs that claims speak of.
	claims bool
	// components is as in Options, without both.
	components string
	// model is the job with the models that this one runs beside; nil for others.
	// Without a real component it has nothing to add.
	model *job
	// compared is set for a job and for the model job that it is compared with.
	compared bool

	// live are the flows to make with real sockets, too; nil for none.
	live *liveFlows

	err    error
	level  result.Level
	failed int
	column result.Setting
	cells  []result.Cell
	flows  []result.FlowResult
	// traces are those of the document, for all jobs; kept counts this job's, and cited are
	// the facts that they cite.
	traces *result.Traces
	kept   int
	cited  map[string]bool
	// notices are what the cluster could not follow.
	notices []trace.Notice
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
	if j.components == labfile.Real {
		n += " real"
	}
	return n
}

// build makes the cluster. A lab without a real component runs with the models;
// when another job does that already, build returns nil.
func (j *job) build(ctx context.Context, pool *components.Pool) (*lab.Cluster, error) {
	o := lab.Options{Variant: j.variant, Setting: j.setting, Components: j.components, Pool: pool, Keep: j.live != nil}
	c, err := lab.Build(ctx, j.file, o)
	switch {
	case !errors.Is(err, cluster.ErrNoComponents):
		return c, err
	case j.model != nil:
		return nil, nil
	}
	o.Components = labfile.Model
	return lab.Build(ctx, j.file, o)
}

// run builds the lab and tries everything.
func (j *job) run(ctx context.Context, ledger *claims.Ledger, pool *components.Pool) {
	c, err := j.build(ctx, pool)
	switch {
	case err != nil && ctx.Err() == nil && !j.claims && j.notBuilt(err):
		return
	case err != nil || c == nil:
		j.err = err
		return
	}
	defer func() { j.err = errors.Join(j.err, c.Close()) }()
	if j.model != nil && len(c.Components) == 0 {
		return // no real component ran: the results would be the model's again
	}
	j.column, j.notices = column(c), c.NotModelled
	j.level = result.Model
	if len(c.Components) > 0 {
		j.level = result.Components
	}
	if j.compared {
		j.objects = objectsOf(c)
	}
	if j.claims {
		j.tryClaims(ctx, &checker{c: c, job: j, seen: map[string]seen{}}, ledger)
	} else {
		j.tryFlows(ctx, c)
	}
	if j.err == nil {
		j.err = j.makeLive(ctx, c)
	}
}

// notBuilt notes that the flows of a variant could not be tried, so that the others are
// tried all the same. It reports false where there is nothing to note it at.
func (j *job) notBuilt(err error) bool {
	p, planErr := labplan.New(j.file, j.variant, j.setting)
	if planErr != nil {
		return false
	}
	s := &p.File.Lab.Spec
	flows, steps := s.AllFlows(), append([]string{""}, s.StepNames()...)
	if len(flows) == 0 && len(s.Steps) == 0 {
		return false
	}
	j.level = result.Model
	j.notDone("", err, flows, steps)
	return true
}

// variantTitle is the title of the job's variant, "" without one.
func (j *job) variantTitle(f *lab.File) string {
	all := f.Lab.Spec.Variants
	if i := slices.IndexFunc(all, func(v labfile.Variant) bool { return v.Name == j.variant }); i >= 0 && j.variant != "" {
		return all[i].Title
	}
	return ""
}

// tryClaims tries every claim that has something to try here.
func (j *job) tryClaims(ctx context.Context, ch *checker, ledger *claims.Ledger) {
	for _, cl := range ledger.Claims() {
		if j.err = ctx.Err(); j.err != nil {
			return
		}
		cell, ok := ch.cell(ctx, cl)
		if !ok {
			continue
		}
		if cell.Outcome == result.Failed || cell.Outcome == result.Differs {
			j.failed++
		}
		j.cells = append(j.cells, cell)
	}
}

// column describes a cluster as a column of the matrix.
func column(c *lab.Cluster) result.Setting {
	meta := c.Plan.File.Lab.Metadata
	s := result.Setting{Design: meta.Name, Title: meta.Title, File: c.Plan.File.Path, Variant: c.Plan.Variant, Network: c.Plan.Network.Type,
		Plugin:    c.Plan.Network.Name,
		ForClaims: claims.IsLab(meta.Name), Proxy: c.ProxyName(), Kubernetes: c.Kube.Version.String(), Components: c.Components}
	for i, n := range c.Kube.Nodes {
		if n.Windows == nil {
			continue
		}
		if b := c.Plan.Nodes[i].Build; !slices.Contains(s.Builds, b) {
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

// addTo adds the job's part to the document.
func (j *job) addTo(doc *result.Document) {
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
	j.notModelled(doc)
	facts(doc, j.cited)
}

// notModelled adds the job's notices to the document: one for each lab and variant,
// with the settings in which it is so.
func (j *job) notModelled(doc *result.Document) {
	lab := j.file.Lab.Metadata.Name
	for _, n := range j.notices {
		i := slices.IndexFunc(doc.NotModelled, func(o result.Notice) bool {
			return o.Lab == lab && o.Variant == j.variant && len(trace.AddNotice([]trace.Notice{o.Notice}, n)) == 1
		})
		if i < 0 {
			i = len(doc.NotModelled)
			doc.NotModelled = append(doc.NotModelled, result.Notice{Lab: lab, Variant: j.variant, Notice: n})
		}
		if o := &doc.NotModelled[i]; j.claims && !slices.Contains(o.Settings, j.column.ID) {
			o.Settings = append(o.Settings, j.column.ID)
		}
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
