package hcn

import (
	"encoding/json"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// operation is a call whose handle has been looked up. What it does depends on
// nothing but the objects of the service, so a journal of operations makes the
// same objects again.
type operation struct {
	Verb Verb
	Kind Kind `json:",omitempty"`
	// ID is the object, or for Create the wish of the caller; Network is the
	// network of a new endpoint.
	ID      string   `json:",omitempty"`
	Network string   `json:",omitempty"`
	Texts   []string `json:",omitempty"`
}

// restart is the operation in a journal that stands for a new process.
const restart Verb = 255

// changes reports whether the operation can change an object.
func (o *operation) changes() bool {
	switch o.Verb {
	case Create, Modify, Delete, restart:
		return true
	case HNSCall:
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

var hnsKinds = map[Kind]hns.Kind{
	Network: hns.KindNetwork, Endpoint: hns.KindEndpoint, Namespace: hns.KindNamespace,
	LoadBalancer: hns.KindLoadBalancer, SdnRoute: hns.KindRoute,
}

// KindOf returns the wire's kind of an HNS object, zero for the service itself.
func KindOf(k hns.Kind) Kind {
	for wire, h := range hnsKinds {
		if h == k {
			return wire
		}
	}
	return 0
}

// apply does an operation. It returns the output and, for Create and Open, the
// id of the object.
func apply(svc *hns.Service, o *operation) (output, id string, err error) {
	op := CallName(o.Verb, o.Kind)
	switch o.Verb {
	case HNSCall:
		return callV1(svc, o.text(0), o.text(1), o.text(2)), "", nil
	case Snapshot:
		raw, err := json.Marshal(svc.Snapshot())
		return string(raw), "", err
	case restart:
		restarted(svc)
		return "", "", nil
	}
	if !svc.Build().Has(builds.V2API) {
		return "", "", with(hns.ErrNotImplemented, op, svc.Build().String()+" has no HCN v2: call HNSCall")
	}
	kind, ok := hnsKinds[o.Kind]
	if !ok {
		return "", "", with(hns.ErrRequestUnsupported, op)
	}
	switch o.Verb {
	case Enumerate:
		output, err = enumerate(svc, o.Kind, o.text(0))
	case Create:
		id, err = create(svc, op, kind, o)
	case Open:
		if object(svc, o.Kind, o.ID) == nil {
			err = notFound(o.Kind, op, o.ID)
		}
		id = o.ID
	case Modify:
		err = modify(svc, op, o)
	case Query:
		output, err = query(svc, op, o)
	case Delete:
		err = svc.Delete(kind, o.ID)
	default:
		err = with(hns.ErrRequestUnsupported, op)
	}
	return output, id, err
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

// create follows FactCreateID.
func create(svc *hns.Service, op string, kind hns.Kind, o *operation) (string, error) {
	settings := []byte(o.text(0))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(settings, &fields); err != nil {
		return "", with(hns.ErrInvalidJSON, op, "the settings are no JSON object: "+err.Error())
	}
	set := func(name, value string) {
		for k := range fields {
			if strings.EqualFold(k, name) {
				delete(fields, k)
			}
		}
		fields[name], _ = json.Marshal(value) // a string marshals
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	if o.ID != "" {
		set("ID", o.ID)
	}
	if kind == hns.KindEndpoint {
		// The network is that of the handle; the settings name it again or not at all.
		set("HostComputeNetwork", o.Network)
	}
	for k, raw := range fields {
		var text string
		if !strings.EqualFold(k, "ID") || json.Unmarshal(raw, &text) != nil || text == "" {
			continue
		}
		g, err := ParseGUID(text)
		if err != nil {
			return "", with(hns.ErrInvalidParam, op, "ID: "+err.Error())
		}
		set("ID", g.String())
		break
	}
	settings, _ = json.Marshal(fields) // what was unmarshalled marshals
	return svc.Create(kind, settings)
}

func modify(svc *hns.Service, op string, o *operation) error {
	if object(svc, o.Kind, o.ID) == nil {
		return notFound(o.Kind, op, o.ID)
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

// modifyExtension follows FactExtension.
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
	// Of an extension that is removed or set anew only the id counts.
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

// modifyPort follows FactVMPort.
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

func query(svc *hns.Service, op string, o *operation) (string, error) {
	if _, err := parseQuery(op, o.text(0)); err != nil {
		return "", err
	}
	v := object(svc, o.Kind, o.ID)
	if v == nil {
		return "", notFound(o.Kind, op, o.ID)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", with(errUnexpected, op, err.Error())
	}
	return string(raw), nil
}

// restarted does what a restart of HNS does to the objects (FactNonPersistent).
func restarted(svc *hns.Service) {
	for _, n := range svc.ListNetworks(func(n *hns.Network) bool { return n.Flags&hns.NetworkNonPersistent != 0 }) {
		_ = svc.DeleteNetwork(n.ID) // it is there: the list is from this moment
	}
	svc.Restart()
}
