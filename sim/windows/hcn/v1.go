package hcn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// v1Reply is what HNSCall gives back (hcn.v1-reply).
type v1Reply struct {
	Success   bool
	Error     string   `json:",omitempty"`
	ErrorCode uint32   `json:",omitempty"`
	Details   []string `json:",omitempty"`
	Output    any      `json:",omitempty"`

	refusal error // what Error says
}

// callV1 answers a request of HNS v1.
func callV1(svc *hns.Service, method, path, request string) v1Reply {
	out, err := v1(svc, strings.ToUpper(method), path, request)
	if err != nil {
		e := hnsError(opV1, err)
		return v1Reply{Error: e.Text, ErrorCode: hresult(e.Code), Details: e.Details, refusal: e}
	}
	return v1Reply{Success: true, Output: out}
}

// opV1 is the name of the call in errors.
const opV1 = "hnsCall"

// v1Call is a request of HNS v1: what its path names, and its JSON.
type v1Call struct{ id, request string }

// v1Calls are the requests that hcsshim and hnslib make (internal/hns), by method and
// path; ID is any id.
var v1Calls = map[string]func(*hns.Service, v1Call) (any, error){
	"GET globals/version":  v1Version,
	"GET endpointstats/ID": v1Stats,

	"GET accelnet":    v1GetMACs,
	"POST accelnet":   v1SetMACs,
	"DELETE accelnet": v1DeleteMACs,

	"GET networks":       v1ListNetworks,
	"POST networks":      v1CreateNetwork,
	"GET networks/ID":    v1GetNetwork,
	"DELETE networks/ID": func(svc *hns.Service, c v1Call) (any, error) { return nil, svc.DeleteNetwork(c.id) },

	"GET endpoints":            v1ListEndpoints,
	"POST endpoints":           v1CreateEndpoint,
	"GET endpoints/ID":         onEndpoint(v1GetEndpoint),
	"POST endpoints/ID":        onEndpoint(v1UpdateEndpoint),
	"DELETE endpoints/ID":      onEndpoint(v1DeleteEndpoint),
	"POST endpoints/ID/attach": onEndpoint(v1Attach),
	"POST endpoints/ID/detach": onEndpoint(v1Detach),

	"GET policylists":       v1ListPolicyLists,
	"POST policylists":      v1CreatePolicyList,
	"GET policylists/ID":    v1GetPolicyList,
	"DELETE policylists/ID": v1DeletePolicyList,

	"GET namespaces":                    v1ListNamespaces,
	"POST namespaces":                   v1CreateNamespace,
	"GET namespaces/ID":                 onNamespace(v1GetNamespace),
	"DELETE namespaces/ID":              onNamespace(v1DeleteNamespace),
	"POST namespaces/ID/addresource":    onNamespace(v1AddResource),
	"POST namespaces/ID/removeresource": onNamespace(v1RemoveResource),
}

// v1 does a request of HNS v1.
func v1(svc *hns.Service, method, path, request string) (any, error) {
	part := strings.Split(strings.Trim(path, "/"), "/")
	unsupported := errorWith(hns.ErrRequestUnsupported, opV1, fmt.Sprintf("%s %s", method, path))
	if len(part) > 3 {
		return nil, unsupported
	}
	c := v1Call{request: request}
	where := strings.ToLower(strings.Join(part, "/"))
	if len(part) > 1 && part[1] != "" && part[0] != "globals" {
		if _, err := ParseGUID(part[1]); err != nil {
			return nil, errorWith(hns.ErrInvalidParam, opV1, err.Error())
		}
		c.id = part[1]
		where = strings.ToLower(part[0]) + "/ID" + strings.ToLower(strings.Join(append([]string{""}, part[2:]...), "/"))
	}
	do, ok := v1Calls[method+" "+where]
	if !ok {
		return nil, unsupported
	}
	return do(svc, c)
}

func v1Version(svc *hns.Service, _ v1Call) (any, error) {
	v := svc.Build().HNSVersion
	if v.Major == 0 { // before 1803 HNS does not say
		return nil, errorWith(hns.ErrRequestUnsupported, opV1, "GET /globals/version")
	}
	return struct{ Major, Minor int }{v.Major, v.Minor}, nil
}

func decodeV1[T any](request string) (T, error) {
	var v T
	if err := json.Unmarshal([]byte(request), &v); err != nil {
		return v, errorWith(hns.ErrInvalidJSON, opV1, err.Error())
	}
	var named struct{ ID string }
	if json.Unmarshal([]byte(request), &named) == nil && named.ID != "" {
		if _, err := ParseGUID(named.ID); err != nil {
			return v, errorWith(hns.ErrInvalidParam, opV1, "ID: "+err.Error())
		}
	}
	return v, nil
}

func v1ListNetworks(svc *hns.Service, _ v1Call) (any, error) {
	all := []hns.V1Network{}
	for _, n := range svc.ListNetworks(nil) {
		all = append(all, hns.NetworkV1(n))
	}
	return all, nil
}

func v1GetNetwork(svc *hns.Service, c v1Call) (any, error) {
	if n := svc.Network(c.id); n != nil {
		return hns.NetworkV1(n), nil
	}
	return nil, notFound(Network, opV1, c.id)
}

func v1CreateNetwork(svc *hns.Service, c v1Call) (any, error) {
	v, err := decodeV1[hns.V1Network](c.request)
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
