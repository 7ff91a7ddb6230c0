package hcn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hcnQuery is the query that callers of HCN v2 send (hcsshim hcn.HostComputeQuery):
// {"SchemaVersion":{"Major":2,"Minor":0},"Flags":0,"Filter":"{\"Name\":\"cbr0\"}"}.
type hcnQuery struct {
	SchemaVersion hns.SchemaVersion
	Flags         uint32
	Filter        json.RawMessage
}

// parseQuery reads a query and returns its filter; the empty query asks for all.
func parseQuery(op, text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var q hcnQuery
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return nil, with(hns.ErrInvalidJSON, op, "the query is not a JSON object: "+err.Error())
	}
	if q.SchemaVersion.Major > 2 {
		return nil, with(hns.ErrInvalidJSON, op, fmt.Sprintf("schema version %d.%d; HCN knows 1 and 2", q.SchemaVersion.Major, q.SchemaVersion.Minor))
	}
	filter := []byte(q.Filter)
	var inner string
	if json.Unmarshal(filter, &inner) == nil {
		filter = []byte(inner)
	}
	if filter = bytes.TrimSpace(filter); len(filter) == 0 {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(filter, &fields); err != nil {
		return nil, with(hns.ErrInvalidJSON, op, "the filter is not a JSON object: "+err.Error())
	}
	return fields, nil
}

// enumerate returns the ids of the objects that a query asks for, in the order of
// creation (hcn.filter).
func enumerate(svc *hns.Service, k Kind, text string) ([]string, error) {
	fields, err := parseQuery(callName(verbEnumerate, k), text)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	if id, ok := onlyID(fields); ok {
		if v := object(svc, k, id); v != nil {
			ids = append(ids, idOf(v))
		}
		return ids, nil
	}
	for _, v := range objects(svc, k) {
		found, err := matches(svc, v, fields)
		if err != nil {
			return nil, err
		}
		if found {
			ids = append(ids, idOf(v))
		}
	}
	return ids, nil
}

// onlyID returns the id when a filter asks for nothing else: programs that hold
// thousands of endpoints look them up this way.
func onlyID(fields map[string]any) (string, bool) {
	if len(fields) != 1 {
		return "", false
	}
	for k, v := range fields {
		if id, ok := v.(string); ok && strings.EqualFold(k, "ID") {
			return id, true
		}
	}
	return "", false
}

func objects(svc *hns.Service, k Kind) []any {
	switch k {
	case Network:
		return anys(svc.ListNetworks(nil))
	case Endpoint:
		return anys(svc.ListEndpoints(nil))
	case Namespace:
		return anys(svc.ListNamespaces(nil))
	case LoadBalancer:
		return anys(svc.ListLoadBalancers(nil))
	case SdnRoute:
		return anys(svc.ListRoutes(nil))
	}
	return nil
}

func anys[T any](all []*T) []any {
	out := make([]any, len(all))
	for i, v := range all {
		out[i] = v
	}
	return out
}

func idOf(v any) string {
	switch v := v.(type) {
	case *hns.Network:
		return v.ID
	case *hns.Endpoint:
		return v.ID
	case *hns.Namespace:
		return v.ID
	case *hns.LoadBalancer:
		return v.ID
	case *hns.Route:
		return v.ID
	}
	return ""
}

// matches reports whether an object has every field of a filter with its value.
// Text is compared without regard to case, as names and ids are.
func matches(svc *hns.Service, v any, fields map[string]any) (bool, error) {
	rest := map[string]any{}
	for k, want := range fields {
		text, isText := want.(string)
		have, ok := common(v, strings.ToLower(k))
		if !ok || !isText {
			rest[k] = want
		} else if !strings.EqualFold(have, strings.Trim(text, "{}")) {
			return false, nil
		}
	}
	if len(rest) == 0 {
		return true, nil
	}
	all, err := views(svc, v)
	if err != nil {
		return false, err
	}
	for k, want := range rest {
		if !sameValue(all[strings.ToLower(k)], want) {
			return false, nil
		}
	}
	return true, nil
}

// common returns the fields that programs filter by, without the way through JSON.
func common(v any, key string) (string, bool) {
	switch v := v.(type) {
	case *hns.Network:
		switch key {
		case "name":
			return v.Name, true
		case "id":
			return v.ID, true
		case "type":
			return string(v.Type), true
		}
	case *hns.Endpoint:
		switch key {
		case "name":
			return v.Name, true
		case "id":
			return v.ID, true
		case "virtualnetwork", "hostcomputenetwork":
			return v.HostComputeNetwork, true
		case "hostcomputenamespace":
			return v.HostComputeNamespace, true
		}
	}
	if key == "id" {
		return idOf(v), true
	}
	return "", false
}

// views returns the fields of an object by name in lower case, those of HCN v2
// before those of HNS v1. A filter may name any of them, so this is their JSON.
func views(svc *hns.Service, v any) (map[string]any, error) {
	all := map[string]any{}
	var v1 any
	switch v := v.(type) {
	case *hns.Network:
		v1 = hns.NetworkV1(v)
	case *hns.Endpoint:
		v1 = hns.EndpointV1(v, svc.Network(v.HostComputeNetwork))
	case *hns.LoadBalancer:
		v1 = hns.PolicyListV1(v)
	case *hns.Route:
		v1 = hns.RoutePolicyListV1(v)
	}
	for _, view := range []any{v1, v} {
		raw, err := json.Marshal(view)
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		for k, f := range fields {
			all[strings.ToLower(k)] = f
		}
	}
	return all, nil
}

// sameValue compares values of JSON; what is absent equals nothing.
func sameValue(have, want any) bool {
	h, ok1 := have.(string)
	w, ok2 := want.(string)
	if ok1 && ok2 {
		return strings.EqualFold(h, w)
	}
	return have != nil && reflect.DeepEqual(have, want)
}
