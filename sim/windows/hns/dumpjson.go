package hns

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// field is one member of a JSON object with the offset of its value.
type field struct {
	key string
	raw json.RawMessage
	at  int
}

// members splits a JSON object; elements splits an array. raw is valid JSON.
func members(raw json.RawMessage, at int) []field {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var all []field
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var v json.RawMessage
		if err != nil || !ok || dec.Decode(&v) != nil {
			return all
		}
		all = append(all, field{name, v, at + int(dec.InputOffset()) - len(v)})
	}
	return all
}

func elements(raw json.RawMessage, at int) []field {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var all []field
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for dec.More() {
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return all
		}
		all = append(all, field{"", v, at + int(dec.InputOffset()) - len(v)})
	}
	return all
}

func find(fields []field, key string) *field {
	for i := range fields {
		if strings.EqualFold(fields[i].key, key) {
			return &fields[i]
		}
	}
	return nil
}

func has(fields []field, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return find(fields, k) != nil })
}

// jsonFields returns the lower-case names of a struct's JSON fields.
func jsonFields(t reflect.Type) map[string]bool {
	known := map[string]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			known[strings.ToLower(name)] = true
		}
	}
	return known
}

// jsonName is the JSON type that a Go type is read from.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	}
	return "a number of type " + t.String()
}
