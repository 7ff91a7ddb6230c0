package hns

import (
	"slices"
	"strings"
)

// AddNetworkPolicies adds policies to a network, keeping their origins.
func (s *Service) AddNetworkPolicies(id string, ps ...Policy) error {
	n := s.Network(id)
	if n == nil {
		return ErrNetworkNotFound.withf("hcnModifyNetwork", "no network has the id %s", id)
	}
	return s.changeNetworkPolicies("hcnModifyNetwork", n, RequestAdd, ps)
}

// RemoveNetworkPolicies removes the network's policies that match one of ps: the
// type is equal, and so is every field of the settings that ps gives.
func (s *Service) RemoveNetworkPolicies(id string, ps ...Policy) error {
	n := s.Network(id)
	if n == nil {
		return ErrNetworkNotFound.withf("hcnModifyNetwork", "no network has the id %s", id)
	}
	return s.changeNetworkPolicies("hcnModifyNetwork", n, RequestRemove, ps)
}

// AddEndpointPolicies adds policies to an endpoint, keeping their origins.
func (s *Service) AddEndpointPolicies(id string, ps ...Policy) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnModifyEndpoint", "no endpoint has the id %s", id)
	}
	return s.changeEndpointPolicies("hcnModifyEndpoint", e, RequestAdd, ps)
}

// RemoveEndpointPolicies is RemoveNetworkPolicies for an endpoint.
func (s *Service) RemoveEndpointPolicies(id string, ps ...Policy) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnModifyEndpoint", "no endpoint has the id %s", id)
	}
	return s.changeEndpointPolicies("hcnModifyEndpoint", e, RequestRemove, ps)
}

// UpdateEndpointPolicies replaces the endpoint's policies of the types that ps
// holds. Felix and NPM apply ACLs this way.
func (s *Service) UpdateEndpointPolicies(id string, ps ...Policy) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hcnModifyEndpoint", "no endpoint has the id %s", id)
	}
	return s.changeEndpointPolicies("hcnModifyEndpoint", e, RequestUpdate, ps)
}

// ReplaceEndpointPolicies makes ps the policies of the endpoint. That is what the
// update call of HNS v1 does with the list it is sent.
func (s *Service) ReplaceEndpointPolicies(id string, ps ...Policy) error {
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf("hnsCall", "no endpoint has the id %s", id)
	}
	return s.changeEndpointPolicies("hnsCall", e, requestReplace, ps)
}

func (s *Service) changeNetworkPolicies(op string, n *Network, request string, ps []Policy) error {
	m := &mistakes{}
	ps = slices.Clone(ps)
	n = n.clone()
	if !strings.EqualFold(request, RequestRemove) {
		s.newPolicyCheck(m, onNetwork, n).checkAll(ps)
	}
	n.Policies = combine(m, n.Policies, request, ps)
	if err := s.refusal(m, op); err != nil {
		return err
	}
	s.networks.put(n.ID, n)
	s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Modified, PolicyOnly: true, ACLs: len(PoliciesOf(ps, PolicyACL)) > 0})
	return nil
}

func (s *Service) changeEndpointPolicies(op string, e *Endpoint, request string, ps []Policy) error {
	m := &mistakes{}
	ps = slices.Clone(ps)
	e = e.clone()
	if !strings.EqualFold(request, RequestRemove) {
		n := s.Network(e.HostComputeNetwork)
		s.newPolicyCheck(m, onEndpoint, n).checkAll(ps)
		s.checkPublished(n, e.ID, ps, m)
	}
	e.Policies = combine(m, e.Policies, request, ps)
	if err := s.refusal(m, op); err != nil {
		return err
	}
	s.endpoints.put(e.ID, e)
	s.pool.release(loopbackOwner(e.ID))
	s.takeLoopbackPorts(e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified, PolicyOnly: true, ACLs: len(PoliciesOf(ps, PolicyACL)) > 0})
	return nil
}

// combine applies a request to a list of policies (hns.policy-update-replaces-type).
func combine(m *mistakes, have []Policy, request string, ps []Policy) []Policy {
	switch {
	case strings.EqualFold(request, RequestAdd):
		return append(have, ps...)
	case strings.EqualFold(request, RequestRemove):
		for _, p := range ps {
			before := len(have)
			have = slices.DeleteFunc(have, func(h Policy) bool { return h.matches(p) })
			if len(have) == before {
				m.add(ErrPolicyNotFound, "there is no %s policy %s", p.typ, p.text)
			}
		}
		return have
	case request == requestReplace:
		return slices.Clone(ps)
	case strings.EqualFold(request, RequestUpdate), strings.EqualFold(request, RequestRefresh):
		have = slices.DeleteFunc(have, func(h Policy) bool {
			return slices.ContainsFunc(ps, func(p Policy) bool { return h.Is(p.typ) })
		})
		return append(have, ps...)
	}
	m.add(ErrRequestUnsupported, "RequestType %q; it must be Add, Remove, Update or Refresh", request)
	return have
}
