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
		return answer{}, errorWith(hns.ErrNotImplemented, op, svc.Build().String()+" does not support HCN v2; call HNSCall")
	}
	kind, ok := objectKinds[o.Kind]
	if !ok {
		return answer{}, errorWith(hns.ErrRequestUnsupported, op)
	}
	switch o.Verb {
	case verbEnumerate:
		ids, err := enumerate(svc, op, kind, o.text(0))
		return answer{output: ids}, err
	case verbCreate:
		id, err := kind.create(svc, op, o)
		return answer{id: id}, err
	case verbOpen:
		_, err := existing(svc, op, o)
		return answer{id: o.ID}, err
	case verbModify:
		if _, err := existing(svc, op, o); err != nil {
			return answer{}, err
		}
		return answer{}, kind.modify(svc, op, o)
	case verbQuery:
		v, err := query(svc, op, o)
		return answer{output: v}, err
	case verbDelete:
		return answer{}, svc.Delete(kind.hnsKind(), o.ID)
	}
	return answer{}, errorWith(hns.ErrRequestUnsupported, op)
}

// existing returns the object of an operation.
func existing(svc *hns.Service, op string, o *operation) (any, error) {
	if v := objectKinds[o.Kind].get(svc, o.ID); v != nil {
		return v, nil
	}
	return nil, notFound(o.Kind, op, o.ID)
}

func notFound(k Kind, op, id string) error {
	return errorWith(objectKinds[k].absent(), op, "no "+strings.ToLower(kindNames[k])+" has the id "+id)
}

// badSettings says what is wrong with settings that could not be read.
func badSettings(op, text string, err error) error {
	var fields map[string]json.RawMessage
	if notObject := json.Unmarshal([]byte(text), &fields); notObject != nil {
		return errorWith(hns.ErrInvalidJSON, op, "the settings are not a JSON object: "+notObject.Error())
	}
	return errorWith(hns.ErrInvalidJSON, op, err.Error())
}

// modifyExtension follows hcn.network-extension.
func modifyExtension(svc *hns.Service, op, id string, req hns.ModifyRequest) error {
	var v struct {
		Id        string
		IsEnabled bool
	}
	if err := json.Unmarshal(req.Settings, &v); err != nil {
		return errorWith(hns.ErrInvalidJSON, op, "Settings: "+err.Error())
	}
	if _, err := ParseGUID(v.Id); err != nil {
		return errorWith(hns.ErrInvalidParam, op, "Settings: Id: "+err.Error())
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
	return errorWith(hns.ErrRequestUnsupported, op, req.RequestType+" of Extension; it must be Add, Remove, Update or Refresh")
}

// modifyPort follows hcn.endpoint-port.
func modifyPort(svc *hns.Service, op, id string, req hns.ModifyRequest) error {
	var v struct{ PortId, VirtualNicName, VirtualMachineId string }
	if len(req.Settings) > 0 {
		if err := json.Unmarshal(req.Settings, &v); err != nil {
			return errorWith(hns.ErrInvalidJSON, op, "Settings: "+err.Error())
		}
	}
	owner := v.VirtualNicName
	if owner == "" {
		owner = v.VirtualMachineId
	}
	if owner == "" {
		return errorWith(hns.ErrInvalidParam, op, "Settings name neither VirtualNicName nor VirtualMachineId")
	}
	switch {
	case strings.EqualFold(req.RequestType, hns.RequestAdd):
		return svc.AttachContainer(id, owner)
	case strings.EqualFold(req.RequestType, hns.RequestRemove):
		return svc.DetachContainer(id, owner)
	}
	return errorWith(hns.ErrRequestUnsupported, op, req.RequestType+" of Port; an endpoint's port takes Add and Remove")
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
