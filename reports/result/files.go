package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/outfile"
)

const (
	// File is the name of a document in the folder of a run, TraceFile that of its traces.
	File      = "results.json"
	TraceFile = "traces.zip"

	// traceLimit and tracesLimit are how much JSON one trace and all traces of a file may
	// unpack to, in bytes: the file may come from somebody else. The largest trace of
	// winlab's own labs has 200 kB, all of them have 27 MB.
	traceLimit  = 64 << 20
	tracesLimit = 4 << 30
)

// Save writes a document into a folder: results.json without its traces, and traces.zip
// with them, an entry HASH.json for each. Both are written whole or not at all, the traces
// first. The same document gives the same bytes.
func Save(dir string, doc *Document) error {
	out, traces, err := prepare(doc)
	if err != nil {
		return err
	}
	zipped := filepath.Join(dir, TraceFile)
	if len(traces) > 0 {
		out.TraceFile = TraceFile
		if err := outfile.Write(zipped, 0o666, func(w io.Writer) error { return writeTraces(w, traces) }); err != nil {
			return err
		}
	} else if err := os.Remove(zipped); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return outfile.Write(filepath.Join(dir, File), 0o666, func(w io.Writer) error { return writeLine(w, out) })
}

// Load reads a document from the folder of a run, or from its results.json, with the
// traces of the file beside it. Where that file is not there or lacks some, the document
// has the others, and NoTraces says why. Errors are those of [Read], with the name of the
// file.
func Load(path string) (*Document, error) {
	file := path
	if i, err := os.Stat(path); err == nil && i.IsDir() {
		file = filepath.Join(path, File)
	}
	if ext := strings.ToLower(filepath.Ext(file)); ext == ".html" || ext == ".xml" || ext == ".yaml" || ext == ".zip" {
		return nil, fmt.Errorf("%s: give the results.json beside it, or the folder", path)
	}
	b, err := input.ReadFile(file, input.Document)
	switch {
	case errors.Is(err, fs.ErrNotExist) && file != path:
		return nil, fmt.Errorf("%s has no %s: it is not a folder that winlab run wrote", path, File)
	case err != nil:
		return nil, err
	}
	doc, err := load(file, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return doc, nil
}

func load(file string, b []byte) (*Document, error) {
	w, err := readWire(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if w.TraceFile == "" {
		return w.document(w.inside(), true)
	}
	if w.TraceFile != filepath.Base(w.TraceFile) || w.TraceFile == ".." || strings.ContainsAny(w.TraceFile, `/\`) {
		return nil, fmt.Errorf("results: traceFile is %q; want the name of a file in the same folder", w.TraceFile)
	}
	zipped := filepath.Join(filepath.Dir(file), w.TraceFile)
	traces, err := readTraces(zipped, w.hashes())
	if errors.Is(err, fs.ErrNotExist) {
		doc, err := w.document(nil, false)
		if doc != nil {
			doc.NoTraces = fmt.Sprintf("%s is not beside %s", w.TraceFile, filepath.Base(file))
		}
		return doc, err
	}
	if err != nil {
		return nil, err
	}
	doc, err := w.document(traces, false)
	if lost := len(w.hashes()) - len(traces); doc != nil && lost > 0 {
		doc.NoTraces = fmt.Sprintf("%s is of another run: it lacks %d of %d traces", w.TraceFile, lost, len(w.hashes()))
	}
	return doc, err
}

// hashes are the hashes of traces that checks refer to.
func (w *wireDocument) hashes() map[string]bool {
	all := map[string]bool{}
	add := func(k *Check) {
		if k.Trace != "" {
			all[k.Trace] = true
		}
	}
	for i := range w.Cells {
		for j := range w.Cells[i].Checks {
			add(&w.Cells[i].Checks[j].Check)
		}
	}
	for i := range w.Statics {
		add(&w.Statics[i].Check)
	}
	for i := range w.Flows {
		add(&w.Flows[i].Check)
	}
	return all
}
