package hcn

import (
	"encoding/json"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func v1PolicyLists(svc *hns.Service, method, id, request string, unsupported error) (any, error) {
	switch {
	case method == "GET" && id == "":
		all := []hns.V1PolicyList{}
		for _, l := range svc.ListLoadBalancers(nil) {
			all = append(all, hns.PolicyListV1(l))
		}
		for _, r := range svc.ListRoutes(nil) {
			all = append(all, hns.RoutePolicyListV1(r))
		}
		return all, nil
	case method == "GET":
		if l := svc.LoadBalancer(id); l != nil {
			return hns.PolicyListV1(l), nil
		}
		if r := svc.Route(id); r != nil {
			return hns.RoutePolicyListV1(r), nil
		}
		return nil, with(hns.ErrElementNotFound, "hnsCall", "no policy list has the id "+id)
	case method == "DELETE" && id != "":
		if svc.Route(id) != nil {
			return nil, svc.DeleteRoute(id)
		}
		return nil, svc.DeleteLoadBalancer(id)
	case method == "POST" && id == "":
		v, err := decodeV1[hns.V1PolicyList](request)
		if err != nil {
			return nil, err
		}
		lb, route, err := hns.FromPolicyListV1(v)
		switch {
		case err != nil:
			return nil, err
		case lb != nil && route != nil:
			return nil, with(hns.ErrInvalidPolicy, "hnsCall", "a policy list holds ELB or ROUTE policies, not both")
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
		return nil, with(hns.ErrInvalidPolicy, "hnsCall", "the policy list holds neither ELB nor ROUTE policies")
	}
	return nil, unsupported
}

// v1Namespace is a namespace of HNS v1 (hcsshim internal/hns/namespace.go).
type v1Namespace struct {
	ID            string
	IsDefault     bool         `json:",omitempty"`
	ResourceList  []v1Resource `json:",omitempty"`
	CompartmentId uint32       `json:",omitempty"`
}

type v1Resource struct {
	Type string
	Data struct{ ID string }
}

func v1Namespaces(svc *hns.Service, method, id, verb, request string, unsupported error) (any, error) {
	view := func(n *hns.Namespace) v1Namespace {
		v := v1Namespace{ID: strings.ToUpper(n.ID), IsDefault: n.Type == hns.NamespaceHostDefault || n.Type == hns.NamespaceGuestDefault, CompartmentId: n.NamespaceId}
		for _, r := range n.Resources {
			res := v1Resource{Type: r.Type}
			res.Data.ID = r.Data.Id
			v.ResourceList = append(v.ResourceList, res)
		}
		return v
	}
	switch {
	case method == "GET" && id == "":
		all := []v1Namespace{}
		for _, n := range svc.ListNamespaces(nil) {
			all = append(all, view(n))
		}
		return all, nil
	case method == "POST" && id == "":
		v, err := decodeV1[struct{ IsDefault bool }](request)
		if err != nil {
			return nil, err
		}
		typ := hns.NamespaceHost
		if v.IsDefault {
			typ = hns.NamespaceHostDefault
		}
		n, err := svc.CreateNamespace(hns.Namespace{Type: typ})
		if err != nil {
			return nil, err
		}
		return view(n), nil
	}
	n := svc.Namespace(id)
	if n == nil {
		return nil, notFound(Namespace, "hnsCall", id)
	}
	switch {
	case method == "GET" && verb == "":
		return view(n), nil
	case method == "DELETE" && verb == "":
		return nil, svc.DeleteNamespace(n.ID)
	case method == "POST" && (verb == "addresource" || verb == "removeresource"):
		v, err := decodeV1[v1Resource](request)
		if err != nil {
			return nil, err
		}
		settings, _ := json.Marshal(map[string]string{v.Type + "Id": v.Data.ID}) // strings marshal
		req := hns.ModifyRequest{ResourceType: v.Type, RequestType: hns.RequestAdd, Settings: settings}
		if verb == "removeresource" {
			req.RequestType = hns.RequestRemove
		}
		if err := svc.ModifyNamespace(n.ID, req); err != nil {
			return nil, err
		}
		return view(svc.Namespace(n.ID)), nil
	}
	return nil, unsupported
}
