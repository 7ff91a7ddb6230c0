package hcn

import (
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func v1ListPolicyLists(svc *hns.Service, _ v1Call) (any, error) {
	all := []hns.V1PolicyList{}
	for _, l := range svc.ListLoadBalancers(nil) {
		all = append(all, hns.PolicyListV1(l))
	}
	for _, r := range svc.ListRoutes(nil) {
		all = append(all, hns.RoutePolicyListV1(r))
	}
	return all, nil
}

func v1GetPolicyList(svc *hns.Service, c v1Call) (any, error) {
	if l := svc.LoadBalancer(c.id); l != nil {
		return hns.PolicyListV1(l), nil
	}
	if r := svc.Route(c.id); r != nil {
		return hns.RoutePolicyListV1(r), nil
	}
	return nil, errorWith(hns.ErrElementNotFound, opV1, "no policy list has the id "+c.id)
}

func v1DeletePolicyList(svc *hns.Service, c v1Call) (any, error) {
	if svc.Route(c.id) != nil {
		return nil, svc.DeleteRoute(c.id)
	}
	return nil, svc.DeleteLoadBalancer(c.id)
}

// v1CreatePolicyList makes a load balancer or a route: in HNS v1 both are lists of
// policies.
func v1CreatePolicyList(svc *hns.Service, c v1Call) (any, error) {
	v, err := decodeV1[hns.V1PolicyList](c.request)
	if err != nil {
		return nil, err
	}
	lb, route, err := hns.FromPolicyListV1(v)
	switch {
	case err != nil:
		return nil, err
	case lb != nil && route != nil:
		return nil, errorWith(hns.ErrInvalidPolicy, opV1, "a policy list holds ELB or ROUTE policies, not both")
	case lb != nil:
		made, err := svc.CreateLoadBalancer(*lb)
		if err != nil {
			return nil, err
		}
		return hns.PolicyListV1(made), nil
	case route != nil:
		made, err := svc.CreateRoute(*route)
		if err != nil {
			return nil, err
		}
		return hns.RoutePolicyListV1(made), nil
	}
	return nil, errorWith(hns.ErrInvalidPolicy, opV1, "the policy list holds neither ELB nor ROUTE policies")
}
