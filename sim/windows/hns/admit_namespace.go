package hns

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// CreateNamespace makes a namespace with the next compartment number.
func (s *Service) CreateNamespace(in Namespace) (*Namespace, error) {
	const op = "hcnCreateNamespace"
	n, m := in.clone(), &mistakes{}
	if !s.build.Has(builds.V2API) {
		m.add(ErrNotImplemented, "namespaces belong to HCN v2: %s", s.build)
	}
	if n.Type == "" {
		n.Type = NamespaceHost
	}
	if !slices.Contains([]string{NamespaceHost, NamespaceHostDefault, NamespaceGuest, NamespaceGuestDefault}, n.Type) {
		m.add(ErrInvalidParam, "there is no namespace type %q; there are Host, HostDefault, Guest, GuestDefault", n.Type)
	}
	if n.ID != "" && s.Namespace(n.ID) != nil {
		m.add(ErrAlreadyExists, "the id %s is taken", n.ID)
	}
	if err := m.err(op); err != nil {
		return nil, err
	}
	return s.addNamespace(n), nil
}

func (s *Service) addNamespace(n *Namespace) *Namespace {
	if n.ID == "" {
		n.ID = s.newID(KindNamespace)
	}
	n.ID = normID(n.ID)
	switch {
	case n.Type == NamespaceHostDefault:
		n.NamespaceId = 1
	case n.NamespaceId == 0:
		s.compartment++
		n.NamespaceId = s.compartment
	default:
		s.compartment = max(s.compartment, n.NamespaceId)
	}
	if n.NamespaceGuid == "" {
		n.NamespaceGuid = n.ID
	}
	if n.SchemaVersion == (SchemaVersion{}) {
		n.SchemaVersion = SchemaVersion{Major: 2}
	}
	s.namespaces.put(n.ID, n)
	s.changed(Change{Kind: KindNamespace, ID: n.ID, What: Created})
	return n
}

// HostNamespace returns the namespace of the node itself (compartment 1), which
// every node has. Host endpoints such as flannel's cbr0_ep are attached to it.
func (s *Service) HostNamespace() *Namespace {
	if s.hostNamespace != "" { // the first one, as long as it is there
		if n := s.namespaces.get(s.hostNamespace); n != nil && n.Type == NamespaceHostDefault {
			return n
		}
	}
	if n := first(s.namespaces.list(func(n *Namespace) bool { return n.Type == NamespaceHostDefault })); n != nil {
		s.hostNamespace = n.ID
		return n
	}
	return s.addNamespace(&Namespace{Type: NamespaceHostDefault})
}

// DeleteNamespace deletes a namespace and detaches its endpoints.
func (s *Service) DeleteNamespace(id string) error {
	n := s.Namespace(id)
	if n == nil {
		return ErrElementNotFound.withf("hcnDeleteNamespace", "no namespace has the id %s", id)
	}
	for _, e := range n.Endpoints() {
		if s.Endpoint(e) != nil {
			if err := s.DetachEndpoint(e); err != nil {
				return err
			}
		}
	}
	s.namespaces.remove(n.ID)
	s.changed(Change{Kind: KindNamespace, ID: n.ID, What: Deleted})
	return nil
}

// AttachEndpoint puts an endpoint into a namespace; its switch port works from
// then on (state 3).
func (s *Service) AttachEndpoint(endpointID, namespaceID string) error {
	const op = "hcnModifyNamespace"
	e, n := s.Endpoint(endpointID), s.Namespace(namespaceID)
	switch {
	case e == nil:
		return ErrEndpointNotFound.withf(op, "no endpoint has the id %s", endpointID)
	case n == nil:
		return ErrElementNotFound.withf(op, "no namespace has the id %s", namespaceID)
	case e.Remote():
		return ErrInvalidRemoteEndpointOp.withf(op, "endpoint %s is on another node", nameAndID(e.Name, e.ID))
	case e.HostComputeNamespace != "":
		return ErrEndpointAlreadyAttached.withf(op, "endpoint %s is in namespace %s", nameAndID(e.Name, e.ID), e.HostComputeNamespace)
	}
	e, n = e.clone(), n.clone()
	e.HostComputeNamespace, e.State = n.ID, StateAttachedSharing
	n.Resources = append(n.Resources, NamespaceResource{Type: "Endpoint", Data: NamespaceResourceData{Id: e.ID}})
	s.endpoints.put(e.ID, e)
	s.namespaces.put(n.ID, n)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified})
	return nil
}

// AttachContainer is the call of HNS v1 for a container without a namespace.
func (s *Service) AttachContainer(endpointID, container string) error {
	const op = "hnsCall"
	e := s.Endpoint(endpointID)
	switch {
	case e == nil:
		return ErrEndpointNotFound.withf(op, "no endpoint has the id %s", endpointID)
	case e.Remote():
		return ErrInvalidRemoteEndpointOp.withf(op, "endpoint %s is on another node", nameAndID(e.Name, e.ID))
	case slices.Contains(e.SharedContainers, container):
		return ErrEndpointAlreadyAttached.withf(op, "endpoint %s is attached to %s", nameAndID(e.Name, e.ID), container)
	}
	e = e.clone()
	e.SharedContainers = append(e.SharedContainers, container)
	e.State = StateAttachedSharing
	s.endpoints.put(e.ID, e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified})
	return nil
}

// DetachEndpoint takes an endpoint out of its namespace and containers; its
// switch port is removed.
func (s *Service) DetachEndpoint(endpointID string) error {
	e := s.Endpoint(endpointID)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnModifyNamespace", "no endpoint has the id %s", endpointID)
	}
	if n := s.Namespace(e.HostComputeNamespace); n != nil {
		s.dropResource(n, "Endpoint", e.ID)
	}
	e = e.clone()
	e.HostComputeNamespace, e.SharedContainers, e.State = "", nil, StateDetached
	s.endpoints.put(e.ID, e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified})
	return nil
}

func (s *Service) dropResource(n *Namespace, typ, id string) {
	n = n.clone()
	n.Resources = slices.DeleteFunc(n.Resources, func(r NamespaceResource) bool {
		return strings.EqualFold(r.Type, typ) && normID(r.Data.Id) == normID(id)
	})
	s.namespaces.put(n.ID, n)
}

// DetachContainer is the v1 call that ends AttachContainer for one container. The
// endpoint is detached when no container and no namespace holds it any more.
func (s *Service) DetachContainer(endpointID, container string) error {
	e := s.Endpoint(endpointID)
	if e == nil {
		return ErrEndpointNotFound.withf("hnsCall", "no endpoint has the id %s", endpointID)
	}
	var left []string
	for _, c := range e.SharedContainers {
		if c != container {
			left = append(left, c)
		}
	}
	if len(left) == len(e.SharedContainers) {
		return ErrElementNotFound.withf("hnsCall", "endpoint %s is not attached to %s", nameAndID(e.Name, e.ID), container)
	}
	if len(left) == 0 && e.HostComputeNamespace == "" {
		return s.DetachEndpoint(e.ID)
	}
	e = e.clone()
	e.SharedContainers = left
	s.endpoints.put(e.ID, e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified})
	return nil
}
