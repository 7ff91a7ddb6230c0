package hns

import (
	"bytes"
	"encoding/json"
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

// ModifyRequest is the body of a Modify call. ResourceType is "Policy", "DNS",
// "Port", "Endpoint" or "Container"; RequestType is "Add", "Remove", "Update"
// or "Refresh".
type ModifyRequest struct {
	ResourceType string          `json:"ResourceType,omitempty"`
	RequestType  string          `json:"RequestType,omitempty"`
	Settings     json.RawMessage `json:"Settings,omitempty"`
}

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
		return ErrRequestUnsupported.withf(op, "%s of %q; a namespace takes Add and Remove of Endpoint and Container", req.RequestType,
			req.ResourceType)
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
