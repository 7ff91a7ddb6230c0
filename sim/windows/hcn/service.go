package hcn

import (
	"io"
	"log"
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
	CallLog io.Writer
	// Log receives what went wrong, for people.
	Log *log.Logger
	// Lock, when set, is held around each use of the objects instead of a lock of the
	// Service's own: for an HNS whose node others use, too.
	Lock sync.Locker
}

// Service is the HNS of one node for many clients at once: only one call at a
// time uses the objects.
type Service struct {
	log *log.Logger

	mu         sync.Locker
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
		o.Log = log.New(io.Discard, "", 0)
	}
	if o.Lock == nil {
		o.Lock = new(sync.Mutex)
	}
	s := &Service{svc: svc, mu: o.Lock, log: o.Log, systems: map[string]bool{}, counts: counts{}, calls: callLog{out: o.CallLog, log: o.Log}}
	s.unlisten = svc.OnChange(func(c hns.Change) { s.changes = append(s.changes, c) })
	return s
}

// Start makes the HNS of a node with the objects that o.State holds. It starts
// as HNS does after a restart: hcn.non-persistent says what is lost.
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

// With calls f with the HNS while no other call uses it. What f changes there is
// not kept in Options.State.
func (s *Service) With(f func(*hns.Service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.svc)
	s.changes = s.changes[:0]
}
