// Package history keeps the results of runs in a folder, a file for each, and says what
// changed from one run to the next. It reads and writes result documents only; it must
// not know how they came about.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/result"
)

// Schema names the version of the form of the folder's index.
const Schema = "winlab.dev/history/v1alpha1"

// indexFile has the points of a folder, so that a table of a hundred runs reads one file.
// It can be deleted: it is made again from the others.
const indexFile = "history.json"

type index struct {
	Schema string         `json:"schema"`
	Points []result.Point `json:"points"`
}

// Add writes a document into the folder, without its traces, under its date, and returns
// the points of all runs of the folder, the new one last. Changes of the new point are
// those since the newest run before it. The folder is made if it is not there.
func Add(dir string, doc *result.Document) ([]result.Point, error) {
	at, err := time.Parse(time.RFC3339, doc.Date)
	if err != nil {
		return nil, fmt.Errorf("the run has no date to be kept under: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	points, err := Read(dir)
	if err != nil {
		return nil, err
	}
	p := pointOf(doc)
	if p.File, err = free(dir, at); err != nil {
		return nil, err
	}
	if len(points) > 0 {
		before, err := result.Load(filepath.Join(dir, points[len(points)-1].File))
		if err != nil {
			return nil, err
		}
		if err := changes(&p, before, doc); err != nil {
			return nil, err
		}
	}
	if err := result.SaveWithoutTraces(filepath.Join(dir, p.File), doc); err != nil {
		return nil, err
	}
	points = append(points, p)
	return points, write(dir, points)
}

// free is a file name for a date that no run has.
func free(dir string, at time.Time) (string, error) {
	stem := at.UTC().Format("2006-01-02T150405Z")
	for n := 1; n < 1000; n++ {
		name := stem + ".json"
		if n > 1 {
			name = fmt.Sprintf("%s_%03d.json", stem, n) // sorts behind the first
		}
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: there are a thousand runs of one second, %s", dir, stem)
}

// Read returns the points of a folder, the oldest first; none for a folder that is empty or
// not there. Where the index does not name the files that are there, it is made again.
func Read(dir string) ([]result.Point, error) {
	files, err := filesOf(dir)
	if err != nil {
		return nil, err
	}
	if points, ok := fromIndex(dir, files); ok {
		return points, nil
	}
	var points []result.Point
	var before *result.Document
	var errs []error
	for _, name := range files {
		doc, err := result.Load(filepath.Join(dir, name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := pointOf(doc)
		p.File = name
		if before != nil {
			if err := changes(&p, before, doc); err != nil {
				return nil, err
			}
		}
		points, before = append(points, p), doc
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, nil
	}
	return points, write(dir, points)
}

// runFile is the name of a run: its date, and a number for others of the same second.
var runFile = lazyregexp.New(`^\d{4}-\d\d-\d\dT\d{6}Z(_\d{3})?\.json$`)

// filesOf are the names of the runs of a folder: dates, so that their order is that of time.
// Other files are left alone.
func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && runFile.MatchString(e.Name()) {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

func fromIndex(dir string, files []string) ([]result.Point, bool) {
	b, err := input.ReadFile(filepath.Join(dir, indexFile), input.Document)
	if err != nil {
		return nil, false
	}
	var i index
	if json.Unmarshal(b, &i) != nil || i.Schema != Schema {
		return nil, false
	}
	var named []string
	for _, p := range i.Points {
		named = append(named, p.File)
	}
	return i.Points, slices.Equal(named, files)
}

func write(dir string, points []result.Point) error {
	b, err := json.MarshalIndent(index{Schema, points}, "", " ")
	if err != nil {
		return err
	}
	return outfile.Update(filepath.Join(dir, indexFile), append(b, '\n'), 0o666)
}

func pointOf(doc *result.Document) result.Point {
	s := doc.Summary
	return result.Point{Date: doc.Date, Tool: doc.Tool, Claims: s.Claims, Cells: s.Cells, Outcomes: maps.Clone(s.Outcomes),
		StaticsFailed: s.StaticsFailed, FlowsFailed: s.FlowsFailed, AsExpected: s.AsExpected}
}

// changes counts what changed since the run before.
func changes(p *result.Point, before, now *result.Document) error {
	r, err := diff.Compare(before, now, diff.Options{})
	if err != nil {
		return err
	}
	p.Changed, p.Added, p.Removed = &r.Changed, len(r.OnlyB), len(r.OnlyA)
	return nil
}
