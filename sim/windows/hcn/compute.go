package hcn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Compute systems are the containers that the Host Compute Service of the node
// runs. HNS v1 attaches a container through that service (FactHotAttach), so a
// program must find it there. Making and starting them is a container runtime's
// work and no call of this package.

// Codes of the Host Compute Service (FactComputeErrors).
var (
	errSystemNotFound = &hns.Error{Code: 0xc037010e, Name: "HCS_E_SYSTEM_NOT_FOUND", Text: "A virtual machine or container with the specified identifier does not exist."}
	errSystemStopped  = &hns.Error{Code: 0xc0370110, Name: "HCS_E_SYSTEM_ALREADY_STOPPED", Text: "The virtual machine or container with the specified identifier is not running."}
	errSystemJSON     = &hns.Error{Code: 0xc037010d, Name: "HCS_E_INVALID_JSON", Text: "The virtual machine or container JSON document is invalid."}
	errNotSupported   = &hns.Error{Code: 50, Name: "ERROR_NOT_SUPPORTED", Text: "The request is not supported."}
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
// are (FactHotAttachResult); handles of it meet HCS_E_SYSTEM_ALREADY_STOPPED.
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
func (r *Request) compute() bool { return r.Kind == ComputeSystem && r.Verb < HNSCall }

// computeSystem answers a call of the Host Compute Service.
func (s *Service) computeSystem(c *Session, r *Request) (output, id string, made uint64, err error) {
	op := CallName(r.Verb, r.Kind)
	if r.Verb == Open {
		if id = r.text(0); !s.systems[strings.ToLower(id)] {
			return "", "", 0, with(errSystemNotFound, op, fmt.Sprintf("no container %q runs", id))
		}
		return "", id, s.open(c, ComputeSystem, id), nil
	}
	h, ok := c.handles[r.Handle]
	if !ok || h.kind != ComputeSystem {
		return "", "", 0, with(errInvalidHandle, op)
	}
	if r.Verb == Close {
		delete(c.handles, r.Handle)
		return "", h.id, 0, nil
	}
	if !s.systems[strings.ToLower(h.id)] {
		return "", "", 0, with(errSystemStopped, op, fmt.Sprintf("container %q has ended", h.id))
	}
	switch r.Verb {
	case Query:
		// What hcsshim reads when it opens a system (internal/hcs/schema1
		// ContainerProperties); there are no statistics and no processes.
		raw, err := json.Marshal(struct{ Id, State, Name, SystemType, RuntimeOsType, Owner string }{h.id, "Running", h.id, "Container", "Windows", ""})
		return string(raw), h.id, 0, err
	case Modify:
		return "", h.id, 0, s.hotAttach(op, h.id, r.text(0))
	}
	return "", "", 0, with(errNotSupported, op)
}

// hotAttach follows FactHotAttachResult.
func (s *Service) hotAttach(op, container, settings string) error {
	o, err := hotAttachCall(op, container, settings)
	if err != nil {
		return err
	}
	if s.store != nil {
		if err := s.store.keep(o, s.svc); err != nil {
			return err
		}
	}
	_, err = v1(s.svc, o.text(0), o.text(1), o.text(2))
	return err
}

// hotAttachCall returns the call of HNS v1 for a request of FactHotAttach.
func hotAttachCall(op, container, settings string) (*operation, error) {
	var req struct {
		ResourceType, RequestType string
		Settings                  json.RawMessage
	}
	if err := json.Unmarshal([]byte(settings), &req); err != nil {
		return nil, with(errSystemJSON, op, err.Error())
	}
	verb := map[string]string{"add": "attach", "remove": "detach"}[strings.ToLower(req.RequestType)]
	if !strings.EqualFold(req.ResourceType, "Network") || verb == "" {
		return nil, with(errNotSupported, op, fmt.Sprintf("%s of %s; of a container only its Network can be changed here, with Add and Remove", req.RequestType, req.ResourceType))
	}
	var endpoint string
	if err := json.Unmarshal(req.Settings, &endpoint); err != nil {
		return nil, with(errSystemJSON, op, "Settings: the id of an endpoint is wanted: "+err.Error())
	}
	id, err := ParseGUID(endpoint)
	if err != nil {
		return nil, with(hns.ErrInvalidParam, op, "Settings: "+err.Error())
	}
	request, _ := json.Marshal(struct{ ContainerId, SystemType string }{container, "Container"}) // strings marshal
	return &operation{Verb: HNSCall, Texts: []string{"POST", "/endpoints/" + id.String() + "/" + verb, string(request)}}, nil
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
	}{int32(HResult(e.Code)), text}) // numbers and strings marshal
	return string(raw)
}
