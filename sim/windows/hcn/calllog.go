package hcn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Entry is one line of the call log. Arguments that are JSON are JSON in it,
// all others strings. It holds no time: two runs of the same calls give the
// same log.
type Entry struct {
	Seq    uint64 `json:"seq"`
	Client string `json:"client,omitempty"`
	// Call is the function, "HcnCreateNetwork", or "start", "connect",
	// "disconnect", "container added" and "container removed" for events that are not calls.
	Call string `json:"call"`
	// Build is the node's build, in a start.
	Build string `json:"build,omitempty"`

	Handle   string          `json:"handle,omitempty"`
	ID       string          `json:"id,omitempty"`
	Query    json.RawMessage `json:"query,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Method   string          `json:"method,omitempty"`
	Path     string          `json:"path,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`

	HResult string `json:"hresult,omitempty"`
	// Object is the id behind the handle that was given or returned.
	Object   string          `json:"object,omitempty"`
	Returned string          `json:"returned,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"`
	// Changes are what the call did to the objects, the consequences included.
	Changes []EntryChange `json:"changes,omitempty"`
}

// EntryChange is an object that a call created, modified or deleted.
type EntryChange struct {
	Kind string   `json:"kind"`
	ID   string   `json:"id,omitempty"`
	What hns.What `json:"what"`
}

func entryOf(client string, r *request, objectOfHandle string, res *response, id string, changes []hns.Change) *Entry {
	e := &Entry{
		Client: client, Call: callName(r.Verb, r.Kind), Handle: hexHandle(r.Handle), ID: r.ID.String(),
		HResult: fmt.Sprintf("0x%x", res.HResult), Object: objectOfHandle, Returned: hexHandle(res.Handle),
		Output: jsonOrText(res.Output), Record: jsonOrText(res.Record),
	}
	if id != "" {
		e.Object = id
	}
	switch r.Verb {
	case verbOpen:
		if r.Kind == computeSystem {
			e.ID = r.text(0)
		}
	case verbEnumerate, verbQuery:
		e.Query = jsonOrText(r.text(0))
	case verbCreate, verbModify:
		e.Settings = jsonOrText(r.text(0))
	case verbHNSCall:
		e.Method, e.Path, e.Request = r.text(0), r.text(1), jsonOrText(r.text(2))
	}
	for _, c := range changes {
		e.Changes = append(e.Changes, EntryChange{string(c.Kind), c.ID, c.What})
	}
	return e
}

func hexHandle(h uint64) string {
	if h == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", h)
}

// jsonOrText returns an argument for the log: JSON objects and arrays as they
// are, anything else as a string.
func jsonOrText(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	raw := bytes.TrimSpace([]byte(s))
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') && json.Valid(raw) {
		return raw
	}
	text, _ := json.Marshal(s) // a string marshals
	return text
}

// textOf is the inverse of jsonOrText.
func textOf(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// OpenCallLog opens a file for [Options.CallLog], to append to it. When the service that
// wrote it died in the middle of a line, that line is dropped, or the first entry of
// this service would become part of it; l says so.
func OpenCallLog(name string, l *log.Logger) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("call log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() { // a pipe or a terminal has no lines to keep
		var whole int64
		if whole, err = wholeLines(f, info.Size()); err == nil && whole < info.Size() {
			l.Printf("call log: %s ends in the middle of a line; dropping %d bytes", name, info.Size()-whole)
			err = f.Truncate(whole)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("call log: %w", err), f.Close())
	}
	return f, nil
}

// wholeLines returns how many of the first size bytes are whole lines.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// callLog writes entries and passes them to watchers.
type callLog struct {
	out      io.Writer
	log      *log.Logger
	seq      uint64
	failed   bool
	watchers []chan []byte
}

func (l *callLog) wanted() bool { return l.out != nil || len(l.watchers) > 0 }

// add numbers an entry and writes it, when it is wanted. Calls are counted even
// when they are not wanted, so that a watcher sees how many there were before.
func (l *callLog) add(wanted bool, e *Entry) {
	l.seq++
	if !wanted {
		return
	}
	e.Seq = l.seq
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		l.log.Printf("call log: %v", err)
		return
	}
	line := buf.Bytes()
	if l.out != nil {
		// The log is not the state: a full disk must not stop the node.
		if _, err := l.out.Write(line); err != nil && !l.failed {
			l.failed = true
			l.log.Printf("call log: %v; calls are no longer logged", err)
			l.out = nil
		}
	}
	for i, w := range slices.Backward(l.watchers) {
		select {
		case w <- line:
		default: // a watcher that does not read must not block the others
			close(w)
			l.watchers = slices.Delete(l.watchers, i, i+1)
		}
	}
}

func (l *callLog) close() {
	for _, w := range l.watchers {
		close(w)
	}
	l.watchers = nil
}

// watch begins to copy entries to a channel. It is closed by stop, when the
// service ends and when the reader is 4,096 calls behind.
func (s *Service) watch() (entries <-chan []byte, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := make(chan []byte, 4096)
	s.calls.watchers = append(s.calls.watchers, w)
	return w, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.calls.watchers, w); i >= 0 {
			s.calls.watchers = slices.Delete(s.calls.watchers, i, i+1)
			close(w)
		}
	}
}

// started writes the first line of a log.
func (s *Service) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.add(s.calls.wanted(), &Entry{Call: "start", Build: s.svc.Build().Version.String()})
}
