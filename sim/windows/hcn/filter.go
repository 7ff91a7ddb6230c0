package hcn

import (
	"bytes"
	"encoding/json"
	"fmt"
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
		return nil, with(hns.ErrInvalidJSON, op, "the query is no JSON object: "+err.Error())
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
		return nil, with(hns.ErrInvalidJSON, op, "the filter is no JSON object: "+err.Error())
	}
	return fields, nil
}

// enumerate returns the ids of the objects that a query asks for, as JSON, in
// the order of creation (FactFilter).
func enumerate(svc *hns.Service, k Kind, text string) (string, error) {
	fields, err := parseQuery(CallName(Enumerate, k), text)
	if err != nil {
		return "", err
	}
	ids := []string{}
	if id, ok := onlyID(fields); ok {
		if v := object(svc, k, id); v != nil {
			ids = append(ids, idOf(v))
		}
	} else {
		for _, v := range objects(svc, k) {
			if matches(svc, v, fields) {
				ids = append(ids, idOf(v))
			}
		}
	}
	raw, err := json.Marshal(ids)
	return string(raw), err
}

// onlyID returns the id when a filter asks for nothing else: programs that hold
// thousands of endpoints look them up this way.
func onlyID(fields map[string]any) (string, bool) {
	for k, v := range fields {
		id, ok := v.(string)
		return id, ok && len(fields) == 1 && strings.EqualFold(k, "ID")
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
func matches(svc *hns.Service, v any, fields map[string]any) bool {
	var rest map[string]any // views as JSON, made only when a common field is not enough
	for k, want := range fields {
		text, isText := want.(string)
		if have, ok := common(v, strings.ToLower(k)); ok && isText {
			if !strings.EqualFold(have, strings.Trim(text, "{}")) {
				return false
			}
			continue
		}
		if rest == nil {
			rest = views(svc, v)
		}
		if !equalJSON(rest[strings.ToLower(k)], want) {
			return false
		}
	}
	return true
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
			return v.Type, true
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
// before those of HNS v1.
func views(svc *hns.Service, v any) map[string]any {
	all := map[string]any{}
	add := func(view any) {
		raw, err := json.Marshal(view)
		var fields map[string]any
		if err != nil || json.Unmarshal(raw, &fields) != nil {
			return
		}
		for k, f := range fields {
			all[strings.ToLower(k)] = f
		}
	}
	switch v := v.(type) {
	case *hns.Network:
		add(hns.NetworkV1(v))
	case *hns.Endpoint:
		add(hns.EndpointV1(v, svc.Network(v.HostComputeNetwork)))
	case *hns.LoadBalancer:
		add(hns.PolicyListV1(v))
	case *hns.Route:
		add(hns.RoutePolicyListV1(v))
	}
	add(v)
	return all
}

func equalJSON(have, want any) bool {
	h, ok1 := have.(string)
	w, ok2 := want.(string)
	if ok1 && ok2 {
		return strings.EqualFold(h, w)
	}
	a, err1 := json.Marshal(have)
	b, err2 := json.Marshal(want)
	return have != nil && err1 == nil && err2 == nil && bytes.Equal(a, b)
}
