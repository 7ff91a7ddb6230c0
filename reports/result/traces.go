package result

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Traces are the traces of a document, each under a key that checks refer to. What is kept of
// a trace is its JSON, packed as it is in the file of traces, once for all that differ in
// nothing but lab and command; it is read again whenever somebody asks for it. As structs the
// traces of a run over all labs would take 300 MB, packed they take 7.
//
// Several goroutines may use it. The nil Traces has none.
type Traces struct {
	mu       sync.Mutex
	kept     map[string]kept
	contents map[string]*content // by hash
	labs     []trace.Lab
	labAt    map[string]int // by their JSON
	pack     *flate.Writer
	err      error
}

// kept is a trace: its content, and what the content leaves out.
type kept struct {
	hash    string
	lab     int
	command string
}

// content is the JSON form of a trace without its lab, and without its command unless a check
// that refers to it has another one: packed with DEFLATE, with the length in bytes and the
// CRC-32 (IEEE) of what it unpacks to, as an entry of a zip file has them.
type content struct {
	packed []byte
	size   int
	crc    uint32
}

// NewTraces returns an empty set.
func NewTraces() *Traces {
	return &Traces{kept: map[string]kept{}, contents: map[string]*content{}, labAt: map[string]int{}}
}

// TracesOf returns a set of these traces.
func TracesOf(all map[string]*trace.Trace) *Traces {
	t := NewTraces()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		t.Put(key, all[key])
	}
	return t
}

// Put keeps a trace as it is now under a key, and replaces the one that is there.
func (t *Traces) Put(key string, tr *trace.Trace) {
	b, err := contentOf(tr, "")
	if err == nil {
		err = t.put(key, hashOf(b), b, nil, &tr.Lab, tr.Command)
	}
	if err != nil {
		t.mu.Lock()
		t.err = errors.Join(t.err, fmt.Errorf("results: trace %q: %w", key, err))
		t.mu.Unlock()
	}
}

// put keeps a trace whose content is JSON, or packed already.
func (t *Traces) put(key, hash string, b []byte, c *content, lab *trace.Lab, command string) error {
	about, err := json.Marshal(lab)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.labAt[string(about)]
	if !ok {
		at = len(t.labs)
		t.labs, t.labAt[string(about)] = append(t.labs, *lab), at
	}
	if t.contents[hash] == nil {
		if c == nil {
			if c, err = t.packed(b); err != nil {
				return err
			}
		}
		t.contents[hash] = c
	}
	t.kept[key] = kept{hash, at, command}
	return nil
}

// packed packs JSON. One compressor for all, one after the other: its tables are a megabyte.
func (t *Traces) packed(b []byte) (*content, error) {
	var z bytes.Buffer
	if t.pack == nil {
		w, err := flate.NewWriter(&z, flate.BestSpeed)
		if err != nil {
			return nil, err
		}
		t.pack = w
	}
	t.pack.Reset(&z)
	_, err := t.pack.Write(b)
	if err := errors.Join(err, t.pack.Close()); err != nil {
		return nil, err
	}
	return &content{slices.Clip(bytes.Clone(z.Bytes())), len(b), crc32.ChecksumIEEE(b)}, nil
}

// readers are what unpacks: each has a window of 32 KiB.
var readers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// json unpacks the content, of which length and sum were computed or compared when it was
// kept.
func (c *content) json() []byte {
	r := readers.Get().(io.ReadCloser)
	defer readers.Put(r)
	err := r.(flate.Resetter).Reset(bytes.NewReader(c.packed), nil)
	b := make([]byte, c.size)
	if err == nil {
		_, err = io.ReadFull(r, b)
	}
	if err != nil {
		panic("result: a trace that was packed cannot be unpacked: " + err.Error())
	}
	return b
}

// Get returns a trace, new for each call; nil when there is none under that key.
func (t *Traces) Get(key string) *trace.Trace {
	raw, ok := t.Raw(key)
	if !ok {
		return nil
	}
	var full trace.Trace
	if err := json.Unmarshal(raw.JSON(), &full); err != nil {
		panic("result: a trace that was kept cannot be read: " + err.Error()) // it was written, or read, before
	}
	full.Lab, full.Command = raw.Lab, raw.Command
	return &full
}

// Raw is a trace as it is kept, for those who go through thousands.
type Raw struct {
	// Content names what the trace holds beside Lab and Command: traces of one content have
	// the same JSON.
	Content string
	Lab     trace.Lab
	// LabAt numbers the labs of a set of traces.
	LabAt   int
	Command string

	content *content
}

// JSON is the trace without its lab and command, as [trace.Trace] in JSON.
func (r *Raw) JSON() []byte { return r.content.json() }

// Raw returns a trace as it is kept; false when there is none under that key.
func (t *Traces) Raw(key string) (Raw, bool) {
	if t == nil {
		return Raw{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.kept[key]
	if !ok {
		return Raw{}, false
	}
	return Raw{k.hash, t.labs[k.lab], k.lab, k.command, t.contents[k.hash]}, true
}

// Has reports whether there is a trace under a key.
func (t *Traces) Has(key string) bool {
	_, ok := t.Raw(key)
	return ok
}

// Len counts the keys.
func (t *Traces) Len() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept)
}

// All yields every key with its trace, in the order of keys.
func (t *Traces) All() iter.Seq2[string, *trace.Trace] {
	return func(yield func(string, *trace.Trace) bool) {
		for _, key := range t.keys() {
			if !yield(key, t.Get(key)) {
				return
			}
		}
	}
}

func (t *Traces) keys() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.kept))
}

// Join takes over the traces of another set, under their keys.
func (t *Traces) Join(o *Traces) {
	for _, key := range o.keys() {
		raw, _ := o.Raw(key)
		if err := t.put(key, raw.Content, nil, raw.content, &raw.Lab, raw.Command); err != nil {
			t.mu.Lock()
			t.err = errors.Join(t.err, err)
			t.mu.Unlock()
		}
	}
}

// contentOf is a trace in its JSON form without lab, and with this command.
func contentOf(t *trace.Trace, command string) ([]byte, error) {
	w := wireTrace{Trace: *t}
	w.Trace.Lab, w.Command = trace.Lab{}, command
	if w.Schema == "" {
		w.Schema = trace.Schema
	}
	normalTrace(&w.Trace)
	return encode(w)
}

// hashOf names what a trace holds: 16 hexadecimal digits of its SHA-256. At 100,000 traces
// two of one name are less likely than one in a thousand million.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// writeTraces writes the file of traces.
func writeTraces(w io.Writer, traces map[string]*content) error {
	z := zip.NewWriter(w)
	for _, hash := range slices.Sorted(maps.Keys(traces)) {
		c := traces[hash]
		e, err := z.CreateRaw(&zip.FileHeader{Name: hash + ".json", Method: zip.Deflate, CRC32: c.crc, CompressedSize64: uint64(len(c.packed)),
			UncompressedSize64: uint64(c.size)})
		if err != nil {
			return err
		}
		if _, err := e.Write(c.packed); err != nil {
			return err
		}
	}
	return z.Close()
}

// readTraces reads those traces of a file that are wanted, and checks that each is what
// its name says.
func readTraces(file string, wanted map[string]bool) (map[string]*readTrace, error) {
	in, size, err := input.OpenRegular(file, input.Stream)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	traces := map[string]*readTrace{}
	left := int64(tracesLimit)
	var errs []error
	for _, e := range z.File {
		hash, ok := strings.CutSuffix(e.Name, ".json")
		if !ok || !wanted[hash] || traces[hash] != nil {
			continue
		}
		t, err := readOne(e, hash, min(traceLimit, left))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", file, e.Name, err))
			continue
		}
		left -= int64(t.size)
		traces[hash] = t
	}
	return traces, errors.Join(errs...)
}

// readTrace is a trace as it was read: its content where that is as [Save] writes it, the
// trace itself where it has more.
type readTrace struct {
	size    int
	content *content
	full    *wireTrace
}

func readOne(e *zip.File, hash string, limit int64) (*readTrace, error) {
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("unpacks to more than %d bytes", limit)
	case hashOf(b) != hash:
		return nil, fmt.Errorf("holds %s: the file is damaged", hashOf(b))
	}
	// All of it is read once, so that who opens a trace later has a trace.
	var t wireTrace
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("has more than one JSON value")
	}
	if t.Lab != nil || t.Command != "" || e.Method != zip.Deflate {
		return &readTrace{size: len(b), full: &t}, nil
	}
	raw, err := e.OpenRaw()
	if err != nil {
		return nil, err
	}
	packed, err := io.ReadAll(raw)
	if err != nil {
		return nil, err
	}
	return &readTrace{size: len(b), content: &content{packed, len(b), crc32.ChecksumIEEE(b)}}, nil
}
