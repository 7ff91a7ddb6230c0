package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/strict"
)

// APIVersion and Kind head a manifest, which is the file Name of a bundle.
const (
	APIVersion = "winlab.dev/bundle/v1alpha1"
	Kind       = "Bundle"
	Name       = "bundle.json"
)

// Manifest says what a bundle holds.
type Manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Tool is the program that made it, with its version.
	Tool string `json:"tool"`
	// Made is when it was begun, in UTC.
	Made  time.Time `json:"made"`
	Files []File    `json:"files"`
	// Steps are what was tried, in that order: also what gave no file.
	Steps []Step `json:"steps,omitempty"`
}

// File is a file of a bundle.
type File struct {
	// Path is below the bundle, with slashes.
	Path string `json:"path"`
	// What is it in words: "HNS endpoints (v1)"; Node is the node it was taken on, "" for
	// what is about the cluster.
	What string `json:"what"`
	Node string `json:"node,omitempty"`
	// From is the call, the command or the file of the node that it comes from.
	From string `json:"from,omitempty"`
	// Bytes and SHA256 are those of the file in the bundle.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// CutFrom is the size in bytes of what the file is the end of; 0 for a whole one.
	CutFrom int64 `json:"cutFrom,omitempty"`
	// Redacted counts the values that were taken out.
	Redacted int `json:"redacted,omitempty"`
}

// Step is one thing that was tried.
type Step struct {
	// Name is its short name, What what it reads, in words.
	Name string `json:"name"`
	What string `json:"what"`
	// Node is the node it was done on.
	Node string `json:"node,omitempty"`
	// Files are the paths of what it wrote.
	Files []string `json:"files,omitempty"`
	// Absent says that what it reads is not there, and why that is not a failure; Error says
	// what failed.
	Absent string `json:"absent,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Find returns the entry of a path.
func (m *Manifest) Find(path string) (File, bool) {
	if m == nil {
		return File{}, false
	}
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		return File{}, false
	}
	return m.Files[i], true
}

// ReadManifest reads a manifest. Fields that are not known are those of a newer winlab, and
// left out; every other mistake is in the error, with file, line and column.
func ReadManifest(file string, data []byte) (*Manifest, error) {
	at := func(offset int64, format string, args ...any) error {
		line, column := place(data, offset)
		return strict.Mistakes{{File: file, Line: line, Column: column, Message: fmt.Sprintf(format, args...)}}
	}
	m := &Manifest{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(m); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, at(int64(len(data)), "the manifest ends in the middle")
		case errors.As(err, &syntax):
			return nil, at(syntax.Offset-1, "not JSON: %v", err)
		case errors.As(err, &kind):
			return nil, at(kind.Offset-1, "%s is a %s here; it must be a %s", kind.Field, kind.Value, kind.Type)
		}
		return nil, at(0, "%v", err)
	}
	if m.APIVersion != APIVersion || m.Kind != Kind {
		return nil, at(0, "apiVersion %q, kind %q: this winlab reads %s, kind %s", clip(m.APIVersion), clip(m.Kind), APIVersion, Kind)
	}
	var found strict.Mistakes
	seen := map[string]bool{}
	for i, f := range m.Files {
		path, err := cleanName(f.Path)
		switch {
		case err != nil:
			found = append(found, strict.Mistake{File: file, Message: fmt.Sprintf("files[%d]: %v", i, err)})
		case seen[path]:
			found = append(found, strict.Mistake{File: file, Message: fmt.Sprintf("files[%d]: %s is listed twice", i, path)})
		}
		seen[path] = true
	}
	return m, found.AsError()
}

// place is the line and the column, from 1, of a byte.
func place(data []byte, offset int64) (line, column int) {
	before := data[:max(0, min(int(offset), len(data)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
}

// clip makes a text from outside short enough for a message.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
