package hcn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// v1Reply is what HNSCall gives back (FactV1Reply).
type v1Reply struct {
	Success   bool
	Error     string   `json:",omitempty"`
	ErrorCode uint32   `json:",omitempty"`
	Details   []string `json:",omitempty"`
	Output    any      `json:",omitempty"`
}

// callV1 answers a request of HNS v1.
func callV1(svc *hns.Service, method, path, request string) string {
	out, err := v1(svc, strings.ToUpper(method), path, request)
	reply := v1Reply{Success: true, Output: out}
	if err != nil {
		e := hnsError("hnsCall", err)
		reply = v1Reply{Error: e.Text, ErrorCode: HResult(e.Code), Details: e.Details}
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		raw, _ = json.Marshal(v1Reply{Error: errUnexpected.Text, ErrorCode: errUnexpected.Code, Details: []string{err.Error()}})
	}
	return string(raw)
}

// v1 serves the paths that hcsshim and hnslib use (internal/hns).
func v1(svc *hns.Service, method, path, request string) (any, error) {
	part := strings.Split(strings.Trim(path, "/"), "/")
	for len(part) < 3 {
		part = append(part, "")
	}
	unsupported := with(hns.ErrRequestUnsupported, "hnsCall", fmt.Sprintf("%s %s", method, path))
	if len(part) > 3 {
		return nil, unsupported
	}
	id, verb := part[1], strings.ToLower(part[2])
	if id != "" && part[0] != "globals" {
		if _, err := ParseGUID(id); err != nil {
			return nil, with(hns.ErrInvalidParam, "hnsCall", err.Error())
		}
	}
	switch where := method + " " + strings.ToLower(part[0]); {
	case where == "GET globals" && strings.EqualFold(id, "version") && verb == "":
		v := svc.Build().HNSVersion
		if v.Major == 0 {
			return nil, unsupported // before 1803 HNS does not say
		}
		return struct{ Major, Minor int }{v.Major, v.Minor}, nil
	case where == "GET endpointstats" && id != "" && verb == "":
		return v1Stats(svc, id)
	case strings.HasSuffix(where, " networks") && verb == "":
		return v1Networks(svc, method, id, request, unsupported)
	case strings.HasSuffix(where, " endpoints"):
		return v1Endpoints(svc, method, id, verb, request, unsupported)
	case strings.HasSuffix(where, " policylists") && verb == "":
		return v1PolicyLists(svc, method, id, request, unsupported)
	case strings.HasSuffix(where, " namespaces"):
		return v1Namespaces(svc, method, id, verb, request, unsupported)
	}
	return nil, unsupported
}

func decodeV1[T any](request string) (T, error) {
	var v T
	if err := json.Unmarshal([]byte(request), &v); err != nil {
		return v, with(hns.ErrInvalidJSON, "hnsCall", err.Error())
	}
	var named struct{ ID string }
	if json.Unmarshal([]byte(request), &named) == nil && named.ID != "" {
		if _, err := ParseGUID(named.ID); err != nil {
			return v, with(hns.ErrInvalidParam, "hnsCall", "ID: "+err.Error())
		}
	}
	return v, nil
}

func v1Networks(svc *hns.Service, method, id, request string, unsupported error) (any, error) {
	switch {
	case method == "GET" && id == "":
		all := []hns.V1Network{}
		for _, n := range svc.ListNetworks(nil) {
			all = append(all, hns.NetworkV1(n))
		}
		return all, nil
	case method == "GET":
		if n := svc.Network(id); n != nil {
			return hns.NetworkV1(n), nil
		}
		return nil, notFound(Network, "hnsCall", id)
	case method == "DELETE" && id != "":
		return nil, svc.DeleteNetwork(id)
	case method == "POST" && id == "":
		v, err := decodeV1[hns.V1Network](request)
		if err != nil {
			return nil, err
		}
		n, err := hns.FromNetworkV1(v)
		if err != nil {
			return nil, err
		}
		made, err := svc.CreateNetwork(n)
		if err != nil {
			return nil, err
		}
		return hns.NetworkV1(made), nil
	}
	return nil, unsupported
}

func v1Endpoints(svc *hns.Service, method, id, verb, request string, unsupported error) (any, error) {
	switch {
	case method == "GET" && id == "":
		all := []hns.V1Endpoint{}
		for _, e := range svc.ListEndpoints(nil) {
			all = append(all, endpointV1(svc, e))
		}
		return all, nil
	case method == "POST" && id == "":
		v, err := decodeV1[hns.V1Endpoint](request)
		if err != nil {
			return nil, err
		}
		e, err := hns.FromEndpointV1(v)
		if err != nil {
			return nil, err
		}
		e.State, e.SharedContainers = 0, nil // what HNS alone sets
		if e.HostComputeNetwork == "" && v.VirtualNetworkName != "" {
			if n := svc.NetworkByName(v.VirtualNetworkName); n != nil {
				e.HostComputeNetwork = n.ID
			}
		}
		made, err := svc.CreateEndpoint(e)
		if err != nil {
			return nil, err
		}
		return endpointV1(svc, made), nil
	}
	e := svc.Endpoint(id)
	if e == nil {
		return nil, notFound(Endpoint, "hnsCall", id)
	}
	switch {
	case method == "GET" && verb == "":
		return endpointV1(svc, e), nil
	case method == "DELETE" && verb == "":
		return nil, svc.DeleteEndpoint(id)
	case method == "POST" && verb == "":
		v, err := decodeV1[hns.V1Endpoint](request)
		if err != nil {
			return nil, err
		}
		in, err := hns.FromEndpointV1(hns.V1Endpoint{Policies: v.Policies, EncapOverhead: v.EncapOverhead})
		if err != nil {
			return nil, err
		}
		if err := svc.ReplaceEndpointPolicies(e.ID, in.Policies...); err != nil {
			return nil, err
		}
		return endpointV1(svc, svc.Endpoint(e.ID)), nil
	case method == "POST" && (verb == "attach" || verb == "detach"):
		return nil, v1Attach(svc, e, verb == "attach", request)
	}
	return nil, unsupported
}

func endpointV1(svc *hns.Service, e *hns.Endpoint) hns.V1Endpoint {
	v := hns.EndpointV1(e, svc.Network(e.HostComputeNetwork))
	if v.Namespace != nil {
		if n := svc.Namespace(e.HostComputeNamespace); n != nil {
			v.Namespace.CompartmentId = n.NamespaceId
		}
	}
	return v
}

// v1Attach attaches an endpoint to the host's compartment, to another one, or to
// a container or virtual machine (hcsshim EndpointAttachDetachRequest).
func v1Attach(svc *hns.Service, e *hns.Endpoint, attach bool, request string) error {
	v, err := decodeV1[struct {
		ContainerId, SystemType, VirtualNicName string
		CompartmentId                           uint32
	}](request)
	if err != nil {
		return err
	}
	owner := v.ContainerId
	switch {
	case strings.EqualFold(v.SystemType, "Host"):
		if !attach {
			if !e.Attached() {
				return with(hns.ErrElementNotFound, "hnsCall", "the endpoint is not attached")
			}
			return svc.DetachEndpoint(e.ID)
		}
		if v.CompartmentId <= 1 {
			return svc.AttachEndpoint(e.ID, svc.HostNamespace().ID)
		}
		for _, n := range svc.ListNamespaces(func(n *hns.Namespace) bool { return n.NamespaceId == v.CompartmentId }) {
			return svc.AttachEndpoint(e.ID, n.ID)
		}
		return with(hns.ErrElementNotFound, "hnsCall", fmt.Sprintf("there is no compartment %d", v.CompartmentId))
	case strings.EqualFold(v.SystemType, "Container"):
	case strings.EqualFold(v.SystemType, "VirtualMachine"):
		if v.VirtualNicName != "" {
			owner = v.VirtualNicName
		}
	default:
		return with(hns.ErrInvalidParam, "hnsCall", fmt.Sprintf("SystemType %q; it must be Host, Container or VirtualMachine", v.SystemType))
	}
	if owner == "" && !attach && len(e.SharedContainers) == 1 {
		owner = e.SharedContainers[0] // hcsshim's VirtualMachineNICDetach names nobody
	}
	if owner == "" {
		return with(hns.ErrInvalidParam, "hnsCall", "neither ContainerId nor VirtualNicName is given")
	}
	if attach {
		return svc.AttachContainer(e.ID, owner)
	}
	return svc.DetachContainer(e.ID, owner)
}

// v1Stats follows FactStats.
func v1Stats(svc *hns.Service, id string) (any, error) {
	e := svc.Endpoint(id)
	if e == nil {
		return nil, notFound(Endpoint, "hnsCall", id)
	}
	return struct {
		BytesReceived, BytesSent, DroppedPacketsIncoming, DroppedPacketsOutgoing uint64
		EndpointId, InstanceId                                                   string
		PacketsReceived, PacketsSent                                             uint64
	}{EndpointId: strings.ToUpper(e.ID), InstanceId: strings.ToUpper(e.ID)}, nil
}
