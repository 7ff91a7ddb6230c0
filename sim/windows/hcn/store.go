package hcn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"syscall"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// The state folder holds state.json, a snapshot, and journal-N.jsonl, every
// operation since. N is in the snapshot, so a new snapshot and its empty journal
// come into force together, when state.json is renamed into place. An operation is
// in the journal before it is done: what a client has an answer for survives the
// end of the process (not a power failure: the journal is not synced call by call).
const (
	stateFile   = "state.json"
	stateFormat = 1
	// A journal longer than this, and twice as long as the snapshot, makes a new
	// snapshot. Bytes.
	journalSize = 4 << 20
)

type stateText struct {
	Format  int
	Build   string
	Node    hns.Options
	Journal uint64
	HNS     *hns.Snapshot
}

type store struct {
	dir     string
	log     *log.Logger
	head    stateText
	unlock  func()
	journal *os.File
	size    int64 // of the journal
	snap    int64 // size of the snapshot
	limit   int64
	broken  bool // the journal's end is not known to be whole
	// pending are operations that are done but not kept yet: the disk was full.
	pending []operation
	// write is os.File.Write; tests replace it.
	write func(*os.File, []byte) (int, error)
}

func journalName(n uint64) string { return fmt.Sprintf("journal-%d.jsonl", n) }

// openStore reads the state into svc, restarts it, and gets ready to keep more.
// It changes nothing on disk that it cannot read.
func openStore(dir string, svc *hns.Service, l *log.Logger) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("state: another service uses %s: %w", dir, err)
	}
	st := &store{dir: dir, log: l, unlock: unlock, limit: journalSize, write: (*os.File).Write}
	st.head = stateText{Format: stateFormat, Build: svc.Build().Version.String(), Node: svc.Options()}
	if err := st.load(svc); err != nil {
		unlock()
		return nil, err
	}
	return st, nil
}

func (st *store) load(svc *hns.Service) error {
	name := filepath.Join(st.dir, stateFile)
	text, err := input.ReadFile(name, input.Document)
	if errors.Is(err, fs.ErrNotExist) {
		left, err := filepath.Glob(filepath.Join(st.dir, "journal-*.jsonl"))
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		if len(left) > 0 {
			return fmt.Errorf("state: %s is missing, but %s exists: restore the missing file, or use an empty folder", name, filepath.Base(left[0]))
		}
		return st.compact(svc)
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	var have stateText
	if err := json.Unmarshal(text, &have); err != nil {
		return fmt.Errorf("state: %s: %w", name, err)
	}
	switch {
	case have.Format != stateFormat || have.HNS == nil:
		return fmt.Errorf("state: %s has format %d; this winlab reads %d", name, have.Format, stateFormat)
	case have.Build != st.head.Build || !reflect.DeepEqual(have.Node, st.head.Node):
		return fmt.Errorf("state: %s is of build %s, node %q; this service is build %s, node %q: use another folder",
			name, have.Build, have.Node.Node, st.head.Build, st.head.Node.Node)
	}
	if err := svc.Restore(have.HNS); err != nil {
		return fmt.Errorf("state: %s: %w", name, err)
	}
	st.head.Journal, st.snap = have.Journal, int64(len(text))
	if err := st.replay(svc); err != nil {
		return err
	}
	again := operation{Verb: restart}
	if _, err := apply(svc, &again); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := st.compact(svc); err != nil {
		// The old files are whole: go on with them, and remember the restart.
		st.log.Printf("%v; going on with %s", err, journalName(st.head.Journal))
		st.pending = append(st.pending, again)
	}
	return nil
}

// replay does the operations of the journal. A last line without its end was
// being written when the process died, and no client has an answer for it.
func (st *store) replay(svc *hns.Service) error {
	name := filepath.Join(st.dir, journalName(st.head.Journal))
	text, err := input.ReadFile(name, input.Document)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if whole < len(text) {
		st.log.Printf("state: %s ends in the middle of a line; dropping %d bytes", name, len(text)-whole)
	}
	for i, line := range bytes.Split(text[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var o operation
		if err := json.Unmarshal(line, &o); err != nil {
			return fmt.Errorf("state: %s:%d: %w", name, i+1, err)
		}
		// A call that failed fails again; that is not a reason to stop.
		_, _ = apply(svc, &o)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := errors.Join(f.Truncate(int64(whole)), seekEnd(f)); err != nil {
		return errors.Join(fmt.Errorf("state: %w", err), f.Close())
	}
	st.journal, st.size = f, int64(whole)
	return nil
}

func seekEnd(f *os.File) error {
	_, err := f.Seek(0, 2)
	return err
}

// keep puts an operation into the journal. When it fails nothing has changed.
func (st *store) keep(o *operation, svc *hns.Service) error {
	op := callName(o.Verb, o.Kind)
	if st.broken || st.size > max(st.limit, 2*st.snap) {
		if err := st.compact(svc); err != nil {
			st.log.Printf("%s: %v", op, err)
			if st.broken {
				return diskError(op, err)
			}
			st.limit = st.size + journalSize // not at every call
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, p := range append(st.pending, *o) {
		if err := enc.Encode(p); err != nil {
			return errorWith(errUnexpected, op, err.Error())
		}
	}
	n, err := st.write(st.journal, buf.Bytes())
	if err != nil {
		st.log.Printf("refusing %s: state: %v", op, err)
		if n > 0 {
			if err := errors.Join(st.journal.Truncate(st.size), seekEnd(st.journal)); err != nil {
				st.broken = true
				st.log.Printf("state: %v; changes are not saved until a new snapshot can be written", err)
			}
		}
		return diskError(op, err)
	}
	st.size, st.pending = st.size+int64(n), nil
	return nil
}

func diskError(op string, err error) error {
	e := errWriteFault
	if errors.Is(err, syscall.ENOSPC) {
		e = errDiskFull
	}
	return errorWith(e, op, "the state cannot be written: "+err.Error())
}

// compact writes a snapshot and begins an empty journal.
func (st *store) compact(svc *hns.Service) error {
	next := st.head
	next.Journal++
	next.HNS = svc.Snapshot()
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	journal := filepath.Join(st.dir, journalName(next.Journal))
	f, err := os.OpenFile(journal, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := st.replace(filepath.Join(st.dir, stateFile), text); err != nil {
		return errors.Join(fmt.Errorf("state: %w", err), f.Close(), os.Remove(journal))
	}
	old := st.journal
	oldName := journalName(st.head.Journal)
	st.head.Journal, st.journal, st.size, st.snap = next.Journal, f, 0, int64(len(text))
	st.broken, st.pending, st.limit = false, nil, journalSize
	if old != nil {
		if err := errors.Join(old.Close(), os.Remove(filepath.Join(st.dir, oldName))); err != nil {
			st.log.Printf("state: %v; the file is not needed", err)
		}
	}
	return nil
}

// replace writes a file beside name and renames it, so that name is always whole.
func (st *store) replace(name string, text []byte) error {
	f, err := os.CreateTemp(st.dir, stateFile+".new-")
	if err != nil {
		return err
	}
	_, err = st.write(f, text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (st *store) close(svc *hns.Service) error {
	err := st.compact(svc)
	st.unlock()
	return errors.Join(err, st.journal.Close())
}
