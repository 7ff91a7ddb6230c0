package hns

import (
	"slices"
)

// Kind is the kind of an HNS object.
type Kind string

// The kinds.
const (
	KindNetwork      Kind = "network"
	KindEndpoint     Kind = "endpoint"
	KindNamespace    Kind = "namespace"
	KindLoadBalancer Kind = "loadBalancer"
	KindRoute        Kind = "route"
	// KindService is the service itself: ID is empty.
	KindService Kind = "service"
)

// What says what has happened to an object.
type What string

// What a Change says.
const (
	Created   What = "created"
	Modified  What = "modified"
	Deleted   What = "deleted"
	Restarted What = "restarted"
)

// Change says that an object has changed. What is created, modified, deleted or
// (for KindService) restarted.
type Change struct {
	Kind Kind
	ID   string
	What What
	// PolicyOnly is set when a modification touched nothing but policies: HNS
	// applies those again, which drops established flows of the port.
	PolicyOnly bool
	// ACLs is set when ACL policies were among them.
	ACLs bool
}

// OnChange calls f after every change, in the order of the changes, until stop is
// called.
func (s *Service) OnChange(f func(Change)) (stop func()) {
	l := &f
	s.listeners = append(s.listeners, l)
	return func() {
		s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(x *func(Change)) bool { return x == l })
	}
}

func (s *Service) changed(c Change) {
	for _, f := range s.listeners {
		(*f)(c)
	}
}
