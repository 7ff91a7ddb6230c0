package known

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
)

// Register is every entry, in the order of their numbers.
type Register struct {
	Entries []*Entry
}

// Load returns the register that is part of the program: the table that go test writes from
// the files in entries, so that a command that consults it does not have to read 700 files.
// Callers must not change it.
func Load() *Register { return &Register{table} }

// LoadFS reads the files of fsys that match a glob, one entry each. It decodes strictly but
// does not lint; the error, if any, is [strict.Mistakes].
func LoadFS(fsys fs.FS, glob string) (*Register, error) {
	names, err := fs.Glob(fsys, glob)
	if err != nil {
		return nil, strict.Mistakes{{File: glob, Message: err.Error()}}
	}
	// Files are read side by side: a test reads all of them.
	read := make([]*Entry, len(names))
	mistakes := make([]strict.Mistakes, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				mistakes[i] = strict.Mistakes{{File: name, Message: err.Error()}}
				return
			}
			read[i], mistakes[i] = parse(name, text)
		})
	}
	wg.Wait()
	if err := strict.Mistakes(slices.Concat(mistakes...)).AsError(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(read, func(a, b *Entry) int { return a.ID - b.ID })
	return &Register{Entries: read}, nil
}

// parse reads one file.
func parse(name string, text []byte) (*Entry, strict.Mistakes) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, strict.Mistakes{{File: name, Line: 1, Column: 1, Message: "the file is empty; write an entry"}}
	} else if err != nil {
		return nil, strict.Mistakes{strict.SyntaxMistake(name, err)}
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, strict.Mistakes{{
			File: name, Line: second.Line, Column: second.Column,
			Message: "a second document; write one entry per file",
		}}
	} else if !errors.Is(err, io.EOF) {
		return nil, strict.Mistakes{strict.SyntaxMistake(name, err)}
	}
	e := &Entry{file: name, root: doc.Content[0]}
	s := &strict.Checker{File: name}
	s.Check(e.root, reflect.TypeFor[Entry](), "the entry")
	if len(s.Found) > 0 {
		return nil, s.Found
	}
	if err := e.root.Decode(e); err != nil {
		return nil, strict.Mistakes{strict.SyntaxMistake(name, err)}
	}
	return e, nil
}

// Find returns the entry with a number, or nil.
func (r *Register) Find(id int) *Entry {
	i, ok := slices.BinarySearchFunc(r.Entries, id, func(e *Entry, id int) int { return e.ID - id })
	if !ok {
		return nil
	}
	return r.Entries[i]
}
