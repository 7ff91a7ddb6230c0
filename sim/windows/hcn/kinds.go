package hcn

import (
	"encoding/json"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// objectKind is all that this package does with one kind of object of HCN v2. Everything
// that depends on the kind is in its row of objectKinds.
type objectKind interface {
	// hnsKind is the kind in package hns.
	hnsKind() hns.Kind
	// absent is the error for an id that no object has.
	absent() *hns.Error
	// get returns an object by id, or nil; all returns every object in the order of creation.
	get(svc *hns.Service, id string) any
	all(svc *hns.Service) []any
	id(object any) string
	// field returns a field that programs filter by, its key in lower case; ok is false for
	// others, which views have.
	field(object any, key string) (value string, ok bool)
	// v1 returns the object as HNS v1 shows it, nil for a kind that v1 does not have.
	v1(svc *hns.Service, object any) any
	create(svc *hns.Service, op string, o *operation) (id string, err error)
	modify(svc *hns.Service, op string, o *operation) error
}

// objectKinds has a row for each kind of HCN v2.
var objectKinds = map[Kind]objectKind{
	Network: &kindOf[hns.Network]{
		kind: hns.KindNetwork, notFound: hns.ErrNetworkNotFound,
		one: (*hns.Service).Network, list: (*hns.Service).ListNetworks, add: (*hns.Service).CreateNetwork,
		idAt: func(n *hns.Network) *string { return &n.ID },
		fields: map[string]func(*hns.Network) string{
			"name": func(n *hns.Network) string { return n.Name },
			"type": func(n *hns.Network) string { return string(n.Type) },
		},
		show:   func(_ *hns.Service, n *hns.Network) any { return hns.NetworkV1(n) },
		change: modifyNetwork,
	},
	Endpoint: &kindOf[hns.Endpoint]{
		kind: hns.KindEndpoint, notFound: hns.ErrEndpointNotFound,
		one: (*hns.Service).Endpoint, list: (*hns.Service).ListEndpoints, add: (*hns.Service).CreateEndpoint,
		// The network is that of the handle; the settings name it again or not at all.
		before: func(e *hns.Endpoint, o *operation) { e.HostComputeNetwork = o.Network },
		idAt:   func(e *hns.Endpoint) *string { return &e.ID },
		fields: map[string]func(*hns.Endpoint) string{
			"name":                 func(e *hns.Endpoint) string { return e.Name },
			"virtualnetwork":       func(e *hns.Endpoint) string { return e.HostComputeNetwork },
			"hostcomputenetwork":   func(e *hns.Endpoint) string { return e.HostComputeNetwork },
			"hostcomputenamespace": func(e *hns.Endpoint) string { return e.HostComputeNamespace },
		},
		show: func(svc *hns.Service, e *hns.Endpoint) any {
			return hns.EndpointV1(e, svc.Network(e.HostComputeNetwork))
		},
		change: modifyEndpoint,
	},
	Namespace: &kindOf[hns.Namespace]{
		kind: hns.KindNamespace,
		one:  (*hns.Service).Namespace, list: (*hns.Service).ListNamespaces, add: (*hns.Service).CreateNamespace,
		idAt:   func(n *hns.Namespace) *string { return &n.ID },
		change: byRequest((*hns.Service).ModifyNamespace),
	},
	LoadBalancer: &kindOf[hns.LoadBalancer]{
		kind: hns.KindLoadBalancer,
		one:  (*hns.Service).LoadBalancer, list: (*hns.Service).ListLoadBalancers, add: (*hns.Service).CreateLoadBalancer,
		idAt:   func(l *hns.LoadBalancer) *string { return &l.ID },
		show:   func(_ *hns.Service, l *hns.LoadBalancer) any { return hns.PolicyListV1(l) },
		change: modifyLoadBalancer,
	},
	SdnRoute: &kindOf[hns.Route]{
		kind: hns.KindRoute,
		one:  (*hns.Service).Route, list: (*hns.Service).ListRoutes, add: (*hns.Service).CreateRoute,
		idAt:   func(r *hns.Route) *string { return &r.ID },
		show:   func(_ *hns.Service, r *hns.Route) any { return hns.RoutePolicyListV1(r) },
		change: byRequest((*hns.Service).ModifyRoute),
	},
}

// kindOf is an objectKind whose objects are of type T.
type kindOf[T any] struct {
	kind     hns.Kind
	notFound *hns.Error // nil is ErrElementNotFound
	one      func(svc *hns.Service, id string) *T
	list     func(svc *hns.Service, keep func(*T) bool) []*T
	add      func(svc *hns.Service, object T) (*T, error)
	before   func(object *T, o *operation) // nil changes nothing before add
	idAt     func(*T) *string
	fields   map[string]func(*T) string
	show     func(*hns.Service, *T) any // nil for a kind that v1 does not have
	change   func(svc *hns.Service, op string, o *operation) error
}

func (k *kindOf[T]) hnsKind() hns.Kind { return k.kind }

func (k *kindOf[T]) absent() *hns.Error {
	if k.notFound == nil {
		return hns.ErrElementNotFound
	}
	return k.notFound
}

func (k *kindOf[T]) get(svc *hns.Service, id string) any {
	if v := k.one(svc, id); v != nil {
		return v
	}
	return nil
}

func (k *kindOf[T]) all(svc *hns.Service) []any {
	var out []any
	for _, v := range k.list(svc, nil) {
		out = append(out, v)
	}
	return out
}

func (k *kindOf[T]) id(object any) string { return *k.idAt(object.(*T)) }

func (k *kindOf[T]) field(object any, key string) (string, bool) {
	if key == "id" {
		return k.id(object), true
	}
	if f := k.fields[key]; f != nil {
		return f(object.(*T)), true
	}
	return "", false
}

func (k *kindOf[T]) v1(svc *hns.Service, object any) any {
	if k.show == nil {
		return nil
	}
	return k.show(svc, object.(*T))
}

func (k *kindOf[T]) modify(svc *hns.Service, op string, o *operation) error {
	return k.change(svc, op, o)
}

// create follows hcn.create-id.
func (k *kindOf[T]) create(svc *hns.Service, op string, o *operation) (string, error) {
	var v T
	if err := json.Unmarshal([]byte(o.text(0)), &v); err != nil {
		return "", badSettings(op, o.text(0), err)
	}
	id := k.idAt(&v)
	if o.ID != "" {
		*id = o.ID
	} else if *id != "" {
		g, err := ParseGUID(*id)
		if err != nil {
			return "", errorWith(hns.ErrInvalidParam, op, "ID: "+err.Error())
		}
		*id = g.String()
	}
	if k.before != nil {
		k.before(&v, o)
	}
	made, err := k.add(svc, v)
	if err != nil {
		return "", err
	}
	return *k.idAt(made), nil
}

// byRequest modifies an object by a request around the settings.
func byRequest(modify func(svc *hns.Service, id string, req hns.ModifyRequest) error) func(*hns.Service, string, *operation) error {
	return func(svc *hns.Service, op string, o *operation) error {
		req, err := modifyRequest(op, o)
		if err != nil {
			return err
		}
		return modify(svc, o.ID, req)
	}
}

func modifyRequest(op string, o *operation) (req hns.ModifyRequest, err error) {
	if err := json.Unmarshal([]byte(o.text(0)), &req); err != nil {
		return req, errorWith(hns.ErrInvalidJSON, op, err.Error())
	}
	return req, nil
}

// modifyLoadBalancer takes the settings as the whole load balancer, without a request
// around it (microsoft/hnslib hcn/hcnloadbalancer.go Update).
func modifyLoadBalancer(svc *hns.Service, _ string, o *operation) error {
	return svc.ModifyLoadBalancer(o.ID, hns.ModifyRequest{Settings: json.RawMessage(o.text(0))})
}

func modifyNetwork(svc *hns.Service, op string, o *operation) error {
	req, err := modifyRequest(op, o)
	switch {
	case err != nil:
		return err
	case strings.EqualFold(req.ResourceType, "Extension"):
		return modifyExtension(svc, op, o.ID, req)
	}
	return svc.ModifyNetwork(o.ID, req)
}

func modifyEndpoint(svc *hns.Service, op string, o *operation) error {
	req, err := modifyRequest(op, o)
	switch {
	case err != nil:
		return err
	case strings.EqualFold(req.ResourceType, "Port"):
		return modifyPort(svc, op, o.ID, req)
	}
	return svc.ModifyEndpoint(o.ID, req)
}
