package hns

import "net/netip"

// Later defers calls that programs of the node have made: f makes them. It runs before
// anything else reads or changes the service's objects, so the delay is not visible; where
// nothing does, as on most nodes of a large cluster, it never runs. Several functions run in
// the order in which they were given.
func (s *Service) Later(f func()) {
	before := s.later
	s.later = func() {
		if before != nil {
			before()
		}
		f()
	}
}

// Settle makes the calls that wait now.
func (s *Service) Settle() {
	if s == nil || s.later == nil {
		return
	}
	f := s.later
	s.later = nil
	f()
}

// Waits reports whether calls wait.
func (s *Service) Waits() bool { return s.later != nil }

// AsIs runs f, which only reads, without the calls that wait.
func (s *Service) AsIs(f func()) {
	later := s.later
	s.later = nil
	defer func() { s.later = later }()
	f()
}

// Has reports whether an endpoint has an address, without the calls that wait.
func (s *Service) Has(a netip.Addr) bool { return len(s.byAddress[a]) > 0 }
