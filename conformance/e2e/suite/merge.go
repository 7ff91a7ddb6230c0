package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/winlab-dev/winlab/reports/html"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Merge joins results: those of the shards of one run, of several clusters, and of a run
// of labs, whose cells then have the evidence of both. Folders have a results.json.
func Merge(paths []string) (*result.Document, error) {
	var docs []*result.Document
	var errs []error
	for _, p := range paths {
		doc, err := result.Load(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		docs = append(docs, doc)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("nothing to merge; name folders with a results.json")
	}
	all := docs[0]
	if all.Traces == nil {
		all.Traces = result.NewTraces()
	}
	if all.Facts == nil {
		all.Facts = map[string]*evidence.Fact{}
	}
	for i, doc := range docs[1:] {
		if err := join(all, doc); err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i+1], err)
		}
	}
	result.Summarise(all)
	return all, all.Validate()
}

// join adds what a document has to another one.
func join(all, doc *result.Document) error {
	for _, s := range doc.Settings {
		i := slices.IndexFunc(all.Settings, func(x result.Setting) bool { return x.ID == s.ID })
		if i < 0 {
			all.Settings = append(all.Settings, s)
		} else if err := joinSetting(&all.Settings[i], s); err != nil {
			return err
		}
	}
	all.Areas = union(all.Areas, doc.Areas, func(a, b result.Area) bool { return a.ID == b.ID })
	all.Claims = union(all.Claims, doc.Claims, func(a, b result.Claim) bool { return a.ID == b.ID })
	all.Statics = union(all.Statics, doc.Statics, func(a, b result.Static) bool {
		return a.Claim == b.Claim && a.What == b.What &&
			a.Where == b.Where
	})
	all.Systems = union(all.Systems, doc.Systems, func(a, b result.System) bool { return a.ID == b.ID })
	for _, c := range doc.Cells {
		joinCell(all, c)
	}
	all.Traces.Join(doc.Traces)
	for key, f := range doc.Facts {
		all.Facts[key] = f
	}
	all.Flows = append(all.Flows, doc.Flows...)
	all.NotModelled = append(all.NotModelled, doc.NotModelled...)
	return nil
}

// union adds those of b that a lacks.
func union[T any](a, b []T, same func(T, T) bool) []T {
	for _, x := range b {
		if !slices.ContainsFunc(a, func(y T) bool { return same(x, y) }) {
			a = append(a, x)
		}
	}
	return a
}

// joinSetting takes over the cluster. A simulated cluster and a real one are never one
// column.
func joinSetting(a *result.Setting, b result.Setting) error {
	switch {
	case b.Cluster == nil:
		b.Cluster = a.Cluster
		*a = b
		return nil
	case a.Cluster == nil:
		a.Cluster = b.Cluster
		return nil
	case a.Cluster.Simulated != b.Cluster.Simulated:
		return fmt.Errorf("the setting %s is a simulated cluster in one result and a real one in another; make two reports of them", a.ID)
	}
	a.Cluster.NotTried = append(a.Cluster.NotTried, b.Cluster.NotTried...)
	a.Cluster.Notes = union(a.Cluster.Notes, b.Cluster.Notes, func(x, y string) bool { return x == y })
	return nil
}

// joinCell puts the checks of a cell beside those of another result; the model's come
// first.
func joinCell(all *result.Document, c result.Cell) {
	i := slices.IndexFunc(all.Cells, func(x result.Cell) bool { return x.Claim == c.Claim && x.Setting == c.Setting })
	if i < 0 {
		all.Cells = append(all.Cells, c)
		return
	}
	into := &all.Cells[i]
	outcome := graver(into.Outcome, c.Outcome)
	if onlyCluster(into) && !onlyCluster(&c) {
		*into, c = c, *into
	}
	// Documents that end before the cluster's version are taken to hold on it, and are
	// silent for the model: the cell shows what the cluster was held against.
	if into.Documented == "silent" && c.Documented != "silent" {
		into.Documented, into.Basis = c.Documented, c.Basis
	}
	into.Add(&c)
	into.Outcome = outcome
}

func onlyCluster(c *result.Cell) bool {
	return !slices.ContainsFunc(c.Checks, func(k result.Check) bool { return k.Level != result.Cluster })
}

// WriteMerged writes a document as the results of a folder, with the report.
func WriteMerged(out string, doc *result.Document) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := result.Save(out, doc); err != nil {
		return err
	}
	page, err := html.Report(doc)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(out, "report.html"), func(f *os.File) error { _, err := f.Write(page); return err })
}
