package hcn

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// operation is a call whose handle has been looked up. What it does depends on
// nothing but the objects of the service, so a journal of operations makes the
// same objects again.
type operation struct {
	Verb verb
	Kind Kind `json:",omitempty"`
	// ID is the object, or for Create the id that the caller asks for; Network
	// is the network of a new endpoint.
	ID      string   `json:",omitempty"`
	Network string   `json:",omitempty"`
	Texts   []string `json:",omitempty"`
}

// restart is written to a journal when a new process begins.
const restart verb = 255

// changes reports whether the operation can change an object.
func (o *operation) changes() bool {
	switch o.Verb {
	case verbCreate, verbModify, verbDelete, restart:
		return true
	case verbHNSCall:
		return !strings.EqualFold(o.text(0), "GET")
	}
	return false
}

func (o *operation) text(i int) string {
	if i < len(o.Texts) {
		return o.Texts[i]
	}
	return ""
}

// hnsKinds are the kinds of HCN v2 in package hns.
var hnsKinds = map[Kind]hns.Kind{
	Network: hns.KindNetwork, Endpoint: hns.KindEndpoint, Namespace: hns.KindNamespace,
	LoadBalancer: hns.KindLoadBalancer, SdnRoute: hns.KindRoute,
}

// apply does an operation.
func apply(svc *hns.Service, o *operation) (answer, error) {
	switch o.Verb {
	case verbHNSCall:
		return answer{output: callV1(svc, o.text(0), o.text(1), o.text(2))}, nil
	case verbSnapshot:
		return answer{output: svc.Snapshot()}, nil
	case restart:
		return answer{}, restarted(svc)
	}
	op := callName(o.Verb, o.Kind)
	if !svc.Build().Has(builds.V2API) {
		return answer{}, with(hns.ErrNotImplemented, op, svc.Build().String()+" has no HCN v2: call HNSCall")
	}
	kind, ok := hnsKinds[o.Kind]
	if !ok {
		return answer{}, with(hns.ErrRequestUnsupported, op)
	}
	switch o.Verb {
	case verbEnumerate:
		ids, err := enumerate(svc, o.Kind, o.text(0))
		return answer{output: ids}, err
	case verbCreate:
		id, err := create(svc, op, o)
		return answer{id: id}, err
	case verbOpen:
		_, err := existing(svc, op, o)
		return answer{id: o.ID}, err
	case verbModify:
		return answer{}, modify(svc, op, o)
	case verbQuery:
		v, err := query(svc, op, o)
		return answer{output: v}, err
	case verbDelete:
		return answer{}, svc.Delete(kind, o.ID)
	}
	return answer{}, with(hns.ErrRequestUnsupported, op)
}

// existing returns the object of an operation.
func existing(svc *hns.Service, op string, o *operation) (any, error) {
	if v := object(svc, o.Kind, o.ID); v != nil {
		return v, nil
	}
	return nil, notFound(o.Kind, op, o.ID)
}

// object returns an object by id, or nil.
func object(svc *hns.Service, k Kind, id string) any {
	switch k {
	case Network:
		if v := svc.Network(id); v != nil {
			return v
		}
	case Endpoint:
		if v := svc.Endpoint(id); v != nil {
			return v
		}
	case Namespace:
		if v := svc.Namespace(id); v != nil {
			return v
		}
	case LoadBalancer:
		if v := svc.LoadBalancer(id); v != nil {
			return v
		}
	case SdnRoute:
		if v := svc.Route(id); v != nil {
			return v
		}
	}
	return nil
}

func notFound(k Kind, op, id string) error {
	e := hns.ErrElementNotFound
	switch k {
	case Network:
		e = hns.ErrNetworkNotFound
	case Endpoint:
		e = hns.ErrEndpointNotFound
	}
	return with(e, op, "no "+strings.ToLower(kindNames[k])+" has the id "+id)
}

// create makes an object of its settings.
func create(svc *hns.Service, op string, o *operation) (string, error) {
	switch o.Kind {
	case Network:
		return created(op, o, svc.CreateNetwork, func(n *hns.Network) *string { return &n.ID })
	case Endpoint:
		// The network is that of the handle; the settings name it again or not at all.
		on := func(e hns.Endpoint) (*hns.Endpoint, error) {
			e.HostComputeNetwork = o.Network
			return svc.CreateEndpoint(e)
		}
		return created(op, o, on, func(e *hns.Endpoint) *string { return &e.ID })
	case Namespace:
		return created(op, o, svc.CreateNamespace, func(n *hns.Namespace) *string { return &n.ID })
	case LoadBalancer:
		return created(op, o, svc.CreateLoadBalancer, func(l *hns.LoadBalancer) *string { return &l.ID })
	}
	return created(op, o, svc.CreateRoute, func(r *hns.Route) *string { return &r.ID })
}

// created follows hcn.create-id.
func created[T any](op string, o *operation, create func(T) (*T, error), id func(*T) *string) (string, error) {
	var v T
	if err := json.Unmarshal([]byte(o.text(0)), &v); err != nil {
		return "", badSettings(op, o.text(0), err)
	}
	if o.ID != "" {
		*id(&v) = o.ID
	} else if *id(&v) != "" {
		g, err := ParseGUID(*id(&v))
		if err != nil {
			return "", with(hns.ErrInvalidParam, op, "ID: "+err.Error())
		}
		*id(&v) = g.String()
	}
	made, err := create(v)
	if err != nil {
		return "", err
	}
	return *id(made), nil
}

// badSettings says what is wrong with settings that could not be read.
func badSettings(op, text string, err error) error {
	var fields map[string]json.RawMessage
	if notObject := json.Unmarshal([]byte(text), &fields); notObject != nil {
		return with(hns.ErrInvalidJSON, op, "the settings are not a JSON object: "+notObject.Error())
	}
	return with(hns.ErrInvalidJSON, op, err.Error())
}

func modify(svc *hns.Service, op string, o *operation) error {
	if _, err := existing(svc, op, o); err != nil {
		return err
	}
	if o.Kind == LoadBalancer {
		// The settings are the whole load balancer, without a request around it
		// (microsoft/hnslib hcn/hcnloadbalancer.go Update).
		return svc.ModifyLoadBalancer(o.ID, hns.ModifyRequest{Settings: json.RawMessage(o.text(0))})
	}
	var req hns.ModifyRequest
	if err := json.Unmarshal([]byte(o.text(0)), &req); err != nil {
		return with(hns.ErrInvalidJSON, op, err.Error())
	}
	switch o.Kind {
	case Network:
		if strings.EqualFold(req.ResourceType, "Extension") {
			return modifyExtension(svc, op, o.ID, req)
		}
		return svc.ModifyNetwork(o.ID, req)
	case Endpoint:
		if strings.EqualFold(req.ResourceType, "Port") {
			return modifyPort(svc, op, o.ID, req)
		}
		return svc.ModifyEndpoint(o.ID, req)
	case Namespace:
		return svc.ModifyNamespace(o.ID, req)
	}
	return svc.ModifyRoute(o.ID, req)
}

// modifyExtension follows hcn.network-extension.
func modifyExtension(svc *hns.Service, op, id string, req hns.ModifyRequest) error {
	var v struct {
		Id        string
		IsEnabled bool
	}
	if err := json.Unmarshal(req.Settings, &v); err != nil {
		return with(hns.ErrInvalidJSON, op, "Settings: "+err.Error())
	}
	if _, err := ParseGUID(v.Id); err != nil {
		return with(hns.ErrInvalidParam, op, "Settings: Id: "+err.Error())
	}
	// Of an extension that is removed or set again only the id counts.
	had := hns.NewPolicy(hns.VSwitchExtensionSettings{ExtensionID: v.Id})
	has := hns.NewPolicy(hns.VSwitchExtensionSettings{ExtensionID: v.Id, Enable: v.IsEnabled})
	switch {
	case strings.EqualFold(req.RequestType, hns.RequestAdd):
		return svc.AddNetworkPolicies(id, has)
	case strings.EqualFold(req.RequestType, hns.RequestRemove):
		return svc.RemoveNetworkPolicies(id, had)
	case strings.EqualFold(req.RequestType, hns.RequestUpdate), strings.EqualFold(req.RequestType, hns.RequestRefresh):
		if err := svc.RemoveNetworkPolicies(id, had); err != nil && hnsError(op, err).Code != hns.ErrPolicyNotFound.Code {
			return err
		}
		return svc.AddNetworkPolicies(id, has)
	}
	return with(hns.ErrRequestUnsupported, op, req.RequestType+" of Extension; it must be Add, Remove, Update or Refresh")
}

// modifyPort follows hcn.endpoint-port.
func modifyPort(svc *hns.Service, op, id string, req hns.ModifyRequest) error {
	var v struct{ PortId, VirtualNicName, VirtualMachineId string }
	if len(req.Settings) > 0 {
		if err := json.Unmarshal(req.Settings, &v); err != nil {
			return with(hns.ErrInvalidJSON, op, "Settings: "+err.Error())
		}
	}
	owner := v.VirtualNicName
	if owner == "" {
		owner = v.VirtualMachineId
	}
	if owner == "" {
		return with(hns.ErrInvalidParam, op, "Settings name neither VirtualNicName nor VirtualMachineId")
	}
	switch {
	case strings.EqualFold(req.RequestType, hns.RequestAdd):
		return svc.AttachContainer(id, owner)
	case strings.EqualFold(req.RequestType, hns.RequestRemove):
		return svc.DetachContainer(id, owner)
	}
	return with(hns.ErrRequestUnsupported, op, req.RequestType+" of Port; an endpoint's port takes Add and Remove")
}

func query(svc *hns.Service, op string, o *operation) (any, error) {
	if _, err := parseQuery(op, o.text(0)); err != nil {
		return nil, err
	}
	return existing(svc, op, o)
}

// restarted does what a restart of HNS does to the objects (hcn.non-persistent).
func restarted(svc *hns.Service) error {
	var errs []error
	for _, n := range svc.ListNetworks(func(n *hns.Network) bool { return n.Flags&hns.NetworkNonPersistent != 0 }) {
		errs = append(errs, svc.DeleteNetwork(n.ID))
	}
	svc.Restart()
	return errors.Join(errs...)
}
