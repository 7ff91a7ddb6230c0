package hcn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Difference is a call whose result in a replay differs from that in the log.
type Difference struct {
	seq                 uint64
	call                string
	was, is             string // HRESULTs
	wasObject, isObject string
}

// String returns "12 HcnCreateNetwork: was 0x0, is 0x803b0010".
func (d Difference) String() string {
	if d.was != d.is {
		return fmt.Sprintf("%d %s: was %s, is %s", d.seq, d.call, d.was, d.is)
	}
	return fmt.Sprintf("%d %s: was object %q, is %q", d.seq, d.call, d.wasObject, d.isObject)
}

// Replay makes the calls of a log again, with the handles that the service gives
// now, and returns the calls whose result differs. A log that began with an empty
// service leaves a fresh service of the same build and node with the same objects.
// name is the log's, for errors. A last line without its end was being written when
// the service died: it is left out, and the service's log says so.
func (s *Service) Replay(ctx context.Context, name string, r io.Reader) (calls int, different []Difference, err error) {
	p := &replayer{service: s, sessions: map[string]*session{}, handles: map[string]uint64{}}
	defer p.end()
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 2*maxRequest+maxResponse)
	scan.Split(keepEnds)
	for line := 1; scan.Scan(); line++ {
		if err := ctx.Err(); err != nil {
			return calls, different, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if len(strings.TrimSpace(scan.Text())) == 0 {
			continue
		}
		var e Entry
		err := json.Unmarshal(scan.Bytes(), &e)
		if err != nil && !bytes.HasSuffix(scan.Bytes(), []byte("\n")) && line > 1 {
			s.log.Printf("%s:%d: the log ends in the middle of a line; skipping the call", name, line)
			break
		}
		if err != nil {
			return calls, different, fmt.Errorf("%s:%d: not a line of a call log: %w", name, line, err)
		}
		if done, err := p.event(&e); done && err == nil {
			continue
		} else if err != nil {
			return calls, different, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		r, err := p.request(&e)
		if err != nil {
			return calls, different, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if r == nil {
			continue
		}
		calls++
		if d := p.call(&e, r); d != nil {
			different = append(different, *d)
		}
	}
	if err := scan.Err(); err != nil {
		return calls, different, fmt.Errorf("%s: %w", name, err)
	}
	return calls, different, nil
}

// keepEnds splits text into lines with their ends.
func keepEnds(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

type replayer struct {
	service  *Service
	sessions map[string]*session
	handles  map[string]uint64 // by the handle of the log
	starts   int
}

// end ends all sessions, in the order of their names: the call log shows it.
func (p *replayer) end() {
	for _, name := range slices.Sorted(maps.Keys(p.sessions)) {
		p.sessions[name].close()
	}
	clear(p.sessions)
}

func (p *replayer) session(client string) *session {
	c := p.sessions[client]
	if c == nil {
		c = p.service.session(client)
		p.sessions[client] = c
	}
	return c
}

// event does what an entry says that is not a call; false for a call.
func (p *replayer) event(e *Entry) (done bool, err error) {
	switch e.Call {
	case "connect":
		p.session(e.Client)
	case "disconnect":
		if c := p.sessions[e.Client]; c != nil {
			c.close()
			delete(p.sessions, e.Client)
		}
	case "start":
		if p.starts++; p.starts > 1 { // the process was started again: handles are gone
			p.end()
			p.service.With(func(svc *hns.Service) { err = restarted(svc) })
		}
	case addedSystem:
		p.service.AddComputeSystem(e.ID)
	case removedSystem:
		p.service.RemoveComputeSystem(e.ID)
	default:
		return false, nil
	}
	return true, err
}

// function is what a call of the log is named after.
type function struct {
	verb verb
	kind Kind
}

var functions = func() map[string]function {
	all := map[string]function{}
	for v := verbEnumerate; v <= verbClose; v++ {
		for k := Network; k <= computeSystem; k++ {
			all[callName(v, k)] = function{v, k}
		}
	}
	for _, v := range []verb{verbHNSCall, verbSnapshot} {
		all[callName(v, 0)] = function{v, 0}
	}
	return all
}()

// request returns the request of an entry, with the handle that the service gives
// now; nil for a call that the service of the log did not know.
func (p *replayer) request(e *Entry) (*request, error) {
	f, ok := functions[e.Call]
	if !ok {
		return nil, nil
	}
	r := &request{Verb: f.verb, Kind: f.kind}
	var err error
	if r.compute() && r.Verb == verbOpen {
		r.Texts = []string{e.ID}
	} else if e.ID != "" {
		if r.ID, err = ParseGUID(e.ID); err != nil {
			return nil, err
		}
	}
	if e.Handle != "" {
		if r.Handle, err = p.handle(e.Handle); err != nil {
			return nil, err
		}
	}
	switch r.Verb {
	case verbEnumerate, verbQuery:
		r.Texts = []string{textOf(e.Query)}
	case verbCreate, verbModify:
		r.Texts = []string{textOf(e.Settings)}
	case verbHNSCall:
		r.Texts = []string{e.Method, e.Path, textOf(e.Request)}
	}
	return r, nil
}

// handle returns the service's handle for one of the log. One that the program made
// up, or that was open before the log, becomes one that the service does not have.
func (p *replayer) handle(logged string) (uint64, error) {
	if h, ok := p.handles[logged]; ok {
		return h, nil
	}
	h, err := strconv.ParseUint(strings.TrimPrefix(logged, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("handle %q: %w", logged, err)
	}
	return h | 1, nil // no handle of this service is odd
}

// call makes a call and compares its result with that of the log.
func (p *replayer) call(e *Entry, r *request) *Difference {
	c := p.session(e.Client)
	res := c.call(r)
	d := &Difference{seq: e.Seq, call: e.Call, was: e.HResult, is: fmt.Sprintf("0x%x", res.HResult), wasObject: e.Object}
	same := d.was == d.is
	if res.Handle != 0 {
		if e.Returned != "" {
			p.handles[e.Returned] = res.Handle
		}
		d.isObject = c.object(res.Handle)
		same = same && d.wasObject == d.isObject
	}
	if same {
		return nil
	}
	return d
}
