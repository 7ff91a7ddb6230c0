package hns

import (
	"encoding/json"
)

// Create makes an object of a kind from HCN v2 JSON and returns its id. Fields
// that HCN does not know are ignored, as HCN does.
func (s *Service) Create(kind Kind, data []byte) (string, error) {
	switch kind {
	case KindNetwork:
		return create(data, "hcnCreateNetwork", s.CreateNetwork, func(n *Network) string { return n.ID })
	case KindEndpoint:
		return create(data, "hcnCreateEndpoint", s.CreateEndpoint, func(e *Endpoint) string { return e.ID })
	case KindNamespace:
		return create(data, "hcnCreateNamespace", s.CreateNamespace, func(n *Namespace) string { return n.ID })
	case KindLoadBalancer:
		return create(data, "hcnCreateLoadBalancer", s.CreateLoadBalancer, func(l *LoadBalancer) string { return l.ID })
	case KindRoute:
		return create(data, "hcnCreateRoute", s.CreateRoute, func(r *Route) string { return r.ID })
	}
	return "", ErrRequestUnsupported.withf("hcnCreate", "there is no kind %q; there are network, endpoint, namespace, loadBalancer, route",
		kind)
}

func create[T any](data []byte, op string, make func(T) (*T, error), id func(*T) string) (string, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return "", ErrInvalidJSON.withf(op, "%v", err)
	}
	made, err := make(v)
	if err != nil {
		return "", err
	}
	return id(made), nil
}

// Delete deletes an object by kind and id.
func (s *Service) Delete(kind Kind, id string) error {
	switch kind {
	case KindNetwork:
		return s.DeleteNetwork(id)
	case KindEndpoint:
		return s.DeleteEndpoint(id)
	case KindNamespace:
		return s.DeleteNamespace(id)
	case KindLoadBalancer:
		return s.DeleteLoadBalancer(id)
	case KindRoute:
		return s.DeleteRoute(id)
	}
	return ErrRequestUnsupported.withf("hcnDelete", "there is no kind %q", kind)
}
