package hcn

import (
	"fmt"
	"log"
	"runtime/debug"
	"sync"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Options of a Service.
type Options struct {
	// State is the folder that the objects are kept in; without one they live as
	// long as the Service. One Service at a time may use a folder.
	State string
	// CallLog receives a line of JSON for every call; see [Entry].
	CallLog Writer
	// Log receives what went wrong, for people.
	Log *log.Logger
}

// Writer is io.Writer.
type Writer interface{ Write(p []byte) (int, error) }

// Service is the HNS of one node for many clients at once: one call at a time
// works on the objects.
type Service struct {
	log *log.Logger

	mu         sync.Mutex
	svc        *hns.Service
	store      *store
	systems    map[string]bool // by id in lower case
	lastHandle uint64
	sessions   uint64
	changes    []hns.Change
	unlisten   func()
	calls      callLog
	counts     counts
}

// New puts a service in front of an HNS that the caller has made, for example
// that of a node of a lab. The caller must use it only through [Service.With]
// from then on. Options.State is not for it: see [Start].
func New(svc *hns.Service, o Options) *Service {
	if o.Log == nil {
		o.Log = log.New(discard{}, "", 0)
	}
	s := &Service{svc: svc, log: o.Log, systems: map[string]bool{}, counts: counts{}, calls: callLog{out: o.CallLog, log: o.Log}}
	s.unlisten = svc.OnChange(func(c hns.Change) { s.changes = append(s.changes, c) })
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Start makes the HNS of a node with the objects that o.State holds. It comes up
// as HNS does after a restart: FactNonPersistent says what is lost.
func Start(b *builds.Build, node hns.Options, o Options) (*Service, error) {
	svc := hns.NewService(b, node)
	s := New(svc, o)
	if o.State == "" {
		return s, nil
	}
	st, err := openStore(o.State, svc, s.log)
	if err != nil {
		return nil, err
	}
	s.store, s.changes = st, nil
	return s, nil
}

// Close ends the service: its objects are written once more, in one file. An HNS
// that the caller made is the caller's alone again.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisten()
	s.calls.close()
	if s.store == nil {
		return nil
	}
	return s.store.close(s.svc)
}

// With calls f with the HNS while no call is at work on it. What f changes there
// is not kept in Options.State.
func (s *Service) With(f func(*hns.Service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.svc)
	s.changes = s.changes[:0]
}

// Session is one client: the owner of its handles.
type Session struct {
	name    string
	service *Service
	handles map[uint64]handle
}

type handle struct {
	kind Kind
	id   string
}

// Session begins a session. The name and a number appear in the call log.
func (s *Service) Session(name string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	name = fmt.Sprintf("%s#%d", name, s.sessions)
	c := &Session{name: name, service: s, handles: map[uint64]handle{}}
	s.calls.add(s.calls.wanted(), &Entry{Client: name, Call: "connect"})
	return c
}

// Close ends the session and its handles.
func (c *Session) Close() {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.handles == nil {
		return
	}
	c.handles = nil
	s.calls.add(s.calls.wanted(), &Entry{Client: c.name, Call: "disconnect"})
}

// Handles returns how many handles the session has open.
func (c *Session) Handles() int {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	return len(c.handles)
}

// Call answers one request.
func (c *Session) Call(r *Request) *Response {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = s.changes[:0]
	s.counts[[2]uint8{uint8(r.Verb), uint8(r.Kind)}]++
	before := handle{}
	if r.Handle != 0 {
		before = c.handles[r.Handle]
	}
	res := &Response{Seq: r.Seq}
	var id string
	var err error
	res.Output, id, res.Handle, err = s.do(c, r)
	if err != nil {
		e := hnsError(CallName(r.Verb, r.Kind), err)
		res.HResult, res.Record = HResult(e.Code), recordOf(e)
		if r.compute() {
			res.Record = computeResult(e)
		}
	}
	if len(res.Output) > MaxResponse-1<<10 {
		e := with(errTooLarge, CallName(r.Verb, r.Kind), fmt.Sprintf("the answer has %d bytes", len(res.Output)))
		res.Output, res.HResult, res.Record = "", e.Code, recordOf(e)
	}
	if s.calls.wanted() {
		s.calls.add(true, entryOf(c.name, r, before.id, res, id, s.changes))
	} else {
		s.calls.add(false, nil)
	}
	return res
}

// do looks up handles, keeps the operation and does it. A call that panics, which
// is a mistake in winlab, fails alone.
func (s *Service) do(c *Session, r *Request) (output, id string, made uint64, err error) {
	op := CallName(r.Verb, r.Kind)
	defer func() {
		if p := recover(); p != nil {
			s.log.Printf("%s of %s: panic: %v\n%s", op, c.name, p, debug.Stack())
			output, id, made, err = "", "", 0, with(errUnexpected, op, fmt.Sprint(p))
		}
	}()
	if r.compute() {
		return s.computeSystem(c, r)
	}
	o := operation{Verb: r.Verb, Kind: r.Kind, ID: r.ID.String(), Texts: r.Texts}
	switch r.Verb {
	case Enumerate, Open, Delete, HNSCall, Snapshot:
	case Modify, Query, Close:
		h, ok := c.handles[r.Handle]
		if !ok || h.kind != r.Kind {
			return "", "", 0, with(errInvalidHandle, op) // FactClosedHandle
		}
		if o.ID = h.id; r.Verb == Close {
			delete(c.handles, r.Handle)
			return "", h.id, 0, nil
		}
	case Create:
		if r.Kind == Endpoint {
			h, ok := c.handles[r.Handle]
			if !ok || h.kind != Network {
				return "", "", 0, with(errInvalidHandle, op)
			}
			o.Network = h.id
		}
	default:
		return "", "", 0, with(hns.ErrRequestUnsupported, op)
	}
	if s.store != nil && o.changes() {
		if err := s.store.keep(&o, s.svc); err != nil {
			return "", "", 0, err
		}
	}
	output, id, err = apply(s.svc, &o)
	if err == nil && (r.Verb == Create || r.Verb == Open) {
		made = s.open(c, r.Kind, id)
	}
	return output, id, made, err
}

// open makes a handle. Handles look like nothing else in the protocol, so that a
// program that mixes one up with an id or a kind fails.
func (s *Service) open(c *Session, k Kind, id string) uint64 {
	if c.handles == nil {
		return 0
	}
	s.lastHandle += 8
	made := 0x48430000_00000000 | s.lastHandle
	c.handles[made] = handle{k, id}
	return made
}
