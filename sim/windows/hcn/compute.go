package hcn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Compute systems are the containers that the Host Compute Service of the node
// runs. HNS v1 attaches a container through that service (hcn.hot-attach), so a
// program must find it there. Making and starting them is a container runtime's
// work: this package has no call for it.

// Codes of the Host Compute Service (hcn.compute-errors).
var (
	errSystemNotFound = &hns.Error{Code: 0xc037010e, Name: "HCS_E_SYSTEM_NOT_FOUND",
		Text: "A virtual machine or container with the specified identifier does not exist."}
	errSystemStopped = &hns.Error{Code: 0xc0370110, Name: "HCS_E_SYSTEM_ALREADY_STOPPED",
		Text: "The virtual machine or container with the specified identifier is not running."}
	errSystemJSON = &hns.Error{Code: 0xc037010d, Name: "HCS_E_INVALID_JSON",
		Text: "The virtual machine or container JSON document is invalid."}
	errNotSupported = &hns.Error{Code: 50, Name: "ERROR_NOT_SUPPORTED", Text: "The request is not supported."}
)

// The entries of the call log for what a runtime does.
const (
	addedSystem   = "container added"
	removedSystem = "container removed"
)

// AddComputeSystem says that a container runs, as a runtime does that has started
// it. The container is not kept in Options.State: it is not HNS's.
func (s *Service) AddComputeSystem(id string) { s.setSystem(id, true) }

// RemoveComputeSystem says that a container has ended. Its endpoints stay as they
// are (hcn.hot-attach-result); handles of it meet HCS_E_SYSTEM_ALREADY_STOPPED.
func (s *Service) RemoveComputeSystem(id string) { s.setSystem(id, false) }

func (s *Service) setSystem(id string, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.ToLower(id)
	if s.systems[key] == runs {
		return
	}
	call := addedSystem
	if runs {
		s.systems[key] = true
	} else {
		delete(s.systems, key)
		call = removedSystem
	}
	s.calls.add(s.calls.wanted(), &Entry{Call: call, ID: id})
}

// compute reports whether a request is one of the Host Compute Service. HNSCall and
// winlab's own verbs have no kind.
func (r *request) compute() bool { return r.Kind == computeSystem && r.Verb < verbHNSCall }

// doCompute does an operation of the Host Compute Service.
func (s *Service) doCompute(op string, o *operation) (answer, error) {
	runs := s.systems[strings.ToLower(o.ID)]
	switch {
	case o.Verb == verbOpen && !runs:
		return answer{}, errorWith(errSystemNotFound, op, fmt.Sprintf("no container %q runs", o.ID))
	case !runs:
		return answer{}, errorWith(errSystemStopped, op, fmt.Sprintf("container %q has ended", o.ID))
	}
	switch o.Verb {
	case verbOpen:
		return answer{id: o.ID}, nil
	case verbQuery:
		return answer{o.ID, systemProperties{Id: o.ID, State: "Running", Name: o.ID, SystemType: "Container", RuntimeOsType: "Windows"}}, nil
	case verbModify:
		return answer{id: o.ID}, s.hotAttach(op, o)
	}
	return answer{}, errorWith(errNotSupported, op)
}

// systemProperties are what hcsshim reads when it opens a system (internal/hcs/schema1
// ContainerProperties); there are no statistics and no processes.
type systemProperties struct{ Id, State, Name, SystemType, RuntimeOsType, Owner string }

// hotAttach follows hcn.hot-attach-result.
func (s *Service) hotAttach(op string, o *operation) error {
	call, err := hotAttachCall(op, o.ID, o.text(0))
	if err != nil {
		return err
	}
	a, err := s.keepAndApply(call)
	if err != nil {
		return err
	}
	if reply, ok := a.output.(v1Reply); ok {
		return reply.refusal
	}
	return nil
}

// hotAttachCall returns the call of HNS v1 for a request of hcn.hot-attach.
func hotAttachCall(op, container, settings string) (*operation, error) {
	var req struct {
		ResourceType, RequestType string
		Settings                  json.RawMessage
	}
	if err := json.Unmarshal([]byte(settings), &req); err != nil {
		return nil, errorWith(errSystemJSON, op, err.Error())
	}
	verb := map[string]string{"add": "attach", "remove": "detach"}[strings.ToLower(req.RequestType)]
	if !strings.EqualFold(req.ResourceType, "Network") || verb == "" {
		return nil, errorWith(errNotSupported, op, fmt.Sprintf("%s of %s; only a container's Network can be changed here, with Add and Remove",
			req.RequestType, req.ResourceType))
	}
	var endpoint string
	if err := json.Unmarshal(req.Settings, &endpoint); err != nil {
		return nil, errorWith(errSystemJSON, op, "Settings: expected the id of an endpoint: "+err.Error())
	}
	id, err := ParseGUID(endpoint)
	if err != nil {
		return nil, errorWith(hns.ErrInvalidParam, op, "Settings: "+err.Error())
	}
	attach, err := json.Marshal(struct{ ContainerId, SystemType string }{container, "Container"})
	if err != nil {
		return nil, err
	}
	return &operation{Verb: verbHNSCall, Texts: []string{"POST", "/endpoints/" + id.String() + "/" + verb, string(attach)}}, nil
}

// computeResult is the document that the Host Compute Service gives with an error
// (hcsshim internal/hcs/errors.go hcsResult).
func computeResult(e *hns.Error) string {
	text := e.Text
	for _, d := range e.Details {
		text += " " + d
	}
	raw, _ := json.Marshal(struct {
		Error        int32
		ErrorMessage string
	}{int32(hresult(e.Code)), text}) // numbers and strings marshal
	return string(raw)
}
