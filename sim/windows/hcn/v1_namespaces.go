package hcn

import (
	"encoding/json"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

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

// onNamespace is a request about a namespace that exists.
func onNamespace(do func(*hns.Service, *hns.Namespace, v1Call) (any, error)) func(*hns.Service, v1Call) (any, error) {
	return func(svc *hns.Service, c v1Call) (any, error) {
		n := svc.Namespace(c.id)
		if n == nil {
			return nil, notFound(Namespace, opV1, c.id)
		}
		return do(svc, n, c)
	}
}

func namespaceV1(n *hns.Namespace) v1Namespace {
	v := v1Namespace{ID: strings.ToUpper(n.ID), IsDefault: n.Type == hns.NamespaceHostDefault || n.Type == hns.NamespaceGuestDefault,
		CompartmentId: n.NamespaceId}
	for _, r := range n.Resources {
		res := v1Resource{Type: r.Type}
		res.Data.ID = r.Data.Id
		v.ResourceList = append(v.ResourceList, res)
	}
	return v
}

func v1ListNamespaces(svc *hns.Service, _ v1Call) (any, error) {
	all := []v1Namespace{}
	for _, n := range svc.ListNamespaces(nil) {
		all = append(all, namespaceV1(n))
	}
	return all, nil
}

func v1GetNamespace(_ *hns.Service, n *hns.Namespace, _ v1Call) (any, error) {
	return namespaceV1(n), nil
}

func v1CreateNamespace(svc *hns.Service, c v1Call) (any, error) {
	v, err := decodeV1[struct{ IsDefault bool }](c.request)
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
	return namespaceV1(n), nil
}

func v1DeleteNamespace(svc *hns.Service, n *hns.Namespace, _ v1Call) (any, error) {
	return nil, svc.DeleteNamespace(n.ID)
}

func v1AddResource(svc *hns.Service, n *hns.Namespace, c v1Call) (any, error) {
	return changeResource(svc, n, c, hns.RequestAdd)
}

func v1RemoveResource(svc *hns.Service, n *hns.Namespace, c v1Call) (any, error) {
	return changeResource(svc, n, c, hns.RequestRemove)
}

// changeResource makes the request of HCN v2 that means the same.
func changeResource(svc *hns.Service, n *hns.Namespace, c v1Call, request string) (any, error) {
	v, err := decodeV1[v1Resource](c.request)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]string{v.Type + "Id": v.Data.ID})
	if err != nil {
		return nil, err
	}
	req := hns.ModifyRequest{ResourceType: v.Type, RequestType: request, Settings: settings}
	if err := svc.ModifyNamespace(n.ID, req); err != nil {
		return nil, err
	}
	return namespaceV1(svc.Namespace(n.ID)), nil
}
