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
		return nil, errorWith(hns.ErrInvalidJSON, op, "the query is not a JSON object: "+err.Error())
	}
	if q.SchemaVersion.Major > 2 {
		return nil, errorWith(hns.ErrInvalidJSON, op, fmt.Sprintf("schema version %d.%d; HCN knows 1 and 2", q.SchemaVersion.Major,
			q.SchemaVersion.Minor))
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
		return nil, errorWith(hns.ErrInvalidJSON, op, "the filter is not a JSON object: "+err.Error())
	}
	return fields, nil
}

// enumerate returns the ids of the objects that a query asks for, in the order of
// creation (hcn.filter).
func enumerate(svc *hns.Service, op string, kind objectKind, text string) ([]string, error) {
	fields, err := parseQuery(op, text)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	if id, ok := onlyID(fields); ok {
		if v := kind.get(svc, id); v != nil {
			ids = append(ids, kind.id(v))
		}
		return ids, nil
	}
	for _, v := range kind.all(svc) {
		found, err := matches(svc, kind, v, fields)
		if err != nil {
			return nil, err
		}
		if found {
			ids = append(ids, kind.id(v))
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

// matches reports whether an object has every field of a filter with its value.
// Text is compared without regard to case, as names and ids are.
func matches(svc *hns.Service, kind objectKind, v any, fields map[string]any) (bool, error) {
	rest := map[string]any{}
	for k, want := range fields {
		text, isText := want.(string)
		have, ok := kind.field(v, strings.ToLower(k))
		if !ok || !isText {
			rest[k] = want
		} else if !strings.EqualFold(have, strings.Trim(text, "{}")) {
			return false, nil
		}
	}
	if len(rest) == 0 {
		return true, nil
	}
	all, err := views(svc, kind, v)
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

// views returns the fields of an object by name in lower case, those of HCN v2
// before those of HNS v1. A filter may name any of them, so this is their JSON.
func views(svc *hns.Service, kind objectKind, v any) (map[string]any, error) {
	all := map[string]any{}
	for _, view := range []any{kind.v1(svc, v), v} {
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
