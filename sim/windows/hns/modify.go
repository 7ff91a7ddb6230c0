package hns

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// The request types of a Modify call.
const (
	RequestAdd     = "Add"
	RequestRemove  = "Remove"
	RequestUpdate  = "Update"
	RequestRefresh = "Refresh"

	requestReplace = "winlab:replace" // HNS v1's update: the whole list
)

// ModifyNetwork changes a network: its policies or its DNS settings.
func (s *Service) ModifyNetwork(id string, req ModifyRequest) error {
	const op = "hcnModifyNetwork"
	n := s.Network(id)
	if n == nil {
		return ErrNetworkNotFound.withf(op, "no network has the id %s", id)
	}
	switch {
	case strings.EqualFold(req.ResourceType, "Policy"):
		ps, err := requestPolicies(op, req)
		if err != nil {
			return err
		}
		return s.changeNetworkPolicies(op, n, req.RequestType, ps)
	case strings.EqualFold(req.ResourceType, "DNS"):
		var d DNS
		if err := json.Unmarshal(orEmpty(req.Settings), &d); err != nil {
			return ErrInvalidJSON.withf(op, "Settings: %v", err)
		}
		n = n.clone()
		n.Dns = d
		s.networks.put(n.ID, n)
		s.changed(Change{Kind: KindNetwork, ID: n.ID, What: Modified})
		return nil
	}
	return ErrRequestUnsupported.withf(op, "ResourceType %q; a network takes Policy or DNS", req.ResourceType)
}

// ModifyEndpoint changes an endpoint's policies.
func (s *Service) ModifyEndpoint(id string, req ModifyRequest) error {
	const op = "hcnModifyEndpoint"
	e := s.Endpoint(id)
	if e == nil {
		return ErrEndpointNotFound.withf(op, "no endpoint has the id %s", id)
	}
	if !strings.EqualFold(req.ResourceType, "Policy") {
		return ErrRequestUnsupported.withf(op, "ResourceType %q; an endpoint takes Policy", req.ResourceType)
	}
	ps, err := requestPolicies(op, req)
	if err != nil {
		return err
	}
	return s.changeEndpointPolicies(op, e, req.RequestType, ps)
}

// ModifyNamespace attaches and detaches endpoints: ResourceType Endpoint,
// Settings {"EndpointId": id}. For ResourceType Container they are
// {"ContainerId": id}.
func (s *Service) ModifyNamespace(id string, req ModifyRequest) error {
	const op = "hcnModifyNamespace"
	n := s.Namespace(id)
	if n == nil {
		return ErrElementNotFound.withf(op, "no namespace has the id %s", id)
	}
	var v struct{ EndpointId, ContainerId string }
	if err := json.Unmarshal(orEmpty(req.Settings), &v); err != nil {
		return ErrInvalidJSON.withf(op, "Settings: %v", err)
	}
	add, remove := strings.EqualFold(req.RequestType, RequestAdd), strings.EqualFold(req.RequestType, RequestRemove)
	switch {
	case strings.EqualFold(req.ResourceType, "Endpoint") && add:
		return s.AttachEndpoint(v.EndpointId, n.ID)
	case strings.EqualFold(req.ResourceType, "Endpoint") && remove:
		if e := s.Endpoint(v.EndpointId); e == nil || e.HostComputeNamespace != n.ID {
			return ErrEndpointNotFound.withf(op, "namespace %s holds no endpoint %s", n.ID, v.EndpointId)
		}
		return s.DetachEndpoint(v.EndpointId)
	case strings.EqualFold(req.ResourceType, "Container") && remove:
		s.dropResource(n, "Container", v.ContainerId)
	case strings.EqualFold(req.ResourceType, "Container") && add:
		n = n.clone()
		n.Resources = append(n.Resources, NamespaceResource{Type: "Container", Data: NamespaceResourceData{Id: v.ContainerId}})
		s.namespaces.put(n.ID, n)
	default:
		return ErrRequestUnsupported.withf(op, "%s of %q; a namespace takes Add and Remove of Endpoint and Container", req.RequestType, req.ResourceType)
	}
	s.changed(Change{Kind: KindNamespace, ID: n.ID, What: Modified})
	return nil
}

// ModifyLoadBalancer changes a load balancer in place; Settings are the whole
// load balancer. See UpdateLoadBalancer.
func (s *Service) ModifyLoadBalancer(id string, req ModifyRequest) error {
	var l LoadBalancer
	if err := json.Unmarshal(orEmpty(req.Settings), &l); err != nil {
		return ErrInvalidJSON.withf("hcnModifyLoadBalancer", "Settings: %v", err)
	}
	_, err := s.UpdateLoadBalancer(id, l)
	return err
}

// ModifyRoute is refused: HCN has the call, but no source says what it does.
func (s *Service) ModifyRoute(id string, _ ModifyRequest) error {
	if s.Route(id) == nil {
		return ErrElementNotFound.withf("hcnModifyRoute", "no route has the id %s", id)
	}
	return ErrRequestUnsupported.withf("hcnModifyRoute", "delete the route and create it again")
}

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

func (s *Service) changeNetworkPolicies(op string, n *Network, request string, ps []Policy) error {
	m := &mistakes{}
	ps = slices.Clone(ps)
	n = n.clone()
	if !strings.EqualFold(request, RequestRemove) {
		s.newPolicyCheck(m, onNetwork, n).all(ps)
	}
	n.Policies = combine(m, n.Policies, request, ps)
	if err := m.err(op); err != nil {
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
		s.newPolicyCheck(m, onEndpoint, s.Network(e.HostComputeNetwork)).all(ps)
		s.checkPublished(e.ID, ps, m)
	}
	e.Policies = combine(m, e.Policies, request, ps)
	if err := m.err(op); err != nil {
		return err
	}
	s.endpoints.put(e.ID, e)
	s.pool.release(loopbackOwner(e.ID))
	s.takeLoopbackPorts(e)
	s.changed(Change{Kind: KindEndpoint, ID: e.ID, What: Modified, PolicyOnly: true, ACLs: len(PoliciesOf(ps, PolicyACL)) > 0})
	return nil
}

// combine applies a request to a list of policies (FactUpdateReplaces).
func combine(m *mistakes, have []Policy, request string, ps []Policy) []Policy {
	switch {
	case strings.EqualFold(request, RequestAdd):
		return append(have, ps...)
	case strings.EqualFold(request, RequestRemove):
		for _, p := range ps {
			before := len(have)
			have = slices.DeleteFunc(have, func(h Policy) bool { return h.Matches(p) })
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

func requestPolicies(op string, req ModifyRequest) ([]Policy, error) {
	if req.RequestType == requestReplace {
		return nil, ErrRequestUnsupported.withf(op, "RequestType %q; it must be Add, Remove, Update or Refresh", req.RequestType)
	}
	var v struct{ Policies []Policy }
	if err := json.Unmarshal(orEmpty(req.Settings), &v); err != nil {
		return nil, ErrInvalidJSON.withf(op, "Settings: %v", err)
	}
	if len(v.Policies) == 0 {
		return nil, ErrInvalidPolicy.withf(op, `Settings hold no policies; write {"Policies":[{"Type":...,"Settings":{...}}]}`)
	}
	return v.Policies, nil
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
