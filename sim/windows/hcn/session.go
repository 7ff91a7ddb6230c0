package hcn

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// session is one client: the owner of its handles.
type session struct {
	name    string
	service *Service
	handles map[uint64]handle
}

type handle struct {
	kind Kind
	id   string
}

// session begins a session. The name and a number appear in the call log.
func (s *Service) session(name string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	name = fmt.Sprintf("%s#%d", name, s.sessions)
	c := &session{name: name, service: s, handles: map[uint64]handle{}}
	s.calls.add(s.calls.wanted(), &Entry{Client: name, Call: "connect"})
	return c
}

// close ends the session and its handles.
func (c *session) close() {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.handles == nil {
		return
	}
	c.handles = nil
	s.calls.add(s.calls.wanted(), &Entry{Client: c.name, Call: "disconnect"})
}

// object returns the id of the object behind a handle.
func (c *session) object(h uint64) string {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	return c.handles[h].id
}

// call answers one request, in three steps: the handle becomes an id, the operation
// is done, and the result becomes a response.
func (c *session) call(r *request) *response {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = s.changes[:0]
	s.counts[[2]uint8{uint8(r.Verb), uint8(r.Kind)}]++
	behind := c.handles[r.Handle].id
	op := callName(r.Verb, r.Kind)
	o, err := c.resolve(op, r)
	var a answer
	if err == nil {
		a, err = s.do(op, c.name, o)
	}
	res := c.respond(op, r, a, err)
	if s.calls.wanted() {
		s.calls.add(true, entryOf(c.name, r, behind, res, a.id, s.changes))
	} else {
		s.calls.add(false, nil)
	}
	return res
}

// resolve returns the operation that a request asks for.
func (c *session) resolve(op string, r *request) (*operation, error) {
	o := &operation{Verb: r.Verb, Kind: r.Kind, ID: r.ID.String(), Texts: r.Texts}
	if err := shortNames(op, r); err != nil {
		return o, err
	}
	var err error
	switch {
	case r.compute() && r.Verb == verbOpen:
		o.ID = r.text(0) // a container has a name
	case r.compute():
		o.ID, err = c.objectOf(op, r, computeSystem)
	case r.Verb == verbModify || r.Verb == verbQuery || r.Verb == verbClose:
		o.ID, err = c.objectOf(op, r, r.Kind)
	case r.Verb == verbCreate && r.Kind == Endpoint:
		o.Network, err = c.objectOf(op, r, Network)
	case r.Verb == 0 || r.Verb == verbWatch || r.Verb > verbSnapshot:
		err = errorWith(hns.ErrRequestUnsupported, op)
	}
	return o, err
}

// shortNames refuses texts that name something and are too long to be a name: they
// appear in errors and logs.
func shortNames(op string, r *request) error {
	what := []string{}
	switch {
	case r.Verb == verbHNSCall:
		what = []string{"method", "path"}
	case r.compute() && r.Verb == verbOpen:
		what = []string{"id of the compute system"}
	}
	for i, w := range what {
		if n := len(r.text(i)); n > maxPath {
			return errorWith(hns.ErrInvalidParam, op, fmt.Sprintf("the %s has %d bytes; the limit is %d", w, n, maxPath))
		}
	}
	return nil
}

// objectOf returns the id of the object of a request's handle, which must be of a
// kind (hcn.closed-handle).
func (c *session) objectOf(op string, r *request, k Kind) (string, error) {
	h, ok := c.handles[r.Handle]
	if !ok || h.kind != k {
		return "", errorWith(errInvalidHandle, op)
	}
	return h.id, nil
}

// respond turns the result of a request into a response, and opens or closes its
// handle.
func (c *session) respond(op string, r *request, a answer, err error) *response {
	res := &response{Seq: r.Seq}
	if err == nil {
		res.Output, err = a.text(op)
	}
	if err != nil {
		e := hnsError(op, err)
		res.HResult, res.Record = hresult(e.Code), recordOf(e)
		if r.compute() {
			res.Record = computeResult(e)
		}
		return res
	}
	switch r.Verb {
	case verbCreate, verbOpen:
		res.Handle = c.open(r.Kind, a.id)
	case verbClose:
		delete(c.handles, r.Handle)
	}
	return res
}

// open makes a handle. Handles differ from all other numbers in the protocol, so
// that a program that mixes one up with an id or a kind fails.
func (c *session) open(k Kind, id string) uint64 {
	if c.handles == nil {
		return 0
	}
	c.service.lastHandle += 8
	made := 0x48430000_00000000 | c.service.lastHandle
	c.handles[made] = handle{k, id}
	return made
}

// answer is the result of an operation: the id of its object, and its output,
// which is nil where there is none.
type answer struct {
	id     string
	output any
}

// text is the output as JSON.
func (a answer) text(op string) (string, error) {
	if a.output == nil {
		return "", nil
	}
	raw, err := json.Marshal(a.output)
	switch {
	case err != nil:
		return "", errorWith(errUnexpected, op, err.Error())
	case len(raw) > maxResponse-1<<10:
		return "", errorWith(errTooLarge, op, fmt.Sprintf("the answer has %d bytes", len(raw)))
	}
	return string(raw), nil
}

// do does an operation. One that panics, which is a bug of winlab, fails alone.
func (s *Service) do(op, client string, o *operation) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Printf("%s of %s: panic: %v\n%s", op, client, p, debug.Stack())
			a, err = answer{}, errorWith(errUnexpected, op, fmt.Sprint(p))
		}
	}()
	switch {
	case o.Verb == verbClose:
		return answer{id: o.ID}, nil // done by the session
	case o.Kind == computeSystem && o.Verb < verbHNSCall:
		return s.doCompute(op, o)
	}
	return s.keepAndApply(o)
}

// keepAndApply puts an operation that can change an object into the journal, then
// does it.
func (s *Service) keepAndApply(o *operation) (answer, error) {
	if s.store != nil && o.changes() {
		if err := s.store.keep(o, s.svc); err != nil {
			return answer{}, err
		}
	}
	return apply(s.svc, o)
}
