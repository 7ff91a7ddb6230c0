package hcn

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Difference is a call that went otherwise in a replay than in its log.
type Difference struct {
	Seq       uint64
	Call      string
	Was, Is   string // HRESULTs
	WasObject string
	IsObject  string
}

// String returns "12 HcnCreateNetwork: was 0x0, is 0x803b0010".
func (d Difference) String() string {
	if d.Was != d.Is {
		return fmt.Sprintf("%d %s: was %s, is %s", d.Seq, d.Call, d.Was, d.Is)
	}
	return fmt.Sprintf("%d %s: was object %q, is %q", d.Seq, d.Call, d.WasObject, d.IsObject)
}

// Replay makes the calls of a log again, with the handles that the service gives
// now, and returns the calls that went otherwise. A log that began with an empty
// service leaves a fresh service of the same build and node with the same objects.
// name is the log's, for errors.
func (s *Service) Replay(ctx context.Context, name string, r io.Reader) (calls int, different []Difference, err error) {
	p := &replayer{service: s, sessions: map[string]*Session{}, handles: map[string]uint64{}}
	defer p.end()
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 2*MaxRequest+MaxResponse)
	for line := 1; scan.Scan(); line++ {
		if err := ctx.Err(); err != nil {
			return calls, different, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if len(strings.TrimSpace(scan.Text())) == 0 {
			continue
		}
		var e Entry
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			return calls, different, fmt.Errorf("%s:%d: no line of a call log: %w", name, line, err)
		}
		d, called, err := p.entry(&e)
		if err != nil {
			return calls, different, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if called {
			calls++
		}
		if d != nil {
			different = append(different, *d)
		}
	}
	if err := scan.Err(); err != nil {
		return calls, different, fmt.Errorf("%s: %w", name, err)
	}
	return calls, different, nil
}

type replayer struct {
	service  *Service
	sessions map[string]*Session
	handles  map[string]uint64 // by the handle of the log
	starts   int
}

func (p *replayer) end() {
	for _, c := range p.sessions {
		c.Close()
	}
}

func (p *replayer) session(client string) *Session {
	c := p.sessions[client]
	if c == nil {
		c = p.service.Session(client)
		p.sessions[client] = c
	}
	return c
}

var callsByName = func() map[string][2]byte {
	all := map[string][2]byte{}
	for v := Enumerate; v <= Close; v++ {
		for k := Network; k <= ComputeSystem; k++ {
			all[CallName(v, k)] = [2]byte{byte(v), byte(k)}
		}
	}
	for _, v := range []Verb{HNSCall, Snapshot} {
		all[CallName(v, 0)] = [2]byte{byte(v), 0}
	}
	return all
}()

func (p *replayer) entry(e *Entry) (*Difference, bool, error) {
	switch e.Call {
	case "connect":
		p.session(e.Client)
		return nil, false, nil
	case "disconnect":
		if c := p.sessions[e.Client]; c != nil {
			c.Close()
			delete(p.sessions, e.Client)
		}
		return nil, false, nil
	case "start":
		if p.starts++; p.starts > 1 { // the process was started again: handles are gone
			p.end()
			clear(p.sessions)
			p.service.With(restarted)
		}
		return nil, false, nil
	}
	if add, ok := map[string]bool{addedSystem: true, removedSystem: false}[e.Call]; ok {
		if add {
			p.service.AddComputeSystem(e.ID)
		} else {
			p.service.RemoveComputeSystem(e.ID)
		}
		return nil, false, nil
	}
	what, ok := callsByName[e.Call]
	if !ok {
		return nil, false, nil // a call that the service did not know
	}
	r := &Request{Verb: Verb(what[0]), Kind: Kind(what[1])}
	if r.Kind == ComputeSystem && r.Verb == Open {
		r.Texts = []string{e.ID}
	} else if e.ID != "" {
		var err error
		if r.ID, err = ParseGUID(e.ID); err != nil {
			return nil, false, err
		}
	}
	if e.Handle != "" {
		h, ok := p.handles[e.Handle]
		if !ok { // one that the program made up, or that was open before the log
			var err error
			if h, err = strconv.ParseUint(strings.TrimPrefix(e.Handle, "0x"), 16, 64); err != nil {
				return nil, false, fmt.Errorf("handle %q: %w", e.Handle, err)
			}
			h |= 1 // no handle of this service is odd
		}
		r.Handle = h
	}
	switch r.Verb {
	case Enumerate, Query:
		r.Texts = []string{textOf(e.Query)}
	case Create, Modify:
		r.Texts = []string{textOf(e.Settings)}
	case HNSCall:
		r.Texts = []string{e.Method, e.Path, textOf(e.Request)}
	}
	c := p.session(e.Client)
	res := c.Call(r)
	if res.Handle != 0 && e.Returned != "" {
		p.handles[e.Returned] = res.Handle
	}
	d := &Difference{Seq: e.Seq, Call: e.Call, Was: e.HResult, Is: fmt.Sprintf("0x%x", res.HResult), WasObject: e.Object}
	if res.Handle != 0 {
		p.service.mu.Lock()
		d.IsObject = c.handles[res.Handle].id
		p.service.mu.Unlock()
		if d.WasObject != d.IsObject {
			return d, true, nil
		}
	}
	if d.Was != d.Is {
		return d, true, nil
	}
	return nil, true, nil
}
