package hns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// This file is the only one that reads and writes the JSON of HCN v2 policies;
// v1policy.go does it for HNS v1.

// policyJSON is a policy on the wire.
type policyJSON struct {
	Type     PolicyType      `json:"Type"`
	Settings json.RawMessage `json:"Settings,omitempty"`
	// V1 is winlab's own: the policy is a NAT policy of HNS v1. Without it, that would
	// be lost with a snapshot.
	V1 bool `json:"winlab.v1NAT,omitempty"`
}

// UnmarshalJSON reads {"Type": ..., "Settings": {...}}.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var v policyJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*p = ParsePolicy(v.Type, v.Settings)
	if v.V1 {
		*p = p.AsNATV1()
	}
	return nil
}

// MarshalJSON writes the policy with its settings as they came in.
func (p Policy) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // the caller's encoder escapes if it is set to
	err := enc.Encode(policyJSON{p.typ, p.text, p.v1NAT})
	return buf.Bytes(), err
}

// decoder reads the settings of one type.
type decoder func(raw json.RawMessage) (Settings, error)

// decode reads the settings of one type. Unknown fields are ignored, as HNS
// ignores them.
func decode[T Settings](raw json.RawMessage) (Settings, error) {
	var v T
	if len(bytes.TrimSpace(raw)) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, err
	}
	return v, nil
}

// decodeSettings returns the settings of a type, nil for a type without any. Of
// types whose values HNS does not check, settings of another form are treated
// as none: no source says that HNS refuses them.
func decodeSettings(typ PolicyType, raw json.RawMessage) (Settings, error) {
	if len(raw) > 0 && !json.Valid(raw) {
		return nil, errors.New("settings are not JSON")
	}
	if !hasSettings(typ) {
		return nil, nil
	}
	s, err := policyKindOf(typ).decode(raw)
	if err == nil {
		return s, nil
	}
	if _, checked := s.(checker); !checked {
		return nil, nil
	}
	return nil, fmt.Errorf("settings of policy %s: %w", s.Type(), err)
}

// JSON returns the settings as they were written; nil when there are none.
func (p Policy) JSON() json.RawMessage { return p.text }

// Fields returns the settings as a tree of maps and lists; ok is false when they
// are not an object.
func (p Policy) Fields() (fields map[string]any, ok bool) {
	err := json.Unmarshal(orEmpty(p.text), &fields)
	return fields, err == nil
}

// matches reports whether p has q's type and, for every field that q's settings
// give, the same value.
func (p Policy) matches(q Policy) bool {
	if !p.Is(q.typ) {
		return false
	}
	if len(bytes.TrimSpace(q.text)) == 0 {
		return true
	}
	have, ok1 := p.Fields()
	want, ok2 := q.Fields()
	if !ok1 || !ok2 {
		return bytes.Equal(p.text, q.text)
	}
	for k, v := range want {
		if !reflect.DeepEqual(have[k], v) {
			return false
		}
	}
	return true
}
